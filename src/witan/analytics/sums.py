"""Every table of `witan.core.stats.sums`, by the same queries on whatever engine."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from witan.analytics import queries
from witan.analytics.engine import Columns, Engine, SumQuery
from witan.analytics.lake_files import key_of
from witan.core.rules.elo import Match
from witan.core.stats import sums
from witan.core.stats.sums import Names, StandingSums
from witan.core.window import ALWAYS, Window

Table = TypeVar("Table")

KEYS = frozenset(
    {
        *("bucket", "model", "first", "second", "reviewer", "other", "human", "own"),
        *("position", "shown", "measure", "criterion", "band"),
    }
)
"""The columns by which rows of sums are begins; all others are summed."""

AT_ONCE = 40_000
"""Rows that are added up at a time: 7 MB of the widest table."""


class RunningSums(Generic[Table]):
    """A growing table, summed to one row per key when large.

    Parameters
    ----------
    kind
        The table; columns that a query lacks are nought.
    """

    def __init__(self, kind: type[Table]) -> None:
        self._kind = kind
        self._types = {
            column.name: np.float64 if column.type == NDArray[np.float64] else np.int64
            for column in fields(kind)  # type: ignore[arg-type]
        }
        self._parts: list[dict[str, NDArray[Any]]] = []
        self._n_rows = 0

    def add(self, columns: Columns) -> None:
        """Add the rows of a query."""
        n = len(columns["bucket"])
        self._parts.append(
            {
                name: np.asarray(columns[name]).astype(dtype, copy=False)
                if name in columns
                else np.zeros(n, dtype)
                for name, dtype in self._types.items()
            }
        )
        self._n_rows += n
        if self._n_rows > AT_ONCE:
            self._parts = [_add_up(_join(self._parts))]
            self._n_rows = 0

    def table(self) -> Table:
        """Return the sums so far; a key may stand in several rows."""
        return self._kind(**_join(self._parts))


def _join(parts: list[dict[str, NDArray[Any]]]) -> dict[str, NDArray[Any]]:
    if len(parts) == 1:
        return parts[0]
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _add_up(rows: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Add up the rows of each key."""
    keys = [rows[name] for name in rows if name in KEYS]
    order = np.lexsort(keys)
    begins = np.zeros(len(order), np.bool_)
    begins[:1] = True
    for key in keys:
        begins[1:] |= np.diff(key[order]) != 0
    starts = np.flatnonzero(begins)
    return {
        name: column[order[starts]] if name in KEYS else np.add.reduceat(column[order], starts)
        for name, column in rows.items()
    }


Select = Callable[[Columns], Columns]
"""Makes rows of a table of the columns of a query."""


def _all(result: Columns) -> Columns:
    return result


def _select_columns(*columns: str, count: str = "") -> Select:
    """Select columns of the rows with a count above 0."""

    def select(result: Columns) -> Columns:
        rows = np.asarray(result[count or columns[0]]) > 0
        names = KEYS.intersection(result).union(columns)
        return {name: np.asarray(result[name])[rows] for name in names}

    return select


def _overall(result: Columns, count: str, columns: Mapping[str, str]) -> Columns:
    """Select models' grades as a whole, under the criterion −1."""
    rows = (np.asarray(result["human"]) == 0) & (np.asarray(result[count]) > 0)
    values = {name: np.asarray(result[of])[rows] for name, of in columns.items()}
    bucket = np.asarray(result["bucket"])[rows]
    return {**values, "bucket": bucket, "criterion": np.full(len(bucket), -1)}


def _overall_lengths(result: Columns) -> Columns:
    columns = {"lengths": "n_grades", "ll": "grade_ll", "lx": "grade_lx", "xx": "grade_xx"}
    return _overall(result, "n_grades", columns)


def _overall_units(result: Columns) -> Columns:
    columns = {name: f"any_grade_{name}" for name in ("units", "n", "variance")}
    return _overall(result, "any_grade_units", columns)


def _select_units(result: Columns) -> Columns:
    """Select candidates by shares (measure 0) and by grades (1)."""
    parts = list[Columns]()
    for measure, kind in enumerate(("share", "grade")):
        rows = np.asarray(result[f"{kind}_units"]) > 0
        names = {name: f"{kind}_{name}" for name in ("units", "n", "total", "squares", "within")}
        values = {name: np.asarray(result[of])[rows] for name, of in names.items()}
        keys = {name: np.asarray(result[name])[rows] for name in ("bucket", "human")}
        parts.append({**keys, **values, "measure": np.full(int(rows.sum()), measure)})
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _select_placed(result: Columns) -> Columns:
    """Select votes with a known place on the sheet."""
    votes = _select_columns("votes", "total", "excess_votes", "excess")(result)
    known = np.asarray(votes["position"]) > 0
    return {name: column[known] for name, column in votes.items()}


@dataclass(frozen=True, slots=True)
class _Query:
    """A query, its tables and parameters, and its run span by span."""

    sql: str
    fills: Mapping[type[Any], Select]
    params: tuple[str, ...] = ()
    by_span: bool = True


_GRADES = ("n_grades", "x", "y", "xx", "yy", "xy")
_SHARES = ("n_shares", "share_x", "share_y", "share_xx", "share_yy", "share_xy")


def _select_compared(result: Columns) -> Columns:
    """Select reviewers sharing candidates with others."""
    counts = np.asarray(result["n_grades"]) + np.asarray(result["n_shares"])
    return _select_columns(*_GRADES, *_SHARES, count="compared")({**result, "compared": counts})


_QUERIES = (
    _Query(queries.STANDINGS, {sums.StandingSums: _all}, ("rule", "human"), by_span=False),
    _Query(queries.MATCHUPS, {sums.MatchupSums: _all}, ("human",), by_span=False),
    _Query(queries.ANSWERS, {sums.AnswerSums: _all}, by_span=False),
    _Query(queries.PANEL, {sums.PanelSums: _all}, by_span=False),
    _Query(queries.VOTES, {sums.VoteSums: _all}, by_span=False),
    _Query(queries.BALLOTS, {sums.BallotSums: _all}),
    _Query(
        queries.SHEETS,
        {
            sums.BallotSums: _select_columns("gradings", "spread"),
            sums.LengthSums: _select_columns(
                *("ballots", "n", "ll", "lx", "xx"),
                *("n_grades", "grade_ll", "grade_lx", "grade_xx"),
                count="measured",
            ),
            sums.CriterionSums: _overall_lengths,
        },
    ),
    _Query(queries.PAIRS, {sums.LengthSums: _all}),
    _Query(
        queries.BESIDE, {sums.ReviewerSums: _select_compared, sums.PositionSums: _select_placed}
    ),
    _Query(queries.UNITS, {sums.UnitSums: _select_units, sums.CriterionSums: _overall_units}),
    _Query(queries.CRITERIA, {sums.CriterionSums: _all}),
    *(_Query(sql, {sums.GradingSums: _all}) for sql in queries.GRADINGS),
    _Query(queries.HUMANS, {sums.HumanSums: _all}),
    _Query(queries.CALIBRATION, {sums.CalibrationSums: _all}),
)


class Tables:
    """Tables of sums by their types."""

    def __init__(self, tables: Iterable[Any]) -> None:
        self._tables = {type(table): table for table in tables}

    def __getitem__(self, kind: type[Table]) -> Table:
        table: Table = self._tables[kind]
        return table


class WindowSums:
    """Sufficient statistics of a window's sessions, by engine-independent queries.

    A key may stand in several rows of a table, which then add up.
    """

    def __init__(self, engine: Engine, window: Window = ALWAYS) -> None:
        self._engine = engine
        self._window = window

    def names(self) -> Names:
        """Return the name of every code."""
        return self._engine.names()

    def tables(self, *kinds: type[Any], rule: str = "", human: int = 0) -> Tables:
        """Sum several tables in parallel, from the same rows if possible.

        Parameters
        ----------
        kinds
            Tables of `witan.core.stats.sums`.
        rule
            Of the standings.
        human
            Whose ballots are behind standings and matchups: 1 for those of people.
        """
        params: dict[str, int | str] = {"rule": rule, "human": human}
        chosen = [query for query in _QUERIES if not query.fills.keys().isdisjoint(kinds)]
        queries = [
            SumQuery(query.sql, {name: params[name] for name in query.params}, query.by_span)
            for query in chosen
        ]
        running = {kind: RunningSums(kind) for kind in kinds}
        for number, columns in self._engine.sums(queries, self._window):
            for kind, select in chosen[number].fills.items():
                if kind in running:
                    running[kind].add(select(columns))
        return Tables(sums.table() for sums in running.values())

    def table(self, kind: type[Table], *, rule: str = "", human: int = 0) -> Table:
        """Sum one table; see `tables`."""
        return self.tables(kind, rule=rule, human=human)[kind]

    def duplicates(self, now: Mapping[int, int], rule: str, *, human: int = 0) -> StandingSums:
        """Sum corrections of standings for models with several codes per session.

        Added to the standings they leave such a session one score, the mean, and one standing.

        Parameters
        ----------
        now
            Codes of models that have another name now, and of those they are called, to the latter.
        """
        cases = " ".join(f"WHEN {int(old)} THEN {int(new)}" for old, new in sorted(now.items()))
        sql = queries.DUPLICATES.replace("{now}", f"CASE model {cases} END")
        sql = sql.replace("{codes}", ", ".join(str(int(code)) for code in sorted(now)))
        running = RunningSums(StandingSums)
        query = SumQuery(sql, {"rule": rule, "human": human})
        for _, columns in self._engine.sums([query], self._window):
            running.add(columns)
        return running.table()

    def coverage(self, rule: str, *, human: int = 0) -> int:
        """Count sessions with standings under a rule, for one ballot kind."""
        return self._count(SumQuery(queries.COVERAGE, {"rule": rule, "human": human}, False))

    def uncounted(self, rule: str) -> int:
        """Count sessions with ballots never counted under a rule."""
        return self._count(SumQuery(queries.UNCOUNTED, {"rule": rule}))

    def _count(self, query: SumQuery) -> int:
        parts = self._engine.sums([query], self._window)
        return sum(int(columns["n"].sum()) for _, columns in parts)

    def matches(self, *, human: int = 0) -> Iterator[Match]:
        """Read pairs of models session by session, in the order of time.

        Sessions of one moment stand in the order of their keys, which is the same on every engine.
        """
        query = SumQuery(queries.MATCHES, {"human": human})
        for span in self._engine.spans(self._window):
            columns = self._engine.columns(*query.within(span))
            keys = _keys(columns["session"])
            order = np.lexsort((columns["second"], columns["first"], keys, columns["at_us"]))
            pairs = (columns[name][order].tolist() for name in Match._fields[1:])
            yield from map(Match, keys[order].tolist(), *pairs)


def _keys(sessions: NDArray[Any]) -> NDArray[np.int64]:
    """Return the keys of sessions; a database has their names instead."""
    if sessions.dtype != object:
        return sessions.astype(np.int64, copy=False)
    key = {name: key_of(name) for name in set(sessions.tolist())}
    return np.array([key[name] for name in sessions.tolist()], dtype=np.int64)
