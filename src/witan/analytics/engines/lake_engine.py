"""What every engine that reads a lake does alike."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence, Set
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from witan.analytics.engines.engine import NONE, Columns, Params, Query, SumQuery
from witan.analytics.lake.reading import Lake
from witan.core.stats.sums import Names
from witan.core.window import Window
from witan.errors import HistoryError

_CODES = {"model", "reviewer", "other", "criterion"}
"""Columns of codes. Pairs of models have those of their standings."""

_OVERALL = -1
"""Stands where a criterion would, for the grade as a whole."""


class LakeEngine(ABC):
    """A lake that is open in an engine, until its block ends.

    Parameters
    ----------
    folder
        The lake, or its place.
    called
        What the engine is called in a message.
    """

    def __init__(self, folder: str | Path | Lake, called: str) -> None:
        self.lake = folder if isinstance(folder, Lake) else Lake(folder)
        self._called = called

    def names(self) -> Names:
        """Every code and its name."""
        return self.lake.names()

    @abstractmethod
    def columns(self, sql: str, params: Params = NONE) -> dict[str, NDArray[Any]]:
        """Run one query over the views."""

    def sums(self, queries: Sequence[SumQuery], window: Window) -> Iterator[tuple[int, Columns]]:
        """Run queries, what holds much in memory span by span."""
        asked = [
            (number, query.within(span))
            for number, query in enumerate(queries)
            for span in (self.spans(window) if query.by_span else (window,))
        ]
        known = {_OVERALL, *self.names().of}
        found = self.several(query for _, query in asked)
        for (number, _), columns in zip(asked, found, strict=True):
            self._check_codes(columns, known)
            yield number, columns

    @abstractmethod
    def spans(self, window: Window) -> Sequence[Window]:
        """Windows that make up this one, none too large to be summed in memory."""

    def several(self, queries: Iterable[Query]) -> Iterator[dict[str, NDArray[Any]]]:
        """Run queries one after another: each takes all cores."""
        return (self.columns(*query) for query in queries)

    @abstractmethod
    def close(self) -> None:
        """Let go of the engine."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _check_codes(self, columns: Columns, known: Set[int]) -> None:
        """Refuse codes without a name: a file of names was taken away."""
        for name in _CODES & columns.keys():
            strange = set(np.unique(columns[name]).tolist()) - known
            if strange:
                problem = f"has no name of the {name} with the code {min(strange)}"
                remedy = "export every history in it again"
                raise HistoryError(str(self.lake.folder), problem, remedy)

    def _said(self, error: Exception) -> HistoryError:
        """What went wrong: a damaged file by its name, else the engine's own words."""
        damaged = self.lake.damaged()
        if damaged is not None:
            return damaged
        problem = f"cannot be summed: {self._called} says: {str(error).splitlines()[0]}"
        return HistoryError(str(self.lake.folder), problem, "see what it says, and try again")
