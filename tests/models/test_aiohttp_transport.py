"""The transport on asyncio: requests, pooled connections, and errors as `httpx2` raises them."""

import logging
import shutil
import socket
import ssl
import subprocess
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import anyio
import httpx2
import pytest

from handlers import QuietHandler, run_server
from misbehaving import MisbehavingServer
from processes import run_python
from witan.models.aiohttp_transport import AiohttpTransport

pytestmark = pytest.mark.anyio

HEAD = b"HTTP/1.1 200 OK\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
NOT_HTTP = "the server sent something that is not HTTP"


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def server() -> Iterator[MisbehavingServer]:
    with MisbehavingServer() as running:
        yield running


def transport(**overrides: object) -> AiohttpTransport:
    """A transport without certificates that pools two connections."""
    limits = {"connect_seconds": 5.0, "idle_connections": 2, "idle_seconds": 30.0, **overrides}
    return AiohttpTransport(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), **limits)


@pytest.fixture
async def client() -> AsyncIterator[httpx2.AsyncClient]:
    async with httpx2.AsyncClient(transport=transport()) as opened:
        yield opened


@contextmanager
def serve_bytes(*parts: bytes, reset: bool = False) -> Iterator[str]:
    """Answer one call with these bytes, in pieces, then close; yield the address."""

    def serve() -> None:
        with suppress(OSError):
            connection, _ = listening.accept()
            with connection:
                connection.recv(1_000_000)
                for part in parts:
                    connection.sendall(part)
                    pause.wait(0.05)
                if reset:
                    on_close = b"\x01\0\0\0\0\0\0\0"
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, on_close)

    pause = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}/"
        finally:
            with suppress(OSError):
                listening.shutdown(socket.SHUT_RDWR)
            thread.join()


class TestRequests:
    """The request on the wire equals the request of the caller."""

    async def test_headers_are_not_added(self, server, client):
        """A request has only its own headers, its length and its host."""
        url = f"{server.url}/chat/completions"

        await client.send(httpx2.Request("POST", url, headers={"X-A": "b"}, content=b"{}"))

        sent = server.received[0].headers
        assert sent.keys() == {"x-a", "host", "content-length"}
        assert sent["host"] == f"127.0.0.1:{server.port}"

    async def test_explicit_target_is_called(self, server, client, caplog):
        """A target set apart from the URL is called, and appears in no log."""
        caplog.set_level(logging.DEBUG)

        await client.get(f"{server.url}/models", extensions={"target": b"/v1/models?key=sesame"})

        assert server.received[0].path == "/v1/models?key=sesame"
        assert "sesame" not in caplog.text

    @pytest.mark.parametrize("target", [b"/a b", b"/a\r\nX-B: c", "/é".encode(), b""])
    async def test_invalid_target_is_refused(self, server, client, target):
        """A target that would break the request is refused before anything is sent."""
        with pytest.raises(httpx2.LocalProtocolError):
            await client.get(server.url, extensions={"target": target})

        assert server.accepted == 0

    @pytest.mark.parametrize("header", [("X A", "b"), ("", "b"), ("X-A", "b\r\nX-B: c")])
    async def test_invalid_header_is_refused(self, server, client, header):
        """A header that would break the request is refused before anything is sent."""
        with pytest.raises(httpx2.LocalProtocolError):
            await client.get(f"{server.url}/models", headers=[header])

        assert server.accepted == 0

    async def test_large_body_is_sent_whole(self, server, client):
        """Three megabytes are sent whole, and without a warning."""
        body = {"model": "m", "text": "x" * 3_000_000}

        await client.post(f"{server.url}/chat/completions", json=body)

        assert server.received[0].body == body

    async def test_body_is_complete_for_a_slow_reader(self, client):
        """A slow reader gets all four megabytes of an answer."""
        body = b"0123456789abcdef" * 250_000
        parts = (HEAD + b"Content-Length: %d\r\n\r\n" % len(body), body)
        came = b""
        with serve_bytes(*parts) as url:
            async with client.stream("POST", url) as response:
                async for piece in response.aiter_raw():
                    came += piece
                    if came == piece:  # the first
                        await anyio.sleep(0.1)

        assert came == body

    async def test_netrc_credentials_are_not_sent(self, server, client, monkeypatch, tmp_path):
        """A password for the host in ~/.netrc is not sent."""
        netrc = tmp_path / "netrc"
        netrc.write_text("machine 127.0.0.1 login me password sesame\n")
        monkeypatch.setenv("NETRC", str(netrc))

        await client.get(f"{server.url}/models")

        assert "authorization" not in server.received[0].headers

    async def test_cookies_are_not_stored(self, server):
        """The transport does not send back a cookie that a server sets."""
        server.fault("m", "200", headers={"Set-Cookie": "a=b"})
        async with transport() as opened:
            for _ in range(2):
                request = httpx2.Request(
                    "POST", f"{server.url}/chat/completions", json={"model": "m"}
                )
                answer = await opened.handle_async_request(request)
                await answer.aread()

        assert answer.headers["set-cookie"] == "a=b"
        assert "cookie" not in server.received[1].headers


class TestErrors:
    """Errors are those of `httpx2`, and none shows the query."""

    @pytest.mark.parametrize(
        ("parts", "words"),
        [
            ([], "Server disconnected without sending a response."),
            ([HEAD], "Server disconnected without sending a response."),
            ([b"hello there\r\n\r\n"], NOT_HTTP),
            ([HEAD + b"no colon\r\n\r\n"], f"{NOT_HTTP} (Invalid header token)"),
            ([HEAD + b"X: " + b"a" * 70_000 + b"\r\n\r\n"], f"{NOT_HTTP} (Got more than 65536"),
            ([b"HTTP/1.1 101 Switching\r\n\r\n"], f"{NOT_HTTP} (status 101)"),
            ([CHUNKED + b"zz\r\n"], f"{NOT_HTTP} (Invalid character in chunk size)"),
            ([CHUNKED, b"zz\r\n"], f"{NOT_HTTP} (Invalid character in chunk size)"),
            ([CHUNKED, b"3\r\nabc\r\n", b"zz\r\n"], f"{NOT_HTTP} (Invalid character in chunk"),
            ([CHUNKED, b"5\r\nabc"], "peer closed connection without sending complete message"),
            ([HEAD + b"Content-Length: 5\r\n\r\n", b"abc"], "peer closed connection without"),
        ],
    )
    async def test_malformed_answer_is_an_error(self, client, parts, words):
        """An answer that never comes, breaks off or is malformed ends the call at once."""
        with (
            serve_bytes(*parts) as url,
            pytest.raises(httpx2.RemoteProtocolError) as caught,
            anyio.fail_after(60),
        ):
            await client.post(url)

        assert str(caught.value).startswith(words)

    @pytest.mark.parametrize("parts", [[], [CHUNKED]])
    async def test_connection_reset_is_an_error(self, client, parts):
        """A reset before or during the answer ends the call."""
        with (
            serve_bytes(*parts, reset=True) as url,
            pytest.raises(httpx2.TransportError),
            anyio.fail_after(60),
        ):
            await client.post(url)

    async def test_long_header_is_read(self, client):
        """A header of 60,000 bytes is read."""
        with serve_bytes(HEAD + b"X: " + b"a" * 60_000 + b"\r\nContent-Length: 2\r\n\r\n{}") as url:
            assert len((await client.get(url)).headers["x"]) == 60_000

    async def test_connecting_times_out(self):
        """A connection attempt ends after the configured time."""
        with socket.socket() as full:
            full.bind(("127.0.0.1", 0))
            full.listen(0)
            url = f"http://127.0.0.1:{full.getsockname()[1]}/?key=sesame"
            waiting = [socket.socket() for _ in range(4)]
            for each in waiting:
                each.setblocking(False)
                with suppress(BlockingIOError):
                    each.connect(full.getsockname())
            async with httpx2.AsyncClient(transport=transport(connect_seconds=0.1)) as impatient:
                with pytest.raises(httpx2.ConnectTimeout) as caught, anyio.fail_after(60):
                    await impatient.get(url)
            for each in waiting:
                each.close()

        assert "sesame" not in f"{caught.value} {caught.value.__cause__!r}"

    @pytest.mark.parametrize(
        ("url", "cause"),
        [
            ("http://127.0.0.1:9/", ConnectionRefusedError),
            ("http://nobody.invalid/", socket.gaierror),
        ],
    )
    async def test_connection_error_has_the_reason_of_the_system(self, client, url, cause):
        """The cause of a connection error is the error of the system."""
        with pytest.raises(httpx2.ConnectError) as caught:
            await client.get(url)

        assert isinstance(caught.value.__cause__, cause)


class TestPooling:
    """Connections are pooled for later calls, and closed when they cannot be reused."""

    @pytest.mark.parametrize("pieces", [0, 1])
    async def test_unread_body_closes_its_connection(self, server, client, pieces):
        """Its connection is closed even if all of the body has arrived."""
        async with client.stream("GET", f"{server.url}/models") as answer:
            await anyio.sleep(0.1)
            body = answer.aiter_raw()
            for _ in range(pieces):
                await anext(body)
            await answer.aclose()
            await body.aclose()

        assert server.open_connections() == 0
        assert (await client.get(f"{server.url}/models")).status_code == 200

    async def test_cancelled_calls_free_their_connections(self, server, client):
        """After 20 cancelled calls, connections are pooled as before."""
        server.fault("m", "hang")
        for n_sent in range(1, 21):
            async with anyio.create_task_group() as group:
                post = partial(client.post, f"{server.url}/chat/completions", json={"model": "m"})
                group.start_soon(post)
                await anyio.to_thread.run_sync(server.wait_for_requests, n_sent)
                group.cancel_scope.cancel()
        before = server.accepted

        for _ in range(5):
            await client.get(f"{server.url}/models")

        assert server.accepted == before + 1

    async def test_closing_fails_a_reader(self, server):
        """Reading a body fails when the transport is closed meanwhile."""
        server.fault("m", "never done", lingers=True)
        opened = transport()
        request = httpx2.Request(
            "POST", f"{server.url}/chat/completions", json={"model": "m", "stream": True}
        )
        answer = await opened.handle_async_request(request)
        failed = []

        async def read() -> None:
            try:
                async for _ in answer.aiter_raw():
                    pass
            except httpx2.TransportError as error:
                failed.append(error)

        with anyio.fail_after(60):
            async with anyio.create_task_group() as group:
                group.start_soon(read)
                await anyio.sleep(0.1)
                await opened.aclose()

        assert len(failed) == 1
        assert server.open_connections() == 0


@pytest.mark.skipif(shutil.which("openssl") is None, reason="no openssl to make a certificate with")
class TestTLS:
    """Certificates are verified, and encrypted connections pooled."""

    @pytest.fixture
    def certificate(self, tmp_path) -> Path:
        """A certificate for localhost, with its key."""
        path = tmp_path / "both.pem"
        subprocess.run(  # noqa: S603 - arguments of our own
            [shutil.which("openssl"), "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
             "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost",
             "-keyout", path, "-out", tmp_path / "cert.pem"],
            check=True, capture_output=True,
        )  # fmt: skip
        path.write_text(path.read_text() + (tmp_path / "cert.pem").read_text())
        return path

    @pytest.fixture
    def port(self, certificate) -> Iterator[int]:
        """The port of a server with this certificate."""

        class Handler(QuietHandler, BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                self.reply(200, self.client_address[1])

        class Server(ThreadingHTTPServer):
            def handle_error(self, *_: object) -> None:
                """Say nothing."""

        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        serving = Server(("127.0.0.1", 0), Handler)
        serving.socket = context.wrap_socket(serving.socket, server_side=True)
        with run_server(serving):
            yield serving.server_port

    async def test_trusted_server_shares_a_connection(self, certificate, port):
        """Calls to a server with a trusted certificate share a connection."""
        trust = ssl.create_default_context(cafile=certificate)
        opened = AiohttpTransport(trust, connect_seconds=5, idle_connections=2, idle_seconds=30)
        async with httpx2.AsyncClient(transport=opened) as client:
            callers = {(await client.get(f"https://localhost:{port}/")).text for _ in range(3)}

        assert len(callers) == 1

    async def test_untrusted_server_is_refused(self, client, port):
        """A certificate without a trusted issuer fails the call, with the reason."""
        with pytest.raises(httpx2.ConnectError) as caught:
            await client.get(f"https://localhost:{port}/")

        assert isinstance(caught.value.__cause__, ssl.SSLCertVerificationError)


def test_aiohttp_is_imported_only_by_a_call_on_asyncio(server):
    """Neither creating connections nor a call on trio loads aiohttp."""
    code = f"""
import sys
import anyio
from witan.models.connections import Connections
async def main():
    async with Connections() as connections, connections.client({server.url!r}) as client:
        await client.get({server.url + "/models"!r})
loaded = ["aiohttp" in sys.modules]
for backend in ("trio", "asyncio"):
    anyio.run(main, backend=backend)
    loaded.append("aiohttp" in sys.modules)
print(loaded)
"""

    run = run_python(code, check=True)

    assert run.stdout.strip() == "[False, False, True]"
