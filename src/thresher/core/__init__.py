"""What a study decides and says: no I/O, no clock, no threads."""
