"""A model behind OpenAI's protocol, over real HTTP, on both event loops."""

import gzip
import logging
import tracemalloc
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from typing import Any

import anyio
import pytest

from misbehaving import MisbehavingServer
from witan.deliberation.call_headers import HOPS
from witan.deliberation.ports import Call, Message, Options, Reply, Stage, Usage, ignore_text
from witan.errors import ConfigError, InvalidParameter, ModelError
from witan.models.connections import Connections
from witan.models.openai_compatible import OpenAICompatible

pytestmark = pytest.mark.anyio

KEY = "sk-open-sesame-0123456789"
SCHEMA = {"type": "object", "properties": {"ranking": {"type": "array"}}}
LIMITS = {"max_tokens", "max_completion_tokens"}
NOON = datetime(2026, 11, 5, 12, 0, tzinfo=UTC)


@pytest.fixture
def server() -> Iterator[MisbehavingServer]:
    with MisbehavingServer() as running:
        yield running
        assert running.open_connections() == 0


@pytest.fixture
async def connections(server) -> AsyncIterator[Connections]:
    async with Connections() as opened:
        yield opened


@pytest.fixture
def model(server, connections) -> OpenAICompatible:
    """The model ``m`` of the server, with a key."""
    return seat_model(server.url, connections)


def seat_model(url: str, connections: Connections, **settings: Any) -> OpenAICompatible:
    """A model named test:m."""
    settings = {"key": KEY, "key_variable": "TEST_KEY", "now": lambda: NOON, **settings}
    return OpenAICompatible(name="test:m", url=url, model="m", connections=connections, **settings)


def call(stage: Stage = "answer", *, schema: Any = None, **options: Any) -> Call:
    """A call about the sky."""
    details = (Message("system", "Be brief."), Message("user", "Is the sky blue? Ja, 🙂."))
    return Call(stage, details, 64, Options(**options), schema)


async def failure(model: OpenAICompatible, request: Call | None = None) -> ModelError:
    """The error of a call that fails, and that shows no key."""
    with pytest.raises(ModelError) as caught:
        await model.complete(call() if request is None else request, ignore_text)
    assert KEY not in f"{caught.value} {caught.value!r} {caught.value.__cause__!r}"
    return caught.value


class TestReplies:
    """Successful calls."""

    async def test_answer_is_streamed_as_it_is_written(self, server, model):
        """A stream is passed on in pieces, a whole body as one piece, with its tokens."""
        server.fault("m", "says", text="The sky is blue, and 🙂 it stays so.")
        pieces: list[str] = []

        reply = await model.complete(call(), pieces.append)

        assert reply == Reply("The sky is blue, and 🙂 it stays so.", Usage(8, 20))
        assert pieces
        assert "".join(pieces) == reply.text

    async def test_pieces_arrive_before_the_end(self, server, model):
        """The first piece arrives long before the last one is sent."""
        server.fault("m", "slow stream", seconds=0.03)
        times: list[float] = []
        pieces: list[str] = []

        def collect(text: str) -> None:
            times.append(anyio.current_time())
            pieces.append(text)

        reply = await model.complete(call(), collect)

        assert times[-1] - times[0] > 0.2
        assert len(pieces) > 5
        assert "".join(pieces) == reply.text

    async def test_request_has_only_the_requested_fields(self, server, model):
        """The key is sent in its header."""
        await model.complete(call(), ignore_text)

        received = server.received[0]
        assert received.path == "/v1/chat/completions"
        assert received.headers["authorization"] == f"Bearer {KEY}"
        assert received.headers["user-agent"] == "witan"
        assert received.body == {
            "model": "m",
            "messages": [
                {"role": "system", "content": "Be brief."},
                {"role": "user", "content": "Is the sky blue? Ja, 🙂."},
            ],
            "max_tokens": 64,
            "stream": True,
            "stream_options": {"include_usage": True},
        }

    async def test_request_takes_hardly_more_memory_than_its_text(self, model):
        """While a reply arrives, a request of 1 MB takes hardly more than 1 MB."""
        long_call = Call("answer", (Message("user", "x" * 1_000_000),), 64)
        ours = [tracemalloc.Filter(inclusive=True, filename_pattern="*/openai_compatible.py")]
        sizes: list[int] = []

        def measure(_: str) -> None:
            traces = tracemalloc.take_snapshot().filter_traces(ours).statistics("filename")
            sizes.append(sum(each.size for each in traces))

        tracemalloc.start()
        try:
            await model.complete(long_call, measure)
        finally:
            tracemalloc.stop()

        assert 1_000_000 < sizes[0] < 1_100_000

    async def test_request_names_the_servers_it_comes_through(self, server, model):
        """The header lists the servers that run the task; without one there is none."""
        token = HOPS.set(("one", "two"))
        await model.complete(call(), ignore_text)
        HOPS.reset(token)
        await model.complete(call(), ignore_text)

        assert [each.headers.get("witan-via") for each in server.received] == ["one, two", None]

    async def test_review_is_not_streamed_and_has_its_schema(self, server, model):
        """Reviews and repairs are not streamed; options and schema are sent with them."""
        request = call("review", schema=SCHEMA, temperature=0.0, reasoning_effort="low")

        await model.complete(request, ignore_text)

        body = server.received[0].body
        assert "stream" not in body
        assert body["temperature"] == 0.0
        assert body["reasoning_effort"] == "low"
        assert body["response_format"] == {
            "type": "json_schema",
            "json_schema": {"name": "review", "strict": True, "schema": SCHEMA},
        }

    async def test_server_settings_come_from_the_caller(self, server, connections):
        """The caller decides about the key, and about the name of the limit."""
        model = seat_model(
            server.url, connections, key=None, max_tokens_field="max_completion_tokens"
        )

        await model.complete(call(), ignore_text)

        received = server.received[0]
        assert "authorization" not in received.headers
        assert received.body["max_completion_tokens"] == 64
        assert "max_tokens" not in received.body

    @pytest.mark.parametrize("stage", ["answer", "review"])
    async def test_body_and_stream_are_interchangeable(self, server, model, stage):
        """A whole reply to a streamed call is read, and a stream to a plain one."""
        server.fault("m", "ignores stream" if stage == "answer" else "streams unasked")
        server.fault("m", "says", text="Blue.")

        assert (await model.complete(call(stage), ignore_text)).text == "Blue."

    async def test_unrequested_compression_is_decoded(self, server, model):
        """A compressed reply is decoded even without a request for compression."""
        details = b'{"choices": [{"message": {"content": "Blue."}, "finish_reason": "stop"}]}'
        server.fault("m", "200", headers={"Content-Encoding": "gzip"})
        server.fault("m", "body", raw=gzip.compress(details))

        assert (await model.complete(call(), ignore_text)).text == "Blue."

    async def test_text_is_returned_though_the_stream_stays_open(self, server, model):
        """A finished text is returned even if its stream never ends."""
        server.fault("m", "never done", lingers=True)
        server.fault("m", "says", text="Blue.")

        with anyio.fail_after(60):
            assert (await model.complete(call(), ignore_text)).text == "Blue."

    async def test_concurrent_calls_get_their_own_replies(self, model):
        """Fifty calls at once each get their reply."""
        replies: list[Reply] = []

        async def one() -> None:
            replies.append(await model.complete(call(), ignore_text))

        async with anyio.create_task_group() as group:
            for _ in range(50):
                group.start_soon(one)

        assert len(replies) == 50


class TestFaults:
    """A fault is one sentence, and is transient or not."""

    @pytest.mark.parametrize(
        ("fault", "settings", "problem", "transient"),
        [
            ("401", {"words": "No."}, "rejected the API key in TEST_KEY (401): No.", False),
            ("403", {}, "rejected the API key in TEST_KEY (403): Forbidden", False),
            ("404", {"words": "None."}, "does not know the model m at {url} (404): None.", False),
            ("400", {"words": "No."}, "refused the call (400): No.", False),
            ("402", {}, "refused the call (402): Payment Required", False),
            ("408", {}, "cannot answer now (408): Request Timeout", True),
            ("409", {}, "cannot answer now (409): Conflict", True),
            ("425", {}, "cannot answer now (425): Too Early", True),
            ("429", {"words": "Slow."}, "rate limited (429): Slow.", True),
            ("500", {}, "cannot answer now (500): Internal Server Error", True),
            ("503", {"words": "a\nb" + "x" * 400}, "cannot answer now (503): a bxxx", True),
            ("529", {"words": "Full."}, "cannot answer now (529): Full.", True),
            ("empty", {}, "said nothing", True),
            ("null", {}, "said nothing", True),
            ("drop", {}, "broke off: Server disconnected", True),
            ("drop", {"after": 3}, "broke off: peer closed connection", True),
            ("truncated", {}, "broke off in the middle of its ", True),
            ("body", {}, "sent something other than a chat completion", False),
            ("wrong shape", {}, "sent something other than a chat completion", False),
            ("oversize", {}, "sent more than the 8,000,000 bytes", False),
            ("error in 200", {"words": "Oh", "code": 502}, "failed (502): Oh", True),
        ],
    )
    @pytest.mark.parametrize("stage", ["answer", "review"])
    async def test_fault_has_its_own_sentence(
        self, server, model, fault, settings, problem, transient, stage
    ):
        """Streamed or not, each fault has its own sentence."""
        server.fault("m", fault, **settings)

        error = await failure(model, call(stage))

        assert error.problem.startswith(problem.format(url=server.url))
        assert error.transient is transient
        assert error.status == (int(fault) if fault.isdigit() else settings.get("code"))
        assert len(error.problem) < 400
        assert error.model == "test:m"

    async def test_exhausted_quota_is_not_tried_again(self, server, model):
        """A 429 with the code of an empty account is permanent, as waiting does not fill it."""
        server.fault("m", "429", words="Pay.", code="insufficient_quota")

        error = await failure(model)

        assert (error.problem, error.transient) == ("has no quota left (429): Pay.", False)

    async def test_known_circle_is_refused_again(self, server, model):
        """A model that would call back into this server is refused on the next call too."""
        server.fault("m", "508", words="this council would be a member of itself")

        error = await failure(model)

        assert all(fact in error.problem for fact in ("(508)", "a member of itself"))
        assert not error.transient

    async def test_stream_without_an_end_is_an_error(self, server, model):
        """A stream that closes without a finish reason is not a reply."""
        server.fault("m", "ends")

        assert "broke off" in (await failure(model)).problem

    @pytest.mark.parametrize(
        ("details", "seconds"),
        [
            (2, 2.0),
            ("0.5", 0.5),
            ("Thu, 05 Nov 2026 12:00:30 GMT", 30.0),
            ("Thu, 05 Nov 2026 11:00:00 GMT", 0.0),
            ("Thu, 05 Nov 2026 12:00:30 -0000", 30.0),
            ("soon", None),
            ("-1", None),
            ("nan", None),
            ("inf", None),
            ("Thu, 05 Nov 99999999999999999999 12:00:30 GMT", None),
            (None, None),
        ],
    )
    async def test_retry_after_is_seconds_or_a_date(self, server, model, details, seconds):
        """Anything else means no stated wait."""
        server.fault("m", "429", retry_after=details)

        assert (await failure(model)).retry_after == seconds

    async def test_milliseconds_are_preferred(self, server, model):
        """The header in milliseconds wins over the one in seconds."""
        server.fault("m", "429", retry_after=2, headers={"Retry-After-Ms": "1500"})

        assert (await failure(model)).retry_after == 1.5

    async def test_html_error_is_shown_by_its_title(self, server, model):
        """The error shows the title of a proxy's page, not its source."""
        server.fault("m", "502")
        server.fault("m", "body", raw=b"<html><title> Bad\nluck </title><body>" + b"x" * 100_000)

        assert (await failure(model)).problem == "cannot answer now (502): Bad luck"

    async def test_redirect_is_not_followed(self, server, model):
        """A key is not sent to another address; the message names that address."""
        server.fault("m", "307", headers={"Location": "http://elsewhere.invalid/v1"})

        error = await failure(model)

        assert "redirects to http://elsewhere.invalid/v1 (307)" in str(error)
        assert not error.transient

    @pytest.mark.parametrize(
        ("settings", "problem"),
        [
            ({"key": None}, "needs an API key; set TEST_KEY (401)"),
            ({"key": " ", "key_variable": None}, "needs an API key (401)"),
            ({"key_variable": None}, "rejected its API key (401)"),
        ],
    )
    async def test_rejection_says_where_the_key_comes_from(
        self, server, connections, settings, problem
    ):
        """The error says whether a key was sent, and where it comes from."""
        server.fault("m", "401")

        error = await failure(seat_model(server.url, connections, **settings))

        assert error.problem.startswith(problem)

    @pytest.mark.parametrize(
        ("url", "problem", "transient"),
        [
            ("http://127.0.0.1:9/v1", "http://127.0.0.1:9/v1: connection refused", True),
            ("http://localhost:9/v1", "http://localhost:9/v1: connection refused", True),
            ("http://nobody.invalid/v1", "nobody.invalid/v1: no host has this name", False),
            ("https://{host}/v1", "https://{host}/v1: it does not speak TLS as expected", False),
        ],
    )
    async def test_unreachable_server_is_named(self, server, connections, url, problem, transient):
        """The error names the server, with the reason of the system."""
        host = server.url.removeprefix("http://").removesuffix("/v1")

        error = await failure(seat_model(url.format(host=host), connections))

        assert error.problem.startswith("cannot be reached at ")
        assert problem.format(host=host) in error.problem
        assert error.transient is transient


class TestDialects:
    """Whatever a server rejects is left out of later calls."""

    @pytest.mark.parametrize("status", [400, 404, 422, 501])
    async def test_rejected_schema_falls_back(self, server, model, status):
        """From schema to plain JSON to nothing; the next call begins with the accepted form."""
        server.fault("m", "refuses", field="response_format", status=status)
        request = call("review", schema=SCHEMA)

        await model.complete(request, ignore_text)
        await model.complete(request, ignore_text)

        forms = [each.body.get("response_format", {}).get("type") for each in server.calls()]
        assert forms == ["json_schema", "json_object", None, None]

    async def test_rejected_schema_keeps_the_json_mode(self, server, model):
        """A server with a JSON mode but without schemas keeps its mode."""
        server.fault("m", "refuses", field="response_format", value="json_schema", words="Hm?")
        request = call("review", schema=SCHEMA)

        for _ in range(2):
            await model.complete(request, ignore_text)

        forms = [each.body["response_format"]["type"] for each in server.calls()]
        assert forms == ["json_schema", "json_object", "json_object"]

    async def test_refusal_without_a_name_is_retried_without_the_schema(self, server, model):
        """A 400 that names no field is retried once without the schema; then it is the error."""
        server.fault("m", "400", words="Too long.")
        request = call("review", schema=SCHEMA)

        await failure(model, request)

        assert len(server.calls()) == 2

    async def test_accepted_schema_stays(self, server, model):
        """Once a schema was accepted, a nameless 400 has another cause."""
        request = call("review", schema=SCHEMA)
        await model.complete(request, ignore_text)
        server.fault("m", "400", words="Too long.")

        await failure(model, request)

        assert len(server.calls()) == 2

    @pytest.mark.parametrize("fault", ["401", "404", "429", "500", "503", "drop", "empty"])
    async def test_unrelated_errors_keep_the_schema(self, server, model, fault):
        """A schema is not dropped for an error about something else."""
        server.fault("m", fault, times=1)
        request = call("review", schema=SCHEMA)
        await failure(model, request)

        await model.complete(request, ignore_text)

        forms = [each.body["response_format"]["type"] for each in server.calls()]
        assert forms == ["json_schema"] * 2

    @pytest.mark.parametrize(
        ("field", "words"),
        [
            (
                "temperature",
                "Unsupported value: 'temperature' does not support 0.2 with this model. "
                "Only the default (1) value is supported.",
            ),
            ("temperature", "`temperature` is deprecated for this model."),
            ("reasoning_effort", "Model m does not support parameter reasoningEffort."),
            ("reasoning_effort", "Unknown field: reasoning_effort. Known: temperature"),
            ("temperature", "unknown field `temperature`, expected one of `model`, `stream`"),
            ("stream_options", "Extra inputs: stream_options"),
            ("stream", "Your organization must be verified to stream this model."),
        ],
    )
    async def test_rejected_option_is_left_out(self, server, model, field, words):
        """An option is left out from then on; the others are still sent."""
        server.fault("m", "refuses", field=field, words=words)
        request = call(temperature=0.2, reasoning_effort="low")
        server.fault("m", "says", text="Blue.")

        replies = [await model.complete(request, ignore_text) for _ in range(2)]

        assert [reply.text for reply in replies] == ["Blue."] * 2
        first, second, third = (each.body for each in server.calls())
        absent = {field, "stream_options"} if field == "stream" else {field}
        assert first.keys() - second.keys() == absent
        assert third == second

    @pytest.mark.parametrize("field", ["max_tokens", "max_completion_tokens"])
    async def test_rejected_limit_is_renamed(self, server, connections, field):
        """A token limit rejected under one name is sent under the other."""
        model = seat_model(server.url, connections, max_tokens_field=field)
        words = f"'{field}' is not supported. Use 'max_tokens' or 'max_completion_tokens'."
        server.fault("m", "refuses", field=field, words=words)

        for _ in range(2):
            await model.complete(call(), ignore_text)

        limits = [
            each.body.keys() & {"max_tokens", "max_completion_tokens"} for each in server.calls()
        ]
        other = {"max_tokens", "max_completion_tokens"} - {field}
        assert limits == [{field}, other, other]

    async def test_limit_is_never_dropped(self, server, model):
        """A limit rejected under both names is an error."""
        server.fault("m", "400", words="max_tokens, max_completion_tokens: unknown fields")

        await failure(model)
        await failure(model)

        received = [
            each.body.keys() & {"max_tokens", "max_completion_tokens"} for each in server.calls()
        ]
        assert received == [{"max_tokens"}, {"max_completion_tokens"}] * 2

    @pytest.mark.parametrize(
        ("words", "details"),
        [
            ("Invalid max_tokens value, the valid range of max_tokens is [1, 4096]", {}),
            ("max_tokens is too large: 64. This model supports at most 32 completion tokens", {}),
            ("'max_tokens' or 'max_completion_tokens' is too large: 64", {"status": 400}),
            ("Expected a value <= 32", {"param": "max_tokens", "code": "integer_above_max_value"}),
        ],
    )
    @pytest.mark.parametrize("stage", ["answer", "review"])
    async def test_limit_that_is_too_high_keeps_its_name(
        self, server, model, words, details, stage
    ):
        """The error names the option."""
        server.fault("m", "400", words=words, **details)

        error = await failure(model, call(stage, schema=SCHEMA if stage == "review" else None))

        assert [LIMITS & each.body.keys() for each in server.calls()] == [{"max_tokens"}]
        problem = f"refused the limit of 64 tokens (400): {words}; lower it with max_tokens"
        assert (error.problem, error.status) == (problem, 400)
        assert not error.transient

    @pytest.mark.parametrize(
        ("words", "details"),
        [
            ("Unsupported parameter.", {"param": "max_tokens", "code": "unsupported_parameter"}),
            ("Cannot have max_tokens; send max_completion_tokens.", {}),
        ],
    )
    async def test_limit_is_renamed_by_code_or_name(self, server, model, words, details):
        """The limit is renamed where the error's code or words name the other field."""
        server.fault("m", "400", times=1, words=words, **details)

        await model.complete(call(), ignore_text)

        received = [LIMITS & each.body.keys() for each in server.calls()]
        assert received == [{"max_tokens"}, {"max_completion_tokens"}]

    @pytest.mark.parametrize("wrapped", [False, True])
    @pytest.mark.parametrize(
        ("place", "absent"),
        [
            (["stream_options"], "stream_options"),
            (["stream_options", "include_usage"], "stream_options"),
            (["temperature"], "temperature"),
            (["max_tokens"], "max_tokens"),
        ],
    )
    async def test_field_is_named_by_its_location(self, server, model, place, absent, wrapped):
        """A field rejected as an extra in a list of details is left out, or renamed."""
        server.fault("m", "forbids", place=place, wrapped=wrapped)
        server.fault("m", "says", text="Blue.")

        reply = await model.complete(call(temperature=0.2), ignore_text)

        first, second = (each.body for each in server.calls())
        assert first.keys() - second.keys() == {absent}
        assert reply.text == "Blue."
        assert bool(LIMITS & second.keys())

    @pytest.mark.parametrize(
        ("option", "words", "details"),
        [
            (
                "temperature",
                "Expected a value <= 2, but got 3",
                {"code": "decimal_above_max_value"},
            ),
            ("temperature", "temperature must be between 0 and 1", {}),
            ("temperature", "This model does not support a temperature above 1", {}),
            ("reasoning_effort", "`reasoning_effort` must be one of `none` or `default`", {}),
            (
                "reasoning_effort",
                "Unsupported value: 'reasoning_effort' does not support 'minimal' with this model. "
                "Supported values are: 'low', 'medium', and 'high'.",
                {"code": "unsupported_value"},
            ),
            ("temperature", "Something about temperature", {}),
        ],
    )
    async def test_option_out_of_range_is_an_error(self, server, model, option, words, details):
        """The error is in the server's words, and the option is not left out."""
        server.fault("m", "400", words=words, param=option, **details)

        error = await failure(model, call(temperature=1.9, reasoning_effort="minimal"))

        assert len(server.calls()) == 1
        assert error.problem == f"refused the call (400): {words}"

    async def test_left_out_options_are_noted(self, server, model):
        """A reply notes which of its options the server does not accept."""
        server.fault("m", "refuses", field="temperature")
        server.fault("m", "refuses", field="stream_options")
        notes = ("the server does not accept temperature",)

        replies = [
            await model.complete(call(temperature=0.2, reasoning_effort="low"), ignore_text),
            await model.complete(call(temperature=0.2), ignore_text),
            await model.complete(call(), ignore_text),
        ]

        assert [reply.notes for reply in replies] == [notes, notes, ()]

    async def test_param_of_an_error_counts_before_its_words(self, server, model):
        """A field named as the error's parameter wins over its message."""
        words = "Not supported together with max_tokens"
        server.fault("m", "400", times=1, words=words, param="temperature")

        await model.complete(call(temperature=0.2), ignore_text)

        assert "temperature" not in server.calls()[1].body
        assert "max_tokens" in server.calls()[1].body


class TestCancelling:
    """Cancelling closes the connection."""

    @pytest.mark.parametrize("fault", ["hang", "slow stream"])
    async def test_cancelled_call_closes_its_connection(self, server, model, fault):
        """Before the first byte or during a stream, a cancelled call leaves nothing open."""
        server.fault("m", fault)

        for _ in range(20):
            with anyio.move_on_after(0.03) as scope:
                await model.complete(call(), ignore_text)
            assert scope.cancelled_caught

        assert server.open_connections() == 0

    async def test_error_of_a_callback_closes_the_call(self, server, model):
        """The callback's own error is raised unchanged."""

        def trip(piece: str) -> None:
            raise BrokenPipeError(piece)

        with pytest.raises(BrokenPipeError):
            await model.complete(call(), trip)

        assert server.open_connections() == 0


class TestSecrets:
    """No credential appears in a message, a representation or a log."""

    @pytest.mark.parametrize("status", [400, 401, 500])
    async def test_echoed_credentials_are_redacted(self, server, connections, status, caplog):
        """Key, user and query are removed from a server's words, and never logged."""
        caplog.set_level(logging.DEBUG)
        host = server.url.removeprefix("http://")
        model = seat_model(f"http://me:open%20sesame@{host}?token=in-the-query", connections)
        server.fault("m", "echoes key", status=status)

        error = await failure(model)

        received = server.received[0]
        assert received.path == "/v1/chat/completions?token=in-the-query"
        output = f"{error!r} {model!r} {caplog.text}"
        assert server.url in repr(model)
        assert "provided: ***" in error.problem
        for secret in (KEY, "in-the-query", "sesame"):
            assert secret not in output

    @pytest.mark.parametrize("stage", ["answer", "review"])
    async def test_echoed_key_is_redacted_in_a_reply(self, server, model, stage):
        """A key that a server repeats is in no text, and nothing else changes."""
        text = f"You sent\n\n  Authorization: Bearer {KEY}\n" + "and more. " * 100
        server.fault("m", "says", text=text)
        pieces: list[str] = []

        reply = await model.complete(call(stage), pieces.append)

        assert reply.text == text.replace(f"Bearer {KEY}", "***")
        assert stage == "answer" or "".join(pieces) == reply.text

    async def test_user_in_the_url_is_sent(self, server, connections):
        """Without a key, user and password of the URL are sent as such."""
        url = server.url.replace("//", "//me:open%20sesame@")
        server.fault("m", "echoes key")

        error = await failure(seat_model(url, connections, key=None))

        assert server.received[0].headers["authorization"] == "Basic bWU6b3BlbiBzZXNhbWU="
        assert "bWU6" not in str(error)

    @pytest.mark.parametrize("key", ["sk-é", "sk-\u200b1", "sk-a\nb"])
    def test_key_unfit_for_a_header_is_refused(self, key):
        """The error names the variable, and does not show the key."""
        with pytest.raises(ConfigError, match="TEST_KEY") as caught:
            seat_model("http://localhost/v1", Connections(), key=key)

        assert "sk-" not in f"{caught.value!r} {caught.value}"

    @pytest.mark.parametrize(
        "url",
        ["localhost/v1", "ftp://host/v1", "http://", "http://host:99999/v1", "http://[/v1", ""],
    )
    def test_invalid_url_is_refused(self, url):
        """A base URL that cannot be called is refused before any call."""
        with pytest.raises(InvalidParameter, match="http://localhost:8000/v1"):
            seat_model(url, Connections())

    def test_invalid_url_is_shown_without_its_password(self):
        """The error shows the URL without user and query."""
        with pytest.raises(InvalidParameter) as caught:
            seat_model("gopher://me:sesame@host/v1?key=sesame", Connections())

        assert "sesame" not in str(caught.value)
        assert "gopher://host/v1" in str(caught.value)
