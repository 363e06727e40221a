"""Ballots in JSON Lines: the fields of a record, and reports of bad lines."""

import json
from datetime import UTC, datetime

import pytest

from witan.core.ballot import Ballot
from witan.errors import BallotFileError
from witan.files.ballots import read_ballots


def read(tmp_path, *lines, **options):
    """Write these lines, read them back: ballots and the problems as text without the folder."""
    path = tmp_path / "votes.jsonl"
    texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    path.write_text("\n".join(texts) + "\n", encoding="utf-8")
    problems = []
    cast = list(read_ballots(path, on_problem=problems.append, **options))
    return cast, [str(problem).removeprefix(f"{tmp_path}/") for problem in problems]


class TestRecord:
    """The fields of a record."""

    def test_every_field_is_read(self, tmp_path):
        """All documented fields of a record are on the ballot."""
        record = {
            "session": "q1",
            "reviewer": "gpt-4o",
            "ranking": ["grok-3", ["claude", "gemini"]],
            "grades": {"claude": {"accuracy": 9, "overall": "8/10"}, "grok-3": 8.5},
            "abstained": False,
            "reason": "none",
            "candidates": ["claude", "gemini", "grok-3"],
            "authors": {"claude": "anthropic"},
            "positions": {"claude": 1, "gemini": 2, "grok-3": 3},
            "weight": 2,
            "category": "maths",
            "at": "2025-01-31T09:30:00Z",
            "kind": "human",
            "question": "Why?",
            "notes": "a note",
            "mood": "ignored",
        }

        cast, problems = read(tmp_path, record)

        assert problems == []
        assert cast == [
            Ballot(
                reviewer="gpt-4o",
                groups=(("grok-3",), ("claude", "gemini")),
                grades={"claude": {"accuracy": 9, "overall": "8/10"}, "grok-3": 8.5},
                session="q1",
                reason="none",
                candidates=("claude", "gemini", "grok-3"),
                authors={"claude": "anthropic"},
                positions={"claude": 1, "gemini": 2, "grok-3": 3},
                weight=2.0,
                category="maths",
                at=datetime(2025, 1, 31, 9, 30, tzinfo=UTC),
                kind="human",
                question="Why?",
                notes="a note",
                scale="1-10",
            )
        ]

    def test_ranking_may_be_a_map_from_candidate_to_rank(self, tmp_path):
        """Equal ranks are tied, gaps do not matter, null is unranked."""
        cast, _ = read(
            tmp_path, {"reviewer": "r", "ranking": {"a": 4, "b": 1, "c": 4, "d": None, "e": 2.5}}
        )

        assert cast[0].groups == (("b",), ("e",), ("a", "c"))

    def test_bad_grades_stay_on_the_ballot(self, tmp_path):
        """Grades out of range, booleans and words stay as they are; null is an empty grade."""
        grades = {"a": 11, "b": True, "c": "good", "d": {"accuracy": "8/10", "clarity": None}}

        cast, problems = read(tmp_path, {"reviewer": "r", "grades": {**grades, "e": None}})

        assert problems == []
        empty = {"d": {"accuracy": "8/10", "clarity": ""}, "e": ""}
        assert cast[0].grades == {"a": 11, "b": True, "c": "good", **empty}
        assert cast[0].grades["b"] is True

    def test_names_keep_any_unicode_except_outer_white_space(self, tmp_path):
        """White space is removed only around a name."""
        cast, _ = read(tmp_path, {"reviewer": " Ольга 🦉 ", "ranking": ["模型", "e\u0301", "é"]})

        assert cast[0].reviewer == "Ольга 🦉"
        assert cast[0].groups == (("模型",), ("e\u0301",), ("é",))

    def test_session_may_be_a_number_or_missing(self, tmp_path):
        """A numeric id becomes its digits; a file without sessions is one session."""
        cast, _ = read(tmp_path, {"reviewer": "r", "session": 7}, {"reviewer": "r"})

        assert [one.session for one in cast] == ["7", ""]

    def test_columns_map_fields_to_keys(self, tmp_path):
        """Custom keys are read; a plus joins two as name@name."""
        cast, _ = read(
            tmp_path,
            {"task": "q", "judge": "j", "version": 2, "order": ["a"]},
            columns={"session": "task", "reviewer": "judge+version", "ranking": "order"},
        )

        assert cast == [Ballot("j@2", groups=(("a",),), session="q")]


BAD = [
    ({"ranking": ["a"]}, "field 'reviewer' is missing; the record has ranking; expected who"),
    ({}, "field 'reviewer' is missing; the record is empty"),
    ({"reviewer": ""}, "field 'reviewer' is an empty name"),
    ({"reviewer": 7}, "field 'reviewer' is the number 7; expected a name as text"),
    ({"reviewer": "r", "session": ["q"]}, "field 'session' is a list; expected text"),
    ({"reviewer": "r", "ranking": 3}, "field 'ranking' is the number 3; expected a list of names"),
    ({"reviewer": "r", "ranking": ["a", 2]}, "field 'ranking' is the number 2; expected a name"),
    ({"reviewer": "r", "ranking": ["a", " "]}, "field 'ranking' is an empty name"),
    ({"reviewer": "r", "ranking": [[["a"]]]}, "field 'ranking' is a list; expected a name"),
    ({"reviewer": "r", "ranking": ["a", []]}, "field 'ranking' has an empty group"),
    ({"reviewer": "r", "ranking": {"a": "first"}}, "field 'ranking' has the text 'first' for 'a'"),
    ({"reviewer": "r", "ranking": {"a": 0}}, "field 'ranking' has rank 0 for 'a'; expected 1"),
    ({"reviewer": "r", "grades": [8, 9]}, "field 'grades' is a list; expected a map"),
    ({"reviewer": "r", "grades": {"a": [8]}}, "field 'grades' has a list for 'a'"),
    ({"reviewer": "r", "grades": {"a": {"x": {"y": 1}}}}, "field 'grades' has a map for 'a'"),
    ({"reviewer": "r", "abstained": "yes"}, "field 'abstained' is the text 'yes'; expected true"),
    ({"reviewer": "r", "reason": 1}, "field 'reason' is the number 1; expected text"),
    ({"reviewer": "r", "candidates": "a"}, "field 'candidates' is the text 'a'; expected a list"),
    ({"reviewer": "r", "authors": ["a"]}, "field 'authors' is a list; expected a map"),
    ({"reviewer": "r", "positions": {"a": 0}}, "field 'positions' has the number 0 for 'a'"),
    ({"reviewer": "r", "positions": {"a": 2**31}}, "field 'positions' has the number 2147483648"),
    ({"reviewer": "r", "session": "s\0"}, "field 'session' is 's\\x00'; expected a name without"),
    (
        {"reviewer": "r", "at": "0001-01-01T00:00:00+14:00"},
        "field 'at' is 0001-01-01T00:00:00+14:00; expected a time",
    ),
    (
        {"reviewer": "r", "at": "9999-12-31T23:59:59-14:00"},
        "field 'at' is 9999-12-31T23:59:59-14:00; expected a time",
    ),
    ({"reviewer": "r", "positions": {"a": True}}, "field 'positions' has true for 'a'"),
    ({"reviewer": "r", "positions": [1]}, "field 'positions' is a list; expected a map"),
    ({"reviewer": "r", "weight": "abc"}, "field 'weight' is the text 'abc'; expected a number"),
    ({"reviewer": "r", "weight": True}, "field 'weight' is true; expected a number of 0 or more"),
    ({"reviewer": "r", "weight": -1}, "field 'weight' is -1, below zero"),
    ({"reviewer": "r", "weight": 10**400}, "field 'weight' is too large"),
    ('{"reviewer": "r", "weight": NaN}', "field 'weight' is nan, not a JSON number"),
    (
        '{"reviewer": "r", "weight": -Infinity}',
        "field 'weight' is -inf, not a JSON number",
    ),
    ({"reviewer": "r", "kind": "cat"}, "field 'kind' is the text 'cat'; expected 'model' or"),
    ({"reviewer": "r", "at": "yesterday"}, "field 'at' is 'yesterday'; expected a time such as"),
    ({"reviewer": "r", "at": "2025-01-31T09:30:00"}, "field 'at' has no time zone"),
    ({"reviewer": "r", "at": 1738315800}, "field 'at' is the number 1738315800; expected a time"),
    ({"reviewer": "r", "rankings": ["a"]}, "field 'rankings' is unknown; did you mean 'ranking'?"),
    ('{"reviewer": "r', "is not JSON (Unterminated string at column 14)"),
    ('{"reviewer": "r"', "is not JSON (Expecting ',' delimiter at column"),
    ('{"reviewer": "r"} {}', "is not JSON (extra text after the object at column"),
    ('["r"]', "is not a JSON object; expected {…}"),
    ('{"reviewer": "\\ud800"}', "is not JSON (it contains an unpaired surrogate"),
    ('{"reviewer": "r", "weight": 1' + "0" * 5000 + "}", "is not JSON (a number has too many"),
    ('{"reviewer": ' + "[" * 200_000, "is not JSON (too deeply nested)"),
]


@pytest.mark.parametrize(("bad", "said"), BAD, ids=[said[:48] for _, said in BAD])
def test_bad_line_is_reported_and_the_good_ones_count(tmp_path, bad, said):
    """A problem names file, line and field and the expected value; its neighbours are read."""
    good = {"reviewer": "r", "ranking": ["a", "b"]}

    cast, problems = read(tmp_path, good, bad, "", good)

    assert len(cast) == 2
    assert len(problems) == 1
    assert problems[0].startswith(f"votes.jsonl:2: {said}")


def test_without_a_callback_the_first_problem_is_raised(tmp_path):
    """The error carries path, line and field, after the good ballots before it."""
    path = tmp_path / "votes.jsonl"
    path.write_text('{"reviewer": "r"}\n{"reviewer": "s", "weight": "x"}\n', encoding="utf-8")
    ballots = read_ballots(path)

    assert next(ballots).reviewer == "r"
    with pytest.raises(BallotFileError, match=r"field 'weight'.*the text 'x'") as caught:
        next(ballots)

    assert (caught.value.path, caught.value.line) == (str(path), 2)


def test_array_and_indented_object_are_read(tmp_path):
    """Ballots may be in one array, or each spread over lines."""
    rows = ('{"reviewer": "r",', '"ranking": ["a"]}')
    for lines in (["[", *rows, "]"], rows):
        [ballot], problems = read(tmp_path, *lines)
        assert (ballot.groups, problems) == ((("a",),), [])
