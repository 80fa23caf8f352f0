"""The pytest plugin: it does nothing unless it is asked."""
