"""Sheets: their contents and order, which favours no candidate."""

from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from witan.core.blinding import Sheet, draw_sheets, label_map, mirror
from witan.errors import UnknownName

SIZES = range(2, 13)

GOLDEN = {"a": "cbd", "b": "adc", "c": "dab", "d": "bca"}
GOLDEN_NONCE = "f51dd6e2ffcdf55b50b923c2d860a04f"
"""hashlib.shake_256(b"0 7 1").digest(81)[65:].hex(): after two orders of four, and a coin."""


def names(size: int) -> list[str]:
    """Name the seats m0, m1 and so on."""
    return [f"m{number}" for number in range(size)]


def each_other(size: int, seed: int = 0) -> dict[str, Sheet]:
    """The sheets of a council whose members review each other."""
    members = names(size)
    return draw_sheets(members, members, [seed], hidden_candidates={name: name for name in members})


def place_counts(sheets: dict[str, Sheet], candidate: str, places: int) -> list[int]:
    """How often a candidate is at each position."""
    counts = Counter(sheet.positions.get(candidate) for sheet in sheets.values())
    return [counts[place] for place in range(1, places + 1)]


def neighbours(sheets: dict[str, Sheet]) -> Counter[tuple[str, str]]:
    """How often one candidate is directly before another."""
    return Counter(pair for sheet in sheets.values() for pair in pairwise(sheet.candidates))


@st.composite
def councils(draw):
    """Any number of reviewers and candidates, and any reviewers hiding any candidate."""
    reviewers = [f"r{number}" for number in range(draw(st.integers(1, 12)))]
    candidates = [f"c{number}" for number in range(draw(st.integers(2, 12)))]
    hidden = draw(st.dictionaries(st.sampled_from(reviewers), st.sampled_from(candidates)))
    return reviewers, candidates, hidden, draw(st.integers(0, 2**63))


@st.composite
def juries(draw):
    """Any number of reviewers and candidates, and any reviewers hiding any candidates."""
    reviewers = [f"r{number}" for number in range(draw(st.integers(1, 9)))]
    candidates = [f"c{number}" for number in range(draw(st.integers(2, 9)))]
    some = st.sets(st.sampled_from(candidates))
    if draw(st.booleans()):
        size = draw(st.integers(0, len(candidates)))
        some = st.sets(st.sampled_from(candidates), min_size=size, max_size=size)
    hidden = {name: draw(some) for name in reviewers}
    return reviewers, candidates, hidden, draw(st.integers(0, 2**63))


class TestSheet:
    """A sheet translates between candidates, labels and positions."""

    SHEET = Sheet("r", ("x", "y"), ("A", "B"), "5c0f")

    def test_positions_start_at_one(self):
        """The first candidate stands at position 1."""
        assert self.SHEET.positions == {"x": 1, "y": 2}

    def test_a_candidate_has_its_label(self):
        """It is the one at its place."""
        assert self.SHEET.label("y") == "B"

    def test_an_unknown_candidate_has_no_label(self):
        """A candidate that is not on the sheet is an error."""
        with pytest.raises(UnknownName, match="candidate 'z'"):
            self.SHEET.label("z")

    def test_labels_continue_after_z(self):
        """The 27th label is AA, the 53rd BA."""
        labels = label_map("reader", names(53), [0]).labels

        assert labels[:3] == ("A", "B", "C")
        assert labels[25:28] == ("Z", "AA", "AB")
        assert labels[52] == "BA"


class TestBalance:
    """Every candidate is at every position equally often."""

    @pytest.mark.parametrize("seed", range(3))
    @pytest.mark.parametrize("size", SIZES)
    def test_members_reviewing_each_other_are_balanced(self, size, seed):
        """Each candidate is exactly once at each of the n − 1 positions."""
        sheets = each_other(size, seed)

        for name in names(size):
            assert place_counts(sheets, name, size - 1) == [1] * (size - 1)
            assert sorted(sheets[name].candidates) == sorted(set(names(size)) - {name})

    @pytest.mark.parametrize("size", SIZES)
    def test_members_reviewing_all_answers_are_balanced(self, size):
        """Each candidate is exactly once at each of the n positions."""
        sheets = draw_sheets(names(size), names(size), [1], hidden_candidates={})

        for name in names(size):
            assert place_counts(sheets, name, size) == [1] * size
            assert sorted(sheets[name].candidates) == sorted(names(size))

    @pytest.mark.parametrize("size", SIZES)
    def test_no_candidate_follows_the_same_rival_twice(self, size):
        """Among members who review each other, an ordered pair is neighbours at most once."""
        assert max(neighbours(each_other(size)).values(), default=0) <= 1

    @pytest.mark.parametrize("size", SIZES)
    def test_neighbours_are_balanced_when_all_answers_are_shown(self, size):
        """A pair is neighbours exactly once for even n (Williams), at most twice for odd."""
        counts = neighbours(draw_sheets(names(size), names(size), [2], hidden_candidates={}))

        assert max(counts.values()) <= 1 + size % 2
        assert size % 2 or len(counts) == size * (size - 1)

    @given(councils())
    def test_any_council_is_balanced(self, council):
        """Reviewers see all but the hidden; counts differ by at most one where that is possible."""
        reviewers, candidates, hidden, seed = council

        sheets = draw_sheets(reviewers, candidates, [seed], hidden_candidates=hidden)

        seeing_all = len(reviewers) - len(hidden)
        places = len(candidates) if seeing_all else len(candidates) - 1
        appearances = {c: len(reviewers) - list(hidden.values()).count(c) for c in candidates}
        # Below this, the last position is too rare to be everybody's in turn.
        possible = not seeing_all or seeing_all >= sum(n // places for n in appearances.values())
        for candidate in candidates:
            counts = place_counts(sheets, candidate, places)
            assert sum(counts) == appearances[candidate]
            assert max(counts) - min(counts) <= 1 or not possible
        for name in reviewers:
            assert sorted(sheets[name].candidates) == sorted(set(candidates) - {hidden.get(name)})

    @given(juries())
    def test_reviewers_may_hide_several_candidates(self, jury):
        """They see all others; sheets of one length are balanced among themselves."""
        reviewers, candidates, hidden, seed = jury

        sheets = draw_sheets(reviewers, candidates, [seed], hidden_candidates=hidden)

        for name in reviewers:
            visible = set(candidates) - hidden.get(name, set())
            assert sorted(sheets[name].candidates) == sorted(visible)
        lengths = {len(sheet.candidates) for sheet in sheets.values()}
        if len(lengths) == 1 and len(candidates) not in lengths:
            for candidate in candidates:
                counts = place_counts(sheets, candidate, max(lengths))
                assert not counts or max(counts) - min(counts) <= 1

    def test_own_answers_have_no_fixed_position(self):
        """Over the seeds an own answer is at all positions of its author's sheet."""
        places = Counter(
            draw_sheets(names(4), names(4), [seed], hidden_candidates={})["m0"].positions["m0"]
            for seed in range(200)
        )

        assert sorted(places) == [1, 2, 3, 4]
        assert min(places.values()) > 25

    def test_hiding_an_absent_candidate_hides_nothing(self):
        """A member without an answer sees all the others'."""
        sheets = draw_sheets(["a", "b"], ["b", "c"], [0], hidden_candidates={"a": "a", "b": "b"})

        assert sorted(sheets["a"].candidates) == ["b", "c"]
        assert sheets["b"].candidates == ("c",)


class TestSeed:
    """A sheet depends on its seed alone."""

    def test_sheets_of_a_fixed_seed(self):
        """The seed gives these sheets on every machine."""
        sheets = draw_sheets(
            "abcd", "abcd", [7, 1], hidden_candidates={name: name for name in "abcd"}
        )

        assert {name: "".join(sheet.candidates) for name, sheet in sheets.items()} == GOLDEN
        assert sheets["a"].nonce == GOLDEN_NONCE

    @given(councils())
    def test_the_same_seed_draws_the_same_sheets(self, council):
        """Two draws are equal, nonces included."""
        reviewers, candidates, hidden, seed = council

        first = draw_sheets(reviewers, candidates, [seed], hidden_candidates=hidden)

        assert draw_sheets(reviewers, candidates, [seed], hidden_candidates=hidden) == first

    def test_other_seeds_draw_other_orders(self):
        """Over 100 seeds a council of seven sees close to 100 arrangements."""
        orders = {tuple(s.candidates for s in each_other(7, seed).values()) for seed in range(100)}

        assert len(orders) > 90

    def test_a_trailing_zero_is_part_of_the_seed(self):
        """The seeds (7,) and (7, 0) draw different sheets."""
        assert label_map("r", names(9), [7]) != label_map("r", names(9), [7, 0])

    def test_nonces_of_a_seed_are_unique(self):
        """Sheets, mirrors and the chairman's map have different nonces."""
        sheets = each_other(12)
        mirrors = [mirror(sheet, [0, seat]) for seat, sheet in enumerate(sheets.values())]
        alone = draw_sheets(["r"], ["c"], [0], hidden_candidates={})["r"]

        nonces = [
            *(sheet.nonce for sheet in (*sheets.values(), *mirrors, alone)),
            mirror(alone, [0]).nonce,
            label_map("r", ["c"], [0]).nonce,
        ]

        assert len(set(nonces)) == len(nonces)
        assert all(len(nonce) >= 16 and int(nonce, 16) >= 0 for nonce in nonces)


class TestMirror:
    """The second sheet of a mirrored review."""

    def test_a_mirror_reverses_the_order(self):
        """The first candidate is last, and the labels follow the new places."""
        sheet = each_other(5)["m2"]

        mirrored = mirror(sheet, [3])

        assert mirrored.reviewer == sheet.reviewer
        assert mirrored.candidates == sheet.candidates[::-1]
        assert mirrored.labels == sheet.labels
        assert mirrored.nonce != sheet.nonce


class TestLabelMap:
    """The chairman's labels."""

    def test_the_label_map_has_all_candidates_in_random_order(self):
        """Each candidate occurs once, and over the seeds each comes first."""
        firsts = set()
        for seed in range(50):
            sheet = label_map("chairman", names(4), [seed])
            assert sorted(sheet.candidates) == names(4)
            firsts.add(sheet.candidates[0])

        assert firsts == set(names(4))
