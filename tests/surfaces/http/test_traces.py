"""A trace continues from a request to the calls of its session, on every protocol."""

import httpx2
import pytest

from mcp_clients import over_http
from openai_clients import ASKED, modelled
from served import served
from services import councils
from witan.deliberation.call_headers import TRACE
from witan.history import History

TRACE_ID, SPAN_ID = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
PARENT = f"00-{TRACE_ID}-{SPAN_ID}-01"
TRACED = {"traceparent": PARENT, "tracestate": "a=1,b=2"}


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """One server with three models, and those models."""
    folder = tmp_path_factory.mktemp("models")
    with (
        History.open(folder / "history.sqlite") as history,
        modelled(folder, "[limits]\nattempts = 1\n") as (models, file),
        served(councils(file, history)) as running,
    ):
        yield running, models


@pytest.fixture
def client(server):
    """A client of that server whose models have had no call."""
    running, models = server
    models.behave()
    with httpx2.Client(base_url=running.url, timeout=60) as opened:
        yield opened


def headers(models):
    """Headers of the calls so far."""
    calls = [each for each in models.received if each.method == "POST"]
    return [(each.headers.get("traceparent"), each.headers.get("tracestate")) for each in calls]


def assert_traced(models):
    """Every call is its own span in the request's trace."""
    sent = headers(models)
    assert sent
    assert {state for _, state in sent} == {"a=1,b=2"}
    assert {parent[:36] for parent, _ in sent} == {PARENT[:36]}
    assert {parent[-3:] for parent, _ in sent} == {"-01"}
    assert len({PARENT, *(parent for parent, _ in sent)}) == len(sent) + 1


class TestRequests:
    """Every entry point of the server reads the trace."""

    @pytest.mark.parametrize(
        ("path", "body"),
        [
            ("/api/sessions?wait=20", {"question": "Is it so?"}),
            ("/api/judge?wait=20", {"texts": {"x": "So.", "y": "Not so."}}),
            ("/v1/chat/completions", ASKED),
        ],
    )
    def test_calls_continue_the_trace_of_the_request(self, server, client, path, body):
        """The session records it."""
        reply = client.post(path, json=body, headers=TRACED).raise_for_status()
        session = client.get("/api/sessions/last").json()

        assert reply.json()
        assert session["events"][0]["trace"] == TRACED
        assert_traced(server[1])

    @pytest.mark.anyio
    @pytest.mark.parametrize("anyio_backend", ["asyncio"])
    @pytest.mark.usefixtures("client", "anyio_backend")
    async def test_tool_calls_continue_the_trace(self, server):
        """Over MCP, where one connection serves many requests."""
        async with over_http(server[0].url, **TRACED) as connected:
            await connected.call_tool("ask", {"question": "Is it so?"})

        assert_traced(server[1])

    @pytest.mark.parametrize("sent", [{}, {**TRACED, "traceparent": "00-nonsense"}])
    def test_an_invalid_trace_is_ignored(self, server, client, sent):
        """With its state; no trace begins."""
        client.post("/api/sessions?wait=20", json={"question": "Is it so?"}, headers=sent)
        session = client.get("/api/sessions/last").json()

        assert session["events"][0]["trace"] is None
        assert {*headers(server[1])} == {(None, None)}


class TestCommandLine:
    """Environment variables carry the trace."""

    @pytest.mark.usefixtures("client")
    def test_trace_variables_are_read(self, server, witan, monkeypatch):
        """As CI tools set them."""
        models = server[1]
        for name, value in TRACED.items():
            monkeypatch.setenv(name.upper(), value)
        seats = [part for name in ("ada", "bob") for part in ("--member", f"{models.url}#{name}")]

        assert witan("ask", "Is it so?", *seats, "--no-history").status == 0
        assert_traced(models)
        assert TRACE.get() is None
