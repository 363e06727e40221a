"""HTTP servers on loopback whose replies a test writes itself."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any


class QuietHandler(BaseHTTPRequestHandler):
    """Replies to requests without a log."""

    def read_json(self) -> Any:
        """Return the body of the request, or an empty object."""
        return json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or "{}")

    def reply(self, status: int, content: object, **headers: str) -> None:
        """Send bytes, or anything else as JSON."""
        body = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def run_server(server: ThreadingHTTPServer) -> Iterator[str]:
    """Serve in a thread until the block ends; yield the address."""
    with server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def run_handler(handler: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    """Serve requests by a handler at a free port."""
    with run_server(ThreadingHTTPServer(("127.0.0.1", 0), handler)) as url:
        yield url
