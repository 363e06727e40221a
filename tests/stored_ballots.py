"""Histories of ballots for the tests of what is read off them, small enough to count by hand."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from witan.analytics.lake import write_lake
from witan.core.ballot import Ballot
from witan.history import History, SessionImport

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)

JURY = ("r1", "r2", "r3", "r4")

KEEN = ("ash", "elm", "oak")
"""The order of three of the jury in most sessions; the fourth turns the last two round."""


def ballot(session: str, reviewer: str, order: Iterable[str], **fields: Any) -> Ballot:
    """A strict order; `fields` as those of a ballot."""
    return Ballot(reviewer, tuple((name,) for name in order), session=session, **fields)


def jury(session: str, order: tuple[str, ...] = KEEN) -> tuple[Ballot, ...]:
    """Three ballots in the order given, and one that turns the last two round."""
    other = (*order[:-2], order[-1], order[-2])
    orders = (order, order, order, other)
    return tuple(ballot(session, name, said) for name, said in zip(JURY, orders, strict=True))


def sessions() -> list[SessionImport]:
    """Twelve sessions of October in which ash leads, and twelve of November in which elm does.

    By Borda the first has 1, the second (3 · ½ + 0)/4 = .375 and the third (3 · 0 + ½)/4 = .125.
    Two sessions of either month are of law, the others of coding; pine stood in three alone.
    """
    found = []
    for number in range(24):
        month, turned = (10, False) if number < 12 else (11, True)
        at = datetime(2026, month, 1, tzinfo=UTC) + timedelta(days=number % 12)
        order = ("elm", "ash", "oak") if turned else KEEN
        if number >= 21:
            order = (*order[:2], "pine")
        name = f"q{number:02}"
        category = "law" if number % 12 < 2 else "coding"
        found.append(SessionImport(name, at, category=category, ballots=jury(name, order)))
    return found


def graded(n_sessions: int) -> list[SessionImport]:
    """Three models that grade the other two on accuracy and on clarity.

    On accuracy ash gives 9 and 7 to the first and the second of the others, elm 8 and 6, oak 4 and
    2, in turns the first and the second by name. On clarity ash repeats its grades, elm gives 8 to
    both, and oak 5 and 6 whatever it gave on accuracy.
    """
    found = []
    for number in range(n_sessions):
        ballots = []
        for reviewer, (high, low) in zip(KEEN, ((9, 7), (8, 6), (4, 2)), strict=True):
            one, other = (name for name in KEEN if name != reviewer)
            first, second = (high, low) if number % 2 else (low, high)
            clarity = {"ash": (first, second), "elm": (8, 8), "oak": (5, 6)}[reviewer]
            grades = {
                one: {"accuracy": first, "clarity": clarity[0]},
                other: {"accuracy": second, "clarity": clarity[1]},
            }
            name = f"q{number:02}"
            cast = ballot(name, reviewer, (one, other), candidates=KEEN, grades=grades)
            ballots.append(cast)
        found.append(SessionImport(f"q{number:02}", NOW, ballots=tuple(ballots)))
    return found


def store_sessions(place: str | Path, imported: Iterable[SessionImport]) -> str:
    """Keep sessions in the history at a place, and return the place."""
    with History.open(place) as history:
        history.add(imported, "a test", str(place))
    return str(place)


def lake_of(place: str, folder: Path) -> Path:
    """The lake of a history."""
    pytest.importorskip("pyarrow", reason="a lake needs pyarrow")
    with History.open(place) as history:
        write_lake(SimpleNamespace(database=history.database), folder)
    return folder


def alike(one: Any, other: Any) -> None:
    """Assert that two JSON values are equal: numbers to 1e-9, all else exactly."""
    if isinstance(one, float) and isinstance(other, float | int):
        assert one == pytest.approx(other, rel=1e-9, abs=1e-9)
    elif isinstance(one, dict):
        assert one.keys() == other.keys()
        for key in one:
            alike(one[key], other[key])
    elif isinstance(one, list):
        assert len(one) == len(other)
        for mine, theirs in zip(one, other, strict=True):
            alike(mine, theirs)
    else:
        assert one == other
