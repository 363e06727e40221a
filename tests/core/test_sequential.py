"""Looks at a session: their level, how often they err together, and the chance of an end."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulation import council
from sizes import uncertainty_of, worlds_of_equals
from witan import Ballot, tally
from witan.core.profile import Profile
from witan.core.sequential import (
    FEWEST_VOTES,
    HOPELESS,
    look_level,
    p_asked,
    p_settled,
    plan_looks,
)
from witan.core.settings import Settings
from witan.core.stats.priors import PUBLIC_RHO
from witan.core.stats.uncertainty import Uncertainty
from witan.core.tally import tally_sessions
from witan.core.verdict import judge_texts

SLOW = pytest.mark.slow


def first_ballots(profile: Profile, n: int) -> Profile:
    """The ballots of the first n reviewers."""
    grades = None if profile.grades is None else profile.grades[:n]
    return Profile.from_ranks(profile.ranks[:n], grades=grades)


def at_a_look(profile: Profile, unit: str) -> Uncertainty:
    """What a count under looks makes of these ballots."""
    return uncertainty_of(profile, unit, is_repeated=True)


def share_declared(profile: Profile, unit: str, first: int) -> float:
    """In what share of sessions one of the first two is the clear leader at any look."""
    looks = plan_looks(first, profile.n_reviewers)
    level = look_level(0.95, looks, PUBLIC_RHO[unit] / (1 - PUBLIC_RHO[unit]))
    sessions = np.arange(profile.n_sessions)
    declared = np.zeros(profile.n_sessions, dtype=bool)
    for n in looks:
        uncertainty = at_a_look(first_ballots(profile, n), unit)
        effects = np.where(uncertainty.enough_votes, uncertainty.fit.effects, -np.inf)
        leader = effects.argmax(axis=0)
        above = uncertainty.separate_pairs(level)[leader, :, sessions]
        above[sessions, leader] = True
        declared |= above.all(axis=1) & (leader < 2)
    return float(declared.mean())


class TestLevel:
    """The level of each look."""

    def test_five_even_looks_have_pocock_s_level(self):
        """His table: 0.0158 for five looks at 5%, and .0294 for two."""
        five, two = look_level(0.95, (1, 2, 3, 4, 5), 0.0), look_level(0.95, (1, 2), 0.0)

        assert 1 - five == pytest.approx(0.0158, abs=5e-5)
        assert 1 - two == pytest.approx(0.0294, abs=5e-5)

    def test_one_look_has_the_level_itself(self):
        """And so has a session that is not looked at."""
        assert look_level(0.9, (7,), 0.2) == look_level(0.9, (), 0.2) == 0.9

    @given(st.integers(1, 6), st.integers(2, 40), st.floats(0, 1), st.floats(0.5, 0.99))
    def test_it_lies_between_one_look_and_as_many_alone(self, first, last, shared, level):
        """Looks at the same ballots agree more than independent ones do; more looks, more risk."""
        looks = plan_looks(first, last)
        each = look_level(level, looks, shared)

        assert level - 1e-9 <= each <= 1 - (1 - level) / len(looks) + 1e-6

    def test_what_all_get_wrong_makes_later_looks_less_of_a_chance(self):
        """The more is shared, the more alike the looks, and the less strict each has to be."""
        levels = [look_level(0.95, plan_looks(3, 9), shared) for shared in (0.0, 0.25, 1.0)]

        assert levels == sorted(levels, reverse=True)

    @given(st.integers(1, 9), st.integers(1, 60))
    def test_looks_ascend_to_the_last_ballot(self, first, last):
        """One ballot apart up to sixteen, and never more than an eighth."""
        looks = plan_looks(first, last)

        assert (looks[0], looks[-1]) == (min(first, last), last)
        assert all(1 <= after - n <= max(1, n // 8) for n, after in pairwise(looks))


class TestSize:
    """How often two equals are told apart at some look."""

    @pytest.mark.parametrize(
        ("reviewers", "unit"),
        [
            (5, "grades"),
            *(pytest.param(n, u, marks=SLOW) for n in (5, 7, 9) for u in ("grades", "ranks")),
        ],
    )
    def test_two_equals_are_seldom_told_apart(self, reviewers, unit):
        """In at most 6% of sessions in ordinary worlds, and in 8% of hostile ones."""
        sessions = 600 if reviewers == 5 and unit == "grades" else 2_000
        slack = 3 * np.sqrt(0.05 * 0.95 / sessions)
        sizes = {}
        for name, hostile, profile in worlds_of_equals(
            reviewers, sessions, np.random.default_rng(reviewers)
        ):
            limit = 0.08 if hostile else 0.06
            sizes[name] = share_declared(profile, unit, FEWEST_VOTES + 1) - limit

        assert max(sizes.values()) <= slack, sizes

    def test_the_usual_level_at_each_look_errs_more_often(self):
        """Where a third of the noise is shared, nine looks at .95 each are too many."""
        rng = np.random.default_rng(9)
        drawn = {"reviewers": 9, "sessions": 1_500, "rng": rng, "shared": 0.3, "recused": False}
        profile = council((1.0, 1.0, -2.0), **drawn)
        looks, sessions = plan_looks(2, 9), np.arange(1_500)
        shares = []
        for level in (0.95, look_level(0.95, looks, 0.25)):
            declared = np.zeros(1_500, dtype=bool)
            for n in looks:
                one = uncertainty_of(first_ballots(profile, n))
                leader, rival = np.argsort(-one.fit.effects, axis=0)[:2]
                declared |= one.separate_pairs(level)[leader, rival, sessions]
            shares.append(declared.mean())

        assert shares[0] > 0.09
        assert shares[1] < 0.08

    @SLOW  # six seconds a hundred sessions: each is judged at up to seven looks
    @pytest.mark.parametrize(("shared", "most"), [(0.2, 0.055), (0.35, 0.085)])
    def test_a_text_at_the_mark_seldom_passes(self, shared, most):
        """At no look of nine jurors, with the noise and severity that are taken to be usual."""
        rng = np.random.default_rng(5)
        looks = plan_looks(FEWEST_VOTES, 9)
        settings = Settings(looks=looks, flips=False)
        passed, sessions = 0, 600
        for _ in range(sessions):
            quality = rng.uniform(3, 9)
            noise = rng.normal(0, np.sqrt(1.8 * (1 - shared)), 9)
            common = rng.normal(0, np.sqrt(1.8 * shared))
            grades = np.clip(np.rint(quality + common + noise), 1, 10)
            cast = [
                Ballot(f"r{j}", grades={"a": float(g)}, candidates=("a",), scale="1-10")
                for j, g in enumerate(grades)
            ]
            for n in looks:
                [outcome] = tally_sessions(cast[:n], settings)
                found = judge_texts(cast[:n], outcome, settings, pass_mark=quality)
                if found.decision != "too close to call":
                    passed += found.decision == "passed"
                    break

        assert passed / sessions <= most + 3 * np.sqrt(most * (1 - most) / sessions)


class TestEnd:
    """Whether more ballots may settle it."""

    def test_the_stated_probability_is_the_share_that_settles(self):
        """Gaps of a known noise, looked at after three ballots and after nine."""
        rng = np.random.default_rng(4)
        gaps = np.linspace(-3, 3, 13)
        stated = [p_settled(gap, 2 / 3, 0.5, 3.0, 2.2) for gap in gaps]
        true = rng.normal(gaps[:, np.newaxis], np.sqrt(2 / 3), (13, 20_000))
        more = rng.normal(true, np.sqrt(2 / 6))
        end = (3 * gaps[:, np.newaxis] + 6 * more) / 9
        found = (np.abs(end) > 2.2 * np.sqrt(2 / 9 + 0.5)).mean(axis=1)

        assert stated == pytest.approx(found, abs=0.02)

    def test_a_third_of_the_ballots_is_expected_to_do(self):
        """As the simulation of whole juries in docs/benchmarks.md finds."""
        chances = p_asked(plan_looks(FEWEST_VOTES, 9), 2, 0.95, 0.25)

        assert chances[:3] == (1.0, 1.0, 1.0)
        assert list(chances) == sorted(chances, reverse=True)
        assert sum(chances) == pytest.approx(4.0, abs=0.4)
        assert HOPELESS < 0.1

    def test_a_recount_is_as_strict_as_the_looks_were(self):
        """The same ballots, looked at once and as the first of seven looks."""
        cast = [
            Ballot(name, grades={"a": 8.0, "b": 5.0}, session="s", scale="1-10") for name in "xyz"
        ]
        looks = plan_looks(3, 9)
        [strict] = tally_sessions(cast, Settings(looks=looks))

        assert tally(cast).clear_leader == "a"
        assert strict.clear_leader is None
        assert strict.standings[0].p_best == tally(cast).standings[0].p_best
        wide, narrow = strict.standings[0].interval, tally(cast).standings[0].interval
        assert (wide.low < narrow.low, wide.level) == (True, narrow.level)
