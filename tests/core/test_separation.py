"""What a council of a size can separate, held against simulated councils and real judges."""

import csv
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

from simulation import council
from witan.core.outcome import Prior
from witan.core.stats.additive import adjusted_grades, fit_grades, pair_variances
from witan.core.stats.uncertainty import POWER, TYPICAL_NOISE, Uncertainty, separation

WILDBENCH = Path(__file__).parents[3] / "shared" / "data" / "wildbench" / "pointwise.csv"


def found(gap: float, reviewers: int, others: float, sessions: int = 1_500) -> float:
    """In what share of simulated councils the first two answers are told apart."""
    quality = [gap, 0.0, *(others * (n % 2) for n in range(reviewers - 2))]
    rng = np.random.default_rng(17 + reviewers)
    profile = council(quality, reviewers=reviewers, sessions=sessions, rng=rng)
    fit, grades = fit_grades(profile), adjusted_grades(profile)
    votes = np.full(reviewers, reviewers - 1)
    apart = 0
    for session in range(sessions):
        own = pair_variances(grades[:, :, session])
        apart += bool(Uncertainty.of(fit, session, votes, own=own).told_apart(0.95)[0, 1])
    return apart / sessions


@pytest.mark.parametrize("reviewers", [4, 5, 6, 7, 9])
def test_a_gap_of_the_stated_size_is_found_four_times_of_five(reviewers):
    """Simulated reviewers with own levels, spreads and whole grades find it in 72 to 88 %."""
    gap = separation(reviewers, reviewers).grades

    share = np.mean([found(gap, reviewers, others) for others in (0.0, gap / 2, gap)])

    assert share == pytest.approx(POWER, abs=0.08)


def test_three_reviewers_separate_nothing():
    """Three who review each other leave too little freedom, however far apart answers are."""
    three = separation(3, 3)

    assert three.grades is None
    assert three.next_reviewers == 4
    assert three.next_grades == separation(4, 4).grades
    assert found(9.0, 3, 4.0, sessions=200) == 0.0


def test_a_larger_council_separates_smaller_gaps():
    """Every reviewer more narrows the gap; so does a jury that judges every answer."""
    gaps = [separation(n, n).grades for n in range(4, 13)]

    assert gaps == sorted(gaps, reverse=True)
    assert separation(4, 4, authors=False).grades < separation(4, 4).grades
    assert separation(3, 4, authors=False).grades is not None


def test_shared_error_widens_the_gap_and_a_history_narrows_it():
    """What reviewers get wrong together does not average out; known noise is worth reviewers."""
    alone = separation(4, 4).grades
    prior = Prior(1.0, 20.0, 1.0, "grades", 60)

    assert separation(4, 4, rho=0.3).grades > alone
    assert separation(4, 4, prior=prior).grades < alone
    assert separation(3, 3, prior=prior).grades is not None


@pytest.mark.parametrize(("reviewers", "candidates"), [(0, 0), (1, 1), (1, 5), (2, 2), (500, 500)])
def test_any_size_has_an_answer(reviewers, candidates):
    """Too small a council separates nothing; a very large one is taken for one of forty."""
    gap = separation(reviewers, candidates).grades

    assert gap is None if reviewers < 3 else gap < 1.0


@pytest.mark.skipif(
    not WILDBENCH.exists(), reason="the real grades are not beside this checkout (../shared/data)"
)
def test_the_typical_noise_is_above_that_of_two_judges_of_one_family():
    """Two such judges differ by .66 grades around candidate and severity; panels differ by more."""
    graded = defaultdict(lambda: defaultdict(dict))
    with WILDBENCH.open(encoding="utf-8", newline="") as lines:
        for row in csv.DictReader(lines):
            graded[row["prompt_id"]][row["candidate"]][row["judge"]] = float(row["score"])
    squares = freedom = 0.0
    for answers in graded.values():
        pairs = [list(map(held.get, sorted(held))) for held in answers.values() if len(held) == 2]
        if len(pairs) > 1:
            difference = np.diff(np.array(pairs), axis=1)
            squares += float(((difference - difference.mean()) ** 2).sum() / 2)
            freedom += len(pairs) - 1

    assert np.sqrt(squares / freedom) == pytest.approx(0.66, abs=0.02)
    assert np.sqrt(squares / freedom) < TYPICAL_NOISE
