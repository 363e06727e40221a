"""Rows of sessions: collected for many sessions, written at once."""

import json
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from math import isfinite
from typing import Any

from witan.core.ballot import Ballot
from witan.core.ballot_records import to_record
from witan.core.entries import AnswerEntry, BallotEntry, Entries, SessionEntry, StandingEntry
from witan.errors import HistoryError
from witan.history.database import Database
from witan.history.schema import MICROSECONDS_A_DAY, bucket_of, code_of

SHARDS = 16
"""Parts that a day of sessions is rolled up in: the bucket of the session, modulo this."""

ENTRY_TABLES = ("ballots", "answers", "standings", "matchups")
"""The tables that counting a session fills."""

AT_ONCE = 500
"""Most values in one list of a statement."""

_BALLOTS = (
    *("session", "ballot", "reviewer", "human", "paired", "abstained", "repaired", "flat"),
    *("kept", "compared", "weight", "models", "own", "shares", "grades", "positions", "chars"),
    *("criteria", "criterion_grades", "body"),
)

_ANSWERS = (
    *("session", "seat", "model", "chars", "seconds", "cost_usd", "output_tokens", "failed"),
    "body",
)

_STANDINGS = ("session", "human", "rule", "model", "score", "z", "votes", "offered", "wins")

_MATCHUPS = ("session", "human", "models", "wins", "losses", "ties", "p_beats")


def to_microseconds(at: datetime) -> int:
    """A time as microseconds of UTC since 1970; exact, where a timestamp would round."""
    since = at - datetime.fromtimestamp(0, at.tzinfo)
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds


def to_datetime(at_us: int) -> datetime:
    """A time from microseconds of UTC since 1970."""
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=at_us)


def day_of(at_us: int) -> int:
    """Days since 1970, in UTC."""
    return at_us // MICROSECONDS_A_DAY


def make_storable(text: str) -> str:
    """Text as a column can hold it: what it cannot hold becomes a mark."""
    if text.isascii() and "\0" not in text:
        return text
    return text.replace("\0", "\ufffd").encode(errors="replace").decode()


def is_storable(text: str) -> bool:
    """Whether a column can hold a text as it is."""
    return make_storable(text) == text


def fold_case(text: str) -> str:
    """Text with its letters in one case: the one place where that is done, for every database."""
    return text.casefold()


def number(value: float | None) -> float | None:
    """A number as a column holds it; what is not finite is unknown."""
    return None if value is None or not isfinite(value) else float(value)


_code_of = lru_cache(maxsize=4096)(code_of)


def _word(value: float | None) -> str:
    """A number of a list as JSON; what is not finite is unknown."""
    if value is None:
        return "null"
    if isinstance(value, int):
        return int.__repr__(value)
    return float.__repr__(value) if isfinite(value) else "null"


def _list(values: Sequence[float | None]) -> str:
    # Millions of these are written: as Python has it, a list is JSON but for the gaps and None.
    written = repr([*values]).replace(" ", "").replace("None", "null")
    # nan, inf, False or a number of another library, and True
    if "a" in written or "i" in written or "T" in written:
        return f"[{','.join([_word(value) for value in values])}]"
    return written


def _grades(rows: Iterable[Sequence[float | None]]) -> str:
    return "[" + ",".join([_list(row) for row in rows]) + "]"


class Rows:
    """Rows of any number of sessions on their way into a history."""

    def __init__(self) -> None:
        self._ballots: list[tuple[Any, ...]] = []
        self._answers: list[tuple[Any, ...]] = []
        self._standings: list[tuple[Any, ...]] = []
        self._matchups: list[tuple[Any, ...]] = []
        self._names: dict[int, str] = {}
        self._codes: dict[str, int] = {}
        self._changed: set[tuple[int, int]] = set()
        self._marked: dict[str, int] = {}

    def add(
        self, session: str, entries: Entries, ballots: Sequence[Ballot], answers: Mapping[str, str]
    ) -> None:
        """Take in one session: its entries, the ballots that they were read off, its answers."""
        pairs = zip(entries.ballots, ballots, strict=True)
        for number_, (entry, ballot) in enumerate(pairs, start=1):
            self._ballots.append(self._ballot(session, number_, entry, ballot))
        seats = {entry.seat for entry in entries.answers}
        loose = [
            AnswerEntry(seat, seat, chars=len(text))
            for seat, text in answers.items()
            if seat not in seats
        ]
        for entry_ in (*entries.answers, *loose):
            self._answers.append(self._answer(session, entry_, answers.get(entry_.seat)))
        self.add_standings(session, entries.standings)
        for matchup in entries.matchups:
            codes = [self._code(model) for model in matchup.models]
            lists = (codes, matchup.wins, matchup.losses, matchup.ties, matchup.p_beats)
            self._matchups.append((session, int(matchup.kind == "human"), *map(_list, lists)))

    def add_standings(self, session: str, standings: Iterable[StandingEntry]) -> None:
        """Take in standings of one session."""
        self._standings += [
            (
                *(session, int(s.kind == "human"), s.rule, self._code(s.model)),
                *(number(s.score), number(s.z), s.votes, s.offered, float(s.wins)),
            )
            for s in standings
        ]

    def mark(self, session: str, at_us: int, bucket: int | None = None) -> None:
        """Note that what is rolled up of a session's day is no longer true.

        Its bucket need be given only of a session that is deleted; else it is looked up.
        """
        if bucket is None:
            self._marked[session] = day_of(at_us)
        else:
            self._changed.add((day_of(at_us), bucket % SHARDS))

    def write(self, database: Database) -> None:
        """Write everything, within the caller's transaction.

        Names go first and in one order, so that two writers never wait for each other in a ring.
        """
        self._write_names(database)
        database.insert("ballots", _BALLOTS, self._ballots)
        database.insert("answers", _ANSWERS, self._answers)
        database.insert("standings", _STANDINGS, self._standings)
        database.insert("matchups", _MATCHUPS, self._matchups)
        changed = self._changed | set(self._cells(database))
        marks = [(secrets.token_hex(8), day, shard) for day, shard in sorted(changed)]
        database.insert("changes", ("token", "day", "shard"), marks)

    def _cells(self, database: Database) -> Iterator[tuple[int, int]]:
        """Day and shard of the sessions that are marked and there."""
        names = list(self._marked)
        for start in range(0, len(names), AT_ONCE):
            given = {f"s{k}": name for k, name in enumerate(names[start : start + AT_ONCE])}
            among = ", ".join(f":{name}" for name in given)
            sql = f"SELECT session, bucket FROM sessions WHERE session IN ({among})"  # noqa: S608
            for session, bucket in database.rows(sql, given):
                yield self._marked[session], bucket % SHARDS

    def _write_names(self, database: Database) -> None:
        missing = dict(sorted(self._names.items()))
        new: list[tuple[int, str]] = []
        while missing:
            database.insert("names", ("code", "name"), new, ignore_existing=True)
            # Held against being forgotten by another process until this transaction ends.
            for code, name in names_of(database, list(missing), held=True).items():
                if missing.pop(code) != name:
                    problem = f"{self._names[code]!r} and {name!r} would share a code"
                    raise HistoryError(database.where, problem, "give one of them another name")
            new = [*missing.items()]

    def _code(self, name: str) -> int:
        known = self._codes.get(name)
        if known is not None:
            return known
        code = self._codes[name] = _code_of(name)
        held = self._names.setdefault(code, make_storable(name))
        if held != make_storable(name):
            raise HistoryError(
                "the history",
                f"{name!r} and {held!r} would share a code",
                "give one of them another name",
            )
        return code

    def _ballot(
        self, session: str, place: int, entry: BallotEntry, ballot: Ballot
    ) -> tuple[Any, ...]:
        return (
            *(session, place, self._code(entry.reviewer), int(entry.kind == "human")),
            *(int(entry.paired), int(entry.abstained), int(entry.repaired), int(entry.flat)),
            *(entry.kept, entry.compared, float(entry.weight)),
            _list([self._code(model) for model in entry.models]),
            _list([int(own) for own in entry.own]),
            *map(_list, (entry.shares, entry.grades, entry.positions, entry.chars)),
            _list([self._code(criterion) for criterion in entry.criteria]),
            _grades(entry.criterion_grades),
            json.dumps(to_record(ballot)),
        )

    def _answer(self, session: str, entry: AnswerEntry, text: str | None) -> tuple[Any, ...]:
        return (
            *(session, make_storable(entry.seat), self._code(entry.model), entry.chars),
            *(number(entry.seconds), number(entry.cost_usd), entry.output_tokens),
            *(int(entry.failed), None if text is None else make_storable(text)),
        )


def names_of(database: Database, codes: Sequence[int], *, held: bool = False) -> dict[int, str]:
    """Code to name of those that the history knows; `held`: until the transaction ends."""
    found: dict[int, str] = {}
    sharing = database.sharing if held else ""
    for start in range(0, len(codes), AT_ONCE):
        some = ", ".join(str(int(code)) for code in codes[start : start + AT_ONCE])
        sql = f"SELECT code, name FROM names WHERE code IN ({some}) ORDER BY code"  # noqa: S608
        found.update((code, name) for code, name in database.rows(sql + sharing))
    return found


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
        return to_microseconds(self.at)

    def values(self, bucket: int) -> tuple[Any, ...]:
        """The row, in a group of sessions."""
        at_us = self.at_us
        added_us = at_us if self.added is None else to_microseconds(self.added)
        question, closing = make_storable(self.question), _text(self.closing)
        return (
            *(self.session, at_us, day_of(at_us), bucket, _text(self.category)),
            *(int(self.simulated), int(self.rejudged), make_storable(self.source)),
            *(_text(self.parent), self.relation, added_us, 0, self.status, self.holder),
            *(question, closing, fold_case(f"{question} {closing or ''}"), self.rule),
            *(number(self.cost_usd), number(self.seconds), *_counted(self.entry)),
        )

    def settled(self) -> dict[str, Any]:
        """What is known of it once it is over, by column."""
        held = dict(zip(_COLUMNS, self.values(0), strict=True))
        return {name: held[name] for name in ("session", *_SETTLED)}


def _text(text: str | None) -> str | None:
    return None if text is None else make_storable(text)


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


def insert_sessions(
    database: Database, rows: Iterable[SessionRow], *, ignore_existing: bool = False
) -> int:
    """Insert rows; `keep`: one that is there already stays. Return how many are new."""
    held = list(rows)
    check_names(database, [row.session for row in held])
    among = {row.session: row for row in held}
    values = [row.values(_bucket(database, row, among)) for row in held]
    return database.insert("sessions", _COLUMNS, values, ignore_existing=ignore_existing)


def check_names(database: Database, sessions: Iterable[str]) -> None:
    """Refuse names of sessions that no database holds, or that stand for another session.

    Raises
    ------
    HistoryError
        If one has such a character, or is `LAST`.
    """
    for session in sessions:
        why = ""
        if not is_storable(session):
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


def update_session(database: Database, settled: Mapping[str, Any]) -> None:
    """Write what is known of a session now over what was known when it was opened."""
    database.execute(_COMPLETE, settled)


def update_count(database: Database, entry: SessionEntry) -> None:
    """Write what a session says when it was counted again, and that it is another now."""
    names = _COLUMNS[-6:]
    values = dict(zip(names, _counted(entry), strict=True))
    settled = ", ".join(f"{name} = :{name}" for name in names)
    database.execute(
        f"UPDATE sessions SET {settled}, revision = revision + 1 WHERE session = :session",  # noqa: S608
        {**values, "session": entry.session},
    )
