"""Running a study: the loop, failures, stopping; engines and commands."""
