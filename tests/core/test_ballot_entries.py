"""Ballots as rows: exactly as cast, with the reviewer's own candidate."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from elections import ballot, ballots
from witan.core.ballot import Ballot
from witan.core.entry_builder import entries_of, entries_of_many
from witan.core.session_ballots import AnswerEntry, BallotEntry, Entries, SessionBallots
from witan.errors import InvalidParameter
from witan.files.ballots import read_ballots

AT = datetime(2026, 11, 21, 12, tzinfo=UTC)
REAL = Path(__file__).parents[3] / "shared" / "data"


def session_of(*cast: Ballot, **fields) -> SessionBallots:
    return SessionBallots("s", AT, cast, **fields)


def entries_from(*lines: str, **fields) -> Entries:
    return entries_of(session_of(*ballots(*lines), **fields))


class TestBallotsAsCast:
    """One row per ballot, own candidate included."""

    def test_shares_by_hand(self):
        """Other candidates are compared without the own one, the own one with all of them."""
        [row] = entries_from("b: a > b = c > d").ballots

        assert row == BallotEntry(
            "b",
            "model",
            models=("a", "b", "c", "d"),
            own=(False, True, False, False),
            shares=(1.0, 0.5, 0.5, 0.0),
            grades=(None,) * 4,
            positions=(0, 0, 0, 0),
            chars=(None,) * 4,
        )

    def test_an_own_candidate_not_on_the_sheet_is_not_on_the_ballot(self):
        """A council's sheet leaves it out although the roster has it."""
        sheet = {"a": 2, "c": 1}
        cast = ballot("b: a > c", candidates=("a", "b", "c"), positions=sheet)

        [row] = entries_of(session_of(cast)).ballots

        assert (row.models, row.positions, row.shares) == (("a", "c"), (2, 1), (1.0, 0.0))

    def test_a_copy_of_an_answer_has_no_place(self):
        """Its place is 0, and candidates behind it are placed as many further back."""
        sheet = {"a": 2, "b": 1, "c": 2, "d": 3}
        cast = [ballot("x: a = c > b > d", positions=sheet),
                ballot("y: a = c > b > d", positions={**sheet, "d": 1, "b": 1, "a": 2}),
                ballot("z: a = c > b", positions={"a": 2, "c": 2, "b": 1})]  # fmt: skip

        rows = [entries_of(session_of(each)).ballots[0] for each in cast]

        assert [row.models for row in rows] == [tuple("abcd"), tuple("abcd"), tuple("abc")]
        assert [row.positions for row in rows] == [(2, 1, 0, 4), (4, 1, 0, 0), (3, 1, 0)]

    def test_an_unranked_candidate_has_no_share(self):
        """Neither has a candidate without a rival."""
        [partial] = entries_from("x: a > b", models={}).ballots
        [alone] = entries_of(session_of(ballot("x: a", candidates=("a", "b")))).ballots

        assert partial.shares == (1.0, 0.0)
        assert (alone.models, alone.shares) == (("a", "b"), (None, None))

    def test_grades_are_overall_and_by_criterion(self):
        """Overall grades are after the ceiling; criteria are as on the ballot."""
        grades = {
            "a": {"accuracy": 2, "clarity": "9/10", "completeness": 9, "overall": 9},
            "b": {"accuracy": 8, "clarity": 8, "completeness": 8},
            "c": {"accuracy": "high"},
        }
        [row] = entries_of(
            session_of(Ballot("x", grades=grades, candidates=("a", "b", "c")))
        ).ballots

        assert row.grades == (4.0, 8.0, None)
        assert row.criteria == ("accuracy", "clarity", "completeness")
        assert row.criterion_grades == ((2.0, 8.0, None), (9.0, 8.0, None), (9.0, 8.0, None))

    def test_lengths_models_and_answers(self):
        """Lengths come from the answers; candidates are named by model, or by author."""
        cast = replace(ballot("x: c1 > c2"), authors={"c1": "m1"})
        entries = entries_of(
            session_of(cast, lengths={"c1": 120, "c2": 80}, models={"m1": "org/m1", "x": "org/x"})
        )

        assert entries.ballots[0].reviewer == "org/x"
        assert entries.ballots[0].models == ("org/m1", "c2")
        assert entries.ballots[0].chars == (120, 80)
        assert entries.answers == (AnswerEntry("c1", "org/m1", 120), AnswerEntry("c2", "c2", 80))

    def test_rows_are_in_the_order_of_ballots(self):
        """Kinds are mixed, one ballot is empty, and a later one replaces another."""
        cast = [
            ballot("p: a > b", kind="human"), ballot("x: a > b"), ballot("y:"), ballot("x: b > a"),
            ballot("m: b > a", weight=0),
        ]  # fmt: skip

        rows = entries_of(session_of(*cast, models={"p": "not a model's name"})).ballots

        assert [row.reviewer for row in rows] == ["p", "x", "y", "x", "m"]
        assert [row.shares for row in rows] == [(1.0, 0.0), (), (), (0.0, 1.0), ()]
        assert [row.abstained for row in rows] == [False, False, True, False, False]
        assert [row.counts for row in rows] == [True, False, True, True, False]
        assert rows[4].weight == 0

    def test_order_consistency_is_on_a_row_that_counts(self):
        """A replaced row, or one of weight zero, does not contain it."""

        def judged(first: str, second: str, weight: float = 1) -> Ballot:
            positions = {first: 1, second: 2}
            return ballot("x: a > b", paired=True, positions=positions, weight=weight)

        cast = [judged("a", "b"), judged("a", "b"), judged("b", "a")]
        rows = entries_of(session_of(*cast)).ballots

        assert [(row.counts, row.kept, row.compared) for row in rows] == [
            (False, 0, 0), (True, 1, 1), (True, 0, 0)
        ]  # fmt: skip

    def test_a_ballot_that_ties_all_is_flat(self):
        """An own candidate on it does not matter."""
        flat, ordered = entries_from("a: a = b = c", "x: a > b = c").ballots

        assert flat.flat
        assert not ordered.flat

    def test_a_wrong_weight_is_refused(self):
        """The error names the ballot with the negative weight."""
        with pytest.raises(InvalidParameter, match="x's ballot"):
            entries_of(session_of(ballot("x: a > b", weight=-1)))


def real(folder: str) -> Path:
    path = REAL / folder
    if not path.exists():
        pytest.skip(f"{path} is not here")
    return path


@pytest.fixture(scope="module")
def sessions() -> list[Entries]:
    """The forty sessions of the real council, counted."""
    grouped: dict[str, list[Ballot]] = {}
    for one in read_ballots(real("prd_vicuna80/pairwise.csv")):
        grouped.setdefault(one.session, []).append(one)
    return list(entries_of_many(SessionBallots(s, AT, tuple(cast)) for s, cast in grouped.items()))


class TestRealCouncil:
    """Forty questions on which five models and people judged ordered pairs of answers."""

    def test_every_ballot_has_a_row(self, sessions):
        """There are four thousand rows by models and 880 by people, of forty sessions."""
        rows = [row for entries in sessions for row in entries.ballots]

        assert len(sessions) == 40
        assert sum(row.kind == "model" for row in rows) == 4000
        assert sum(row.kind == "human" for row in rows) == 880

    def test_order_consistency(self, sessions):
        """The rates in both orders of a pair are those in the data's README."""
        assert consistency(sessions) == pytest.approx(
            {"gpt35": 0.70, "gpt4": 0.66, "claude": 0.56, "vicuna-13b": 0.36, "bard": 0.36},
            abs=0.006,
        )

    def test_models_and_people_have_separate_matchups(self, sessions):
        """Each session has a row for each kind, of five models or of the judged pairs."""
        for entries in sessions:
            kinds = {row.kind: row for row in entries.matchups}
            assert len(kinds["model"].models) == 5
            assert all(p is not None for p in kinds["model"].p_beats)


def consistency(sessions: Iterable[Entries]) -> dict[str, float]:
    consistent_pairs: dict[str, int] = {}
    pairs: dict[str, int] = {}
    for entries in sessions:
        for row in entries.ballots:
            if row.kind == "model":
                consistent_pairs[row.reviewer] = consistent_pairs.get(row.reviewer, 0) + row.kept
                pairs[row.reviewer] = pairs.get(row.reviewer, 0) + row.compared
    return {reviewer: consistent_pairs[reviewer] / n for reviewer, n in pairs.items()}
