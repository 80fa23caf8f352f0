"""The log of a study: stores, the only reader of pages and the only way to write."""
