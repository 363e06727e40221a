"""Reading a file gives the ballots that importing it gives."""

import io
import json
from dataclasses import replace

import pytest

from histories import session_events
from witan.deliberation.record import session_to_json
from witan.deliberation.session import Session
from witan.files.ballots import read_ballots
from witan.files.imports import ballots_with_question, read_imports

BATTLES = (
    '{"question_id": "q", "model_a": "x", "model_b": "y", "winner": "model_a"}\n'
    '{"question_id": "q", "model_a": "x", "model_b": "y", "winner": "tie (bothbad)"}\n'
)
CONVERSATION = {
    "id": "c1",
    "messages": [
        {"role": "user", "content": "Tea?"},
        {
            "role": "assistant",
            "stage1": [{"model": "m", "response": "a"}, {"model": "n", "response": "b"}],
            "stage2": [{"model": "m", "ranking": "FINAL RANKING:\n1. Response B\n2. Response A"}],
        },
    ],
}
IMPORT_KEY = {
    "witan_imported": 1,
    "session": "s1",
    "ballots": [{"reviewer": "r", "ranking": ["a", "b"]}, {"reviewer": "s", "abstained": True}],
}
BALLOT = {"session": "s1", "reviewer": "r", "ranking": ["a", "b"]}


def session_file() -> str:
    return session_to_json(Session.of(session_events("asked")))


FILES = {
    "battles": BATTLES,
    "battles in CSV": "question_id,model_a,model_b,winner\nq,x,y,model_b\nq,x,y,tie\n",
    "a saved conversation": json.dumps(CONVERSATION, indent=1),
    "an imported session": json.dumps(IMPORT_KEY),
    "ballots in an array": json.dumps([BALLOT, BALLOT | {"reviewer": "s"}], indent=2),
    "ballots in UTF-16": json.dumps(BALLOT).encode("utf-16"),
}


def ballots_of(sessions):
    return [ballot for one in sessions for ballot in ballots_with_question(one)]


@pytest.mark.parametrize("held", FILES.values(), ids=FILES)
def test_file_gives_the_ballots_of_its_import(tmp_path, held):
    """A file counted directly has the ballots that it has in a history, with their question."""
    path = tmp_path / "file"
    path.write_bytes(held if isinstance(held, bytes) else held.encode())

    ballots = list(read_ballots(path))

    assert ballots
    assert ballots == ballots_of(read_imports(path))


def test_saved_session_is_read_on_one_line_or_many(tmp_path):
    """The record of a council gives its ballots, marked where scripts sat."""
    line = session_file()
    whole = ballots_of(read_imports(io.BytesIO(line.encode())))
    assert whole
    for form in (line, json.dumps(json.loads(line), indent=2)):
        assert list(read_ballots(io.BytesIO(form.encode()))) == whole

    scripted = session_to_json(Session.of(session_events("asked", simulated=True)))
    marked = list(read_ballots(io.BytesIO(scripted.encode())))
    assert {ballot.notes for ballot in marked} == {"simulated"}
    assert [replace(ballot, notes=None) for ballot in marked] == whole


def test_battles_without_an_id_are_one_session():
    """People without a name are different people, so no vote is lost."""
    rows = "model_a,model_b,winner\nx,y,model_a\nx,y,model_a\ny,x,tie\n"
    ballots = list(read_ballots(io.BytesIO(rows.encode())))

    assert {ballot.session for ballot in ballots} == {""}
    assert [ballot.reviewer for ballot in ballots] == ["human", "human-2", "human-3"]


@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_columns_of_battles_can_be_named(form):
    """The caller may name a column of another name."""
    row = {"task": "q", "model_a": "x", "model_b": "y", "winner": "model_b", "who": "ann"}
    text = json.dumps(row) if form == "jsonl" else f"{','.join(row)}\n{','.join(row.values())}\n"
    columns = {"session": "task", "reviewer": "who"}

    [ballot] = read_ballots(io.BytesIO(text.encode()), columns=columns)

    assert (ballot.session, ballot.reviewer, ballot.groups) == ("q", "ann", (("y",), ("x",)))
