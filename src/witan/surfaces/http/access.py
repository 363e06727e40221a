"""Who asks.

Coroutines, since a plain function that a route depends on is run in a thread for every request.
"""

from fastapi import Request

from witan.surfaces.chamber import Asker, Chamber

__all__ = ["asker_of", "chamber_of", "via_of"]


async def chamber_of(request: Request) -> Chamber:
    """The chamber that is asked."""
    chamber: Chamber = request.app.state.chamber
    return chamber


async def asker_of(request: Request) -> Asker:
    """Who asks, as the token says."""
    asker: Asker = request.scope["asker"]
    return asker


async def via_of(request: Request) -> tuple[str, ...]:
    """The councils that the request came through."""
    via: tuple[str, ...] = request.scope["via"]
    return via
