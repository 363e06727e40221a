"""Learning across sessions: weights, evidence, noise."""

from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from elections import ballots
from simulation import council
from witan.core.ballot import Ballot
from witan.core.entry_builder import entries_of, noise_of
from witan.core.session_ballots import SessionBallots
from witan.core.settings import Settings
from witan.core.stats.additive import fit_grades, fit_rows
from witan.core.stats.calibration import (
    JudgedSession,
    StoredBallot,
    calibrate,
    compare_with_people,
    reliability_of,
)
from witan.core.stats.learning import (
    PAIRS_OF_EQUALITY,
    Tracks,
    consistency_weights,
    learn_consistency,
    learn_prior_from_noise,
    learn_reliability,
    learn_weights,
    reliability_from_shares,
    reliability_from_tracks,
)
from witan.core.stats.priors import learn_prior
from witan.core.tally import prepare, tally, tally_sessions
from witan.errors import InvalidParameter

NAMES = ["a", "b", "c", "d", "e"]

STEADY = {"a": (90, 100), "b": (50, 100)}


@st.composite
def counts(draw, n_max=400):
    """Consistent pairs of compared pairs, per reviewer."""
    panel = draw(st.lists(st.integers(0, n_max), min_size=1, max_size=5))
    return {
        name: (draw(st.integers(0, compared)), compared)
        for name, compared in zip(NAMES, panel, strict=False)
    }


class TestWeights:
    """From counts to weights."""

    def test_a_panel_by_hand(self):
        """With k = 20 and a panel's share of 1/2, 30 and 10 of 40 weigh 80/60 and 40/60."""
        weights = consistency_weights({"a": (30, 40), "b": (10, 40)})

        assert weights == pytest.approx({"a": 80 / 60, "b": 40 / 60})

    def test_a_reviewer_without_evidence_weighs_one(self):
        """The weight is exactly 1, with any evidence on the others."""
        weights = consistency_weights({"a": (30, 40), "new": (0, 0), "b": (10, 37)})

        assert weights["new"] == 1.0

    def test_without_evidence_all_weights_are_one(self):
        """No pair was compared, or none consistently."""
        assert consistency_weights({}) == {}
        assert consistency_weights({"a": (0, 0), "b": (0, 0)}) == {"a": 1.0, "b": 1.0}
        assert consistency_weights({"a": (0, 9), "b": (0, 2)}) == {"a": 1.0, "b": 1.0}

    @given(kept=st.integers(0, 50), more=st.integers(0, 50))
    def test_equal_counts_give_exactly_one(self, kept, more):
        """Reviewers of equal consistency differ by no rounding."""
        weights = consistency_weights(dict.fromkeys(NAMES, (kept, kept + more)))

        assert set(weights.values()) == {weights["a"]}
        assert weights["a"] == pytest.approx(1.0)

    @given(order_kept=counts(), data=st.data())
    def test_one_more_consistent_pair_never_lowers_a_weight(self, order_kept, data):
        """One more consistent pair raises a reviewer's weight against every other's."""
        name = data.draw(st.sampled_from(sorted(order_kept)))
        kept, compared = order_kept[name]
        if kept == compared or not any(alike for alike, _ in order_kept.values()):
            return
        before = consistency_weights(order_kept)

        after = consistency_weights({**order_kept, name: (kept + 1, compared)})

        for other in order_kept:
            assert after[name] * before[other] >= before[name] * after[other] * (1 - 1e-12)

    @given(order_kept=counts(), compared=st.integers(1, 400), data=st.data())
    def test_the_more_consistent_of_two_reviewers_weighs_more(self, order_kept, compared, data):
        """With equal numbers of pairs, weights are ordered by consistency."""
        low, high = sorted(data.draw(st.tuples(*[st.integers(0, compared)] * 2)))
        weights = consistency_weights({**order_kept, "x": (low, compared), "y": (high, compared)})

        assert (weights["x"] < weights["y"]) == (low < high)

    @given(order_kept=counts())
    def test_weights_are_between_equal_and_the_ratio_of_shares(self, order_kept):
        """Shrinkage moves toward 1 and never past it, and no weight is negative."""
        n_kept = sum(kept for kept, _ in order_kept.values())
        n_compared = sum(compared for _, compared in order_kept.values())
        weights = consistency_weights(order_kept)

        assert list(weights) == list(order_kept)
        for name, (kept, compared) in order_kept.items():
            raw = kept / compared * n_compared / n_kept if n_kept and compared else 1.0
            assert min(1, raw) - 1e-12 <= weights[name] <= max(1, raw) + 1e-12

    def test_evidence_overcomes_the_prior(self):
        """With 100 times the pairs the weights are within 1% of the ratio of shares."""
        weights = consistency_weights({"a": (3000, 4000), "b": (1000, 4000)})

        assert weights == pytest.approx({"a": 1.5, "b": 0.5}, rel=0.01)
        assert weights["a"] < 1.5

    @pytest.mark.parametrize("wrong", [(-1, 3), (4, 3), (0, -1)])
    def test_invalid_counts_name_the_reviewer(self, wrong):
        """These are more consistent pairs than compared ones, or a negative count."""
        with pytest.raises(InvalidParameter, match="gpt4"):
            consistency_weights({"gpt4": wrong})


class TestOtherSessions:
    """A session's weights come from the other sessions."""

    @given(sessions=st.lists(counts(n_max=10), min_size=2, max_size=5), changed=counts(n_max=10))
    def test_a_session_does_not_affect_its_own_weights(self, sessions, changed):
        """Changes in a session leave its weights of reviewers known elsewhere as they are."""
        others = {name for order_kept in sessions[1:] for name in order_kept}
        before = learn_consistency(sessions)[0]

        after = learn_consistency([changed, *sessions[1:]])[0]

        assert {name: before[name] for name in others} == {name: after[name] for name in others}

    def test_counts_of_other_sessions_are_summed(self):
        """The weights of the first session are those of the sum of the second and third."""
        sessions = [{"a": (9, 10), "b": (1, 10)}, {"a": (2, 5), "b": (3, 5)}, {"a": (4, 6)}]

        learned = learn_consistency(sessions)

        assert learned[0] == consistency_weights({"a": (6, 11), "b": (3, 5)})
        assert len(learned) == 3

    def test_one_session_alone_has_equal_weights(self):
        """There is no other session to learn from."""
        assert learn_consistency([{"a": (9, 10), "b": (1, 10)}]) == [{"a": 1.0, "b": 1.0}]

    def test_an_invalid_count_in_one_session_is_refused(self):
        """It is refused even where the sum over sessions is valid."""
        with pytest.raises(InvalidParameter, match="3 of 2"):
            learn_consistency([{"a": (3, 2)}, {"a": (0, 9)}])


def test_the_prior_equals_the_documentation():
    """Twenty comparisons correspond to a spread of 0.16 between reviewers."""
    spread = (0.5 * 0.5 / (PAIRS_OF_EQUALITY / 2 + 1)) ** 0.5

    assert spread == pytest.approx(0.16, abs=0.015)


def compared(session, reviewer, first, second, *, flips=False):
    """Both orders of one pair; who flips picks what is shown first."""
    for shown in ((first, second), (second, first)):
        winner = shown[0] if flips else first
        loser = second if winner == first else first
        yield Ballot(
            reviewer,
            ((winner,), (loser,)),
            session=session,
            positions={shown[0]: 1, shown[1]: 2},
            paired=True,
        )


class TestSources:
    """The influence of order, the others and people."""

    def test_order_consistency_overrides_the_others(self):
        """Where half of the reviewers have it, the others are not used."""
        tracks = Tracks(order_kept=STEADY, others={"a": 0.1, "b": 1.9})

        assert reliability_from_tracks(tracks, "ab") == consistency_weights(STEADY)

    def test_the_others_replace_too_few_pairs(self):
        """Nineteen pairs each are too few for order-consistency."""
        few = {"a": (19, 19), "b": (9, 19)}
        tracks = Tracks(order_kept=few, others={"a": 0.9, "b": 1.1})

        assert reliability_from_tracks(tracks, "ab") == {"a": 0.9, "b": 1.1}

    def test_people_count_by_number_of_pairs(self):
        """Fifty pairs weigh as much as all other evidence, and many more decide alone."""
        tracks = Tracks(others={"a": 0.9}, people={"a": 1.5}, pairs_judged={"a": 50.0})
        many = replace(tracks, pairs_judged={"a": 5e9})

        assert reliability_from_tracks(tracks, "a") == {"a": pytest.approx(1.2)}
        assert reliability_from_tracks(many, "a") == {"a": pytest.approx(1.5)}

    def test_reviewers_outside_the_council_do_not_count(self):
        """A third reviewer's record changes nothing for the two of the council."""
        more = Tracks(order_kept={**STEADY, "c": (0, 1000)})

        assert reliability_from_tracks(more, "ab") == consistency_weights(STEADY)

    def test_without_evidence_there_are_no_weights(self):
        """No source has any data."""
        assert reliability_from_tracks(Tracks(), "ab") == {}


class TestFiles:
    """`weighted_borda` of a file learns by order where both orders exist."""

    def test_files_with_both_orders_learn_by_order(self):
        """A reviewer that picks the first shown weighs less than one that does not."""
        cast = [
            ballot
            for session in "12345678"
            for first, second in ("ab", "ac", "bc")
            for reviewer, flips in (("r", False), ("s", False), ("t", True))
            for ballot in compared(session, reviewer, first, second, flips=flips)
        ]
        settings = Settings.of("weighted_borda", recusal="off")
        everyone, _ = prepare(cast, settings)

        learned = learn_weights(everyone)

        assert learned == learn_consistency([held.order_kept for held in everyone])
        assert learned[0]["t"] < learned[0]["r"]
        given = next(tally_sessions(cast, replace(settings, reliability=learned[0])))
        assert next(tally_sessions(cast, settings)).standings == given.standings

    def test_files_with_one_order_learn_by_the_others(self):
        """Files without both orders learn as they did."""
        cast = [
            replace(one, session=session)
            for session in "123"
            for one in ballots("x: a > b > c", "y: a > b > c", "z: a > b > c", "w: c > b > a")
        ]
        everyone, _ = prepare(cast, Settings.of("weighted_borda"))

        assert learn_weights(everyone) == learn_reliability(everyone)

    @pytest.mark.parametrize("n_lone", [1, 2], ids=["a block", "one by one"])
    def test_a_ballot_with_one_candidate_teaches_nothing(self, n_lone):
        """It is no share of 0 of its candidate, which would lower what the others think of it."""
        cast = [
            replace(one, session=session)
            for session in "123"
            for one in ballots("x: a > b > c", "y: b > a > c", "z: a > c > b", "w: c > a = b")
        ]
        lone = [
            replace(one, session=session)
            for session in "123"
            for one in ballots(*["v: a"] * n_lone)
        ]

        def weights(votes):
            everyone, _ = prepare(votes, Settings.of("weighted_borda"))
            return [{name: one[name] for name in "wxyz"} for one in learn_reliability(everyone)]

        assert weights([*cast, *lone]) == weights(cast)

    def test_stored_shares_teach_the_same_weights(self):
        """The same sessions as shares give the same weights for one more."""
        shares = {"x": [1, 0.5, 0], "y": [1, 0.5, 0], "z": [1, 0.5, 0], "w": [0, 0.5, 1]}
        cast = [
            replace(one, session=session)
            for session in "123"
            for one in ballots("x: a > b > c", "y: a > b > c", "z: a > b > c", "w: c > b > a")
        ]
        everyone, _ = prepare(cast, Settings.of("weighted_borda"))

        weights = reliability_from_shares([{k: np.array([v]) for k, v in shares.items()}] * 2)

        assert weights == pytest.approx(dict(learn_reliability(everyone)[0]))

    def test_blocks_teach_the_same_weights_as_single_sessions(self):
        """Ties, gaps and own answers count the same in a block of sessions as in one."""
        rng, cast, shares = np.random.default_rng(12), [], []
        for number in range(60):
            shares.append({})
            for own, reviewer in enumerate("abcd" if number % 2 else "abc"):
                keys = rng.integers(0, 3, 4).astype(float)
                keys[[own, rng.integers(4)]] = np.nan
                groups = [tuple(np.array([*"abcd"])[keys == key].tolist()) for key in range(3)]
                cast.append(Ballot(reviewer, tuple(filter(None, groups)), session=str(number)))
                below = (keys[:, np.newaxis] < keys).sum(axis=1) + (
                    (keys[:, np.newaxis] == keys).sum(axis=1) - 1
                ) / 2
                n_rivals = np.isfinite(keys).sum() - 1
                shares[-1][reviewer] = np.where(np.isnan(keys), np.nan, below / n_rivals)[None]
        everyone, _ = prepare(cast, Settings.of("weighted_borda", unranked="skip"))

        for number, learned in enumerate(learn_reliability(everyone)):
            others = reliability_from_shares(shares[:number] + shares[number + 1 :])
            assert learned == pytest.approx(others)


class TestBesidePeople:
    """Stored ballots against those of people, by hand."""

    SESSION = JudgedSession(
        bucket=3,
        ballots=(
            StoredBallot(7, True, (1, 2, 3), (False, False, False), (1.0, 0.5, 0.0)),
            StoredBallot(1, False, (1, 2, 3), (True, False, False), (1.0, 1.0, 0.0)),
            StoredBallot(2, False, (3, 1, 2), (False, False, True), (1.0, 0.0, None)),
        ),
        models=(2, 1, 3),
        p_beats=(0.1, 0.5, 0.4),
    )

    def test_own_candidates_are_left_out(self):
        """Reviewer 1 is compared on 2 and 3 alone, and right; reviewer 2 on 1 and 3, and wrong."""
        beside = compare_with_people([self.SESSION])
        right = dict(zip(beside.reviewers, beside.correct.tolist(), strict=True))

        # Pairs in the order in which people decide them: (1, 2), (1, 3), (2, 3).
        assert right[1] == pytest.approx([np.nan, np.nan, 1], nan_ok=True)
        assert right[2] == pytest.approx([np.nan, -1, np.nan], nan_ok=True)

    def test_a_preference_in_one_order_only_is_a_tie(self):
        """Reviewer 1 prefers 1 in one order; reviewer 2 in both; person 8 adds nothing to 7's."""

        def compare(reviewer, human, *sides):
            shares = {1: (1.0, 0.0), 0: (0.5, 0.5), -1: (0.0, 1.0)}
            return [StoredBallot(reviewer, human, (1, 2), (False,) * 2, shares[s]) for s in sides]

        cast = [
            *compare(1, False, 1, 0),
            *compare(2, False, 1, 1),
            *compare(7, True, -1),
            *compare(8, True, 0, 1),
        ]
        beside = compare_with_people([JudgedSession(3, cast)])
        right = dict(zip(beside.reviewers, beside.correct.tolist(), strict=True))

        assert right == {1: [0], 2: [-1]}

    def test_panels_are_banded_by_confidence(self):
        """0.1 for 2 over 1 is 0.9 for 1, correctly; 0.4 for 1 over 3 is 0.6 for 3, wrongly."""
        table = compare_with_people([self.SESSION]).calibration

        rows = zip(table.bucket, table.band, table.pairs, table.matched, strict=True)
        assert sorted(rows) == [(3, 12, 1, 0), (3, 18, 1, 1)]


class TestReliability:
    """The reliability of the first line over the second."""

    def test_reliability_is_unknown_without_people(self):
        """No calibration, too few pairs, or no outcome: unknown, with the reason."""
        outcome = tally(ballots("x: a > b", "y: a > b", "z: a > b"))
        empty = calibrate(compare_with_people([]).calibration)

        for calibration in (None, empty):
            found = reliability_of(outcome, calibration)
            assert found.value is None
            assert "not enough data" in found.why
        assert reliability_of(None, empty).value is None


def graded(reviewer: str, **grades: float) -> Ballot:
    return Ballot(reviewer, grades=grades, candidates=("a", "b", "c"))


def noise_of_session(*cast: Ballot):
    """The noise that a session of these ballots stores."""
    return entries_of(SessionBallots("s", datetime(2026, 11, 21, tzinfo=UTC), cast)).session.noise


class TestNoise:
    """The noise of single fits, and the prior learned from many."""

    def test_stored_rows_teach_the_prior_of_the_fits(self):
        """Rows from storage give the same prior as the fits themselves."""
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
        """Its mean over sessions is the variance between candidates, 0 for equal candidates."""
        rng = np.random.default_rng(8)
        for quality in ((0.0,) * 5, (2.0, 1.0, 0.0, -1.0, -2.0)):
            rows = rng.normal(np.array(quality)[:, np.newaxis], 1.0, (5, 5, 3000))
            rows[np.arange(5), np.arange(5)] = np.nan
            fit = fit_rows(rows)
            kept = noise_of([(fit, at, "ranks") for at in range(3000)])
            mean = np.mean([noise.effect_variance for noise in kept])
            assert mean == pytest.approx(np.var(quality, ddof=1), abs=0.06)

    def test_under_fifty_sessions_there_is_no_prior(self):
        """Fifty sessions of a unit are needed."""
        rng = np.random.default_rng(9)
        fit = fit_grades(council((0.5, 0), reviewers=4, sessions=49, rng=rng))
        kept = [n for n in noise_of([(fit, at, "grades") for at in range(49)]) if n is not None]

        assert learn_prior_from_noise(kept, "grades") is None
        assert learn_prior_from_noise([*kept, *kept], "ranks") is None

    def test_a_session_stores_its_noise(self):
        """Grades where two ballots have them, else ranks; a single reviewer has none."""
        rows = [graded("x", a=9, b=6, c=3), graded("y", a=8, b=7, c=1), graded("z", a=3, b=5, c=4)]

        by_grades = noise_of_session(*rows)
        by_ranks = noise_of_session(*ballots("x: a > b > c", "y: b > a > c", "z: a > c > b"))

        assert (by_grades.unit, by_grades.df) == ("grades", 4.0)
        assert (by_ranks.unit, by_ranks.df) == ("ranks", 4.0)
        assert noise_of_session(rows[0]) is None
        people = [replace(row, kind="human") for row in rows]
        assert noise_of_session(*people) is None
