"""W3C trace context of requests, sessions and calls."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from secrets import token_hex

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
