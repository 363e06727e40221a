"""Connections: reused, bounded, and none left behind."""

import json
import subprocess
import sys
from collections.abc import Iterator

import anyio
import httpx2
import pytest

from misbehaving import MisbehavingServer
from witan.errors import ConfigError
from witan.models.connections import Connections, Post

pytestmark = pytest.mark.anyio

LOOPS = ["asyncio", "trio"]


@pytest.fixture(params=LOOPS)
def anyio_backend(request) -> str:
    return request.param


@pytest.fixture
def server() -> Iterator[MisbehavingServer]:
    with MisbehavingServer() as running:
        yield running


async def look(connections: Connections, server: MisbehavingServer) -> int:
    """One short call; its status."""
    async with connections.client(server.url) as client:
        return (await client.get(f"{server.url}/models")).status_code


class TestReuse:
    """A connection serves one call after the other."""

    async def test_calls_in_turn_share_a_connection(self, server):
        """Ten calls, each after the other, make one connection."""
        async with Connections() as connections:
            assert [await look(connections, server) for _ in range(10)] == [200] * 10

        assert server.accepted == 1

    async def test_a_crowd_is_served_at_once(self, server):
        """300 calls at once wait for none of the others; their connections are kept."""
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
            assert server.open_connections() == 300

        assert max(times) - min(times) < 3.0
        assert server.open_connections() == 0


def post(server: MisbehavingServer, **fields: object) -> Post:
    """A call of the server's chat completions."""
    url = httpx2.URL(f"{server.url}/chat/completions")
    body = {"model": "m", "messages": [{"role": "user", "content": "Why?"}], **fields}
    headers = (("Host", url.netloc.decode()), ("Content-Type", "application/json"))
    return Post(url, url.raw_path, headers, json.dumps(body).encode())


class TestSent:
    """A request that is complete is sent as it is."""

    async def test_an_answer_is_there_with_its_headers(self, server):
        """The answer is read within the block, and its connection serves the next call."""
        async with Connections() as connections:
            for _ in range(2):
                async with connections.post(server.url, post(server)) as answer:
                    assert answer.status == 200
                    assert answer.headers["content-type"].startswith("application/json")
                    assert b"choices" in b"".join([piece async for piece in answer])

        assert server.accepted == 1

    async def test_an_answer_left_unread_takes_no_room(self, server):
        """Leaving the block before the body is read to its end ends the answer."""
        server.fault("m", "slow stream", seconds=0.2)
        async with Connections() as connections:
            async with connections.post(server.url, post(server, stream=True)) as answer:
                assert not answer.has_arrived
            assert server.open_connections() == 0


class TestClosing:
    """After `aclose` nothing is open, and one can begin anew."""

    async def test_nothing_is_open(self, server):
        """Idle connections are closed with the block."""
        async with Connections() as connections:
            await look(connections, server)
            assert server.open_connections(at_most=1) == 1

        assert server.open_connections() == 0

    async def test_a_call_in_flight_is_cut_off(self, server):
        """A call that hangs fails when its connection is closed under it."""
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

    async def test_closed_connections_open_again(self, server):
        """What was closed can be called again, over new connections."""
        connections = Connections()
        await look(connections, server)
        await connections.aclose()
        await connections.aclose()

        assert await look(connections, server) == 200
        await connections.aclose()
        assert server.accepted == 2

    async def test_cancelled_calls_leave_nothing(self, server):
        """100 calls cancelled while they wait hold no connection."""
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


class TestLoops:
    """Each event loop has connections of its own."""

    def test_one_object_serves_loop_after_loop(self, server):
        """The same connections work on asyncio, on trio and on a second asyncio loop."""
        connections = Connections()

        async def once() -> int:
            async with connections:
                return await look(connections, server)

        assert [anyio.run(once, backend=loop) for loop in (*LOOPS, *LOOPS)] == [200] * 4
        assert server.accepted == 4
        assert server.open_connections() == 0


class TestEnvironment:
    """Proxies and certificates are the system's."""

    async def test_a_proxy_is_used(self, server, monkeypatch):
        """With HTTP_PROXY a host that nobody knows is called through it."""
        monkeypatch.setenv("HTTP_PROXY", server.url.removesuffix("/v1"))

        async with (
            Connections() as connections,
            connections.client("http://model.invalid/v1") as client,
        ):
            answer = await client.get("http://model.invalid/v1/models")

        assert answer.status_code == 200
        assert [r.path for r in server.received] == ["http://model.invalid/v1/models"]

    async def test_a_proxy_that_is_none_is_named(self, server, monkeypatch):
        """A proxy of an unknown kind is refused, the variables named and its password not."""
        monkeypatch.setenv("HTTP_PROXY", "gopher://me:open-sesame@proxy")

        with pytest.raises(ConfigError, match="HTTP_PROXY") as caught:
            await look(Connections(), server)

        assert "sesame" not in str(caught.value)

    def test_certificates_are_read_for_https_alone(self, server):
        """Unreadable certificates spoil no call in the clear, and are named by one that is not."""
        code = f"""
import anyio
from witan.models.connections import Connections, Post
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

        run = subprocess.run(  # noqa: S603 - our own interpreter on our own lines
            [sys.executable, "-c", code],
            env={"SSL_CERT_FILE": "/nowhere.pem"},
            capture_output=True,
            text=True,
            check=True,
        )

        assert run.stdout.splitlines() == [
            "200",
            "SSL_CERT_FILE or SSL_CERT_DIR: names no certificates that can be read",
        ]
