"""Through whom a call comes, said by clients that take no headers along with a call."""

from collections.abc import Iterator, Mapping
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

from witan.models.loop_guard import hops_header

if TYPE_CHECKING:
    import httpx


def announcing(provider: str, stack: AsyncExitStack) -> dict[str, Any]:
    """What else a provider is made with, for its calls to say so; the stack closes it."""
    if provider != "cohere":
        return {}
    from pydantic_ai.models import create_async_http_client

    client = create_async_http_client()
    client.event_hooks["request"].append(_add)
    stack.push_async_callback(client.aclose)
    return {"http_client": client}


def announce(provider: str, made: Any) -> None:
    """Have a provider that was made say so, where it cannot be told in the making."""
    if provider == "huggingface":
        made.client.headers = _AsCalled()


async def _add(request: "httpx.Request") -> None:
    request.headers.update(hops_header())


class _AsCalled(Mapping[str, str]):
    """Headers as they are for whoever asks for them: each call is of a task of its own."""

    def __getitem__(self, name: str) -> str:
        return hops_header()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(hops_header())

    def __len__(self) -> int:
        return len(hops_header())
