"""Which councils a call comes through, so that one that is a member of itself is found out."""

from contextvars import ContextVar
from uuid import uuid4

__all__ = ["HEADER", "VIA", "server_name", "via_header"]

HEADER = "Witan-Via"
"""The header by which a call says so: the servers, comma-separated, the first one first."""

VIA: ContextVar[tuple[str, ...]] = ContextVar("witan_via", default=())
"""The servers on whose behalf the calls of this task are made."""


def server_name() -> str:
    """A name for a server that no other has: behind proxies two may go by the same address."""
    return f"witan-{uuid4().hex}"


def via_header() -> dict[str, str]:
    """The header that a call of this task goes out with; none where no server stands behind it."""
    via = VIA.get()
    return {HEADER: ", ".join(via)} if via else {}
