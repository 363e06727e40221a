"""Verdicts on texts: grades, the pass mark, the expected text, error rates."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from witan import Ballot, tally
from witan.core.gate import Gate
from witan.core.rubric import RUBRICS
from witan.core.settings import Settings
from witan.core.stats.learning import learn_severity
from witan.core.stats.priors import SEVERITY, Severity
from witan.core.verdict import judge_texts
from witan.errors import InvalidParameter, NothingToCount, UnknownName
from witan.service.trust import verdict_sentence

CLEAR = {"a": [9, 9, 9, 8], "b": [3, 4, 3, 3]}

CRITERIA = [criterion.name for criterion in RUBRICS["general"].criteria]

GRADE, OFFSET = st.floats(1, 10), st.floats(-2.5, 2.5)

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
    """Grades with intervals, and the probability of passing."""

    def test_probability_of_passing_by_hand(self):
        """Three reviewers: s² = 3·1.8/5, variance 1.08·(1/3 + 1/4), t = 2/0.794, df 5: 0.973."""
        result = verdict(jury(a=[9, 9, 9]), pass_mark=7)

        assert result.decision == "passed"
        assert result.probability == pytest.approx(0.9734, abs=1e-4)
        assert result.texts[0].overall.mean == 9
        assert result.text == "a"

    def test_the_outcome_states_the_shared_error_of_the_verdict(self):
        """Five jurors are worth 5/(1 + 4·0.2) = 2.8 votes: grades share more error than ranks."""
        outcome = tally(jury(a=[9, 8, 9, 8, 9]))

        assert (outcome.fit, outcome.rho) == ("grades", 0.2)
        assert outcome.effective_votes == pytest.approx(5 / 1.8)

    def test_without_a_pass_mark_there_is_no_decision(self):
        """The grades have their intervals."""
        result = verdict(jury(a=[6, 7, 8]))

        assert (result.decision, result.probability, result.ballots_to_flip) == (None, None, None)
        overall = result.texts[0].overall
        assert overall.interval.low < 7 < overall.interval.high
        assert [*result.texts[0].criteria] == CRITERIA

    def test_one_ballot_has_no_interval(self):
        """It decides nothing."""
        result = verdict(jury(a=[10]), pass_mark=2)

        assert result.texts[0].overall.interval is None
        assert result.decision == "too close to call"

    @given(GRADES, st.floats(1, 10))
    def test_mirrored_grades_have_the_mirrored_probability(self, grades, mark):
        """Passing m with grades g is as likely as failing 11 − m with grades 11 − g."""
        mirror = [11 - grade for grade in grades]
        one = verdict(jury(make=float, a=grades), pass_mark=mark)
        other = verdict(jury(make=float, a=mirror), pass_mark=11 - mark)

        assert one.probability == pytest.approx(1 - other.probability)

    @given(GRADES, st.integers(1, 9))
    def test_a_better_grade_never_lowers_the_mean(self, grades, mark):
        """A text that passed does not fail by it."""
        better = [min(grade + 1, 10) for grade in grades]
        before, after = (verdict(jury(a=each), pass_mark=mark) for each in (grades, better))

        assert after.texts[0].overall.mean >= before.texts[0].overall.mean
        assert not (before.decision == "passed" and after.decision == "failed")

    @given(GRADES, st.integers(2, 9))
    def test_the_fewest_ballots_change_the_decision(self, grades, mark):
        """Removing that many best or worst ballots changes it; removing one fewer does not."""
        result = verdict(jury(make=float, a=grades), pass_mark=mark)
        number = result.ballots_to_flip
        order = sorted(grades, reverse=result.decision == "passed")
        without = [
            verdict(jury(make=float, a=order[n:]), pass_mark=mark).decision
            for n in range(len(order))
        ]

        if result.decision == "too close to call":
            assert number is None
        elif number is None:
            assert {*without} == {result.decision}
        else:
            assert without[number] != result.decision
            assert {*without[:number]} == {result.decision}

    def test_a_narrow_pass_depends_on_one_ballot(self):
        """The verdict says so."""
        result = verdict(jury(make=float, a=[9, 9, 9, 9, 7]), pass_mark=7.05)

        assert (result.decision, result.ballots_to_flip) == ("passed", 1)

    def test_a_heavier_ballot_pulls_the_mean(self):
        """It also widens the interval, as effective votes decrease."""
        even = verdict(jury(a=[9, 7, 7, 7]))
        pulled = verdict(jury(a=[9, 7, 7, 7]), weights={"r0": 5.0})

        assert pulled.texts[0].overall.mean > even.texts[0].overall.mean
        wide = [
            v.texts[0].overall.interval.high - v.texts[0].overall.interval.low
            for v in (pulled, even)
        ]
        assert wide[0] > wide[1]

    def test_a_recount_uses_its_own_settings(self):
        """It has no ballot of one reviewer, other weights and another level."""
        ballots = jury(a=[9, 5, 5])
        settings = Settings.of("auto")
        apart = tally(ballots[1:], weights={"r2": 2.0}, level=0.8)

        result = judge_texts(ballots, apart, settings, pass_mark=7)

        assert result.reviewers == ("r1", "r2")
        assert result.texts[0].overall.mean == 5
        assert result.texts[0].overall.interval.level == result.level == 0.8

    def test_criteria_are_converted_from_their_scale(self):
        """A 4 of 5 is an 8.2 of 10."""
        ballots = [
            Ballot(f"r{n}", grades={"a": flat(4)}, session="s", candidates=("a",), scale="0-5")
            for n in range(3)
        ]

        assert verdict(ballots).texts[0].criteria["clarity"].mean == pytest.approx(8.2)

    def test_a_text_that_fails_the_safety_gate_fails(self):
        """Its grades do not matter."""
        result = verdict(jury(a=[10, 10, 10]), gates={"s": Gate({"a": ("self_harm",)}, 10.0)})

        assert result.decision == "failed"
        assert (result.texts[0].failed, result.texts[0].overall) == (("self_harm",), None)

    @pytest.mark.parametrize("mark", [0.5, 11, "7", True, float("nan")])
    def test_an_invalid_pass_mark_is_refused(self, mark):
        """The error names the valid range."""
        with pytest.raises(InvalidParameter, match="a grade from 1 to 10"):
            verdict(jury(a=[5, 5]), pass_mark=mark)


class TestSeveralTexts:
    """One text has to lead clearly: any, or the expected one."""

    def test_a_clear_leader_passes(self):
        """The verdict has its p_best and the ballots that could end its lead."""
        result = verdict(jury(**CLEAR))

        assert (result.decision, result.text, result.leader) == ("passed", "a", "a")
        assert result.probability > 0.95
        assert result.ballots_to_flip >= 1

    @pytest.mark.parametrize(("expected", "decision"), [("a", "passed"), ("b", "failed")])
    def test_the_expected_text_has_to_be_the_leader(self, expected, decision):
        """A clear lead of another text makes it fail."""
        result = verdict(jury(**CLEAR), expected=expected)

        assert (result.decision, result.text) == (decision, expected)

    def test_equal_texts_are_too_close_to_call(self):
        """There is no leader."""
        result = verdict(jury(a=[7, 8, 7], b=[8, 7, 7]))

        assert (result.decision, result.leader, result.text) == ("too close to call", None, None)

    def test_a_leader_below_the_mark_does_not_pass(self):
        """With all texts below the mark the verdict is fail."""
        low = verdict(jury(a=[4, 4, 4, 3], b=[1, 1, 1, 1]), pass_mark=8)

        assert (low.decision, low.leader) == ("failed", "a")
        # It fails whoever leads, until one of the texts no longer does.
        assert low.ballots_to_flip == min(each.ballots_to_flip for each in low.texts)

    def test_a_leader_near_the_mark_is_undecided(self):
        """The ballots that could end its lead would not decide."""
        near = verdict(jury(**CLEAR), pass_mark=8.5)

        assert (near.decision, near.leader) == ("too close to call", "a")
        assert near.ballots_to_flip is None

    def test_two_reasons_to_fail_take_the_ballots_of_both(self):
        """Another text leads, and the expected one is below the mark."""
        result = verdict(jury(**CLEAR), pass_mark=6, expected="b")
        [own] = (each.ballots_to_flip for each in result.texts if each.text == "b")
        lead = tally(jury(**CLEAR)).ballots_to_flip

        assert result.decision == "failed"
        assert result.ballots_to_flip == max(lead, own)

    def test_an_unknown_expected_text_is_refused(self):
        """The error lists the texts."""
        with pytest.raises(UnknownName, match="'c'"):
            verdict(jury(**CLEAR), expected="c")


def test_a_verdict_without_grades_names_the_missing_criteria():
    """Every ballot grades .30 of the weight, so there is no overall grade, and it says why."""

    def thin(grade):
        return {"relevance": grade, "clarity": grade}

    ranked = [replace(ballot, groups=(("a",),)) for ballot in jury(make=thin, a=[9, 9, 9])]
    result = verdict(ranked, pass_mark=7)

    assert (result.decision, result.texts[0].overall) == ("too close to call", None)
    assert result.texts[0].missing == ("accuracy", "completeness", "conciseness")
    assert "(missing: accuracy, completeness and conciseness)" in verdict_sentence(result)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"rubric": RUBRICS["creative"]}, "gave no grade that counts under the rubric 'creative'"),
        ({"weights": {"r0": 0.0, "r1": 0.0, "r2": 0.0, "r3": 0.0}}, "weighs nothing"),
    ],
)
def test_without_a_ballot_that_counts_there_is_no_verdict(options, reason):
    """The error says of the first three reviewers why, and how many more there are."""
    with pytest.raises(NothingToCount) as caught:
        verdict(jury(a=[9, 9, 9, 8]), **options)

    silent = "; ".join(f"r{juror} {reason}" for juror in range(3))
    assert f"no ballot of session 's' counts towards a verdict ({silent}; 1 more)" in str(
        caught.value
    )


def test_a_text_that_only_an_abstention_covers_has_no_grade():
    """Of pairs, one may be left to a reviewer without a ballot; the others have a verdict."""
    cast = Ballot("r0", (("a",), ("b",)), session="s")
    silent = Ballot("r1", session="s", abstained=True, reason="is down", candidates=("a", "b", "c"))

    made = verdict([cast, silent])

    assert [(text.text, text.overall) for text in made.texts] == [(name, None) for name in "abc"]


def test_an_error_about_ballots_without_a_session_names_none():
    """Ballots of a file or of one call need no name of a session."""
    cast = [replace(ballot, session="") for ballot in jury(a=[9, 9, 9])]
    with pytest.raises(NothingToCount, match=r"^no ballot counts towards a verdict "):
        verdict(cast, weights=dict.fromkeys(("r0", "r1", "r2"), 0.0))


@pytest.mark.parametrize(
    ("shared", "most"), [(0.2, 0.055), pytest.param(0.35, 0.085, marks=pytest.mark.slow)]
)
@pytest.mark.parametrize(
    "n_jurors", [3, *(pytest.param(n, marks=pytest.mark.slow) for n in (5, 9))]
)
def test_a_text_at_the_mark_seldom_passes(n_jurors, shared, most):
    """Noise 1.1 and severity .7, rounded grades: as often as documented."""
    rng = np.random.default_rng(n_jurors)
    n_passed, covered, n = 0, 0, 200
    for _ in range(n):
        quality = rng.uniform(3, 9)
        noise = rng.normal(0, np.sqrt(1.8 * (1 - shared)), n_jurors)
        grades = np.clip(np.rint(quality + rng.normal(0, np.sqrt(1.8 * shared)) + noise), 1, 10)
        ballots = [
            Ballot(f"r{j}", grades={"a": float(g)}, session="s", candidates=("a",), scale="1-10")
            for j, g in enumerate(grades)
        ]
        result = verdict(ballots, pass_mark=float(quality))
        interval = result.texts[0].overall.interval
        n_passed += result.decision == "passed"
        covered += interval.low <= quality <= interval.high

    # Three standard errors of a share are added to what is promised.
    assert n_passed / n <= most + 3 * np.sqrt(most * (1 - most) / n)
    assert covered / n >= 1 - 2 * most - 0.03


def taught(offsets, *, n_sessions=60, rotate=False):
    """What sessions teach in which reviewers add these to the grades of two texts."""
    rng = np.random.default_rng(7)
    sessions = []
    for number in range(n_sessions):
        names = [*offsets]
        if rotate:
            names = [names[at] for at in range(len(names)) if (at + number) % len(names) > 1]
        texts = rng.normal(6, 1, 2)
        sessions.append(
            [{name: text + offsets[name] + rng.normal(0, 0.5) for name in names} for text in texts]
        )
    return learn_severity(sessions)


def known(*offsets):
    """The severity of r0, r1, …, each known equally well."""
    covariance = tuple(map(tuple, (0.05 * np.eye(len(offsets))).tolist()))
    names = tuple(f"r{number}" for number in range(len(offsets)))
    return Severity(names, offsets, covariance, 0.5, 60)


class TestSeverity:
    """How much higher or lower a reviewer grades than others, known from other sessions."""

    def test_it_is_learned_from_texts_that_others_graded(self):
        """Offsets come out about as they were put in, around the mean of all."""
        severity = taught({"r0": 1.5, "r1": 0.0, "r2": 0.0, "r3": -1.5}, rotate=True)

        assert severity.offsets == pytest.approx((1.5, 0.0, 0.0, -1.5), abs=0.3)
        assert severity.noise == pytest.approx(0.25, rel=0.3)
        assert severity.n_sessions == 60

    def test_few_sessions_teach_nothing(self):
        """Ten by three reviewers leave too few degrees of freedom."""
        assert taught(dict.fromkeys("abc", 0.0), n_sessions=10) is None

    def test_grades_without_any_noise_have_that_of_rounding(self):
        """Reviewers who differ by exactly the same are no better than their scale."""
        texts = [{"r0": 8.0, "r1": 6.0, "r2": 7.0}]
        severity = learn_severity([texts] * 60)

        assert severity.offsets == pytest.approx((1, -1, 0), abs=0.01)
        assert severity.noise == pytest.approx(1 / 12)

    def test_who_always_judges_together_may_all_be_severe(self):
        """The variance of their mean offset stays that of any R reviewers."""
        severity = taught(dict.fromkeys(("r0", "r1", "r2"), 0.0))
        _, covariance = severity.of(["r0", "r1", "r2"])

        assert covariance.mean() == pytest.approx(SEVERITY / 3)

    def test_grades_without_noise_teach_as_well(self):
        """Programs grade so; that all of them are severe stays possible."""
        severity = learn_severity([[{"r0": 6.0, "r1": 5.0}, {"r0": 8.0, "r1": 7.0}]] * 60)
        offsets, covariance = severity.of(["r0", "r1"])

        assert offsets == pytest.approx([0.5, -0.5], abs=1e-3)
        assert covariance.mean() == pytest.approx(SEVERITY / 2, rel=1e-3)

    def test_it_corrects_the_grades_and_their_interval(self):
        """Nine by one known to grade 1.5 too high counts as less; the rest is as sure as it was."""
        ballots = jury(a=[9, 6, 6, 6])
        severity = taught({"r0": 1.5, "r1": -0.5, "r2": -0.5, "r3": -0.5, "r4": 0.0}, rotate=True)
        given = verdict(ballots, pass_mark=6)
        corrected = verdict(ballots, pass_mark=6, prior="learn", severity=severity)
        widths = [
            each.texts[0].overall.interval.high - each.texts[0].overall.interval.low
            for each in (given, corrected)
        ]

        assert given.texts[0].overall.mean == 6.75
        assert corrected.texts[0].overall.mean == pytest.approx(6.75, abs=0.2)
        assert widths[1] < 0.8 * widths[0]
        assert corrected.severity is severity
        assert corrected.texts[0].criteria["accuracy"].mean == corrected.texts[0].overall.mean

    @given(st.lists(st.tuples(GRADE, OFFSET), min_size=2, max_size=7), st.floats(3, 8))
    def test_the_fewest_ballots_change_a_corrected_decision(self, graded, mark):
        """The best or worst ones as corrected: the first number of them that changes it."""
        ballots = jury(make=float, a=[grade for grade, _ in graded])
        offsets = [offset for _, offset in graded]
        options = {"pass_mark": mark, "prior": "learn", "severity": known(*offsets)}
        result = verdict(ballots, **options)
        corrected = [grade - offset for grade, offset in graded]
        best_first = result.decision == "passed"
        order = sorted(range(len(ballots)), key=corrected.__getitem__, reverse=best_first)
        decisions = [
            verdict([ballots[at] for at in order[number:]], **options).decision
            for number in range(1, len(ballots))
        ]
        changed = (at for at, each in enumerate(decisions, 1) if each != result.decision)

        decided = result.decision != "too close to call"
        assert result.ballots_to_flip == (next(changed, None) if decided else None)

    def test_no_smaller_set_of_ballots_changes_a_corrected_decision(self):
        """By brute force; the highest grades as given are mostly of lenient reviewers."""
        ballots = jury(make=float, a=[10, 9.1, 9.4, 7.5, 7.7, 8])
        severity = known(2.4, 1.3, 1.54, -0.65, 0.13, 0.68)
        options = {"pass_mark": 6.7, "prior": "learn", "severity": severity}
        result = verdict(ballots, **options)
        fewest = next(
            number
            for number in range(1, len(ballots))
            for rest in combinations(ballots, len(ballots) - number)
            if verdict(rest, **options).decision != "passed"
        )

        assert result.decision == "passed"
        assert result.ballots_to_flip == fewest == 3

    @pytest.mark.parametrize("prior", ["none", "public"])
    def test_without_a_learned_prior_grades_stand_as_given(self, prior):
        """Nothing of a history enters."""
        severity = taught({"r0": 2.0, "r1": 0.0, "r2": 0.0, "r3": 0.0}, rotate=True)
        ballots = jury(a=[9, 6, 6])
        with_severity = verdict(ballots, pass_mark=6, prior=prior, severity=severity)

        assert with_severity == verdict(ballots, pass_mark=6, prior=prior)

    def test_an_unknown_reviewer_is_as_any(self):
        """Its grade stands as given, with the public variance."""
        severity = taught({"r0": 2.0, "r1": -2.0, "r2": 0.0, "r3": 0.0}, rotate=True)
        offsets, covariance = severity.of(["r0", "x", "r0"])

        assert offsets[1] == 0
        assert covariance[1].tolist() == [0, SEVERITY, 0]
        assert covariance[0, 2] == covariance[0, 0]

    def test_intervals_cover_the_grade_of_such_reviewers(self):
        """In 95% of simulated cases at least, and narrower than without."""
        rng = np.random.default_rng(3)
        covered, widths = 0, {True: 0.0, False: 0.0}
        for _ in range(60):
            offsets = {f"r{n}": rng.normal(0, np.sqrt(SEVERITY)) for n in range(6)}
            severity = taught(offsets, rotate=True)
            truth = rng.uniform(4, 8)
            grades = [
                float(np.clip(round(truth + offset + rng.normal(0, 0.5)), 1, 10))
                for offset in offsets.values()
            ]
            for known in (True, False):
                options = {"prior": "learn", "severity": severity} if known else {}
                overall = verdict(jury(a=grades), **options).texts[0].overall
                widths[known] += overall.interval.high - overall.interval.low
                covered += known and overall.interval.low <= truth <= overall.interval.high

        assert covered >= 55
        assert widths[True] < 0.85 * widths[False]
