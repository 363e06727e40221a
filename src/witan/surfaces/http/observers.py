"""Observers of a server: log messages, and counters for Prometheus."""

import logging
import sys
from collections.abc import Callable
from typing import Literal

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from witan.deliberation import events as e
from witan.deliberation.ports import SystemClock
from witan.service.sessions.running import RunningSession
from witan.surfaces.http.door import FinishedRequest
from witan.surfaces.terminal import JsonLine, TextLine

QUIET = ("/assets/", "/healthz", "/metrics")
"""Paths requested so often that only failures are logged."""

_log = logging.getLogger("witan.server")


def log_to_stderr(kind: Literal["text", "json"]) -> None:
    """Log the server's messages, and warnings of libraries, to standard error."""
    handler = logging.StreamHandler(sys.stderr)  # noqa: TID251 - the gate's formatters
    handler.setFormatter(JsonLine() if kind == "json" else TextLine())
    root = logging.getLogger()
    root.addHandler(handler)
    root.setLevel(logging.WARNING)
    logging.getLogger("witan").setLevel(logging.INFO)
    logging.captureWarnings(True)


def log_message(text: str) -> None:
    """Log a message for the operator of the server."""
    _log.info("%s", text.strip())


def log_request(request: FinishedRequest) -> None:
    """Log a request, without its content or the response's."""
    if request.status < 400 and request.path.startswith(QUIET):
        return
    fields = {
        "request": request.request,
        "method": request.method,
        "path": request.path,
        "status": request.status,
        "ms": round(request.seconds * 1000, 1),
        "client": request.client,
    }
    _log.log(_level(request), "request", extra={"fields": fields})


def _level(request: FinishedRequest) -> int:
    """Choose the level of a request: intended refusals are not errors."""
    if request.status < 500 or request.path == "/healthz":
        return logging.INFO
    return logging.WARNING if request.status in (503, 508) else logging.ERROR


class SessionLog:
    """Log sessions when they open and when they end."""

    def watch(self, running_session: RunningSession) -> e.Listener:
        """Return a listener for one session."""

        def listen(event: e.Event) -> None:
            if isinstance(event, e.SessionOpened):
                fields = {"session": event.session, "client": running_session.client.name}
                _log.info("session opened", extra={"fields": {**fields, "seats": len(event.seats)}})
            elif isinstance(event, e.SessionClosed):
                closed: dict[str, object] = {
                    "session": running_session.id,
                    "status": event.status,
                    "seconds": round(event.seconds, 2),
                    "usd": event.cost_usd,
                    "missing": "; ".join(event.missing) or None,
                }
                _log.info("session closed", extra={"fields": closed})

        return e.skip_past_events(listen, SystemClock().now())

    def end_session(self, running_session: RunningSession) -> None:
        """Log that a session was interrupted, or not recorded."""
        if not running_session.has_name:
            return
        if running_session.stream.is_interrupted:
            failure = running_session.failure
            fields = {
                "session": running_session.id,
                "failure": None if failure is None else str(failure),
            }
            _log.warning("session interrupted", extra={"fields": fields})
        if running_session.record_failure is not None:
            fields = {"session": running_session.id, "problem": str(running_session.record_failure)}
            _log.error("session not recorded", extra={"fields": fields})


MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"

METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
"""Methods with a counter; unknown methods share one, to limit memory."""

REQUEST_SECONDS = (0.001, 0.005, 0.02, 0.1, 0.5, 2.0, 10.0, 60.0, 600.0)

_END_EVENTS = (
    e.AnswerDone,
    e.AnswerFailed,
    e.BallotCast,
    e.BallotAbstained,
    e.SynthesisDone,
    e.SynthesisFailedOver,
)
"""Events that end a call and have its cost."""

SESSION_SECONDS = (1.0, 2.0, 5.0, 10.0, 20.0, 40.0, 80.0, 160.0, 320.0, 640.0)


class Metrics:
    """Counters of one server: requests, streams and sessions.

    `connections` returns the number of open connections.
    """

    def __init__(self) -> None:
        self._registry = registry = CollectorRegistry()

        def counter(name: str, words: str, *labels: str) -> Counter:
            return Counter(name, words, labels, registry=registry)

        def gauge(name: str, words: str) -> Gauge:
            return Gauge(name, words, registry=registry)

        def histogram(name: str, words: str, buckets: tuple[float, ...], *labels: str) -> Histogram:
            return Histogram(name, words, labels, buckets=buckets, registry=registry)

        self._requests = counter("witan_requests", "Requests.", "method", "route", "status")
        self._request_seconds = histogram(
            "witan_request_seconds",
            "Duration of requests, streams included.",
            REQUEST_SECONDS,
            "route",
        )
        self._streams = gauge("witan_streams", "Readers of events.")
        self._connections = gauge("witan_connections", "Open connections.")
        self._connections_closed = counter(
            "witan_connections_closed", "Connections closed by the server.", "reason"
        )
        self.connections: Callable[[], int] = lambda: 0
        self._under_way = gauge("witan_sessions_under_way", "Running sessions.")
        self._sessions = counter("witan_sessions", "Finished sessions.", "status", "simulated")
        self._session_seconds = histogram(
            "witan_session_seconds", "How long sessions took.", SESSION_SECONDS
        )
        self._ballots = counter("witan_ballots", "Expected ballots, cast or abstained.", "came")
        self._retries = counter("witan_retries", "Retried attempts.", "stage")
        self._cost = counter("witan_cost_usd", "Known spending in US dollars.", "client")
        self._unknown = counter(
            "witan_sessions_of_unknown_cost", "Sessions with a call of unknown cost.", "client"
        )

    def connection_closed(self, reason: str) -> None:
        """Count a connection that the server closed."""
        self._connections_closed.labels(reason).inc()

    def count_request(self, request: FinishedRequest) -> None:
        """Count a request."""
        route = request.route or "unknown"
        method = request.method if request.method in METHODS else "other"
        self._requests.labels(method, route, str(request.status)).inc()
        self._request_seconds.labels(route).observe(request.seconds)

    def watch(self, running_session: RunningSession) -> e.Listener:
        """Count the events of a session."""
        simulated = False

        def listen(event: e.Event) -> None:
            nonlocal simulated
            if isinstance(event, _END_EVENTS) and event.spent.cost_usd:
                self._cost.labels(running_session.client.name).inc(event.spent.cost_usd)
            match event:
                case e.SessionOpened():
                    simulated = event.is_simulated
                case e.BallotCast():
                    self._ballots.labels("cast").inc()
                case e.BallotAbstained(awaited=True):
                    self._ballots.labels("abstained").inc()
                case e.CallRetried():
                    self._retries.labels(event.stage).inc()
                case e.SessionClosed():
                    self._count_closed(event, running_session.client.name, is_simulated=simulated)
                case _:
                    pass

        return e.skip_past_events(listen, SystemClock().now())

    def end_session(self, running_session: RunningSession) -> None:
        """Count a session that was interrupted."""
        if not (running_session.has_name and running_session.stream.is_interrupted):
            return
        session = running_session.session
        self._sessions.labels("interrupted", str(session.is_simulated).lower()).inc()
        if session.cost.total_usd is None:
            self._unknown.labels(running_session.client.name).inc()

    def _count_closed(self, event: e.SessionClosed, client: str, *, is_simulated: bool) -> None:
        self._sessions.labels(event.status, str(is_simulated).lower()).inc()
        self._session_seconds.observe(event.seconds)
        if event.cost_usd is None:
            self._unknown.labels(client).inc()

    def text(self, under_way: int, streams: int) -> bytes:
        """Write all counters in the text format of Prometheus."""
        self._streams.set(streams)
        self._under_way.set(under_way)
        self._connections.set(self.connections())
        return generate_latest(self._registry)
