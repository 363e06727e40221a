"""A receiver of OpenTelemetry spans on loopback, which knows nothing of Witan."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from gzip import decompress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

from handlers import QuietHandler, run_server

FAILED = 2
"""The code of a span whose status is an error."""


@dataclass(frozen=True, slots=True)
class Span:
    """A span as it came over the wire."""

    name: str
    id: bytes
    parent: bytes
    trace: bytes
    attributes: Mapping[str, Any]
    service: str
    seconds: float
    failed: bool
    words: str


class Receiver(ThreadingHTTPServer):
    """Keeps every span that is sent to it."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.raw: list[bytes] = []
        self.paths: list[str] = []

    @property
    def url(self) -> str:
        """Where it is, as ``OTEL_EXPORTER_OTLP_ENDPOINT`` names it."""
        return f"http://127.0.0.1:{self.server_address[1]}"

    @property
    def environment(self) -> dict[str, str]:
        """Variables that have spans sent here, and soon."""
        return {"OTEL_EXPORTER_OTLP_ENDPOINT": self.url, "OTEL_BSP_SCHEDULE_DELAY": "100"}

    @property
    def spans(self) -> list[Span]:
        """All that came, in the order in which they ended."""
        return [span for body in self.raw for span in _spans(body)]


class _Handler(QuietHandler, BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers.get("Content-Encoding") == "gzip":
            body = decompress(body)
        self.server.raw.append(body)
        self.server.paths.append(self.path)
        reply = ExportTraceServiceResponse().SerializeToString()
        self.reply(200, reply, Content_Type="application/x-protobuf")


def _spans(body: bytes) -> Iterator[Span]:
    for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
        service = _attributes(resource.resource.attributes).get("service.name", "")
        for scope in resource.scope_spans:
            for span in scope.spans:
                yield Span(
                    span.name,
                    span.span_id,
                    span.parent_span_id,
                    span.trace_id,
                    _attributes(span.attributes),
                    service,
                    (span.end_time_unix_nano - span.start_time_unix_nano) / 1e9,
                    span.status.code == FAILED,
                    span.status.message,
                )


def _attributes(pairs: Any) -> dict[str, Any]:
    return {pair.key: getattr(pair.value, pair.value.WhichOneof("value")) for pair in pairs}


@contextmanager
def receiver() -> Iterator[Receiver]:
    """Receive spans while the block lasts."""
    server = Receiver()
    with run_server(server):
        yield server
