"""Headers of every call: the councils behind it and its trace."""

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from contextvars import ContextVar
from functools import cache
from pathlib import Path
from uuid import uuid4

from witan.deliberation.trace_context import call_trace

HEADER = "Witan-Via"
"""Header with the servers behind a call, comma-separated, the first one first."""

VARIABLE = "WITAN_VIA"
"""Variable with the same list, for programs that are members."""

MOST_HOPS = 16
"""Most councils that may ask each other in a row, whatever their names."""

HOPS: ContextVar[tuple[str, ...]] = ContextVar("witan_via", default=())
"""The servers behind the calls of this task."""

_NAME = re.compile(r"[\w.-]+", re.ASCII)


def server_name() -> str:
    """Make a unique name for a server, since addresses repeat behind proxies."""
    return f"witan-{uuid4().hex}"


def read_hops(text: str) -> tuple[str, ...]:
    """Read the servers in a header or variable.

    Invalid names are dropped: clients pass ``${WITAN_VIA}`` on literally if it is not set.
    """
    names = (each.strip() for each in text.split(","))
    return tuple(name for name in names if _NAME.fullmatch(name))


def hops() -> tuple[str, ...]:
    """Return servers behind this task's calls, including those above this process."""
    return (*(read_hops(os.environ.get(VARIABLE, "")) or _inherited_value()), *HOPS.get())


def call_headers() -> dict[str, str]:
    """Return the headers for one call of this task; may be empty."""
    hop_names = hops()
    return {**({HEADER: ", ".join(hop_names)} if hop_names else {}), **call_trace()}


@cache
def _inherited_value() -> tuple[str, ...]:
    """Return the variable's value in the nearest ancestor process with one.

    MCP clients start a server with only a few variables, without ours. Without ``/proc`` the result
    is empty.
    """
    for variables in _ancestor_variables():
        if VARIABLE in variables and (hop_names := read_hops(variables[VARIABLE])):
            return hop_names
    return ()


def _ancestor_variables() -> Iterator[dict[str, str]]:
    """Yield the variables of the processes above this one, the nearest first."""
    with suppress(OSError, ValueError):
        process = os.getppid()
        while process > 1:
            folder = Path(f"/proc/{process}")
            variables = (folder / "environ").read_bytes().decode(errors="replace").split("\0")
            yield dict(line.partition("=")[::2] for line in variables if "=" in line)
            # The name of the program precedes it in brackets, and may contain anything.
            process = int(
                (folder / "stat").read_text(errors="replace").rpartition(")")[2].split()[1]
            )
