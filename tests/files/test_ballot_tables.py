"""Files of ballots with grades only: read as a table, and ballot by ballot."""

import json
from io import BytesIO
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from witan.core.ballot import Ballot, BallotTable
from witan.core.scale import Scale
from witan.errors import BallotFileError
from witan.files.ballots import LineProblem, ProblemReport, read_ballots, read_parts
from witan.files.imports import read_imports

PLAIN = [{"session": "s", "reviewer": who, "grades": {"a": 4, "b": 5.5}} for who in "xy"]


def lines(*records: object) -> bytes:
    texts = [each if isinstance(each, str) else json.dumps(each) for each in records]
    return "".join(f"{text}\n" for text in texts).encode()


def parts(content: bytes) -> list[Ballot | BallotTable]:
    """The parts of a file, problems left out."""
    report = lambda path: ProblemReport(path, lambda _: None)  # noqa: E731
    return list(read_parts(BytesIO(content), (None, {}), report, (Scale(), None)))


def read(content: bytes, **options: Any) -> tuple[list[Ballot] | str, list[LineProblem]]:
    """The ballots, or the error, and every problem of a file."""
    problems: list[LineProblem] = []
    source = BytesIO(content)
    try:
        ballots = read_ballots(
            source, format="jsonl", on_problem=problems.append, reports_doubts=True, **options
        )
        return list(ballots), problems
    except BallotFileError as error:
        return str(error), problems


ODD = [
    "",
    "  ",
    "nonsense",
    "[1]",
    '{"session": "s", "reviewer": "x", "grades": {"a": NaN}}',
    '{"session": "s", "reviewer": "x", "grades": {"a": 1e400}}',
    '{"session": "s", "reviewer": "x", "grades": {"a": 123456789012345678901}}',
    '{"session": "s", "reviewer": "x", "grades": {"a\\ud800": 1}}',
    {"session": " s", "reviewer": "x", "grades": {"a": 1}},
    {"session": "s\0", "reviewer": "x", "grades": {"a": 1}},
    {"session": "", "reviewer": "x", "grades": {"a": 1}},
    {"session": 7, "reviewer": "x", "grades": {"a": 1}},
    {"session": "s", "reviewer": "x ", "grades": {"a": 1}},
    {"session": "s", "reviewer": 3, "grades": {"a": 1}},
    {"session": "s", "reviewer": "x", "grades": {" a": 1}},
    {"session": "s", "reviewer": "x", "grades": {"a": True}},
    {"session": "s", "reviewer": "x", "grades": {"a": "8/10"}},
    {"session": "s", "reviewer": "x", "grades": {"a": {"style": 4}}},
    {"session": "s", "reviewer": "x", "grades": {"a": 11}},
    {"session": "s", "reviewer": "x", "grades": {}},
    {"session": "s", "reviewer": "x", "grades": [4]},
    {"session": "s", "reviewer": "x", "grades": None},
    {"session": "s", "reviewer": "x", "ranking": ["a", "b"]},
    {"session": "s", "reviewer": "x", "grades": {"a": 1}, "kind": "human"},
    {"reviewer": "x", "grades": {"a": 1}},
]


@st.composite
def files(draw: st.DrawFn) -> bytes:
    """Lines of JSON, most of them ballots with grades only."""
    grade = st.sampled_from([1, 2, 5, 7, 10, 0, 0.5, 7.25, 85, 100])
    usual = st.builds(
        lambda session, reviewer, grades: {
            "session": session,
            "reviewer": reviewer,
            "grades": grades,
        },
        st.sampled_from(["s", "t", "ü"]),
        st.sampled_from("xyz"),
        st.dictionaries(st.sampled_from("abc"), grade, min_size=1),
    )
    records = draw(st.lists(usual, min_size=1, max_size=8))
    for odd in draw(st.lists(st.sampled_from(ODD), max_size=1)):
        records.insert(draw(st.integers(0, len(records))), odd)
    return lines(*records)


@given(files(), st.sampled_from([None, "0-10", "1-10", "0-100"]))
@example(lines(*PLAIN, ""), None)
@example(lines(ODD[6], PLAIN[0]), "0-10")
def test_table_equals_its_lines(content, scale):
    """Ballots, errors and warnings are those of reading ballot by ballot."""
    by_line = {"columns": {"session": "session"}}  # a file with renamed columns is never a table

    assert read(content, scale=scale) == read(content, scale=scale, **by_line)


def test_ballots_with_grades_only_are_one_table():
    """A file of nothing but sessions, reviewers and plain grades is read as columns."""
    [table] = parts(lines(*PLAIN))

    assert isinstance(table, BallotTable)
    assert [ballot.reviewer for ballot in table] == ["x", "y"]
    assert table[1] == tuple(table)[1] == table[-1]


@pytest.mark.parametrize("odd", ODD[2:], ids=str)
def test_one_other_line_prevents_a_table(odd):
    """Any other line makes the file be read ballot by ballot."""
    assert not any(isinstance(part, BallotTable) for part in parts(lines(*PLAIN, odd)))


def test_session_of_a_table_may_be_scattered():
    """The ballots of a session are joined wherever they are."""
    others = [{**each, "session": "t"} for each in PLAIN]
    content = lines(PLAIN[0], others[0], PLAIN[1], others[1])

    sessions = {one.session: one.ballots for one in read_imports(BytesIO(content))}

    assert [*sessions] == ["s", "t"]
    assert [ballot.reviewer for ballot in sessions["t"]] == ["x", "y"]
    assert {ballot.session for ballot in sessions["t"]} == {"t"}
