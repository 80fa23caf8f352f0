"""Where people already work: other tools that run thresher's pulls, and the other end of its protocol."""
