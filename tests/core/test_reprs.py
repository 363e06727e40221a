"""Ballots, rules, standings and settings at a prompt: one short line each."""

import pytest

import witan
from witan.core.gate import Gate
from witan.core.interpretation import Counting
from witan.core.outcome import Prior
from witan.core.rubric import Ceiling, Criterion
from witan.core.rules import RULES
from witan.core.scale import Scale
from witan.models import ThrottlePolicy

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

CRITERIA = tuple(Criterion(f"criterion\n{n}", 0.05, "Is it so? " * 20) for n in range(20))

OWN = witan.Rubric("r" * 99, CRITERIA, (Ceiling("criterion\n1", 3, 5),), Scale.of_record("0-100"))

LONG = witan.Settings(
    "hybrid",
    {"alpha": 0.25},
    Counting("off", "last", OWN),
    "0-1,style=1-5",
    "model",
    weights={f"reviewer\n{n}": n for n in range(99)},
    prior=Prior(1.5, 20, 0.25, "grades", 60),
    gates={"s" * 99: Gate({"a": ("a flag",)})},
    looks=tuple(range(2, 99)),
)

SETTINGS = [
    *witan.RUBRICS.values(),
    OWN,
    LONG,
    witan.Settings(),
    witan.Limits(providers={f"provider {n}": ThrottlePolicy(n, n) for n in range(1, 9)}),
    witan.Procedure(),
    witan.Procedure(LONG, json_schema='{"type":\n"object"}', enough=2),
    witan.Synthesis("Yes.\n" * 99, "m" * 99, "verdict", {}, True, False, {"a": "timed out"}),
]


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


@pytest.mark.parametrize("settings", SETTINGS, ids=lambda each: type(each).__name__)
def test_settings_print_as_one_line(settings: object) -> None:
    assert len(repr(settings)) <= 120
    assert repr(settings).isprintable()


def test_settings_print_what_differs_from_the_default() -> None:
    settings = witan.Settings.of("borda", rubric=witan.RUBRICS["coding"], weights={"ann": 2})
    procedure = witan.Procedure(
        witan.Settings("borda"), mirrored=True, limits=witan.Limits(attempts=2)
    )

    assert [repr(each) for each in (settings, procedure, witan.Limits(), witan.Procedure())] == [
        "<Settings: rule='borda', rubric='coding', weights={ann: 2}>",
        "<Procedure: rule='borda', prior='public', mirrored=True, attempts=2>",
        "<Limits: all defaults>",
        "<Procedure: all defaults>",
    ]


def test_a_line_without_room_says_how_many_changes_are_left() -> None:
    assert repr(LONG).endswith(" more>")


def test_a_rubric_prints_its_criteria_and_weights() -> None:
    rubric = witan.Rubric("style", (Criterion("wit", 0.25, "?"), Criterion("form", 0.75, "?")))

    assert repr(rubric) == "<Rubric 'style': wit 0.25, form 0.75>"


def test_a_final_answer_prints_its_author_and_text() -> None:
    synthesis = witan.Synthesis("Yes.", "ann", "verdict", {}, False, False, {"bob": "timed out"})

    assert repr(synthesis) == "<Synthesis verdict by 'ann': rejects, 'Yes.', after 1 failed>"
