"""What a leaderboard or an audit is read off: a history, or a lake and the engine that sums it."""

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Literal, Protocol, Self

from witan.analytics.engines import (
    CachedEngine,
    DuckLake,
    Engine,
    Reductions,
    SparkLake,
)
from witan.analytics.reports.weighing import WEIGHTED, weights_by_halves
from witan.core.rules import RULES
from witan.core.settings import AUTO
from witan.core.window import ALWAYS, Window
from witan.deliberation.ports import SystemClock
from witan.errors import InvalidParameter
from witan.history import History
from witan.history.learning import NO_ALIASES

__all__ = [
    "BASE_RULE",
    "EngineName",
    "FilesSource",
    "HistorySource",
    "LakeSource",
    "Source",
    "check_rule",
    "open_lake",
    "open_source",
]

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
