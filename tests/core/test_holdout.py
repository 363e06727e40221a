"""Stated probabilities against held-out reviewers and against people."""

from collections.abc import Iterator
from dataclasses import replace
from math import log

import numpy as np
import pytest

from elections import ballots
from witan import Settings
from witan.core.ballot import Ballot
from witan.core.holdout import MOST_CASES, check_calibration, learn_weights_from_people
from witan.core.outcome import Prior
from witan.errors import InvalidParameter, NothingToCount

NOISE, SPREAD = 0.5, 0.6
"""Standard deviations of a grade around its candidate's quality, and of qualities."""

TRUTH = Prior(NOISE**2, 1e4, SPREAD**2, "grades", 100)
"""What is known beforehand where everything is."""


def random_ballots(
    n_sessions: int,
    *,
    reviewers: int = 8,
    people: int = 0,
    shared: float = 0.0,
    spread: float = SPREAD,
    seed: int = 1,
) -> Iterator[Ballot]:
    """Grades of four candidates: quality, a reviewer's level, partly shared noise."""
    rng = np.random.default_rng(seed)
    for session in range(n_sessions):
        quality, common = spread * rng.normal(size=4), rng.normal(size=4)
        for seat in range(reviewers + people):
            person = seat >= reviewers
            share = 0.0 if person else shared
            error = np.sqrt(1 - share) * rng.normal(size=4) + np.sqrt(share) * common
            grades = np.clip(5.5 + 0.3 * rng.normal() + quality + NOISE * error, 1, 10)
            yield Ballot(
                f"{'person' if person else 'model'} {seat}",
                session=str(session),
                grades=dict(zip("abcd", grades.tolist(), strict=True)),
                kind="human" if person else "model",
            )


class TestSimulated:
    """Simulated ballots with known true probabilities."""

    def test_correct_probabilities_are_confirmed(self):
        """With noise and spread known, observed and expected differ by chance, for every size."""
        check = check_calibration(random_ballots(500, seed=3), Settings(prior=TRUTH), draws=4)

        assert [panel.reviewers for panel in check.panels] == [3, 5]
        for panel in check.panels:
            assert panel.sessions == 500
            for curve in (panel.p_best, panel.p_beats):
                assert curve.gap.interval.low <= 0 <= curve.gap.interval.high
                assert not any(tenth.deviates for tenth in curve.tenths)
                for tenth in curve.tenths:
                    assert tenth.share.value == pytest.approx(tenth.expectation, abs=0.07)

    def test_a_few_leaders_that_are_all_right_are_within_chance(self):
        """Results without spread are no evidence that 99% should have been 100%."""
        cast = [
            Ballot(
                f"{kind} {seat}",
                session=str(session),
                grades={"a": 8 + (seat + session) % 3, "b": 4 + (seat * session) % 3},
                kind=kind,
            )
            for session in range(7)
            for kind, n_seats in (("model", 4), ("human", 2))
            for seat in range(n_seats)
        ]
        check = check_calibration(cast, against="people")

        for panel in check.panels:
            for curve in (panel.p_best, panel.p_beats):
                [tenth] = curve.tenths
                assert (tenth.share.value, tenth.deviates) == (1, False)
                assert 0.9 < tenth.expectation < 1
                assert curve.gap.interval.low < 0 < curve.gap.interval.high

    def test_intervals_cover_where_nearly_all_are_right(self):
        """Twelve sessions with clear leaders and right probabilities have few that are wrong."""
        reviewers, spread, sessions = 5, 2.5, 12
        cast = [*random_ballots(1800, reviewers=reviewers, spread=spread, seed=5)]
        settings = Settings(prior=replace(TRUTH, quality_variance=spread**2))
        whole = check_calibration(cast, settings, reviewers=[3]).panels[0]
        assert abs(whole.p_best.gap.value) < 0.01
        assert whole.p_best.tenths[-1].share.value > 0.96

        n_ballots = reviewers * sessions
        panels = [
            check_calibration(cast[at : at + n_ballots], settings, reviewers=[3]).panels[0]
            for at in range(0, len(cast), n_ballots)
        ]
        for curves in ([each.p_best for each in panels], [each.p_beats for each in panels]):
            gaps = [each.gap.interval for each in curves]
            assert np.mean([each.low <= 0 <= each.high for each in gaps]) >= 0.95
            assert np.mean([each.tenths[-1].deviates for each in curves]) <= 0.05

    def test_the_prior_is_public_where_none_is_learned(self):
        """Too few sessions to learn from count as without learning, and the check says so."""
        few, learned = (
            check_calibration(random_ballots(n), Settings(prior="learn"), reviewers=[3], draws=4)
            for n in (20, 60)
        )

        assert (few.prior, learned.prior) == ("public", "history")

    def test_few_held_out_reviewers_agree_less_often(self):
        """Two others agree less often than stated, thirty nearly as often, as expected."""
        few = check_calibration(
            random_ballots(150, reviewers=5), Settings(prior=TRUTH), reviewers=[3]
        )
        many = check_calibration(
            random_ballots(60, reviewers=33), Settings(prior=TRUTH), reviewers=[3]
        )

        losses = [
            tenth.probability - tenth.expectation
            for check in (few, many)
            for tenth in check.panels[0].p_best.tenths
            if tenth.low == 0.7
        ]
        assert losses[0] > 0.12
        assert losses[1] < 0.06

    def test_overconfident_probabilities_are_detected(self):
        """A prior of a tenth of the noise states far more than others confirm."""
        sure = Prior(NOISE**2 / 10, 50.0, SPREAD**2, "grades", 100)
        check = check_calibration(random_ballots(300), Settings(prior=sure), reviewers=[3], draws=4)

        [panel] = check.panels
        assert panel.p_best.gap.interval.high < -0.05
        assert panel.p_beats.gap.interval.high < -0.03
        assert any(tenth.deviates for tenth in panel.p_best.tenths)

    def test_the_right_prior_scores_better(self):
        """Its log and Brier scores beat those of an overconfident one."""
        wrong = Prior(NOISE**2 / 10, 50.0, SPREAD**2, "grades", 100)
        curves = [
            check_calibration(random_ballots(200), Settings(prior=prior), reviewers=[3], draws=4)
            .panels[0]
            .p_best
            for prior in (TRUTH, wrong)
        ]

        assert curves[0].log_score < curves[1].log_score
        assert curves[0].brier < curves[1].brier
        assert curves[0].log_floor == pytest.approx(np.log(4))
        assert curves[0].brier_floor == pytest.approx(0.75)
        assert curves[0].log_score < curves[0].log_floor

    def test_shared_error_of_models_shows_only_against_people(self):
        """Held-out models share it and agree; people do not."""
        cast = [*random_ballots(300, reviewers=6, people=4, shared=0.7)]
        settings = Settings(prior="none")
        among = check_calibration(cast, settings, reviewers=[4], draws=3)
        beside = check_calibration(cast, settings, reviewers=[4], draws=3, against="people")

        assert beside.panels[0].p_best.gap.interval.high < -0.1
        assert among.panels[0].p_best.gap.value > beside.panels[0].p_best.gap.value + 0.1
        assert beside.panels[0].others == 4


def known_pairs(n_sessions: int, wrong: int, *, both_orders: bool = False) -> Iterator[Ballot]:
    """A pair a session that a person decides; good is right, bad in all but `wrong` of them.

    In both orders, bad contradicts itself instead of being wrong.
    """
    for number in range(n_sessions):
        right, wrongly = (("a",), ("b",)), (("b",), ("a",))
        bad = wrongly if number < wrong else right
        cast = [("ann", right, "human", 1), ("good", right, "model", 1), ("bad", bad, "model", 1)]
        if both_orders:
            cast += [("good", right, "model", 2), ("bad", right, "model", 2)]
        for reviewer, groups, kind, at in cast:
            yield Ballot(
                reviewer,
                groups,
                session=f"s{number}",
                kind=kind,
                paired=True,
                positions={"a": at, "b": 3 - at},
            )


class TestWeights:
    """Weights of reviewers from people's votes or known answers."""

    def test_sixty_pairs_by_hand(self):
        """Of a panel right in .75, with 50 pairs of equality, 60 and 30 of 60 weigh as log-odds."""
        good, bad = (60 + 37.5) / 110, (30 + 37.5) / 110
        odds = {"good": log(good / (1 - good)), "bad": log(bad / (1 - bad))}

        weights = learn_weights_from_people(known_pairs(60, 30))

        mean = sum(odds.values()) / 2
        assert weights == pytest.approx({name: value / mean for name, value in odds.items()})

    def test_contradicting_orders_are_half_right(self):
        """As many as half of the pairs right and half wrong."""
        contradicting = learn_weights_from_people(known_pairs(60, 60, both_orders=True))

        assert contradicting == learn_weights_from_people(known_pairs(60, 30))

    def test_fewer_than_fifty_pairs_give_none(self):
        """Nobody's record says enough."""
        assert learn_weights_from_people(known_pairs(49, 10)) == {}

    def test_a_check_against_people_has_them(self):
        """With each reviewer's share of matches; against reviewers there are none."""
        cast = [*random_ballots(30, people=3)]

        check = check_calibration(cast, against="people", draws=2)

        assert check.weights == learn_weights_from_people(cast)
        assert set(check.matched) == set(check.weights)
        assert all(0.5 < share.value < 1 for share in check.matched.values())
        among = check_calibration(cast, draws=2)
        assert (among.weights, among.matched) == ({}, {})


class TestDraws:
    """The subsets of reviewers and their number."""

    def test_the_seed_decides_the_draws(self):
        """Another seed draws other subsets."""
        cast = [*random_ballots(40)]

        first, again, other = (
            check_calibration(cast, reviewers=[3], draws=5, seed=seed) for seed in (1, 1, 2)
        )

        assert first == again
        assert first.panels != other.panels
        assert other.seed == 2

    def test_few_subsets_are_used_once_each(self):
        """Three of five reviewers are ten subsets, however many draws are requested."""
        check = check_calibration(random_ballots(12, reviewers=5), reviewers=[3], draws=500)

        assert check.panels[0].draws == 120

    @pytest.mark.slow
    def test_draws_are_bounded(self):
        """With more sessions there are fewer draws of each."""
        cast = [b for n in range(2) for b in ballots("20 × r: a > b", session=str(n))]
        check = check_calibration(cast, reviewers=[9], draws=10 * MOST_CASES)

        assert check.panels[0].draws == MOST_CASES

    def test_sessions_with_too_few_reviewers_are_not_drawn(self):
        """They are only counted."""
        cast = [
            *random_ballots(10, reviewers=6),
            *(b for b in random_ballots(20, reviewers=3) if int(b.session) > 9),
        ]
        check = check_calibration(cast, reviewers=[4])

        assert check.sessions == 20
        assert check.panels[0].sessions == 10

    def test_rankings_have_probabilities_too(self):
        """Ballots without grades are compared on ranks."""
        cast = [
            Ballot(b.reviewer, groups=tuple((c,) for c in sorted(b.grades, key=b.grades.get)),
                   session=b.session)
            for b in random_ballots(60, reviewers=6)
        ]  # fmt: skip

        [panel] = check_calibration(cast, reviewers=[3], draws=5).panels

        assert panel.p_beats.log_score < panel.p_beats.log_floor

    def test_comparisons_of_pairs_have_probabilities_too(self):
        """Each reviewer's pairs are one opinion."""
        cast = [
            Ballot(b.reviewer, groups=((x,), (y,)) if b.grades[x] > b.grades[y] else ((y,), (x,)),
                   session=b.session, candidates=(x, y), paired=True)
            for b in random_ballots(40, reviewers=6)
            for x, y in ("ab", "ac", "ad", "bc", "bd", "cd")
        ]  # fmt: skip

        [panel] = check_calibration(cast, reviewers=[4], draws=5).panels

        assert panel.sessions == 40
        assert panel.p_beats.log_score < panel.p_beats.log_floor


class TestEdges:
    """Too few data."""

    def test_one_session_has_shares_without_intervals(self):
        """Scores and expectations exist; an interval needs five sessions."""
        [panel] = check_calibration(random_ballots(1, reviewers=6), reviewers=[3]).panels

        assert panel.sessions == 1
        assert panel.p_beats.gap.value is None
        assert all(tenth.share.interval is None for tenth in panel.p_beats.tenths)

    def test_unanimous_reviewers_are_confirmed(self):
        """The leader of the drawn rankings leads the others."""
        cast = [b for n in range(10) for b in ballots("6 × r: a > b > c", session=str(n))]
        [panel] = check_calibration(cast, reviewers=[3]).panels

        assert all(tenth.share.value == 1 for tenth in panel.p_best.tenths)
        assert panel.p_beats.gap.value > 0

    def test_ties_count_half(self):
        """Reviewers who tie everything state one half, and one half is observed."""
        cast = [b for n in range(10) for b in ballots("6 × r: a = b", session=str(n))]
        [panel] = check_calibration(cast, reviewers=[3]).panels

        for curve in (panel.p_best, panel.p_beats):
            [tenth] = curve.tenths
            claims = [tenth.probability, tenth.expectation, tenth.share.value]
            assert claims == pytest.approx([0.5, 0.5, 0.5])
            assert curve.log_score == pytest.approx(curve.log_floor) == pytest.approx(np.log(2))

    @pytest.mark.parametrize(
        ("n_reviewers", "options", "said"),
        [
            (3, {}, "no session has the 4 reviewers needed, 2 of them held out"),
            (6, {"reviewers": [5]}, "the most is 6: draw 4 or fewer"),
            (6, {"against": "people"}, "no session has ballots of two models and of people"),
        ],
    )
    def test_too_few_reviewers_are_refused(self, n_reviewers, options, said):
        """The error gives their number and the number needed."""
        with pytest.raises(NothingToCount, match=said):
            check_calibration(random_ballots(5, reviewers=n_reviewers), **options)

    def test_no_ballots_are_refused(self):
        """The error is that of a tally."""
        with pytest.raises(NothingToCount, match="no ballot"):
            check_calibration([])

    @pytest.mark.parametrize("options", [{"reviewers": [1]}, {"draws": 0}])
    def test_numbers_have_a_minimum(self, options):
        """One reviewer states nothing, and no draw observes nothing."""
        with pytest.raises(InvalidParameter):
            check_calibration(random_ballots(5), **options)
