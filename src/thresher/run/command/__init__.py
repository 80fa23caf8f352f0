"""Programs as evaluators."""
