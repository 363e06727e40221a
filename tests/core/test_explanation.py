"""Explanations: each step leads to the outcome as counted."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import t as t_distribution

from elections import ballots
from witan.core.ballot import Ballot
from witan.core.comparison import compare_rules
from witan.core.explanation import Step, explain
from witan.core.rules import RULES
from witan.core.rules.kemeny import kemeny
from witan.core.settings import Settings
from witan.core.tally import tally_sessions
from witan.errors import InvalidParameter, NothingToCount, UnknownName, UnsuitableBallots

NAMES = ("a", "b", "c", "d")

AVERAGES = [
    ("borda", {}),
    ("borda", {"variant": "roster"}),
    ("borda", {"variant": "truncated"}),
    ("weighted_borda", {}),
    ("mean_rank", {}),
    ("range", {}),
    ("normalized_scores", {}),
    ("calibrated", {}),
]
"""Rules whose score is a mean over ballots."""


@st.composite
def councils(draw) -> list[Ballot]:
    """Two to five reviewers who rank and grade some of four candidates, with weights."""
    cast = []
    for number in range(draw(st.integers(2, 5))):
        chosen = draw(st.lists(st.sampled_from(NAMES), min_size=2, max_size=4, unique=True))
        grades = {name: draw(st.integers(1, 10)) for name in chosen}
        weight = draw(st.sampled_from([1.0, 1.0, 2.0, 0.5]))
        groups = tuple((name,) for name in chosen)
        cast.append(
            Ballot(f"r{number}", groups=groups, grades=grades, weight=weight, candidates=NAMES)
        )
    return cast


def step(steps: tuple[Step, ...], title: str) -> Step:
    """The step with this title."""
    return next(each for each in steps if each.title.startswith(title))


def means(result: Step, names: list[str]) -> list[float | None]:
    """The numbers in the last row of a table, by candidate."""
    cells = []
    for name in names:
        at = result.header.index(name, 1)
        alone = at + 1 == len(result.header) or result.header[at + 1] in names
        cells.append(result.rows[-1][at if alone else at + 1])
    return cells


@pytest.mark.parametrize(("rule", "parameters"), AVERAGES)
@given(cast=councils())
def test_the_mean_of_the_table_is_the_score(rule, parameters, cast):
    """Adding up the ballots by hand gives the rule's score for the first two lines."""
    explanation = explain(cast, Settings.of(rule, parameters=parameters, flips=False))

    lines = explanation.outcome.standings[:2]
    table = next(
        result for result in explanation.steps if result.rows and result.rows[-1][0] == "mean"
    )
    by_hand = means(table, [line.candidate for line in lines])
    for line, mean in zip(lines, by_hand, strict=True):
        if line.votes:
            assert mean == pytest.approx(line.score, abs=1e-6)


@given(cast=councils())
def test_chains_give_the_schulze_score(cast):
    """A score is the share of rivals with no stronger chain against the candidate."""
    explanation = explain(cast, Settings.of("schulze", flips=False))

    rows = step(explanation.steps, "Strongest chains").rows
    path = np.array([[0.0 if cell is None else cell for cell in row[1:]] for row in rows])
    voted = [name for name in NAMES if explanation.outcome[name].votes]
    for name in voted:
        i = NAMES.index(name)
        rivals = [NAMES.index(rival) for rival in voted if rival != name]
        if rivals:
            share = np.mean([path[i, j] >= path[j, i] for j in rivals])
            assert explanation.outcome[name].score == pytest.approx(share)


def test_locking_follows_tideman():
    """Of a ring with margins 5, 3 and 1 the last is skipped, and a leads.

    Worked by hand: nine ballots, 4 × a>b>c, 3 × b>c>a, 2 × c>a>b give a over b 6–3, b over c 7–2
    and c over a 5–4.
    """
    cast = ballots("4 × p: a > b > c", "3 × q: b > c > a", "2 × r: c > a > b")

    explanation = explain(cast, Settings.of("ranked_pairs"))

    assert step(explanation.steps, "Locking").rows == (
        ("b", "c", 5, "locked"),
        ("a", "b", 3, "locked"),
        ("c", "a", 1, "skipped: it would close a cycle"),
    )
    assert explanation.outcome.leaders == ("a",)


def test_contradictions_add_up_to_the_kemeny_distance():
    """In the ring above, b > c > a contradicts 2 + 6 + 4 ballots, a > b > c only 3 + 2 + 5.

    The table lists the latter pair by pair; its sum is the distance that the rule reports.
    """
    cast = ballots("4 × p: a > b > c", "3 × q: b > c > a", "2 × r: c > a > b")

    explanation = explain(cast, Settings.of(kemeny.name))

    rows = step(explanation.steps, "Least contradiction").rows
    assert rows == (("a", "b", 3), ("a", "c", 5), ("b", "c", 2))
    assert explanation.outcome.details["distance"] == 10


def test_rounds_follow_the_elimination():
    """Of three candidates c is eliminated first, then b; a remains and leads."""
    cast = ballots("3 × p: a > b > c", "2 × q: b > a > c", "r: c > a > b")

    explanation = explain(cast, Settings.of("irv"))

    assert step(explanation.steps, "Rounds").rows == (
        (1, 3, 2, 1, 0, "c", ""),
        (2, 4, 2, None, 0, "b", ""),
    )
    assert explanation.outcome.leaders == ("a",)


def test_matchups_give_the_tournament_score():
    """Of three, a wins both of its matchups; b and c draw theirs."""
    cast = ballots("p: a > b > c", "q: a > c > b")

    explanation = explain(cast, Settings.of("tournament"))

    assert step(explanation.steps, "Matchups").rows == (
        ("a", 2, 0, 0, 1),
        ("b", 0, 1, 1, 0.25),
        ("c", 0, 1, 1, 0.25),
    )


@pytest.mark.parametrize("rule", [name for name, rule in RULES.items() if rule.needs != "history"])
def test_every_rule_is_explained(rule):
    """Each rule per session has all steps from ballots to flips, with rows as wide as heads."""
    cast = [
        Ballot(f"r{k}", groups=(("a",), ("b",), ("c",)), grades={"a": 9, "b": 7 - k % 2, "c": 3})
        for k in range(4)
    ]

    explanation = explain(cast, Settings.of(rule))

    assert explanation.outcome.leaders == ("a",)
    titles = [result.title for result in explanation.steps]
    assert titles[:3] == ["The ballots as cast", "The ballots as counted", f"What {rule} reads"]
    assert titles[-3:] == [
        "Hence the order",
        "Is the difference more than noise?",
        "What the lead depends on",
    ]
    assert len(titles) > 6
    assert len(set(titles)) == len(titles)
    for result in explanation.steps:
        assert all(len(row) == len(result.header) for row in result.rows)


def test_the_name_of_a_rule_stands_for_its_settings():
    """Where `tally` takes a name, its neighbours do; anything else is refused as ours."""
    cast = ballots("x: a > b", "y: a > b", "z: b > a")

    assert explain(cast, "irv").steps == explain(cast, Settings("irv")).steps
    assert [each.rule for each in tally_sessions(cast, "irv")] == ["irv"]
    with pytest.raises(UnknownName, match="unknown rule 'irw'; did you mean 'irv'"):
        explain(cast, "irw")
    for count in (explain, tally_sessions, compare_rules):
        with pytest.raises(InvalidParameter, match="settings"):
            count(cast, {"rule": "irv"})
    with pytest.raises(InvalidParameter, match="settings"):
        compare_rules(cast, "irv")


def test_the_contrast_agrees_with_the_outcome():
    """Its t is difference over error, and p is below 5% where the two are separated."""
    cast = ballots("3 × p: a > b > c", "q: b > a > c", "r: a > c > b")

    explanation = explain(cast)

    result = step(explanation.steps, "Is the difference")
    (row,) = result.rows
    cells = dict(zip(result.header, row, strict=True))
    assert (cells["first"], cells["second"]) == ("a", "b")
    assert cells["t"] == pytest.approx(cells["difference"] / cells["error"])
    assert cells["p"] == pytest.approx(2 * t_distribution.sf(cells["t"], cells["df"]))
    assert (cells["p"] < 0.05) == (("a", "b") not in explanation.outcome.unresolved)
    assert cells["df"] == explanation.outcome.df


def test_ties_by_intervals_show_both_intervals():
    """Under ``ties="intervals"`` the step shows both ends of both, and any overlap."""
    cast = ballots("3 × p: a > b > c", "q: b > a > c")

    explanation = explain(cast, Settings.of("borda", ties="intervals"))

    result = step(explanation.steps, "Is the difference")
    low_of_first, high_of_second = result.rows[0][3], result.rows[1][4]
    overlap = low_of_first < high_of_second
    assert explanation.outcome.standings[0].tied_with_next == overlap
    assert ("do not overlap" in result.sentences[0]) != overlap


def test_too_few_ballots_are_reported():
    """One ballot leaves no degrees of freedom to separate candidates."""
    explanation = explain(ballots("p: a > b > c"))

    [sentence] = step(explanation.steps, "Is the difference").sentences
    assert "too few ballots" in sentence


@pytest.mark.parametrize("rule", ["range", "normalized_scores"])
def test_a_fit_of_rankings_separates_nobody_with_one_grade(rule):
    """A rule that reads grades counts one vote of each, as the outcome says."""
    cast = [*ballots("12 × z: a > b > c"), Ballot("x", grades={"a": 9, "b": 7, "c": 2})]

    explanation = explain(cast, Settings.of(rule))

    result = step(explanation.steps, "Is the difference")
    assert "too few ballots" in explanation.outcome.interpretation
    assert "a and b are too close to call: one of them has fewer" in " ".join(result.sentences)
    assert "differ." not in " ".join(result.sentences)


class TestChanges:
    """Every change between ballots as cast and ballots as counted is listed."""

    def test_recusal_is_listed(self):
        """One's own candidate leaves the ballot; without recusal the step lists nothing."""
        cast = ballots("a: a > b > c", "p: b > c > a")

        with_recusal = explain(cast, Settings.of("borda")).steps[1]
        without = explain(cast, Settings.of("borda", recusal="off")).steps[1]

        [sentence] = with_recusal.sentences
        assert "its own a: recused" in sentence
        assert with_recusal.rows[0] == ("a", "b > c", 1.0)
        assert without.sentences == ()

    def test_a_capped_grade_is_listed(self):
        """A grade lowered by the accuracy ceiling is shown before and after.

        ADR-016: accuracy 3 and 9 elsewhere weigh to 6.90 under the first edition's weights, and
        the ceiling makes it 4.0; under the general rubric's weights (accuracy 0.35 too) likewise.
        """
        grades = {"accuracy": 3, "relevance": 9, "completeness": 9, "conciseness": 9, "clarity": 9}
        cast = [Ballot("r", grades={"a": grades, "b": dict.fromkeys(grades, 7)})]

        step_of_changes = explain(cast, Settings.of("range")).steps[1]

        assert all(
            fact in step_of_changes.sentences[0]
            for fact in ("r's grade of a", "4 instead of 6.9", "accuracy is under 5")
        )

    def test_abstentions_and_dropped_names_are_listed(self):
        """Abstaining reviewers and dropped names are in the same list."""
        cast = [
            Ballot("p", groups=(("a",), ("b",), ("z",)), candidates=("a", "b")),
            Ballot("q", abstained=True, reason="timed out"),
        ]

        sentences = explain(cast).steps[1].sentences

        assert sentences[0] == "q abstains: timed out."
        assert "'z'" in sentences[1]

    def test_ballots_of_another_kind_are_listed(self):
        """With people alone counted, the model's ballot is shown as cast and not as counted."""
        cast = [
            Ballot("gpt", groups=(("a",), ("b",))),
            Ballot("ann", groups=(("b",), ("a",)), kind="human"),
        ]

        explanation = explain(cast, Settings.of("borda", kind="human"))

        assert [row[0] for row in explanation.steps[0].rows] == ["gpt", "ann"]
        assert [row[0] for row in explanation.steps[1].rows] == ["ann"]
        assert explanation.outcome.leaders == ("b",)


class TestSessions:
    """One session of many is explained as it is tallied."""

    def test_learned_weights_are_shown(self):
        """Under weighted Borda the weights come from the other sessions and are in the table."""
        lines = ("p: a > b > c", "q: a > b > c", "s: a > b > c", "r: c > b > a")
        cast = [b for k in range(20) for b in ballots(*lines, session=f"s{k}")]

        explanation = explain(cast, Settings.of("weighted_borda"), "s3")

        table = step(explanation.steps, "Borda")
        weight = {row[0]: row[table.header.index("weight")] for row in table.rows[:-1]}
        assert weight["p"] > 1 > weight["r"]

    def test_an_unknown_session_is_refused(self):
        """The error suggests the nearest name; several sessions need a name."""
        cast = [*ballots("p: a > b", session="q1"), *ballots("p: a > b", session="q2")]

        with pytest.raises(UnknownName, match="did you mean 'q2'"):
            explain(cast, session="q22")
        with pytest.raises(InvalidParameter, match="one of 2 sessions"):
            explain(cast)

    def test_without_votes_only_the_ballots_are_shown(self):
        """Without any ballot the request is refused."""
        with pytest.raises(NothingToCount):
            explain([])
        assert len(explain(ballots("p:")).steps) == 2

    @pytest.mark.parametrize("rule", ["elo", "range"])
    def test_rules_that_cannot_count_give_their_reason(self, rule):
        """These are rules over a history and rules that need grades."""
        with pytest.raises(UnsuitableBallots):
            explain(ballots("p: a > b", "q: a > b"), Settings.of(rule))
