"""What every engine that reads a lake does alike."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from numpy.typing import NDArray

from witan.analytics.engines.engine import NONE, Params, Query
from witan.analytics.lake.reading import Lake
from witan.core.sums import Names
from witan.errors import HistoryError

__all__ = ["LakeEngine"]


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

    def _said(self, error: Exception) -> HistoryError:
        """What went wrong: a damaged file by its name, else the engine's own words."""
        damaged = self.lake.damaged()
        if damaged is not None:
            return damaged
        problem = f"cannot be summed: {self._called} says: {str(error).splitlines()[0]}"
        return HistoryError(str(self.lake.folder), problem, "see what it says, and try again")
