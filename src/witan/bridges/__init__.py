"""Bridges to other tools: each a module named for its tool, on public names alone."""
