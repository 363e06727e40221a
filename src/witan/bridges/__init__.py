"""Bridges to other tools, one module per tool.

They use only Witan's public names.
"""
