"""Every table of `witan.core.stats.sums`, by the same queries on every engine.

A history caches sums: the result of a query over the sessions of a span of days is stored with the
state of these sessions: how many are closed, their revisions, when they were added, and which are
superseded. A reader uses a result if it sees the same state. In a changed span it uses the rows of
the unchanged buckets, and sums the sessions of the other buckets, and of the partial spans at the
ends of its window. Writers need not update sums, only the queries define them, and a read-only or
locked history gives the same numbers.
"""

import json
import struct
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from functools import cache
from hashlib import blake2b
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from witan.analytics import queries
from witan.analytics.lake import key_of
from witan.analytics.views import Columns, Engine, SqlEngine, SumQuery, with_views
from witan.core.rules.elo import Match
from witan.core.stats import sums
from witan.core.stats.leaderboard import ALWAYS, EPOCH, Window
from witan.core.stats.sums import Names, StandingSums
from witan.errors import HistoryError
from witan.history.database import Database, lock_cached_sums
from witan.history.schema import CACHE_DAYS, MICROSECONDS_A_DAY, SUPERSEDED_SESSIONS
from witan.version import __version__

Table = TypeVar("Table")

KEYS = frozenset(
    {
        *("bucket", "model", "first", "second", "reviewer", "other", "human", "own"),
        *("position", "shown", "measure", "criterion", "band"),
    }
)
"""Key columns of a row of sums; all others are summed."""

BLOCK_ROWS = 40_000
"""Number of rows added up together: 7 MB of the widest table."""


class RunningSums(Generic[Table]):
    """A growing table, reduced to one row per key when large.

    `kind`: the table; columns missing from a query are zero.
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
        if self._n_rows > BLOCK_ROWS:
            self._parts = [_add_up(_join(self._parts))]
            self._n_rows = 0

    def table(self) -> Table:
        """Return the sums so far; a key may be in several rows."""
        return self._kind(**_join(self._parts))


def _add_up(rows: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Add the rows of each key."""
    keys = [_narrow_key(rows[name]) for name in rows if name in KEYS]
    order = np.lexsort(keys)
    begins = np.zeros(len(order), np.bool_)
    begins[:1] = True
    for key in keys:
        sorted_key = key[order]
        begins[1:] |= sorted_key[1:] != sorted_key[:-1]
    starts = np.flatnonzero(begins)
    return {
        name: column[order[starts]] if name in KEYS else np.add.reduceat(column[order], starts)
        for name, column in rows.items()
    }


def _narrow_key(key: NDArray[Any]) -> NDArray[Any]:
    """Number a key's values in order, in 16 bits if they suffice."""
    most = np.iinfo(np.uint16).max
    low, high = (int(key.min()), int(key.max())) if len(key) else (0, 0)
    if high - low <= most:
        return (key - low).astype(np.uint16)
    values = np.unique(key)
    return np.searchsorted(values, key).astype(np.uint16) if len(values) <= most else key


Select = Callable[[Columns], Columns]
"""Converts the columns of a query to rows of a table."""


def _select_all(result: Columns) -> Columns:
    return result


def _select_columns(*columns: str, count: str = "") -> Select:
    """Return these columns of rows with a count above 0."""

    def select(result: Columns) -> Columns:
        rows = np.asarray(result[count or columns[0]]) > 0
        names = KEYS.intersection(result).union(columns)
        return {name: np.asarray(result[name])[rows] for name in names}

    return select


def _overall(result: Columns, count: str, columns: Mapping[str, str]) -> Columns:
    """Select models' holistic grades, under the criterion −1."""
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
    """Select votes with a known position on the sheet."""
    votes = _select_columns("votes", "total", "excess_votes", "excess")(result)
    is_known = np.asarray(votes["position"]) > 0
    return {name: column[is_known] for name, column in votes.items()}


@dataclass(frozen=True, slots=True)
class _Query:
    """A query, its tables and parameters, and whether it runs by span."""

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
    _Query(queries.STANDINGS, {sums.StandingSums: _select_all}, ("rule", "human"), by_span=False),
    _Query(queries.MATCHUPS, {sums.MatchupSums: _select_all}, ("human",), by_span=False),
    _Query(queries.ANSWERS, {sums.AnswerSums: _select_all}, by_span=False),
    _Query(queries.PANEL, {sums.PanelSums: _select_all}, by_span=False),
    _Query(queries.VOTES, {sums.VoteSums: _select_all}, by_span=False),
    _Query(queries.BALLOTS, {sums.BallotSums: _select_all}),
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
    _Query(queries.PAIRS, {sums.LengthSums: _select_all}),
    _Query(
        queries.PAIRS_WITH_OTHERS,
        {sums.ReviewerSums: _select_compared, sums.PositionSums: _select_placed},
    ),
    _Query(queries.UNITS, {sums.UnitSums: _select_units, sums.CriterionSums: _overall_units}),
    _Query(queries.CRITERIA, {sums.CriterionSums: _select_all}),
    *(_Query(sql, {sums.GradingSums: _select_all}) for sql in queries.GRADINGS),
    _Query(queries.HUMANS, {sums.HumanSums: _select_all}),
    _Query(queries.CALIBRATION, {sums.CalibrationSums: _select_all}),
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

    A key may be in several rows of a table, which then add up.
    """

    def __init__(self, engine: Engine, window: Window = ALWAYS) -> None:
        self._engine = engine
        self._window = window

    def names(self) -> Names:
        """Return the name of every code."""
        return self._engine.names()

    def tables(self, *kinds: type[Any], rule: str = "", human: int = 0) -> Tables:
        """Sum several tables in parallel, from the same rows if possible.

        `kinds`: tables of `witan.core.stats.sums`.
        `human`: ballots behind standings and matchups: 1 for people's, 0 for models'.
        """
        params: dict[str, int | str] = {"rule": rule, "human": human}
        needed_queries = [query for query in _QUERIES if not query.fills.keys().isdisjoint(kinds)]
        queries = [
            SumQuery(query.sql, {name: params[name] for name in query.params}, query.by_span)
            for query in needed_queries
        ]
        running_sums = {kind: RunningSums(kind) for kind in kinds}
        for number, columns in self._engine.sums(queries, self._window):
            for kind, select in needed_queries[number].fills.items():
                if kind in running_sums:
                    running_sums[kind].add(select(columns))
        return Tables(sums.table() for sums in running_sums.values())

    def table(self, kind: type[Table], *, rule: str = "", human: int = 0) -> Table:
        """Sum one table; see `tables`."""
        return self.tables(kind, rule=rule, human=human)[kind]

    def duplicates(
        self, current_codes: Mapping[int, int], rule: str, *, human: int = 0
    ) -> StandingSums:
        """Sum corrections of standings for models with several codes per session.

        Added to the standings, they leave one score, the mean, and one standing per session.

        `current_codes`: code → current code, for models renamed and those with their current name.
        """
        cases = " ".join(
            f"WHEN {int(old)} THEN {int(new)}" for old, new in sorted(current_codes.items())
        )
        sql = queries.DUPLICATES.replace("{now}", f"CASE model {cases} END")
        sql = sql.replace("{codes}", ", ".join(str(int(code)) for code in sorted(current_codes)))
        running_sums = RunningSums(StandingSums)
        query = SumQuery(sql, {"rule": rule, "human": human})
        for _, columns in self._engine.sums([query], self._window):
            running_sums.add(columns)
        return running_sums.table()

    def coverage(self, rule: str, *, human: int = 0) -> int:
        """Count sessions with standings under a rule, for one ballot kind."""
        return self._count(SumQuery(queries.COVERAGE, {"rule": rule, "human": human}, False))

    def count_uncounted(self, rule: str) -> int:
        """Count sessions with ballots never counted under a rule."""
        return self._count(SumQuery(queries.UNCOUNTED, {"rule": rule}))

    def _count(self, query: SumQuery) -> int:
        parts = self._engine.sums([query], self._window)
        return sum(int(columns["n"].sum()) for _, columns in parts)

    def matches(self, *, human: int = 0) -> Iterator[Match]:
        """Read pairs of models session by session, in chronological order.

        Sessions of the same time are in the order of their keys, the same on every engine.
        """
        query = SumQuery(queries.MATCHES, {"human": human})
        for span in self._engine.spans(self._window):
            columns = self._engine.columns(*query.restrict(span))
            keys = _keys(columns["session"])
            order = np.lexsort((columns["second"], columns["first"], keys, columns["at_us"]))
            pairs = (columns[name][order].tolist() for name in Match._fields[1:])
            yield from map(Match, keys[order].tolist(), *pairs)


def _keys(sessions: NDArray[Any]) -> NDArray[np.int64]:
    """Return the keys of sessions, computed from names if needed."""
    if sessions.dtype != object:
        return sessions.astype(np.int64, copy=False)
    key = {name: key_of(name) for name in set(sessions.tolist())}
    return np.array([key[name] for name in sessions.tolist()], dtype=np.int64)


WAIT_SECONDS = 1.0
"""Lock timeout of storing sums in seconds; sums not stored are computed again."""


def _begin(span: int) -> datetime | None:
    """Return the start of a span, or None if out of range."""
    try:
        return EPOCH + timedelta(days=span * CACHE_DAYS)
    except OverflowError:
        return None


States = Mapping[int, str]
"""Span, in `CACHE_DAYS` since 1970, to a digest of the state of its sessions."""

_SPAN_OFFSET = 1_000_000
"""Spans added before a division, which would round dates before 1970 up."""

_SPAN = f"(s.day + {_SPAN_OFFSET * CACHE_DAYS}) / {CACHE_DAYS} - {_SPAN_OFFSET} AS span"

_STATE_SQL = "COUNT(*), SUM(s.revision), CAST(SUM(s.added_us % 1000000007) AS BIGINT)"

_SPAN_STATES_SQL = f"""
SELECT {_SPAN}, {_STATE_SQL} FROM sessions s
WHERE s.holder = '' AND s.day >= :since AND s.day < :until GROUP BY 1
"""  # noqa: S608 - texts of our own

_BUCKET_STATES_SQL = f"""
SELECT s.bucket, {_STATE_SQL} FROM sessions s
WHERE s.holder = '' AND s.day >= :since AND s.day < :until GROUP BY s.bucket
"""  # noqa: S608 - texts of our own

_REPLACED_SQL = f"""
SELECT {_SPAN}, s.bucket, s.session FROM sessions s WHERE s.session IN ({SUPERSEDED_SESSIONS})
ORDER BY s.session
"""  # noqa: S608 - texts of our own


def _days(first: int, last: int) -> dict[str, int]:
    return {"since": first * CACHE_DAYS, "until": (last + 1) * CACHE_DAYS}


class _Moment:
    """The states of a snapshot, and the results to store."""

    def __init__(
        self, database: Database, first: int = -_SPAN_OFFSET, last: int = _SPAN_OFFSET
    ) -> None:
        self._database = database
        self.new_results: list[tuple[int, str, _Packed]] = []
        self._replaced_by_day = defaultdict[int, list[tuple[int, str]]](list)
        self._bucket_states: dict[int, Mapping[int, int]] = {}
        states = {
            span: repr(counts)
            for span, *counts in database.rows(_SPAN_STATES_SQL, _days(first, last))
        }
        for span, bucket, session in database.rows(_REPLACED_SQL):
            self._replaced_by_day[span].append((bucket, session))
            if first <= span <= last:
                states[span] += f" {session}"
        self.states: States = {
            span: blake2b(state.encode(), digest_size=12).hexdigest()
            for span, state in states.items()
        }

    def bucket_states(self, span: int) -> Mapping[int, int]:
        """Return the state of the closed sessions per bucket of a span."""
        if span not in self._bucket_states:
            rows = self._database.rows(_BUCKET_STATES_SQL, _days(span, span))
            states = {bucket: repr(counts) for bucket, *counts in rows}
            for bucket, session in self._replaced_by_day[span]:
                states[bucket] += f" {session}"
            self._bucket_states[span] = {
                bucket: int.from_bytes(
                    blake2b(state.encode(), digest_size=8).digest(), "little", signed=True
                )
                for bucket, state in states.items()
            }
        return self._bucket_states[span]


class CachedEngine(SqlEngine):
    """The database of a history, with its cached sums."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self._moment: _Moment | None = None

    @contextmanager
    def moment(self) -> Iterator[None]:
        """Read one consistent state, then store sums; nested calls join."""
        if self._moment is not None:
            yield
            return
        try:
            with self._database.snapshot():
                self._moment = moment = _Moment(self._database)
                yield
        finally:
            self._moment = None
        if moment.new_results and not self._database.in_transaction:
            _store(self._database, moment)

    def sums(self, queries: Sequence[SumQuery], window: Window) -> Iterator[tuple[int, Columns]]:
        """Run queries in sequence; use stored results of unchanged spans."""
        with self.moment():
            assert self._moment is not None  # noqa: S101 - called within `moment`
            spans, edges = _split_window(window, self._moment.states)
            for number, query in enumerate(queries):
                if spans:
                    yield number, self._of_spans(query, window.category, spans)
                for edge in edges:
                    yield number, self.columns(*query.restrict(edge))

    def _of_spans(self, query: SumQuery, category: str | None, spans: Sequence[int]) -> Columns:
        moment = self._moment
        assert moment is not None  # noqa: S101 - as its caller
        digest = self._digest(query, category)
        stored_parts = _read_stored(self._database, digest, spans)
        parts = []
        for span in spans:
            state, part = stored_parts.get(span, ("", None))
            if part is None or state != moment.states[span]:
                part = self._update(query, category, span, part)
                moment.new_results.append((span, digest, part))
            parts.append(part)
        # In a fixed order, so that sums are identical with any cache.
        return _join([part.columns for part in parts])

    def _update(
        self, query: SumQuery, category: str | None, span: int, part: "_Packed | None"
    ) -> "_Packed":
        """Sum the changed buckets of a span."""
        assert self._moment is not None  # noqa: S101 - as its caller
        states = self._moment.bucket_states(span)
        unchanged = None if part is None else part.select(states)
        condition = ""
        if unchanged is not None and unchanged.states:
            missing = sorted(states.keys() - unchanged.states.keys())
            # The plus sign prevents an index, so that rows are always added in the same order.
            condition = f" AND +bucket IN ({', '.join(map(str, missing)) or 'NULL'})"
        packed = Window(_begin(span), _begin(span + 1), category)
        columns = self.columns(*query.restrict(packed, condition))
        if unchanged is not None:
            columns = _join([unchanged.columns, columns])
        order = np.argsort(columns["bucket"], kind="stable")
        return _Packed(states, {name: _narrow(cells[order]) for name, cells in columns.items()})

    def _digest(self, query: SumQuery, category: str | None) -> str:
        """Return a digest of the query, its views and Witan's version."""
        sql = with_views(query.sql, self._database.dialect)
        parts = json.dumps([__version__, _FORMAT, sql, sorted(query.params.items()), category])
        return blake2b(parts.encode(), digest_size=12).hexdigest()


def _split_window(window: Window, states: States) -> tuple[list[int], list[Window]]:
    """Cut a window into whole spans and the parts at its ends."""
    length = CACHE_DAYS * MICROSECONDS_A_DAY
    first = None if window.since is None else -(-window.since_us // length)
    last = None if window.until is None else window.until_us // length
    spans = [
        span
        for span in sorted(states)
        if (first is None or span >= first) and (last is None or span < last)
    ]
    if not spans:
        return [], [window]
    edges = []
    if first is not None and window.since_us < first * length:
        edges.append(Window(window.since, _begin(first), window.category))
    if last is not None and last * length < window.until_us:
        edges.append(Window(_begin(last), window.until, window.category))
    return spans, edges


def _read_stored(
    database: Database, digest: str, spans: Sequence[int]
) -> dict[int, tuple[str, "_Packed | None"]]:
    rows = database.rows(
        "SELECT span, state, body FROM cached_sums"
        " WHERE query = :query AND span >= :first AND span <= :last",
        {"query": digest, "first": spans[0], "last": spans[-1]},
    )
    return {span: (state, _decompress(body)) for span, state, body in rows}


def _store(database: Database, moment: _Moment) -> None:
    """Store results without the buckets that changed meanwhile."""
    columns = ("span", "query", "state", "body")
    sql = "DELETE FROM cached_sums WHERE query = :query AND span = :span"
    bodies = [part.compress() for _, _, part in moment.new_results]
    with suppress(HistoryError), database.transaction(wait=WAIT_SECONDS):
        lock_cached_sums(database)
        spans = [span for span, *_ in moment.new_results]
        current = _Moment(database, min(spans), max(spans))
        rows = []
        for (span, query, part), body in zip(moment.new_results, bodies, strict=True):
            state = moment.states[span]
            if current.states.get(span) != state:
                unchanged = part.select(current.bucket_states(span))
                if not unchanged.states:
                    continue
                state, body = _INCOMPLETE, unchanged.compress()  # noqa: PLW2901
            rows.append((span, query, state, body))
            database.execute(sql, {"query": query, "span": span})
        database.insert("cached_sums", columns, rows)


_INCOMPLETE = ""
"""State of a span whose result lacks buckets: that of no sessions."""

_LENGTHS = struct.Struct("<III")

_FORMAT = 3
"""Format of stored results; other formats are ignored."""


class _Packed(NamedTuple):
    """Return columns in their narrowest types, in the order of buckets.

    `states`: bucket to the state of its sessions; a bucket may have no rows.
    """

    states: Mapping[int, int]
    columns: Columns

    def compress(self) -> bytes:
        """Encode a span: lengths, names and types in JSON, states, columns."""
        head = json.dumps({name: column.dtype.str for name, column in self.columns.items()})
        states = np.array([*self.states.items()], "<i8").tobytes()
        lengths = _LENGTHS.pack(len(head), len(states), len(self.columns["bucket"]))
        cells = (np.asarray(column).tobytes() for column in self.columns.values())
        return zlib.compress(b"".join([lengths, head.encode(), states, *cells]), 1)

    def select(self, states: Mapping[int, int]) -> "_Packed":
        """Return the buckets with these states."""
        unchanged = dict(self.states.items() & states.items())
        rows = np.isin(self.columns["bucket"], [*unchanged])
        return _Packed(unchanged, {name: column[rows] for name, column in self.columns.items()})


def _narrow(column: NDArray[Any]) -> NDArray[Any]:
    """Return a column in the narrowest type that contains the same numbers."""
    if column.dtype.kind != "i":
        column = np.asarray(column, "<f8")
        with np.errstate(over="ignore"):
            single = column.astype("<f4")
        return single if np.array_equal(single, column) else column
    low, high = (column.min(), column.max()) if len(column) else (0, 0)
    narrow = (np.iinfo(kind) for kind in ("i1", "<i2", "<i4"))
    fits = (limits.dtype for limits in narrow if limits.min <= low and high <= limits.max)
    return column.astype(next(fits, np.dtype("<i8")))


def _decompress(body: bytes) -> _Packed | None:
    """Decompress a stored result; return None if it is damaged."""
    with suppress(zlib.error, ValueError, struct.error, KeyError, TypeError, AttributeError):
        raw = zlib.decompress(body)
        head_length, states_length, n_rows = _LENGTHS.unpack_from(raw)
        middle = _LENGTHS.size + head_length
        end = middle + states_length
        states = np.frombuffer(raw[middle:end], "<i8").reshape(-1, 2).tolist()
        columns: dict[str, NDArray[Any]] = {}
        for name, kind in _read_head(raw[_LENGTHS.size : middle]).items():
            columns[name] = np.frombuffer(raw, kind, count=n_rows, offset=end)
            end += kind.itemsize * n_rows
        return _Packed(dict(states), columns)
    return None


@cache
def _read_head(head: bytes) -> Mapping[str, np.dtype[Any]]:
    return {name: np.dtype(kind) for name, kind in json.loads(head).items()}


def _join(parts: Sequence[Columns]) -> dict[str, NDArray[Any]]:
    """Join parts as columns of eight-byte numbers."""
    joined = {}
    for name in parts[0]:
        columns = [part[name] for part in parts]
        is_whole = all(column.dtype.kind == "i" for column in columns)
        joined[name] = np.concatenate(columns, dtype=np.int64 if is_whole else np.float64)
    return joined
