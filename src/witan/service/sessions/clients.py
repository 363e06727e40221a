"""Clients of a service: their names, and how much they are allowed."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Client:
    """Who asks, and how much of it is allowed.

    Parameters
    ----------
    name
        Of its token, or ``local``.
    per_minute
        Sessions it may begin in a minute; None: as many as it likes.
    max_cost_usd
        The ceiling of each of its sessions; None: that of the configuration.
    daily_usd
        What its sessions may cost in any 24 hours; None: as much as they like.
    by_token
        It is known by a token; else nobody knows who it is, and it is taken at its word.
    """

    name: str
    per_minute: float | None = None
    max_cost_usd: float | None = None
    daily_usd: float | None = None
    by_token: bool = False


LOCAL = Client("local")
"""Whoever reaches a server that listens on this machine alone, and has no tokens."""
