"""Weights by order-consistency: equal without evidence, never against it, never from itself."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from witan.core.stats.learning import PAIRS_OF_EQUALITY, consistency_weights, learn_consistency
from witan.errors import InvalidParameter

NAMES = ["a", "b", "c", "d", "e"]


@st.composite
def counts(draw, n_max=400):
    """Pairs kept of pairs compared, per reviewer."""
    panel = draw(st.lists(st.integers(0, n_max), min_size=1, max_size=5))
    return {
        name: (draw(st.integers(0, compared)), compared)
        for name, compared in zip(NAMES, panel, strict=False)
    }


class TestWeights:
    """From counts to weights."""

    def test_a_panel_by_hand(self):
        """With k = 20 and a panel's share of 1/2, 30 and 10 of 40 weigh 80/60 and 40/60."""
        weights = consistency_weights({"a": (30, 40), "b": (10, 40)}, 20)

        assert weights == pytest.approx({"a": 80 / 60, "b": 40 / 60})

    def test_who_saw_no_pair_twice_weighs_one(self):
        """A reviewer without evidence has weight 1 exactly, whatever the others did."""
        weights = consistency_weights({"a": (30, 40), "new": (0, 0), "b": (10, 37)})

        assert weights["new"] == 1.0

    def test_without_any_evidence_all_are_equal(self):
        """Nobody compared, or nobody kept: every weight is 1."""
        assert consistency_weights({}) == {}
        assert consistency_weights({"a": (0, 0), "b": (0, 0)}) == {"a": 1.0, "b": 1.0}
        assert consistency_weights({"a": (0, 9), "b": (0, 2)}) == {"a": 1.0, "b": 1.0}

    @given(kept=st.integers(0, 50), more=st.integers(0, 50))
    def test_equal_counts_give_exactly_one(self, kept, more):
        """Where all are equally consistent, no rounding sets them apart."""
        weights = consistency_weights(dict.fromkeys(NAMES, (kept, kept + more)))

        assert set(weights.values()) == {weights["a"]}
        assert weights["a"] == pytest.approx(1.0)

    @given(order_kept=counts(), data=st.data())
    def test_one_more_pair_kept_never_lowers_a_share(self, order_kept, data):
        """Keeping one more pair raises a reviewer's weight against every other's."""
        name = data.draw(st.sampled_from(sorted(order_kept)))
        kept, compared = order_kept[name]
        if kept == compared or not any(alike for alike, _ in order_kept.values()):
            return
        before = consistency_weights(order_kept)

        after = consistency_weights({**order_kept, name: (kept + 1, compared)})

        for other in order_kept:
            assert after[name] * before[other] >= before[name] * after[other] * (1 - 1e-12)

    @given(order_kept=counts(), compared=st.integers(1, 400), data=st.data())
    def test_of_two_with_equal_numbers_the_steadier_weighs_more(self, order_kept, compared, data):
        """Between reviewers that compared equally many pairs, weights stand as shares kept do."""
        low, high = sorted(data.draw(st.tuples(*[st.integers(0, compared)] * 2)))
        weights = consistency_weights({**order_kept, "x": (low, compared), "y": (high, compared)})

        assert (weights["x"] < weights["y"]) == (low < high)

    @given(order_kept=counts())
    def test_weights_are_between_equal_and_the_ratio_of_shares(self, order_kept):
        """Shrinking goes toward 1 and never past it, and no weight is negative."""
        n_kept = sum(kept for kept, _ in order_kept.values())
        n_compared = sum(compared for _, compared in order_kept.values())
        weights = consistency_weights(order_kept)

        assert list(weights) == list(order_kept)
        for name, (kept, compared) in order_kept.items():
            raw = kept / compared * n_compared / n_kept if n_kept and compared else 1.0
            assert min(1, raw) - 1e-12 <= weights[name] <= max(1, raw) + 1e-12

    def test_evidence_overcomes_the_prior(self):
        """With 100 times the pairs the weights come within 1 % of the ratio of shares."""
        weights = consistency_weights({"a": (3000, 4000), "b": (1000, 4000)})

        assert weights == pytest.approx({"a": 1.5, "b": 0.5}, rel=0.01)
        assert weights["a"] < 1.5

    @pytest.mark.parametrize("wrong", [(-1, 3), (4, 3), (0, -1)])
    def test_impossible_counts_are_refused_by_name(self, wrong):
        """More kept than compared, or a negative count, names the reviewer."""
        with pytest.raises(InvalidParameter, match="gpt4"):
            consistency_weights({"gpt4": wrong})

    @pytest.mark.parametrize("k", [0, -1, float("inf"), float("nan")])
    def test_a_prior_worth_nothing_or_everything_is_refused(self, k):
        """The number of pairs of equality is finite and positive."""
        with pytest.raises(InvalidParameter, match="pairs_of_equality"):
            consistency_weights({"a": (1, 2)}, k)


class TestOtherSessions:
    """A session's weights come from the other sessions."""

    @given(sessions=st.lists(counts(n_max=10), min_size=2, max_size=5), changed=counts(n_max=10))
    def test_a_session_teaches_itself_nothing(self, sessions, changed):
        """Whatever happens in a session, its own weights for those known elsewhere stay."""
        known = {name for order_kept in sessions[1:] for name in order_kept}
        before = learn_consistency(sessions)[0]

        after = learn_consistency([changed, *sessions[1:]])[0]

        assert {name: before[name] for name in known} == {name: after[name] for name in known}

    def test_the_counts_of_the_others_are_added_up(self):
        """The weights of the first session are those of the sum of the second and third."""
        sessions = [{"a": (9, 10), "b": (1, 10)}, {"a": (2, 5), "b": (3, 5)}, {"a": (4, 6)}]

        learned = learn_consistency(sessions)

        assert learned[0] == consistency_weights({"a": (6, 11), "b": (3, 5)})
        assert len(learned) == 3

    def test_one_session_alone_has_equal_weights(self):
        """There is no other session to learn from."""
        assert learn_consistency([{"a": (9, 10), "b": (1, 10)}]) == [{"a": 1.0, "b": 1.0}]

    def test_a_wrong_count_does_not_hide_in_the_sum(self):
        """A session with more kept than compared is refused even where the sum is possible."""
        with pytest.raises(InvalidParameter, match="3 of 2"):
            learn_consistency([{"a": (3, 2)}, {"a": (0, 9)}])


def test_the_prior_is_that_of_the_documentation():
    """Twenty comparisons stand for a spread of 0.16 between reviewers, correlated two to one."""
    spread = (0.5 * 0.5 / (PAIRS_OF_EQUALITY / 2 + 1)) ** 0.5

    assert spread == pytest.approx(0.16, abs=0.015)
