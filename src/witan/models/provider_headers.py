"""Loop-guard headers for clients without headers per call."""

from collections.abc import Iterator, Mapping
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

from witan.models.loop_guard import hops_header

if TYPE_CHECKING:
    import httpx


def announcing(provider: str, stack: AsyncExitStack) -> dict[str, Any]:
    """Constructor options adding the loop guard; the stack closes them."""
    if provider != "cohere":
        return {}
    from pydantic_ai.models import create_async_http_client

    client = create_async_http_client()
    client.event_hooks["request"].append(_add)
    stack.push_async_callback(client.aclose)
    return {"http_client": client}


def announce(provider: str, made: Any) -> None:
    """Add the loop guard to an existing provider."""
    if provider == "huggingface":
        made.client.headers = _AsCalled()


async def _add(request: "httpx.Request") -> None:
    request.headers.update(hops_header())


class _AsCalled(Mapping[str, str]):
    """Headers evaluated per task at each access."""

    def __getitem__(self, name: str) -> str:
        return hops_header()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(hops_header())

    def __len__(self) -> int:
        return len(hops_header())
