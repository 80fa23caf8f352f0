"""thresher in other tools: pytest, inspect_ai, and evaluators that speak its protocol."""
