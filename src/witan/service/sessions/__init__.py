"""Sessions of a server, running and stored."""
