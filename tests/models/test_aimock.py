"""Models end to end over HTTP, against an independent mock server."""

import json
from collections.abc import AsyncIterator

import pytest

from witan.deliberation.ports import Call, Message, Model, Stage, ignore_text
from witan.errors import ModelError
from witan.models.connections import Connections
from witan.models.openai_compatible import OpenAICompatible

pytest_plugins = ("aimock",)

pytestmark = pytest.mark.anyio

KEY = "sk-very-secret-0123456789"

SCHEMA = {
    "type": "object",
    "additionalProperties": False,
    "required": ["notes", "ranking"],
    "properties": {
        "notes": {"type": "string"},
        "ranking": {"type": "array", "items": {"type": "string", "enum": ["A", "B"]}},
    },
}
REVIEW = json.dumps({"notes": "n", "ranking": ["A", "B"]})

TEXT = "The lake is seven metres deep, since it was sounded with a line in March."


@pytest.fixture(
    params=["openai", *(pytest.param(p, marks=pytest.mark.slow) for p in ("anthropic", "google"))]
)
async def model(request, aimock) -> AsyncIterator[Model]:
    """A model that calls the server, by each of its protocols."""
    if request.param == "openai":
        async with Connections() as connections:
            yield OpenAICompatible(
                name="critic",
                url=aimock.url,
                model="gpt-test",
                key=KEY,
                key_variable="K",
                connections=connections,
            )
        return
    package = {"anthropic": "anthropic", "google": "google.genai"}[request.param]
    pytest.importorskip(package, reason=f"the extra {request.param} is not installed")
    from witan.models.pydantic_ai_model import PydanticAIModel

    url = {"anthropic": aimock.anthropic_url, "google": aimock.google_url}[request.param]
    name = {"anthropic": "claude-opus-5", "google": "gemini-2.5-flash"}[request.param]
    seat = PydanticAIModel("critic", f"{request.param}:{name}", KEY, "K", url)
    yield seat
    await seat.aclose()


def call(text: str = "How deep?", stage: Stage = "answer", **more) -> Call:
    messages = (Message("system", "Be brief."), Message("user", text))
    return Call(stage, messages, **{"max_tokens": 500, **more})


def review() -> Call:
    return call("Rank them.", "review", schema=SCHEMA)


async def failures(model: Model) -> list[ModelError]:
    """How answers and reviews fail."""
    errors = []
    for request in (call(), review()):
        with pytest.raises(ModelError) as caught:
            await model.complete(request, ignore_text)
        assert KEY not in str(caught.value)
        errors.append(caught.value)
    return errors


async def test_answer_is_streamed(aimock, model):
    """The pieces add up to the text, with the token counts of the server."""
    pieces: list[str] = []
    usage = {"prompt_tokens": 20, "completion_tokens": 15, "total_tokens": 35}
    aimock.load(
        {
            "match": {"userMessage": "How deep?", "systemMessage": "Be brief."},
            "response": {"content": TEXT, "usage": usage},
            "latency": 20,
            "chunkSize": 8,
        }
    )

    reply = await model.complete(call(), pieces.append)

    assert reply.text == "".join(pieces) == TEXT
    assert len(pieces) > 1
    assert (reply.usage.input_tokens, reply.usage.output_tokens) == (20, 15)
    assert reply.cost_usd is None
    assert not reply.cut


async def test_review_satisfies_its_schema(aimock, model):
    """A review arrives in one piece, as JSON."""
    aimock.say(REVIEW, userMessage="Rank")

    reply = await model.complete(review(), ignore_text)

    assert json.loads(reply.text) == json.loads(REVIEW)
    [entry] = aimock.requests()
    assert not entry["body"].get("stream")


async def test_reply_at_its_limit_is_marked_as_cut(aimock, model):
    """A reply that runs out of tokens is marked as cut."""
    aimock.load({"match": {}, "response": {"content": TEXT, "finishReason": "length"}})

    assert (await model.complete(call(), ignore_text)).cut


async def test_rate_limit_is_transient(aimock, model):
    """A 429 carries the server's stated wait, after a single attempt."""
    aimock.say(TEXT)
    aimock.chaos(rateLimitRate=1.0)

    for error in await failures(model):
        assert (error.status, error.transient) == (429, True)
        assert error.retry_after == 1.0
        assert "(429)" in str(error)
    assert len(aimock.requests()) == 2


async def test_server_error_is_transient(aimock, model):
    """A 500 may pass on a retry."""
    aimock.say(TEXT)
    aimock.chaos(dropRate=1.0)

    for error in await failures(model):
        assert (error.status, error.transient) == (500, True)


# google-genai leaves the rest of a stream that it cannot read to the garbage collector.
@pytest.mark.filterwarnings("ignore:Async generator 'google.genai:ResourceWarning")
@pytest.mark.parametrize("failing", ["disconnectRate", "malformedRate"])
async def test_broken_transfer_is_transient(aimock, model, failing):
    """A dropped connection and a body that is not JSON may pass on a retry."""
    aimock.say(TEXT)
    aimock.chaos(**{failing: 1.0})

    for error in await failures(model):
        assert error.status is None
        assert error.transient


async def test_truncated_stream_is_an_error(aimock, model):
    """A stream that stops in the middle gives no reply."""
    aimock.load(
        {
            "match": {},
            "response": {"content": TEXT},
            "chunkSize": 5,
            "latency": 10,
            "truncateAfterChunks": 4,
        }
    )

    with pytest.raises(ModelError) as caught:
        await model.complete(call(), ignore_text)

    assert caught.value.transient


@pytest.mark.parametrize(
    ("status", "kind", "problem"),
    [
        (401, "authentication_error", r"rejected the API key in K \(401\)"),
        (404, "not_found_error", r"does not know the model"),
    ],
)
async def test_permanent_errors_name_their_cause(aimock, model, status, kind, problem):
    """A rejected key and an unknown model are named; the key is not shown."""
    words = f"no such thing as {KEY}"
    aimock.load(
        {"match": {}, "response": {"error": {"message": words, "type": kind}, "status": status}}
    )

    for error in await failures(model):
        assert error.status == status
        assert not error.transient
        with pytest.raises(ModelError, match=problem):
            raise error


async def test_fixtures_match_model_system_prompt_and_format(aimock, model):
    """A council can be scripted by model, system prompt and form of reply."""
    aimock.say("a judge", systemMessage="judge")
    aimock.say("a poet", systemMessage="poet")
    aimock.say("another model", model="someone-else")

    async def answer_as(system: str) -> str:
        messages = (Message("system", f"You are a {system}."), Message("user", "Who?"))
        return (await model.complete(Call("answer", messages, max_tokens=9), ignore_text)).text

    assert await answer_as("poet") == "a poet"
    assert await answer_as("judge") == "a judge"
    with pytest.raises(ModelError):
        await answer_as("nobody")
