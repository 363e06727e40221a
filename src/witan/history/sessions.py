"""The row of a session: written when it is opened or imported, completed when it is counted."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from witan.core.entries import SessionEntry
from witan.errors import HistoryError
from witan.history.database import Database
from witan.history.schema import bucket_of
from witan.history.writing import (
    day_of,
    folded,
    microseconds,
    number,
    storable,
    stored_text,
)

__all__ = [
    "COUNCIL",
    "LAST",
    "NOBODY",
    "SessionRow",
    "check_names",
    "complete",
    "insert_sessions",
    "recounted",
]

COUNCIL = "council"
"""The source of a session that was held here, and came from no file."""

LAST = "last"
"""Stands for the latest council session, so that none is called so."""

NOBODY = ""
"""The holder of a session that is closed: nobody writes to it any more."""

_COLUMNS = (
    *("session", "at_us", "day", "bucket", "category", "simulated", "rejudged", "source"),
    *("parent", "relation", "added_us", "revision", "status", "holder"),
    *("question", "closing", "searched", "rule"),
    *("cost_usd", "seconds", "kendall_w", "agreement"),
    *("noise_unit", "noise_variance", "noise_df", "effect_variance"),
)

_SETTLED = ("category", *_COLUMNS[_COLUMNS.index("status") :])
"""What is known once the session is over. Its group is written once, when it is opened."""

_COMPLETE = (
    f"UPDATE sessions SET {', '.join(f'{name} = :{name}' for name in _SETTLED)}"  # noqa: S608
    " WHERE session = :session"
)


@dataclass(frozen=True, slots=True)
class SessionRow:
    """What the history keeps of a session beside its events, ballots and answers.

    Parameters
    ----------
    source
        `COUNCIL`, or the file that it came from.
    holder
        The token of the one writer that may add to it.
    entry
        None: not counted.
    parent, relation
        The session that it came of, and how; written once, when it is opened.
    judges_only
        Its answers come from another session: nobody was asked for one.
    added
        When it entered the history; None: when it was asked.
    """

    session: str
    at: datetime
    category: str | None
    simulated: bool
    source: str
    status: str
    question: str
    holder: str = NOBODY
    closing: str | None = None
    rule: str | None = None
    cost_usd: float | None = None
    seconds: float | None = None
    entry: SessionEntry | None = None
    parent: str | None = None
    relation: str | None = None
    judges_only: bool = False
    added: datetime | None = None

    @property
    def rejudged(self) -> bool:
        """Whether it judges the answers of another session, which count there."""
        return self.judges_only or self.relation == "rejudged"

    @property
    def shares_answers(self) -> bool:
        """Whether answers of its parent stand in it."""
        return self.relation in ("rejudged", "retried")

    @property
    def own_bucket(self) -> int | None:
        """Its group, where it is no other's: see `_bucket`."""
        return None if self.shares_answers else bucket_of(self.session)

    @property
    def at_us(self) -> int:
        """When it was asked, in microseconds of UTC."""
        return microseconds(self.at)

    def values(self, bucket: int) -> tuple[Any, ...]:
        """The row, in a group of sessions."""
        at_us = self.at_us
        added_us = at_us if self.added is None else microseconds(self.added)
        question, closing = stored_text(self.question), _text(self.closing)
        return (
            *(self.session, at_us, day_of(at_us), bucket, _text(self.category)),
            *(int(self.simulated), int(self.rejudged), stored_text(self.source)),
            *(_text(self.parent), self.relation, added_us, 0, self.status, self.holder),
            *(question, closing, folded(f"{question} {closing or ''}"), self.rule),
            *(number(self.cost_usd), number(self.seconds), *_counted(self.entry)),
        )

    def settled(self) -> dict[str, Any]:
        """What is known of it once it is over, by column."""
        held = dict(zip(_COLUMNS, self.values(0), strict=True))
        return {name: held[name] for name in ("session", *_SETTLED)}


def _text(text: str | None) -> str | None:
    return None if text is None else stored_text(text)


def _counted(entry: SessionEntry | None) -> tuple[Any, ...]:
    if entry is None:
        return (None,) * 6
    noise = entry.noise
    fit = (None,) * 4 if noise is None else (
        noise.unit,
        number(noise.variance),
        number(noise.df),
        number(noise.effect_variance),
    )  # fmt: skip
    return (number(entry.kendall_w), number(entry.agreement), *fit)


def insert_sessions(database: Database, rows: Iterable[SessionRow], *, keep: bool = False) -> int:
    """Insert rows; `keep`: one that is there already stays. Return how many are new."""
    held = list(rows)
    check_names(database, [row.session for row in held])
    among = {row.session: row for row in held}
    values = [row.values(_bucket(database, row, among)) for row in held]
    return database.insert("sessions", _COLUMNS, values, keep=keep)


def check_names(database: Database, sessions: Iterable[str]) -> None:
    """Refuse names of sessions that no database holds, or that stand for another session.

    Raises
    ------
    HistoryError
        If one has such a character, or is `LAST`.
    """
    for session in sessions:
        why = ""
        if not storable(session):
            why = "no database holds it"
        elif session == LAST:
            why = "it stands for the latest session"
        if why:
            problem = f"{session!r} cannot be the name of a session: {why}"
            remedy = "give it another name, or import the file with a --prefix"
            raise HistoryError(database.where, problem, remedy)


def _bucket(database: Database, row: SessionRow, among: Mapping[str, SessionRow]) -> int:
    """The group of a session: that of the first one whose answers stand in it.

    Answers that are judged again are the same answers. Where the parent is unknown, it is taken
    for the first.
    """
    first = row
    for _ in among:
        if not first.shares_answers or first.parent is None:
            break
        if first.parent not in among:
            sql = "SELECT bucket FROM sessions WHERE session = :session"
            found = database.rows(sql, {"session": _text(first.parent)})
            return int(found[0][0]) if found else bucket_of(first.parent)
        first = among[first.parent]
    return bucket_of(first.session)


def complete(database: Database, settled: Mapping[str, Any]) -> None:
    """Write what is known of a session now over what was known when it was opened."""
    database.execute(_COMPLETE, settled)


def recounted(database: Database, entry: SessionEntry) -> None:
    """Write what a session says when it was counted again, and that it is another now."""
    names = _COLUMNS[-6:]
    values = dict(zip(names, _counted(entry), strict=True))
    settled = ", ".join(f"{name} = :{name}" for name in names)
    database.execute(
        f"UPDATE sessions SET {settled}, revision = revision + 1 WHERE session = :session",  # noqa: S608
        {**values, "session": entry.session},
    )
