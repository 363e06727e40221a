"""One module per command, and shared modules."""
