"""Sessions as OpenTelemetry spans, by the conventions for generative models."""

import logging
import os
from threading import Thread
from typing import TYPE_CHECKING

from witan.deliberation import events as e
from witan.deliberation.call_headers import TraceContext
from witan.deliberation.ports import Seat, SystemClock
from witan.errors import MissingExtra
from witan.version import __version__

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.trace import Span, Tracer


ENDPOINTS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
"""Standard variables for the destination of spans."""

_log = logging.getLogger("witan.telemetry")

_Doing = tuple[str, str, int]
"""A call: stage, seat, round."""

_Success = e.AnswerDone | e.BallotCast | e.SynthesisDone

_End = _Success | e.AnswerFailed | e.BallotAbstained | e.SynthesisFailedOver
"""An event that ends a call."""


def is_configured() -> bool:
    """Check for a configured and enabled destination of spans."""
    off = os.environ.get("OTEL_SDK_DISABLED", "").lower() == "true"
    none = os.environ.get("OTEL_TRACES_EXPORTER", "").lower() == "none"
    return not (off or none) and any(os.environ.get(name) for name in ENDPOINTS)


class SpanExport:
    """Sends spans as configured; closing it sends the last ones."""

    def __init__(self) -> None:
        self._exporter, self.provider = _exporter_and_provider()
        # The exporter logs every attempt; one message about the failure is enough.
        logging.getLogger("opentelemetry.exporter").setLevel(logging.ERROR)

    def close(self, seconds: float = 2.0) -> None:
        """Send the last spans; wait at most `seconds` for the receiver."""
        flushing = Thread(target=self.provider.force_flush, daemon=True)
        flushing.start()
        flushing.join(seconds)
        if flushing.is_alive():
            _log.warning("some spans were not exported: the collector does not answer")
        self._exporter.shutdown()  # type: ignore[no-untyped-call]
        self.provider.shutdown()


def _exporter_and_provider() -> "tuple[OTLPSpanExporter, TracerProvider]":
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError:
        raise MissingExtra("sending spans", "otel") from None
    resource = Resource.create({"service.name": os.environ.get("OTEL_SERVICE_NAME", "witan")})
    provider, exporter = TracerProvider(resource=resource), OTLPSpanExporter()
    provider.add_span_processor(BatchSpanProcessor(exporter))
    return exporter, provider


class Spans:
    """Records a span per session and call, without content."""

    def __init__(self, provider: "TracerProvider") -> None:
        self._tracer = provider.get_tracer("witan", __version__)
        self._sessions: dict[object, _Session] = {}

    def watch(self, session: object) -> e.Listener:
        """Return a listener for one session, by its unique key."""
        span = self._sessions[session] = _Session(self._tracer)
        return e.skip_past_events(span.hear, SystemClock().now())

    def end_session(self, session: object) -> None:
        """End the spans of an ended session."""
        span = self._sessions.pop(session, None)
        if span is not None:
            span.end("interrupted")


class _Session:
    """Open spans of one session."""

    def __init__(self, tracer: "Tracer") -> None:
        self._tracer = tracer
        self._root: Span | None = None
        self._seats: dict[str, Seat] = {}
        self._open: dict[_Doing, Span] = {}

    def hear(self, event: e.Event) -> None:
        """Start or end the spans of an event."""
        match event:
            case e.SessionOpened():
                self._open_session(event)
            case e.AnswerStarted():
                self._begin("answer", event.seat, event.round)
            case e.ReviewStarted():
                self._begin("review", event.seat, event.round)
            case e.SynthesisStarted(chairman=str()):
                self._begin("synthesis", event.chairman or "")
            case e.AnswerDone() | e.AnswerFailed():
                self._end(event, "answer", event.seat, event.round)
            case e.BallotCast() | e.BallotAbstained():
                self._end(event, "review", event.seat, event.round)
            case e.SynthesisDone() | e.SynthesisFailedOver():
                self._end(event, "synthesis", event.chairman or "")
            case e.SessionClosed():
                self._close(event)

    def _open_session(self, event: e.SessionOpened) -> None:
        self._seats = {seat.name: seat for seat in (*event.seats, *event.callable_seats)}
        self._root = self._tracer.start_span(
            "invoke_workflow witan",
            context=_parent_context(event.trace),
            attributes={
                "gen_ai.operation.name": "invoke_workflow",
                "gen_ai.conversation.id": event.session,
                "witan.seats": len(event.seats),
                "witan.rules.rule": event.procedure.counting.rule,
                "witan.simulated": event.is_simulated,
            },
        )

    def _begin(self, stage: str, name: str, number: int = 1) -> None:
        from opentelemetry.trace import SpanKind, set_span_in_context

        if self._root is None:
            return
        seat = self._seats.get(name)
        model = name if seat is None else _model(seat)
        self._open[stage, name, number] = self._tracer.start_span(
            f"chat {model}",
            context=set_span_in_context(self._root),
            kind=SpanKind.CLIENT,
            attributes={
                "gen_ai.operation.name": "chat",
                "gen_ai.provider.name": "" if seat is None else seat.provider,
                "gen_ai.request.model": model,
                "witan.stage": stage,
                "witan.seat": name,
                "witan.round": number,
            },
        )

    def _end(self, event: _End, stage: str, name: str, number: int = 1) -> None:
        span = self._open.pop((stage, name, number), None)
        if span is None:
            return
        expense = event.spent
        attributes = {
            "gen_ai.usage.input_tokens": expense.usage.input_tokens,
            "gen_ai.usage.output_tokens": expense.usage.output_tokens,
            "witan.cost_usd": expense.cost_usd,
            "witan.attempts": expense.calls,
        }
        span.set_attributes({key: value for key, value in attributes.items() if value is not None})
        if (failure := _failure_kind(event)) is not None:
            _fail(span, failure)
        span.end()

    def _close(self, event: e.SessionClosed) -> None:
        if self._root is not None:
            self._root.set_attribute("witan.missing", len(event.missing))
            self._root.set_attribute("witan.known_usd", event.known_usd)
        self.end(event.status)

    def end(self, status: str) -> None:
        """End open spans, with the session's result."""
        for span in self._open.values():
            _fail(span, "unfinished")
            span.end()
        self._open.clear()
        root, self._root = self._root, None
        if root is not None:
            root.set_attribute("witan.status", status)
            if status in ("failed", "interrupted"):
                _fail(root, status)
            root.end()


def _parent_context(trace: TraceContext | None) -> "Context | None":
    """Return the client's span; None starts a new trace."""
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    return None if trace is None else TraceContextTextMapPropagator().extract(trace.fields())


def _model(seat: Seat) -> str:
    """Name a model as its server does; scripts and programs by seat."""
    if seat.url is not None or "://" in seat.source:
        return seat.source.rpartition("#")[2] or seat.name
    provider, _, model = seat.source.partition(":")
    return seat.name if provider in ("script", "cmd") else model or seat.name


def _failure_kind(event: _End) -> str | None:
    """Return the kind of failure, without its text, which may quote a model; None: none."""
    if isinstance(event, _Success) or (isinstance(event, e.BallotAbstained) and not event.awaited):
        return None
    return "over_budget" if event.over_budget else "failed"


def _fail(span: "Span", kind: str) -> None:
    from opentelemetry.trace import Status, StatusCode

    span.set_attribute("error.type", kind)
    span.set_status(Status(StatusCode.ERROR))
