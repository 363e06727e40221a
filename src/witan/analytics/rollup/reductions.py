"""The reductions that a leaderboard asks for, from the roll-up as far as it goes."""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from itertools import chain
from types import MappingProxyType
from typing import Any

import numpy as np

from witan.analytics.engines.reductions import Found, Reductions
from witan.analytics.engines.sql_engine import SqlEngine
from witan.analytics.rollup.cells import Cell, blocks, read_cells
from witan.analytics.rollup.matching import read_matches
from witan.analytics.rollup.rolling import SPANS, Node, foreign, marked, stored
from witan.analytics.rollup.tables import NO_RULE, Records, Sums, category_code, joined
from witan.analytics.rollup.whole import Summed, kept_whole, summed
from witan.core.rules.elo import Match
from witan.core.sums import AnswerSums, MatchupSums, PanelSums, StandingSums
from witan.core.window import ALWAYS, Window
from witan.history.database import Database
from witan.history.rows import SHARDS
from witan.history.schema import MICROSECONDS_A_DAY, code_of

__all__ = ["HistoryReductions"]

_ROLLED: Mapping[type[Any], str] = MappingProxyType(
    {
        StandingSums: "standings",
        MatchupSums: "matchups",
        AnswerSums: "answers",
        PanelSums: "panel",
    }
)
"""The tables that are rolled up."""

_NEVER = -(2**31), 2**31 - 1
"""Days before and after all others, as a column holds them."""


class HistoryReductions(Reductions):
    """Reductions of a history in a window, those of a leaderboard by its roll-up.

    Whole days are taken from sums that are kept. What those do not hold is summed from its rows:
    cells that changed since, and the parts of days at the ends of the window. So the roll-up
    decides how long it takes, and never what comes out.

    Parameters
    ----------
    spoilt
        Takes what was kept and cannot be read, which is summed from its rows as well.
    fresh
        Takes what was summed from the rows and may be kept.
    """

    def __init__(
        self,
        database: Database,
        window: Window = ALWAYS,
        spoilt: list[Node] | None = None,
        fresh: list[Summed] | None = None,
    ) -> None:
        super().__init__(SqlEngine(database), window)
        self._database = database
        self._spoilt = spoilt
        self._fresh = fresh
        self._sums: Sums | None = None

    def tables(self, *kinds: type[Any], rule: str = "", human: int = 0) -> Found:
        """Several tables: those of a leaderboard by the roll-up, the others from the rows."""
        rest = [kind for kind in kinds if kind not in _ROLLED]
        found = self._whole(rest)
        rolled = (self._rolled(kind, rule, human) for kind in kinds if kind in _ROLLED)
        return Found([*(found[kind] for kind in rest), *rolled])

    def _whole(self, kinds: Sequence[type[Any]]) -> Found:
        """Tables that are not rolled up: as they are kept, or from the rows."""
        if not kinds:
            return Found([])
        with self._database.snapshot():
            found = kept_whole(self._database, self._window, kinds)
            if found is None:
                found = super().tables(*kinds)
                fresh = summed(self._database, self._window, kinds, found)
                if fresh is not None and self._fresh is not None:
                    self._fresh.append(fresh)
        return found

    def matches(self, *, human: int = 0) -> Iterator[Match]:
        """Pairs of models session by session in the order of time, from the rows as they are."""
        return read_matches(self._database, self._window, human)

    def _rolled(self, kind: type[Any], rule: str, human: int) -> Any:
        rows: Records = getattr(self._held(), _ROLLED[kind])
        if kind in (StandingSums, MatchupSums):
            rows = rows[rows["human"] == human]
        if kind is StandingSums:
            rows = rows[rows["rule"] == code_of(rule)]
        return _table(kind, rows)

    def coverage(self, rule: str, *, human: int = 0) -> int:
        """How many sessions have standings under a rule, among the ballots of one kind."""
        rows = self._held().counted
        return int(rows["people" if human else "models"][rows["rule"] == code_of(rule)].sum())

    def missing(self, rule: str) -> int:
        """How many sessions have ballots that were never counted under a rule."""
        rows = self._held().counted
        cast, counted = (rows["sessions"][rows["rule"] == code_of(r)] for r in (NO_RULE, rule))
        return int(cast.sum() - counted.sum())

    def _held(self) -> Sums:
        """The sums of the window, as of the first time that they are asked for."""
        if self._sums is None:
            with self._database.snapshot():
                self._sums = joined(self._parts())
        return self._sums

    def _parts(self) -> Iterator[Sums]:
        window = self._window
        span = _days(window)
        if foreign(self._database):
            dirty, tops = _all_cells(self._database, *span), list[int]()
        else:
            dirty, tops = marked(self._database, *span), _tops(self._database)
        nodes = list(_cover(*span, tops, dirty))
        edges = (Cell(day, shard) for day in _edges(window) for shard in range(SHARDS))
        for block in blocks(self._database, chain(dirty, edges)):
            yield self._chosen(
                read_cells(
                    self._database, block, since_us=window.since_us, until_us=window.until_us
                )
            )
        for _, sums in stored(self._database, nodes, self._spoilt):
            yield self._chosen(sums)

    def _chosen(self, sums: Sums) -> Sums:
        if self._window.category is None:
            return sums
        code = category_code(self._window.category)
        tables = {field.name: getattr(sums, field.name) for field in fields(Sums)}
        return Sums(**{name: rows[rows["category"] == code] for name, rows in tables.items()})


def _days(window: Window) -> tuple[int, int]:
    """The whole days of a window: the first, and the one after the last."""
    least, most = _NEVER
    first = least if window.since is None else -(-window.since_us // MICROSECONDS_A_DAY)
    last = most if window.until is None else window.until_us // MICROSECONDS_A_DAY
    return first, last


def _edges(window: Window) -> Sequence[int]:
    """Days that are partly in a window."""
    ends = [window.since_us] * (window.since is not None)
    ends += [window.until_us] * (window.until is not None)
    return sorted({us // MICROSECONDS_A_DAY for us in ends if us % MICROSECONDS_A_DAY})


def _all_cells(database: Database, first: int, last: int) -> set[Cell]:
    """The cells of all sessions from one day on and before another."""
    sql = (
        f"SELECT DISTINCT day, bucket % {SHARDS} FROM sessions"  # noqa: S608
        " WHERE day >= :first AND day < :last"
    )
    return {Cell(*row) for row in database.rows(sql, {"first": first, "last": last})}


def _tops(database: Database) -> list[int]:
    """Where the longest spans begin that anything is kept of, be it of a day in them."""
    days = database.rows("SELECT DISTINCT day FROM rollups")
    return sorted({day // SPANS[0] * SPANS[0] for (day,) in days})


def _cover(first: int, last: int, tops: Iterable[int], dirty: Iterable[Cell]) -> Iterator[Node]:
    """The longest spans that lie in a range of days and hold no cell that changed."""
    changed: Mapping[int, list[int]] = defaultdict(list)
    for cell in sorted(dirty):
        changed[cell.shard].append(cell.day)

    def within(level: int, day: int, shard: int) -> Iterator[Node]:
        span = SPANS[level]
        if day + span <= first or day >= last:
            return
        days = changed[shard]
        at = bisect_left(days, day)
        clean = at == len(days) or days[at] >= day + span
        if clean and first <= day and day + span <= last:
            yield Node(span, day, shard)
        elif level + 1 < len(SPANS):
            for child in range(day, day + span, SPANS[level + 1]):
                yield from within(level + 1, child, shard)

    for top in tops:
        for shard in range(SHARDS):
            yield from within(0, top, shard)


def _table(kind: type[Any], rows: Records) -> Any:
    columns = (np.ascontiguousarray(rows[field.name]) for field in fields(kind))
    return kind(*columns)
