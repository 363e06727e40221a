"""Read a chat completion, streamed or complete, as a reply."""

import json
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import orjson

from witan.core.escaping import is_blank
from witan.deliberation.money import read_cost, read_tokens
from witan.deliberation.ports import BilledFailure, Hear, Reply, Usage
from witan.errors import ModelError
from witan.models.providers import Redaction

_BOM = b"\xef\xbb\xbf"


class EventStream:
    """Parser of a byte stream, in any pieces, into event data.

    Names, ids and retry times of events are ignored. An unfinished event waits until `close`, which
    returns it: a stream may end without its last blank line.
    """

    __slots__ = ("_after_cr", "_buffer", "_has_begun")

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._after_cr = False
        self._has_begun = False

    @property
    def n_buffered(self) -> int:
        """Bytes buffered of an unfinished event."""
        return len(self._buffer)

    def feed(self, piece: bytes) -> list[str]:
        """Return the data of every event completed by this piece."""
        if self._after_cr or b"\r" in piece:
            piece = self._with_plain_ends(piece)
        start = max(len(self._buffer) - 1, 0)
        self._buffer += piece
        end = self._buffer.rfind(b"\n\n", start)
        if end < 0:
            return []
        events = bytes(self._buffer[:end])
        del self._buffer[: end + 2]
        return self._read_events(events)

    def close(self) -> list[str]:
        """Return the data of an unfinished last event, if any."""
        rest = bytes(self._buffer)
        self._buffer.clear()
        return self._read_events(rest)

    def _with_plain_ends(self, piece: bytes) -> bytes:
        """Replace line ends by line feeds, also across pieces."""
        if self._after_cr and piece:
            self._after_cr = False
            piece = piece.removeprefix(b"\n")
        self._after_cr = self._after_cr or piece.endswith(b"\r")
        return piece.replace(b"\r\n", b"\n").replace(b"\r", b"\n")

    def _read_events(self, events: bytes) -> list[str]:
        if not self._has_begun:
            self._has_begun = True
            events = events.removeprefix(_BOM)
        text = events.decode(errors="replace")
        data = text.removeprefix("data: ").split("\n\ndata: ")
        if text.startswith("data: ") and text.count("\n") == 2 * (len(data) - 1):
            return data  # nearly always: every event is one such line
        return ["\n".join(lines) for event in text.split("\n\n") if (lines := _data_lines(event))]


def _data_lines(event: str) -> list[str]:
    return [
        line[5:].removeprefix(" ")
        for line in event.split("\n")
        if line == "data" or line.startswith("data:")
    ]


LONGEST_REPLY = 8_000_000
"""Most bytes of a body, and characters of a streamed text."""

_BLANK = b" \t\r\n\xef\xbb\xbf"
_STREAM_STARTS = (b":", b"data:", b"event:", b"id:", b"retry:")
REASONING_FIELDS = frozenset(("reasoning_content", "reasoning", "reasoning_details", "thinking"))
"""Fields with the reasoning by vLLM, Ollama, OpenRouter and others."""

NO_USAGE: Mapping[str, Any] = MappingProxyType({})

_IN_A_CIRCLE = 508
"""Status of a call that would return to its own council; it stays refused."""

_PERMANENT_WORDS = (
    "invalid",
    "not_found",
    "permission",
    "authentication",
    "quota",
    "filter",
    "policy",
)


def read_json(text: str | bytearray) -> Any:
    """Parse JSON, NaN and half characters included.

    Raises `ValueError` or `RecursionError` if it is not JSON, or nested too deeply.
    """
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return json.loads(text)


def is_transient(status: int) -> bool:
    """Return true if a later call may succeed after this HTTP status."""
    return status in (408, 409, 425, 429) or (status >= 500 and status != _IN_A_CIRCLE)


def words_of(error: object, depth: int = 4) -> str:
    """Return the message of an error from any of its known places."""
    if isinstance(error, str):
        return error
    if depth == 0:
        return ""
    if isinstance(error, list):
        return "; ".join(filter(None, (words_of(each, depth - 1) for each in error)))
    if not isinstance(error, Mapping):
        return ""
    keys = ("error", "message", "msg", "detail", "errors")
    words = next(filter(None, (words_of(error.get(key), depth - 1) for key in keys)), "")
    passed_on = error.get("metadata")
    upstream_words = (
        words_of(passed_on.get("raw"), depth - 1) if isinstance(passed_on, Mapping) else ""
    )
    return ": ".join(filter(None, (words, upstream_words)))


class CompletionReader:
    """Incremental reader of a completion; its first characters tell the format.

    A server may answer a plain request with a stream, and a streaming request without one.

    `redact`: cleans the server's error messages, and removes secrets from replies.
    `hear`: called with every piece of text of a stream, or once with a complete text.
    """

    def __init__(self, model: str, redact: Redaction, hear: Hear) -> None:
        self._model, self._redact, self._hear = model, redact, hear
        # Looked up once: checking a protocol takes longer than reading an event.
        self._hear_reasoning: Callable[[], None] = getattr(hear, "hear_reasoning", lambda: None)
        self._body = bytearray()
        self._is_complete = False
        self._events: EventStream | None = None
        self._has_choice = False
        self._text: list[str] = []
        self._refusal: list[str] = []
        self._undelivered_pieces: list[str] = []
        self._length = 0
        self._finish: str | None = None
        self._complete = False
        self._usage: Mapping[str, Any] = {}

    @property
    def is_finished(self) -> bool:
        """True after the stream's end of text."""
        return self._complete or (self._events is not None and self._finish is not None)

    def feed(self, piece: bytes) -> None:
        """Read a piece of the body and forward its text."""
        if self._events is None:
            self._body += piece
            if not self._is_complete:
                self._recognise()
            size = len(self._body)
        else:
            self._take_all(self._events.feed(piece))
            size = self._events.n_buffered
        self._flush_text()
        if size > LONGEST_REPLY:
            raise self._too_long()

    def reply(self) -> Reply:
        """Return the reply, once the body has ended."""
        if self._events is None:
            if not self._body.strip(_BLANK):
                raise self._error("ended without a reply", transient=True)
            if not self._is_complete:
                raise self._strange()
            self._take(self._body)
        elif not self.is_finished:
            self._take_all(self._events.close())
            if not self.is_finished:
                raise self._error("broke off in the middle of its reply", transient=True)
        self._flush_text()
        if not self._has_choice:
            raise self._strange()
        text = self._redact.hide(_repair_text("".join(self._text or self._refusal)))
        if is_blank(text):
            raise self._silence()
        return _reply(text, self._usage, cut=self._finish == "length")

    def _recognise(self) -> None:
        """Distinguish a complete body from a stream by its beginning."""
        start = bytes(self._body.lstrip(_BLANK)[:6])
        if start[:1] in (b"{", b"["):
            self._is_complete = True
        elif start.startswith(_STREAM_STARTS):
            self._events = EventStream()
            self._take_all(self._events.feed(bytes(self._body)))
        elif len(start) == 6:
            raise self._strange()

    def _take_all(self, events: list[str]) -> None:
        for data in events:
            text = data.strip()
            if text == "[DONE]":
                self._complete = True
            elif text:
                self._take(data)

    def _take(self, text: str | bytearray) -> None:
        try:
            completion = read_json(text)
        except (ValueError, RecursionError) as error:
            raise self._error("broke off in the middle of its JSON", transient=True) from error
        if isinstance(completion, list) and completion:
            completion = completion[0]
        if not isinstance(completion, dict):
            raise self._strange()
        usage = completion.get("usage")
        usage_object = usage if isinstance(usage, dict) else NO_USAGE
        if _is_error(completion):
            raise self._reported_error(completion, usage_object)
        if usage_object:
            self._usage = usage_object
        choices = completion.get("choices")
        for choice in choices if isinstance(choices, list) else ():
            if isinstance(choice, dict) and choice.get("index", 0) == 0:
                if _is_error(choice):
                    raise self._reported_error(choice, usage_object)
                self._choose(choice)

    def _choose(self, choice: Mapping[str, Any]) -> None:
        message = choice["delta"] if "delta" in choice else choice.get("message")
        if isinstance(message, dict):
            self._has_choice = True
            if not REASONING_FIELDS.isdisjoint(message) and any(map(message.get, REASONING_FIELDS)):
                self._hear_reasoning()
            if content := message.get("content"):
                self._say(self._text, content)
            if refusal := message.get("refusal"):
                self._say(self._refusal, refusal)
        if isinstance(finish := choice.get("finish_reason"), str):
            self._finish = finish

    def _say(self, pieces: list[str], content: object) -> None:
        if isinstance(content, list):
            parts = (part for part in content if isinstance(part, dict))
            content = "".join(text for part in parts if isinstance(text := part.get("text"), str))
        if isinstance(content, str) and content:
            self._length += len(content)
            if self._length > LONGEST_REPLY:
                raise self._too_long()
            pieces.append(content)
            self._undelivered_pieces.append(content)

    def _flush_text(self) -> None:
        if self._undelivered_pieces:
            text = "".join(self._undelivered_pieces)
            self._undelivered_pieces.clear()
            self._hear(self._redact.hide(_repair_text(text)))

    def _reported_error(self, part: Mapping[str, Any], usage: Mapping[str, Any]) -> ModelError:
        """Return the error sent instead of a completion, with its usage."""
        error = part.get("error") or part
        fields = error if isinstance(error, dict) else {}
        code = str(fields.get("code"))
        status = int(code) if code.isascii() and code.isdigit() and len(code) == 3 else None
        kind = f"{fields.get('type')} {code}".lower()
        is_permanent = any(word in kind for word in _PERMANENT_WORDS)
        words = self._redact(words_of(error)) or "gave no reason"
        return self._error(
            f"failed: {words}" if status is None else f"failed ({status}): {words}",
            status=status,
            transient=not is_permanent if status is None else is_transient(status),
            usage=usage,
        )

    def _silence(self) -> ModelError:
        problem = "said nothing"
        if self._finish == "content_filter":
            problem += ": its provider's content filter withheld the reply"
        elif self._finish == "length":
            problem += " before it reached its limit of tokens; raise max_tokens"
        transient = self._finish not in ("content_filter", "length")
        return self._error(problem, transient=transient, usage=self._usage)

    def _strange(self) -> ModelError:
        return self._error("sent something other than a chat completion; check its address")

    def _too_long(self) -> ModelError:
        return self._error(f"sent more than the {LONGEST_REPLY:,} bytes allowed in a reply")

    def _error(
        self,
        problem: str,
        *,
        status: int | None = None,
        transient: bool = False,
        usage: Mapping[str, Any] = NO_USAGE,
    ) -> ModelError:
        if usage:
            bill = _reply("", usage, cut=False)
            return BilledFailure(bill, self._model, problem, status, None, transient)
        return ModelError(self._model, problem, status=status, transient=transient)


def _is_error(part: Mapping[str, Any]) -> bool:
    if part.get("error"):
        return True
    return part.get("object") == "error" or part.get("type") == "error"


def _reply(text: str, usage: Mapping[str, Any], *, cut: bool) -> Reply:
    cost, problems = read_cost(usage.get("cost"))
    bill_is_ignored = bool(problems)
    input_tokens, input_problem = read_tokens(usage.get("prompt_tokens"), "read")
    output_tokens, output_problem = read_tokens(usage.get("completion_tokens"), "written")
    total, _ = read_tokens(usage.get("total_tokens"), "in all")
    if input_tokens is not None and total is not None and total >= input_tokens:
        # Some servers count reasoning only in the total.
        output_tokens = max(output_tokens or 0, total - input_tokens)
    return Reply(
        text,
        Usage(input_tokens, output_tokens),
        cost,
        cut,
        (*problems, *input_problem, *output_problem),
        bill_is_ignored,
    )


def _repair_text(text: str) -> str:
    """Return the text as valid UTF-8, with surrogates joined or replaced."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text
