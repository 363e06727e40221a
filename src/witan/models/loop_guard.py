"""The headers of every call: the councils behind it and its trace."""

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
"""The header by which a call says so: the servers, comma-separated, the first one first."""

VARIABLE = "WITAN_VIA"
"""The variable by which a program that is a member hears so, written likewise."""

MOST_HOPS = 16
"""However they are called, no more councils than these ask each other in a row."""

HOPS: ContextVar[tuple[str, ...]] = ContextVar("witan_via", default=())
"""The servers on whose behalf the calls of this task are made."""

_NAME = re.compile(r"[\w.-]+", re.ASCII)


def server_name() -> str:
    """A unique name for a server: addresses repeat behind proxies."""
    return f"witan-{uuid4().hex}"


def read_hops(text: str) -> tuple[str, ...]:
    """Servers in a header or variable.

    What is no name is left out: clients hand on ``${WITAN_VIA}`` as it stands where it is not set.
    """
    names = (each.strip() for each in text.split(","))
    return tuple(name for name in names if _NAME.fullmatch(name))


def hops() -> tuple[str, ...]:
    """Servers behind this task's calls, including those above this process."""
    return (*(read_hops(os.environ.get(VARIABLE, "")) or _inherited_value()), *HOPS.get())


def call_headers() -> dict[str, str]:
    """The headers for one call of this task; may be empty."""
    hop_names = hops()
    return {**({HEADER: ", ".join(hop_names)} if hop_names else {}), **call_trace()}


@cache
def _inherited_value() -> tuple[str, ...]:
    """The variable's value in the nearest ancestor process with one.

    Clients of the Model Context Protocol start a server with a few variables alone, not with ours.
    Where processes cannot be looked at in ``/proc``, it names nobody.
    """
    for variables in _ancestor_variables():
        if VARIABLE in variables and (hop_names := read_hops(variables[VARIABLE])):
            return hop_names
    return ()


def _ancestor_variables() -> Iterator[dict[str, str]]:
    """The variables of the processes above this one, the nearest first."""
    with suppress(OSError, ValueError):
        process = os.getppid()
        while process > 1:
            folder = Path(f"/proc/{process}")
            variables = (folder / "environ").read_bytes().decode(errors="replace").split("\0")
            yield dict(line.partition("=")[::2] for line in variables if "=" in line)
            # The name of the program stands before it in brackets, and may hold anything.
            process = int(
                (folder / "stat").read_text(errors="replace").rpartition(")")[2].split()[1]
            )
