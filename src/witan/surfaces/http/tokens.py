"""Tokens: who may ask, and how much of it."""

import hmac
import secrets
from collections import deque
from collections.abc import Mapping
from hashlib import sha256
from ipaddress import IPv6Address, ip_address, ip_network
from time import monotonic

from witan.service.config.serve import ServeSettings, token_digests
from witan.service.sessions import LOCAL, Client

__all__ = ["COOKIE", "Clients"]

COOKIE = "witan"
"""The cookie of a browser that has signed in."""

MOST_SIGNED_IN = 10_000

FAILURES_PER_MINUTE = 20
"""Wrong tokens from one address, beyond which it waits."""

MOST_GUESSERS = 10_000
"""Addresses whose wrong tokens are counted; beyond them the one that was silent longest is not."""

MINUTE_SECONDS = 60.0


class Clients:
    """Who may ask, by token or by the cookie that a browser was given for one.

    A cookie is drawn afresh when somebody signs in, and is worth nothing once the server stops.

    Raises
    ------
    ConfigError
        If a token is not there, is too short, or is another's, too.
    """

    def __init__(self, settings: ServeSettings, environment: Mapping[str, str]) -> None:
        self._digests = token_digests(settings, environment)
        self._local = Client(LOCAL.name, per_minute=settings.per_minute)
        self._signed_in: dict[bytes, str] = {}
        self._guesses: dict[str, deque[float]] = {}
        self._clients = {
            name: Client(
                name,
                settings.per_minute if token.per_minute is None else token.per_minute,
                token.max_cost_usd,
                token.daily_usd,
                by_token=True,
            )
            for name, token in settings.tokens.items()
        }

    @property
    def open(self) -> bool:
        """Whether nobody needs a token."""
        return not self._digests

    @property
    def local(self) -> Client:
        """Who asks where nobody needs one."""
        return self._local

    def by_token(self, token: str) -> Client | None:
        """Whose token it is; None: nobody's. It takes as long whoever's it is."""
        digest = sha256(token.encode()).digest()
        found = None
        for name, held in self._digests.items():
            if hmac.compare_digest(digest, held):
                found = name
        return None if found is None else self._clients[found]

    def guessed(self, address: str) -> bool:
        """Note a wrong token from an address; say whether those were too many."""
        now, network = monotonic(), _network(address)
        guesses = self._guesses.pop(network, None) or deque(maxlen=FAILURES_PER_MINUTE + 1)
        if len(self._guesses) >= MOST_GUESSERS:
            del self._guesses[next(iter(self._guesses))]
        self._guesses[network] = guesses
        guesses.append(now)
        return len(guesses) > FAILURES_PER_MINUTE and guesses[0] > now - MINUTE_SECONDS

    def by_cookie(self, cookie: str) -> Client | None:
        """Who has signed in under it; None: nobody."""
        name = self._signed_in.get(sha256(cookie.encode()).digest())
        return None if name is None else self._clients[name]

    def sign_in(self, client: Client) -> str:
        """Draw a cookie for somebody whose token was right."""
        if len(self._signed_in) >= MOST_SIGNED_IN:
            del self._signed_in[next(iter(self._signed_in))]
        cookie = secrets.token_urlsafe(32)
        self._signed_in[sha256(cookie.encode()).digest()] = client.name
        return cookie

    def sign_out(self, cookie: str) -> None:
        """Make a cookie worth nothing."""
        self._signed_in.pop(sha256(cookie.encode()).digest(), None)


def _network(address: str) -> str:
    """The address, or of IPv6 the network that commonly belongs to one subscriber."""
    try:
        if isinstance(ip_address(address), IPv6Address):
            return str(ip_network(f"{address.partition('%')[0]}/64", strict=False))
    except ValueError:
        pass
    return address
