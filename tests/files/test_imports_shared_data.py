"""Real votes, where available: every file is imported whole, with the counts of its README."""

from collections import Counter
from pathlib import Path

import pytest

from witan.files.imports import read_imports

DATA = Path(__file__).parents[2] / ".." / "shared" / "data"
PRD = DATA / "prd_vicuna80"
pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason="the shared data are not on this machine")


def read(path, told=None, **options):
    """The sessions of a file with at most the expected problem."""
    problems = []
    found = list(read_imports(path, on_problem=problems.append, **options))
    assert [problem.problem for problem in problems if problem.is_read] == (
        [] if told is None else [told]
    )
    assert [problem for problem in problems if not problem.is_read] == []
    return found


def kinds(sessions):
    """Ballots by kind."""
    return Counter(ballot.kind for one in sessions for ballot in one.ballots)


def test_council_is_imported_with_questions_and_answers():
    """40 sessions, 4,000 ballots by models and 880 by people, categories, texts and lengths."""
    sessions = read(
        PRD / "pairwise.csv", answers=[PRD / "responses.jsonl"], questions=[PRD / "questions.jsonl"]
    )

    assert len(sessions) == 40
    assert kinds(sessions) == {"model": 4000, "human": 880}
    assert all(one.question and one.category for one in sessions)
    assert all(len(one.answers) == 5 and all(one.answers.values()) for one in sessions)


def test_raw_reviews_are_imported_as_comparisons():
    """4,080 reviews, 13 of them without a text; 80 pairs of one judge occur twice."""
    again = (
        "compares a pair in the same order again (80 rows in the file, 11 of them with another "
        "outcome; this is the first); the last row of each counts"
    )
    sessions = read(PRD / "reviews_raw.jsonl.gz", again, session_prefix="raw/")

    ballots = [ballot for one in sessions for ballot in one.ballots]
    shown = Counter((b.session, b.reviewer, tuple(b.positions)) for b in ballots)
    assert (len(sessions), len(ballots)) == (40, 4080)
    assert sum(ballot.notes is not None for ballot in ballots) == 4080 - 13
    assert Counter(shown.values()) == {1: 3920, 2: 80}


def test_fifteen_questions_are_imported_with_expected_answers():
    """60 ballots in 15 sessions with four answers and a final answer each."""
    sessions = read(DATA / "governance_listwise" / "trials.jsonl")

    assert len(sessions) == 15
    assert kinds(sessions) == {"model": 60}
    assert all(len(one.answers) == 4 and one.closing for one in sessions)
    assert all(b.notes.startswith("expected answer: ") for one in sessions for b in one.ballots)


def test_log_of_events_is_one_session():
    """Four answers, four ballots, the question and the final answer of one council."""
    [one] = read(DATA / "ori_listwise_run" / "689b624a.jsonl")

    assert list(one.answers) == ["Claude Opus 4.6", "GPT-5.3-Codex", "Gemini-3.1-Pro", "Grok 4"]
    assert len(one.ballots) == 4
    assert one.question
    assert one.closing
    assert one.at.isoformat() == "2026-02-27T20:41:21.785784+00:00"


def test_grades_are_imported_with_lengths():
    """29,653 grades of 1,024 tasks; the length of each of the 15,339 answers graded."""
    sessions = read(DATA / "wildbench" / "pointwise.csv", columns={"reviewer": "judge+version"})

    assert len(sessions) == 1024
    assert sum(len(ballot.grades) for one in sessions for ballot in one.ballots) == 29_653
    assert sum(len(one.lengths) for one in sessions) == 15_339
    assert all(set(ballot.grades) <= set(one.lengths) for one in sessions for ballot in one.ballots)
