"""Matches in the order of time are the same however few sessions are read at a time."""

from datetime import timedelta
from random import Random

import pytest
from rolled import START, add, human, imported

from witan.analytics.engines import Reductions, SqlEngine
from witan.analytics.rollup import HistoryReductions
from witan.analytics.rollup.matching import read_matches
from witan.core.window import ALWAYS, Window

NOON = START + timedelta(hours=12)


@pytest.fixture
def crowded(history):
    """Sessions at any time, seven of one moment, and people who voted on some."""
    draw = Random(5)  # noqa: S311 - a test draws what happens
    names = add(history, draw, 30, days=3)
    at_once = [imported(draw, f"noon {number}", NOON, "coding") for number in range(7)]
    history.add(at_once, "at noon", "n")
    for session in [*names[:5], "noon 3"]:
        history.vote(session, [human(history, draw, session)])
    return history


@pytest.mark.parametrize("window", [ALWAYS, Window(NOON, None, "coding"), Window(None, NOON)])
@pytest.mark.parametrize("kind", [0, 1])
def test_a_page_at_a_time_is_all_at_once(crowded, window, kind):
    """No match is lost or doubled between pages, in whatever moment these end."""
    expected = list(Reductions(SqlEngine(crowded.database), window).matches(human=kind))

    assert list(HistoryReductions(crowded.database, window).matches(human=kind)) == expected
    for at_once in (1, 2, 3, 7, 8, 37):
        found = read_matches(crowded.database, window, kind, at_once=at_once)
        assert list(found) == expected


def test_nothing_in_the_window(crowded):
    """Before the first session there is no match."""
    assert list(read_matches(crowded.database, Window(None, START), 0)) == []
