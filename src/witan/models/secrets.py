"""Redaction of our secrets in foreign text, for messages in one line."""

from collections.abc import Iterable
from urllib.parse import quote, unquote

_HIDDEN = "***"
_LONGEST = 300
_SHORTEST_SECRET = 4
"""Fewer characters keep nothing secret, and taking them out would leave no sentence standing."""

_SHORTEST_IN_REPLIES = 16
"""What stands in for a key, such as "ollama", is shorter, and may well be said in an answer."""


class Redaction:
    """Takes known secrets out of texts; shows none itself."""

    __slots__ = ("_forms",)

    def __init__(self, secrets: Iterable[str]) -> None:
        whole = [secret for secret in secrets if len(secret) >= _SHORTEST_SECRET]
        forms = dict.fromkeys(f(secret) for secret in whole for f in (str, quote, unquote))
        self._forms = tuple(sorted(forms, key=len, reverse=True))

    def __repr__(self) -> str:
        return "Redaction()"

    def __call__(self, text: str) -> str:
        """The text on one line, ≤ 300 characters, *** for every secret."""
        line = "".join(filter(str.isprintable, " ".join(text.split())))
        for secret in self._forms:
            line = line.replace(secret, _HIDDEN)
        return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1].rstrip()}…"

    def hide(self, text: str) -> str:
        """The unchanged reply, *** for every unmistakable secret."""
        for secret in self._forms:
            if len(secret) >= _SHORTEST_IN_REPLIES:
                text = text.replace(secret, _HIDDEN)
        return text
