"""Places of settings: ``("limits", "call_seconds")``, written ``limits.call_seconds``."""

Key = tuple[str, ...]
"""The place of a value: ``("limits", "call_seconds")``."""

OPEN_TABLES: tuple[Key, ...] = (
    ("rule_parameters",),
    ("rubric_weights",),
    ("counting", "weights"),
    ("counting", "reliability"),
)
"""Tables whose keys are names of one's own: parameters of a rule, criteria, reviewers."""

NAME_TABLES: tuple[Key, ...] = (("aliases",), ("families",), ("price",))
"""Tables whose keys are models, families or seats: too long for the name of a variable."""

SEATS: tuple[Key, ...] = (("members",), ("jury",), ("chairmen",))
"""Settings that are lists of seats."""

PROFILES = "profiles"

TOKENS: Key = ("serve", "tokens")

PLAIN_TABLES = ("limits", "counting", "history", "serve")
"""Tables of plain values."""


def strip_profile(key: Key) -> Key:
    """Return a key without its profile."""
    return key[2:] if key[0] == PROFILES else key


def dotted_key(key: Key) -> str:
    """Return a key as it is written: ``limits.call_seconds``."""
    return ".".join(key)
