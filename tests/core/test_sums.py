"""Renamed models: chains, cycles, and rows of a model with itself."""

from dataclasses import fields

import numpy as np
import pytest

from leaderboard_sums import NAMES, code, matchup_sums, shuffled, standing_sums
from witan.core.stats.leaderboard import Terms
from witan.core.stats.leaderboard_builder import leaderboard
from witan.core.stats.ratings import rate_sums
from witan.core.stats.sums import (
    HumanSums,
    Names,
    VoteSums,
    merge,
    places,
    present_name,
    rename_codes,
    renamed_codes,
)
from witan.errors import InvalidParameter

HISTORY = Names({10: "old", 20: "new", 30: "older", 40: "other"})


class TestNames:
    """The current name of each model."""

    def test_chains_are_followed_to_their_end(self):
        """Older → old → new ends at new; a name without alias is unchanged."""
        aliases = {"older": "old", "old": "new"}

        assert [present_name(name, aliases) for name in ("older", "old", "new", "other")] == [
            "new", "new", "new", "other",
        ]  # fmt: skip
        assert dict(renamed_codes(aliases, HISTORY)) == {10: 20, 30: 20}

    def test_cycles_of_aliases_are_refused(self):
        """The message shows the whole cycle, from any of its names."""
        aliases = {"x": "a", "a": "b", "b": "a"}

        with pytest.raises(InvalidParameter, match="a → b → a"):
            present_name("x", aliases)
        with pytest.raises(InvalidParameter, match="→"):
            renamed_codes(aliases, HISTORY)

    def test_an_alias_to_itself_is_no_cycle(self):
        """An alias to itself says nothing."""
        assert present_name("a", {"a": "a"}) == "a"

    def test_an_unknown_new_name_uses_an_old_code(self):
        """Two old names of an unknown new one share the first one's code and its new name."""
        aliases = {"old": "newest", "other": "newest"}

        assert dict(renamed_codes(aliases, HISTORY)) == {40: 10}
        assert rename_codes(HISTORY, aliases)[10] == rename_codes(HISTORY, aliases)[40] == "newest"

    def test_aliases_of_unknown_names_are_no_error(self):
        """One configuration serves many histories."""
        assert dict(renamed_codes({"nobody": "none"}, HISTORY)) == {}

    def test_codes_of_one_name_have_one_place(self):
        """Places are alphabetical, and two codes of one name share one."""
        names = Names({3: "b", 1: "a", 2: "b"})

        models, (first, second) = places(names, np.array([3, 1]), np.array([2, 2, 3]))

        assert models == ("a", "b")
        assert (first.tolist(), second.tolist()) == ([1, 0], [1, 1, 1])


class TestMerging:
    """Sums after renaming."""

    def test_scores_of_the_old_name_count_for_the_new(self):
        """Sessions under a and b, now one model, count as if they had always had one name."""
        before = [{"a": 0.2 + 0.1 * n, "c": 0.5} for n in range(4)]
        after = [{"b": 0.3 * n, "c": 0.1} for n in range(4)]
        always = [{name.get(m, m): x for m, x in s.items()} for name in ({"a": "b"},) for s in
                  (*before, *after)]  # fmt: skip
        sums, terms = standing_sums([*before, *after]), Terms(min_sessions=2)

        merged = leaderboard(merge(sums, {"a": "b"}, NAMES), None, None, NAMES, terms=terms)
        expected = leaderboard(standing_sums(always), None, None, NAMES, terms=terms)

        assert merged == expected

    def test_pairs_of_a_model_with_itself_are_dropped(self):
        """A matchup of the old name with the new one is dropped; the others remain."""
        rows = [(0, "a", "b", 3, 1, 0), (0, "a", "c", 2, 1, 1), (1, "c", "b", 1, 0, 0)]

        merged = merge(matchup_sums(rows), {"a": "b"}, NAMES)

        assert merged.first.tolist() == [code("b"), code("c")]
        assert merged.second.tolist() == [code("c"), code("b")]
        assert merged.wins.tolist() == [2, 1]

    def test_renaming_everybody_renames_the_ratings(self):
        """A permutation of names permutes the ratings and nothing else."""
        rows = [
            (b, i, j, 3 + b % 2, 1 + b % 3, b % 2)
            for b in range(12) for i, j in ("ab", "bc", "ac", "dc")
        ]  # fmt: skip
        sums = matchup_sums(rows)
        order = dict(zip("abcd", "cadb", strict=True))
        other = Names({c: order.get(name, name) for c, name in NAMES.of.items()})

        ours, theirs = rate_sums(sums, NAMES), rate_sums(sums, other)

        for place, name in enumerate(ours.models):
            there = theirs.models.index(order[name])
            assert theirs.rating[there] == pytest.approx(ours.rating[place], abs=1e-9)
            assert theirs.std_error[there] == pytest.approx(ours.std_error[place], rel=1e-9)

    def test_renaming_reviewers_keeps_own_votes(self):
        """Reviewer and model columns change; the mark of own votes does not."""
        one = np.array([1])
        votes = VoteSums(one, one * 10, one * 0, one * 30, one * 0, one, one / 2)

        merged = merge(votes, {"old": "new", "older": "new"}, HISTORY)

        assert (merged.reviewer[0], merged.model[0], merged.own[0]) == (20, 20, 0)

    def test_a_reviewer_is_not_paired_with_its_old_name(self):
        """Opinions of the old name against the new are dropped; the diagonal remains."""
        reviewer, other = np.array([10, 10, 20, 10]), np.array([10, 20, 20, 40])
        counts, sums = np.array([1, 2, 3, 4]), np.arange(4.0)
        table = HumanSums(counts * 0, reviewer, other, counts, sums, sums, sums, sums, sums)

        merged = merge(table, {"old": "new"}, HISTORY)

        assert merged.n.tolist() == [1, 3, 4]
        assert merged.reviewer.tolist() == [20, 20, 20]

    def test_without_aliases_nothing_changes(self):
        """The same table comes back, in any order of rows."""
        sums = shuffled(standing_sums([{"a": 1.0, "b": 0.0}] * 3), np.random.default_rng(0))

        merged = merge(sums, {}, NAMES)

        assert all(
            getattr(merged, f.name).tolist() == getattr(sums, f.name).tolist() for f in fields(sums)
        )
