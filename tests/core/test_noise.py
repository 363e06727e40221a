"""How noisy sessions were, and the prior that is learned from what they leave."""

from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pytest

from elections import ballots
from simulation import council
from witan.core.ballot import Ballot
from witan.core.casts import Cast
from witan.core.entry_builder import entries_of
from witan.core.stats.additive import fit_grades, fit_rows
from witan.core.stats.learning import learn_prior_from_noise, noise_of
from witan.core.stats.uncertainty import learn_prior


def graded(reviewer: str, **grades: float) -> Ballot:
    return Ballot(reviewer, grades=grades, candidates=("a", "b", "c"))


def noise_in(*cast: Ballot):
    """What a session of these ballots keeps of its noise."""
    return entries_of(Cast("s", datetime(2026, 11, 21, tzinfo=UTC), cast)).session.noise


class TestNoise:
    """What the fit of a session says of its noise, and the prior learned from many."""

    def test_the_prior_is_that_of_the_fits(self):
        """Kept rows teach what the fits themselves teach."""
        rng = np.random.default_rng(7)
        profile = council((0.5, 0.2, 0, -0.3), reviewers=4, sessions=80, rng=rng)
        fit = fit_grades(profile)

        kept = [n for n in noise_of([(fit, at, "grades") for at in range(80)]) if n is not None]
        prior, expected = learn_prior_from_noise(kept, "grades"), learn_prior([fit], "grades")

        assert prior.noise_variance == expected.noise_variance
        assert prior.noise_df == expected.noise_df
        assert prior.quality_variance == pytest.approx(expected.quality_variance)
        assert (prior.unit, prior.n_sessions) == ("grades", 80)

    def test_effect_variance_is_unbiased(self):
        """Its mean over sessions is the variance between candidates, 0 where they are equal."""
        rng = np.random.default_rng(8)
        for quality in ((0.0,) * 5, (2.0, 1.0, 0.0, -1.0, -2.0)):
            rows = rng.normal(np.array(quality)[:, np.newaxis], 1.0, (5, 5, 3000))
            rows[np.arange(5), np.arange(5)] = np.nan
            fit = fit_rows(rows)
            kept = noise_of([(fit, at, "ranks") for at in range(3000)])
            mean = np.mean([noise.effect_variance for noise in kept])
            assert mean == pytest.approx(np.var(quality, ddof=1), abs=0.06)

    def test_too_few_sessions_teach_nothing(self):
        """Under fifty of a unit there is no prior."""
        rng = np.random.default_rng(9)
        fit = fit_grades(council((0.5, 0), reviewers=4, sessions=49, rng=rng))
        kept = [n for n in noise_of([(fit, at, "grades") for at in range(49)]) if n is not None]

        assert learn_prior_from_noise(kept, "grades") is None
        assert learn_prior_from_noise([*kept, *kept], "ranks") is None

    def test_a_session_keeps_its_noise(self):
        """Grades where two ballots have them, else ranks; one reviewer tells nothing."""
        rows = [graded("x", a=9, b=6, c=3), graded("y", a=8, b=7, c=1), graded("z", a=3, b=5, c=4)]

        by_grades = noise_in(*rows)
        by_ranks = noise_in(*ballots("x: a > b > c", "y: b > a > c", "z: a > c > b"))

        assert (by_grades.unit, by_grades.df) == ("grades", 4.0)
        assert (by_ranks.unit, by_ranks.df) == ("ranks", 4.0)
        assert noise_in(rows[0]) is None
        people = [replace(row, kind="human") for row in rows]
        assert noise_in(*people) is None
