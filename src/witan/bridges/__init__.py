"""Bridges to other tools, each a module named for its tool.

They use public names alone.
"""
