"""Verdicts on texts: grades, the pass mark, the expected text, and how often they are wrong."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from witan import Ballot, tally
from witan.core.gate import Gate
from witan.core.rubric import RUBRICS
from witan.core.settings import Settings
from witan.core.verdict import judge_texts
from witan.errors import InvalidParameter, UnknownName

CLEAR = {"a": [9, 9, 9, 8], "b": [3, 4, 3, 3]}

CRITERIA = [criterion.name for criterion in RUBRICS["general"].criteria]

GRADES = st.lists(st.integers(1, 10), min_size=2, max_size=7)


def flat(grade):
    """The same grade for each criterion."""
    return dict.fromkeys(CRITERIA, grade)


def jury(*, make=flat, **texts):
    """A ballot for each juror, with its grade of each text, by criterion or as `make` has it."""
    [n] = {len(grades) for grades in texts.values()}
    names = tuple(texts)
    return [
        Ballot(
            f"r{juror}",
            grades={name: make(float(texts[name][juror])) for name in names},
            session="s",
            candidates=names,
            scale="1-10",
        )
        for juror in range(n)
    ]


def verdict(ballots, pass_mark=None, expected=None, **options):
    """What `judge_texts` makes of ballots, counted with these options."""
    settings = Settings.of("auto", **options)
    outcome = tally(ballots, **options)
    return judge_texts(ballots, outcome, settings, pass_mark=pass_mark, expected=expected)


class TestOneText:
    """Grades with intervals, and the probability that it passes."""

    def test_three_reviewers_agree_far_above_the_mark(self):
        """By hand: s² = 3·1.8/5, variance 1.08·(1/3 + 1/4), t = 2/0.794 on 5 degrees: 0.973."""
        found = verdict(jury(a=[9, 9, 9]), pass_mark=7)

        assert found.decision == "passed"
        assert found.probability == pytest.approx(0.9734, abs=1e-4)
        assert found.texts[0].overall.mean == 9
        assert found.text == "a"

    def test_without_a_mark_nothing_is_decided(self):
        """The grades stand with their intervals all the same."""
        found = verdict(jury(a=[6, 7, 8]))

        assert (found.decision, found.probability, found.ballots_to_flip) == (None, None, None)
        overall = found.texts[0].overall
        assert overall.interval.low < 7 < overall.interval.high
        assert [*found.texts[0].criteria] == CRITERIA

    def test_one_ballot_has_no_interval(self):
        """Nor is anything decided by it."""
        found = verdict(jury(a=[10]), pass_mark=2)

        assert found.texts[0].overall.interval is None
        assert found.decision == "too close to call"

    @given(GRADES, st.floats(1, 10))
    def test_mirrored_grades_have_the_mirrored_probability(self, grades, mark):
        """Of passing at m by g, and of failing at 11 − m by 11 − g."""
        mirror = [11 - grade for grade in grades]
        one = verdict(jury(make=float, a=grades), pass_mark=mark)
        other = verdict(jury(make=float, a=mirror), pass_mark=11 - mark)

        assert one.probability == pytest.approx(1 - other.probability)

    @given(GRADES, st.integers(1, 9))
    def test_a_better_grade_never_lowers_the_mean(self, grades, mark):
        """And never makes a text fail that had passed."""
        better = [min(grade + 1, 10) for grade in grades]
        before, after = (verdict(jury(a=each), pass_mark=mark) for each in (grades, better))

        assert after.texts[0].overall.mean >= before.texts[0].overall.mean
        assert not (before.decision == "passed" and after.decision == "failed")

    @given(GRADES, st.integers(2, 9))
    def test_the_fewest_ballots_change_the_decision(self, grades, mark):
        """Without so many of the best, or the worst, it is not decided so; with one more it is."""
        found = verdict(jury(make=float, a=grades), pass_mark=mark)
        number = found.ballots_to_flip
        order = sorted(grades, reverse=found.decision == "passed")
        without = [
            verdict(jury(make=float, a=order[n:]), pass_mark=mark).decision
            for n in range(len(order))
        ]

        if found.decision == "too close to call":
            assert number is None
        elif number is None:
            assert {*without} == {found.decision}
        else:
            assert without[number] != found.decision
            assert {*without[:number]} == {found.decision}

    def test_one_of_five_high_grades_may_be_one_too_few(self):
        """What is passed by so little is said to hang on one ballot."""
        found = verdict(jury(make=float, a=[9, 9, 9, 9, 7]), pass_mark=7.05)

        assert (found.decision, found.ballots_to_flip) == ("passed", 1)

    def test_a_weight_of_more_ballots_pulls_the_mean(self):
        """And widens the interval, as fewer decide."""
        even = verdict(jury(a=[9, 7, 7, 7]))
        pulled = verdict(jury(a=[9, 7, 7, 7]), weights={"r0": 5.0})

        assert pulled.texts[0].overall.mean > even.texts[0].overall.mean
        wide = [
            v.texts[0].overall.interval.high - v.texts[0].overall.interval.low
            for v in (pulled, even)
        ]
        assert wide[0] > wide[1]

    def test_a_recount_decides_by_what_it_counts(self):
        """Without a reviewer, at other weights and another level, as its outcome has it."""
        ballots = jury(a=[9, 5, 5])
        settings = Settings.of("auto")
        apart = tally(ballots[1:], weights={"r2": 2.0}, level=0.8)

        found = judge_texts(ballots, apart, settings, pass_mark=7)

        assert found.reviewers == ("r1", "r2")
        assert found.texts[0].overall.mean == 5
        assert found.texts[0].overall.interval.level == found.level == 0.8

    def test_criteria_are_read_on_their_scale(self):
        """A 4 of 5 is an 8.2 of 10."""
        ballots = [
            Ballot(f"r{n}", grades={"a": flat(4)}, session="s", candidates=("a",), scale="0-5")
            for n in range(3)
        ]

        assert verdict(ballots).texts[0].criteria["clarity"].mean == pytest.approx(8.2)

    def test_what_fails_the_safety_gate_fails(self):
        """However it is graded."""
        found = verdict(jury(a=[10, 10, 10]), gates={"s": Gate({"a": ("self_harm",)}, 10.0)})

        assert found.decision == "failed"
        assert (found.texts[0].failed, found.texts[0].overall) == (("self_harm",), None)

    @pytest.mark.parametrize("mark", [0.5, 11, "7", True, float("nan")])
    def test_a_mark_that_is_no_grade_is_refused(self, mark):
        """With what it has to be."""
        with pytest.raises(InvalidParameter, match="a grade from 1 to 10"):
            verdict(jury(a=[5, 5]), pass_mark=mark)


class TestSeveralTexts:
    """One has to lead clearly: any, or the one that is expected to."""

    def test_a_clear_leader_passes(self):
        """With the probability that it is best, and the ballots that could end its lead."""
        found = verdict(jury(**CLEAR))

        assert (found.decision, found.text, found.leader) == ("passed", "a", "a")
        assert found.probability > 0.95
        assert found.ballots_to_flip >= 1

    @pytest.mark.parametrize(("expected", "decision"), [("a", "passed"), ("b", "failed")])
    def test_the_expected_text_has_to_be_the_leader(self, expected, decision):
        """Another that leads clearly makes it fail."""
        found = verdict(jury(**CLEAR), expected=expected)

        assert (found.decision, found.text) == (decision, expected)

    def test_equals_are_too_close_to_call(self):
        """Nobody leads."""
        found = verdict(jury(a=[7, 8, 7], b=[8, 7, 7]))

        assert (found.decision, found.leader, found.text) == ("too close to call", None, None)

    def test_a_leader_below_the_mark_does_not_pass(self):
        """Where every text fails, so does the verdict."""
        low = verdict(jury(a=[4, 4, 4, 3], b=[1, 1, 1, 1]), pass_mark=8)

        assert low.decision == "failed"

    def test_an_unknown_text_is_named(self):
        """With those that there are."""
        with pytest.raises(UnknownName, match="'c'"):
            verdict(jury(**CLEAR), expected="c")


@pytest.mark.parametrize(("shared", "most"), [(0.2, 0.055), (0.35, 0.085)])
@pytest.mark.parametrize(
    "n_jurors", [3, *(pytest.param(n, marks=pytest.mark.slow) for n in (5, 9))]
)
def test_a_text_at_the_mark_seldom_passes(n_jurors, shared, most):
    """Noise 1.1 and severity .7, rounded grades: as often as the page on uncertainty says."""
    rng = np.random.default_rng(n_jurors)
    passed, covered, n = 0, 0, 200
    for _ in range(n):
        quality = rng.uniform(3, 9)
        noise = rng.normal(0, np.sqrt(1.8 * (1 - shared)), n_jurors)
        grades = np.clip(np.rint(quality + rng.normal(0, np.sqrt(1.8 * shared)) + noise), 1, 10)
        ballots = [
            Ballot(f"r{j}", grades={"a": float(g)}, session="s", candidates=("a",), scale="1-10")
            for j, g in enumerate(grades)
        ]
        found = verdict(ballots, pass_mark=float(quality))
        interval = found.texts[0].overall.interval
        passed += found.decision == "passed"
        covered += interval.low <= quality <= interval.high

    # Three standard errors of a share are added to what is promised.
    assert passed / n <= most + 3 * np.sqrt(most * (1 - most) / n)
    assert covered / n >= 1 - 2 * most - 0.03
