"""Who asks, and which service.

Coroutines, since a plain function that a route depends on is run in a thread for every request.
"""

from typing import Annotated

from fastapi import Depends, Request

from witan.service.sessions import Client, Service

__all__ = ["ClientOf", "Hops", "ServiceOf"]


async def _service(request: Request) -> Service:
    """The service that is asked."""
    service: Service = request.app.state.service
    return service


async def _client(request: Request) -> Client:
    """Who asks, as the token says."""
    client: Client = request.scope["witan.client"]
    return client


async def _via(request: Request) -> tuple[str, ...]:
    """The councils that the request came through."""
    hops: tuple[str, ...] = request.scope["witan.hops"]
    return hops


ServiceOf = Annotated[Service, Depends(_service)]
ClientOf = Annotated[Client, Depends(_client)]
Hops = Annotated[tuple[str, ...], Depends(_via)]
