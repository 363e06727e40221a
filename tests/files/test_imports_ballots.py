"""Files of ballots as sessions, with questions and answers beside them."""

import json
from datetime import UTC, datetime

import pytest

from witan.core.ballot import Ballot
from witan.deliberation.record import SessionImport
from witan.files.imports import collect_sessions, read_imports

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)


def write(path, *records):
    """Write JSON Lines."""
    path.write_text("\n".join(map(json.dumps, records)), encoding="utf-8")
    return path


def cast(session, reviewer, **fields):
    """One line of a ballot file."""
    return {"session": session, "reviewer": reviewer, "ranking": ["x", "y"], **fields}


class TestSessions:
    """All lines of a session are one import."""

    def test_ballots_of_a_session_may_be_scattered(self, tmp_path):
        """Sessions are in order of their first line, ballots in theirs."""
        path = write(tmp_path / "f", cast("s2", "a"), cast("s1", "a"), cast("s2", "b"))

        found = list(read_imports(path))

        assert [(one.session, len(one.ballots)) for one in found] == [("s2", 2), ("s1", 1)]
        assert [ballot.reviewer for ballot in found[0].ballots] == ["a", "b"]

    def test_large_file_gives_the_same_sessions(self):
        """Parts on disk are read back in the same order."""
        pieces = [
            SessionImport(f"s{k % 7}", NOON, ballots=(Ballot(f"r{k}", (("x",), ("y",))),))
            for k in range(50)
        ]

        assert list(collect_sessions(pieces, max_bytes=12_000)) == list(collect_sessions(pieces))
        assert [one.session for one in collect_sessions(pieces, max_bytes=12_000)] == [
            f"s{k}" for k in range(7)
        ]

    def test_first_value_and_earliest_time_count(self, tmp_path):
        """A session has one question and category; it was asked before its first ballot."""
        path = write(
            tmp_path / "f",
            cast("s", "a", at="2026-01-31T14:00:00+00:00"),
            cast("s", "b", at="2026-01-31T12:00:00Z", question="Why?", category="maths"),
            cast("s", "c", question="What?", category="law"),
        )

        [one] = read_imports(path, at=datetime(2030, 1, 1, tzinfo=UTC), category="other")

        assert (one.at, one.question, one.category) == (NOON, "Why?", "maths")

    def test_caller_s_time_and_category_apply_to_the_whole_file(self, tmp_path):
        """They replace missing ones."""
        path = write(tmp_path / "f", cast("s", "a"), cast("t", "a"))

        found = list(read_imports(path, at=NOON, category="coding"))

        assert [(one.at, one.category) for one in found] == [(NOON, "coding")] * 2
        assert next(iter(read_imports(path))).at is None

    def test_prefix_renames_sessions_and_their_ballots(self, tmp_path):
        """Two files that number their questions from 1 fit in one history."""
        [one] = read_imports(write(tmp_path / "f", cast("1", "a")), session_prefix="prd/")

        assert one.session == "prd/1"
        assert [ballot.session for ballot in one.ballots] == ["prd/1"]

    def test_ballots_without_a_session_share_one_named_after_the_file(self, tmp_path):
        """The history needs a name for every session."""
        path = write(tmp_path / "lunch.jsonl", {"reviewer": "a", "ranking": ["x"]})

        [one] = read_imports(path)

        assert (one.session, one.ballots[0].session) == ("lunch", "lunch")


class TestCompanionFiles:
    """Questions and answers in separate files."""

    def test_answers_and_questions_join_their_sessions(self, tmp_path):
        """Ids may be numbers; sessions that are not in the file are skipped."""
        ballots = write(tmp_path / "b", cast("1", "a"))
        answers = write(
            tmp_path / "a",
            {"prompt_id": 1, "model": "x", "text": "six words"},
            {"question_id": "1", "candidate": "y", "output_chars": 70},
            {"session": "2", "candidate": "y", "answer": "of another"},
        )
        questions = write(tmp_path / "q", {"prompt_id": 1, "category": "generic", "text": "How?"})

        [one] = read_imports(ballots, answers=[answers], questions=[questions])

        assert one.answers == {"x": "six words"}
        assert one.lengths == {"y": 70}
        assert (one.question, one.category) == ("How?", "generic")

    def test_question_on_a_ballot_wins(self, tmp_path):
        """A question on a ballot is not replaced by one of a separate file."""
        ballots = write(tmp_path / "b", cast("1", "a", question="Mine?", category="law"))
        questions = write(
            tmp_path / "q", {"session": "1", "category": "generic", "text": "Theirs?"}
        )

        [one] = read_imports(ballots, questions=[questions])

        assert (one.question, one.category) == ("Mine?", "law")

    def test_flaw_of_a_companion_file_is_reported_for_that_file(self, tmp_path):
        """The ballots are imported all the same."""
        ballots = write(tmp_path / "b", cast("1", "a"))
        answers = write(
            tmp_path / "a",
            {"session": "1", "text": "whose?"},
            {"session": "1", "model": "x"},
            {"session": "1", "model": "x", "chars": 10**20},
            {"session": "1\0", "model": "x", "text": "whose?"},
        )
        questions = write(tmp_path / "q", {"text": "of what?"}, {"session": "1", "text": 4})
        problems = []

        found = list(
            read_imports(
                ballots, answers=[answers], questions=[questions], on_problem=problems.append
            )
        )

        assert len(found) == 1
        assert [str(problem).removeprefix(f"{tmp_path}/") for problem in problems] == [
            "a:1: field 'candidate' is missing; expected the author of the answer",
            "a:2: field 'text' is missing; expected the answer as text, or its length",
            "a:3: field 'chars' is the number 100000000000000000000; "
            "expected a length from 0 to 2,147,483,647",
            "a:4: field 'session' is '1\\x00'; expected a name without NUL and broken characters",
            "q:1: field 'session' is missing; expected the name of a session",
            "q:2: field 'text' is 4; expected text",
        ]

    def test_lengths_are_read_from_the_table_of_grades(self, tmp_path):
        """The length of an answer is stored without its text."""
        path = tmp_path / "f.csv"
        path.write_text(
            "prompt_id,judge,candidate,score,output_chars\n7,j,x,8,452\n7,j,y,6,\n8,j,x,3,10\n"
        )

        found = {one.session: dict(one.lengths) for one in read_imports(path)}

        assert found == {"7": {"x": 452}, "8": {"x": 10}}


class TestLogs:
    """Logs of other councils contain more than ballots."""

    def test_line_of_a_session_has_answers_and_final_answer(self, tmp_path):
        """A line with unreadable ballots does not affect its neighbours."""
        sheet = {"A": "x", "B": "y"}
        path = write(
            tmp_path / "log",
            {
                "question_id": "g0", "label_to_model": sheet, "rankings": 5,
                "stage1": {"x": "lost"}, "expected": "0",
            },
            {
                "question_id": "g1", "label_to_model": sheet, "rankings": {"x": ["B", "A"]},
                "stage1": {"x": "one", "y": "two"}, "synthesis": "both", "expected": 18,
            },
            {"question_id": "g2", "label_to_model": sheet, "rankings": {"y": ["B", "A"]}},
        )  # fmt: skip
        problems = []

        first, second = read_imports(path, on_problem=problems.append)

        assert [problem.line for problem in problems] == [1]
        assert (first.session, first.closing) == ("g1", "both")
        assert first.answers == {"x": "one", "y": "two"}
        assert first.ballots[0].notes == "expected answer: 18"
        assert (second.session, second.answers, second.ballots[0].notes) == ("g2", {}, None)

    def test_events_give_question_answers_and_final_answer(self, tmp_path):
        """The session was asked at the start of the log."""
        common = {"run_id": "r1"}
        path = write(
            tmp_path / "log",
            {"type": "config", "question": "Why?", "timestamp": NOON.isoformat(), **common},
            {"type": "stage1_response", "model": "x", "response": "one", **common},
            {"type": "stage1_response", "model": "y", "response": "two", **common},
            {
                "type": "stage2_ranking", "model": "x", "parsed_ranking": ["B", "A"],
                "label_mapping": {"A": "x", "B": "y"}, "timestamp": "2026-01-31T13:00:00Z",
                **common,
            },
            {"type": "stage3_synthesis", "model": "y", "response": "both", **common},
        )  # fmt: skip

        [one] = read_imports(path)

        assert (one.session, one.at, one.question, one.closing) == ("r1", NOON, "Why?", "both")
        assert one.answers == {"x": "one", "y": "two"}
        assert one.ballots[0].groups == (("y",), ("x",))


@pytest.mark.parametrize("columns", [{"reviewer": "judge+version"}])
def test_columns_are_named_as_for_ballots(tmp_path, columns):
    """A judge in two versions is two reviewers."""
    path = tmp_path / "f.csv"
    path.write_text("session,judge,version,candidate,grade\ns,j,1,x,8\ns,j,2,x,6\n")

    [one] = read_imports(path, columns=columns)

    assert [ballot.reviewer for ballot in one.ballots] == ["j@1", "j@2"]
