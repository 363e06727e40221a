"""Stated probabilities beside reviewers held out, and beside people."""

from collections.abc import Iterator

import numpy as np
import pytest

from elections import ballots
from witan import Settings
from witan.core.ballot import Ballot
from witan.core.holdout import MOST_CASES, check_calibration
from witan.core.outcome import Prior
from witan.errors import InvalidParameter, NothingToCount

NOISE, SPREAD = 0.5, 0.6
"""Standard deviations of a grade around its candidate's quality, and of qualities."""

TRUTH = Prior(NOISE**2, 1e4, SPREAD**2, "grades", 100)
"""What is known beforehand where everything is."""


def graded(
    n_sessions: int, *, reviewers: int = 8, people: int = 0, shared: float = 0.0, seed: int = 1
) -> Iterator[Ballot]:
    """Grades of four candidates: quality, a reviewer's level, noise that models share in part."""
    rng = np.random.default_rng(seed)
    for session in range(n_sessions):
        quality, common = SPREAD * rng.normal(size=4), rng.normal(size=4)
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
    """Ballots of which it is known whether the probabilities are right."""

    def test_probabilities_that_are_right_are_found_right(self):
        """With noise and spread known, found and expected differ by chance, for every size."""
        check = check_calibration(graded(500, seed=3), Settings(prior=TRUTH), draws=4)

        assert [panel.reviewers for panel in check.panels] == [3, 5]
        for panel in check.panels:
            assert panel.sessions == 500
            for curve in (panel.p_best, panel.p_beats):
                assert curve.gap.interval.low <= 0 <= curve.gap.interval.high
                assert not any(tenth.deviates for tenth in curve.tenths)
                for tenth in curve.tenths:
                    assert tenth.share.value == pytest.approx(tenth.expectation, abs=0.07)

    def test_few_others_are_expected_to_disagree(self):
        """What two others say is expected less often than stated; what thirty say, nearly."""
        few = check_calibration(graded(150, reviewers=5), Settings(prior=TRUTH), reviewers=[3])
        many = check_calibration(graded(60, reviewers=33), Settings(prior=TRUTH), reviewers=[3])

        losses = [
            tenth.probability - tenth.expectation
            for check in (few, many)
            for tenth in check.panels[0].p_best.tenths
            if tenth.low == 0.7
        ]
        assert losses[0] > 0.12
        assert losses[1] < 0.06

    def test_probabilities_that_are_too_sure_are_found_out(self):
        """A prior of a tenth of the noise states far more than others find."""
        sure = Prior(NOISE**2 / 10, 50.0, SPREAD**2, "grades", 100)
        check = check_calibration(graded(300), Settings(prior=sure), reviewers=[3], draws=4)

        [panel] = check.panels
        assert panel.p_best.gap.interval.high < -0.05
        assert panel.p_beats.gap.interval.high < -0.03
        assert any(tenth.deviates for tenth in panel.p_best.tenths)

    def test_better_knowledge_scores_better(self):
        """The right prior has better log and Brier scores than one that is too sure."""
        wrong = Prior(NOISE**2 / 10, 50.0, SPREAD**2, "grades", 100)
        curves = [
            check_calibration(graded(200), Settings(prior=prior), reviewers=[3], draws=4)
            .panels[0]
            .p_best
            for prior in (TRUTH, wrong)
        ]

        assert curves[0].log_score < curves[1].log_score
        assert curves[0].brier < curves[1].brier
        assert curves[0].log_floor == pytest.approx(np.log(4))
        assert curves[0].brier_floor == pytest.approx(0.75)
        assert curves[0].log_score < curves[0].log_floor

    def test_an_error_that_models_share_shows_beside_people_alone(self):
        """Models held out share it, and find what was stated; people do not."""
        cast = [*graded(300, reviewers=6, people=4, shared=0.7)]
        settings = Settings(prior="none")
        among = check_calibration(cast, settings, reviewers=[4], draws=3)
        beside = check_calibration(cast, settings, reviewers=[4], draws=3, against="people")

        assert beside.panels[0].p_best.gap.interval.high < -0.1
        assert among.panels[0].p_best.gap.value > beside.panels[0].p_best.gap.value + 0.1
        assert beside.panels[0].others == 4


class TestDraws:
    """Who is drawn, and how often."""

    def test_the_same_seed_draws_the_same(self):
        """And another one others."""
        cast = [*graded(40)]

        first, again, other = (
            check_calibration(cast, reviewers=[3], draws=5, seed=seed) for seed in (1, 1, 2)
        )

        assert first == again
        assert first.panels != other.panels
        assert other.seed == 2

    def test_few_subsets_are_taken_once_each(self):
        """Three of five reviewers are ten, however many draws are asked for."""
        check = check_calibration(graded(12, reviewers=5), reviewers=[3], draws=500)

        assert check.panels[0].draws == 120

    @pytest.mark.slow
    def test_draws_are_bounded(self):
        """Of more sessions fewer are drawn each."""
        cast = [b for n in range(2) for b in ballots("20 × r: a > b", session=str(n))]
        check = check_calibration(cast, reviewers=[9], draws=10 * MOST_CASES)

        assert check.panels[0].draws == MOST_CASES

    def test_only_sessions_with_reviewers_enough_count(self):
        """The others are counted, but not drawn from."""
        cast = [
            *graded(10, reviewers=6),
            *(b for b in graded(20, reviewers=3) if int(b.session) > 9),
        ]
        check = check_calibration(cast, reviewers=[4])

        assert check.sessions == 20
        assert check.panels[0].sessions == 10

    def test_rankings_have_probabilities_too(self):
        """Ballots without grades are compared on ranks."""
        cast = [
            Ballot(b.reviewer, groups=tuple((c,) for c in sorted(b.grades, key=b.grades.get)),
                   session=b.session)
            for b in graded(60, reviewers=6)
        ]  # fmt: skip

        [panel] = check_calibration(cast, reviewers=[3], draws=5).panels

        assert panel.p_beats.log_score < panel.p_beats.log_floor

    def test_comparisons_of_pairs_do_as_well(self):
        """Each reviewer's pairs are one opinion."""
        cast = [
            Ballot(b.reviewer, groups=((x,), (y,)) if b.grades[x] > b.grades[y] else ((y,), (x,)),
                   session=b.session, candidates=(x, y), paired=True)
            for b in graded(40, reviewers=6)
            for x, y in ("ab", "ac", "ad", "bc", "bd", "cd")
        ]  # fmt: skip

        [panel] = check_calibration(cast, reviewers=[4], draws=5).panels

        assert panel.sessions == 40
        assert panel.p_beats.log_score < panel.p_beats.log_floor


class TestEdges:
    """Little to go by."""

    def test_one_session_has_shares_without_intervals(self):
        """Scores and expectations are there; a share takes five sessions."""
        [panel] = check_calibration(graded(1, reviewers=6), reviewers=[3]).panels

        assert panel.sessions == 1
        assert panel.p_beats.gap.value is None
        assert all(tenth.share.interval is None for tenth in panel.p_beats.tenths)

    def test_reviewers_who_agree_in_everything_are_found_right(self):
        """Unanimous rankings: whoever leads the drawn ones leads the others."""
        cast = [b for n in range(10) for b in ballots("6 × r: a > b > c", session=str(n))]
        [panel] = check_calibration(cast, reviewers=[3]).panels

        assert all(tenth.share.value == 1 for tenth in panel.p_best.tenths)
        assert panel.p_beats.gap.value > 0

    def test_ties_count_half(self):
        """Reviewers who tie everything state one half, and find one half."""
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
            (3, {}, "no session has the 4 reviewers, 2 of them held out"),
            (6, {"reviewers": [5]}, "the most is 6: draw 4 or fewer"),
            (6, {"against": "people"}, "no session has ballots of two models and of people"),
        ],
    )
    def test_too_few_reviewers_say_what_to_do(self, n_reviewers, options, said):
        """How many there are, and how many it takes."""
        with pytest.raises(NothingToCount, match=said):
            check_calibration(graded(5, reviewers=n_reviewers), **options)

    def test_no_ballots_are_nothing_to_count(self):
        """As for a tally."""
        with pytest.raises(NothingToCount, match="no ballot"):
            check_calibration([])

    @pytest.mark.parametrize("options", [{"reviewers": [1]}, {"draws": 0}])
    def test_numbers_have_a_least(self, options):
        """One reviewer states nothing, and no draw finds nothing."""
        with pytest.raises(InvalidParameter):
            check_calibration(graded(5), **options)
