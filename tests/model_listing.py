"""A server on loopback that lists models, as providers and local servers do."""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any

from handlers import QuietHandler, run_handler


@dataclass(slots=True)
class Listing:
    """What the server answers, and what it was sent.

    Parameters
    ----------
    body
        A list of models, or anything else to send in its place.
    headers
        Those of every request, in order.
    """

    url: str
    body: Any
    status: int = 200
    seconds: float = 0.0
    paths: list[str] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)


@contextmanager
def listing(*models: str | dict[str, Any], **answers: Any) -> Iterator[Listing]:
    """Serve a list of these models until the block ends."""
    entries = [{"id": model} if isinstance(model, str) else model for model in models]

    class Handler(QuietHandler, BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            served.paths.append(self.path)
            served.headers.append({name.lower(): value for name, value in self.headers.items()})
            time.sleep(served.seconds)
            content = served.body if isinstance(served.body, str) else json.dumps(served.body)
            try:
                self.send_response(served.status)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content.encode())
            except OSError:
                self.close_connection = True  # whoever asked has left

    with run_handler(Handler) as url:
        served = Listing(f"{url}/v1", {"data": entries})
        for name, value in answers.items():
            setattr(served, name, value)
        yield served
