"""Text that comes in or goes out: secrets, escapes, numbers, files."""
