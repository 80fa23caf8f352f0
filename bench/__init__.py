"""Measurements of speed: `make bench`. Ratios taken in one run on one machine; absolute times are for orientation."""
