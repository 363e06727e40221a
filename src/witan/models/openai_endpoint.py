"""The address and credentials of a server; the latter stay secret."""

import re
from base64 import b64encode
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

import httpx2

from witan.errors import ConfigError, InvalidParameter
from witan.models.connections import HEADERS
from witan.models.loop_guard import hops_header
from witan.models.secrets import Redaction

_USER = re.compile(r"//[^/@]*@")


class Endpoint:
    """The chat completions of one server.

    Parameters
    ----------
    url
        Where the protocol begins; a user or a query in it goes with every call, and nowhere else.
    key
        Sent as a bearer token.
    key_variable
        Where the key comes from.

    Attributes
    ----------
    shown
        The URL as messages show it: without user and query.
    redact
        Takes every credential out of a message, or out of a reply.
    """

    __slots__ = ("_extensions", "_headers", "_keyed", "_url", "_variable", "redact", "url")

    def __init__(self, url: str, key: str | None, key_variable: str | None) -> None:
        parts = _parsed(url)
        key = _sendable(key, key_variable)
        self._variable, self._keyed = key_variable, key is not None
        host = parts.netloc.rpartition("@")[2]
        path = parts.path.rstrip("/").removesuffix("/chat/completions")
        self.url = f"{parts.scheme}://{host}{path}"
        self._url = httpx2.URL(f"{self.url}/chat/completions")
        # The query goes past the URL of the request, because that is written to logs.
        target = self._url.raw_path + b"?" + parts.query.encode()
        self._extensions = {"target": target} if parts.query else {}
        self._headers = httpx2.Headers({"Host": self._url.netloc.decode(), **HEADERS})
        self._headers.update(_authorization(parts, key))
        hidden = [value for _, value in parse_qsl(parts.query)]
        secrets = (key, parts.username, parts.password, self._headers.get("Authorization"))
        self.redact = Redaction([*hidden, *(secret for secret in secrets if secret is not None)])

    def __repr__(self) -> str:
        return f"Endpoint({self.url!r})"

    @property
    def refused_key(self) -> str:
        """Explain refused or missing credentials."""
        if self._keyed:
            return (
                f"rejected the API key in {self._variable}"
                if self._variable
                else "rejected its API key"
            )
        return f"needs an API key; set {self._variable}" if self._variable else "needs an API key"

    def request(self, body: bytes) -> httpx2.Request:
        """One call with this body, on behalf of whoever makes it now."""
        headers = self._headers.copy()
        headers["Content-Length"] = str(len(body))
        headers.update(hops_header())
        stream = httpx2.ByteStream(body)  # as `content` it would be examined for its headers
        return httpx2.Request(
            "POST", self._url, headers=headers, stream=stream, extensions=self._extensions
        )


def _parsed(url: str) -> SplitResult:
    try:
        parts = urlsplit(url.strip())
        host = httpx2.URL(url).raw_host.decode().encode("idna")  # as the system looks it up
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
        raise ConfigError(variable or "the key", "", "holds characters that no key has")
    return key


def _authorization(parts: SplitResult, key: str | None) -> dict[str, str]:
    if key is not None:
        return {"Authorization": f"Bearer {key}"}
    if parts.username is None:
        return {}
    user = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
    return {"Authorization": f"Basic {b64encode(user.encode()).decode()}"}
