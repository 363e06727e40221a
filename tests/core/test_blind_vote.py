"""A person's vote: a stable sheet, a strictly read ranking, the panel beside it."""

from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime
from itertools import permutations, product

import pytest

from witan.core.blind_vote import (
    Difference,
    PanelMatch,
    build_ballot,
    match_ranking,
    rank_by_pairs,
    read_ranking,
    voting_sheet,
)
from witan.core.blinding import Sheet
from witan.errors import InvalidBallot

SHEET = voting_sheet("s1", "ines", ["x", "y", "z"])


def by_label(text):
    """A ranking of the sheet above, by its labels."""
    return tuple(tuple(map(SHEET.label, group)) for group in read_ranking(text, SHEET))


class TestSheet:
    """The order of candidates for each person."""

    def test_the_sheet_depends_on_names_alone(self):
        """The order of the candidates passed in changes nothing."""
        assert voting_sheet("s1", "ines", ["z", "x", "y"]) == SHEET

    def test_the_first_place_is_balanced(self):
        """Over many people each candidate is first about as often as the others."""
        first = Counter(
            voting_sheet("s1", f"p{k}", ["x", "y", "z"]).candidates[0] for k in range(3_000)
        )

        # Three standard errors of a share of 1/3 among 3,000 are 77.
        assert all(abs(n - 1_000) < 78 for n in first.values())

    def test_session_and_person_are_hashed_separately(self):
        """The two names are not merely concatenated."""
        names = list("abcdefgh")

        assert voting_sheet("ab", "c", names) != voting_sheet("a", "bc", names)


class TestRanking:
    """From text to groups."""

    @pytest.mark.parametrize(
        ("text", "groups"),
        [
            ("B > A = C", (("B",), ("A", "C"))),
            (" c>b >a", (("C",), ("B",), ("A",))),
            ("A=B=C", (("A", "B", "C"),)),
        ],
    )
    def test_case_and_spaces_do_not_matter(self, text, groups):
        """Groups contain candidates; their labels are those of the text."""
        assert by_label(text) == groups

    @pytest.mark.parametrize(
        ("text", "words"),
        [
            ("A > B", "does not place C"),
            ("A > B > C > A", "ranks A more than once"),
            ("A > B > D", "ranks 'D'"),
            ("A > > B = C", "nothing before or after"),
            ("A B C", "ranks 'A B C'"),
            ("", "ranks nothing; the labels are"),
        ],
    )
    def test_an_invalid_ranking_is_refused(self, text, words):
        """Every label is placed exactly once, and nothing else."""
        with pytest.raises(InvalidBallot, match=words):
            read_ranking(text, SHEET)


class TestBallot:
    """The ballot made from a vote."""

    def test_the_ballot_records_person_places_and_time(self):
        """It has the ranking, the candidates, their places, the session and the time."""
        at = datetime(2026, 11, 21, tzinfo=UTC)
        ballot = build_ballot(SHEET, read_ranking("B > A = C", SHEET), "s1", at)

        assert (ballot.reviewer, ballot.kind, ballot.session, ballot.at) == (
            "ines", "human", "s1", at,
        )  # fmt: skip
        assert ballot.candidates == ("x", "y", "z")
        assert ballot.positions == SHEET.positions
        assert ballot.groups[0] == (SHEET.candidates[1],)


class TestAccord:
    """Match of two rankings, with pairs counted by hand."""

    @pytest.mark.parametrize(
        ("groups", "ranks", "found"),
        [
            ((("x",), ("y",), ("z",)), {"x": 1, "y": 2, "z": 3}, PanelMatch(3, 3, 3, True)),
            ((("z",), ("y",), ("x",)), {"x": 1, "y": 2, "z": 3}, PanelMatch(0, 3, 3, False)),
            ((("x", "y"), ("z",)), {"x": 2, "y": 1, "z": 3}, PanelMatch(2, 2, 3, True)),
            ((("x",), ("y",), ("z",)), {"x": 1.5, "y": 1.5, "z": 3}, PanelMatch(2, 2, 3, True)),
            ((("x", "y"),), {"x": 1, "y": 2}, PanelMatch(0, 0, 1, True)),
            ((("w",), ("x",), ("y",)), {"x": 2, "y": 1}, PanelMatch(0, 1, 1, False)),
            ((("x",), ("y",)), {}, PanelMatch(0, 0, 0, None)),
        ],
    )
    def test_pairs_ordered_alike_are_counted(self, groups, ranks, found):
        """Ties count for neither side, and candidates unranked by the panel are left out."""
        assert replace(match_ranking(groups, ranks), differences=()) == found

    def test_differences_begin_with_those_clear_to_the_panel(self):
        """A tie of either side is no difference."""
        clear = [frozenset("yz"), frozenset("xw")]
        found = match_ranking(
            (("x",), ("y",), ("z", "w")), {"w": 1, "z": 2, "y": 3, "x": 3}, clear_pairs=clear
        )

        assert found.differences == (
            Difference("x", "w", is_clear=True),
            Difference("y", "z", is_clear=True),
            Difference("x", "z", is_clear=False),
            Difference("y", "w", is_clear=False),
        )
        assert (found.pairs_decided, found.clear_decided, found.clear_alike) == (4, 2, 0)


def sheet_of(n):
    """A sheet of n labels."""
    labels = tuple("ABCDEFGHIJKLMNOPQRST"[:n])
    return Sheet("ines", labels, labels, "n")


def choose_all(sheet, worth):
    """Choices of a person who knows what each label is worth, until nothing is left to ask."""
    choices = []
    while pair := rank_by_pairs(sheet, choices).next_pair:
        left, right = pair
        sign = "=" if worth[left] == worth[right] else ">" if worth[left] > worth[right] else "<"
        choices.append(f"{left}{sign}{right}")
    return choices


class TestPairs:
    """A ranking from choices between two labels at a time."""

    @pytest.mark.parametrize(("n", "most"), [(2, 1), (3, 3), (4, 5), (5, 7)])
    def test_every_strict_order_is_found_by_the_fewest_pairs(self, n, most):
        """No procedure needs fewer pairs at worst: ⌈log₂ n!⌉ for up to five labels."""
        sheet = sheet_of(n)
        for order in permutations(range(n)):
            worth = dict(zip(sheet.labels, order, strict=True))
            choices = choose_all(sheet, worth)

            assert len(choices) <= most
            best_first = sorted(sheet.labels, key=worth.__getitem__, reverse=True)
            assert rank_by_pairs(sheet, choices).text == " > ".join(best_first)

    def test_every_weak_order_is_found(self):
        """Equal labels share a place, and every pair is decided in the end."""
        sheet = sheet_of(4)
        for values in product(range(3), repeat=4):
            worth = dict(zip(sheet.labels, values, strict=True))
            ranking = rank_by_pairs(sheet, choose_all(sheet, worth))

            for one, other in permutations(sheet.labels, 2):
                assert (ranking.places[one] < ranking.places[other]) == (worth[one] > worth[other])
            assert ranking.n_decided == ranking.n_pairs == 6

    def test_each_label_stands_on_either_side(self):
        """No answer gains by the side that it stands on."""
        sheet = sheet_of(20)
        choices = choose_all(sheet, {label: ord(label) * 7 % 20 for label in sheet.labels})
        for label in sheet.labels:
            on_left = sum(each[0] == label for each in choices)

            assert abs(2 * on_left - sum(label in each for each in choices)) <= 3

    def test_a_skipped_pair_is_not_asked_again(self):
        """What only it would decide is equal; others may still decide it."""
        sheet = sheet_of(3)
        skipped = rank_by_pairs(sheet, ["A?B", "A>C", "B>C"])
        assert (skipped.text, skipped.n_decided, skipped.next_pair) == ("A = B > C", 2, None)
        assert rank_by_pairs(sheet, ["A?B", "A>C", "C>B"]).text == "A > C > B"

    def test_a_choice_that_others_decide_is_refused(self):
        """It would contradict them, or say nothing."""
        for last in ("A>C", "C>A", "A=C"):
            with pytest.raises(InvalidBallot, match="decided already"):
                rank_by_pairs(sheet_of(3), ["A>B", "B>C", last])
