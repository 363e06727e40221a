"""Ballots in the logs of other councils."""

import json

import pytest

from witan.core.ballot import Ballot
from witan.files.ballots import read_ballots

SHEET = {"A": "ann", "B": "bo", "C": "cy"}
SESSION = {
    "source": "runs/results_test/pilot.json",
    "question_id": "q_0",
    "label_to_model": SHEET,
    "rankings": {"ann": ["B", "A"], "bo": ["C", "Z", "B"]},
}
EVENTS = [
    {"type": "config", "run_id": "run-1"},
    {
        "type": "stage2_ranking",
        "model": "ann",
        "parsed_ranking": ["Response B", "Response A"],
        "label_mapping": {"Response A": "bo", "Response B": "cy"},
        "is_valid_ballot": True,
        "run_id": "run-1",
        "timestamp": "2026-02-27T20:43:19+00:00",
    },
    {
        "type": "stage2_ranking",
        "model": "bo",
        "parsed_ranking": [],
        "label_mapping": {"Response A": "ann", "Response B": "cy"},
        "is_valid_ballot": False,
        "run_id": "run-1",
    },
]


def read(tmp_path, *lines):
    """Write these lines, read them back: ballots and the problems as text without the folder."""
    path = tmp_path / "log.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    problems = []
    cast = list(read_ballots(path, on_problem=problems.append))
    return cast, [str(problem).removeprefix(f"{tmp_path}/") for problem in problems]


def test_each_line_is_a_session_with_a_ballot_per_reviewer(tmp_path):
    """Labels become models, unknown labels stay, and the source keeps equal ids apart."""
    cast, problems = read(tmp_path, SESSION)

    shared = {
        "session": "results_test/q_0",
        "candidates": ("ann", "bo", "cy"),
        "positions": {"ann": 1, "bo": 2, "cy": 3},
    }
    assert problems == []
    assert cast == [
        Ballot("ann", groups=(("bo",), ("ann",)), **shared),
        Ballot("bo", groups=(("cy",), ("Z",), ("bo",)), **shared),
    ]


def test_event_log_gives_its_ranking_events(tmp_path):
    """Labels are resolved, an invalid ballot abstains, other events are skipped."""
    cast, problems = read(tmp_path, *EVENTS)

    assert problems == []
    assert [(one.reviewer, one.session, one.groups) for one in cast] == [
        ("ann", "run-1", (("cy",), ("bo",))),
        ("bo", "run-1", ()),
    ]
    assert [one.abstained for one in cast] == [False, True]


@pytest.mark.parametrize(
    ("change", "n_read", "said"),
    [
        ({"rankings": {"ann": 3, "bo": ["A"]}}, 1, "field 'rankings.ann' is the number 3"),
        ({"rankings": ["A"]}, 0, "field 'rankings' is not a map"),
        ({"label_to_model": {"A": "x", "B": "x"}}, 0, "field 'label_to_model' names 'x' twice"),
        ({"label_to_model": ["x"]}, 0, "field 'label_to_model' is not a map from label to model"),
        ({"question_id": None}, 0, "field 'question_id' is missing"),
    ],
)
def test_bad_session_is_reported_and_the_others_count(tmp_path, change, n_read, said):
    """A flaw of one reviewer or session does not affect the others."""
    cast, problems = read(tmp_path, SESSION, {**SESSION, **change}, SESSION)

    assert len(cast) == 4 + n_read
    assert len(problems) == 1
    assert problems[0].startswith(f"log.jsonl:2: {said}")
