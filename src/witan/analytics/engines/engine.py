"""What an engine is: something that answers SQL over the views of a history.

    v_sessions   a row per session
    v_standings  per session, kind, rule and model
    v_matchups   per session, kind and pair of models i, j
    v_ballots    per ballot that votes or abstains
    v_votes      per ballot and candidate
    v_pairs      per ballot and pair of its candidates
    v_grades     per ballot, criterion and candidate
    v_answers    per answer

Each carries `session`, a name or a key that only compares; `at_us`, `bucket`, `category`,
`simulated` and `rejudged`. `human` is 0 for models and 1 for people; `own`, `paired` … are 0 or 1.
`log_chars` is the natural logarithm of `chars`; `twins` counts candidates of a ballot whose model
has another one before them on it. What is unknown is NULL, a position too.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

from numpy.typing import NDArray

from witan.core.sums import Names
from witan.core.window import Window

__all__ = ["NONE", "Engine", "Params", "Query"]

Params = Mapping[str, int | str]

NONE: Params = MappingProxyType({})


class Query(NamedTuple):
    """A text of SQL and its parameters."""

    sql: str
    params: Params = NONE


class Engine(Protocol):
    """SQL over the views, with named parameters ``:name``."""

    def columns(self, sql: str, params: Params = NONE) -> dict[str, NDArray[Any]]:
        """Run one query; return its columns by name."""

    def several(self, queries: Iterable[Query]) -> Iterator[dict[str, NDArray[Any]]]:
        """Run queries, at once where that is faster; their columns, in the order of the queries."""

    def names(self) -> Names:
        """Every code and its name."""

    def spans(self, window: Window) -> Sequence[Window]:
        """Windows that make up this one, none too large to be summed pair by pair in memory."""
