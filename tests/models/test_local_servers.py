"""Local model servers: found by asking, within 0.3 s, whatever else listens on their ports."""

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from witan.errors import ConfigError
from witan.models.connections import LocalServer, find_local_servers
from witan.models.providers import LOCAL_SERVERS, ollama_url

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request):
    return request.param


@contextmanager
def serving(status: int, body: bytes, path: str = "/v1/models") -> Iterator[str]:
    """Serve this body at this path, and nothing elsewhere; yield the address."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found = self.path == path
            self.send_response(status if found else 404)
            self.send_header("Location", "/elsewhere")
            self.end_headers()
            if found:
                self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def silent() -> Iterator[str]:
    """A port that takes connections and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


@pytest.fixture
def serve() -> Iterator[Callable[..., str]]:
    """Serve bodies until the test is over."""
    with ExitStack() as stack:
        yield lambda body, status=200, path="/v1/models": stack.enter_context(
            serving(status, body, path)
        )


@pytest.fixture
def closed() -> str:
    """An address where nothing listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return f"http://127.0.0.1:{server.getsockname()[1]}"


def models(*names: str) -> bytes:
    return json.dumps({"object": "list", "data": [{"id": name} for name in names]}).encode()


async def test_servers_are_found_in_the_order_of_the_table(serve, closed):
    """Every server that answers is listed with its models; what is not there is not."""
    first = serve(models("llama3.2:3b", "qwen3"))
    last = serve(models("gpt-oss"), path="/engines/v1/models")

    found = await find_local_servers(
        {"ollama": f"{first}/v1", "jan": f"{closed}/v1", "docker": f"{last}/engines/v1"}
    )

    assert found == [
        LocalServer("ollama", f"{first}/v1", ("llama3.2:3b", "qwen3")),
        LocalServer("docker", f"{last}/engines/v1", ("gpt-oss",)),
    ]


async def test_models_are_those_of_the_list(serve):
    """Every one is there as the server calls it, in its order, those that only embed as well."""
    names = ["nomic-embed-text:latest", "b", "bge-m3", "models/llama-7b.gguf", "a"]

    [found] = await find_local_servers({"ollama": f"{serve(models(*names))}/v1"})

    assert found.models == tuple(names)


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (404, b"not found"),
        (500, models("a")),
        (302, models("a")),
        (200, b"<html>A blog</html>"),
        (200, b"\xff\xfe"),
        (200, b"[]"),
        (200, b"{}"),
        (200, b'{"data": "many"}'),
        (200, b'{"data": ["a"]}'),
        (200, b'{"data": [{"id": 3}]}'),
        (200, b'{"data": [' + b" " * 8_000_001 + b"]}"),
        (200, b"[" * 100_000),
    ],
    ids=lambda value: str(value)[:30],
)
async def test_what_is_no_model_server_is_not_listed(serve, status, body):
    """Something else may listen on the port: it is passed over without a word."""
    assert await find_local_servers({"vllm": f"{serve(body, status)}/v1"}) == []


async def test_who_does_not_answer_is_not_awaited(serve):
    """All are asked at once, and 0.3 s is all the time there is, however many are silent."""
    with ExitStack() as held:
        table = {f"silent{n}": f"{held.enter_context(silent())}/v1" for n in range(12)}
        table["ollama"] = f"{serve(models('a'))}/v1"
        for _ in range(5):  # a busy machine may take longer for the one that answers
            began = anyio.current_time()

            found = await find_local_servers(table)

            assert anyio.current_time() - began < 3.0
            if found:
                break
    assert [server.kind for server in found] == ["ollama"]


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("127.0.0.1", "http://127.0.0.1:11434/v1"),
        ("0.0.0.0", "http://127.0.0.1:11434/v1"),  # noqa: S104 - nothing is bound
        ("0.0.0.0:8100", "http://127.0.0.1:8100/v1"),
        (":8100", "http://127.0.0.1:8100/v1"),
        ("[::]:8100", "http://[::1]:8100/v1"),
        ("box.lan", "http://box.lan:11434/v1"),
        ("http://box.lan", "http://box.lan:80/v1"),
        ("https://box.lan/ollama/", "https://box.lan:443/ollama/v1"),
    ],
)
async def test_what_ollama_host_may_hold(host, url):
    """It is read as Ollama reads it; every interface is called on loopback."""
    assert ollama_url(host) == url


@pytest.mark.parametrize("host", ["ftp://box", "http://", "box:port", "[::", "box:99999"])
async def test_an_ollama_host_that_is_no_address_is_refused(host):
    """The variable is named, with what was expected there."""
    with pytest.raises(ConfigError, match="OLLAMA_HOST: holds no address"):
        ollama_url(host)


@given(st.text(max_size=40))
def test_no_ollama_host_breaks_the_reading(host):
    """Any text is an address or is refused."""
    with suppress(ConfigError):
        assert ollama_url(host).endswith("/v1")


async def test_the_ports_are_the_documented_ones():
    """The table names every server that is looked for."""
    assert dict(LOCAL_SERVERS) == {
        "ollama": "http://127.0.0.1:11434/v1",
        "lmstudio": "http://127.0.0.1:1234/v1",
        "llamacpp": "http://127.0.0.1:8080/v1",
        "vllm": "http://127.0.0.1:8000/v1",
        "docker": "http://127.0.0.1:12434/engines/v1",
        "jan": "http://127.0.0.1:1337/v1",
    }
