"""From agreement to reliability, and weights learned from people."""

import math

import numpy as np
import pytest

import reference_sums as by_hand
from audited import ballot, session
from reference_rows import names_of
from witan.core.session_ballots import MatchupEntry
from witan.core.stats.calibration import calibrate
from witan.core.stats.learning import PAIRS_OF_PEOPLE, learn_reliability_from_people
from witan.errors import InvalidParameter


def judged_session(name, p_beats, right):
    """A session in which people prefer x or y and the panel states its probability of x."""
    x = 1.0 if right == (p_beats > 0.5) else 0.0
    return session(
        name,
        ballot("ann", {"x": x, "y": 1 - x}, kind="human"),
        matchups=(MatchupEntry("model", ("x", "y"), (0.0,), (0.0,), (0.0,), (p_beats,)),),
    )


def history(cases):
    """Decided pairs by the panel's confidence: (p_beats, right, number)."""
    entries = [
        judged_session(f"{p} {right} {k}", p, right)
        for p, right, times in cases
        for k in range(times)
    ]
    return by_hand.calibration_sums(entries)


class TestCalibration:
    """How often a panel of this confidence matched people."""

    def test_calibration_by_hand(self):
        """.6 sure and right in 30 of 50, .9 sure and right in 45 of 50."""
        calibration = calibrate(
            history([(0.62, True, 30), (0.62, False, 20), (0.08, True, 45), (0.92, False, 5)])
        )

        assert calibration.pairs == 100
        assert [(b.low, b.high, b.pairs) for b in calibration.bands] == [
            (0.6, 0.65, 50),
            (0.9, 0.95, 50),
        ]
        assert [b.matched.value for b in calibration.bands] == pytest.approx([0.6, 0.9])
        assert calibration.bands[1].confidence == pytest.approx(0.92)
        assert calibration.reliability(0.64).value == pytest.approx(0.6)
        assert calibration.reliability(0.93).value == pytest.approx(0.9)

    def test_reliability_never_falls_with_confidence(self):
        """Bands out of order are pooled: 40 of 50 and then 30 of 50 are 70 of 100 for both."""
        calibration = calibrate(
            history([(0.62, True, 40), (0.62, False, 10), (0.72, True, 30), (0.72, False, 20)])
        )

        assert calibration.reliability(0.62).value == pytest.approx(0.7)
        assert calibration.reliability(0.72).value == pytest.approx(0.7)
        assert calibration.reliability(0.67).value == pytest.approx(0.7)
        assert calibration.reliability(0.72).n == 100
        assert len(calibration.blocks) == 1

    def test_unknown_below_fifty_decided_pairs(self):
        """With 49 pairs reliability is unknown at any confidence."""
        calibration = calibrate(history([(0.92, True, 49)]))

        assert not calibration.is_known
        assert calibration.reliability(0.92).value is None
        assert all(fact in calibration.reliability(0.92).why for fact in ("49 pairs", "50 needed"))

    def test_unknown_at_confidences_without_pairs(self):
        """It is unknown between and beyond bands, and in bands of under twenty pairs."""
        calibration = calibrate(
            history([(0.62, False, 19), (0.72, True, 35), (0.72, False, 5), (0.97, True, 40)])
        )

        assert all(fact in calibration.reliability(0.62).why for fact in ("19 pairs", "20 needed"))
        assert calibration.reliability(0.85).value is None
        assert calibration.reliability(0.85).n == 0
        assert calibration.reliability(0.97).value == 1.0

    @pytest.mark.parametrize("confidence", [0.4, 1.01, math.nan])
    def test_a_confidence_below_one_half_is_refused(self, confidence):
        """The confidence of a panel in a pair is the larger of two probabilities."""
        with pytest.raises(InvalidParameter, match="confidence"):
            calibrate(history([])).reliability(confidence)

    def test_even_chances_and_undecided_pairs_do_not_count(self):
        """Neither prefers a candidate."""
        tied = session(
            "tied",
            ballot("ann", {"x": 0.5, "y": 0.5}, kind="human"),
            matchups=(MatchupEntry("model", ("x", "y"), (0.0,), (0.0,), (0.0,), (0.9,)),),
        )
        table = by_hand.calibration_sums([judged_session("even", 0.5, right=True), tied])

        assert calibrate(table).pairs == 0

    def test_intervals_expose_an_overconfident_panel(self):
        """About 95% of intervals contain the true share, with errors shared within sessions."""
        rng = np.random.default_rng(0)
        covered, values = [], []
        for number in range(60):
            entries = []
            for k in range(60):
                luck = rng.beta(3, 2)  # right .6 of the time, alike within a session
                rights = rng.random(4) < luck
                names = [f"model {n}" for n in range(8)]
                entries.append(
                    session(
                        f"{number} {k}",
                        *(
                            ballot("ann", {a: float(right), b: float(not right)}, kind="human")
                            for a, b, right in zip(names[::2], names[1::2], rights, strict=True)
                        ),
                        matchups=tuple(
                            MatchupEntry("model", (a, b), (0.0,), (0.0,), (0.0,), (0.97,))
                            for a, b in zip(names[::2], names[1::2], strict=True)
                        ),
                    )
                )
            measure = calibrate(by_hand.calibration_sums(entries)).reliability(0.97)
            covered.append(measure.interval.low <= 0.6 <= measure.interval.high)
            values.append(measure.value)

        assert np.mean(covered) >= 0.88
        assert np.mean(values) == pytest.approx(0.6, abs=0.02)


class TestWeightsFromPeople:
    """Reviewers weighted by their agreement with people."""

    def learn(self, rights, n=200):
        """Weights of reviewers that agree with a person in these numbers of n sessions."""
        entries = [
            session(
                f"question {k}",
                ballot("ann", {"x": 1.0, "y": 0.0}, kind="human"),
                *(
                    ballot(name, {"x": float(k < right), "y": float(k >= right)})
                    for name, right in rights.items()
                ),
            )
            for k in range(n)
        ]
        return learn_reliability_from_people(by_hand.human_sums(entries), names_of(entries))

    def test_weights_by_hand(self):
        """160 and 120 of 200 about .7 give (160 + 35)/250 and (120 + 35)/250, as log-odds."""
        weights = self.learn({"good": 160, "poor": 120})

        good, poor = math.log(0.78 / 0.22), math.log(0.62 / 0.38)
        assert PAIRS_OF_PEOPLE == 50
        assert weights == pytest.approx(
            {"good": 2 * good / (good + poor), "poor": 2 * poor / (good + poor)}
        )

    def test_a_reviewer_worse_than_a_coin_has_weight_zero(self):
        """A negative weight would reverse its ballots."""
        weights = self.learn({"good": 195, "fair": 160, "bad": 20})

        assert weights["bad"] == 0
        assert weights["good"] > weights["fair"] > 0
        assert sum(weights.values()) == pytest.approx(3)

    def test_a_panel_no_better_than_a_coin_has_equal_weights(self):
        """Agreement with people shows no difference between reviewers."""
        assert self.learn({"a": 120, "b": 60}) == {"a": 1.0, "b": 1.0}

    def test_a_panel_that_never_agrees_with_people_has_equal_weights(self):
        """None of two hundred pairs agrees, and no logarithm of 0 is taken."""
        assert self.learn({"a": 0, "b": 0}) == {"a": 1.0, "b": 1.0}

    def test_under_fifty_pairs_there_are_no_weights(self):
        """Fifty decided pairs are needed."""
        assert self.learn({"a": 40, "b": 20}, n=49) == {}

    def test_a_panel_that_never_errs_has_equal_weights(self):
        """Log-odds of certainty are infinite; the prior's half a miss makes them finite."""
        assert self.learn({"a": 200, "b": 200}) == {"a": 1.0, "b": 1.0}

    def test_weights_approach_the_optimum_with_evidence(self):
        """With a hundred times the evidence they are the log-odds of the true shares."""
        weights = self.learn({"a": 4500, "b": 3500}, n=5000)

        assert weights["a"] / weights["b"] == pytest.approx(math.log(9) / math.log(7 / 3), rel=0.02)
