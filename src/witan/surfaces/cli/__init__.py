"""One file per command, and what they share."""
