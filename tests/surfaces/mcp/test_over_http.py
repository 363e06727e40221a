"""The protocol at /mcp of a running server, behind the checks of every request."""

import hashlib
import http.client
import json
import signal
import time
from dataclasses import replace
from types import MappingProxyType

import anyio
import httpx2
import pytest

from mcp_clients import ProgressLog, over_http, text_of
from served import served, serving_process
from services import councils, write_config
from witan.deliberation.call_headers import VIA_HEADER
from witan.history import History
from witan.service.config.serve import ServeSettings, TokenSettings

pytestmark = pytest.mark.anyio

ADA, BOB = "ada-has-a-long-token", "bob-has-a-long-token"

QUESTION = {"question": "Is it so?"}

SLOW = [{"prefers": ["Ada says"], "seconds": 30}]

MODES = pytest.mark.parametrize("mode", ["auto", "legacy"])


@pytest.fixture
def server(tmp_path, history):
    """A server of three scripted members on loopback."""
    with served(councils(write_config(tmp_path), history)) as running:
        yield running


@pytest.fixture
def slow(tmp_path, history):
    """A server whose reviewers take half a minute."""
    with served(councils(write_config(tmp_path, review=SLOW), history)) as running:
        yield running


@pytest.fixture
def guarded(tmp_path):
    """A server with tokens: ada's sessions may cost a dollar, bob may ask twice a minute."""

    def digest(token):
        return hashlib.sha256(token.encode()).hexdigest()

    tokens = {
        "ada": TokenSettings("ada", "the test", sha256=digest(ADA), max_cost_usd=1.0),
        "bob": TokenSettings("bob", "the test", sha256=digest(BOB), per_minute=2),
    }
    settings = replace(ServeSettings(), tokens=MappingProxyType(tokens))
    with served(councils(write_config(tmp_path)), settings) as running:
        yield running


async def until(check):
    with anyio.fail_after(60):
        while not check():  # noqa: ASYNC110 - the server sets no event
            await anyio.sleep(0.02)


class TestAsking:
    """A client asks a server that it shares with others."""

    @MODES
    async def test_a_question_is_answered_with_progress(self, server, mode):
        """As over standard input; the session is in the server's list."""
        heard = ProgressLog()
        async with over_http(server.url, mode=mode) as client:
            result = await client.call_tool("ask", QUESTION, progress_callback=heard)
        told = result.structured_content

        assert told["status"] == "complete"
        assert heard.received[-1][:2] == (8, 8)
        assert httpx2.get(f"{server.url}/api/sessions/{told['session']}", timeout=60).json()[
            "status"
        ]

    @MODES
    async def test_cancelling_a_call_interrupts_its_session(self, slow, history, mode):
        """Replies so far are stored, and the session can be resumed."""
        async with over_http(slow.url, mode=mode) as client:
            async with anyio.create_task_group() as group:
                group.start_soon(client.call_tool, "ask", QUESTION)
                await until(lambda: slow.service.registry.under_way)
                group.cancel_scope.cancel()
            await until(lambda: not slow.service.registry.under_way)

        [found] = history.find(simulated=None)
        assert found.status == "interrupted"

    async def test_a_session_is_started_polled_and_cancelled(self, slow):
        """None of the three calls waits long."""
        async with over_http(slow.url) as client:
            started = (await client.call_tool("ask", {**QUESTION, "wait": 0})).structured_content
            name = {"session": started["session"]}
            await until(lambda: len(slow.service.registry.under_way[0].session.answers) == 3)
            early = await client.call_tool("result", {**name, "wait": 0.1})
            cancelled = await client.call_tool("cancel", name)

        assert started["status"] == early.structured_content["status"] == "running"
        assert "3 of 3 answers" in text_of(early)
        assert "0 of 3 ballots" in text_of(early)
        assert not early.is_error
        assert cancelled.structured_content["status"] == "interrupted"

    async def test_a_call_waits_for_a_result(self, tmp_path):
        """It returns as soon as the session ends."""
        file = write_config(tmp_path, review=[{"prefers": ["Ada says"], "seconds": 0.5}])
        with served(councils(file)) as server:
            async with over_http(server.url) as client:
                name = (await client.call_tool("ask", {**QUESTION, "wait": 0})).structured_content[
                    "session"
                ]
                result = await client.call_tool("result", {"session": name, "wait": 20})

        assert "as [A] has it" in result.structured_content["text"]

    async def test_a_circle_of_councils_is_refused(self, server):
        """The request's header lists the servers that it came through."""
        headers = {VIA_HEADER: server.service.name}
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
        refused = httpx2.post(f"{server.url}/mcp", json=body, headers=headers, timeout=60)

        assert refused.status_code == 508


class TestTheDoor:
    """The same tokens, rates and limits as on the server's other routes."""

    async def test_a_request_without_a_token_is_refused(self, guarded):
        """Even the list of tools requires one."""
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
        refused = httpx2.post(f"{guarded.url}/mcp", json=body, timeout=60)

        assert refused.status_code == 401

    @MODES
    async def test_a_session_belongs_to_the_token_s_client(self, guarded, mode):
        """Its ceiling applies, also to the cost of a plan."""
        async with over_http(guarded.url, ADA, mode=mode) as client:
            told = (await client.call_tool("ask", QUESTION)).structured_content
            plan = await client.call_tool("ask", {**QUESTION, "plan": True})
        running = guarded.service.registry.get(told["session"])
        token = {"Authorization": f"Bearer {ADA}"}
        native = httpx2.post(
            f"{guarded.url}/api/plan", json=QUESTION, headers=token, timeout=60
        ).json()

        assert running.client.name == "ada"
        assert running.session.opening.procedure.limits.max_cost_usd == 1.0
        assert plan.structured_content["max_cost_usd"] == native["max_cost_usd"] == 1.0
        assert plan.structured_content["worst_usd"] == native["worst_usd"]

    async def test_a_connection_belongs_to_its_client(self, guarded):
        """A client with another token cannot use it."""
        accept = {"Accept": "application/json, text/event-stream"}
        hello = {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "initialize",
            "params": {
                "protocolVersion": "2025-06-18",
                "capabilities": {},
                "clientInfo": {"name": "test", "version": "1"},
            },
        }
        ada = {**accept, "Authorization": f"Bearer {ADA}"}
        bob = {**accept, "Authorization": f"Bearer {BOB}"}
        opened = httpx2.post(f"{guarded.url}/mcp", json=hello, headers=ada, timeout=60)
        held = {"Mcp-Session-Id": opened.headers["mcp-session-id"]}
        listing = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}
        own = httpx2.post(f"{guarded.url}/mcp", json=listing, headers={**ada, **held}, timeout=60)
        other = httpx2.post(f"{guarded.url}/mcp", json=listing, headers={**bob, **held}, timeout=60)

        assert own.status_code == 200
        assert other.status_code == 404

    async def test_requests_are_limited_per_client(self, guarded):
        """Bob makes 200 requests in a minute, of any kind."""
        with httpx2.Client(headers={"Authorization": f"Bearer {BOB}"}, timeout=60) as bob:
            codes = [bob.get(f"{guarded.url}/mcp").status_code for _ in range(201)]

        assert codes[-1] == 429

    @pytest.mark.parametrize("headers", [{"Host": "evil.test"}, {"Origin": "http://evil.test"}])
    async def test_foreign_hosts_and_origins_are_refused(self, server, headers):
        """By the Host header, or by the Origin header."""
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
        refused = httpx2.post(f"{server.url}/mcp", json=body, headers=headers, timeout=60)

        assert refused.status_code == 403

    async def test_a_long_request_is_refused(self, tmp_path):
        """By the same limit as on other routes."""
        with served(councils(write_config(tmp_path)), ServeSettings(body_bytes=1000)) as server:
            refused = httpx2.post(f"{server.url}/mcp", json={"question": "so " * 1000}, timeout=60)

        assert refused.status_code == 413

    async def test_requests_are_counted_in_the_metrics(self, server):
        """By their path."""
        async with over_http(server.url) as client:
            await client.list_tools()

        assert 'route="/mcp"' in httpx2.get(f"{server.url}/metrics", timeout=60).text


class TestTheEnd:
    """A client does not delay the server's stop."""

    @pytest.mark.slow
    @pytest.mark.parametrize("grace", [0.5])
    def test_the_server_stops_despite_an_open_stream(self, tmp_path, grace):
        """Soon after the grace period of its sessions; the session can be resumed."""
        more = f"[serve]\ngrace_seconds = {grace}\n"
        file = write_config(tmp_path, more, review=SLOW)
        arguments = ("--config", file, "--history", tmp_path / "history.sqlite")
        with serving_process(*arguments, cwd=tmp_path) as (url, process):
            anyio.run(_ask_and_stop, url, process)
            stopped = time.monotonic()
            assert process.wait(30) == 0
            took = time.monotonic() - stopped

        with History.open(tmp_path / "history.sqlite") as history:
            [found] = history.find(simulated=None)
        assert found.status == "interrupted"
        assert took < grace + 30


async def _ask_and_stop(url, process):
    """Ask with an open stream, then stop the server: the call gets its reply."""
    async with over_http(url, mode="legacy") as client, anyio.create_task_group() as group:
        answers = []

        async def ask():
            answers.append(await client.call_tool("ask", QUESTION))

        group.start_soon(ask)
        with anyio.fail_after(60):
            while not json.loads(_got(url, "/api/sessions"))["sessions"]:  # noqa: ASYNC110
                await anyio.sleep(0.05)
        process.send_signal(signal.SIGTERM)
        with anyio.fail_after(40):
            while not answers:  # noqa: ASYNC110
                await anyio.sleep(0.05)
        [answer] = answers
        assert answer.structured_content["status"] == "interrupted"


def _got(url, path):
    connection = http.client.HTTPConnection(url.removeprefix("http://"))
    connection.request("GET", path)
    try:
        return connection.getresponse().read()
    finally:
        connection.close()
