"""What a leaderboard or an audit is read off: a history, or a lake and the engine that sums it."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Literal, Protocol, Self

from witan.analytics.cache import CachedEngine
from witan.analytics.engine import Engine
from witan.analytics.lake_engine import DuckLake
from witan.analytics.spark_engine import SparkLake
from witan.analytics.sums import Reductions
from witan.core.casts import Cast, Named
from witan.core.rules import RULES
from witan.core.settings import AUTO
from witan.core.window import ALWAYS, Window
from witan.deliberation.ports import SystemClock
from witan.errors import InvalidParameter, NothingToCount
from witan.history import History
from witan.history.learning import NO_ALIASES, learn
from witan.history.schema import bucket_of

WEIGHTED = "weighted_borda"


def weights_by_halves(
    history: History, casts: Sequence[Cast], aliases: Mapping[str, str] = NO_ALIASES
) -> Mapping[str, Mapping[str, float]]:
    """Session to what its reviewers weigh, by sessions of the other half of the buckets.

    So no session teaches what it is counted by, and a history is read twice and not once a session.

    Parameters
    ----------
    aliases
        Old name → new name of a model, beside those of the history.
    """
    known_as = {**history.aliases, **aliases}
    found: dict[str, Mapping[str, float]] = {}
    for half in (0, 1):
        known = {
            cast.session: _reviewers(cast) for cast in casts if bucket_of(cast.session) % 2 == half
        }
        models = sorted({model for named in known.values() for model in named.values()})
        if not models:
            continue
        taught = learn(history.database, models, half=1 - half, aliases=known_as)
        weights = taught.reliability
        for session, named in known.items():
            found[session] = {
                name: weights[model] for name, model in sorted(named.items()) if model in weights
            }
    return found


def _reviewers(cast: Cast) -> dict[str, str]:
    """Reviewer to the model behind it; people are weighed alike."""
    named = Named(cast)
    names = {ballot.reviewer for ballot in cast.ballots if ballot.kind == "model"}
    return {name: named.reviewer(name) for name in names}


EngineName = Literal["duckdb", "spark"]

BASE_RULE = "borda"
"""The rule that every session is counted by when it is written."""


WAIT_SECONDS = 10.0
"""How long what is counted apart waits for who writes."""


class Source(Protocol):
    """Something that sessions are summed from."""

    @property
    def where(self) -> str:
        """What it is called, without a password."""

    @property
    def name(self) -> str:
        """Of the engine: ``sqlite``, ``postgresql``, ``duckdb`` or ``spark``."""

    @property
    def engine(self) -> Engine:
        """What answers questions that no reduction asks."""

    def reductions(self, window: Window) -> Reductions:
        """The sums of a window."""

    def recount(self, rule: str, aliases: Mapping[str, str] = NO_ALIASES) -> int:
        """Count what was never counted under a rule, where that can be; return how many."""

    def moment(self) -> AbstractContextManager[None]:
        """Everything asked for in the block is of one moment."""


class HistorySource:
    """A history."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._cached = CachedEngine(history.database)
        self.engine: Engine = self._cached

    @classmethod
    @contextmanager
    def apart(cls, history: History) -> Iterator[Self]:
        """The history on a connection of its own: counting at length, it holds up nobody else.

        Raises
        ------
        HistoryError
            If it was closed.
        """
        history.database.rows("SELECT 1")  # where it was closed, it says so
        with history.database.reopen(WAIT_SECONDS) as database:
            own = History(database, SystemClock())
            own.aliases = history.aliases
            yield cls(own)

    @property
    def where(self) -> str:
        """Its place, without a password."""
        return self._history.database.where

    @property
    def name(self) -> str:
        """Of the database."""
        return self._history.database.dialect

    def reductions(self, window: Window) -> Reductions:
        """The sums of a window, from the cache where it has them."""
        return Reductions(self.engine, window)

    def recount(self, rule: str, aliases: Mapping[str, str] = NO_ALIASES) -> int:
        """Count the sessions that were never counted under a rule, and keep what comes of it."""
        if rule == BASE_RULE:
            return 0
        # The cache tells without a look at each whether there are any.
        if not self.reductions(ALWAYS).uncounted(rule):
            return 0
        weighed = partial(weights_by_halves, self._history, aliases=aliases)
        weigh = weighed if rule == WEIGHTED else None
        return self._history.recount(rule, weigh)

    def moment(self) -> AbstractContextManager[None]:
        """A snapshot of the database, whose sums are cached at its end."""
        return self._cached.moment()


class FilesSource(HistorySource):
    """Files that were taken into a history of their own.

    Parameters
    ----------
    where
        What they are called.
    """

    def __init__(self, history: History, where: str) -> None:
        super().__init__(history)
        self._where = where

    @property
    def where(self) -> str:
        """The names of the files."""
        return self._where


class LakeSource:
    """A lake, and the engine that sums it.

    Raises
    ------
    HistoryError
        If a session stands in it more than once.
    """

    def __init__(self, engine: DuckLake | SparkLake) -> None:
        engine.lake.refuse_doubles()
        self._lake = engine
        self.engine: Engine = engine

    @property
    def where(self) -> str:
        """Its folder."""
        return str(self._lake.lake.folder)

    @property
    def name(self) -> str:
        """Of the engine."""
        return "duckdb" if isinstance(self._lake, DuckLake) else "spark"

    def reductions(self, window: Window) -> Reductions:
        """The sums of a window."""
        return Reductions(self._lake, window)

    def recount(
        self,
        rule: str,  # noqa: ARG002 - a lake is only read
        aliases: Mapping[str, str] = NO_ALIASES,  # noqa: ARG002
    ) -> int:
        """Count nothing: a lake is as it was written."""
        return 0

    def moment(self) -> AbstractContextManager[None]:
        """The files are read as they lie."""
        return nullcontext()


@contextmanager
def open_lake(folder: str | Path, engine: EngineName = "duckdb") -> Iterator[LakeSource]:
    """Open a lake, to be summed by an engine, while the block lasts.

    Raises
    ------
    HistoryError
        If the folder is no lake, holds a session twice, or the engine does not start.
    MissingExtra
        If the engine is not installed.
    """
    with DuckLake(folder) if engine == "duckdb" else SparkLake(folder) as lake:
        yield LakeSource(lake)


@contextmanager
def open_source(where: History | DuckLake | SparkLake | str | Path) -> Iterator[Source]:
    """Take a history or an engine as it is; open a lake by its folder, a history by its place.

    What is handed over open stays open.

    Raises
    ------
    HistoryError
        If there is nothing that could be opened.
    """
    if isinstance(where, History):
        yield HistorySource(where)
    elif isinstance(where, DuckLake | SparkLake):
        yield LakeSource(where)
    elif "://" not in str(where) and Path(where).is_dir():
        with open_lake(where) as lake:
            yield lake
    else:
        with History.open(where, reading=True) as history:
            yield HistorySource(history)


def check_rule(rule: str) -> None:
    """Refuse a rule that has no score of a single session.

    Raises
    ------
    UnknownName
        If there is no such rule.
    InvalidParameter
        If it rates over all sessions at once, or is none of its own.
    """
    if rule == AUTO:
        expected = "a rule by its name: auto may take another for each session, on another scale"
        raise InvalidParameter("rule", rule, expected)
    if RULES[rule].needs == "history":
        expected = "a rule that scores each session; what rates over all of them is an order"
        raise InvalidParameter("rule", rule, f"{expected} (order_by)")


_ALL = """
SELECT simulated, COUNT(*) AS n, MIN(at_us) AS earliest, MAX(at_us) AS latest
FROM v_sessions
GROUP BY simulated
"""

_WITHIN = "at_us >= :since_us AND at_us < :until_us AND (:every = 1 OR category = :category)"

_INSIDE = """
SELECT simulated, COUNT(*) AS n
FROM v_sessions
WHERE {within}
GROUP BY simulated
""".replace("{within}", _WITHIN)

_CATEGORIES = """
SELECT category, COUNT(*) AS n
FROM v_sessions
WHERE simulated = 0 AND category IS NOT NULL
GROUP BY category
"""

SHOWN = 8
"""Categories that are named at most."""


@dataclass(frozen=True, slots=True)
class _Found:
    """Sessions there are, and when they were asked."""

    real: int
    simulated: int
    first: datetime | None
    last: datetime | None


def sessions_in(source: Source, window: Window) -> int:
    """How many sessions of a window are not simulated."""
    found = source.engine.columns(_INSIDE, _params(window))
    pairs = zip(found["simulated"].tolist(), found["n"].tolist(), strict=True)
    return sum(int(n) for simulated, n in pairs if not simulated)


def asked_between(source: Source) -> tuple[datetime, datetime] | None:
    """When the first and the last session that is not simulated were asked; None: there is none."""
    found = _found(source)
    return None if found.first is None or found.last is None else (found.first, found.last)


def coverage_of(source: Source, window: Window, rule: str, human: int) -> int:
    """How many sessions of a window have standings under a rule."""
    return source.reductions(window).coverage(rule, human=human)


def nothing(source: Source, window: Window) -> NothingToCount | None:
    """Why a window is empty, and what to do; None: it is not."""
    if sessions_in(source, window):
        return None
    found = _found(source)
    if not found.real and not found.simulated:
        return NothingToCount(
            f"{source.where}: there is no session that could be counted yet; "
            "ask a question, or import ballots"
        )
    if not found.real:
        only = "the only session is" if found.simulated == 1 else (
            f"all {found.simulated:,} sessions are"
        )  # fmt: skip
        return NothingToCount(
            f"{source.where}: {only} simulated, and simulated ones are never summed; "
            "ask a question of real models, or import ballots"
        )
    there = f"there are {found.real:,}, from {_day(found.first)} to {_day(found.last)}"
    if found.real == 1:
        there = f"there is 1, of {_day(found.first)}"
    return NothingToCount(
        f"{source.where}: no session is {window}; {there}{_categories(source, window)}"
    )


def _found(source: Source) -> _Found:
    columns = source.engine.columns(_ALL)
    rows = list(zip(*(columns[name].tolist() for name in ("simulated", "n")), strict=True))
    real = sum(int(n) for simulated, n in rows if not simulated)
    times = [
        (int(first), int(last))
        for simulated, first, last in zip(
            columns["simulated"].tolist(),
            columns["earliest"].tolist(),
            columns["latest"].tolist(),
            strict=True,
        )
        if not simulated
    ]
    return _Found(
        real=real,
        simulated=sum(int(n) for simulated, n in rows if simulated),
        first=_time(min(first for first, _ in times)) if times else None,
        last=_time(max(last for _, last in times)) if times else None,
    )


def _categories(source: Source, window: Window) -> str:
    """The categories there are, where one was asked for."""
    if window.category is None:
        return ""
    columns = source.engine.columns(_CATEGORIES)
    counts = zip(columns["n"].tolist(), columns["category"].tolist(), strict=True)
    names = [name for _, name in sorted(counts, key=lambda pair: (-pair[0], pair[1]))]
    if not names:
        return ", without a category"
    more = f" and {len(names) - SHOWN:,} more" if len(names) > SHOWN else ""
    return f", of the categories {', '.join(map(repr, names[:SHOWN]))}{more}"


def _params(window: Window) -> dict[str, int | str]:
    return {
        "since_us": window.since_us,
        "until_us": window.until_us,
        "every": int(window.category is None),
        "category": "" if window.category is None else window.category,
    }


def _time(at_us: int) -> datetime:
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=at_us)


def _day(at: datetime | None) -> str:
    return "" if at is None else f"{at:%Y-%m-%d}"
