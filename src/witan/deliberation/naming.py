"""Names of seats that no other seat has."""

from collections.abc import Collection

__all__ = ["free_name"]


def free_name(wished: str, used: Collection[str]) -> str:
    """The name, or the first of ``name (2)``, ``name (3)`` … that is not in use."""
    name, number = wished, 2
    while name in used:
        name, number = f"{wished} ({number})", number + 1
    return name
