"""Models behind any server with OpenAI's `/v1/chat/completions`."""

import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import httpx2
from anyio import move_on_after

from witan.deliberation.ports import Call, Hear, Reply
from witan.errors import ModelError
from witan.models.connections import Connections
from witan.models.openai_dialect import Dialect, Field, LimitField
from witan.models.openai_endpoint import Endpoint
from witan.models.openai_failures import Complaint, broken, retry_after
from witan.models.openai_replies import Reading, is_transient

_LINGER_SECONDS = 1.0
"""How long a text that is complete waits for its count of tokens and the end of its stream."""

_LONGEST_COMPLAINT = 65_536


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class _Refusal:
    """A refused call: an error, unless another form succeeds."""

    status: int
    complaint: Complaint
    error: ModelError


class OpenAICompatible:
    """One model of one server, called over HTTP.

    What the server turns out not to accept (a JSON Schema, a temperature, the name of the limit
    on tokens …) is left out, and remembered once a call without it has passed; a reply notes the
    options of its call that it went without.

    Parameters
    ----------
    name
        What errors call it, such as ``openai:gpt-5``.
    url
        Where the protocol begins, usually ending in ``/v1``.
    model
        What the server calls it.
    key
        Sent as a bearer token and never shown; None: none is sent.
    key_variable
        Where the key comes from, for the error that says it was refused.
    connections
        Shared with other models.
    max_tokens_field
        What the limit on tokens is called, unless the server refuses that name.
    now
        The time of day, for a server that says until when to wait.

    Raises
    ------
    InvalidParameter
        If the URL is none that can be called.
    ConfigError
        If the key holds what no header can.
    """

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
        self._passed: frozenset[Field] = frozenset()

    def __repr__(self) -> str:
        return f"OpenAICompatible({self._name!r}, {self._endpoint.url!r}, {self._model!r})"

    async def prepare(self) -> None:
        """Make the client before the first call, imports included."""
        await self._connections.prepare(self._endpoint.url)

    async def complete(self, call: Call, hear: Hear, /) -> Reply:
        """Answer one call; answers and syntheses are heard as they are written.

        Where the server names a field that it does not take, or refuses the first call with a
        `response_format` without saying why, the call is made again without it.
        """
        dialect, guessed = self._dialect, False
        while True:
            came = await self._attempt(call, dialect, hear)
            form = dialect.form(call)
            if isinstance(came, Reply):
                if dialect.refused:
                    self._dialect = self._dialect.without(*dialect.refused)
                self._passed |= {form} if form is not None else frozenset()
                notes = dialect.notes(call)
                return replace(came, notes=(*notes, *came.notes)) if notes else came
            field = dialect.named(call, came.status, came.complaint)
            if field is not None and not dialect.spares(field, came.complaint):
                raise self._unmet(call, field, came)
            if field is None and came.status == 400 and not guessed and form not in self._passed:
                field, guessed = form, True
            if field is None:
                raise came.error
            dialect = dialect.without(field)

    async def _attempt(self, call: Call, dialect: Dialect, hear: Hear) -> Reply | _Refusal:
        reading = Reading(self._name, self._endpoint.redact, hear)
        body = json.dumps(dialect.body(self._model, call), ensure_ascii=False)
        request = self._endpoint.request(body.encode(errors="replace"))
        try:
            async with self._connections.sent(self._endpoint.url, request) as response:
                if not response.is_success:
                    return await self._refusal(response)
                await _read(response, reading)
        except httpx2.HTTPError as error:
            if not reading.finished:
                failure = broken(error, self._endpoint.url)
                problem = self._endpoint.redact(failure.problem)
                raise ModelError(
                    self._name, problem, transient=failure.transient, sent=failure.sent
                ) from error
        return reading.reply()

    async def _refusal(self, response: httpx2.Response) -> _Refusal:
        status = response.status_code
        complaint = Complaint.of(status, await _beginning(response))
        problem = self._problem(status, response.headers.get("location"))
        wait = retry_after(response.headers, self._now())
        error = ModelError(
            self._name,
            f"{problem}: {self._endpoint.redact(complaint.words)}",
            status,
            wait,
            is_transient(status),
        )
        return _Refusal(status, complaint, error)

    def _unmet(self, call: Call, field: Field, refusal: _Refusal) -> ModelError:
        """The error of a call with an unsupported option or limit."""
        if not field.startswith("max_") or not refusal.complaint.of_value:
            return refusal.error
        words = self._endpoint.redact(refusal.complaint.words).rstrip(".")
        limit = f"the limit of {call.max_tokens:,} tokens ({refusal.status})"
        problem = f"refused {limit}: {words}; lower it with max_tokens"
        return ModelError(self._name, problem, refusal.status)

    def _problem(self, status: int, location: str | None) -> str:
        """Word a status, before the server's own message."""
        if 300 <= status < 400:
            elsewhere = self._endpoint.redact((location or "another address").partition("?")[0])
            return f"redirects to {elsewhere} ({status}), which is not followed"
        if status in (401, 403):
            return f"{self._endpoint.refused_key} ({status})"
        if status == 404:
            where = self._endpoint.url
            return f"does not know the model {self._model} at {where} (404)"
        if status == 429:
            return "asks for fewer calls (429)"
        verb = "cannot answer now" if is_transient(status) else "refused the call"
        return f"{verb} ({status})"


async def _read(response: httpx2.Response, reading: Reading) -> None:
    """Read to the end; after complete text, only for a moment."""
    async with _body(response) as pieces:
        async for piece in pieces:
            reading.feed(piece)
            if reading.finished:
                break
        if reading.finished:
            with move_on_after(_LINGER_SECONDS):
                async for piece in pieces:
                    reading.feed(piece)


async def _beginning(response: httpx2.Response) -> bytes:
    """The beginning of the body, enough for an error."""
    body = b""
    with suppress(httpx2.HTTPError):  # the status says what matters
        async with _body(response) as pieces:
            async for piece in pieces:
                body += piece
                if len(body) > _LONGEST_COMPLAINT:
                    break
    return body


@asynccontextmanager
async def _body(response: httpx2.Response) -> AsyncGenerator[AsyncIterator[bytes]]:
    """The body in pieces, decompressed even if the server should not compress.

    Left early, the response is closed and read on until that shows: `httpx2` reads through a chain
    of generators, and closing the outermost one leaves the others to the garbage collector.
    """
    packed = "content-encoding" in response.headers
    pieces = response.aiter_bytes() if packed else response.aiter_raw()
    try:
        yield pieces
    finally:
        await response.aclose()
        with suppress(httpx2.HTTPError):
            async for _ in pieces:
                pass
