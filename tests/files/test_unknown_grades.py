"""An unreadable grade is unknown: no vote, and never the lowest grade."""

import io
import json

import pytest

from witan import Ballot, read_ballots, tally
from witan.core.blinding import Sheet
from witan.core.rubric import RUBRICS
from witan.deliberation.ballots import read_review


def count(text, name="votes.csv"):
    held = io.BytesIO(text.encode())
    held.name = name
    return tally(list(read_ballots(held)))


def long_table(**cells):
    """Four reviewers; per candidate, the grade of each of them."""
    rows = [f"q,r{k},{c},{cell[k]}\n" for k in range(4) for c, cell in cells.items()]
    return "session,reviewer,candidate,grade\n" + "".join(rows)


@pytest.mark.parametrize(
    "cells", [("n/a", "n/a", 9, 9), ("9.0.", 9, 9, 9), (9, 9, "", 9), ("NaN", 9, 9, 9)], ids=str
)
class TestUnreadableGrade:
    """The others' grades count."""

    def check(self, outcome, cells):
        assert outcome.leaders == ("a",)
        assert outcome["a"].mean_grade == 9
        assert outcome["a"].votes == cells.count(9)
        assert not any("lowest" in warning for warning in outcome.warnings)
        unread = [f"r{k}" for k, cell in enumerate(cells) if cell != 9]
        for reviewer in unread:
            said = f"the ballot of {reviewer} has no readable grade for 'a'"
            assert any(warning.startswith(said) for warning in outcome.warnings)

    def test_in_a_long_table(self, cells):
        """A row with an unreadable grade is not a vote."""
        self.check(count(long_table(a=cells, b=[7] * 4, c=[5] * 4)), cells)

    def test_in_a_column_per_judge(self, cells):
        """A judge's cell with an unreadable grade is not a vote."""
        rows = "\n".join(
            ",".join(map(str, row)) for row in (("q", "a", *cells), ("q", "b", *[7] * 4))
        )
        if all(cell in (9, "", "n/a", "NaN") for cell in cells):
            self.check(count(f"item,model,r0,r1,r2,r3\n{rows}\n"), cells)

    def test_in_json_lines(self, cells):
        """Text or null in place of a grade is not a vote."""
        cells = [None if cell == "" else cell for cell in cells]
        lines = [
            json.dumps({"reviewer": f"r{k}", "grades": {"a": cell, "b": 7, "c": 5}})
            for k, cell in enumerate(cells)
        ]
        self.check(count("\n".join(lines), "votes.jsonl"), cells)


@pytest.mark.parametrize("cell", ["", "1.234.5"])
def test_candidate_without_any_grade_is_listed(cell):
    """It has no votes, no mean, and a note."""
    outcome = count(long_table(a=[cell] * 4, b=[8] * 4, c=[5] * 4))

    assert (outcome["a"].votes, outcome["a"].mean_grade, outcome["a"].rank) == (0, None, 3)
    assert any("'a'" in warning for warning in outcome.warnings)


def test_typing_error_is_suspected():
    """An unreadable grade with digits may be one; words are not."""
    warnings = count(long_table(a=["9.0.", "n/a", 9, 9], b=[7] * 4)).warnings

    assert any("r0 grades 'a' '9.0.'" in each and "dropped" in each for each in warnings)
    assert any("r1 grades 'a' 'n/a'" in each and "dropped" in each for each in warnings)


def test_council_reviewer_is_asked_to_repair_a_bad_grade():
    """Without a repair its lowest grade counts."""
    sheet = Sheet("rev", ("x", "y", "z"), ("A", "B", "C"), "5d41")
    criteria = [criterion.name for criterion in RUBRICS["general"].criteria]
    grades = {
        label: dict.fromkeys(criteria, grade) for label, grade in zip("ABC", "886", strict=True)
    }
    grades["B"] = dict.fromkeys(criteria, "n/a")
    reply = json.dumps({"ranking": [["A"], ["B"], ["C"]], "grades": grades})
    review = read_review(
        reply, sheet, rubric=RUBRICS["general"], holistic=False, session="q", roster=("x", "y", "z")
    )
    other = Ballot("r2", grades={"x": 7, "y": 9, "z": 6}, session="q")

    assert set(review.ballot.grades) == {"x", "z"}
    assert tally([review.ballot, other], "range")["y"].mean_grade == 5.0
