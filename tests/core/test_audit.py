"""An audit of reviewers, and the concerns it reports."""

import numpy as np
import pytest

from audited import audit_of, ballot, session
from witan.core.outcome import Interval
from witan.core.stats.audit import CHECKS, concern_of, concerns
from witan.core.stats.measures import Measure
from witan.errors import InvalidParameter

OF = {check.measure: check for check in CHECKS}


def repeat_session(n, *ballots, **rest):
    """The same ballots in this many sessions of different names."""
    return [session(f"question {k}", *ballots, **rest) for k in range(n)]


class TestSelfPreference:
    """Own votes beside the mean vote of each other reviewer."""

    def test_self_preference_by_hand(self):
        """1 by itself; .5 and 0 by the two others, a mean of .25; a preference of .75."""
        audit = audit_of(
            repeat_session(
                30,
                ballot("a", {"a": 1.0, "b": 0.5, "c": 0.0, "d": 1.0}),
                ballot("b", {"a": 0.5, "c": 1.0, "d": 0.0}),
                ballot("c", {"a": 0.0, "b": 1.0}),
            )
        )

        measure = audit["a"].self_preference
        assert measure.value == pytest.approx(0.75)
        assert (measure.n, measure.of) == (30, "votes on its own answers")

    def test_other_reviewers_have_equal_weight(self):
        """A reviewer with ten times the votes of another has the same weight in the mean."""
        few = repeat_session(
            30, ballot("a", {"a": 1.0, "b": 0.0}), ballot("b", {"a": 0.0, "c": 1.0})
        )
        many = [
            session(f"more {k}", ballot("c", {"a": 0.5, "b": 1.0}), ballot("a", {"a": 1.0}))
            for k in range(300)
        ]

        measure = audit_of([*few, *many])["a"].self_preference

        assert measure.value == pytest.approx(1 - (0.0 + 0.5) / 2)

    def test_recused_reviewers_have_no_self_preference(self):
        """The measure says what it lacks."""
        measure = audit_of(repeat_session(30, ballot("a", {"b": 1.0, "c": 0.0})))[
            "a"
        ].self_preference

        assert measure.value is None
        assert not measure.enough
        assert all(fact in measure.why for fact in ("0 votes", "30 needed"))

    def test_constant_votes_have_no_interval(self):
        """The same ballots in every session give a value, no interval and no concern."""
        line = audit_of(
            repeat_session(
                30,
                ballot("a", {"a": 1.0, "b": 0.5, "c": 0.0}),
                ballot("b", {"a": 0.5, "c": 1.0, "d": 0.0}),
                ballot("c", {"a": 0.0, "b": 1.0}),
            )
        )["a"]

        assert line.self_preference.value == pytest.approx(0.75)
        assert line.self_preference.interval is None
        assert "error unknown" in line.self_preference.why
        assert "self_preference" not in [concern.measure for concern in concerns(line)]

    def test_others_in_under_five_groups_of_sessions_do_not_count(self):
        """Ten votes of three sessions are too similar to be a measure."""
        few = [
            session(f"few {k}", *[ballot("b", {"a": 0.0, "d": 1.0}, paired=True)] * 4)
            for k in range(3)
        ]
        usual = repeat_session(
            30,
            ballot("a", {"a": 1.0, "c": 0.0}),
            ballot("c", {"a": 0.5, "d": 1.0}),
            ballot("d", {"a": 0.5, "c": 1.0}),
        )

        assert audit_of([*few, *usual])["a"].self_preference.value == pytest.approx(0.5)

    def test_one_other_reviewer_is_not_enough(self):
        """A difference from a single other reviewer may be that reviewer's own bias."""
        audit = audit_of(
            repeat_session(40, ballot("a", {"a": 1.0, "b": 0.0}), ballot("b", {"a": 0.5, "c": 1.0}))
        )

        assert audit["a"].self_preference.value is None
        assert "1 other reviewer with" in audit["a"].self_preference.why

    def test_a_reviewer_that_ties_all_is_no_reference(self):
        """Reviewer d ties all and does not count; b and c give a its own share."""
        panel = (
            ballot("a", {"a": 1.0, "b": 0.0}),
            ballot("b", {"a": 1.0, "c": 0.0}),
            ballot("c", {"a": 1.0, "d": 0.0}),
            ballot("d", {"a": 0.5, "d": 0.5}),
        )
        audit = audit_of(repeat_session(30, *panel))

        assert audit["a"].self_preference.value == pytest.approx(0.0)
        assert audit["d"].self_preference.value is None
        assert "no preference can be measured" in audit["d"].self_preference.why


class TestFamilyPreference:
    """Votes on relatives beside those of outsiders."""

    def test_family_preference_by_hand(self):
        """Excess .3 over each of two strangers, none over itself: a mean of .2 over three."""
        audit = audit_of(
            repeat_session(
                30,
                ballot("a", {"b": 0.8, "x": 0.35, "y": 0.35}),
                ballot("x", {"a": 0.5, "b": 0.65, "y": 0.5}),
                ballot("y", {"a": 0.5, "b": 0.65, "x": 0.5}),
            ),
            {"a": "one", "b": "one"},
        )

        # [.8 − .35] − [.65 − .5] = .3 for x by y alone, and for y by x alone.
        assert audit["a"].family_preference.value == pytest.approx(0.2)
        assert audit["a"].family_preference.n == 30


class TestPosition:
    """Places on the sheet."""

    def test_position_effect_by_hand(self):
        """Excess +.5 at the first place and −.5 at the last of three: an effect of 1."""
        audit = audit_of(
            repeat_session(
                30,
                ballot("a", {"x": 1.0, "y": 0.5, "z": 0.0}, positions=(1, 2, 3)),
                ballot("b", {"x": 0.5, "y": 1.0, "z": 0.5}, positions=(3, 2, 1)),
            )
        )

        assert audit["a"].position_effect.value == pytest.approx(1.0)
        assert audit["a"].position_effect.n == 30

    def test_there_is_no_excess_over_a_reviewer_that_ties_all(self):
        """Reviewers a and b agree, so neither prefers the first place."""
        places = {"positions": (1, 2, 3)}
        audit = audit_of(
            repeat_session(
                30,
                ballot("a", {"x": 1.0, "y": 0.5, "z": 0.0}, **places),
                ballot("b", {"x": 1.0, "y": 0.5, "z": 0.0}, **places),
                ballot("tie", {"x": 0.5, "y": 0.5, "z": 0.5}, **places),
            )
        )

        assert audit["a"].position_effect.value == pytest.approx(0.0)
        assert audit["tie"].position_effect.value is None
        assert "no preference can be measured" in audit["tie"].position_effect.why

    def test_rate_of_picking_the_first_shown(self):
        """Three wins and a tie of four comparisons are 7/8, with the tie as half."""
        shares = [(1.0, 0.0)] * 3 + [(0.5, 0.5)]
        audit = audit_of(
            [
                session(
                    f"question {k}", ballot("a", {"x": x, "y": y}, positions=(1, 2), paired=True)
                )
                for k, (x, y) in enumerate(shares * 10)
            ]
        )

        assert audit["a"].first_shown.value == pytest.approx(7 / 8)
        assert audit["a"].first_shown.n == 40
        assert audit["a"].first_shown.interval.high <= 1

    def test_always_picking_the_first_shown_has_an_interval(self):
        """Forty of forty: the next pick may differ, so the interval has a width."""
        pick = ballot("a", {"x": 1.0, "y": 0.0}, positions=(1, 2), paired=True)

        measure = audit_of(repeat_session(40, pick))["a"].first_shown

        assert (measure.value, measure.interval.high) == (1.0, 1.0)
        assert 0.85 < measure.interval.low < 0.98

    def test_unknown_places_are_in_no_measure(self):
        """A ballot without places on the sheet has no position effect."""
        audit = audit_of(repeat_session(40, ballot("a", {"x": 1.0, "y": 0.0})))

        assert audit["a"].position_effect.n == 0
        assert audit["a"].first_shown.n == 0


class TestGrades:
    """Severity, discrimination and spread."""

    def test_grade_measures_by_hand(self):
        """Grades 3 and 5 beside 6 and 7: 2.5 severe; spread 1 over a mean of .75.

        The slopes on each other are 2 and ½; within both together Σxy/Σyy = (1 + 1)/(½ + 2) = .8.
        """
        audit = audit_of(
            repeat_session(
                30,
                ballot("a", {"x": 0.0, "y": 1.0}, grades={"x": 3, "y": 5}),
                ballot("b", {"x": 0.0, "y": 1.0}, grades={"x": 6, "y": 7}),
            )
        )

        assert audit["a"].severity.value == pytest.approx(-2.5)
        assert audit["b"].severity.value == pytest.approx(2.5)
        assert audit["a"].discrimination.value == pytest.approx(2.0 / 0.8)
        assert audit["b"].discrimination.value == pytest.approx(0.5 / 0.8)
        assert audit["a"].spread.value == pytest.approx(1 / 0.75)
        assert audit["a"].grade_agreement.value == pytest.approx(1.0)

    def test_constant_grades_have_slope_zero(self):
        """Equal grades throughout have slope 0 and no correlation."""
        audit = audit_of(
            repeat_session(
                30,
                ballot("a", {"x": 0.5, "y": 0.5}, grades={"x": 8, "y": 8}),
                ballot("b", {"x": 0.0, "y": 1.0}, grades={"x": 6, "y": 7}),
                ballot("c", {"x": 0.0, "y": 1.0}, grades={"x": 5, "y": 8}),
            )
        )

        assert audit["a"].discrimination.value == pytest.approx(0.0)
        assert audit["a"].grade_agreement.value is None
        assert audit["a"].grade_agreement.enough
        assert audit["a"].grade_agreement.why.startswith("undefined")

    def test_beside_constant_grades_there_is_no_slope(self):
        """Against a panel without spread there is nothing to compare with."""
        audit = audit_of(
            repeat_session(
                30,
                ballot("a", {"x": 0.5, "y": 0.5}, grades={"x": 8, "y": 8}),
                ballot("b", {"x": 0.0, "y": 1.0}, grades={"x": 6, "y": 7}),
            )
        )

        assert audit["b"].discrimination.why.startswith("undefined")


class TestRates:
    """Abstentions, repairs, flat ballots, order-consistency."""

    def test_rates_by_hand(self):
        """Of 40 ballots 10 abstain and 4 are repaired; of the other 30, 6 are flat."""
        cast = [ballot("a", {}, abstained=True)] * 10
        cast += [ballot("a", {"x": 0.5, "y": 0.5})] * 6
        cast += [ballot("a", {"x": 1.0, "y": 0.0}, repaired=True, kept=3, compared=10)] * 4
        cast += [ballot("a", {"x": 1.0, "y": 0.0})] * 20
        line = audit_of([session(f"question {k}", b) for k, b in enumerate(cast)])["a"]

        assert line.abstention_rate.value == pytest.approx(10 / 40)
        assert line.repair_rate.value == pytest.approx(4 / 40)
        assert line.flat_rate.value == pytest.approx(6 / 30)
        assert line.order_consistency.value == pytest.approx(12 / 40)
        assert (line.ballots, line.abstentions, line.flags) == (40, 10, ())

    def test_a_rate_of_zero_has_an_interval(self):
        """Forty sessions without abstention do not exclude one."""
        rate = audit_of(repeat_session(40, ballot("a", {"x": 1.0, "y": 0.0})))["a"].abstention_rate

        assert rate.value == 0
        assert rate.interval.low == 0
        assert 0.05 < rate.interval.high < 0.15

    def test_dead_and_constant_reviewers_are_flagged(self):
        """Three ballots without a vote are dead; nine of ten ballots flat are constant."""
        flat = [ballot("c", {"x": 0.5, "y": 0.5})] * 9 + [ballot("c", {"x": 1.0, "y": 0.0})]
        cast = [
            *flat,
            *[ballot("d", {}, abstained=True)] * 3,
            *[ballot("e", {}, abstained=True)] * 2,
        ]
        audit = audit_of([session(f"question {k}", b) for k, b in enumerate(cast)])

        assert audit["c"].flags == ("constant",)
        assert audit["d"].flags == ("dead",)
        assert audit["e"].flags == ()


class TestLength:
    """Votes beside the length of answers."""

    def test_length_preference_by_hand(self):
        """The longer wins 3 of 4 decided pairs; equal lengths and ties decide nothing."""
        longer = ballot("a", {"x": 1.0, "y": 0.0}, chars={"x": 200, "y": 100})
        shorter = ballot("a", {"x": 0.0, "y": 1.0}, chars={"x": 200, "y": 100})
        level = ballot("a", {"x": 1.0, "y": 0.0}, chars={"x": 100, "y": 100})
        tied = ballot("a", {"x": 0.5, "y": 0.5}, chars={"x": 200, "y": 100})
        cast = [longer, longer, longer, shorter, level, tied] * 10
        line = audit_of([session(f"question {k}", b) for k, b in enumerate(cast)])["a"]

        assert line.length.longer_wins.value == pytest.approx(3 / 4)
        assert line.length.longer_wins.n == 40
        # Σlx = 20·(½ ln 2) of Σll = 50·(½ ln² 2) and Σxx = 50·½.
        assert line.length.shares.value == pytest.approx(20 / 50)

    def test_people_are_the_baseline_for_length(self):
        """Reviewers are measured against people's own preference for length; people are not."""
        chars = {"x": 200, "y": 100}
        audit = audit_of(
            repeat_session(
                40,
                ballot("a", {"x": 1.0, "y": 0.0}, chars=chars),
                ballot("ann", {"x": 1.0, "y": 0.0}, chars=chars, kind="human"),
            )
        )

        assert audit["a"].length.longer_wins_beyond_people.value == 0
        assert audit.people.length.longer_wins.value == 1
        assert audit.people.length.longer_wins_beyond_people.why == "people are the baseline"


class TestPeople:
    """People have a line each, and one line together."""

    def test_models_are_measured_against_people(self):
        """Right on two of four decided pairs and tied on one: 5/8."""
        sides = [(1.0, 0.0), (1.0, 0.0), (0.5, 0.5), (0.0, 1.0)]
        audit = audit_of(
            [
                session(
                    f"question {k}",
                    ballot("a", {"x": x, "y": y}),
                    ballot("ann", {"x": 1.0, "y": 0.0}, kind="human"),
                )
                for k, (x, y) in enumerate(sides * 10)
            ]
        )

        assert audit["a"].agreement_with_people.value == pytest.approx(5 / 8)
        assert [line.reviewer for line in audit.reviewers] == ["a"]
        assert [line.reviewer for line in audit.persons] == ["ann"]
        assert audit.people.ballots == 40
        assert audit.people.self_preference.why == "people write no answers"

    def test_without_people_there_is_no_human_line(self):
        """No measure against people exists either."""
        audit = audit_of(
            repeat_session(40, ballot("a", {"x": 1.0, "y": 0.0}, chars={"x": 2, "y": 3}))
        )

        assert audit.people is None
        assert audit["a"].length.longer_wins_beyond_people.value is None
        assert audit["a"].agreement_with_people.n == 0


class TestLimits:
    """Invalid options, and data too small to measure."""

    def test_an_empty_history_measures_nothing(self):
        """Without sessions there is no line, and every measure of the panel says what it lacks."""
        audit = audit_of([])

        assert audit.reviewers == ()
        assert audit.panel.alpha.shares.value is None
        assert audit.panel.effective_votes.why.startswith("not enough data: 0 pairs")
        assert audit.panel.stability.value is None

    def test_simulated_sessions_count_nowhere(self):
        """Sessions of scripted members are in no table."""
        audit = audit_of(repeat_session(40, ballot("a", {"x": 1.0, "y": 0.0}), simulated=True))

        assert audit.reviewers == ()

    def test_few_buckets_give_a_value_without_an_interval(self):
        """All ballots are in three sessions: the rate is known, its variance is not."""
        cast = [ballot("a", {"x": 1.0, "y": 0.0})] * 10
        line = audit_of([session(f"question {k}", *cast) for k in range(3)])["a"]

        assert line.flat_rate.value == 0
        assert line.flat_rate.interval is None

    @pytest.mark.parametrize("level", [0.0, 1.0, 95.0])
    def test_a_level_outside_0_to_1_is_refused(self, level):
        """A level is a probability."""
        with pytest.raises(InvalidParameter, match="level"):
            audit_of([], level=level)

    def test_the_order_of_rows_does_not_matter(self):
        """Sessions in another order give the same audit."""
        rng = np.random.default_rng(0)
        entries = [
            session(
                f"question {k}",
                ballot("a", {"x": float(rng.random()), "y": float(rng.random())}),
                ballot("b", {"x": float(rng.random()), "y": float(rng.random())}),
            )
            for k in range(40)
        ]

        first, second = audit_of(entries), audit_of(entries[::-1])

        assert first["a"].agreement.value == pytest.approx(second["a"].agreement.value, abs=1e-12)
        assert first["a"].agreement.n == second["a"].agreement.n == 80


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
def test_the_interval_decides_a_concern(name, low, high, stands_out):
    """A measure is a concern where its whole interval is on the bad side."""
    sentence = concern_of(OF[name], measure(low, high))

    assert (sentence is not None) == stands_out
    assert sentence != ""


def test_without_an_interval_there_is_no_concern():
    """A value alone does not show its noise."""
    bare = Measure(0.9, None, 100, "votes", 30, "share")

    assert [concern_of(check, bare) for check in CHECKS] == [None] * len(CHECKS)


def test_high_and_low_values_have_different_concerns():
    """Too much and too little are different concerns."""
    check = OF["position_effect"]

    assert "first answer on the sheet" in concern_of(check, measure(0.1, 0.2))
    assert "last answer on the sheet" in concern_of(check, measure(-0.2, -0.1))
