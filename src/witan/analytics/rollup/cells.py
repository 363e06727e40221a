"""Cells of a history summed from the rows that its sessions left.

A cell is a part of a day: the sessions asked on it whose bucket, modulo `SHARDS`, is its shard.
This is the definition of `witan.analytics.engines.panel_sql` by another route: rows are read as
they are and added up here, for all rules, kinds and categories in one go.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, combinations
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from witan.analytics.rollup.tables import KEYS, NO_CATEGORY, NO_RULE, Records, Sums, added_up, kinds
from witan.core.entries import BUCKETS
from witan.core.window import EARLIEST_US, LATEST_US
from witan.history.counting import SUPERSEDED_SESSIONS
from witan.history.database import Database, Dialect
from witan.history.rows import SHARDS
from witan.history.schema import code_of

__all__ = ["Cell", "Place", "blocks", "matchup_rows", "read_cells", "split"]

AT_ONCE = 10_000
"""Sessions that are read at a time."""


class Cell(NamedTuple):
    """A part of a day; days are counted from 1970."""

    day: int
    shard: int


Place = tuple[str, ...]

OF_THE_CELL: Place = ("day", "shard")
"""What rows are apart by as well, where cells are."""

_WANTED: dict[Dialect, str] = {
    "sqlite": "SELECT json_extract(value, '$[0]') AS day, json_extract(value, '$[1]') AS bucket"
    " FROM json_each(:cells)",
    "postgresql": "SELECT CAST(value ->> 0 AS INTEGER) AS day,"
    " CAST(value ->> 1 AS INTEGER) AS bucket"
    " FROM jsonb_array_elements(CAST(:cells AS JSONB))",
}


ANSWERED = " AND s.rejudged = 0"
"""Of sessions whose answers are their own: those of others count where they were given."""


def _select(
    columns: str, table: str = "", conditions: str = "", by: str = "", of: str = ANSWERED
) -> str:
    """Rows of the wanted cells' sessions; `t` is the row of a table beside them."""
    joined, same = (f" CROSS JOIN {table} t", " AND t.session = s.session") if table else ("", "")
    # In this order, because SQLite looks sessions up by what stands on the left of CROSS JOIN.
    return (
        f"SELECT s.day, s.bucket, s.category, {columns} FROM wanted w CROSS JOIN sessions s{joined}"  # noqa: S608
        f" WHERE s.day = w.day AND s.bucket = w.bucket AND s.simulated = 0{of}"
        f" AND s.session NOT IN ({SUPERSEDED_SESSIONS})"
        f" AND s.at_us >= :since_us AND s.at_us < :until_us{same}{conditions}{by}"
    )


_VOTED = "EXISTS (SELECT 1 FROM ballots b WHERE b.session = s.session)"
_READ = {
    "standings": _select(
        "t.human, t.rule, t.model, t.score, t.z, t.votes, t.offered, t.wins, s.session",
        "standings",
    ),
    "matchups": _select("t.human, t.models, t.wins, t.losses, t.ties", "matchups"),
    "answers": _select("t.model, t.failed, t.cost_usd, t.seconds", "answers"),
    "panel": _select("s.kendall_w, s.agreement", conditions=" AND s.holder = ''", of=""),
}
"""Table to the query whose rows it is summed from; `counted` is, of several."""

_CAST = _select(f"'{NO_RULE}', 1, 0, 0, s.session", conditions=f" AND {_VOTED}")
"""Sessions with ballots."""

_COUNTED_IN_VAIN = _select(
    f"t.rule, CASE WHEN {_VOTED} THEN 1 ELSE 0 END, 0, 0",
    "counted",
    " AND NOT EXISTS (SELECT 1 FROM standings u WHERE u.session = t.session AND u.rule = t.rule)",
)
"""Sessions that were counted under a rule, which left nothing."""

Columns = Sequence[Sequence[Any]]
Fill = Callable[[Columns], dict[str, NDArray[Any]]]


def blocks(database: Database, cells: Iterable[Cell], span: int = 1) -> Iterator[list[Cell]]:
    """The cells, so many at a time as hold about `AT_ONCE` sessions.

    They come in the order of spans of so many days, within each shard by shard.
    """
    wanted = sorted(cells, key=lambda cell: (cell.day // span, cell.shard, cell.day))
    if not wanted:
        return
    sql = (
        f"SELECT day, bucket % {SHARDS}, COUNT(*) FROM sessions"  # noqa: S608
        f" WHERE day >= :first AND day <= :last GROUP BY day, bucket % {SHARDS}"
    )
    days = [cell.day for cell in wanted]
    given = {"first": min(days), "last": max(days)}
    held = {Cell(day, shard): n for day, shard, n in database.rows(sql, given)}
    block, n_sessions = list[Cell](), 0
    for cell in wanted:
        n = held.get(cell, 0)
        if block and n_sessions + n > AT_ONCE:
            yield block
            block, n_sessions = [], 0
        block.append(cell)
        n_sessions += n
    yield block


def read_cells(
    database: Database,
    cells: Iterable[Cell],
    *,
    since_us: int = EARLIEST_US,
    until_us: int = LATEST_US,
    apart: bool = False,
) -> Sums:
    """The sums of these cells' sessions from a time on and before another.

    Parameters
    ----------
    apart
        Rows are of one cell each, with `day` and `shard` before the other columns: see `split`.
    """
    buckets = [
        [cell.day, bucket] for cell in cells for bucket in range(cell.shard, BUCKETS, SHARDS)
    ]
    given = {"cells": json.dumps(buckets), "since_us": since_us, "until_us": until_us}
    wanted = _WANTED[database.dialect]

    def read(select: str) -> Columns:
        return _columns(database.rows(f"WITH wanted AS ({wanted}) {select}", given))

    sums = {
        table: _summed(table, read(select), apart=apart)
        for table, select in _READ.items()
        if table != "standings"
    }
    standings = read(_READ["standings"])
    sums["standings"] = _summed("standings", standings, apart=apart)
    counted = _under_rules(standings, read(_CAST), read(_COUNTED_IN_VAIN))
    return Sums(**sums, counted=_summed("counted", counted, apart=apart))


def _columns(rows: Sequence[Sequence[Any]]) -> Columns:
    """Rows as columns; `zip` would make an iterator of every row."""
    return [[*map(itemgetter(at), rows)] for at in range(len(rows[0]))] if rows else []


def _under_rules(standings: Columns, cast: Columns, in_vain: Columns) -> Columns:
    """The rows of `counted`: sessions by rule, and those with ballots once more under none."""
    parts: list[Columns] = [in_vain, cast[:-1]]
    if standings:
        voted = set(cast[-1]) if cast else set()
        day, bucket, category, human, rule, *_, session = standings
        pairs = [*zip(session, rule, strict=True)]
        last = {pair: at for at, pair in enumerate(pairs)}
        people = {pair for pair, of_people in zip(pairs, human, strict=True) if of_people}
        models = {pair for pair, of_people in zip(pairs, human, strict=True) if not of_people}
        own = [[column[at] for at in last.values()] for column in (day, bucket, category, rule)]
        own.append([int(name in voted) for name, _ in last])
        own += [[int(pair in found) for pair in last] for found in (models, people)]
        parts.append(own)
    return [[*chain(*columns)] for columns in zip(*filter(None, parts), strict=True)]


def split(sums: Sums) -> dict[Cell, Sums]:
    """Each cell's own sums, of rows that are of one cell each."""
    parts: dict[Cell, dict[str, Records]] = {}
    for table, kind in kinds.items():
        rows = getattr(sums, table)
        if not len(rows):
            continue
        bare = np.empty(len(rows), kind)
        for name in kind.names or ():
            bare[name] = rows[name]
        places, starts = np.unique(rows["day"] * SHARDS + rows["shard"], return_index=True)
        for place, part in zip(places.tolist(), np.split(bare, starts[1:]), strict=True):
            parts.setdefault(Cell(*divmod(place, SHARDS)), {})[table] = part
    empty = {table: np.empty(0, kind) for table, kind in kinds.items()}
    return {cell: Sums(**{**empty, **tables}) for cell, tables in parts.items()}


def _summed(table: str, columns: Columns, *, apart: bool) -> Records:
    """Rows as they were read, added up by their keys."""
    kind, place = kinds[table], OF_THE_CELL if apart else ()
    if apart:
        kind = np.dtype([*((name, "<i8") for name in place), *kind.descr])
    if not columns:
        return np.empty(0, kind)
    day, bucket, category, *rest = columns
    codes = {name: NO_CATEGORY if name is None else code_of(name) for name in set(category)}
    filled = _FILL[table](rest)
    taken = filled.pop("row", None)
    at = {
        "day": np.array(day, np.int64),
        "bucket": np.array(bucket, np.int64),
        "category": np.array([codes[name] for name in category], np.int64),
    }
    if taken is not None:
        at = {name: column[taken] for name, column in at.items()}
    at["shard"] = at["bucket"] % SHARDS
    rows = np.empty(len(at["bucket"]), kind)
    for name in kind.names or ():
        rows[name] = at[name] if name in at else filled[name]
    return added_up(rows, (*place, *KEYS[table]))


def _numbers(values: Sequence[Any]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Where there is a number, and the numbers, 0 where there is none."""
    held = np.array(values, np.float64)
    known = ~np.isnan(held)
    return known.astype(np.int64), np.where(known, held, 0.0)


def _standings(columns: Columns) -> dict[str, NDArray[Any]]:
    human, rule, model, score, z, votes, offered, wins, _ = columns
    codes = {name: code_of(name) for name in set(rule)}
    sessions, total = _numbers(score)
    z_sessions, z_total = _numbers(z)
    return {
        "human": np.array(human, np.int64),
        "rule": np.array([codes[name] for name in rule], np.int64),
        "model": np.array(model, np.int64),
        "appearances": np.ones(len(model), np.int64),
        "sessions": sessions,
        "z_sessions": z_sessions,
        "votes": np.array(votes, np.int64),
        "offered": np.array(offered, np.int64),
        "total": total,
        "squares": total * total,
        "z_total": z_total,
        "wins": np.array(wins, np.float64),
    }


def matchup_rows(columns: Columns) -> dict[str, NDArray[Any]]:
    """Every pair of every row; `row` says whose it is."""
    human, models, *weights = columns
    codes = _lists(models)
    sizes = np.array([len(held) for held in codes], np.int64)
    flat = np.array(list(chain.from_iterable(codes)), np.int64)
    starts = np.cumsum(sizes) - sizes
    row = np.repeat(np.arange(len(sizes)), sizes * (sizes - 1) // 2)
    at = _pairs(sizes[row]) + starts[row][:, None]
    filled = {"row": row, "human": np.array(human, np.int64)[row]}
    filled |= {"first": flat[at[:, 0]], "second": flat[at[:, 1]]}
    for name, texts in zip(("wins", "losses", "ties"), weights, strict=True):
        filled[name] = _numbers(list(chain.from_iterable(_lists(texts))))[1]
    return filled


def _pairs(sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """The places of each pair in its list; `sizes` has the length of the list, for each pair."""
    places = np.empty((len(sizes), 2), np.int64)
    for size in set(sizes.tolist()):
        pairs = np.array(list(combinations(range(size), 2)), np.int64)
        held = np.flatnonzero(sizes == size)
        places[held] = np.tile(pairs, (len(held) // len(pairs), 1))
    return places


def _lists(texts: Sequence[str]) -> list[list[Any]]:
    """Many short lists read as one long text."""
    held: list[list[Any]] = json.loads(f"[{','.join(texts)}]")
    return held


def _answers(columns: Columns) -> dict[str, NDArray[Any]]:
    model, failed, cost, seconds = columns
    costed, cost_usd = _numbers(cost)
    timed, took = _numbers(seconds)
    return {
        "model": np.array(model, np.int64),
        "answers": np.ones(len(model), np.int64),
        "failed": np.array(failed, np.int64),
        "costed": costed,
        "timed": timed,
        "cost_usd": cost_usd,
        "seconds": took,
    }


def _panel(columns: Columns) -> dict[str, NDArray[Any]]:
    concordant, kendall_w = _numbers(columns[0])
    sure, agreement = _numbers(columns[1])
    return {
        "sessions": np.ones(len(sure), np.int64),
        "concordant": concordant,
        "sure": sure,
        "kendall_w": kendall_w,
        "agreement": agreement,
    }


def _counted(columns: Columns) -> dict[str, NDArray[Any]]:
    rule, cast, models, people = columns
    codes = {name: code_of(name) for name in set(rule)}
    return {
        "rule": np.array([codes[name] for name in rule], np.int64),
        "sessions": np.array(cast, np.int64),
        "models": np.array(models, np.int64),
        "people": np.array(people, np.int64),
    }


_FILL: dict[str, Fill] = {
    "standings": _standings,
    "matchups": matchup_rows,
    "answers": _answers,
    "panel": _panel,
    "counted": _counted,
}
