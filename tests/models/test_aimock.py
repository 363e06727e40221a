"""Models end to end, over HTTP, against a server that no one here wrote."""

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


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request):
    return request.param


@pytest.fixture(
    params=["openai", *(pytest.param(p, marks=pytest.mark.slow) for p in ("anthropic", "google"))]
)
async def model(request, aimock) -> AsyncIterator[Model]:
    """A model of the server, by each of the protocols that it speaks."""
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
    made = PydanticAIModel("critic", f"{request.param}:{name}", KEY, "K", url)
    yield made
    await made.aclose()


def call(text: str = "How deep?", stage: Stage = "answer", **more) -> Call:
    said = (Message("system", "Be brief."), Message("user", text))
    return Call(stage, said, **{"max_tokens": 500, **more})


def review() -> Call:
    return call("Rank them.", "review", schema=SCHEMA)


async def failures(model: Model) -> list[ModelError]:
    """How an answer fails, and how a review."""
    errors = []
    for asked in (call(), review()):
        with pytest.raises(ModelError) as caught:
            await model.complete(asked, ignore_text)
        assert KEY not in str(caught.value)
        errors.append(caught.value)
    return errors


async def test_an_answer_is_streamed(aimock, model):
    """The text arrives in pieces that add up to it, with the tokens that the server counts."""
    heard: list[str] = []
    counted = {"prompt_tokens": 20, "completion_tokens": 15, "total_tokens": 35}
    aimock.load(
        {
            "match": {"userMessage": "How deep?", "systemMessage": "Be brief."},
            "response": {"content": TEXT, "usage": counted},
            "latency": 20,
            "chunkSize": 8,
        }
    )

    reply = await model.complete(call(), heard.append)

    assert reply.text == "".join(heard) == TEXT
    assert len(heard) > 1
    assert (reply.usage.input_tokens, reply.usage.output_tokens) == (20, 15)
    assert reply.cost_usd is None
    assert not reply.cut


async def test_a_review_satisfies_its_schema(aimock, model):
    """A review comes in one piece, as JSON."""
    aimock.say(REVIEW, userMessage="Rank")

    reply = await model.complete(review(), ignore_text)

    assert json.loads(reply.text) == json.loads(REVIEW)
    [entry] = aimock.requests()
    assert not entry["body"].get("stream")


async def test_a_reply_at_its_limit_is_cut(aimock, model):
    """A reply that ended for want of tokens says so."""
    aimock.load({"match": {}, "response": {"content": TEXT, "finishReason": "length"}})

    assert (await model.complete(call(), ignore_text)).cut


async def test_a_rate_limit(aimock, model):
    """A 429 is transient, with the wait that the server asks for, and one attempt was made."""
    aimock.say(TEXT)
    aimock.chaos(rateLimitRate=1.0)

    for error in await failures(model):
        assert (error.status, error.transient) == (429, True)
        assert error.retry_after == 1.0
        assert "(429)" in str(error)
    assert len(aimock.requests()) == 2


async def test_a_server_error(aimock, model):
    """A 500 is transient."""
    aimock.say(TEXT)
    aimock.chaos(dropRate=1.0)

    for error in await failures(model):
        assert (error.status, error.transient) == (500, True)


# google-genai leaves the rest of a stream that it cannot read to the garbage collector.
@pytest.mark.filterwarnings("ignore:Async generator 'google.genai:ResourceWarning")
@pytest.mark.parametrize("failing", ["disconnectRate", "malformedRate"])
async def test_what_breaks_on_the_way(aimock, model, failing):
    """A connection that is dropped and a body that is no JSON may do better next time."""
    aimock.say(TEXT)
    aimock.chaos(**{failing: 1.0})

    for error in await failures(model):
        assert error.status is None
        assert error.transient


async def test_a_stream_that_is_cut_off(aimock, model):
    """A reply that stops in the middle is no reply."""
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
async def test_what_no_retry_will_mend(aimock, model, status, kind, problem):
    """A key that is refused and a model that is unknown are named; the key is not shown."""
    words = f"no such thing as {KEY}"
    aimock.load(
        {"match": {}, "response": {"error": {"message": words, "type": kind}, "status": status}}
    )

    for error in await failures(model):
        assert error.status == status
        assert not error.transient
        with pytest.raises(ModelError, match=problem):
            raise error


async def test_fixtures_tell_calls_apart(aimock, model):
    """A council can be scripted: by model, by what the system says, by form of reply."""
    aimock.say("a judge", systemMessage="judge")
    aimock.say("a poet", systemMessage="poet")
    aimock.say("another model", model="someone-else")

    async def told(system: str) -> str:
        said = (Message("system", f"You are a {system}."), Message("user", "Who?"))
        return (await model.complete(Call("answer", said, max_tokens=9), ignore_text)).text

    assert await told("poet") == "a poet"
    assert await told("judge") == "a judge"
    with pytest.raises(ModelError):
        await told("nobody")
