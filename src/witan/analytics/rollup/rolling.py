"""Bringing the roll-up up to date, a block of cells at a time.

Every write of a session's rows leaves a mark on its cell, in the same transaction. A cell is summed
from the rows as they are after its marks were read, and then, in one transaction, its sums are
kept and exactly those marks are deleted. Where a mark is gone by then, another process has been
faster, and what it kept stands. Where there is one more, a session was written or forgotten in
between, and nothing is kept.

Above the cells are spans of `SPANS` days, each the sum of those below it. A span is summed in the
transaction that deletes the last mark in it, so that it holds whatever no mark lies in, and is not
summed again for each of many.
"""

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from secrets import token_hex
from typing import Any, NamedTuple

from witan.analytics.rollup.cells import Cell, blocks, read_cells, split
from witan.analytics.rollup.packing import VERSION, pack, unpack
from witan.analytics.rollup.tables import KEYS, Sums, added_up, joined
from witan.analytics.rollup.whole import new_generation
from witan.errors import HistoryError
from witan.history.database import Database, Dialect
from witan.history.locks import lock_sums
from witan.history.rows import SHARDS

__all__ = ["SPANS", "Node", "foreign", "marked", "mend", "roll_up", "stored"]

SPANS = (1024, 32, 1)
"""Days that a kept sum covers; each span begins at a multiple of its length."""

WAIT_SECONDS = 1.0
"""How long a roll-up waits for whoever writes; what is not rolled up is summed as it is read."""


class Node(NamedTuple):
    """A kept sum: of a shard of so many days from this one on."""

    span: int
    day: int
    shard: int


_NODES: dict[Dialect, str] = {
    "sqlite": "SELECT json_extract(value, '$[0]') AS span, json_extract(value, '$[1]') AS day,"
    " json_extract(value, '$[2]') AS shard FROM json_each(:nodes)",
    "postgresql": "SELECT CAST(value ->> 0 AS INTEGER) AS span,"
    " CAST(value ->> 1 AS INTEGER) AS day, CAST(value ->> 2 AS INTEGER) AS shard"
    " FROM jsonb_array_elements(CAST(:nodes AS JSONB))",
}
_TOKENS: dict[Dialect, str] = {
    "sqlite": "SELECT value FROM json_each(:tokens)",
    "postgresql": "SELECT value FROM jsonb_array_elements_text(CAST(:tokens AS JSONB))",
}
_COLUMNS = ("span", "day", "shard", "version", "body")


def roll_up(database: Database) -> bool:
    """Bring the sums that are kept up to date; whether that could be done.

    Where it cannot, because the history may only be read or somebody keeps it locked, nothing is
    lost: what is marked is summed from its rows by whoever reads.
    """
    if database.in_transaction:
        return False
    try:
        if foreign(database):
            _mark_everything(database)
        marks = _marks(database)
        if not marks:
            return True
        with database.transaction(wait=WAIT_SECONDS):
            # Before anything is summed: whether it could be kept.
            database.execute("DELETE FROM changes WHERE token = ''")
        for block in blocks(database, marks, SPANS[-2]):
            sums = split(read_cells(database, block, apart=True))
            _keep(database, {cell: marks[cell] for cell in block}, sums)
    except HistoryError:
        return False
    return True


def foreign(database: Database) -> bool:
    """Whether some sums were kept by a Witan that packs them otherwise."""
    for sign in ("<", ">"):
        sql = f"SELECT 1 FROM rollups WHERE version {sign} :version LIMIT 1"  # noqa: S608
        if database.rows(sql, {"version": VERSION}):
            return True
    return False


def marked(database: Database, first: int, last: int) -> set[Cell]:
    """The cells from one day on and before another whose sums are not true any more."""
    sql = "SELECT DISTINCT day, shard FROM changes WHERE day >= :first AND day < :last"
    return {Cell(*row) for row in database.rows(sql, {"first": first, "last": last})}


def stored(
    database: Database, nodes: Iterable[Node], spoilt: list[Node] | None = None
) -> Iterator[tuple[Node, Sums]]:
    """The sums that are kept of these; of one without sessions there are none.

    Sums that cannot be read are made again of the rows, and their node is added to `spoilt`.
    """
    sql = (
        f"WITH wanted AS ({_NODES[database.dialect]}) SELECT r.span, r.day, r.shard, r.body"  # noqa: S608
        " FROM wanted w CROSS JOIN rollups r"
        " WHERE r.span = w.span AND r.day = w.day AND r.shard = w.shard"
    )
    for *node, body in database.rows(sql, {"nodes": json.dumps(list(nodes))}):
        try:
            sums = unpack(body)
        except ValueError:
            sums = _of_rows(database, Node(*node))
            if spoilt is not None:
                spoilt.append(Node(*node))
        yield Node(*node), sums


def mend(database: Database, spoilt: Iterable[Node]) -> None:
    """Have sums that could not be read kept anew; what cannot be written stays as it is."""
    with suppress(HistoryError):
        for node in sorted(set(spoilt)):
            with database.transaction(wait=WAIT_SECONDS):
                lock_sums(database)
                marks = [(token_hex(8), *cell) for cell in _cells(database, node)]
                database.insert("changes", ("token", "day", "shard"), marks)
                database.execute(
                    "DELETE FROM rollups WHERE span = :span AND day = :day AND shard = :shard",
                    node._asdict(),
                )
        roll_up(database)


def _cells(database: Database, node: Node) -> list[Cell]:
    """The cells of the sessions that a sum is of."""
    sql = (
        f"SELECT DISTINCT day FROM sessions WHERE day >= :day AND day < :end"  # noqa: S608
        f" AND bucket % {SHARDS} = :shard ORDER BY day"
    )
    given = {"day": node.day, "end": node.day + node.span, "shard": node.shard}
    return [Cell(day, node.shard) for (day,) in database.rows(sql, given)]


def _of_rows(database: Database, node: Node) -> Sums:
    """The sums of a node as its sessions are."""
    return joined(read_cells(database, block) for block in blocks(database, _cells(database, node)))


def _mark_everything(database: Database) -> None:
    sql = f"SELECT DISTINCT day, bucket % {SHARDS} FROM sessions"  # noqa: S608
    with database.transaction(wait=WAIT_SECONDS):
        lock_sums(database)
        database.execute("DELETE FROM rollups")
        marks = [(token_hex(8), day, shard) for day, shard in database.rows(sql)]
        database.insert("changes", ("token", "day", "shard"), marks)


def _marks(database: Database) -> dict[Cell, list[str]]:
    """Marked cells, each with its marks."""
    found: dict[Cell, list[str]] = defaultdict(list)
    for token, day, shard in database.rows("SELECT token, day, shard FROM changes"):
        found[Cell(day, shard)].append(token)
    return dict(found)


def _keep(
    database: Database, marks: Mapping[Cell, Sequence[str]], sums: Mapping[Cell, Sums]
) -> None:
    """Keep the sums of cells that have just these marks still, and of the spans above them."""
    listed = _TOKENS[database.dialect]
    given = {"tokens": json.dumps([token for tokens in marks.values() for token in tokens])}
    with database.transaction(wait=WAIT_SECONDS):
        lock_sums(database)
        sql = f"SELECT token FROM changes WHERE token IN ({listed})"  # noqa: S608
        there = {token for (token,) in database.rows(sql, given)}
        n_marks = _n_marks(database, marks)
        cells = [
            cell
            for cell, tokens in marks.items()
            if there.issuperset(tokens) and n_marks[cell] == len(tokens)
        ]
        done = {"tokens": json.dumps([token for cell in cells for token in marks[cell]])}
        database.execute(f"DELETE FROM changes WHERE token IN ({listed})", done)  # noqa: S608
        new_generation(database)
        fresh = {Node(1, *cell): sums.get(cell) for cell in cells}
        _put(database, fresh)
        for span, below in zip(SPANS[-2::-1], SPANS[:0:-1], strict=True):
            above = {Node(span, cell.day // span * span, cell.shard) for cell in cells}
            clean = sorted(above - _dirty(database, above))
            fresh = {node: _of_those_below(database, node, below, fresh) for node in clean}
            _put(database, fresh)


def _n_marks(database: Database, cells: Collection[Cell]) -> dict[Cell, int]:
    """How many marks the cells of these days have."""
    days = [cell.day for cell in cells]
    sql = (
        "SELECT day, shard, COUNT(*) FROM changes WHERE day >= :first AND day <= :last"
        " GROUP BY day, shard"
    )
    counted = database.rows(sql, {"first": min(days), "last": max(days)})
    return {Cell(day, shard): n for day, shard, n in counted}


def _dirty(database: Database, nodes: Collection[Node]) -> set[Node]:
    """The spans, of one length, that some mark lies in; whoever deletes the last one sums them."""
    if not nodes:
        return set()
    days = [node.day for node in nodes]
    [span] = {node.span for node in nodes}
    cells = marked(database, min(days), max(days) + span)
    return {Node(span, cell.day // span * span, cell.shard) for cell in cells}


def _of_those_below(
    database: Database, node: Node, below: int, fresh: Mapping[Node, Sums | None]
) -> Sums | None:
    """The sums of a longer span, of those below it; `fresh` ones need not be unpacked again."""
    parts = {Node(below, day, node.shard) for day in range(node.day, node.day + node.span, below)}
    held = [sums for part in sorted(parts & fresh.keys()) if (sums := fresh[part]) is not None]
    held += [sums for _, sums in stored(database, sorted(parts - fresh.keys()))]
    if not held:
        return None
    whole = joined(held)
    return Sums(**{table: added_up(getattr(whole, table), keys) for table, keys in KEYS.items()})


def _put(database: Database, sums: Mapping[Node, Sums | None]) -> None:
    """Keep sums in the place of what was kept before; what sums nothing is not kept."""
    wanted = _NODES[database.dialect]
    sql = f"DELETE FROM rollups WHERE (span, day, shard) IN ({wanted})"  # noqa: S608
    database.execute(sql, {"nodes": json.dumps(list(sums))})
    rows: list[tuple[Any, ...]] = [
        (*node, VERSION, pack(held))
        for node, held in sums.items()
        if held is not None and len(held)
    ]
    database.insert("rollups", _COLUMNS, rows)
