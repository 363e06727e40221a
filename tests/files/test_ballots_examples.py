"""The example ballot files are read whole, and show what they are meant to show."""

from itertools import groupby
from pathlib import Path

from witan.core.tally import tally
from witan.files.ballots import read_ballots

EXAMPLES = Path(__file__).parents[2] / "examples"


def sessions(name):
    """The ballots of one example by session."""
    cast = read_ballots(EXAMPLES / name)
    return {session: list(those) for session, those in groupby(cast, key=lambda one: one.session)}


def test_ballots_show_a_leader_a_tie_an_abstention_and_recusal():
    """One leader is all but certain, one is not, a seat abstains, an own answer is graded."""
    cast = sessions("ballots.jsonl")
    clear, close = tally(cast["capital-gains"]), tally(cast["cold-start"])

    assert clear.standings[0].candidate == "cedar"
    assert clear.standings[0].p_best > 0.95
    assert close.standings[0].p_best < 0.8
    assert [one.reason for one in cast["haiku"] if one.abstained] == ["the reply held no ranking"]
    assert any(len(group) == 2 for one in cast["haiku"] for group in one.groups)
    assert [one.reviewer for one in cast["capital-gains"] if one.reviewer in one.grades] == [
        "maple"
    ]


def test_pairs_hold_both_orders_and_a_person():
    """Twenty comparisons, some of them flipped, four by a person."""
    [cast] = sessions("pairs.csv").values()

    assert len(cast) == 20
    assert sum(one.kind == "human" for one in cast) == 4


def test_nashville_wins_tennessee():
    """The capital election has its textbook winner (Wikipedia, "Condorcet method")."""
    [cast] = sessions("tennessee.soc").values()

    assert len(cast) == 100
    assert tally(cast, rule="borda").standings[0].candidate == "Nashville"
