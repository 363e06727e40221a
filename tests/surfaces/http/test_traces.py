"""A trace goes from a request to the calls of its session, whatever protocol brings it."""

import httpx2
import pytest

from mcp_clients import over_http
from openai_clients import ASKED, modelled
from served import served
from services import councils
from witan.deliberation.trace_context import TRACE
from witan.history import History

TRACE_ID, SPAN_ID = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
PARENT = f"00-{TRACE_ID}-{SPAN_ID}-01"
TRACED = {"traceparent": PARENT, "tracestate": "a=1,b=2"}


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """One server whose council is three models, and those models."""
    folder = tmp_path_factory.mktemp("models")
    with (
        History.open(folder / "history.sqlite") as history,
        modelled(folder, "[limits]\nattempts = 1\n") as (models, file),
        served(councils(file, history)) as running,
    ):
        yield running, models


@pytest.fixture
def client(server):
    """A client of that server, none of whose models was called yet."""
    running, models = server
    models.behave()
    with httpx2.Client(base_url=running.url, timeout=20) as opened:
        yield opened


def headers(models):
    """What the calls so far carried."""
    calls = [each for each in models.received if each.method == "POST"]
    return [(each.headers.get("traceparent"), each.headers.get("tracestate")) for each in calls]


def assert_traced(models):
    """Every call is a span of its own in the trace of the request."""
    sent = headers(models)
    assert sent
    assert {state for _, state in sent} == {"a=1,b=2"}
    assert {parent[:36] for parent, _ in sent} == {PARENT[:36]}
    assert {parent[-3:] for parent, _ in sent} == {"-01"}
    assert len({PARENT, *(parent for parent, _ in sent)}) == len(sent) + 1


class TestRequests:
    """Every door of the server takes it in."""

    @pytest.mark.parametrize(
        ("path", "body"),
        [
            ("/api/sessions?wait=20", {"question": "Is it so?"}),
            ("/api/judge?wait=20", {"texts": {"x": "So.", "y": "Not so."}}),
            ("/v1/chat/completions", ASKED),
        ],
    )
    def test_the_calls_of_a_session_are_within_the_trace(self, server, client, path, body):
        """And the session says which it is."""
        reply = client.post(path, json=body, headers=TRACED).raise_for_status()
        session = client.get("/api/sessions/last").json()

        assert reply.json()
        assert session["events"][0]["trace"] == TRACED
        assert_traced(server[1])

    @pytest.mark.anyio
    @pytest.mark.parametrize("anyio_backend", ["asyncio"])
    @pytest.mark.usefixtures("client", "anyio_backend")
    async def test_a_tool_does_the_same(self, server):
        """Over MCP, whose connection may serve many requests."""
        async with over_http(server[0].url, **TRACED) as connected:
            await connected.call_tool("ask", {"question": "Is it so?"})

        assert_traced(server[1])

    @pytest.mark.parametrize("sent", [{}, {**TRACED, "traceparent": "00-nonsense"}])
    def test_no_trace_is_begun(self, server, client, sent):
        """An invalid one is ignored, and its state with it."""
        client.post("/api/sessions?wait=20", json={"question": "Is it so?"}, headers=sent)
        session = client.get("/api/sessions/last").json()

        assert session["events"][0]["trace"] is None
        assert {*headers(server[1])} == {(None, None)}


class TestCommandLine:
    """Variables bring it."""

    @pytest.mark.usefixtures("client")
    def test_the_variables_are_read(self, server, witan, monkeypatch):
        """As every program that such tools start has them."""
        models = server[1]
        for name, value in TRACED.items():
            monkeypatch.setenv(name.upper(), value)
        seats = [part for name in ("ada", "bob") for part in ("--member", f"{models.url}#{name}")]

        assert witan("ask", "Is it so?", *seats, "--no-history").status == 0
        assert_traced(models)
        assert TRACE.get() is None
