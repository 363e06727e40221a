"""What stands out of an audit: a measure is judged by its interval, never by its value alone."""

import pytest

from witan.core.outcome import Interval
from witan.core.stats.audit import CHECKS, concern_of
from witan.core.stats.measures import Measure

OF = {check.measure: check for check in CHECKS}


def measure(low: float, high: float) -> Measure:
    """A value in the middle of an interval."""
    return Measure((low + high) / 2, Interval(low, high, 0.95), 100, "votes", 30, "share")


@pytest.mark.parametrize(
    ("name", "low", "high", "stands_out"),
    [
        ("self_preference", 0.01, 0.20, True),
        ("self_preference", -0.20, -0.01, True),
        ("self_preference", -0.01, 0.20, False),
        ("first_shown", 0.51, 0.60, True),
        ("first_shown", 0.40, 0.49, True),
        ("first_shown", 0.49, 0.60, False),
        ("length.longer_wins_beyond_people", 0.01, 0.10, True),
        ("length.longer_wins_beyond_people", -0.20, -0.10, False),
        ("agreement", -0.10, 0.30, True),
        ("agreement", 0.01, 0.30, False),
        ("agreement_with_people", 0.49, 0.70, True),
        ("agreement_with_people", 0.51, 0.70, False),
        ("order_consistency", 0.30, 0.49, True),
        ("order_consistency", 0.45, 0.55, False),
        ("abstention_rate", 0.11, 0.30, True),
        ("abstention_rate", 0.05, 0.30, False),
    ],
)
def test_the_interval_decides(name, low, high, stands_out):
    """A measure stands out where its whole interval is where one would not have it."""
    sentence = concern_of(OF[name], measure(low, high))

    assert (sentence is not None) == stands_out
    assert sentence != ""


def test_without_an_interval_nothing_stands_out():
    """A value alone says nothing of its noise."""
    bare = Measure(0.9, None, 100, "votes", 30, "share")

    assert [concern_of(check, bare) for check in CHECKS] == [None] * len(CHECKS)


def test_both_sides_have_their_own_words():
    """Too much and too little are not the same concern."""
    check = OF["position_effect"]

    assert concern_of(check, measure(0.1, 0.2)) == "prefers what stands first on the sheet"
    assert concern_of(check, measure(-0.2, -0.1)) == "prefers what stands last on the sheet"
