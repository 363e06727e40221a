"""Matches of a history in the order of time, read a page of sessions at a time.

The same matches as by `witan.analytics.engines.panel_sql`, by another route: lists are taken apart
here, and no more than a page is held, however long the history is.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from witan.analytics.lake.columns import key_of
from witan.analytics.rollup.cells import matchup_rows
from witan.core.rules.elo import Match
from witan.core.window import Window
from witan.history.counting import SUPERSEDED_SESSIONS
from witan.history.database import Database

__all__ = ["read_matches"]

AT_ONCE = 10_000
"""Sessions that are read at a time."""

_PAGE = (
    "SELECT s.at_us, s.session, m.human, m.models, m.wins, m.losses, m.ties"  # noqa: S608
    " FROM sessions s JOIN matchups m ON m.session = s.session"
    " WHERE s.at_us >= :since_us AND s.at_us < :until_us AND (:every = 1 OR s.category = :category)"
    " AND s.simulated = 0 AND s.rejudged = 0 AND s.holder = '' AND m.human = :human"
    f" AND s.session NOT IN ({SUPERSEDED_SESSIONS})"
    " ORDER BY s.at_us LIMIT :most"
)

Row = tuple[Any, ...]


def read_matches(
    database: Database, window: Window, human: int, *, at_once: int = AT_ONCE
) -> Iterator[Match]:
    """Pairs of models session by session; those of one moment in the order of their keys."""
    given: dict[str, int | str] = {
        "since_us": window.since_us,
        "until_us": window.until_us,
        "every": int(window.category is None),
        "category": "" if window.category is None else window.category,
        "human": human,
    }
    most = at_once
    while True:
        rows = database.rows(_PAGE, {**given, "most": most})
        if len(rows) < most:
            yield from _matches(rows)
            return
        # More sessions of the last moment may follow: they begin the next page.
        last = rows[-1][0]
        whole = [row for row in rows if row[0] < last]
        if not whole:
            most *= 2
            continue
        yield from _matches(whole)
        given["since_us"], most = last, at_once


def _matches(rows: Sequence[Row]) -> Iterator[Match]:
    if not rows:
        return
    at_us, sessions, *lists = zip(*rows, strict=True)
    found = matchup_rows(lists)
    row = found["row"]
    keys = np.array([key_of(name) for name in sessions], np.int64)[row]
    at = np.array(at_us, np.int64)[row]
    order = np.lexsort((found["second"], found["first"], keys, at))
    columns = (found[name][order].tolist() for name in Match._fields[1:])
    yield from map(Match, keys[order].tolist(), *columns)
