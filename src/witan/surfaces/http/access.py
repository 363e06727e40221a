"""Who asks, and which chamber.

Coroutines, since a plain function that a route depends on is run in a thread for every request.
"""

from typing import Annotated

from fastapi import Depends, Request

from witan.service.sessions import Asker, Chamber

__all__ = ["AskerOf", "ChamberOf", "Via"]


async def _chamber(request: Request) -> Chamber:
    """The chamber that is asked."""
    chamber: Chamber = request.app.state.chamber
    return chamber


async def _asker(request: Request) -> Asker:
    """Who asks, as the token says."""
    asker: Asker = request.scope["asker"]
    return asker


async def _via(request: Request) -> tuple[str, ...]:
    """The councils that the request came through."""
    via: tuple[str, ...] = request.scope["via"]
    return via


ChamberOf = Annotated[Chamber, Depends(_chamber)]
AskerOf = Annotated[Asker, Depends(_asker)]
Via = Annotated[tuple[str, ...], Depends(_via)]
