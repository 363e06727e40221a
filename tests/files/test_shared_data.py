"""Real ballots of real councils, where available: every file has the expected counts.

The expected counts are those of the README beside the files.
"""

import gzip
import json
from collections import Counter, defaultdict
from pathlib import Path

import pytest

from witan.errors import BallotFileError
from witan.files.ballots import read_ballots

DATA = Path(__file__).parents[2] / ".." / "shared" / "data"
pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason="the shared data are not on this machine")


def read(name, **options):
    """The ballots of one file and its problems."""
    problems = []
    return list(read_ballots(DATA / name, on_problem=problems.append, **options)), problems


class TestPairs:
    """Five models, and people, judged every ordered pair of answers to 40 questions."""

    def test_no_vote_is_lost(self):
        """4,880 comparisons: 800 by each of five models and 880 by people."""
        cast, problems = read("prd_vicuna80/pairwise.csv")

        models = Counter(one.reviewer for one in cast if one.kind == "model")
        assert problems == []
        assert len(cast) == 4880
        assert models == dict.fromkeys(["bard", "claude", "gpt35", "gpt4", "vicuna-13b"], 800)
        assert sum(one.kind == "human" for one in cast) == 880
        assert len({one.session for one in cast}) == 40
        assert all(one.paired for one in cast)

    def test_people_are_distinct(self):
        """Nobody judges one pair in one order twice."""
        cast, _ = read("prd_vicuna80/pairwise.csv")

        shown = Counter((one.session, one.reviewer, tuple(one.positions)) for one in cast)
        assert max(shown.values()) == 1
        people = {one.reviewer for one in cast if one.kind == "human"}
        assert people == {"human", "human-2", "human-3"}

    def test_order_shown_is_read(self):
        """The first-shown answer is chosen as often as the README states."""
        cast, _ = read("prd_vicuna80/pairwise.csv")

        first = Counter()
        for one in cast:
            if len(one.groups) == 2 and one.positions[one.groups[0][0]] == 1:
                first[one.reviewer] += 1
        shares = {name: first[name] / 800 for name in ("bard", "gpt4", "claude")}
        assert shares == pytest.approx({"bard": 0.79, "gpt4": 0.57, "claude": 0.34}, abs=0.0051)

    @pytest.mark.parametrize("name", ["responses", "questions"])
    def test_other_file_is_refused_with_its_option(self, name):
        """Answers and questions are options of an import."""
        option = "answers" if name == "responses" else name

        with pytest.raises(BallotFileError, match=f"import the ballots with {option}="):
            read(f"prd_vicuna80/{name}.jsonl")

    def test_raw_reviews_are_comparisons(self):
        """Each is a ballot of the study's table, except where gpt35 was asked twice."""
        raw, problems = read("prd_vicuna80/reviews_raw.jsonl.gz")
        tidy, _ = read("prd_vicuna80/pairwise.csv")

        def describe(ballot):
            order = tuple(sorted(ballot.positions, key=ballot.positions.get))
            return ballot.session, ballot.reviewer, order, ballot.groups

        assert (len(raw), problems) == (4080, [])
        known = {describe(ballot) for ballot in tidy}
        other = [ballot.reviewer for ballot in raw if describe(ballot) not in known]
        assert Counter(other) == {"gpt35": 11}


class TestCouncilLogs:
    """Listwise ballots as other councils log them."""

    def test_fifteen_sessions_of_four_reviewers(self):
        """60 ballots in 15 sessions; one ranks three of four."""
        cast, problems = read("governance_listwise/trials.jsonl")

        per_session = Counter(one.session for one in cast)
        assert problems == []
        assert len(cast) == 60
        assert set(per_session.values()) == {4}
        assert len(per_session) == 15
        assert Counter(len(one.groups) for one in cast) == {4: 59, 3: 1}
        assert {"results_test/gsm8k_0", "results_frontier_test/gsm8k_0"} <= set(per_session)

    def test_labels_are_resolved(self):
        """Every ranked name is a model on the roster."""
        cast, _ = read("governance_listwise/trials.jsonl")

        for one in cast:
            assert {c for group in one.groups for c in group} <= set(one.candidates)

    def test_event_log_of_twelve_events_has_four_ballots(self):
        """Each reviewer ranked the three others under separate labels."""
        cast, problems = read("ori_listwise_run/689b624a.jsonl")

        first = {one.reviewer: one.groups[0][0] for one in cast}
        assert problems == []
        assert len(cast) == 4
        assert all(len(one.groups) == 3 and one.reviewer not in one.candidates for one in cast)
        assert first["Grok 4"] == "Claude Opus 4.6"
        assert len({one.session for one in cast}) == 1


class TestGrades:
    """Grades by two judges, one of them in two versions."""

    def test_every_grade_is_read_with_versions_apart(self):
        """29,653 grades of 1,024 tasks; both judges graded 6,133 answers, as they count."""
        cast, problems = read("wildbench/pointwise.csv", columns={"reviewer": "judge+version"})

        judges = defaultdict(set)
        for one in cast:
            for candidate in one.grades:
                judges[one.session, candidate].add(one.reviewer.partition("@")[0])
        assert problems == []
        assert sum(len(one.grades) for one in cast) == 29_653
        assert len({one.session for one in cast}) == 1024
        assert sum(len(both) == 2 for both in judges.values()) == 6133

    def test_repeated_grades_are_reported_once(self):
        """Without the version 8,181 rows repeat a cell: one notice says so, and all are read."""
        cast, problems = read("wildbench/pointwise.csv")

        assert len(problems) == 1
        assert "8,181 rows" in str(problems[0])
        assert sum(len(one.grades) for one in cast) == 29_653 - 8_181

    def test_other_numbers_are_not_grades(self):
        """The length of an answer is a number in the table but not a criterion."""
        cast, _ = read("wildbench/pointwise.csv")

        assert all(isinstance(grade, int) for one in cast for grade in one.grades.values())


def test_raw_reviews_repeat_eighty_pairs():
    """One judge's file repeats 80 comparisons; the others have each once."""
    seen = Counter()
    with gzip.open(DATA / "prd_vicuna80" / "reviews_raw.jsonl.gz", "rt", encoding="utf-8") as file:
        for line in file:
            review = json.loads(line)
            seen[review["judge"], review["prompt_id"], review["first"], review["second"]] += 1

    repeated = [key for key, times in seen.items() if times > 1]
    assert len(repeated) == 80
    assert len({judge for judge, *_ in repeated}) == 1
