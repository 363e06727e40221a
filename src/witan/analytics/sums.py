"""Every table of `witan.core.stats.sums`, by the same queries on whatever engine."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from witan.analytics import grades_sql, standings_sql, votes_sql
from witan.analytics.engine import Columns, Engine, SumQuery
from witan.analytics.lake_files import key_of
from witan.core.rules.elo import Match
from witan.core.stats import sums
from witan.core.stats.sums import (
    AnswerSums,
    BallotSums,
    CalibrationSums,
    CriterionSums,
    GradingSums,
    HumanSums,
    LengthSums,
    MatchupSums,
    Names,
    PanelSums,
    PositionSums,
    ReviewerSums,
    StandingSums,
    UnitSums,
    VoteSums,
)
from witan.core.window import ALWAYS, Window

Table = TypeVar("Table")

KEYS = frozenset(
    {
        *("bucket", "model", "first", "second", "reviewer", "other", "human", "own"),
        *("position", "shown", "measure", "criterion", "band"),
    }
)
"""The columns by which rows of sums are apart; all others are summed."""

AT_ONCE = 40_000
"""Rows that may wait to be added up, beside those that already are: 7 MB of the widest table."""


class Adding(Generic[Table]):
    """A table of sums under way, a row per key once there are many.

    Parameters
    ----------
    kind
        The table; columns that are not given are nought.
    """

    def __init__(self, kind: type[Table]) -> None:
        self._kind = kind
        self._types = {
            column.name: np.float64 if column.type == NDArray[np.float64] else np.int64
            for column in fields(kind)  # type: ignore[arg-type]
        }
        self._parts: list[dict[str, NDArray[Any]]] = []
        self._waiting = 0

    def add(self, found: Columns) -> None:
        """Take in the rows of a query."""
        n = len(found["bucket"])
        self._parts.append(
            {
                name: np.asarray(found[name]).astype(dtype, copy=False)
                if name in found
                else np.zeros(n, dtype)
                for name, dtype in self._types.items()
            }
        )
        self._waiting += n
        if self._waiting > AT_ONCE:
            self._parts = [_added_up(_joined(self._parts))]
            self._waiting = 0

    def table(self) -> Table:
        """The sums so far; a key may stand in several rows."""
        return self._kind(**_joined(self._parts))


def _joined(parts: list[dict[str, NDArray[Any]]]) -> dict[str, NDArray[Any]]:
    if len(parts) == 1:
        return parts[0]
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _added_up(rows: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """The same sums with a row per key."""
    keys = [rows[name] for name in rows if name in KEYS]
    order = np.lexsort(keys)
    apart = np.zeros(len(order), np.bool_)
    apart[:1] = True
    for key in keys:
        apart[1:] |= np.diff(key[order]) != 0
    starts = np.flatnonzero(apart)
    return {
        name: column[order[starts]] if name in KEYS else np.add.reduceat(column[order], starts)
        for name, column in rows.items()
    }


Taking = Callable[[Columns], Columns]
"""What a table takes of the columns that a query finds."""


def _all(found: Columns) -> Columns:
    return found


def _some(*columns: str, kept: str = "") -> Taking:
    """These columns of the rows in which a count is not nought; by default the first of them."""

    def taken(found: Columns) -> Columns:
        rows = np.asarray(found[kept or columns[0]]) > 0
        wanted = KEYS.intersection(found).union(columns)
        return {name: np.asarray(found[name])[rows] for name in wanted}

    return taken


def _overall(found: Columns, counted: str, columns: Mapping[str, str]) -> Columns:
    """Of models' grades as a whole: they stand under the criterion −1."""
    rows = (np.asarray(found["human"]) == 0) & (np.asarray(found[counted]) > 0)
    held = {name: np.asarray(found[of])[rows] for name, of in columns.items()}
    bucket = np.asarray(found["bucket"])[rows]
    return {**held, "bucket": bucket, "criterion": np.full(len(bucket), -1)}


def _overall_lengths(found: Columns) -> Columns:
    columns = {"lengths": "n_grades", "ll": "grade_ll", "lx": "grade_lx", "xx": "grade_xx"}
    return _overall(found, "n_grades", columns)


def _overall_units(found: Columns) -> Columns:
    columns = {name: f"any_grade_{name}" for name in ("units", "n", "variance")}
    return _overall(found, "any_grade_units", columns)


def _units(found: Columns) -> Columns:
    """Candidates by what they were given: shares under the measure 0, grades under 1."""
    parts = list[Columns]()
    for measure, given in enumerate(("share", "grade")):
        rows = np.asarray(found[f"{given}_units"]) > 0
        names = {name: f"{given}_{name}" for name in ("units", "n", "total", "squares", "within")}
        held = {name: np.asarray(found[of])[rows] for name, of in names.items()}
        keys = {name: np.asarray(found[name])[rows] for name in ("bucket", "human")}
        parts.append({**keys, **held, "measure": np.full(int(rows.sum()), measure)})
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _placed(found: Columns) -> Columns:
    """Votes whose place on the sheet is known."""
    taken = _some("votes", "total", "excess_votes", "excess")(found)
    known = np.asarray(taken["position"]) > 0
    return {name: column[known] for name, column in taken.items()}


@dataclass(frozen=True, slots=True)
class Text:
    """A query: what each table takes of it, its parameters, and whether it is asked by span."""

    sql: str
    fills: Mapping[type[Any], Taking]
    params: tuple[str, ...] = ()
    by_span: bool = True


_GRADES = ("n_grades", "x", "y", "xx", "yy", "xy")
_SHARES = ("n_shares", "share_x", "share_y", "share_xx", "share_yy", "share_xy")


def _compared(found: Columns) -> Columns:
    """Reviewers that voted where others did."""
    counts = np.asarray(found["n_grades"]) + np.asarray(found["n_shares"])
    return _some(*_GRADES, *_SHARES, kept="compared")({**found, "compared": counts})


_TEXTS = (
    Text(standings_sql.STANDINGS, {sums.StandingSums: _all}, ("rule", "human"), by_span=False),
    Text(standings_sql.MATCHUPS, {sums.MatchupSums: _all}, ("human",), by_span=False),
    Text(standings_sql.ANSWERS, {sums.AnswerSums: _all}, by_span=False),
    Text(standings_sql.PANEL, {sums.PanelSums: _all}, by_span=False),
    Text(votes_sql.VOTES, {sums.VoteSums: _all}, by_span=False),
    Text(votes_sql.BALLOTS, {sums.BallotSums: _all}),
    Text(
        votes_sql.SHEETS,
        {
            sums.BallotSums: _some("gradings", "spread"),
            sums.LengthSums: _some(
                *("ballots", "n", "ll", "lx", "xx"),
                *("n_grades", "grade_ll", "grade_lx", "grade_xx"),
                kept="measured",
            ),
            sums.CriterionSums: _overall_lengths,
        },
    ),
    Text(votes_sql.PAIRS, {sums.LengthSums: _all}),
    Text(votes_sql.BESIDE, {sums.ReviewerSums: _compared, sums.PositionSums: _placed}),
    Text(votes_sql.UNITS, {sums.UnitSums: _units, sums.CriterionSums: _overall_units}),
    Text(grades_sql.CRITERIA, {sums.CriterionSums: _all}),
    *(Text(sql, {sums.GradingSums: _all}) for sql in grades_sql.GRADINGS),
    Text(votes_sql.HUMANS, {sums.HumanSums: _all}),
    Text(votes_sql.CALIBRATION, {sums.CalibrationSums: _all}),
)


def texts_of(kinds: Collection[type[Any]]) -> tuple[Text, ...]:
    """The queries that fill any of these tables, each once."""
    return tuple(text for text in _TEXTS if not text.fills.keys().isdisjoint(kinds))


class Found:
    """Tables by their kinds."""

    def __init__(self, tables: Iterable[Any]) -> None:
        self._of = {type(table): table for table in tables}

    def __getitem__(self, kind: type[Table]) -> Table:
        found: Table = self._of[kind]
        return found


class Reductions:
    """Sufficient statistics of the sessions in a window, each by one query, or one per span.

    The texts are the same on every engine. What is summed ballot by ballot is asked for span by
    span, so that no engine has to hold all sessions at once; a key may then stand in several rows.
    """

    def __init__(self, engine: Engine, window: Window = ALWAYS) -> None:
        self._engine = engine
        self._window = window

    def names(self) -> Names:
        """Every code and its name."""
        return self._engine.names()

    def tables(self, *kinds: type[Any], rule: str = "", human: int = 0) -> Found:
        """Several tables, which an engine may sum side by side and from the same rows.

        Parameters
        ----------
        kinds
            Tables of `witan.core.stats.sums`.
        rule
            Of the standings.
        human
            Whose ballots are behind standings and matchups: 1 for those of people.
        """
        given: dict[str, int | str] = {"rule": rule, "human": human}
        texts = texts_of(kinds)
        queries = [
            SumQuery(text.sql, {name: given[name] for name in text.params}, text.by_span)
            for text in texts
        ]
        adding = {kind: Adding(kind) for kind in kinds}
        for number, found in self._engine.sums(queries, self._window):
            for kind, taking in texts[number].fills.items():
                if kind in adding:
                    adding[kind].add(taking(found))
        return Found(one.table() for one in adding.values())

    def standings(self, rule: str, *, human: int = 0) -> StandingSums:
        """Standings under a rule, among the ballots of one kind."""
        return self.tables(StandingSums, rule=rule, human=human)[StandingSums]

    def twice(self, now: Mapping[int, int], rule: str, *, human: int = 0) -> StandingSums:
        """What to add to standings so that sessions of several codes of a model count once.

        Such a session then has one score, the mean of theirs, and one standing. Every session that
        has two of them is asked for.

        Parameters
        ----------
        now
            Codes of models that had another name, and of those they are now, to the latter.
        """
        cases = " ".join(f"WHEN {int(old)} THEN {int(new)}" for old, new in sorted(now.items()))
        sql = standings_sql.TWICE.replace("{now}", f"CASE model {cases} END")
        sql = sql.replace("{codes}", ", ".join(str(int(code)) for code in sorted(now)))
        adding = Adding(StandingSums)
        query = SumQuery(sql, {"rule": rule, "human": human})
        for _, found in self._engine.sums([query], self._window):
            adding.add(found)
        return adding.table()

    def coverage(self, rule: str, *, human: int = 0) -> int:
        """How many sessions have standings under a rule, among the ballots of one kind."""
        return self._count(SumQuery(standings_sql.COVERAGE, {"rule": rule, "human": human}, False))

    def uncounted(self, rule: str) -> int:
        """How many sessions of a history have ballots that were never counted under a rule."""
        return self._count(SumQuery(standings_sql.UNCOUNTED, {"rule": rule}))

    def _count(self, query: SumQuery) -> int:
        found = self._engine.sums([query], self._window)
        return sum(int(columns["n"].sum()) for _, columns in found)

    def matchups(self, *, human: int = 0) -> MatchupSums:
        """Pairs of models, among the ballots of one kind."""
        return self.tables(MatchupSums, human=human)[MatchupSums]

    def matches(self, *, human: int = 0) -> Iterator[Match]:
        """Pairs of models session by session in the order of time, for what depends on it.

        Sessions of one moment stand in the order of their keys, which is the same on every engine.
        """
        query = SumQuery(standings_sql.MATCHES, {"human": human})
        for span in self._engine.spans(self._window):
            found = self._engine.columns(*query.within(span))
            keys = _keys(found["session"])
            order = np.lexsort((found["second"], found["first"], keys, found["at_us"]))
            pairs = (found[name][order].tolist() for name in Match._fields[1:])
            yield from map(Match, keys[order].tolist(), *pairs)

    def answers(self) -> AnswerSums:
        """What answers took."""
        return self.tables(AnswerSums)[AnswerSums]

    def panel(self) -> PanelSums:
        """Sessions and their agreement."""
        return self.tables(PanelSums)[PanelSums]

    def votes(self) -> VoteSums:
        """What each reviewer gives to each model."""
        return self.tables(VoteSums)[VoteSums]

    def ballots(self) -> BallotSums:
        """Ballots of each reviewer."""
        return self.tables(BallotSums)[BallotSums]

    def reviewers(self) -> ReviewerSums:
        """Each reviewer beside the others."""
        return self.tables(ReviewerSums)[ReviewerSums]

    def positions(self) -> PositionSums:
        """Votes by the place on the sheet."""
        return self.tables(PositionSums)[PositionSums]

    def units(self) -> UnitSums:
        """Candidates that several reviewers judged."""
        return self.tables(UnitSums)[UnitSums]

    def lengths(self) -> LengthSums:
        """Votes beside the lengths of answers."""
        return self.tables(LengthSums)[LengthSums]

    def criteria(self) -> CriterionSums:
        """Grades by criterion."""
        return self.tables(CriterionSums)[CriterionSums]

    def gradings(self) -> GradingSums:
        """Grades of each reviewer by criterion."""
        return self.tables(GradingSums)[GradingSums]

    def humans(self) -> HumanSums:
        """Reviewers beside the people who decided the same pairs."""
        return self.tables(HumanSums)[HumanSums]

    def calibration(self) -> CalibrationSums:
        """The panel's confidence beside the people who decided the same pairs."""
        return self.tables(CalibrationSums)[CalibrationSums]


def _keys(sessions: NDArray[Any]) -> NDArray[np.int64]:
    """Keys of sessions; a database has their names instead."""
    if sessions.dtype != object:
        return sessions.astype(np.int64, copy=False)
    known = {name: key_of(name) for name in set(sessions.tolist())}
    return np.array([known[name] for name in sessions.tolist()], dtype=np.int64)
