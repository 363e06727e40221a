"""Headers of every call: its W3C trace, and the councils behind it."""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from secrets import token_hex
from uuid import uuid4

_PARENT = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")
_MEMBER = re.compile(r"([a-z0-9][a-z0-9_\-*/@]{0,255})=[ -+\--<>-~]{0,255}[!-+\--<>-~]")

KNOWN_FLAGS = 0b11
"""Flags that the standard defines: sampled, and random trace id."""

MOST_MEMBERS = 32
"""Entries that the standard allows in a `tracestate`."""

LONGEST_STATE = 8192
"""Characters of a `tracestate`; servers refuse requests with longer headers."""


@dataclass(frozen=True, slots=True)
class TraceContext:
    """The trace that a session belongs to.

    Parameters
    ----------
    traceparent
        Version, trace id, id of the calling span and flags, as in the header of that name.
    tracestate
        Entries of tracing systems; may be empty.
    """

    traceparent: str
    tracestate: str = ""

    def fields(self) -> dict[str, str]:
        """Return the fields by header name, without an empty state."""
        state = {"tracestate": self.tracestate} if self.tracestate else {}
        return {"traceparent": self.traceparent, **state}

    def child(self) -> "TraceContext":
        """Return the context of a new span within the same trace."""
        version, trace, _, flags = self.traceparent.split("-")
        return TraceContext(f"{version}-{trace}-{token_hex(8)}-{flags}", self.tracestate)


TRACE: ContextVar[TraceContext | None] = ContextVar("witan_trace", default=None)
"""The trace of this task, if any."""


def read_trace(parents: Sequence[str], states: Sequence[str]) -> TraceContext | None:
    """Read the values of both headers; return None without one valid `traceparent`.

    An invalid `tracestate` is dropped by itself. A later version is read as far as this one
    defines.
    """
    match = _PARENT.fullmatch(parents[0].strip(" \t")) if len(parents) == 1 else None
    if match is None:
        return None
    version, trace, span, flags, rest = match.groups()
    if version == "ff" or (version == "00" and rest) or not (trace.strip("0") and span.strip("0")):
        return None
    known_flags = int(flags, 16) & KNOWN_FLAGS
    return TraceContext(f"00-{trace}-{span}-{known_flags:02x}", _read_state(",".join(states)))


def _read_state(text: str) -> str:
    members = [each.strip(" \t") for each in text.split(",")]
    members = [each for each in members if each]
    matches = [_MEMBER.fullmatch(each) for each in members]
    keys = {each[1] for each in matches if each is not None}
    valid = len(keys) == len(members) <= MOST_MEMBERS and len(text) <= LONGEST_STATE
    return ",".join(members) if valid else ""


def read_trace_variables(environment: Mapping[str, str]) -> TraceContext | None:
    """Read the trace from the variables TRACEPARENT and TRACESTATE."""
    parents, states = (environment.get(name) for name in ("TRACEPARENT", "TRACESTATE"))
    return read_trace([parents] if parents else [], [states] if states else [])


def call_trace() -> dict[str, str]:
    """Return the fields of a new span for one call."""
    trace = TRACE.get()
    return {} if trace is None else trace.child().fields()


@contextmanager
def within_trace(trace: TraceContext | None) -> Iterator[None]:
    """Assign this task to a trace, unless it has one already."""
    if trace is None or TRACE.get() is not None:
        yield
        return
    token = TRACE.set(trace)
    try:
        yield
    finally:
        TRACE.reset(token)


VIA_HEADER = "Witan-Via"
"""Header with the servers behind a call, comma-separated, the first one first."""

VIA_VARIABLE = "WITAN_VIA"
"""Variable with the same list, for programs that are members."""

MOST_HOPS = 16
"""Most councils that may ask each other in a row, whatever their names."""

HOPS: ContextVar[tuple[str, ...]] = ContextVar("witan_via", default=())
"""The servers behind the calls of this task."""

_ABOVE: ContextVar[tuple[str, ...] | None] = ContextVar("witan_above", default=None)
"""The servers above this process, in a session."""

_NAME = re.compile(r"[\w.-]+", re.ASCII)


def server_name() -> str:
    """Make a unique name for a server, since addresses repeat behind proxies."""
    return f"witan-{uuid4().hex}"


def read_hops(text: str) -> tuple[str, ...]:
    """Read the chain of servers from a header or variable.

    Invalid names are dropped: clients pass ``${WITAN_VIA}`` on literally if it is not set.
    """
    names = (each.strip() for each in text.split(","))
    return tuple(name for name in names if _NAME.fullmatch(name))


def hops() -> tuple[str, ...]:
    """Return servers behind this task's calls, including those above this process."""
    above = _ABOVE.get()
    return (*(_find_above() if above is None else above), *HOPS.get())


@contextmanager
def within_session(trace: TraceContext | None) -> Iterator[None]:
    """Find the servers above this task once, then act like `within_trace`."""
    token = _ABOVE.set(_find_above())
    try:
        with within_trace(trace):
            yield
    finally:
        _ABOVE.reset(token)


def _find_above() -> tuple[str, ...]:
    return _hops_above(os.environ.get(VIA_VARIABLE, ""))


@lru_cache(maxsize=8)
def _hops_above(variable: str) -> tuple[str, ...]:
    return read_hops(variable) or _inherited_value()


def call_headers() -> dict[str, str]:
    """Return the headers for one call of this task; may be empty."""
    headers = {VIA_HEADER: ", ".join(hop_names)} if (hop_names := hops()) else {}
    return {**headers, **call_trace()}


@cache
def _inherited_value() -> tuple[str, ...]:
    """Return the variable's value in the nearest ancestor process with one.

    MCP clients start a server with only a few variables, without ours. Without ``/proc`` the result
    is empty.
    """
    for variables in _ancestor_variables():
        if VIA_VARIABLE in variables and (hop_names := read_hops(variables[VIA_VARIABLE])):
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
            # The program's name precedes it in brackets, and may contain any characters.
            process = int(
                (folder / "stat").read_text(errors="replace").rpartition(")")[2].split()[1]
            )
