"""Sources of leaderboards and audits: a history, files, or a lake."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Literal, Protocol, Self

from witan.analytics.lake_engines import DuckLake, SparkLake
from witan.analytics.sums import CachedEngine, WindowSums
from witan.analytics.views import Engine, SumQuery
from witan.core.casts import Cast, Named
from witan.core.rules import RULES
from witan.core.settings import AUTO
from witan.core.window import ALWAYS, EPOCH, Window
from witan.deliberation.ports import SystemClock
from witan.errors import InvalidParameter, NothingToCount
from witan.history import History
from witan.history.learning import NO_ALIASES, learn
from witan.history.schema import bucket_of

WEIGHTED = "weighted_borda"


def weights_by_halves(
    history: History, casts: Sequence[Cast], aliases: Mapping[str, str] = NO_ALIASES
) -> Mapping[str, Mapping[str, float]]:
    """Weigh reviewers by lessons from the other half of the buckets.

    So no session teaches its own weights, and a history is read twice, not once a session.

    Parameters
    ----------
    aliases
        Old name → new name of a model, beside those of the history.
    """
    names = {**history.aliases, **aliases}
    by_session: dict[str, Mapping[str, float]] = {}
    for half in (0, 1):
        reviewers = {
            cast.session: _reviewers(cast) for cast in casts if bucket_of(cast.session) % 2 == half
        }
        models = sorted({model for seats in reviewers.values() for model in seats.values()})
        if not models:
            continue
        lessons = learn(history.database, models, half=1 - half, aliases=names)
        weights = lessons.reliability
        for session, seats in reviewers.items():
            by_session[session] = {
                name: weights[model] for name, model in sorted(seats.items()) if model in weights
            }
    return by_session


def _reviewers(cast: Cast) -> dict[str, str]:
    """Return the model behind each reviewer; people are weighed alike."""
    named = Named(cast)
    names = {ballot.reviewer for ballot in cast.ballots if ballot.kind == "model"}
    return {name: named.reviewer(name) for name in names}


EngineName = Literal["duckdb", "spark"]

BASE_RULE = "borda"
"""The rule that every session is counted by when it is written."""


WAIT_SECONDS = 10.0
"""How long a connection of its own waits for writers."""


class Source(Protocol):
    """A source of sessions to sum."""

    @property
    def where(self) -> str:
        """Its place or name, without a password."""

    @property
    def name(self) -> str:
        """The engine: ``sqlite``, ``postgresql``, ``duckdb`` or ``spark``."""

    @property
    def engine(self) -> Engine:
        """SQL over its views."""

    def sums(self, window: Window) -> WindowSums:
        """Sum a window."""

    def recount(self, rule: str, aliases: Mapping[str, str] = NO_ALIASES) -> int:
        """Count sessions never counted under a rule, if possible; return how many."""

    def moment(self) -> AbstractContextManager[None]:
        """Read as of one moment until the block ends."""


class HistorySource:
    """A history."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._cached = CachedEngine(history.database)
        self.engine: Engine = self._cached

    @classmethod
    @contextmanager
    def on_own_connection(cls, history: History) -> Iterator[Self]:
        """Open the history on another connection, so long sums delay nobody."""
        history.database.rows("SELECT 1")  # raises if it was closed
        with history.database.reopen(WAIT_SECONDS) as database:
            copy = History(database, SystemClock())
            copy.aliases = history.aliases
            yield cls(copy)

    @property
    def where(self) -> str:
        """Its place, without a password."""
        return self._history.database.where

    @property
    def name(self) -> str:
        """The dialect of its database."""
        return self._history.database.dialect

    def sums(self, window: Window) -> WindowSums:
        """Sum a window, from the cache where it holds."""
        return WindowSums(self.engine, window)

    def recount(self, rule: str, aliases: Mapping[str, str] = NO_ALIASES) -> int:
        """Count sessions never counted under a rule, and store the results."""
        if rule == BASE_RULE:
            return 0
        if not self.sums(ALWAYS).uncounted(rule):
            return 0
        weigh = partial(weights_by_halves, self._history, aliases=aliases)
        return self._history.recount(rule, weigh if rule == WEIGHTED else None)

    def moment(self) -> AbstractContextManager[None]:
        """Read a snapshot; cache its sums at the end."""
        return self._cached.moment()


class FilesSource(HistorySource):
    """Files imported into their own history.

    Parameters
    ----------
    where
        The names of the files.
    """

    def __init__(self, history: History, where: str) -> None:
        super().__init__(history)
        self._where = where

    @property
    def where(self) -> str:
        """The names of the files."""
        return self._where


class LakeSource:
    """A lake and its engine."""

    def __init__(self, engine: DuckLake | SparkLake) -> None:
        engine.lake.check_duplicates()
        self._lake = engine
        self.engine: Engine = engine

    @property
    def where(self) -> str:
        """Its folder."""
        return str(self._lake.lake.folder)

    @property
    def name(self) -> str:
        """The engine."""
        return "duckdb" if isinstance(self._lake, DuckLake) else "spark"

    def sums(self, window: Window) -> WindowSums:
        """Sum a window."""
        return WindowSums(self._lake, window)

    def recount(
        self,
        rule: str,  # noqa: ARG002 - a lake is only read
        aliases: Mapping[str, str] = NO_ALIASES,  # noqa: ARG002
    ) -> int:
        """Count nothing: a lake is only read."""
        return 0

    def moment(self) -> AbstractContextManager[None]:
        """Read the files as they are."""
        return nullcontext()


@contextmanager
def open_lake(folder: str | Path, engine: EngineName = "duckdb") -> Iterator[LakeSource]:
    """Open a lake in an engine until the block ends.

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
    """Use a history or an engine; open a lake's folder or a history's place.

    A history or an engine that is passed in stays open.
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
    """Refuse a rule without scores of single sessions.

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


_TOTALS = """
SELECT simulated, COUNT(*) AS n, MIN(at_us) AS first_us, MAX(at_us) AS last_us
FROM v_sessions
GROUP BY simulated
"""

_ANY = SumQuery("SELECT at_us FROM v_sessions WHERE {window} LIMIT 1")

_CATEGORIES = """
SELECT category, COUNT(*) AS n
FROM v_sessions
WHERE simulated = 0 AND category IS NOT NULL
GROUP BY category
"""

MAX_CATEGORIES = 8
"""Categories that a message names at most."""


def time_range(source: Source) -> tuple[datetime, datetime] | None:
    """Return the times of the first and last unsimulated session, if any."""
    columns = source.engine.columns(_TOTALS)
    for row, simulated in enumerate(columns["simulated"].tolist()):
        if not simulated:
            return _time(columns["first_us"][row]), _time(columns["last_us"][row])
    return None


def explain_empty(source: Source, window: Window) -> NothingToCount | None:
    """Explain an empty window, with a remedy; None if not empty."""
    if source.engine.columns(*_ANY.within(window))["at_us"].size:
        return None
    columns = source.engine.columns(_TOTALS)
    n = dict(zip(columns["simulated"].tolist(), columns["n"].tolist(), strict=True))
    real, simulated = int(n.get(0, 0)), int(n.get(1, 0))
    times = time_range(source)
    if times is not None:
        first, last = (f"{time:%Y-%m-%d}" for time in times)
        there = f"there is 1, of {first}" if real == 1 else (
            f"there are {real:,}, from {first} to {last}"
        )  # fmt: skip
        problem = f"no session is {window}; {there}{_categories(source, window)}"
    elif simulated:
        only = "the only session is" if simulated == 1 else f"all {simulated:,} sessions are"
        problem = (
            f"{only} simulated, and simulated ones are never summed; "
            "ask a question of real models, or import ballots"
        )
    else:
        problem = "there is no session that could be counted yet; ask a question, or import ballots"
    return NothingToCount(f"{source.where}: {problem}")


def _categories(source: Source, window: Window) -> str:
    """List the categories there are, if the window is of one."""
    if window.category is None:
        return ""
    columns = source.engine.columns(_CATEGORIES)
    counts = zip(columns["n"].tolist(), columns["category"].tolist(), strict=True)
    names = [name for _, name in sorted(counts, key=lambda pair: (-pair[0], pair[1]))]
    if not names:
        return ", without a category"
    more = f" and {len(names) - MAX_CATEGORIES:,} more" if len(names) > MAX_CATEGORIES else ""
    return f", of the categories {', '.join(map(repr, names[:MAX_CATEGORIES]))}{more}"


def _time(at_us: int) -> datetime:
    return EPOCH + timedelta(microseconds=int(at_us))
