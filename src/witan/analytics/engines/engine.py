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

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

from numpy.typing import NDArray

from witan.core.stats.sums import Names
from witan.core.window import Window

Columns = Mapping[str, NDArray[Any]]

Params = Mapping[str, int | str]

NONE: Params = MappingProxyType({})


class Query(NamedTuple):
    """A text of SQL and its parameters."""

    sql: str
    params: Params = NONE


class SumQuery(NamedTuple):
    """Sums over the sessions of a window by bucket and other keys, which add up over windows.

    Parameters
    ----------
    sql
        ``{window}`` stands in it for the conditions on the sessions.
    by_span
        Whether it holds so much in memory that a lake is summed span by span.
    """

    sql: str
    params: Params = NONE
    by_span: bool = True

    def within(self, window: Window, shards: str = "") -> Query:
        """The query of one window; `shards`: a further condition on its sessions."""
        conditions, bounds = _conditions(window)
        return Query(self.sql.replace("{window}", conditions + shards), {**self.params, **bounds})


class Engine(Protocol):
    """SQL over the views, with named parameters ``:name``."""

    def columns(self, sql: str, params: Params = NONE) -> dict[str, NDArray[Any]]:
        """Run one query over the views."""

    def sums(self, queries: Sequence[SumQuery], window: Window) -> Iterator[tuple[int, Columns]]:
        """Run queries over the sessions of a window, at once where that is faster.

        Yield the number of a query and columns of its result. A query may yield several times, and
        its columns then add up.
        """

    def names(self) -> Names:
        """Every code and its name."""

    def spans(self, window: Window) -> Sequence[Window]:
        """Windows that make up this one, none too large to be read session by session."""


def _conditions(window: Window) -> tuple[str, dict[str, int | str]]:
    """Conditions on the rows of counted sessions, and the parameters in them.

    An end that is open asks for nothing, so that the column need not be read.
    """
    conditions, bounds = ["simulated = 0"], dict[str, int | str]()
    if window.since is not None:
        conditions.append("at_us >= :since_us")
        bounds["since_us"] = window.since_us
    if window.until is not None:
        conditions.append("at_us < :until_us")
        bounds["until_us"] = window.until_us
    if window.category is not None:
        conditions.append("category = :category")
        bounds["category"] = window.category
    return " AND ".join(conditions), bounds
