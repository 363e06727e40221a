"""Saved conversations of the web app karpathy/llm-council.

Their form is that of its guide to conversation storage and of the CLAUDE.md of its first commit,
eb0eb26f; the texts are made up.
"""

import json
from datetime import UTC, datetime

import pytest

from witan.core.ballot import Ballot
from witan.files.imports import read_imports

REPLY = "Response B is thorough.\n\nFINAL RANKING:\n1. Response B\n2. Response C\n3. Response A"
STAGE1 = [
    {"model": "openai/gpt-5.1", "response": "First."},
    {"model": "google/gemini-3-pro-preview", "response": "Second."},
    {"model": "x-ai/grok-4", "response": "Third."},
]


def conversation(*turns, **fields):
    """A conversation with these reviews, a question per turn."""
    messages = []
    for k, reviews in enumerate(turns, start=1):
        messages.append({"role": "user", "content": f"Question {k}?"})
        closing = {"model": "google/gemini-3-pro-preview", "response": f"Closing {k}."}
        messages.append(
            {"role": "assistant", "stage1": STAGE1, "stage2": reviews, "stage3": closing}
        )
    began = {"id": "3f8a1b2c", "created_at": "2025-11-23T10:30:00.123456", "title": "T"}
    return {**began, "messages": messages, **fields}


def review(reply, *parsed, model="openai/gpt-5.1"):
    """A review as the app stores it."""
    labels = [f"Response {label}" for label in parsed]
    return {"model": model, "ranking": reply, "parsed_ranking": labels}


def read(tmp_path, *records, **options):
    """The sessions of a file of conversations, one a line unless there is one alone."""
    text = (
        json.dumps(records[0], indent=2)
        if len(records) == 1
        else "\n".join(map(json.dumps, records))
    )
    path = tmp_path / "3f8a1b2c.json"
    path.write_text(text, encoding="utf-8")
    return list(read_imports(path, **options))


def test_question_is_a_session_with_answers_ballots_and_final_answer(tmp_path):
    """Labels are in the order of stage1, and the ballot says so."""
    [one] = read(tmp_path, conversation([review(REPLY, "B", "C", "A")]))

    names = tuple(answer["model"] for answer in STAGE1)
    at = datetime(2025, 11, 23, 10, 30, 0, 123456, tzinfo=UTC)
    assert (one.session, one.at, one.question) == ("3f8a1b2c", at, "Question 1?")
    assert one.answers == dict(zip(names, ("First.", "Second.", "Third."), strict=True))
    assert one.closing == "Closing 1."
    assert one.ballots == (
        Ballot(
            "openai/gpt-5.1",
            groups=((names[1],), (names[2],), (names[0],)),
            session="3f8a1b2c",
            candidates=names,
            positions={names[0]: 1, names[1]: 2, names[2]: 3},
            at=at,
            notes="the file does not map labels to models; using the order of stage1",
        ),
    )


def test_stored_labels_are_used(tmp_path):
    """If a fork of the app stores label_to_model, its order is the order of the sheet."""
    labels = {
        "Response A": "x-ai/grok-4",
        "Response B": "openai/gpt-5.1",
        "Response C": "google/gemini-3-pro-preview",
    }
    held = conversation([review(REPLY, "B", "C", "A")])
    held["messages"][1]["metadata"] = {"label_to_model": labels}

    [one] = read(tmp_path, held)

    [ballot] = one.ballots
    assert ballot.groups == (
        ("openai/gpt-5.1",),
        ("google/gemini-3-pro-preview",),
        ("x-ai/grok-4",),
    )
    assert ballot.positions["x-ai/grok-4"] == 1
    assert ballot.notes is None


def test_later_questions_are_separate_sessions(tmp_path):
    """They are numbered, with the time of the conversation."""
    first, second = read(tmp_path, conversation([review(REPLY, "B")], [review(REPLY, "B")]))

    assert (first.session, second.session) == ("3f8a1b2c", "3f8a1b2c/2")
    assert (second.question, second.closing) == ("Question 2?", "Closing 2.")
    assert second.ballots[0].session == "3f8a1b2c/2"
    assert first.at == second.at


def test_labels_in_prose_are_not_a_ballot(tmp_path):
    """The app reads them as a ranking; here the reviewer abstains."""
    prose = "I would hesitate between Response C and Response A; Response B is off the point."

    [one] = read(tmp_path, conversation([review(prose, "C", "A", "B")]))

    [ballot] = one.ballots
    assert ballot.abstained
    assert ballot.reason == "has no usable ranking"
    assert ballot.groups == ()


def test_review_with_labels_only_is_a_ballot(tmp_path):
    """Without the reply, the stored labels count."""
    kept = {"model": "x-ai/grok-4", "parsed_ranking": ["Response B", "Response A"]}

    [one] = read(tmp_path, conversation([kept, {"model": "openai/gpt-5.1"}]))

    ranked, silent = one.ballots
    assert ranked.groups == (("google/gemini-3-pro-preview",), ("openai/gpt-5.1",))
    assert (silent.abstained, silent.reason) == (True, "the file contains no ranking")


@pytest.mark.parametrize(
    ("parsed", "reason"),
    [
        (["Response A", "Response Z"], "ranks Response Z, which is not the label of an answer"),
        (["Response A", "Response A"], "ranks Response A more than once"),
    ],
)
def test_invalid_labels_are_an_abstention(tmp_path, parsed, reason):
    """Models without an answer, and repeated ones, are not candidates."""
    kept = {"model": "x-ai/grok-4", "parsed_ranking": parsed}

    [one] = read(tmp_path, conversation([kept]))

    [ballot] = one.ballots
    assert (ballot.abstained, ballot.reason, ballot.groups) == (True, reason, ())


def test_second_label_of_a_model_is_its_next_answer(tmp_path):
    """A fork names the model of each label."""
    held = conversation([review(REPLY, "B", "C", "A")])
    held["messages"][1]["stage1"] = [STAGE1[0], STAGE1[1], {**STAGE1[0], "response": "Again."}]
    models = ["openai/gpt-5.1", "google/gemini-3-pro-preview", "openai/gpt-5.1"]
    labels = {f"Response {label}": model for label, model in zip("ABC", models, strict=True)}
    held["messages"][1]["metadata"] = {"label_to_model": labels}

    [one] = read(tmp_path, held)

    assert one.ballots[0].groups == (
        ("google/gemini-3-pro-preview",),
        ("openai/gpt-5.1#2",),
        ("openai/gpt-5.1",),
    )


def test_repeated_model_is_two_candidates_of_one_author(tmp_path):
    """Neither answer is lost."""
    held = conversation([review(REPLY, "B", "C", "A")])
    held["messages"][1]["stage1"] = [STAGE1[0], STAGE1[1], {**STAGE1[0], "response": "Again."}]

    [one] = read(tmp_path, held)

    assert one.answers["openai/gpt-5.1#2"] == "Again."
    assert one.ballots[0].authors == {"openai/gpt-5.1#2": "openai/gpt-5.1"}


def test_unreadable_turn_is_reported_and_the_rest_is_imported(tmp_path):
    """A turn in which every model failed, a damaged one, and a file of another kind."""
    held = conversation([review(REPLY, "B", "C", "A")], [], [review(REPLY, "B", "C", "A")])
    held["messages"][1]["stage1"] = []
    held["messages"][3]["stage1"] = [{"model": "x-ai/grok-4"}]
    problems = []

    found = read(tmp_path, held, {"id": "c2", "messages": []}, on_problem=problems.append)

    assert [one.session for one in found] == ["3f8a1b2c/3"]
    assert [f"{problem.line}: {problem.sentence}" for problem in problems] == [
        "1: field 'messages[1].stage1' contains no answers, so there is nothing to review",
        "1: field 'messages[3].stage1[0]' is not an answer; expected an object with model and "
        "response",
        "2: field 'messages' contains no message with stage1; expected a council's answers",
    ]


@pytest.mark.parametrize("value", ["yesterday", "2025-13-01T00:00:00", "0001-01-01T00:00:00+14:00"])
def test_invalid_time_is_reported(tmp_path, value):
    """The conversation is left out rather than dated wrongly."""
    problems = []

    assert read(tmp_path, conversation([], created_at=value), on_problem=problems.append) == []

    assert problems[0].field == "created_at"
