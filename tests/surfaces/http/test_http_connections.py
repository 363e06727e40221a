"""Slow clients: deadlines, the connection limit, and health checks throughout."""

import re
import socket
import sys
import time
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import replace
from urllib.parse import urlsplit

import httpx2
import pytest

from processes import wait_until
from served import served, serving_process
from services import councils, write_config
from witan.service.config.serve import ServeSettings
from witan.surfaces.http.observers import Metrics

QUESTION = {"question": "Is it so?", "options": {"synthesis": False}}

HALF = {
    "header": b"GET / HTTP/1.1\r\nHost: localh",
    "body": b"POST /api/sessions HTTP/1.1\r\nHost: localhost\r\n"
    b"Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n{",
}

LONG = {"text": "It is so. " * 20_000}

HASTY = ServeSettings(
    header_seconds=1.0, body_seconds=1.0, idle_seconds=1.0, send_seconds=1.0, heartbeat_seconds=0.3
)
"""Deadlines short enough to wait for."""


def connect(url, receive_bytes=None):
    """Open a socket to the server."""
    where = urlsplit(url)
    client = socket.socket()
    if receive_bytes is not None:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
    client.settimeout(60)
    client.connect((where.hostname, where.port))
    return client


def read_to_end(client):
    """Read until the server closes the connection."""
    found = b""
    try:
        while piece := client.recv(65536):
            found += piece
    except ConnectionResetError:
        pass
    return found


def exchange(url, request):
    """Send a request on a connection that the server closes, and return the reply."""
    with closing(connect(url)) as client:
        client.sendall(request)
        return read_to_end(client)


def is_closed(client):
    """Whether the server has closed this connection."""
    client.setblocking(False)
    try:
        while client.recv(65536):
            pass
    except BlockingIOError:
        return False
    except OSError:
        pass
    return True


@contextmanager
def running(folder, settings=HASTY, **stages):
    """A server in this process, and a client of it."""
    metrics = Metrics()
    with served(councils(write_config(folder, **stages)), settings, metrics=metrics) as server:
        with httpx2.Client(base_url=server.url, timeout=60) as client:
            client.get("/healthz")
        yield server


def closed_connections(url, reason):
    """The number of connections that the server closed for this reason."""
    text = httpx2.get(f"{url}/metrics", timeout=60).text
    found = re.findall(rf'witan_connections_closed_total{{reason="{reason}"}} (\S+)', text)
    return int(float(found[0])) if found else 0


class TestAtTheFileLimit:
    """More slow clients than the process may open files."""

    @pytest.mark.slow
    @pytest.mark.skipif(sys.platform == "win32", reason="there is no such limit")
    @pytest.mark.parametrize("half", HALF)
    def test_health_checks_are_answered_and_the_shortage_is_logged(self, tmp_path, half):
        """Slow clients are disconnected, and no traceback is logged."""
        more = "[serve]\nheader_seconds = 3\nbody_seconds = 3\n"
        options = ("--config", write_config(tmp_path, more), "--no-history")
        heard = []
        with (
            serving_process(*options, cwd=tmp_path, heard=heard, open_files=256) as (url, _),
            ExitStack() as stack,
        ):
            httpx2.get(f"{url}/healthz", timeout=60)
            slow = []
            for _ in range(300):
                client = stack.enter_context(closing(connect(url)))
                client.sendall(HALF[half])
                slow.append(client)
            health = []
            ends = time.monotonic() + 4
            while time.monotonic() < ends:
                health.append(httpx2.get(f"{url}/healthz", timeout=60).status_code)
                time.sleep(0.1)
            wait_until(lambda: all(map(is_closed, slow)), "slow clients are still connected")
            asked = httpx2.post(f"{url}/api/sessions?wait=20", json=QUESTION, timeout=60)

        assert set(health) == {200}
        assert asked.json()["status"] == "complete"
        assert any("limit of open files" in line for line in heard)
        assert 1 <= sum("connections closed or refused" in line for line in heard) <= 3
        assert not any("Traceback" in line for line in heard)
        assert len("".join(heard)) < 100_000


class TestDeadlines:
    """Clients that stop sending or reading are disconnected."""

    @pytest.mark.parametrize("half", HALF)
    def test_an_incomplete_request_is_refused(self, tmp_path, half):
        """The error says what is incomplete, and the connection ends."""
        with running(tmp_path) as server:
            started = time.monotonic()
            answer = exchange(server.url, HALF[half])
            taken = time.monotonic() - started
            reason = closed_connections(server.url, f"{half}_timeout")

        assert answer.startswith(b"HTTP/1.1 408 ")
        assert b"not complete within 1 s" in answer
        assert taken > 0.9
        assert reason == 1

    @pytest.mark.slow
    @pytest.mark.parametrize("half", HALF)
    def test_single_bytes_do_not_extend_the_deadline(self, tmp_path, half):
        """It applies to the whole request."""
        with running(tmp_path) as server, closing(connect(server.url)) as client:
            client.sendall(HALF[half])
            started = time.monotonic()
            while not is_closed(client) and time.monotonic() - started < 30:
                client.setblocking(True)
                try:
                    client.sendall(b"x")
                except OSError:
                    break
                time.sleep(0.1)
            taken = time.monotonic() - started

        assert taken < 25

    @pytest.mark.slow
    def test_an_idle_connection_is_closed(self, tmp_path):
        """Before the first request and after one."""
        with running(tmp_path) as server:
            unused = exchange(server.url, b"")
            used = exchange(server.url, b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")

        assert unused == b""
        assert used.startswith(b"HTTP/1.1 200 ")

    @pytest.mark.slow
    def test_the_body_of_a_refused_request_is_not_awaited(self, tmp_path):
        """A request refused by its headers does not keep the connection open."""
        request = b"POST / HTTP/1.1\r\nHost: elsewhere\r\nContent-Length: 1000\r\n\r\n{"
        with running(tmp_path, replace(HASTY, body_seconds=60.0)) as server:
            answer = exchange(server.url, request)

        assert answer.startswith(b"HTTP/1.1 403 ")

    @pytest.mark.slow
    def test_a_stream_outlasts_every_deadline(self, tmp_path):
        """Readers receive every event."""
        slow = [{"prefers": ["Ada says"], "seconds": 5}]
        with running(tmp_path, review=slow) as server:
            name = httpx2.post(f"{server.url}/api/sessions", json=QUESTION, timeout=60).json()[
                "session"
            ]
            events = httpx2.get(f"{server.url}/api/sessions/{name}/events", timeout=60).text

        assert events.count("event: ballot_cast") == 3
        assert '"status":"complete"' in events.split("event: end")[1]

    @pytest.mark.slow
    def test_a_client_that_never_reads_is_disconnected(self, tmp_path):
        """Its reply is discarded."""
        request = b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n"
        with running(tmp_path) as server, closing(connect(server.url, 4096)) as client:
            client.sendall(request * 16)
            wait_until(
                lambda: closed_connections(server.url, "send_timeout") == 1,
                "the client is still connected",
            )

    @pytest.mark.slow
    @pytest.mark.parametrize("what", ["a document", "events"])
    def test_a_client_below_the_least_rate_is_disconnected(self, tmp_path, what):
        """Single bytes now and then are not progress."""
        with running(tmp_path, answer=[LONG]) as server:
            path = self.path(server.url, what)
            with closing(connect(server.url, 4096)) as client:
                client.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode() * 16)
                n_taken = 0

                def is_disconnected():
                    nonlocal n_taken
                    with suppress(ConnectionResetError):
                        for _ in range(20):
                            n_taken += len(client.recv(1))
                            time.sleep(0.02)
                    return closed_connections(server.url, "send_timeout") == 1

                wait_until(is_disconnected, "the client is still connected")

        assert n_taken > 10

    @staticmethod
    def path(url, what):
        if what == "a document":
            return "/openapi.json"
        session = httpx2.post(f"{url}/api/sessions?wait=20", json=QUESTION, timeout=60).json()
        return f"/api/sessions/{session['session']}/events"

    @pytest.mark.slow
    def test_a_silent_stream_keeps_its_reader(self, tmp_path):
        """A client is slow only while data waits for it."""
        slow = [{"prefers": ["Ada says"], "seconds": 4}]
        settings = replace(HASTY, heartbeat_seconds=60.0)
        with running(tmp_path, settings, review=slow) as server:
            name = httpx2.post(f"{server.url}/api/sessions", json=QUESTION, timeout=60).json()[
                "session"
            ]
            events = httpx2.get(f"{server.url}/api/sessions/{name}/events", timeout=60).text
            slow = closed_connections(server.url, "send_timeout")

        assert "event: end" in events
        assert slow == 0

    @pytest.mark.slow
    def test_a_slow_client_receives_everything(self, tmp_path):
        """As long as it makes progress."""
        request = b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n"
        with running(tmp_path) as server, closing(connect(server.url, 4096)) as client:
            client.sendall(request * 12)
            found, ends = 0, time.monotonic() + 3
            while time.monotonic() < ends:
                found += client.recv(65536).count(b"HTTP/1.1 200 ")
                time.sleep(0.02)
            found += read_to_end(client).count(b"HTTP/1.1 200 ")

        assert found == 12


class TestLimit:
    """The limit on open connections."""

    @staticmethod
    def streams(stack, server, name):
        request = f"GET /api/sessions/{name}/events HTTP/1.1\r\nHost: localhost\r\n\r\n"
        for _ in range(3):
            client = stack.enter_context(closing(connect(server.url)))
            client.sendall(request.encode())
            assert client.recv(65536).startswith(b"HTTP/1.1 200 ")

    def test_connections_over_the_limit_are_refused(self, tmp_path):
        """Health checks are still answered."""
        slow = [{"prefers": ["Ada says"], "seconds": 60}]
        settings = ServeSettings(max_connections=3)
        with running(tmp_path, settings, review=slow) as server, ExitStack() as stack:
            name = httpx2.post(f"{server.url}/api/sessions", json=QUESTION, timeout=60).json()[
                "session"
            ]
            self.streams(stack, server, name)
            refused = httpx2.get(f"{server.url}/api/sessions", timeout=60)
            page = httpx2.get(f"{server.url}/", headers={"Accept": "text/html"}, timeout=60)
            health = [
                httpx2.get(f"{server.url}/healthz", timeout=60).status_code for _ in range(30)
            ]

        assert refused.status_code == 503
        assert "all 3 connections of the server are open" in refused.json()["detail"]
        assert int(refused.headers["retry-after"]) > 0
        assert refused.headers["connection"] == "close"
        assert (page.status_code, page.headers["content-type"].split(";")[0]) == (503, "text/html")
        assert set(health) == {200}

    def test_idle_connections_are_closed_first(self, tmp_path):
        """Incomplete requests and idle connections end before a client is refused."""
        with running(tmp_path, ServeSettings(max_connections=3)) as server, ExitStack() as stack:
            for half in (HALF["header"], HALF["body"], b""):
                client = stack.enter_context(closing(connect(server.url)))
                client.sendall(half)
            time.sleep(1.5)
            answers = [
                httpx2.get(f"{server.url}/api/sessions", timeout=60).status_code for _ in range(3)
            ]

        assert answers == [409, 409, 409]  # it keeps no history, and says so

    @pytest.mark.slow
    def test_clients_that_read_too_slowly_are_disconnected_first(self, tmp_path):
        """Unread replies do not lock other clients out."""
        request = b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n"
        with running(tmp_path, ServeSettings(max_connections=3)) as server, ExitStack() as stack:
            for _ in range(3):
                client = stack.enter_context(closing(connect(server.url, 4096)))
                client.sendall(request * 16)
            time.sleep(1)
            at_once = httpx2.get(f"{server.url}/api/sessions", timeout=60).status_code
            time.sleep(5)
            later = [
                httpx2.get(f"{server.url}/api/sessions", timeout=60).status_code for _ in range(3)
            ]

        assert at_once == 503
        assert later == [409, 409, 409]  # it keeps no history, and says so

    @pytest.mark.slow
    def test_the_option_sets_the_limit(self, tmp_path):
        """Like the setting."""
        options = ("--max-connections", "1", "--no-history", "--config", write_config(tmp_path))
        with serving_process(*options, cwd=tmp_path) as (url, _), ExitStack() as stack:
            httpx2.get(f"{url}/healthz", timeout=60)
            client = stack.enter_context(closing(connect(url)))
            client.sendall(HALF["header"])
            refused = httpx2.get(f"{url}/api/rules", timeout=60).status_code

        assert refused == 503


class TestRequests:
    """Malformed requests."""

    @pytest.mark.parametrize(
        ("hosts", "status"),
        [
            (["localhost"], 200),
            ([], 400),
            (["localhost", "localhost"], 400),
            (["localhost", "elsewhere"], 400),
        ],
    )
    def test_a_request_names_one_host(self, tmp_path, hosts, status):
        """A proxy and the server could read two differently."""
        lines = "".join(f"Host: {host}\r\n" for host in hosts)
        request = f"GET /healthz HTTP/1.1\r\n{lines}Connection: close\r\n\r\n".encode()
        with running(tmp_path) as server:
            assert exchange(server.url, request).startswith(b"HTTP/1.1 %d " % status)

    @pytest.mark.parametrize(
        "request_of",
        [
            lambda n: b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * n,
            lambda n: b"GET /" + b"x" * n,
            lambda n: b"GET / HTTP/1.1\r\nHost: localhost\r\n" + b"X: x\r\n" * (n // 6),
            lambda n: b"GET / HTTP/1.1\r\nHost: localhost\r\nCookie: " + b"a=b; " * (n // 5)
            + b"\r\n\r\n",
        ],
        ids=["header", "path", "headers", "cookies"],
    )  # fmt: skip
    def test_headers_have_a_length_limit(self, tmp_path, request_of):
        """Nothing beyond it is stored."""
        with running(tmp_path) as server:
            answer = exchange(server.url, request_of(100_000))
            with closing(connect(server.url)) as client, suppress(OSError):
                client.sendall(request_of(60_000_000))
                assert read_to_end(client) in (b"", answer)
            health = httpx2.get(f"{server.url}/healthz", timeout=60).status_code

        assert answer.startswith(b"HTTP/1.1 431 ")
        assert health == 200

    @pytest.mark.parametrize(
        "trailer",
        [b"X-Filler: " + b"x" * 1000 + b"\r\n", b"x" * 1012],
        ids=["many", "one that does not end"],
    )
    def test_trailers_have_a_length_limit(self, tmp_path, trailer):
        """Beyond it the connection ends, and none was stored."""
        begun = (
            b"POST /api/sessions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n"
        )
        with running(tmp_path) as server:
            with closing(connect(server.url)) as client:
                client.sendall(begun + (b"" if trailer.endswith(b"\n") else b"X: "))
                sent_bytes = 0
                with suppress(OSError):
                    while sent_bytes < 40_000_000 and not is_closed(client):
                        client.settimeout(60)
                        client.sendall(trailer * 64)
                        sent_bytes += len(trailer) * 64
            reason = closed_connections(server.url, "header_size")

        assert sent_bytes < 40_000_000
        assert reason == 1

    def test_short_trailers_are_ignored(self, tmp_path):
        """They are not headers, and the next request on the connection is answered."""
        request = (
            b"POST /api/nothing HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\nX-Sum: 1\r\nHost: elsewhere\r\n\r\n"
        )
        last = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
        with running(tmp_path) as server:
            answer = exchange(server.url, request + last)

        assert answer.startswith(b"HTTP/1.1 404 ")
        assert answer.count(b"HTTP/1.1 200 ") == 1

    def test_chunk_framing_does_not_count_as_trailers(self, tmp_path):
        """The framing of many small chunks may exceed the limit on trailers."""
        body = b'{"question": "Is it so?", "options": {"synthesis": false}}' + b" " * 13_000
        chunks = b"".join(b"1;x=yz\r\n%c\r\n" % byte for byte in body) + b"0\r\n\r\n"
        begun = (
            b"POST /api/sessions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            b"Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
        )
        with running(tmp_path) as server:
            answer = exchange(server.url, begun + chunks)

        assert len(chunks) > 100_000
        assert answer.startswith(b"HTTP/1.1 202 "), answer[:400]

    def test_pipelined_requests_are_limited(self, tmp_path):
        """A few are answered in order; on a flood the connection is closed."""
        request = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
        with running(tmp_path) as server:
            few = exchange(server.url, request * 16)
            flood = exchange(server.url, request * 1000)

        assert few.count(b"HTTP/1.1 200 ") == 16
        assert flood.count(b"HTTP/1.1 200 ") < 20
