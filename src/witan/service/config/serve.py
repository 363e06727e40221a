"""Settings of the server and of the history."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal
from urllib.parse import urlsplit

from witan.errors import ConfigError
from witan.history.location import parse_location
from witan.models.providers import is_loopback
from witan.models.seats import check_url
from witan.service.config.layers import COMMAND_LINE, TOKEN_VARIABLE, Setting
from witan.service.settings import TOKENS, dotted_key

SHORTEST = 16
"""Fewest characters of a token; shorter ones could be guessed."""


@dataclass(frozen=True, slots=True)
class TokenSettings:
    """A client with a token.

    `source`: the file or variable that names the token.
    `key`: the variable with the token, or None if only its digest is known.
    `per_minute`: sessions it may start per minute, by default the server's limit.
    `max_cost_usd`: ceiling of each session, by default only the council's.
    `daily_usd`: cost limit of all sessions of a day, or None.
    """

    name: str
    source: str
    key: str | None = None
    sha256: str | None = None
    per_minute: int | None = None
    max_cost_usd: float | None = None
    daily_usd: float | None = None

    def problem(self, environment: Mapping[str, str]) -> str | None:
        """Return the fault of the token, without its text, or None."""
        if self.key is None:
            return None
        token = environment.get(self.key, "").strip()
        if not token:
            return f"{self.key} is not set"
        if len(token) < SHORTEST:
            return f"the token in {self.key} has fewer than {SHORTEST} characters"
        return None


@dataclass(frozen=True, slots=True)
class ServeSettings:
    """Address, clients and bounds of a server.

    `max_sessions`, `max_streams`: running sessions, and readers of their events, at a time.
    `max_connections`: open connections at a time; fewer where the limit of open files is lower.
    `header_seconds`, `body_seconds`: deadlines for the headers and the body of a request.
    `idle_seconds`: how long a connection stays open without a request.
    `send_seconds`: how long a client may read less than 1 KiB a second.
    `per_minute`: sessions that a client may start per minute, unless its token says otherwise, or
    None without a limit. Requests of any kind may be a hundred times as many.
    `heartbeat_seconds`: seconds between signs of life on a silent stream.
    `grace_seconds`: how long a shutdown waits for sessions to end.
    `narration`: whether replies of OpenAI's protocol report progress; by default streamed prose
    does.
    `allowed_hosts`: accepted Host names, besides those of this machine.
    `trusted_proxies`: addresses and networks whose forwarding headers are trusted.
    `tokens`: clients by name; without any, everybody on this machine may ask.
    """

    host: str = "127.0.0.1"
    port: int = 8717
    max_sessions: int = 64
    max_streams: int = 4000
    max_connections: int = 5000
    header_seconds: float = 10.0
    body_seconds: float = 60.0
    idle_seconds: float = 75.0
    send_seconds: float = 60.0
    body_bytes: int = 4 * 1024 * 1024
    per_minute: int | None = None
    heartbeat_seconds: float = 15.0
    grace_seconds: float = 30.0
    narration: bool | None = None
    allowed_hosts: tuple[str, ...] = ()
    public_url: str | None = None
    trusted_proxies: tuple[str, ...] = ()
    log: Literal["text", "json"] = "text"
    tokens: Mapping[str, TokenSettings] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def url(self) -> str:
        """The URL of the server."""
        return f"http://{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"

    @property
    def loopback(self) -> bool:
        """True if the address is reachable only from this machine."""
        return is_loopback(self.url)

    @property
    def refusal(self) -> str | None:
        """Reason not to start it as configured, or None."""
        if self.loopback or self.tokens:
            return None
        return (
            f"anyone who can reach {self.host} could ask at your expense: "
            f"set a token in {TOKEN_VARIABLE}, or keep to 127.0.0.1"
        )

    @property
    def hosts(self) -> tuple[str, ...]:
        """All configured host names, including the public URL's."""
        public = None if self.public_url is None else urlsplit(self.public_url).hostname
        return tuple(dict.fromkeys([*self.allowed_hosts, *([] if public is None else [public])]))


def serve_settings(settings: Iterable[Setting]) -> ServeSettings:
    """Collect the settings of the server."""
    values: dict[str, Any] = {}
    tokens: dict[str, dict[str, Setting]] = {}
    for setting in (setting for setting in settings if setting.key[0] == "serve"):
        if setting.key[:2] == TOKENS:
            tokens.setdefault(setting.key[2], {})[setting.key[3]] = setting
            continue
        if setting.key[1] == "public_url" and (problem := check_url(setting.value)):
            raise ConfigError(setting.source, setting.stated_key, problem)
        values[setting.key[1]] = setting.value
    digests = {name: _token(name, tokens[name]) for name in sorted(tokens)}
    return ServeSettings(**values, tokens=MappingProxyType(digests))


def _token(name: str, settings: Mapping[str, Setting]) -> TokenSettings:
    secret = settings.get("key") or settings.get("sha256")
    if secret is None:
        [first, *_] = settings.values()
        problem = "has neither key, the variable that holds the token, nor sha256, its digest"
        raise ConfigError(first.source, dotted_key((*TOKENS, name)), problem)
    return TokenSettings(
        name, secret.source, **{field_name: s.value for field_name, s in settings.items()}
    )


def token_digests(settings: ServeSettings, environment: Mapping[str, str]) -> Mapping[str, bytes]:
    """Return the SHA-256 of every token, by client."""
    result: dict[str, bytes] = {}
    for name, token in settings.tokens.items():
        key = dotted_key((*TOKENS, name))
        if (problem := token.problem(environment)) is not None:
            raise ConfigError(token.source, key, f"cannot be used: {problem}")
        digest = bytes.fromhex(token.sha256 or "")
        if token.key is not None:
            digest = sha256(environment[token.key].strip().encode()).digest()
        if digest in result.values():
            twin = next(other for other, other_digest in result.items() if other_digest == digest)
            raise ConfigError(
                token.source, key, f"is the same token as {dotted_key((*TOKENS, twin))}"
            )
        result[name] = digest
    return result


FILE_SCHEME = "sqlite:///"


@dataclass(frozen=True, slots=True)
class HistorySettings:
    """Place of the history, and days to keep sessions.

    `url`: a path or a URL, by default in this platform's place for a user's data.
    `keep_days`: sessions older than this are deleted; None keeps all.
    `source`: the file, variable or option that names the place, or None.
    `is_found`: whether a discovered file names the place.
    `is_explicit`: whether some source enables or places the history; otherwise that is the
    commands' default.
    """

    url: str | None = None
    keep_days: int | None = None
    enabled: bool = True
    source: str | None = None
    is_found: bool = False
    is_explicit: bool = False

    @property
    def by_option(self) -> bool:
        """True if the command line names the place."""
        return self.source == COMMAND_LINE

    @property
    def is_own(self) -> bool:
        """True if it is a private file with only the user's sessions."""
        return not self.is_found and (self.url is None or not on_server(self.url))


def history_settings(settings: Iterable[Setting]) -> HistorySettings:
    """Collect the settings of the history."""
    setting_by_name = {
        setting.key[1]: setting for setting in settings if setting.key[0] == "history"
    }
    url, enabled = setting_by_name.get("url"), setting_by_name.get("enabled")
    keep = setting_by_name.get("keep_days")
    on = True if enabled is None else enabled.value
    return HistorySettings(
        url=None if url is None else url.value,
        keep_days=None if keep is None else keep.value,
        enabled=on,
        source=None if url is None else url.source,
        is_found=url is not None and not url.is_trusted,
        is_explicit=on and (url is not None or enabled is not None),
    )


def on_server(url: str) -> bool:
    """True if the place is on a database server."""
    return "://" in url and not url.casefold().startswith(FILE_SCHEME)


def anchored_place(setting: Setting) -> str:
    """Return the place, a file resolved against its setting's directory."""
    url = str(setting.value)
    if on_server(url) or not url.strip():
        return url
    return str(parse_location(url, setting.base))


def forbidden_to_found_files(setting: Setting) -> str | None:
    """Describe a setting that an untrusted file may not contain, else None."""
    if setting.key == ("history", "keep_days"):
        return "has sessions deleted"
    if setting.key != ("history", "url"):
        return None
    url = str(setting.value)
    if on_server(url):
        return "sends sessions to a server"
    place = Path(parse_location(url, setting.base)).resolve()
    if not place.is_relative_to(setting.base.resolve()):
        return "keeps sessions outside its own folder"
    return None
