"""Reading ballots with and without recusal in one pass equals `interpret`."""

from elections import ballots
from witan.core.interpretation import Counting, interpret
from witan.core.session_ballots import read_ballots
from witan.core.settings import Settings


def test_a_ballot_on_the_own_candidate_alone_abstains():
    """The reason is that recusal leaves nothing; abstentions are in the ballots' order."""
    mine = ballots("x: a > b", "b: b", "y:", "a: a > b", candidates=("a", "b"))

    counted = read_ballots("s", mine, Settings()).electorate
    expected = interpret("s", mine, Counting())

    assert repr(counted) == repr(expected)
    assert list(counted.abstentions) == ["b", "y"]
    assert "nothing is left" in counted.abstentions["b"]


def test_weights_apply_after_recusal():
    """A reviewer of weight 0 has no vote, and one that abstains by recusal still does."""
    mine = ballots("x: a > b", "b: b", "y: b > a", candidates=("a", "b"))

    counted = read_ballots("s", mine, Settings(weights={"y": 0})).electorate

    assert [vote.reviewer for vote in counted.votes] == ["x"]
    assert list(counted.abstentions) == ["b"]
