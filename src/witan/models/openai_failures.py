"""Reasons of failed HTTP calls, from the network and the server."""

import json
import os
import re
import socket
import ssl
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http.client import responses
from math import isfinite
from typing import Any

import httpx2

from witan.models.connections import CONNECT_SECONDS
from witan.models.openai_replies import words_of

_TITLE = re.compile(r"<title[^>]*>(.*?)</title>", re.IGNORECASE | re.DOTALL)

# Looked for in this order, for whoever knows no field often lists what it expects one of, and who
# finds a value too high may say that the model does not support it.
_STRANGE_NAME = (
    "extra field",
    "extra input",
    "extra_forbidden",
    "only the default",
    "unknown argument",
    "unknown field",
    "unknown name",
    "unknown parameter",
    "unknown_parameter",
    "unrecognized request argument",
    "unsupported parameter",
    "unsupported_parameter",
    "value_error.extra",
)
_VALUE_WORDS = (
    "_value",
    "<=",
    ">=",
    "above",
    "at least",
    "at most",
    "below",
    "between",
    "exceed",
    "greater than",
    "higher than",
    "invalid value",
    "less than",
    "lower than",
    "maximum",
    "minimum",
    "must be",
    "one of",
    "range",
    "should be",
    "supported value",
    "too big",
    "too high",
    "too large",
    "too low",
    "too small",
)
_NAME_WORDS = (
    "deprecated",
    "n't support",
    "not support",
    "unexpected",
    "unknown",
    "unrecogni",
    "unsupported",
)


@dataclass(frozen=True, slots=True)
class Failure:
    """A failure in words to follow a model's name.

    Parameters
    ----------
    transient
        It may pass.
    sent
        The request left this machine; what did not is not billed.
    """

    problem: str
    transient: bool
    sent: bool = True


def broken(error: httpx2.HTTPError, url: str) -> Failure:
    """Describe a failed connection to this URL."""
    if isinstance(error, httpx2.ConnectTimeout):
        return Failure(
            f"cannot be reached at {url}: no answer in {CONNECT_SECONDS:g} s",
            transient=True,
            sent=False,
        )
    if isinstance(error, httpx2.ConnectError):
        why, transient = _reason(error)
        return Failure(f"cannot be reached at {url}: {why}", transient, sent=False)
    if isinstance(error, httpx2.ProxyError):
        return Failure(
            f"cannot be reached at {url} through the proxy: {error}", transient=True, sent=False
        )
    if isinstance(error, httpx2.LocalProtocolError | httpx2.UnsupportedProtocol):
        return Failure(
            "cannot be asked: a header or the address is not accepted", transient=False, sent=False
        )
    if isinstance(error, httpx2.DecodingError):
        return Failure("sent something that cannot be unpacked", False)
    return Failure(f"broke off: {str(error).rstrip('.') or 'the connection was closed'}", True)


def _reason(error: BaseException) -> tuple[str, bool]:
    """Reason of a failed connection, from the underlying system error."""
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
    """The error, and what it came from; of several attempts the last."""
    while error is not None:
        yield error
        if isinstance(error, BaseExceptionGroup):
            error = error.exceptions[-1]
        else:
            error = error.__cause__ or error.__context__


@dataclass(frozen=True, slots=True)
class Complaint:
    """A server's complaint about a refused call.

    Parameters
    ----------
    words
        Its own, else the meaning of its status.
    field
        The field of the request that it names apart from its words, if it does.
    code
        What kind of complaint it says this is.
    """

    words: str
    field: str | None = None
    code: str | None = None

    @classmethod
    def of(cls, status: int, body: bytes) -> "Complaint":
        """Read it from the body of an error."""
        text = body.decode(errors="replace").strip()
        meaning = responses.get(status, "it does not say why")
        if text.startswith("<"):
            title = _TITLE.search(text)
            return cls((title and title[1].strip()) or meaning)
        try:
            document = json.loads(text)
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
        return self._says(_STRANGE_NAME) or (not self.of_value and self._says(_NAME_WORDS))

    @property
    def of_value(self) -> bool:
        """True if the server knows the field, but rejects its value."""
        return not self._says(_STRANGE_NAME) and self._says(_VALUE_WORDS)

    def _says(self, words: Iterable[str]) -> bool:
        lower = f"{self.code} {self.words}".lower()
        return any(word in lower for word in words)


def _first_flaw(document: object, depth: int = 4) -> dict[str, Any] | None:
    """First flaw in a server's list of flaws, with its place."""
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
    """Seconds to wait by any of a server's headers, if any."""
    if (milliseconds := _number(headers.get("retry-after-ms"))) is not None:
        return milliseconds / 1000
    value = headers.get("retry-after", "")
    if (seconds := _number(value)) is not None:
        return seconds
    try:
        until = parsedate_to_datetime(value)
        until = until if until.tzinfo is not None else until.replace(tzinfo=UTC)
        return max((until - now).total_seconds(), 0.0)
    except (ValueError, OverflowError):
        return None


def _number(text: str | None) -> float | None:
    try:
        number = float(text or "")
    except ValueError:
        return None
    return number if isfinite(number) and number >= 0 else None
