"""Connections: reused, bounded, and closed."""

import json
from collections.abc import Iterator
from contextlib import aclosing

import anyio
import httpx2
import pytest

from misbehaving import MisbehavingServer
from processes import run_python
from witan.errors import ConfigError
from witan.models.connections import Connections, Post, Target

pytestmark = pytest.mark.anyio

LOOPS = ["asyncio", "trio"]


@pytest.fixture(params=LOOPS)
def anyio_backend(request) -> str:
    return request.param


@pytest.fixture
def server() -> Iterator[MisbehavingServer]:
    with MisbehavingServer() as running:
        yield running


async def get_status(connections: Connections, server: MisbehavingServer) -> int:
    """Make one short call; return its status."""
    async with connections.client(server.url) as client:
        return (await client.get(f"{server.url}/models")).status_code


class TestReuse:
    """One connection serves call after call."""

    async def test_consecutive_calls_share_a_connection(self, server):
        """Ten calls, one after the other, open one connection."""
        async with Connections() as connections:
            assert [await get_status(connections, server) for _ in range(10)] == [200] * 10

        assert server.accepted == 1

    async def test_concurrent_calls_run_at_once(self, server):
        """300 calls run at once; their connections are pooled."""
        server.fault(None, "slow", seconds=0.3)

        async def call() -> None:
            async with connections.client(server.url) as client:
                await client.post(f"{server.url}/chat/completions", json={"model": "m"})

        async with Connections() as connections:
            async with anyio.create_task_group() as group:
                for _ in range(300):
                    group.start_soon(call)
            assert server.accepted == 300
            times = [request.at for request in server.received]
            assert server.open_connections(at_most=300) == 300

        assert max(times) - min(times) < 30.0  # one after another they take 90 s
        assert server.open_connections() == 0


def post(server: MisbehavingServer, **fields: object) -> Post:
    """Post to the chat completions of the server."""
    url = httpx2.URL(f"{server.url}/chat/completions")
    body = {"model": "m", "messages": [{"role": "user", "content": "Why?"}], **fields}
    headers = (("Host", url.netloc.decode()), ("Content-Type", "application/json"))
    return Post(Target(url, url.raw_path, headers), json.dumps(body).encode(), {})


class TestPrepared:
    """A prepared request is sent unchanged."""

    async def test_answer_is_readable_within_the_block(self, server):
        """Its connection serves the next call."""
        async with Connections() as connections:
            for _ in range(2):
                async with aclosing(await connections.post(server.url, post(server))) as answer:
                    assert answer.status == 200
                    assert answer.headers["content-type"].startswith("application/json")
                    assert b"choices" in b"".join([piece async for piece in answer])

        assert server.accepted == 1

    async def test_unread_answer_frees_its_connection(self, server):
        """Leaving the block before the end of the body ends the answer."""
        server.fault("m", "slow stream", seconds=0.2)
        async with Connections() as connections:
            stream = await connections.post(server.url, post(server, stream=True))
            async with aclosing(stream) as answer:
                assert not answer.has_arrived
            assert server.open_connections() == 0


class TestClosing:
    """After `aclose` no connection is open, and new ones can be opened."""

    async def test_block_closes_idle_connections(self, server):
        """Leaving the block closes every idle connection."""
        async with Connections() as connections:
            await get_status(connections, server)
            assert server.open_connections(at_most=1) == 1

        assert server.open_connections() == 0

    async def test_closing_ends_a_call_in_flight(self, server):
        """A hanging call fails when its connection is closed."""
        server.fault("m", "hang")
        connections = Connections()
        failed = []

        async def call() -> None:
            async with connections.client(server.url) as client:
                try:
                    await client.post(f"{server.url}/chat/completions", json={"model": "m"})
                except httpx2.HTTPError as error:
                    failed.append(error)

        async with anyio.create_task_group() as group:
            group.start_soon(call)
            await anyio.to_thread.run_sync(server.wait_for_requests, 1)
            await connections.aclose()

        assert len(failed) == 1
        assert server.open_connections() == 0

    async def test_closed_connections_can_be_used_again(self, server):
        """Calls after closing open new connections."""
        connections = Connections()
        await get_status(connections, server)
        await connections.aclose()
        await connections.aclose()

        assert await get_status(connections, server) == 200
        await connections.aclose()
        assert server.accepted == 2

    async def test_cancelled_calls_close_their_connections(self, server):
        """100 calls cancelled while waiting leave no connection open."""
        server.fault("m", "hang")

        async def call() -> None:
            async with connections.client(server.url) as client:
                await client.post(f"{server.url}/chat/completions", json={"model": "m"})

        async with Connections() as connections:
            async with anyio.create_task_group() as group:
                for _ in range(100):
                    group.start_soon(call)
                await anyio.to_thread.run_sync(server.wait_for_requests, 100)
                group.cancel_scope.cancel()
            assert server.open_connections() == 0


class TestEventLoops:
    """Each event loop has separate connections."""

    def test_connections_work_on_successive_event_loops(self, server):
        """One object works on asyncio, on trio and on a second asyncio loop."""
        connections = Connections()

        async def once() -> int:
            async with connections:
                return await get_status(connections, server)

        assert [anyio.run(once, backend=loop) for loop in (*LOOPS, *LOOPS)] == [200] * 4
        assert server.accepted == 4
        assert server.open_connections() == 0


class TestEnvironment:
    """Proxies and certificates come from the environment."""

    async def test_proxy_is_used(self, server, monkeypatch):
        """With HTTP_PROXY set, an unknown host is called through the proxy."""
        monkeypatch.setenv("HTTP_PROXY", server.url.removesuffix("/v1"))

        async with (
            Connections() as connections,
            connections.client("http://model.invalid/v1") as client,
        ):
            answer = await client.get("http://model.invalid/v1/models")

        assert answer.status_code == 200
        assert [r.path for r in server.received] == ["http://model.invalid/v1/models"]

    async def test_invalid_proxy_is_refused_by_name(self, server, monkeypatch):
        """The error names the variables, and never the password of the proxy."""
        monkeypatch.setenv("HTTP_PROXY", "gopher://me:open-sesame@proxy")

        with pytest.raises(ConfigError, match="HTTP_PROXY") as caught:
            await get_status(Connections(), server)

        assert "sesame" not in str(caught.value)

    def test_certificates_are_read_for_https_only(self, server):
        """Unreadable certificates do not affect plain HTTP; an HTTPS call names them."""
        code = f"""
import anyio
from witan.models.connections import Connections
from witan.errors import ConfigError
async def main():
    async with Connections() as connections:
        async with connections.client({server.url!r}) as client:
            print((await client.get({server.url + "/models"!r})).status_code)
        try:
            async with connections.client("https://model.invalid/v1"):
                pass
        except ConfigError as error:
            print(error)
anyio.run(main)
"""

        run = run_python(code, env={"SSL_CERT_FILE": "/nowhere.pem"}, check=True)

        assert run.stdout.splitlines() == [
            "200",
            "SSL_CERT_FILE or SSL_CERT_DIR: names no readable certificates",
        ]
