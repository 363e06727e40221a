"""Models behind any server with OpenAI's `/v1/chat/completions`."""

import json
import os
import re
import socket
import ssl
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http.client import responses
from math import isfinite
from typing import Any, Literal
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

import httpx2
import orjson
from anyio import move_on_after

from witan.deliberation.call_headers import call_headers
from witan.deliberation.ports import Call, Hear, Reply
from witan.errors import ConfigError, InvalidParameter, ModelError
from witan.models.connections import CONNECT_SECONDS, HEADERS, Connections, HttpReply, Post, Target
from witan.models.openai_replies import CompletionReader, is_transient, read_json, words_of
from witan.models.providers import Redaction

_QUOTA_CODE = "insufficient_quota"
"""OpenAI's error code for a spent account: waiting does not help."""

_HTML_TITLE = re.compile(r"<title[^>]*>(.*?)</title>", re.IGNORECASE | re.DOTALL)

# Searched in this order: a server that rejects a field often lists those it expects, and one that
# rejects a value as too high may say that the model does not support it.
_STRANGE_NAME = re.compile(
    r"extra (?:field|input)|extra_forbidden|only the default|unknown (?:argument|field|name)"
    r"|un(?:known|supported)[ _]parameter|unrecognized request argument|value_error\.extra"
)
_VALUE_WORDS = re.compile(
    r"_value|<=|>=|above|at least|at most|below|between|exceed|(?:greater|higher|less|lower) than"
    r"|invalid value|maximum|minimum|must be|one of|range|should be|supported value"
    r"|too (?:big|high|large|low|small)"
)
_NAME_WORDS = re.compile(
    r"deprecated|n't support|not support|unexpected|unknown|unrecogni|unsupported"
)


@dataclass(frozen=True, slots=True)
class Failure:
    """A failure, worded to follow a model's name.

    `transient`: true if a later call may succeed.
    `was_sent`: true if the request left this machine; otherwise it is not billed.
    """

    problem: str
    transient: bool
    was_sent: bool = True


def broken_connection(error: httpx2.HTTPError, url: str) -> Failure:
    """Describe a failed connection to this URL."""
    if isinstance(error, httpx2.ConnectTimeout):
        return Failure(
            f"cannot be reached at {url}: no answer in {CONNECT_SECONDS:g} s",
            transient=True,
            was_sent=False,
        )
    if isinstance(error, httpx2.ConnectError):
        reason, transient = _reason(error)
        return Failure(f"cannot be reached at {url}: {reason}", transient, was_sent=False)
    if isinstance(error, httpx2.ProxyError):
        return Failure(
            f"cannot be reached at {url} through the proxy: {error}", transient=True, was_sent=False
        )
    if isinstance(error, httpx2.LocalProtocolError | httpx2.UnsupportedProtocol):
        return Failure(
            "cannot be called: invalid header or address", transient=False, was_sent=False
        )
    if isinstance(error, httpx2.DecodingError):
        return Failure("sent something that cannot be decompressed", False)
    return Failure(f"broke off: {str(error).rstrip('.') or 'the connection was closed'}", True)


def _reason(error: BaseException) -> tuple[str, bool]:
    for cause in _causes(error):
        if isinstance(cause, ssl.SSLCertVerificationError):
            return f"its certificate is not trusted ({cause.verify_message})", False
        if isinstance(cause, ssl.SSLError):
            return f"it does not speak TLS as expected ({cause.reason or cause})", False
        if isinstance(cause, socket.gaierror):
            return "no host has this name", cause.errno == socket.EAI_AGAIN
        if isinstance(cause, OSError) and cause.errno is not None:
            return os.strerror(cause.errno).lower(), True
    return str(error) or "no connection", True


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """Yield the error and its causes; with several attempts, the last one's."""
    while error is not None:
        yield error
        if isinstance(error, BaseExceptionGroup):
            error = error.exceptions[-1]
        else:
            error = error.__cause__ or error.__context__


@dataclass(frozen=True, slots=True)
class Complaint:
    """A server's complaint about a refused call.

    `words`: its own words, else the meaning of its status.
    `field`: the field of the request that it names separately, if any.
    `code`: its code for the kind of complaint.
    """

    words: str
    field: str | None = None
    code: str | None = None

    @classmethod
    def of(cls, status: int, body: bytes) -> "Complaint":
        """Read a complaint from the body of an error."""
        text = body.decode(errors="replace").strip()
        meaning = responses.get(status, "gave no reason")
        if text.startswith("<"):
            title = _HTML_TITLE.search(text)
            return cls((title and title[1].strip()) or meaning)
        try:
            document = read_json(text)
        except (ValueError, RecursionError):
            return cls(text or meaning)
        words = words_of(document).strip() or meaning
        if (flaw := _first_flaw(document)) is not None:
            return cls(words, ".".join(map(str, flaw["loc"])), _text(flaw.get("type")))
        error = document.get("error") if isinstance(document, dict) else None
        if not isinstance(error, dict):
            return cls(words)
        return cls(words, _text(error.get("param")), _text(error.get("code")))

    @property
    def of_name(self) -> bool:
        """True if the server rejects the field itself."""
        return self._mentions(_STRANGE_NAME) or (not self.of_value and self._mentions(_NAME_WORDS))

    @property
    def of_value(self) -> bool:
        """True if the server knows the field, but rejects its value."""
        return not self._mentions(_STRANGE_NAME) and self._mentions(_VALUE_WORDS)

    def _mentions(self, words: re.Pattern[str]) -> bool:
        return words.search(f"{self.code} {self.words}".lower()) is not None


def _first_flaw(document: object, depth: int = 4) -> dict[str, Any] | None:
    """Return the first flaw in a server's list, with its place."""
    if isinstance(document, list) and document and depth:
        return _first_flaw(document[0], depth - 1)
    if not isinstance(document, dict) or not depth:
        return None
    if isinstance(document.get("loc"), list):
        return document
    inner = (_first_flaw(document.get(key), depth - 1) for key in ("error", "message", "detail"))
    return next((flaw for flaw in inner if flaw is not None), None)


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def retry_after(headers: Mapping[str, str], now: datetime) -> float | None:
    """Return the seconds to wait by a server's headers, if any."""
    if (milliseconds := _number(headers.get("retry-after-ms"))) is not None:
        return milliseconds / 1000
    value = headers.get("retry-after", "")
    if (seconds := _number(value)) is not None:
        return seconds
    try:
        end = parsedate_to_datetime(value)
        end = end if end.tzinfo is not None else end.replace(tzinfo=UTC)
        return max((end - now).total_seconds(), 0.0)
    except (ValueError, OverflowError):
        return None


def _number(text: str | None) -> float | None:
    try:
        number = float(text or "")
    except ValueError:
        return None
    return number if isfinite(number) and number >= 0 else None


LimitField = Literal["max_tokens", "max_completion_tokens"]

Field = Literal[
    LimitField,
    "json_schema",
    "json_object",
    "reasoning_effort",
    "stream",
    "stream_options",
    "temperature",
]
"""Features that a server may refuse; ``json_…`` are forms of `response_format`."""

_FORMAT_WORDS = ("response_format", "json_schema", "json_object", "structured output", "grammar")
_WORDS: Mapping[Field, tuple[str, ...]] = {
    "max_tokens": ("max_tokens",),
    "max_completion_tokens": ("max_completion_tokens",),
    "json_schema": _FORMAT_WORDS,
    "json_object": _FORMAT_WORDS,
    "reasoning_effort": ("reasoning_effort", "reasoning.effort", "reasoningeffort"),
    "stream": ("streaming", "to stream", "'stream'", '"stream"', "`stream`"),
    "stream_options": ("stream_options", "include_usage"),
    "temperature": ("temperature",),
}
_LIMITS: tuple[LimitField, ...] = ("max_tokens", "max_completion_tokens")
_OPTIONS: tuple[Field, ...] = ("temperature", "reasoning_effort")
_NAMING_STATUSES = (400, 404, 422, 501)
_STREAMED_STAGES = ("answer", "synthesis")


@dataclass(frozen=True, slots=True)
class Dialect:
    """Known peculiarities of one model on one server.

    `limit`: name of the limit on tokens, unless the server refuses it.
    `refused_fields`: fields that requests leave out.
    """

    limit: LimitField = "max_tokens"
    refused_fields: frozenset[Field] = frozenset()

    def body(self, model: str, call: Call) -> dict[str, Any]:
        """Make the body of a request."""
        messages = [
            {"role": message.role, "content": _copy(message.text)} for message in call.messages
        ]
        return {"model": model, "messages": messages, **dict(self._fields(call).values())}

    def without_fields(self, *fields: Field) -> "Dialect":
        """Return the dialect without further refused fields."""
        return replace(self, refused_fields=self.refused_fields.union(fields))

    def form(self, call: Call) -> Field | None:
        """The strongest `response_format` not refused."""
        if call.schema is None:
            return None
        if "json_schema" not in self.refused_fields:
            return "json_schema"
        return None if "json_object" in self.refused_fields else "json_object"

    def named_field(self, call: Call, status: int, complaint: Complaint) -> Field | None:
        """Return the field named in a complaint, if any.

        Of several the first counts, since the others are advice.
        """
        if status not in _NAMING_STATUSES:
            return None
        lower = f"'{complaint.field}' {complaint.words}".lower()
        places = {
            field: min((lower.find(word) for word in _WORDS[field] if word in lower), default=None)
            for field in self._fields(call)
        }
        fields = {field: place for field, place in places.items() if place is not None}
        return min(fields, key=fields.__getitem__, default=None)

    def spares(self, field: Field, complaint: Complaint) -> bool:
        """Check that a call can do without the refused field.

        The limit on tokens may change its name but is never dropped, because it bounds the cost of
        a call. A server may ignore unknown names, so the name changes only if it was refused as a
        name. An option is dropped only if the server does not accept it at all: a value out of
        range is for the user to correct. The other fields are only form.
        """
        if field in _LIMITS:
            other = next(name for name in _LIMITS if name != field)
            renamed = other in complaint.words.lower() and not complaint.of_value
            return self.limit not in self.refused_fields and (complaint.of_name or renamed)
        return field not in _OPTIONS or complaint.of_name

    def notes(self, call: Call) -> tuple[str, ...]:
        """List options of a call missing from its request."""
        options = (option for option in _OPTIONS if getattr(call.options, option) is not None)
        return tuple(
            f"the server does not accept {name}" for name in options if name in self.refused_fields
        )

    def _fields(self, call: Call) -> dict[Field, tuple[str, Any]]:
        """Return a body's entries that servers may refuse, by feature."""
        limit: Field = self.limit
        if limit in self.refused_fields:
            limit = "max_completion_tokens" if limit == "max_tokens" else "max_tokens"
        fields: dict[Field, tuple[str, Any]] = {limit: (limit, call.max_tokens)}
        if call.options.temperature is not None:
            fields["temperature"] = ("temperature", call.options.temperature)
        if call.options.reasoning_effort is not None:
            fields["reasoning_effort"] = ("reasoning_effort", call.options.reasoning_effort)
        if call.stage in _STREAMED_STAGES and "stream" not in self.refused_fields:
            fields["stream"] = ("stream", True)
            fields["stream_options"] = ("stream_options", {"include_usage": True})
        if (form := self.form(call)) is not None:
            fields[form] = ("response_format", _format(form, call))
        if not self.refused_fields:
            return fields
        return {field: entry for field, entry in fields.items() if field not in self.refused_fields}


def _format(form: Field, call: Call) -> dict[str, Any]:
    if form == "json_object":
        return {"type": "json_object"}
    schema = {"name": call.stage, "strict": True, "schema": call.schema}
    return {"type": "json_schema", "json_schema": schema}


def _copy(text: str) -> str:
    # `orjson` caches the UTF-8 of a text, which would stay in memory as long as the call lasts.
    return text if text.isascii() else text[:1] + text[1:]


def _write_json(body: dict[str, Any]) -> bytes:
    try:
        # A copy, as `orjson` leaves its bytes in a buffer of seven times their length.
        return bytes(memoryview(orjson.dumps(body)))
    except orjson.JSONEncodeError:  # half a character becomes a question mark
        return json.dumps(body, ensure_ascii=False).encode(errors="replace")


_USER = re.compile(r"//[^/@]*@")


class Endpoint:
    """The chat completions of one server.

    `url`: base URL of the protocol; a user or query in it is sent with every call and shown
    nowhere, as the attribute is without them.
    `key`: sent as a bearer token.
    `key_variable`: variable that contains the key.
    `redact`: removes every credential from a message or a reply.
    """

    __slots__ = ("_has_key", "_target", "_variable", "redact", "url")

    def __init__(self, url: str, key: str | None, key_variable: str | None) -> None:
        parts = _parse_url(url)
        key = _sendable(key, key_variable)
        self._variable, self._has_key = key_variable, key is not None
        host = parts.netloc.rpartition("@")[2]
        path = parts.path.rstrip("/").removesuffix("/chat/completions")
        self.url = f"{parts.scheme}://{host}{path}"
        shown_url = httpx2.URL(f"{self.url}/chat/completions")
        # The request's URL omits the query, because the URL is logged.
        query = f"?{parts.query}" if parts.query else ""
        authorization = _authorization(parts, key)
        headers = {"Host": shown_url.netloc.decode(), **HEADERS, **authorization}
        self._target = Target(
            shown_url, shown_url.raw_path + query.encode(), tuple(headers.items())
        )
        secret_values = [value for _, value in parse_qsl(parts.query)]
        secrets = (key, parts.username, parts.password, authorization.get("Authorization"))
        self.redact = Redaction(
            [*secret_values, *(secret for secret in secrets if secret is not None)]
        )

    def __repr__(self) -> str:
        return f"Endpoint({self.url!r})"

    @property
    def refused_key(self) -> str:
        """Explain refused or missing credentials."""
        if self._has_key:
            return (
                f"rejected the API key in {self._variable}"
                if self._variable
                else "rejected its API key"
            )
        return f"needs an API key; set {self._variable}" if self._variable else "needs an API key"

    def post(self, body: bytes) -> Post:
        """Make one call with this body for the current task."""
        return Post(self._target, body, call_headers())


def _parse_url(url: str) -> SplitResult:
    try:
        parts = urlsplit(url.strip())
        host = httpx2.URL(url).raw_host.decode().encode("idna")  # as the system resolves it
        usable = parts.scheme in ("http", "https") and host and parts.port != 0
    except (ValueError, httpx2.InvalidURL):
        usable = False
    if not usable:
        address = _USER.sub("//", url.partition("?")[0])
        raise InvalidParameter("url", address, "an address such as http://localhost:8000/v1")
    return parts


def _sendable(key: str | None, variable: str | None) -> str | None:
    if key is None or not (key := key.strip()):
        return None
    if not key.isascii() or not key.isprintable():
        raise ConfigError(variable or "the key", "", "contains invalid characters")
    return key


def _authorization(parts: SplitResult, key: str | None) -> dict[str, str]:
    if key is not None:
        return {"Authorization": f"Bearer {key}"}
    if parts.username is None:
        return {}
    user = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
    return {"Authorization": f"Basic {b64encode(user.encode()).decode()}"}


_LINGER_SECONDS = 1.0
"""Longest wait in seconds, after a complete text, for token count and end of stream."""

_LONGEST_COMPLAINT = 65_536


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class _Refusal:
    status: int
    complaint: Complaint
    error: ModelError


class OpenAICompatible:
    """One model of one server, called over HTTP.

    Fields that the server does not accept (a JSON Schema, a temperature, the name of the limit on
    tokens …) are dropped, and remembered once a call without them has succeeded; a reply notes the
    dropped options of its call.

    `name`: name in errors, such as ``openai:gpt-5``.
    `url`: base URL of the protocol, usually ending in ``/v1``.
    `model`: name of the model on the server.
    `key`: sent as a bearer token and never shown; may be None.
    `key_variable`: variable that contains the key, named if the key is refused.
    `connections`: shared with other models.
    `max_tokens_field`: name of the limit on tokens, unless the server refuses it.
    `now`: source of the time of day, for servers that name a time to wait for.

    Raises `InvalidParameter` if the URL cannot be called; `ConfigError` if the key contains
    characters that no header can.
    """

    never_cancels = True
    """It raises no cancellation of its own."""

    def __init__(
        self,
        *,
        name: str,
        url: str,
        model: str,
        connections: Connections,
        key: str | None = None,
        key_variable: str | None = None,
        max_tokens_field: LimitField = "max_tokens",
        now: Callable[[], datetime] = _now,
    ) -> None:
        self._name, self._model, self._now = name, model, now
        self._connections = connections
        self._endpoint = Endpoint(url, key, key_variable)
        self._dialect = Dialect(max_tokens_field)
        self._working_forms: set[Field] = set()

    def __repr__(self) -> str:
        return f"OpenAICompatible({self._name!r}, {self._endpoint.url!r}, {self._model!r})"

    async def prepare(self) -> None:
        """Make the client before the first call, imports included."""
        await self._connections.prepare(self._endpoint.url)

    async def complete(self, call: Call, hear: Hear, /) -> Reply:
        """Answer one call; stream answers and final answers.

        If the server names a field that it does not accept, or refuses the first call with a
        `response_format` without a reason, the call is repeated without it.
        """
        dialect, is_guessed = self._dialect, False
        while True:
            reply = await self._attempt(call, dialect, hear)
            form = dialect.form(call)
            if isinstance(reply, Reply):
                if form is not None:
                    self._working_forms.add(form)
                if not dialect.refused_fields:
                    return reply
                self._dialect = self._dialect.without_fields(*dialect.refused_fields)
                notes = dialect.notes(call)
                return replace(reply, notes=(*notes, *reply.notes)) if notes else reply
            field = dialect.named_field(call, reply.status, reply.complaint)
            if field is not None and not dialect.spares(field, reply.complaint):
                raise self._unsupported_error(call, field, reply)
            if (
                field is None
                and reply.status == 400
                and not is_guessed
                and form not in self._working_forms
            ):
                field, is_guessed = form, True
            if field is None:
                raise reply.error
            dialect = dialect.without_fields(field)

    async def _attempt(self, call: Call, dialect: Dialect, hear: Hear) -> Reply | _Refusal:
        reading = CompletionReader(self._name, self._endpoint.redact, hear)
        post = self._endpoint.post(_write_json(dialect.body(self._model, call)))
        try:
            reply = await self._connections.post(self._endpoint.url, post)
            try:
                if not 200 <= reply.status < 300:
                    return await self._refusal(reply)
                await _read_body(reply, reading)
            finally:
                await reply.aclose()
        except httpx2.HTTPError as error:
            if not reading.is_finished:
                failure = broken_connection(error, self._endpoint.url)
                problem = self._endpoint.redact(failure.problem)
                raise ModelError(
                    self._name, problem, transient=failure.transient, sent=failure.was_sent
                ) from error
        return reading.reply()

    async def _refusal(self, reply: HttpReply) -> _Refusal:
        status = reply.status
        complaint = Complaint.of(status, await _read_beginning(reply))
        is_spent = complaint.code == _QUOTA_CODE
        if is_spent:
            problem = f"has no quota left ({status})"
        else:
            problem = self._problem(status, reply.headers.get("location"))
        wait = retry_after(reply.headers, self._now())
        error = ModelError(
            self._name,
            f"{problem}: {self._endpoint.redact(complaint.words)}",
            status,
            wait,
            is_transient(status) and not is_spent,
        )
        return _Refusal(status, complaint, error)

    def _unsupported_error(self, call: Call, field: Field, refusal: _Refusal) -> ModelError:
        if not field.startswith("max_") or not refusal.complaint.of_value:
            return refusal.error
        words = self._endpoint.redact(refusal.complaint.words).rstrip(".")
        limit = f"the limit of {call.max_tokens:,} tokens ({refusal.status})"
        problem = f"refused {limit}: {words}; lower it with max_tokens"
        return ModelError(self._name, problem, refusal.status)

    def _problem(self, status: int, location: str | None) -> str:
        if 300 <= status < 400:
            new_address = self._endpoint.redact((location or "another address").partition("?")[0])
            return f"redirects to {new_address} ({status}), which is not followed"
        if status in (401, 403):
            return f"{self._endpoint.refused_key} ({status})"
        if status == 404:
            url = self._endpoint.url
            return f"does not know the model {self._model} at {url} (404)"
        if status == 429:
            return "rate limited (429)"
        verb = "cannot answer now" if is_transient(status) else "refused the call"
        return f"{verb} ({status})"


async def _read_body(reply: HttpReply, reading: CompletionReader) -> None:
    """Read to the end; after complete text, only for a moment."""
    async for piece in reply:
        reading.feed(piece)
        if reading.is_finished:
            break
    if reading.is_finished:
        with nullcontext() if reply.has_arrived else move_on_after(_LINGER_SECONDS):
            async for piece in reply:
                reading.feed(piece)


async def _read_beginning(reply: HttpReply) -> bytes:
    body = b""
    with suppress(httpx2.HTTPError):  # the status is enough
        async for piece in reply:
            body += piece
            if len(body) > _LONGEST_COMPLAINT:
                break
    return body
