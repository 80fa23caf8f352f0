"""Measurements of speed: `make bench`. Bars apply to ratios measured in one run; absolute times vary."""
