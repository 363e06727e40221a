"""What a list of sessions is chosen by, and the conditions in SQL that say so."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from witan.errors import InvalidParameter
from witan.history.writing import folded, microseconds, stored_text

__all__ = ["HELD", "STATUSES", "Search", "conditions", "require_moment"]

STATUSES = ("complete", "degraded", "failed", "interrupted")

MOST_FOUND = 2**53
"""What a list of sessions may be bounded by; nobody has so many."""

HELD = "EXISTS (SELECT 1 FROM events e WHERE e.session = sessions.session)"
"""A council held it: there is its record."""


@dataclass(frozen=True, slots=True)
class Search:
    """What a list of sessions is chosen by; None: by everything.

    Parameters
    ----------
    text
        Words that the question and the closing text hold between them, in any case.
    since, until
        From, and before, these times.
    simulated
        Only those in which scripts sat, or only the others.
    session
        Its name.
    parent
        What it came of.
    held
        Only those that a council held, or only those that came in as ballots.
    after
        Only those that a list has below this time and name.

    Raises
    ------
    InvalidParameter
        If one is not of its kind.
    """

    text: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    category: str | None = None
    status: str | None = None
    limit: int | None = None
    simulated: bool | None = None
    session: str | None = None
    parent: str | None = None
    held: bool | None = None
    after: tuple[datetime, str] | None = None

    def __post_init__(self) -> None:
        for name in ("text", "category", "status", "session", "parent"):
            if (value := getattr(self, name)) is not None and not isinstance(value, str):
                raise InvalidParameter(name, value, "a text, or None")
        if self.status is not None and self.status not in STATUSES:
            raise InvalidParameter("status", self.status, f"one of {', '.join(STATUSES)}")
        for name in ("since", "until"):
            if (at := getattr(self, name)) is not None:
                require_moment(name, at)
        if self.simulated is not None and not isinstance(self.simulated, bool):
            raise InvalidParameter("simulated", self.simulated, "True, False or None")
        whole = isinstance(self.limit, int) and not isinstance(self.limit, bool)
        if self.limit is not None and not (whole and 0 <= self.limit <= MOST_FOUND):
            expected = f"a whole number from 0 to {MOST_FOUND:,}, or None for all"
            raise InvalidParameter("limit", self.limit, expected)


def require_moment(name: str, at: object) -> None:
    """Refuse what is no moment.

    Raises
    ------
    InvalidParameter
        If it is no time, or one without a zone.
    """
    if not isinstance(at, datetime) or at.utcoffset() is None:
        raise InvalidParameter(name, at, "a datetime with its zone, such as UTC")


def conditions(search: Search) -> tuple[list[str], dict[str, Any]]:
    """What has to be true of a session, in SQL, and the values in it."""
    wheres, given = [], dict[str, Any]()
    for name in ("category", "status", "simulated", "session", "parent"):
        if (value := getattr(search, name)) is not None:
            wheres.append(f"{name} = :{name}")
            given[name] = int(value) if name == "simulated" else stored_text(value)
    if search.held is not None:
        wheres.append(HELD if search.held else f"NOT {HELD}")
    for name, sign in (("since", ">="), ("until", "<")):
        if (at := getattr(search, name)) is not None:
            wheres.append(f"at_us {sign} :{name}")
            given[name] = microseconds(at)
    if search.after is not None:
        at, name = search.after
        wheres.append("at_us <= :after_us AND (at_us < :after_us OR session > :after)")
        given |= {"after_us": microseconds(at), "after": stored_text(name)}
    for k, word in enumerate(() if search.text is None else search.text.split()):
        wheres.append(f"searched LIKE :word{k} ESCAPE '!'")
        plain = folded(stored_text(word))
        for sign in "!%_":
            plain = plain.replace(sign, f"!{sign}")
        given[f"word{k}"] = f"%{plain}%"
    return wheres, given
