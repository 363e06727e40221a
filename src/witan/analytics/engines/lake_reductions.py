"""The reductions of a lake, each code of which has to have a name."""

import numpy as np

from witan.analytics.engines.adding import Columns
from witan.analytics.engines.duckdb_lake import DuckLake
from witan.analytics.engines.reductions import Reductions
from witan.analytics.engines.spark_lake import SparkLake
from witan.core.window import ALWAYS, Window
from witan.errors import HistoryError

__all__ = ["LakeReductions"]

_CODES = ("model", "reviewer", "other", "criterion")
"""Columns of codes. Pairs of models have those of their standings."""

_OVERALL = -1
"""Stands where a criterion would, for the grade as a whole."""


class LakeReductions(Reductions):
    """Reductions of a lake.

    Raises
    ------
    HistoryError
        From each of them, if a code has no name: a file of names was taken away.
    """

    def __init__(self, engine: DuckLake | SparkLake, window: Window = ALWAYS) -> None:
        super().__init__(engine, window)
        self._where = str(engine.lake.folder)
        self._known = {_OVERALL, *engine.names().of}

    def _check(self, found: Columns) -> None:
        for column in _CODES:
            if column in found:
                strange = set(np.unique(found[column]).tolist()) - self._known
                if strange:
                    problem = f"has no name of the {column} with the code {min(strange)}"
                    raise HistoryError(self._where, problem, "export every history in it again")
