"""Logs of a server: a line for each request and each session."""

import logging
import sys
from typing import Literal

from witan.deliberation import events as e
from witan.deliberation.ports import SystemClock
from witan.deliberation.recorder import Listener, skip_past_events
from witan.service.sessions import RunningSession
from witan.surfaces.http.door import FinishedRequest
from witan.surfaces.log_lines import JsonLine, TextLine

QUIET = ("/assets/", "/healthz", "/metrics")
"""Paths requested so often that only failures are logged."""

_log = logging.getLogger("witan.server")


def log_to_stderr(kind: Literal["text", "json"]) -> None:
    """Log the server's messages, and warnings of libraries, to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLine() if kind == "json" else TextLine())
    root = logging.getLogger()
    root.addHandler(handler)
    root.setLevel(logging.WARNING)
    logging.getLogger("witan").setLevel(logging.INFO)
    logging.captureWarnings(True)


def log_message(text: str) -> None:
    """Log a message to whoever started the server."""
    _log.info("%s", text.strip())


def log_request(request: FinishedRequest) -> None:
    """Log a request, without what it asked and what was answered."""
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
    """Choose the level of a request: refusals on purpose are no errors."""
    if request.status < 500 or request.path == "/healthz":
        return logging.INFO
    return logging.WARNING if request.status in (503, 508) else logging.ERROR


class SessionLog:
    """Log sessions when they open and when they end."""

    def watch(self, running: RunningSession) -> Listener:
        """Return a listener for one session."""

        def listen(event: e.Event) -> None:
            if isinstance(event, e.SessionOpened):
                fields = {"session": event.session, "client": running.client.name}
                _log.info("session opened", extra={"fields": {**fields, "seats": len(event.seats)}})
            elif isinstance(event, e.SessionClosed):
                closed: dict[str, object] = {
                    "session": running.id,
                    "status": event.status,
                    "seconds": round(event.seconds, 2),
                    "usd": event.cost_usd,
                    "missing": "; ".join(event.missing) or None,
                }
                _log.info("session closed", extra={"fields": closed})

        return skip_past_events(listen, SystemClock().now())

    def over(self, running: RunningSession) -> None:
        """Log that a session was interrupted, or not recorded."""
        if not running.named:
            return
        if running.stream.interrupted:
            failure = running.failure
            fields = {"session": running.id, "failure": None if failure is None else str(failure)}
            _log.warning("session interrupted", extra={"fields": fields})
        if running.unkept is not None:
            fields = {"session": running.id, "problem": str(running.unkept)}
            _log.error("session not kept", extra={"fields": fields})
