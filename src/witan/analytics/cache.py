"""Cached sums of a history, stored in its database.

The result of a query over the sessions of a cell is stored beside the state of these sessions: how
many are closed, their revisions, when they came in, and which are superseded. A reader takes a
result if the state is the one it sees, and sums the rows of all other cells and of the parts of
cells at the ends of its window. So no writer has to do anything, sums are defined
by the queries alone, and a history that may only be read, or is locked, gives the same numbers.
"""

import json
import struct
import zlib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from hashlib import blake2b
from typing import NamedTuple

import numpy as np

from witan.analytics.engine import Columns, SqlEngine, SumQuery
from witan.analytics.views import with_views
from witan.core.window import EPOCH, Window
from witan.errors import HistoryError
from witan.history.counting import SUPERSEDED_SESSIONS
from witan.history.database import Database
from witan.history.locks import lock_cached_sums
from witan.history.schema import CACHE_DAYS, CACHE_SHARDS, MICROSECONDS_A_DAY
from witan.version import __version__

WAIT_SECONDS = 1.0
"""How long storing sums waits for writers; what is not stored is summed again."""


class CacheCell(NamedTuple):
    """A shard of the sessions in a span of days since 1970."""

    span: int
    shard: int


def _begin(span: int) -> datetime | None:
    """Return the first moment of a span, None if out of range."""
    try:
        return EPOCH + timedelta(days=span * CACHE_DAYS)
    except OverflowError:
        return None


States = Mapping[CacheCell, str]

_FAR = 1_000_000
"""Spans before 1970 that are added before a division, which would round towards 1970."""

_CELL = (
    f"(s.day + {_FAR * CACHE_DAYS}) / {CACHE_DAYS} - {_FAR} AS span,"
    f" s.bucket % {CACHE_SHARDS} AS shard"
)

_STATES = f"""
SELECT {_CELL}, COUNT(*), SUM(s.revision), CAST(SUM(s.added_us % 1000000007) AS BIGINT)
FROM sessions s WHERE s.holder = '' GROUP BY 1, 2
"""  # noqa: S608 - texts of our own

_REPLACED = f"""
SELECT {_CELL}, s.session FROM sessions s WHERE s.session IN ({SUPERSEDED_SESSIONS})
ORDER BY s.session
"""  # noqa: S608 - texts of our own


def states_of(database: Database) -> States:
    """Return the state of the closed sessions of each cell."""
    states = {
        CacheCell(span, shard): repr(counts) for span, shard, *counts in database.rows(_STATES)
    }
    for span, shard, session in database.rows(_REPLACED):
        states[CacheCell(span, shard)] += f" {session}"
    return {
        cell: blake2b(state.encode(), digest_size=12).hexdigest() for cell, state in states.items()
    }


@dataclass(slots=True)
class _Moment:
    """The states of a snapshot, and the results to store."""

    states: States
    fresh: list[tuple[CacheCell, str, bytes]] = field(default_factory=list)


class CachedEngine(SqlEngine):
    """The database of a history, with its cached sums."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self._moment: _Moment | None = None

    @contextmanager
    def moment(self) -> Iterator[None]:
        """Read as of one moment, then store sums; nested moments join."""
        if self._moment is not None:
            yield
            return
        try:
            with self._database.snapshot():
                self._moment = moment = _Moment(states_of(self._database))
                yield
        finally:
            self._moment = None
        if moment.fresh and not self._database.in_transaction:
            _store(self._database, moment)

    def sums(self, queries: Sequence[SumQuery], window: Window) -> Iterator[tuple[int, Columns]]:
        """Run queries one after another; take stored results of unchanged cells."""
        with self.moment():
            assert self._moment is not None  # noqa: S101 - in the block
            cells, edges = _cut(window, self._moment.states)
            for number, query in enumerate(queries):
                for part in self._of_cells(query, window.category, cells):
                    yield number, part
                for edge in edges:
                    yield number, self.columns(*query.within(edge))

    def _of_cells(
        self, query: SumQuery, category: str | None, cells: Sequence[CacheCell]
    ) -> Sequence[Columns]:
        assert self._moment is not None  # noqa: S101 - as its caller
        states, digest = self._moment.states, self._digest(query, category)
        bodies = _read_stored(self._database, digest, cells, states)
        parts = {cell: part for cell in bodies if (part := _unpack(bodies[cell])) is not None}
        missing = defaultdict[int, list[int]](list)
        for cell in cells:
            if cell not in parts:
                missing[cell.span].append(cell.shard)
        for span, shards in missing.items():
            condition = ""
            if len(shards) < CACHE_SHARDS:
                condition = f" AND bucket % {CACHE_SHARDS} IN ({', '.join(map(str, shards))})"
            whole = Window(_begin(span), _begin(span + 1), category)
            result = self.columns(*query.within(whole, condition))
            shard_of = np.asarray(result["bucket"]) % CACHE_SHARDS
            for shard in shards:
                rows = shard_of == shard
                part = {name: column[rows] for name, column in result.items()}
                parts[CacheCell(span, shard)] = part
                self._moment.fresh.append((CacheCell(span, shard), digest, _pack(part)))
        # In one order, so that sums are the same to the last bit whatever was stored.
        return [_join([parts[cell] for cell in cells])] if cells else []

    def _digest(self, query: SumQuery, category: str | None) -> str:
        """Return a digest of the query, its views and Witan's version."""
        sql = with_views(query.sql, self._database.dialect)
        parts = json.dumps([__version__, sql, sorted(query.params.items()), category])
        return blake2b(parts.encode(), digest_size=12).hexdigest()


def _cut(window: Window, states: States) -> tuple[list[CacheCell], list[Window]]:
    """Cut a window into whole cells and the parts at its ends."""
    length = CACHE_DAYS * MICROSECONDS_A_DAY
    first = None if window.since is None else -(-window.since_us // length)
    last = None if window.until is None else window.until_us // length
    cells = [
        cell
        for cell in sorted(states)
        if (first is None or cell.span >= first) and (last is None or cell.span < last)
    ]
    if not cells:
        return [], [window]
    edges = []
    if first is not None and window.since_us < first * length:
        edges.append(Window(window.since, _begin(first), window.category))
    if last is not None and last * length < window.until_us:
        edges.append(Window(_begin(last), window.until, window.category))
    return cells, edges


def _read_stored(
    database: Database, digest: str, cells: Sequence[CacheCell], states: States
) -> dict[CacheCell, bytes]:
    """Read the stored results of unchanged cells."""
    if not cells:
        return {}
    rows = database.rows(
        "SELECT span, shard, state, body FROM cached_sums"
        " WHERE query = :query AND span >= :first AND span <= :last",
        {"query": digest, "first": cells[0].span, "last": cells[-1].span},
    )
    chosen = {*cells}
    return {
        cell: body
        for span, shard, state, body in rows
        if (cell := CacheCell(span, shard)) in chosen and states[cell] == state
    }


def _store(database: Database, moment: _Moment) -> None:
    """Store results, except of cells changed meanwhile."""
    columns = ("span", "shard", "query", "state", "body")
    sql = "DELETE FROM cached_sums WHERE query = :query AND span = :span AND shard = :shard"
    with suppress(HistoryError), database.transaction(wait=WAIT_SECONDS):
        lock_cached_sums(database)
        now = states_of(database)
        rows = [
            (*cell, query, moment.states[cell], body)
            for cell, query, body in moment.fresh
            if now.get(cell) == moment.states[cell]
        ]
        for span, shard, query, *_ in rows:
            database.execute(sql, {"query": query, "span": span, "shard": shard})
        database.insert("cached_sums", columns, rows)


_KINDS = {"i": np.dtype("<i8"), "f": np.dtype("<f8")}
_LENGTH = struct.Struct("<I")


def _pack(columns: Columns) -> bytes:
    """Pack columns: names and kinds, then each column, eight bytes a number."""
    kinds = {name: "i" if column.dtype.kind == "i" else "f" for name, column in columns.items()}
    head = json.dumps(kinds).encode()
    arrays = (np.asarray(column, _KINDS[kinds[name]]) for name, column in columns.items())
    body = b"".join(array.tobytes() for array in arrays)
    return zlib.compress(_LENGTH.pack(len(head)) + head + body, 1)


def _unpack(body: bytes) -> Columns | None:
    """Unpack columns; None if the bytes are damaged."""
    with suppress(zlib.error, ValueError, struct.error, KeyError):
        raw = zlib.decompress(body)
        start = _LENGTH.size + _LENGTH.unpack_from(raw)[0]
        kinds: Mapping[str, str] = json.loads(raw[_LENGTH.size : start])
        n = (len(raw) - start) // (8 * len(kinds))
        return {
            name: np.frombuffer(raw, _KINDS[kind], n, start + 8 * n * place)
            for place, (name, kind) in enumerate(kinds.items())
        }
    return None


def _join(parts: Sequence[Columns]) -> Columns:
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
