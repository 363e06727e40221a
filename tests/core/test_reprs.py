"""Ballots, rules and standings at a prompt: one short line each."""

import pytest

import witan
from witan.core.rules import RULES

BALLOTS = [
    witan.Ballot("ann", (("first",), ("second", "third")), session="capitals"),
    witan.Ballot("bob", grades={"first": 8, "second": {"accuracy": 7}, "third": 4}),
    witan.Ballot("cid", abstained=True, reason="timed out"),
    witan.Ballot("r" * 500, tuple((f"candidate\n{i}",) for i in range(50)), session="s" * 40),
]


OUTCOME = witan.tally(
    [BALLOTS[0], witan.Ballot("dee", (("second",), ("first", "third")), session="capitals")]
)

RESULTS = [*BALLOTS, *OUTCOME.standings, *RULES.values(), RULES]


@pytest.mark.parametrize("result", RESULTS, ids=lambda each: type(each).__name__)
def test_a_result_prints_as_one_line(result: object) -> None:
    assert len(repr(result)) < 160
    assert repr(result).isprintable()


def test_a_ballot_prints_its_vote() -> None:
    assert [repr(ballot) for ballot in BALLOTS[:3]] == [
        "<Ballot of 'ann' in 'capitals': first > second = third>",
        "<Ballot of 'bob': grades first, second, 1 more>",
        "<Ballot of 'cid': abstains>",
    ]


def test_a_standing_prints_its_rank_and_score() -> None:
    standing = witan.tally([witan.Ballot("ann", (("first",), ("second",)))]).standings[0]
    assert repr(standing) == "<Standing of 'first': rank 1, score 1, 1 vote>"


def test_a_rule_prints_its_needs_and_parameters() -> None:
    assert repr(RULES["elo"]).startswith("<Rule 'elo': needs history, takes ")
    assert repr(RULES).startswith(f"<Registry of {len(RULES)} rules: ")
