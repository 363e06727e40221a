"""Everything that comes in or goes out as a file."""
