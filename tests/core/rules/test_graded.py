"""Range, normalised scores and hybrid against hand-computed tables and plain Python."""

from dataclasses import replace
from math import isnan, nan, sqrt
from statistics import fmean, pstdev, variance

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from elections import check_sessions_alone, profiles
from witan.core.profile import Profile
from witan.core.rules.graded import hybrid, normalized_scores, range_
from witan.core.rules.positional import borda
from witan.core.rules.registry import RULES
from witan.errors import InvalidParameter

GRADED = [normalized_scores, range_, hybrid]


def places_by_grade(grades):
    """Rank each ballot by its grades; NaN is unranked, ties share the mean place."""
    better = (grades[:, np.newaxis] > grades[:, :, np.newaxis]).sum(axis=2)
    level = (grades[:, np.newaxis] == grades[:, :, np.newaxis]).sum(axis=2)
    return np.where(np.isnan(grades), 0, 2 * better + level + 1).astype(np.uint8)


def profile_of(*ballots, weights=None):
    """Build one session from rows of grades, with None for a missing one."""
    rows = [[nan if g is None else float(g) for g in row] for row in ballots]
    grades = np.array(rows)[:, :, np.newaxis]
    mass = None if weights is None else np.array(weights, dtype=float)[:, np.newaxis]
    return Profile(places_by_grade(grades), grades=grades, weights=mass)


def as_bytes(profile):
    """Return the same profile with its whole grades as bytes, 0 for none."""
    return replace(profile, grades=np.nan_to_num(profile.grades, nan=0.0).astype(np.uint8))


def column(values):
    """Return the only session as a list."""
    return values[:, 0].tolist()


@st.composite
def graded_profiles(draw, sessions=(1, 2), fractional=False, weighted=False):
    """Draw grades of any council, some missing, flat ballots frequent."""
    r, c, s = draw(st.integers(1, 5)), draw(st.integers(2, 5)), draw(st.integers(*sessions))
    grade = st.integers(1, 10) if not fractional else st.integers(100, 1000).map(lambda g: g / 100)
    cell = st.one_of(st.just(nan), st.sampled_from([5.0, 5.0, 6.0]), grade)
    rows = draw(st.lists(cell, min_size=r * c * s, max_size=r * c * s))
    grades = np.array(rows, dtype=float).reshape(r, c, s)
    mass = st.lists(st.sampled_from([0.0, 0.5, 1.0, 3.0]), min_size=r * s, max_size=r * s)
    weights = np.array(draw(mass)).reshape(r, s) if weighted else None
    return Profile(places_by_grade(grades), grades=grades, weights=weights)


def weight(profile, r, s):
    """Return the weight of one ballot."""
    return 1.0 if profile.weights is None else float(profile.weights[r, s])


def plain_z(profile, s):
    """Standardise grades as in ADR-010, with dicts; return (z, weight) lists and flatness."""
    collected = {c: [] for c in range(profile.n_candidates)}
    all_flat = True
    for r in range(profile.n_reviewers):
        grades = dict(enumerate(profile.grades[r, :, s].tolist()))
        grades = {c: g for c, g in grades.items() if not isnan(g)}
        if not grades or weight(profile, r, s) == 0:
            continue
        mean, deviation = fmean(grades.values()), pstdev(grades.values())
        all_flat &= deviation < 0.001
        for c, g in grades.items():
            z = 0.0 if deviation < 0.001 else (g - mean) / deviation
            collected[c].append((z, weight(profile, r, s)))
    return collected, all_flat


def plain_range(profile, c, s):
    """Compute mean and error of one candidate's grades from the definition."""
    votes = [(float(g), weight(profile, r, s)) for r, g in enumerate(profile.grades[:, c, s])]
    graded_votes = [(g, w) for g, w in votes if not isnan(g) and w > 0]
    if not graded_votes:
        return nan, nan
    mass, n = sum(w for _, w in graded_votes), len(graded_votes)
    mean = sum(w * g for g, w in graded_votes) / mass
    if n < 2:
        return mean, nan
    every = profile.grades[:, :, s][~np.isnan(profile.grades[:, :, s])]
    floor = 1 / 12 if np.array_equal(every, np.rint(every)) else 1 / 48
    square = sum(w * w for _, w in graded_votes)
    sampled = square * sum(w * (g - mean) ** 2 for g, w in graded_votes) / (mass - square / mass)
    error = sqrt(max(sampled, floor * square)) / mass
    return mean, error


class TestRange:
    """The mean of the grades."""

    def test_hand_computed(self):
        """Grades 6, 9 and 9: mean 8, sample variance 3, error 1; one vote has no error."""
        profile = profile_of([6, 4], [9, None], [9, None])

        for scores in (range_(profile), range_(as_bytes(profile))):
            assert column(scores.score) == [8.0, 4.0]
            assert scores.std_error[0, 0] == pytest.approx(1.0)
            assert isnan(scores.std_error[1, 0])

    def test_equal_whole_grades_have_a_rounding_error(self):
        """Three grades of 7 have the error of rounding to whole grades: √(1/12/3)."""
        assert range_(profile_of([7], [7], [7])).std_error[0, 0] == pytest.approx(sqrt(1 / 36))

    def test_equal_fractional_grades_have_a_rounding_error(self):
        """Their error is that of rounding to half a point, never zero."""
        scores = range_(profile_of([7.3, 5.0], [7.3, 6.5], [7.3, 8.0]))

        assert scores.std_error[0, 0] == pytest.approx(sqrt(1 / 48 / 3))
        assert scores.std_error[1, 0] == pytest.approx(sqrt(variance([5.0, 6.5, 8.0]) / 3))

    def test_equal_sums_of_fractions_are_a_dead_heat(self):
        """8.1 + 7.3 and 7.7 + 7.7 differ in doubles and are equal as means."""
        scores = column(range_(profile_of([8.1, 7.7], [7.3, 7.7])).score)

        assert 8.1 + 7.3 != 7.7 + 7.7
        assert scores[0] == scores[1]

    def test_grades_below_one_count(self):
        """A grade capped to 0 by the gate is a grade, not a missing one."""
        assert column(range_(profile_of([0.0, 8.0], [0.0, 9.0])).score) == [0.0, 8.5]

    @pytest.mark.parametrize(
        ("rows", "level"),
        [
            ([[5, 5, 5, 9], [8, 9, 6, 6], [3, 3, 8, 3]], (1, 2, 3)),
            ([[3, 5, 3, 5], [3, 4, 3, 5], [3, 3, 1, 2]], (1, 3)),
            ([[7, 7, 7, 5], [6, 8, 7, 6], [7, 5, 6, 5]], (0, 1, 2)),
        ],
    )
    def test_different_z_scores_of_equal_sum_are_a_dead_heat(self, rows, level):
        """3/√11 + 1/√11 and 2/√11 + 2/√11 are equal although no term occurs in both."""
        for profile in (as_bytes(profile_of(*rows)), profile_of(*rows)):
            scores = normalized_scores(profile).score[list(level), 0]
            assert len(set(scores.tolist())) == 1

    @given(data=st.data(), fractional=st.booleans(), weighted=st.booleans())
    def test_range_equals_plain_python(self, data, fractional, weighted):
        """Score and error equal the definition, for any grades and weights."""
        profile = data.draw(graded_profiles(fractional=fractional, weighted=weighted))
        scores = range_(profile)

        for s in range(profile.n_sessions):
            for c in range(profile.n_candidates):
                mean, error = plain_range(profile, c, s)
                assert scores.score[c, s] == pytest.approx(mean, abs=1e-9, nan_ok=True)
                assert scores.std_error[c, s] == pytest.approx(error, rel=1e-5, nan_ok=True)


class TestNormalizedScores:
    """ADR-010's standardised grades."""

    def test_harsh_and_generous_reviewers_agree(self):
        """The article's calibration example: 7 6 5 4 and 9 9 8 7 put the first two on top.

        By hand: means 5.5 and 8.25, deviations √1.25 and √0.6875.
        """
        scores = normalized_scores(profile_of([7, 6, 5, 4], [9, 9, 8, 7]))

        harsh = np.array([1.5, 0.5, -0.5, -1.5]) / sqrt(1.25)
        generous = np.array([0.75, 0.75, -0.25, -1.25]) / sqrt(0.6875)
        assert column(scores.score) == pytest.approx((harsh + generous) / 2, abs=1e-7)
        assert column(scores.std_error) == pytest.approx(abs(harsh - generous) / 2 / sqrt(2))

    def test_grades_separate_scenarios_of_equal_ranks(self):
        """ADR-010, "why ranks are wrong": [10, 9.9, 2] and [6, 3, 1] rank alike and score apart.

        The z of the first two differ by 0.027 in one and by 1.46 in the other, by hand.
        """
        near = column(normalized_scores(profile_of([10, 9.9, 2], [10, 9.9, 2])).score)
        far = column(normalized_scores(profile_of([6, 3, 1], [6, 3, 1])).score)

        assert near[0] - near[1] == pytest.approx(0.1 / pstdev([10, 9.9, 2]))
        assert far[0] - far[1] == pytest.approx(3 / pstdev([6, 3, 1]))

    def test_recusal_changes_mean_and_deviation(self):
        """Mean and deviation run over the grades after recusal, as in ADR-010."""
        scores = normalized_scores(profile_of([None, 8, 4], [9, None, 5]))

        assert column(scores.score) == [1.0, 1.0, -1.0]
        assert np.isnan(scores.std_error[:2]).all()
        assert scores.std_error[2, 0] == 0.0

    def test_a_flat_ballot_scores_zero_for_all(self):
        """A flat ballot counts as a vote of 0: means halve, errors are half a z over √2."""
        scores = normalized_scores(profile_of([7, 7], [9, 5]))

        assert column(scores.score) == [0.5, -0.5]
        assert column(scores.std_error) == pytest.approx([0.5 / sqrt(2)] * 2)
        assert not scores.fell_back.any()

    def test_only_flat_ballots_fall_back_to_borda(self):
        """Without a ballot that orders two candidates Borda scores, and the outcome says so."""
        flat = profile_of([7, 7, 7], [4, 4, 4])
        ranked = Profile(np.array([[[2], [4], [6]]] * 2, dtype=np.uint8), grades=flat.grades)

        for profile in (ranked, as_bytes(ranked)):
            scores = normalized_scores(profile)
            assert scores.fell_back.tolist() == [True]
            assert column(scores.score) == [1.0, 0.5, 0.0]
            assert scores.std_error == pytest.approx(borda(profile).std_error)

    def test_only_the_flat_session_of_many_falls_back(self):
        """Each session falls back by itself; a ballot of weight zero does not prevent it."""
        grades = np.array([[[7, 7, 9], [7, 6, 9]], [[5, 5, 9], [5, 3, 8]]], dtype=float)
        weights = np.array([[1.0, 1.0, 1.0], [1.0, 1.0, 0.0]])
        profile = Profile(places_by_grade(grades), grades=grades)

        equal, weighted = (
            normalized_scores(profile),
            normalized_scores(profile.replace_weights(weights)),
        )

        assert equal.fell_back.tolist() == [True, False, False]
        assert weighted.fell_back.tolist() == [True, False, True]

    def test_reversed_ballots_of_equal_z_cancel(self):
        """1 2 3 and 1 4 7 standardise alike, so reversed ballots cancel exactly."""
        scores = column(normalized_scores(as_bytes(profile_of([1, 2, 3], [7, 4, 1]))).score)

        assert scores == [0.0, 0.0, 0.0]

    def test_order_of_reviewers_does_not_break_a_tie(self):
        """Candidates with the same z from different reviewers are exactly equal."""
        rows = [[9, 4, 7, 2], [4, 7, 9, 2], [7, 9, 4, 2]]

        for profile in (as_bytes(profile_of(*rows)), profile_of(*rows)):
            first, second, third, _ = column(normalized_scores(profile).score)
            assert first == second == third

    @given(data=st.data(), fractional=st.booleans(), weighted=st.booleans())
    def test_normalized_scores_equal_plain_python(self, data, fractional, weighted):
        """Scores, errors and fallback equal the arithmetic of ADR-010 with dicts."""
        profile = data.draw(graded_profiles(fractional=fractional, weighted=weighted))
        scores = normalized_scores(profile)

        for s in range(profile.n_sessions):
            collected, all_flat = plain_z(profile, s)
            assert scores.fell_back[s] == all_flat
            for c, votes in collected.items():
                if all_flat:
                    assert scores.score[c, s] == borda(profile).score[c, s]
                    continue
                mass = sum(w for _, w in votes)
                mean = sum(w * z for z, w in votes) / mass if mass else nan
                assert scores.score[c, s] == pytest.approx(mean, abs=1e-6, nan_ok=True)
                spread = sum(w * (z - mean) ** 2 for z, w in votes)
                error = sqrt(spread / mass / len(votes)) if len(votes) > 1 else nan
                approx_error = pytest.approx(error, rel=1e-5, abs=1e-6, nan_ok=True)
                assert scores.std_error[c, s] == approx_error

    @given(profile=graded_profiles(), data=st.data())
    def test_shifting_and_stretching_ballots_changes_nothing(self, profile, data):
        """Replacing grades s by a·s + b per ballot keeps scores, errors and fallback."""
        size = profile.n_reviewers
        stretch = data.draw(st.lists(st.floats(0.3, 4.0), min_size=size, max_size=size))
        shift = data.draw(st.lists(st.floats(-5.0, 5.0), min_size=size, max_size=size))
        rescaled = profile.grades * np.reshape(stretch, (-1, 1, 1)) + np.reshape(shift, (-1, 1, 1))

        before = normalized_scores(profile)
        after = normalized_scores(replace(profile, grades=rescaled))

        assert after.score == pytest.approx(before.score, abs=1e-6, nan_ok=True)
        assert after.std_error == pytest.approx(before.std_error, abs=1e-6, nan_ok=True)
        assert np.array_equal(after.fell_back, before.fell_back)

    def test_registry_entry(self):
        """Borda breaks equal scores, and the error is that of a population."""
        rule = RULES["normalized_scores"]

        assert (rule.tie_break, rule.error, rule.needs) == ("borda", "population", "grades")


class TestHybrid:
    """A blend of Borda and the mean grade."""

    def test_hand_computed(self):
        """Borda 1 and 0, mean grades 10 and 3.25: second 0.125 at α = ½, 0.1875 at α = ¼."""
        scores = hybrid(profile_of([10, 5.5], [10, 1]))

        assert column(scores.score) == pytest.approx([1.0, (3.25 - 1) / 9 / 2])
        quarter = hybrid(profile_of([10, 5.5], [10, 1]), alpha=0.25)
        assert column(quarter.score) == pytest.approx([1.0, 0.75 * 2.25 / 9])

    def test_an_ungraded_candidate_keeps_its_borda_score(self):
        """A ranked candidate without grades is marked."""
        grades = np.array([[8.0, nan, 4.0]] * 2)[:, :, np.newaxis]
        profile = Profile(np.array([[[2], [4], [6]]] * 2, dtype=np.uint8), grades=grades)
        scores = hybrid(profile)

        assert scores.details["ungraded"][:, 0].tolist() == [False, True, False]
        assert column(scores.score) == pytest.approx([0.5 + 7 / 18, 0.5, 3 / 18])
        assert scores.std_error[1, 0] == pytest.approx(borda(profile).std_error[1, 0])

    def test_a_candidate_without_a_vote_has_no_score(self):
        """Without rank and grade, or on a ballot of weight zero alone, its score is NaN, not 0."""
        profile = profile_of([8, 4, None], [None, None, 9], weights=[1, 0])

        scores = hybrid(profile)

        assert np.isnan(column(scores.score)).tolist() == [False, False, True]
        assert isnan(hybrid(profile_of([8, 4, None])).score[2, 0])

    @pytest.mark.parametrize("alpha", [-0.01, 1.01, nan, float("inf"), True])
    def test_alpha_outside_the_unit_interval_is_refused(self, alpha):
        """Alpha must be a number from 0 to 1."""
        with pytest.raises(InvalidParameter, match="alpha"):
            hybrid(profile_of([8, 4]), alpha=alpha)

    @given(data=st.data(), alpha=st.sampled_from([0.0, 0.3, 0.5, 1.0]), weighted=st.booleans())
    def test_hybrid_blends_borda_and_range(self, data, alpha, weighted):
        """Score and error are the blend of both rules, Borda alone for ungraded candidates."""
        profile = data.draw(graded_profiles(weighted=weighted, fractional=True))
        order, level = borda(profile), range_(profile)
        scores = hybrid(profile, alpha=alpha)

        def part(share, value):
            return share * value if share else 0.0

        for s in range(profile.n_sessions):
            for c in range(profile.n_candidates):
                mean = level.score[c, s]
                if isnan(mean):
                    continue
                blend = part(alpha, order.score[c, s]) + part(1 - alpha, (mean - 1) / 9)
                error = part(alpha, float(order.std_error[c, s]))
                error += part(1 - alpha, level.std_error[c, s] / 9)
                assert scores.score[c, s] == pytest.approx(blend)
                assert scores.std_error[c, s] == pytest.approx(error, nan_ok=True)


class TestEveryGradedRule:
    """Properties of all three rules."""

    @pytest.mark.parametrize("rule", GRADED, ids=str)
    @given(profile=graded_profiles())
    def test_whole_and_float_grades_agree(self, rule, profile):
        """Bytes with 0 for none and floats with NaN for none give the same scores and errors."""
        floats, bytes_ = rule(profile), rule(as_bytes(profile))

        assert bytes_.score == pytest.approx(floats.score, abs=1e-6, nan_ok=True)
        assert bytes_.std_error == pytest.approx(floats.std_error, abs=1e-6, nan_ok=True)

    @pytest.mark.parametrize("rule", GRADED, ids=str)
    @given(profile=graded_profiles())
    def test_equal_weights_change_nothing(self, rule, profile):
        """Weights of 2 for all reviewers give the scores and errors of no weights."""
        twice = np.full((profile.n_reviewers, profile.n_sessions), 2.0)
        doubled, single = rule(profile.replace_weights(twice)), rule(profile)

        assert doubled.score == pytest.approx(single.score, abs=1e-6, nan_ok=True)
        assert doubled.std_error == pytest.approx(single.std_error, abs=1e-6, nan_ok=True)

    @pytest.mark.parametrize("rule", GRADED, ids=str)
    def test_one_vote_has_no_error(self, rule):
        """A single ballot has scores and no errors, in bytes and in floats."""
        for profile in (profile_of([8, 6, 3]), as_bytes(profile_of([8, 6, 3]))):
            scores = rule(profile)
            assert not np.isnan(scores.score).any()
            assert np.isnan(scores.std_error).all()

    @pytest.mark.parametrize("rule", GRADED, ids=str)
    @pytest.mark.parametrize("floats", [False, True])
    def test_a_batch_scores_each_session_as_alone(self, rule, floats):
        """Scores, errors and details are the same alone as among thousands of sessions."""
        rng = np.random.default_rng(3)
        grades = rng.integers(1, 11, (5, 5, 25_000)).astype(float)
        grades[np.arange(5), np.arange(5)] = nan
        grades[:, :, ::1_000] = np.where(np.isnan(grades[:, :, ::1_000]), nan, 6.0)
        profile = Profile(places_by_grade(grades), grades=grades)
        profile = profile if floats else as_bytes(profile)

        check_sessions_alone(rule, profile, (0, 1_000, 10_485, 10_486, 24_999))

    @given(profile=profiles())
    def test_rankings_alone_have_no_range(self, profile):
        """The range has no scores, the other rules use Borda and say so."""
        assert np.isnan(range_(profile).score).all()
        assert normalized_scores(profile).fell_back.all()
        assert np.array_equal(normalized_scores(profile).score, borda(profile).score)
        assert hybrid(profile).details["ungraded"].all()

    def test_sums_beyond_sixteen_bits_are_exact(self):
        """Sums beyond sixteen bits continue in floats with the same result."""
        rng = np.random.default_rng(11)
        grades = rng.integers(1, 101, (6, 40, 3)).astype(float)
        profile = Profile(places_by_grade(grades), grades=grades)

        for rule in GRADED:
            bytes_, floats = rule(as_bytes(profile)), rule(profile)
            assert bytes_.score == pytest.approx(floats.score, abs=1e-6)
            assert bytes_.std_error == pytest.approx(floats.std_error, rel=1e-5)
