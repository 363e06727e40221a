"""What a server counts, as Prometheus reads it."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from witan.deliberation import events as e
from witan.deliberation.recorder import Listener
from witan.surfaces.chamber import Running
from witan.surfaces.http.door import Passed

__all__ = ["MEDIA_TYPE", "Metrics"]

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"

REQUEST_SECONDS = (0.001, 0.005, 0.02, 0.1, 0.5, 2, 10, 60, 600)

SESSION_SECONDS = (1, 2, 5, 10, 20, 40, 80, 160, 320, 640)


class Metrics:
    """Counters of one server: its requests, its streams, and what its sessions came to."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "witan_requests", "Requests.", ["method", "route", "status"], registry=self._registry
        )
        self._request_seconds = Histogram(
            "witan_request_seconds",
            "From the first byte to the last; streams included.",
            ["route"],
            buckets=REQUEST_SECONDS,
            registry=self._registry,
        )
        self._streams = Gauge("witan_streams", "Readers of events.", registry=self._registry)
        self._under_way = Gauge(
            "witan_sessions_under_way", "Sessions that go on.", registry=self._registry
        )
        self._sessions = Counter(
            "witan_sessions",
            "Sessions that are over.",
            ["status", "simulated"],
            registry=self._registry,
        )
        self._session_seconds = Histogram(
            "witan_session_seconds",
            "How long sessions took.",
            buckets=SESSION_SECONDS,
            registry=self._registry,
        )
        self._ballots = Counter(
            "witan_ballots",
            "Ballots that were awaited, by what came of them.",
            ["came"],
            registry=self._registry,
        )
        self._retries = Counter(
            "witan_retries",
            "Attempts that failed and were followed by another.",
            ["stage"],
            registry=self._registry,
        )
        self._cost = Counter(
            "witan_cost_usd",
            "Dollars that sessions are known to have cost.",
            ["asker"],
            registry=self._registry,
        )
        self._unknown = Counter(
            "witan_sessions_of_unknown_cost",
            "Sessions in which some call's cost is unknown.",
            ["asker"],
            registry=self._registry,
        )

    def passed(self, request: Passed) -> None:
        """Count a request."""
        route = request.route or "unknown"
        self._requests.labels(request.method, route, str(request.status)).inc()
        self._request_seconds.labels(route).observe(request.seconds)

    def watch(self, running: Running) -> Listener:
        """Count what happens in a session."""
        simulated = False

        def told(event: e.Event) -> None:
            nonlocal simulated
            match event:
                case e.SessionOpened():
                    simulated = event.simulated
                case e.BallotCast():
                    self._ballots.labels("cast").inc()
                case e.BallotAbstained(awaited=True):
                    self._ballots.labels("abstained").inc()
                case e.CallRetried():
                    self._retries.labels(event.stage).inc()
                case e.SessionClosed():
                    self._closed(event, running.asker.name, simulated=simulated)
                case _:
                    pass

        return told

    def over(self, running: Running) -> None:
        """Count a session that was broken off."""
        if running.named and running.stream.interrupted:
            self._sessions.labels("interrupted", str(running.session.simulated).lower()).inc()

    def _closed(self, event: e.SessionClosed, asker: str, *, simulated: bool) -> None:
        self._sessions.labels(event.status, str(simulated).lower()).inc()
        self._session_seconds.observe(event.seconds)
        self._cost.labels(asker).inc(event.known_usd)
        if event.cost_usd is None:
            self._unknown.labels(asker).inc()

    def text(self, under_way: int, streams: int) -> bytes:
        """All of them, as Prometheus reads them."""
        self._streams.set(streams)
        self._under_way.set(under_way)
        return generate_latest(self._registry)
