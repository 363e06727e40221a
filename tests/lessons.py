"""Sessions for a history to learn from: reviewers of known noise, and people beside them."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import numpy as np

from witan.core.ballot import Ballot
from witan.history import SessionImport

MODELS = tuple(f"test:{name}" for name in ("ada", "bo", "cy", "di", "ed"))

FIRST = datetime(2026, 1, 1, tzinfo=UTC)


def lessons(
    n_sessions: int, *, people: int = 0, simulated: bool = False, first: int = 0
) -> Iterator[SessionImport]:
    """Five models grade each other with noise of half a point; a person ranks some sessions."""
    rng = np.random.default_rng(first)
    for number in range(first, first + n_sessions):
        quality = rng.normal(0, 1.2, 5)
        ballots = []
        for reviewer in range(5):
            graded = {
                MODELS[c]: float(np.clip(round(6 + quality[c] + rng.normal(0, 0.5)), 1, 10))
                for c in range(5)
                if c != reviewer
            }
            ballots.append(Ballot(MODELS[reviewer], grades=graded, session=f"lesson {number}"))
        if number - first < people:
            order = np.argsort(-(quality + rng.normal(0, 0.5, 5)))
            groups = tuple((MODELS[c],) for c in order)
            ballots.append(Ballot("ann", groups, session=f"lesson {number}", kind="human"))
        yield SessionImport(
            f"lesson {number}",
            FIRST + timedelta(hours=number),
            ballots=tuple(ballots),
            simulated=simulated,
        )
