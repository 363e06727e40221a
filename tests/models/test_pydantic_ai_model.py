"""Models called through pydantic-ai, over real HTTP, against a server of Anthropic's protocol."""

import json
import socket
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from typing import Any

import anyio
import pytest

from handlers import QuietHandler, run_server
from processes import run_python
from witan.deliberation.ports import Call, Message, Options, Reply, Stage, Usage, ignore_text
from witan.errors import MissingKey, ModelError
from witan.models.pydantic_ai_model import Providers, PydanticAIModel
from witan.models.seats import SeatSpec
from witan.service.council import Council

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(find_spec("anthropic") is None, reason="the extra anthropic is missing"),
]

KEY = "sk-ant-very-secret-0123456789"

SCHEMA = {
    "type": "object",
    "additionalProperties": False,
    "required": ["notes", "ranking"],
    "properties": {
        "notes": {"type": "string"},
        "ranking": {"type": "array", "items": {"type": "string", "enum": ["A", "B"]}},
    },
}
REVIEW = {"notes": "n", "ranking": ["A", "B"]}


class Handler(QuietHandler, BaseHTTPRequestHandler):
    """One connection: sends the server's next reply to each request."""

    protocol_version = "HTTP/1.1"
    server: "Anthropic"

    def do_POST(self) -> None:
        self.server.received.append(self.read_json())
        self.server.headers.append({name.lower(): value for name, value in self.headers.items()})
        self.server.replies.pop(0)(self)

    def setup(self) -> None:
        super().setup()
        self.server.opened += 1

    def finish(self) -> None:
        super().finish()
        self.server.closed.release()

    def events(self, *events: Mapping[str, Any], ends: bool = True) -> None:
        """Send server-sent events in chunks; without an end the connection is dropped."""
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for event in events:
            text = f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode()
            self.wfile.write(b"%x\r\n%b\r\n" % (len(text), text))
        if ends:
            self.wfile.write(b"0\r\n\r\n")
        else:
            self.close_connection = True


class Anthropic(ThreadingHTTPServer):
    """A server with prepared replies that records its requests."""

    request_queue_size = 256

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.replies: list[Callable[[Handler], None]] = []
        self.received: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.opened = 0
        self.closed = threading.Semaphore(0)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def add_replies(self, *replies: Callable[[Handler], None]) -> None:
        self.replies += replies


@pytest.fixture
def server() -> Iterator[Anthropic]:
    """The server, until the test is over."""
    serving = Anthropic()
    with run_server(serving):
        yield serving


@pytest.fixture
async def model(server):
    """A model of that server."""
    seat = PydanticAIModel("critic", "anthropic:claude-test", KEY, "ANTHROPIC_API_KEY", server.url)
    yield seat
    await seat.aclose()


def call(*messages: Message, stage: Stage = "answer", **more: Any) -> Call:
    return Call(stage, messages or (Message("user", "How deep?"),), **{"max_tokens": 64, **more})


def message(
    *content: Mapping[str, Any], stop: str = "end_turn", used: tuple[int, int] = (12, 5)
) -> dict[str, Any]:
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-test",
        "content": list(content),
        "stop_reason": stop,
        "stop_sequence": None,
        "usage": {"input_tokens": used[0], "output_tokens": used[1]},
    }


def stream_events(pieces: Sequence[str], stop: str = "end_turn") -> list[dict[str, Any]]:
    start = {**message(used=(12, 1)), "stop_reason": None}
    block = {"type": "content_block_start", "index": 0, "content_block": text_block("")}
    deltas = [
        {
            "type": "content_block_delta",
            "index": 0,
            "delta": {"type": "text_delta", "text": piece},
        }
        for piece in pieces
    ]
    return [
        {"type": "message_start", "message": start},
        block,
        *deltas,
        {"type": "content_block_stop", "index": 0},
        {
            "type": "message_delta",
            "delta": {"stop_reason": stop, "stop_sequence": None},
            "usage": {"output_tokens": 5},
        },
        {"type": "message_stop"},
    ]


def text_block(text: str) -> dict[str, str]:
    return {"type": "text", "text": text}


def tool_block(arguments: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "tool_use", "id": "t1", "name": "review", "input": arguments}


def says(*pieces: str, stop: str = "end_turn") -> Callable[[Handler], None]:
    return lambda handler: handler.events(*stream_events(pieces, stop))


def refuses(status: int, words: str, kind: str = "invalid_request_error", **headers: str):
    error = {"type": "error", "error": {"type": kind, "message": words}}
    return lambda handler: handler.reply(status, error, **headers)


async def failure(model: PydanticAIModel, request: Call | None = None) -> ModelError:
    with pytest.raises(ModelError) as caught:
        await model.complete(call() if request is None else request, ignore_text)
    assert KEY not in repr(caught.value)
    assert str(caught.value).startswith("critic: ")
    return caught.value


class TestAnswering:
    """Answers are streamed."""

    async def test_answer_is_streamed(self, server, model):
        """Pieces add up to the text, tokens are the provider's, an unstated cost is unknown."""
        pieces: list[str] = []
        server.add_replies(says("Seven", " metres", "."))

        reply = await model.complete(call(), pieces.append)

        assert reply == Reply("Seven metres.", Usage(12, 5))
        assert pieces == ["Seven", " metres", "."]

    async def test_conversation_is_sent_unchanged(self, server, model):
        """Roles, key and limit are each in their place."""
        messages = (
            Message("system", "Be brief."),
            Message("user", "How deep?"),
            Message("assistant", "Seven."),
            Message("user", "Sure?"),
        )
        server.add_replies(says("Yes."))

        await model.complete(call(*messages), ignore_text)

        [body] = server.received
        turns = [(m["role"], m["content"][0]["text"]) for m in body["messages"]]
        assert turns == [("user", "How deep?"), ("assistant", "Seven."), ("user", "Sure?")]
        assert "Be brief." in json.dumps(body["system"])
        assert body["max_tokens"] == 64
        assert body["stream"] is True
        assert "temperature" not in body
        assert [name for name, value in server.headers[0].items() if KEY in value] in (
            ["authorization"],
            ["x-api-key"],
        )

    async def test_options_are_sent(self, server, model):
        """A temperature is passed on."""
        server.add_replies(says("Yes."))

        await model.complete(call(options=Options(temperature=0.25)), ignore_text)

        assert server.received[0]["temperature"] == 0.25

    @pytest.mark.parametrize("stage", ["answer", "review"])
    async def test_echoed_key_is_redacted(self, server, model, stage):
        """A key repeated in a reply is in no piece and not in the text."""
        text, pieces = f"You sent\n\n  {KEY}.", list[str]()
        whole = message(text_block(text))
        server.add_replies(
            says(text) if stage == "answer" else lambda handler: handler.reply(200, whole)
        )
        request = call(stage=stage, schema=None if stage == "answer" else SCHEMA)

        reply = await model.complete(request, pieces.append)

        assert reply.text == "You sent\n\n  ***."
        assert "".join(pieces) in ("", reply.text)

    async def test_reply_at_its_limit_is_marked_as_cut(self, server, model):
        """A reply that runs out of tokens is marked as cut."""
        server.add_replies(says("Seven met", stop="max_tokens"))

        assert (await model.complete(call(), ignore_text)).cut

    async def test_empty_reply_is_an_error(self, server, model):
        """White space is not an answer; a retry may help."""
        server.add_replies(says(" \n"))

        error = await failure(model)

        assert error.problem == "said nothing"
        assert error.transient

    async def test_content_filter_is_named(self, server, model):
        """A reply that the provider withholds is a permanent error."""
        server.add_replies(says(stop="refusal"))

        error = await failure(model)

        assert "content filter" in str(error)
        assert not error.transient


class TestReviewing:
    """A reply with a schema is requested in the best form that the model accepts."""

    @pytest.fixture
    def review(self) -> Call:
        return call(stage="review", schema=SCHEMA)

    async def test_schema_is_sent_to_the_api(self, server, review):
        """A model that accepts a JSON Schema gets it, without streaming."""
        model = PydanticAIModel("critic", "anthropic:claude-opus-5", KEY, None, server.url)
        pieces: list[str] = []
        server.add_replies(
            lambda handler: handler.reply(200, message(text_block(json.dumps(REVIEW))))
        )

        reply = await model.complete(review, pieces.append)

        assert json.loads(reply.text) == REVIEW
        assert pieces == []
        assert '"enum": ["A", "B"]' in json.dumps(server.received[0]["output_config"])
        assert not server.received[0]["stream"]
        await model.aclose()

    async def test_fallback_from_schema_to_tool_to_prompt_is_remembered(self, server, review):
        """A form that the server rejected is not tried again."""
        model = PydanticAIModel("critic", "anthropic:claude-opus-5", KEY, None, server.url)
        no = refuses(400, "output_config: not supported")
        by_tool = message(tool_block(REVIEW), stop="tool_use")
        in_words = message(text_block(json.dumps(REVIEW)))
        server.add_replies(no, lambda handler: handler.reply(200, by_tool))
        server.add_replies(no, lambda handler: handler.reply(200, in_words))
        server.add_replies(lambda handler: handler.reply(200, in_words))

        replies = [await model.complete(review, ignore_text) for _ in range(3)]

        assert [json.loads(reply.text) for reply in replies] == [REVIEW] * 3
        forms = ["output_config" in body or "tools" in body for body in server.received]
        assert forms == [True, True, True, False, False]
        assert [tool["name"] for tool in server.received[1]["tools"]] == ["review"]
        assert '\\"enum\\"' in json.dumps(server.received[-1])
        await model.aclose()

    @pytest.mark.parametrize(
        "no",
        [
            refuses(401, "invalid x-api-key", "authentication_error"),
            refuses(400, "prompt is too long: 300000 tokens"),
            refuses(400, "Your credit balance is too low"),
            refuses(500, "oops", "api_error"),
        ],
        ids=["key", "too long", "credit", "down"],
    )
    async def test_unrelated_refusal_does_not_fall_back(self, server, model, review, no):
        """An error that does not depend on the form is raised at once."""
        server.add_replies(no)

        await failure(model, review)

        assert len(server.received) == 1


class TestFailing:
    """Every failure is a `ModelError`, and none shows the key."""

    @pytest.mark.parametrize(
        ("no", "problem", "transient"),
        [
            (
                refuses(401, f"invalid x-api-key {KEY}", "authentication_error"),
                "rejected the API key in ANTHROPIC_API_KEY (401): invalid x-api-key ***",
                False,
            ),
            (
                refuses(404, "model: claude-test", "not_found_error"),
                "does not know the model 'claude-test' (404): model: claude-test",
                False,
            ),
            (
                refuses(400, "max_tokens: too\nhigh."),
                "refused the call (400): max_tokens: too",
                False,
            ),
            (refuses(529, "Overloaded", "overloaded_error"), "cannot answer now (529): Over", True),
            (refuses(402, "pay", "billing_error"), "refused the call (402): pay", False),
            (lambda h: h.reply(503, b"<html>down</html>"), "cannot answer now (503): ", True),
        ],
        ids=["key", "model", "call", "overloaded", "billing", "html"],
    )
    async def test_status_error_is_one_line(self, server, model, no, problem, transient):
        """The sentence has the status and the provider's own words."""
        server.add_replies(no)

        error = await failure(model)

        assert error.problem.startswith(problem)
        assert "\n" not in error.problem
        assert error.transient == transient
        assert len(server.received) == 1, "there is one attempt"

    async def test_stated_wait_is_passed_on(self, server, model):
        """The error carries the wait that the provider asks for."""
        server.add_replies(refuses(429, "slow down", "rate_limit_error", retry_after="7"))

        error = await failure(model)

        assert (error.status, error.retry_after, error.transient) == (429, 7.0, True)

    async def test_broken_stream_is_an_error(self, server, model):
        """The pieces before the break were passed on; there is no reply."""
        pieces: list[str] = []
        server.add_replies(
            lambda handler: handler.events(*stream_events(["Seven"])[:3], ends=False)
        )

        with pytest.raises(ModelError, match=r"^critic: broke off") as caught:
            await model.complete(call(), pieces.append)

        assert pieces == ["Seven"]
        assert caught.value.transient

    async def test_incomplete_stream_is_an_error(self, server, model):
        """A stream without its last events gives no reply, though its connection ended in order."""
        server.add_replies(lambda handler: handler.events(*stream_events(["Seven"])[:3]))

        error = await failure(model)

        assert "broke off" in str(error)
        assert error.transient

    async def test_error_inside_a_stream_is_raised(self, server, model):
        """A provider may report a failure in the middle of a reply."""
        error_event = {
            "type": "error",
            "error": {"type": "overloaded_error", "message": "Overloaded"},
        }
        server.add_replies(
            lambda handler: handler.events(*stream_events(["Seven"])[:3], error_event)
        )

        error = await failure(model)

        assert "Overloaded" in str(error)
        assert error.transient

    @pytest.mark.parametrize("body", [b"", b"<html>", b'{"id": "msg_1", "content'])
    async def test_invalid_json_is_an_error(self, server, model, body):
        """A review that is not a JSON message is an error."""
        server.add_replies(lambda handler: handler.reply(200, body))

        error = await failure(model, call(stage="review", schema=SCHEMA))

        assert error.transient

    async def test_closed_port_is_named_without_the_password(self):
        """The error names the address, without the password in it."""
        with socket.create_server(("127.0.0.1", 0)) as closed:
            port = closed.getsockname()[1]
        url = f"http://me:passphrase@127.0.0.1:{port}"
        model = PydanticAIModel("critic", "anthropic:claude-test", KEY, "K", url)

        error = await failure(model)

        where = f"http://me:***@127.0.0.1:{port}"
        assert f"cannot be reached at {where}" in error.problem
        assert error.transient
        await model.aclose()

    @pytest.mark.parametrize(
        ("model_string", "problem"),
        [("nonsense:x", "Unknown provider"), ("cerebras:x", "cerebras takes no base url")],
    )
    async def test_unknown_provider_is_refused(self, model_string, problem):
        """An unknown provider, or an address for one that has none, is one sentence."""
        model = PydanticAIModel("critic", model_string, KEY, "K", "http://127.0.0.1:9")

        error = await failure(model)

        assert f"cannot be called: {problem}" in str(error)
        assert not error.transient

    def test_missing_key_is_named_before_any_call(self):
        """The error names the variable; empty counts as missing."""
        for key in (None, ""):
            with pytest.raises(MissingKey, match=r"set the variable K$"):
                PydanticAIModel("critic", "anthropic:claude-test", key, "K")

    def test_missing_package_is_named_before_any_call(self):
        """The error names the extra that installs the provider's package."""
        without = """
import sys
sys.modules["boto3"] = None  # as if it were not installed
from witan.models.pydantic_ai_model import PydanticAIModel
PydanticAIModel("critic", "bedrock:x", "k", "K")
"""
        run = run_python(without)

        assert run.stderr.strip().endswith(
            "MissingExtra: the member critic needs an extra: in a clone of Witan, "
            "pip install '.[bedrock]'"
        )

    def test_repr_hides_the_key(self):
        """It shows neither key nor address."""
        model = PydanticAIModel("critic", "anthropic:claude-test", KEY, "K", "http://u:p@host")

        assert repr(model) == "PydanticAIModel('critic')"


class TestConnections:
    """Connections are pooled, shared and closed."""

    async def test_models_share_a_client(self, server):
        """Two models of one provider use one connection; the owner of the client closes it."""
        providers = Providers()
        models = [
            PydanticAIModel(name, f"anthropic:{name}", KEY, None, server.url, providers=providers)
            for name in ("claude-one", "claude-two")
        ]
        for model in models:
            server.add_replies(says("Yes."), says("Yes."))
            await model.complete(call(), ignore_text)
            await model.aclose()
            await model.complete(call(), ignore_text)

        assert server.opened == 1
        await providers.aclose()
        assert await anyio.to_thread.run_sync(lambda: server.closed.acquire(timeout=60))

    async def test_council_has_one_client(self, server):
        """The seats of a council use one connection to a provider, closed with the council."""
        specs = [
            SeatSpec(f"anthropic:{name}", "anthropic", name, url=server.url)
            for name in ("claude-one", "claude-two", "claude-three")
        ]
        environment = {"ANTHROPIC_API_KEY": KEY}

        async with Council(specs[:2], specs[2], environment=environment) as council:
            for member in (*council.members, *council.chairmen):
                server.add_replies(says("Yes."))
                await member.model.complete(call(), ignore_text)

        assert server.opened == 1
        assert await anyio.to_thread.run_sync(lambda: server.closed.acquire(timeout=60))

    async def test_cancelling_closes_the_connection(self, server, model):
        """A cancelled call leaves no connection open."""
        arrived, over = threading.Event(), threading.Event()

        def hang(handler: Handler) -> None:
            handler.close_connection = True
            arrived.set()
            handler.connection.recv(1)
            over.set()

        server.add_replies(hang)
        async with anyio.create_task_group() as group:
            group.start_soon(model.complete, call(), ignore_text)
            assert await anyio.to_thread.run_sync(arrived.wait, 5)
            group.cancel_scope.cancel()

        assert await anyio.to_thread.run_sync(over.wait, 5)

    def test_model_moves_between_event_loops(self, server):
        """One model works on successive event loops, each with its own connection."""
        model = PydanticAIModel("critic", "anthropic:claude-test", KEY, None, server.url)

        async def once() -> str:
            server.add_replies(says("Yes."))
            reply = await model.complete(call(), ignore_text)
            await model.aclose()
            return reply.text

        assert [anyio.run(once, backend=b) for b in ("asyncio", "asyncio", "trio")] == ["Yes."] * 3
        assert server.opened == 3
