"""The test server plays a council well, and misbehaves as configured."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from faults import FAULTS, Manner, Received
from good_replies import ChatRequest, good_reply, worth_of
from witan.core.blinding import Sheet, draw_sheets
from witan.core.rubric import RUBRICS
from witan.deliberation.ballots import Review, read_review
from witan.deliberation.prompts import (
    answer_messages,
    repair_messages,
    review_messages,
    review_schema,
    synthesis_messages,
)
from witan.errors import InvalidBallot

WORTH = {"gold": 9, "silver": 7, "tin": 7, "lead": 2}
ANSWERS = {name: f"An answer worth {worth} of 10." for name, worth in WORTH.items()}
RUBRIC = RUBRICS["general"]


def sheet() -> Sheet:
    """What a reviewer without an answer of its own sees."""
    return draw_sheets(["judge"], list(ANSWERS), [7], hidden_candidates={})["judge"]


def request(stage: str, *, verdict: bool = False, schema: bool = True) -> dict[str, Any]:
    """The body of a request in a stage of a council."""
    seen = {"conversation": (), "files": {}, "system": None}
    shown = {"question": "Why?", "sheet": sheet(), "answers": ANSWERS}
    if stage == "answer":
        messages = answer_messages("Why?", verdict=verdict, nonce="0", **seen)
    elif stage == "synthesis":
        mode = "verdict" if verdict else "consensus"
        messages = synthesis_messages(**shown, **seen, outcome=None, mode=mode, votes={})
    else:
        messages = review_messages(**shown, **seen, rubric=RUBRIC, holistic=False)
    if stage == "repair":
        messages = repair_messages(messages, "No.", "is no ballot")
    body: dict[str, Any] = {
        "model": "gold",
        "messages": [{"role": said.role, "content": said.text} for said in messages],
    }
    if stage in ("answer", "synthesis"):
        body["stream"] = True
    elif schema:
        wanted = {"schema": review_schema(sheet(), RUBRIC, holistic=False)}
        body["response_format"] = {"type": "json_schema", "json_schema": wanted}
    return body


def spoilt(fault: str, **given: Any) -> str:
    """The review of a model with this fault."""
    asked = ChatRequest(request("review"))
    received = Received("POST", "/v1/chat/completions", {}, asked.body, 0.0)
    return FAULTS[fault](Manner(good_reply(asked, WORTH)), received, **given).text or ""


def read(reply: str) -> Review:
    """The ballot in a reply."""
    return read_review(
        reply, sheet(), rubric=RUBRIC, holistic=False, session="q", roster=list(ANSWERS)
    )


@pytest.mark.parametrize("stage", ["answer", "review", "repair", "synthesis"])
def test_every_stage_is_recognised_by_its_prompt(stage):
    assert ChatRequest(request(stage)).stage == stage


@pytest.mark.parametrize("stage", ["review", "repair"])
@pytest.mark.parametrize("schema", [True, False])
def test_a_good_review_follows_the_schema(stage, schema):
    """It ranks by the stated worth of answers, with equal ones in one group."""
    review = read(good_reply(ChatRequest(request(stage, schema=schema)), WORTH))

    assert review.read_by == "schema"
    assert [sorted(group) for group in review.ballot.groups] == [
        ["gold"],
        ["silver", "tin"],
        ["lead"],
    ]
    assert review.ballot.grades["lead"] == dict.fromkeys((c.name for c in RUBRIC.criteria), 2)


@pytest.mark.parametrize("stage", ["answer", "synthesis"])
def test_a_verdict_is_given_only_in_verdict_mode(stage):
    """Answers and final answers end with one."""
    plain, verdict = (
        good_reply(ChatRequest(request(stage, verdict=asked)), WORTH) for asked in (False, True)
    )

    assert verdict == f"{plain}\nVERDICT: APPROVE"


def test_the_worth_of_an_unknown_model_depends_on_its_name():
    """It is between 3 and 9."""
    assert {worth_of(f"model {k}") for k in range(100)} == set(range(3, 10))


@pytest.mark.parametrize(
    "fault",
    ["duplicate labels", "unknown labels", "lower-case labels", "long labels", "string grades"],
)
def test_a_spoilt_review_is_still_a_ballot(fault):
    """Labels in other forms and grades as text deviate from the schema, but can be read."""
    review = read(spoilt(fault))

    assert review.read_by == "tolerant"
    assert review.ballot.groups[0] == ("gold",)


@pytest.mark.parametrize("fault", ["prose", "wrong schema", "bare labels", "empty", "null"])
def test_prose_and_other_objects_are_not_ballots(fault):
    with pytest.raises(InvalidBallot):
        read(spoilt(fault))


def test_grades_become_text():
    """Every whole number of a review is written as a text out of ten."""
    grades: Mapping[str, Mapping[str, str]] = json.loads(spoilt("string grades"))["grades"]

    assert all(value.endswith("/10") for given in grades.values() for value in given.values())
