"""Borda, weighted Borda and mean rank against published tables and plain Python."""

from fractions import Fraction
from math import isnan, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from elections import check_sessions_alone, election, profiles, random_profile
from witan.core.profile import Profile, matchups
from witan.core.rules.positional import borda, mean_rank, weighted_borda
from witan.core.rules.registry import RULES
from witan.errors import InvalidParameter

VARIANTS = ("per_ballot", "roster", "truncated")


def column(values):
    """Return the scores of the only session as a list."""
    return values[:, 0].tolist()


def places_of(*rows):
    """Build one session from whole ranks per ballot, 0 for "not ranked"."""
    return Profile((2 * np.array(rows, dtype=np.uint8))[:, :, np.newaxis])


def exact_borda(profile, session, variant="per_ballot", weights=None):
    """Borda from its definition, in weighted fractions, one number per candidate."""
    scores = []
    for c in range(profile.n_candidates):
        total, mass = Fraction(0), Fraction(0)
        for r in range(profile.n_reviewers):
            p = Fraction(int(profile.places[r, c, session]), 2)
            n = int((profile.places[r, :, session] > 0).sum())
            k = profile.n_candidates
            last, longest = {"per_ballot": (n, n), "roster": (k, k), "truncated": (n, k)}[variant]
            weight = Fraction(1) if weights is None else Fraction(float(weights[r, session]))
            if p > 0 and longest > 1:
                total += weight * (last - p) / (longest - 1)
                mass += weight
        scores.append(total / mass if mass else Fraction(0))
    return scores


def plain_error(values, weights, floors):
    """Compute the documented error of a weighted mean in plain loops."""
    votes = [(v, w, f) for v, w, f in zip(values, weights, floors, strict=True) if w > 0]
    n = len(votes)
    if n < 2:
        return float("nan")
    mass = sum(w for _, w, _ in votes)
    mean = sum(w * v for v, w, _ in votes) / mass
    square = sum(w * w for _, w, _ in votes)
    sampled = square * sum(w * (v - mean) ** 2 for v, w, _ in votes) / (mass - square / mass)
    return sqrt(max(sampled, sum(w * w * f for _, w, f in votes))) / mass


def weights_for(data, profile):
    """Random ballot weights, some of them zero."""
    size = profile.n_reviewers * profile.n_sessions
    weights = data.draw(
        st.lists(st.sampled_from([0.0, 0.5, 1.0, 2.5]), min_size=size, max_size=size)
    )
    return np.array(weights).reshape(profile.n_reviewers, profile.n_sessions)


class TestPublishedTables:
    """Published numbers, and numbers computed from them by hand."""

    @pytest.mark.parametrize("variant", VARIANTS)
    def test_four_candidates_earn_three_two_one_and_zero_points(self, variant):
        """ADR-007, core calculation: with four candidates the places are worth 3, 2, 1 and 0."""
        profile = election("x: a > b > c > d", "y: a > b > c > d")

        scores = borda(profile, variant=variant)

        points = [borda.restatements["points"](score, 4) for score in column(scores.score)]
        assert points == pytest.approx([3.0, 2.0, 1.0, 0.0])
        assert column(scores.score) == [1.0, 2 / 3, 1 / 3, 0.0]

    def test_recusal_after_counting_gives_the_numbers_of_adr_007(self):
        """ADR-007's listing drops the self-vote after counting: 3 − position, by hand.

        Ballots a: a>b>c>d, b: a>b>c>d, c: d>c>a>b, d: d>a>b>c; own places dropped.
        """
        ranks = np.array([[0, 2, 3, 4], [1, 0, 3, 4], [3, 4, 0, 1], [2, 3, 4, 0]], dtype=np.uint8)
        profile = Profile(
            (2 * ranks)[:, :, np.newaxis], lengths=np.full((4, 1), 4), eligible=np.full((4, 1), 4)
        )

        for variant in VARIANTS:
            score = borda(profile, variant=variant).score
            assert column(3 * score) == pytest.approx([6 / 3, 3 / 3, 2 / 3, 3 / 3])

    def test_recusal_before_counting_closes_the_gap(self):
        """A ballot over the three other candidates spans 0 to 1 in a session of four."""
        recused = election("a: b > c > d", candidates="abcd")

        assert column(borda(recused).score) == [0.0, 1.0, 0.5, 0.0]

    def test_cap_theorem_table(self):
        """The article's example: mean ranks 1.67, 1.33, 2.00 and 3.00, so Claude leads.

        Source: "Why majority vote fails for LLM councils", amiable-dev/llm-council. Candidates in
        the order GPT-4, Claude, Gemini, Grok; rows are the ballots of the same four.
        """
        profile = places_of([0, 1, 2, 3], [2, 0, 1, 3], [1, 2, 0, 3], [2, 1, 3, 0])

        assert column(mean_rank(profile).score) == [5 / 3, 4 / 3, 2.0, 3.0]
        assert column(borda(profile).score) == [2 / 3, 5 / 6, 1 / 2, 0.0]
        assert np.round(column(mean_rank(profile).score), 2).tolist() == [1.67, 1.33, 2.0, 3.0]

    def test_second_table_of_the_article(self):
        """ABCD, BCAD, CABD, ABCD: Borda (points 9, 8, 7, 0 of 12) and mean rank put A first.

        Source: the same article's second set of rankings; sums by hand.
        """
        profile = election("g: a>b>c>d", "c: b>c>a>d", "m: c>a>b>d", "k: a>b>c>d")

        assert column(borda(profile).score) == [9 / 12, 8 / 12, 7 / 12, 0.0]
        assert column(mean_rank(profile).score) == [1.75, 2.0, 2.25, 4.0]

    def test_registry_entries(self):
        """Wins break ties of Borda and mean rank, and only the mean rank is better low."""
        assert [RULES[n].tie_break for n in ("borda", "weighted_borda", "mean_rank")] == [
            "wins"
        ] * 3
        assert [r.name for r in (borda, weighted_borda, mean_rank) if r.lower_is_better] == [
            "mean_rank"
        ]


class TestPartialBallots:
    """Ballots that rank only some of the candidates."""

    def test_partial_ballots_inflate_scores_under_roster(self):
        """Under roster each of three candidates ranked of five has at least half."""
        profile = election("x: a > b > c", candidates="abcde")

        assert column(borda(profile, variant="roster").score) == [1.0, 0.75, 0.5, 0.0, 0.0]
        assert column(borda(profile).score) == [1.0, 0.5, 0.0, 0.0, 0.0]
        assert column(borda(profile, variant="truncated").score) == [0.5, 0.25, 0.0, 0.0, 0.0]

    def test_a_ballot_of_one_candidate_scores_nothing_per_ballot(self):
        """A candidate on nothing but a one-candidate ballot has score 0 and no error."""
        scores = borda(election("x: a", "y: a", "z: b > c"))

        assert column(scores.score) == [0.0, 1.0, 0.0]
        assert np.isnan(scores.std_error).all()

    def test_eligible_sets_the_length_of_the_roster(self):
        """The divisor of a ballot follows the three candidates that it could rank."""
        full = places_of([1, 2, 0, 0])
        profile = Profile(full.places, eligible=np.array([[3]]))

        assert column(borda(profile, variant="roster").score) == [1.0, 0.5, 0.0, 0.0]
        assert column(borda(profile, variant="truncated").score) == [0.5, 0.0, 0.0, 0.0]

    def test_an_unranked_candidate_has_borda_zero_and_no_mean_rank(self):
        """A candidate without a vote has Borda 0 and NaN as mean rank."""
        profile = election("x: a > b", "y: a > b", candidates="abc")

        assert column(borda(profile).score) == [1.0, 0.0, 0.0]
        assert column(mean_rank(profile).score)[:2] == [1.0, 2.0]
        assert isnan(mean_rank(profile).score[2, 0])

    def test_an_unknown_variant_is_refused(self):
        """The error names the three variants."""
        with pytest.raises(InvalidParameter, match="per_ballot or roster or truncated"):
            borda(election("x: a > b"), variant="emerson")


class TestErrors:
    """Standard errors: sample deviation over √votes, never from one vote, never 0."""

    def test_hand_computed(self):
        """Ranks 1, 2, 3: sample variance 1, error √(1/3); Borda halves it (divisor 2)."""
        profile = election("x: a > b > c", "y: b > a > c", "z: b > c > a")

        assert mean_rank(profile).std_error[0, 0] == pytest.approx(sqrt(1 / 3))
        assert borda(profile).std_error[0, 0] == pytest.approx(sqrt(1 / 3) / 2)

    def test_equal_ranks_have_a_rounding_error(self):
        """Four equal ranks: the variance of a vote is 1/12, in Borda over the divisor squared."""
        profile = election("4 × r: a > b > c")

        assert column(mean_rank(profile).std_error) == pytest.approx([sqrt(1 / 48)] * 3)
        assert column(borda(profile).std_error) == pytest.approx([sqrt(1 / 48) / 2] * 3)

    def test_the_rounding_error_averages_over_ballot_lengths(self):
        """Ballots of 2 and 3 that agree on the first: √(mean(1, 1/4)/12/2)."""
        profile = election("x: a > b", "y: a > b > c")

        assert borda(profile).std_error[0, 0] == pytest.approx(sqrt((1 + 1 / 4) / 2 / 12 / 2))

    @pytest.mark.parametrize("rule", [borda, weighted_borda, mean_rank], ids=str)
    def test_one_vote_has_no_error(self, rule):
        """A single vote has NaN, and so have two votes of which one has weight zero."""
        single = election("x: a > b > c")
        other = election("x: a > b > c", "y: c > b > a").replace_weights(np.array([[1.0], [0.0]]))

        assert np.isnan(rule(single).std_error).all()
        assert np.isnan(rule(other).std_error).all()


class TestAgainstPlainPython:
    """Every rule equals plain loops, and equal scores are equal bit by bit."""

    @pytest.mark.parametrize("variant", VARIANTS)
    @given(profile=profiles(sessions=(1, 3)))
    def test_borda_is_the_nearest_double_to_the_exact_fraction(self, variant, profile):
        """Unweighted Borda is exact, so equal true scores are equal doubles."""
        scores = borda(profile, variant=variant).score

        for s in range(profile.n_sessions):
            exact = exact_borda(profile, s, variant)
            assert scores[:, s].tolist() == [float(value) for value in exact]

    @given(profile=profiles(sessions=(1, 3)))
    def test_mean_rank_is_the_nearest_double_to_the_exact_fraction(self, profile):
        """Unweighted mean rank is exact, NaN for a candidate without ranks."""
        scores, error = mean_rank(profile).score, mean_rank(profile).std_error

        for s in range(profile.n_sessions):
            for c in range(profile.n_candidates):
                places = [int(p) for p in profile.places[:, c, s] if p > 0]
                if places:
                    assert scores[c, s] == float(Fraction(sum(places), 2 * len(places)))
                else:
                    assert isnan(scores[c, s])
                plain = plain_error(
                    [p / 2 for p in places], [1.0] * len(places), [1 / 12] * len(places)
                )
                assert error[c, s] == pytest.approx(plain, rel=1e-5, nan_ok=True)

    @given(profile=profiles(sessions=(1, 2)), data=st.data())
    def test_weighted_scores_equal_plain_loops(self, profile, data):
        """A weight of 0 is no vote."""
        weights = weights_for(data, profile)
        weighted = profile.replace_weights(weights)
        scores, ranks = borda(weighted), mean_rank(weighted)

        for s in range(profile.n_sessions):
            assert scores.score[:, s] == pytest.approx(
                [float(value) for value in exact_borda(profile, s, weights=weights)]
            )
            for c in range(profile.n_candidates):
                ranked = profile.places[:, c, s] > 0
                values, mass = profile.places[ranked, c, s] / 2, weights[ranked, s]
                plain = sum(mass * values) / sum(mass) if sum(mass) else float("nan")
                assert ranks.score[c, s] == pytest.approx(plain, nan_ok=True)
                error = plain_error(values, mass, [1 / 12] * len(values))
                assert ranks.std_error[c, s] == pytest.approx(error, rel=1e-5, nan_ok=True)

    @given(profile=profiles(sessions=(1, 2)), data=st.data(), weigh=st.booleans())
    def test_borda_errors_equal_the_definition(self, profile, data, weigh):
        """With and without weights."""
        weights = weights_for(data, profile) if weigh else np.ones_like(profile.places[:, 0], float)
        error = borda(profile.replace_weights(weights) if weigh else profile).std_error

        for s in range(profile.n_sessions):
            n = (profile.places[:, :, s] > 0).sum(axis=1)
            for c in range(profile.n_candidates):
                votes = [r for r in range(len(n)) if profile.places[r, c, s] > 0 and n[r] > 1]
                plain = plain_error(
                    [(n[r] - profile.places[r, c, s] / 2) / (n[r] - 1) for r in votes],
                    [weights[r, s] for r in votes],
                    [1 / 12 / (n[r] - 1) ** 2 for r in votes],
                )
                assert error[c, s] == pytest.approx(plain, rel=1e-9, nan_ok=True)

    @pytest.mark.parametrize("rule", [borda, mean_rank], ids=str)
    def test_many_candidates_and_ballots_stay_exact(self, rule):
        """Sums over sixty candidates on seventy ballots exceed sixteen bits and stay exact."""
        profile = random_profile(np.random.default_rng(5), (70, 60, 2), ties=True)
        exact = [[Fraction(int(p), 2) for p in row] for row in profile.places[:, :, 1].T]

        means = [sum(row) / 70 for row in exact]
        expected = (
            [float((60 - m) / 59) for m in means] if rule is borda else list(map(float, means))
        )

        assert rule(profile).score[:, 1].tolist() == expected


class TestProperties:
    """Properties of every profile."""

    @given(profile=profiles(sessions=(1, 3), partial=False))
    def test_borda_is_the_row_sum_of_the_pairwise_matrix(self, profile):
        """On complete ballots points per ballot are the rivals beaten, ties half a rival each."""
        counts = matchups(profile)
        beaten = (counts.wins + counts.ties / 2).sum(axis=1) / profile.n_reviewers

        score = borda(profile).score

        assert score * (profile.n_candidates - 1) == pytest.approx(beaten)

    @given(profile=profiles(sessions=(1, 2), partial=False))
    def test_variants_agree_on_complete_ballots(self, profile):
        """On complete ballots the three variants are one rule."""
        first, second, third = (borda(profile, variant=variant).score for variant in VARIANTS)

        assert first.tolist() == second.tolist() == third.tolist()

    @given(profile=profiles(sessions=(1, 2)), data=st.data())
    def test_reliability_multiplies_the_weights(self, profile, data):
        """Weighted Borda is Borda under the product of weights; without reliability it is Borda."""
        weights, learned = weights_for(data, profile), weights_for(data, profile)
        both = Profile(profile.places, weights=weights, reliability=learned)
        alone = Profile(profile.places, reliability=learned)

        assert np.array_equal(
            weighted_borda(both).score, borda(profile.replace_weights(weights * learned)).score
        )
        assert np.array_equal(
            weighted_borda(alone).score, borda(profile.replace_weights(learned)).score
        )
        assert np.array_equal(weighted_borda(profile).score, borda(profile).score)

    @pytest.mark.parametrize("rule", [borda, weighted_borda, mean_rank], ids=str)
    @pytest.mark.parametrize("partial", [False, True])
    def test_a_batch_scores_each_session_as_alone(self, rule, partial):
        """Scores and errors are the same alone as among thousands of sessions."""
        profile = random_profile(
            np.random.default_rng(7), (5, 5, 30_000), ties=partial, partial=partial, recused=True
        )

        check_sessions_alone(rule, profile, (0, 5_241, 10_485, 17_000, 29_999))

    @pytest.mark.parametrize("rule", [borda, weighted_borda, mean_rank], ids=str)
    def test_no_sessions_give_no_scores(self, rule):
        """A profile of no sessions gives scores of no sessions."""
        assert rule(Profile(np.zeros((3, 4, 0), dtype=np.uint8))).score.shape == (4, 0)
