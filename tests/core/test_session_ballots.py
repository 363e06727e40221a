"""Ballots read twice at once: what recusal leaves is what `interpret` leaves."""

from elections import ballots
from witan.core.interpretation import Counting, interpret
from witan.core.session_ballots import read_ballots
from witan.core.settings import Settings


def test_a_ballot_on_nothing_but_an_own_candidate_abstains():
    """Recusal leaves nothing of it, which is the reason that is kept, in the ballots' order."""
    mine = ballots("x: a > b", "b: b", "y:", "a: a > b", candidates=("a", "b"))

    counted = read_ballots("s", mine, Settings()).electorate
    expected = interpret("s", mine, Counting())

    assert repr(counted) == repr(expected)
    assert list(counted.abstentions) == ["b", "y"]
    assert "nothing is left" in counted.abstentions["b"]


def test_weights_stand_after_recusal():
    """Who weighs nothing by the settings has no vote, and who abstains by recusal still does."""
    mine = ballots("x: a > b", "b: b", "y: b > a", candidates=("a", "b"))

    counted = read_ballots("s", mine, Settings(weights={"y": 0})).electorate

    assert [vote.reviewer for vote in counted.votes] == ["x"]
    assert list(counted.abstentions) == ["b"]
