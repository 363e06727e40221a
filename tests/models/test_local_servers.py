"""Detection of local model servers: within 0.3 s, whatever else listens on their ports."""

import json
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from http.server import BaseHTTPRequestHandler

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from handlers import QuietHandler, run_handler
from witan.errors import ConfigError
from witan.models.connections import LocalServer, find_local_servers
from witan.models.providers import LOCAL_SERVERS, ollama_url

pytestmark = pytest.mark.anyio


@contextmanager
def serve_body(status: int, body: bytes, path: str = "/v1/models") -> Iterator[str]:
    """Serve this body at this path only; yield the address."""

    class Handler(QuietHandler, BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            servers = self.path == path
            self.send_response(status if servers else 404)
            self.send_header("Location", "/elsewhere")
            self.end_headers()
            if servers:
                self.wfile.write(body)

    with run_handler(Handler) as url:
        yield url


@contextmanager
def silent() -> Iterator[str]:
    """A port that accepts connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


@pytest.fixture
def serve() -> Iterator[Callable[..., str]]:
    """Serve bodies until the test is over."""
    with ExitStack() as stack:
        yield lambda body, status=200, path="/v1/models": stack.enter_context(
            serve_body(status, body, path)
        )


@pytest.fixture
def closed_url() -> str:
    """An address without a listener."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return f"http://127.0.0.1:{server.getsockname()[1]}"


def models(*names: str) -> bytes:
    return json.dumps({"object": "list", "data": [{"id": name} for name in names]}).encode()


async def test_servers_are_listed_in_the_order_of_the_table(serve, closed_url):
    """Every server that answers is listed with its models; the others are left out."""
    first = serve(models("llama3.2:3b", "qwen3"))
    last = serve(models("gpt-oss"), path="/engines/v1/models")

    servers = await find_local_servers(
        {"ollama": f"{first}/v1", "jan": f"{closed_url}/v1", "docker": f"{last}/engines/v1"}
    )

    assert servers == [
        LocalServer("ollama", f"{first}/v1", ("llama3.2:3b", "qwen3")),
        LocalServer("docker", f"{last}/engines/v1", ("gpt-oss",)),
    ]


async def test_all_models_of_a_server_are_listed(serve):
    """Models keep the server's names and order, embedding models included."""
    names = ["nomic-embed-text:latest", "b", "bge-m3", "models/llama-7b.gguf", "a"]

    [servers] = await find_local_servers({"ollama": f"{serve(models(*names))}/v1"})

    assert servers.models == tuple(names)


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
async def test_other_servers_are_ignored(serve, status, body):
    """Anything else may listen on the port; it is skipped without a message."""
    assert await find_local_servers({"vllm": f"{serve(body, status)}/v1"}) == []


async def test_silent_servers_cost_no_extra_time(serve):
    """All ports are probed at once, within 0.3 s in all, however many are silent."""
    with ExitStack() as stack:
        table = {f"silent{n}": f"{stack.enter_context(silent())}/v1" for n in range(12)}
        table["ollama"] = f"{serve(models('a'))}/v1"
        for _ in range(5):  # a busy machine may take longer for the one that answers
            began = anyio.current_time()

            servers = await find_local_servers(table)

            took = anyio.current_time() - began
            if servers and took < 3.0:
                break
    assert took < 3.0
    assert [server.kind for server in servers] == ["ollama"]


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
async def test_ollama_host_is_parsed_as_ollama_does(host, url):
    """The address of every interface is called on loopback."""
    assert ollama_url(host) == url


@pytest.mark.parametrize("host", ["ftp://box", "http://", "box:port", "[::", "box:99999"])
async def test_invalid_ollama_host_is_refused(host):
    """The error names the variable, and what was expected."""
    with pytest.raises(ConfigError, match="OLLAMA_HOST: is not an address"):
        ollama_url(host)


@given(st.text(max_size=40))
def test_any_ollama_host_parses_or_is_refused(host):
    """Any text is an address or a clean error."""
    with suppress(ConfigError):
        assert ollama_url(host).endswith("/v1")


async def test_probed_ports_are_documented():
    """The documented table has every server that is probed."""
    assert dict(LOCAL_SERVERS) == {
        "ollama": "http://127.0.0.1:11434/v1",
        "lmstudio": "http://127.0.0.1:1234/v1",
        "llamacpp": "http://127.0.0.1:8080/v1",
        "vllm": "http://127.0.0.1:8000/v1",
        "docker": "http://127.0.0.1:12434/engines/v1",
        "jan": "http://127.0.0.1:1337/v1",
    }
