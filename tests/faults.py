"""What can go wrong with one call of a model, each by the name under which a test asks for it."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import wraps
from http.client import responses
from threading import Event
from typing import Any

from good_replies import ChatRequest

_MEGABYTE = 1_000_000
_PIECES = 20


@dataclass(frozen=True)
class Received:
    """A request as it came; header names in lower case."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: Mapping[str, Any]
    at: float

    @property
    def chat_request(self) -> ChatRequest:
        return ChatRequest(self.body)


@dataclass(frozen=True)
class Manner:
    """How one call is answered.

    Parameters
    ----------
    document, raw
        Sent instead of a completion: as JSON, as it is.
    wait_seconds, pause_seconds
        Before the first byte; before each piece of a stream.
    until
        Set before the first byte is sent.
    hangs, lingers
        Never begins; never ends.
    drops_after
        Pieces after which the connection is dropped; 0: not a byte was sent.
    done
        Whether a stream says ``[DONE]``.
    """

    text: str | None
    said: Mapping[str, Any] = field(default_factory=dict)
    finish: str | None = "stop"
    usage: Mapping[str, Any] | None = None
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    document: Any = None
    raw: bytes | None = None
    streamed: bool = False
    wait_seconds: float = 0.0
    pause_seconds: float = 0.0
    until: Event | None = None
    hangs: bool = False
    lingers: bool = False
    drops_after: int | None = None
    done: bool = True

    def completion(self) -> bytes:
        """A whole chat completion."""
        if self.raw is not None:
            return self.raw
        message = {"role": "assistant", "content": self.text, **self.said}
        choice = {"index": 0, "message": message, "finish_reason": self.finish}
        whole = {"object": "chat.completion", "choices": [choice], "usage": self.usage}
        return json.dumps(whole if self.document is None else self.document).encode()

    def pieces(self) -> Iterator[bytes]:
        """The same as a stream."""
        if self.raw is not None:
            yield self.raw
            return
        text = self.text or ""
        size = max(-(-len(text) // _PIECES), 1)
        parts = [{"content": text[k : k + size]} for k in range(0, len(text), size)]
        for part in [{"role": "assistant", "content": ""}, *parts, self.said]:
            yield _event({"choices": [{"index": 0, "delta": part, "finish_reason": None}]})
        if self.document is not None:
            yield _event(self.document)
        if self.finish is not None:
            yield _event({"choices": [{"index": 0, "delta": {}, "finish_reason": self.finish}]})
        if self.usage is not None:
            yield _event({"choices": [], "usage": self.usage})
        if self.done:
            yield b"data: [DONE]\n\n"


def _event(document: Any) -> bytes:
    return f"data: {json.dumps(document)}\n\n".encode()


def _error(words: str, **fields: Any) -> dict[str, Any]:
    return {"error": {"message": words, "type": "server_error", "code": None, **fields}}


Fault = Callable[..., Manner]
FAULTS: dict[str, Fault] = {}
"""Name to what it makes of a good manner, given the request and what the test adds."""


def fault(made: Fault) -> Fault:
    FAULTS[made.__name__.replace("_", " ")] = made
    return made


@fault
def slow(manner: Manner, request: Received, seconds: float = 0.2) -> Manner:
    return replace(manner, wait_seconds=seconds)


@fault
def held(manner: Manner, request: Received, until: Event | None = None) -> Manner:
    return replace(manner, until=until)


@fault
def slow_stream(manner: Manner, request: Received, seconds: float = 0.02) -> Manner:
    return replace(manner, pause_seconds=seconds)


@fault
def hang(manner: Manner, request: Received) -> Manner:
    return replace(manner, hangs=True)


@fault
def drop(manner: Manner, request: Received, after: int = 0) -> Manner:
    return replace(manner, drops_after=after)


@fault
def empty(manner: Manner, request: Received) -> Manner:
    return replace(manner, text="")


@fault
def null(manner: Manner, request: Received) -> Manner:
    return replace(manner, text=None)


@fault
def says(manner: Manner, request: Received, text: str = "") -> Manner:
    return replace(manner, text=text)


@fault
def ends(manner: Manner, request: Received, finish: str | None = None, **said: Any) -> Manner:
    """End otherwise than with "stop"; None: without saying so, nor [DONE]."""
    return replace(manner, finish=finish, said=said, done=finish is not None)


@fault
def truncated(manner: Manner, request: Received) -> Manner:
    whole = b"".join(manner.pieces()) if manner.streamed else manner.completion()
    return replace(manner, raw=whole[: len(whole) // 2])


@fault
def body(manner: Manner, request: Received, raw: bytes = b"<html>Hello</html>") -> Manner:
    return replace(manner, raw=raw)


@fault
def wrong_shape(manner: Manner, request: Received) -> Manner:
    return replace(manner, document={"result": "fine"}, streamed=False)


@fault
def oversize(manner: Manner, request: Received, megabytes: float = 9) -> Manner:
    return replace(manner, text="word " * int(megabytes * _MEGABYTE / 5))


@fault
def error_in_200(manner: Manner, request: Received, words: str = "", **fields: Any) -> Manner:
    return replace(manner, document=_error(words, **fields), finish=None, done=False)


@fault
def ignores_stream(manner: Manner, request: Received) -> Manner:
    return replace(manner, streamed=False)


@fault
def streams_unasked(manner: Manner, request: Received) -> Manner:
    return replace(manner, streamed=True)


@fault
def never_done(manner: Manner, request: Received, lingers: bool = False) -> Manner:
    return replace(manner, done=False, lingers=lingers)


@fault
def no_usage(manner: Manner, request: Received) -> Manner:
    return replace(manner, usage=None)


@fault
def echoes_key(manner: Manner, request: Received, status: int = 401) -> Manner:
    key = request.headers.get("authorization", "no key").removeprefix("Bearer ")
    words = f"Incorrect API key provided: {key}. {request.path} {key}"
    return replace(manner, status=status, document=_error(words))


@fault
def refuses(
    manner: Manner,
    request: Received,
    field: str = "response_format",
    value: str = "",
    status: int = 400,
    words: str | None = None,
) -> Manner:
    """Refuse a request that has a field, or has it with this in its value."""
    if field not in request.body or value not in json.dumps(request.body[field]):
        return manner
    words = f"Unsupported parameter: '{field}'" if words is None else words
    return replace(manner, status=status, document=_error(words))


@fault
def forbids(
    manner: Manner, request: Received, place: Sequence[str] = (), wrapped: bool = False
) -> Manner:
    """Refuse a request that has a field, as FastAPI does; wrapped, as Mistral hands that on."""
    given: Any = request.body
    for key in place:
        if key not in given:
            return manner
        given = given[key]
    flaw = {"type": "extra_forbidden", "loc": ["body", *place], "input": given}
    detail = {"detail": [{**flaw, "msg": "Extra inputs are not permitted"}]}
    said = {"object": "error", "message": detail, "type": "invalid_request_error", "code": None}
    return replace(manner, status=422, document=said if wrapped else detail)


def of_reviews(made: Fault) -> Fault:
    """A fault that answers and final answers are spared."""

    @wraps(made)
    def spared(manner: Manner, request: Received, **given: Any) -> Manner:
        if request.chat_request.stage not in ("review", "repair"):
            return manner
        return made(manner, request, **given)

    return spared


@fault
@of_reviews
def prose(manner: Manner, request: Received) -> Manner:
    return replace(manner, text="Answer A is good, and Response B is not bad; I like C as well.")


@fault
@of_reviews
def wrong_schema(manner: Manner, request: Received) -> Manner:
    return replace(manner, text='{"verdict": "fine", "confidence": 0.8}')


def _review(change: Callable[[list[list[str]]], list[list[str]]]) -> Fault:
    """Spoil the labels of a good review, in its ranking and, one for one, in its grades."""

    @of_reviews
    def spoil(manner: Manner, request: Received) -> Manner:
        good = json.loads(manner.text or "{}")
        spoilt = change(good["ranking"])
        names = dict(zip(_flat(good["ranking"]), _flat(spoilt), strict=False))
        grades = {names[label]: given for label, given in good.get("grades", {}).items()}
        return replace(manner, text=json.dumps({**good, "ranking": spoilt, "grades": grades}))

    return spoil


def _flat(groups: list[list[str]]) -> list[str]:
    return [label for group in groups for label in group]


def _each(rename: Callable[[str], str]) -> Fault:
    return _review(lambda groups: [[rename(label) for label in group] for group in groups])


FAULTS |= {
    "duplicate labels": _review(lambda groups: [*groups, groups[0]]),
    "unknown labels": _review(lambda groups: [*groups[:-1], ["Q" for _ in groups[-1]]]),
    "lower-case labels": _each(str.lower),
    "long labels": _each("Response {}".format),
}


@fault
@of_reviews
def bare_labels(manner: Manner, request: Received) -> Manner:
    """Labels and nothing else: no object, no heading."""
    return replace(manner, text=", ".join(_flat(json.loads(manner.text or "{}")["ranking"])))


@fault
@of_reviews
def string_grades(manner: Manner, request: Received) -> Manner:
    good = json.loads(manner.text or "{}", parse_int=lambda digits: f"{digits}/10")
    return replace(manner, text=json.dumps(good))


def status(code: int) -> Fault:
    """The fault that is an HTTP status, with words and headers of the test's."""

    def answer(
        manner: Manner,
        request: Received,
        words: str = "",
        retry_after: object = None,
        headers: Mapping[str, str] | None = None,
        **fields: Any,
    ) -> Manner:
        wait = {} if retry_after is None else {"Retry-After": str(retry_after)}
        said = _error(words or responses.get(code, "Strange"), **fields)
        return replace(manner, status=code, headers={**wait, **(headers or {})}, document=said)

    return answer
