"""Battles as arenas publish them.

The forms of the rows are those of the data set cards of aigrant/tw_chatbot_arena,
lmsys/mt_bench_human_judgments, lmsys/lmsys-arena-human-preference-55k and
lmarena-ai/arena-human-preference-140k; the rows themselves are made up.
"""

import json
from datetime import UTC, datetime

import pytest

from witan import tally
from witan.core.ballot import Ballot
from witan.deliberation.record import SessionImport
from witan.files.exports import write_battles
from witan.files.imports import read_imports


def talk(*turns):
    """A conversation: what the user said and what the model said, in turns."""
    roles = ("user", "assistant") * len(turns)
    return [{"role": role, "content": text} for role, text in zip(roles, turns, strict=False)]


ARENA = {
    "question_id": "58210e39b3fd4441a2bd4a518bb44c2d",
    "model_a": "chatglm-6b",
    "model_b": "koala-13b",
    "winner": "model_b",
    "judge": "arena_user_973",
    "conversation_a": talk("What is OpenCL?", "A library."),
    "conversation_b": talk("What is OpenCL?", "An open standard."),
    "turn": 1,
    "anony": True,
    "language": "English",
    "tstamp": 1682351591.1322,
}


def read(tmp_path, *rows, text=None):
    """The sessions of a file of battles."""
    path = tmp_path / "battles"
    path.write_text("\n".join(map(json.dumps, rows)) if text is None else text, encoding="utf-8")
    return list(read_imports(path))


@pytest.mark.parametrize("kind", ["battles", "csv-pairs"])
def test_pair_judged_again_is_reported(tmp_path, kind):
    """There is one notice per file, with the rows and the number of contradictions."""
    names = {"battles": "question_id,judge,model_a,model_b,winner"}
    rows = [names.get(kind, "session,reviewer,first,second,outcome")]
    rows += ["q,gpt,x,y,x", "q,gpt,y,x,x", "q,gpt,x,y,x", "q,gpt,x,y,tie", "q,human,x,y,x"]
    rows += ["q,human,x,y,x"] if kind == "battles" else []
    path = tmp_path / "f.csv"
    path.write_text("\n".join(rows), encoding="utf-8")
    problems = []

    [one] = read_imports(path, format=kind, on_problem=problems.append)

    assert len(one.ballots) == len(rows) - 1
    [told] = problems
    assert (told.line, told.is_read) == (4, True)
    assert all(fact in told.problem for fact in ("2 rows in the file", "the last row of each"))


def test_battle_is_a_session_with_one_ballot_by_a_person(tmp_path):
    """Question, answers, order shown and time are the row's."""
    [one] = read(tmp_path, ARENA)
    [ballot] = one.ballots

    assert one.session == ARENA["question_id"]
    assert one.at == datetime(2023, 4, 24, 15, 53, 11, 132200, tzinfo=UTC)
    assert one.question == "What is OpenCL?"
    assert one.answers == {"chatglm-6b": "A library.", "koala-13b": "An open standard."}
    assert (ballot.reviewer, ballot.kind, ballot.paired) == ("arena_user_973", "human", True)
    assert ballot.groups == (("koala-13b",), ("chatglm-6b",))
    assert ballot.positions == {"chatglm-6b": 1, "koala-13b": 2}
    assert ballot.at == one.at


@pytest.mark.parametrize(
    ("winner", "groups", "notes"),
    [
        ("model_a", (("x",), ("y",)), None),
        ("y", (("y",), ("x",)), None),
        ("tie", (("x", "y"),), None),
        ("tie (bothbad)", (("x", "y"),), "both bad"),
        ("both_bad", (("x", "y"),), "both bad"),
    ],
)
def test_winner_is_read_in_the_words_of_every_release(tmp_path, winner, groups, notes):
    """A tie between bad answers is a tie, with a note."""
    [one] = read(tmp_path, {"id": "b1", "model_a": "x", "model_b": "y", "winner": winner})

    assert (one.ballots[0].groups, one.ballots[0].notes) == (groups, notes)


@pytest.mark.parametrize(
    ("judge", "kind"),
    [
        (None, "human"),
        ("arena_user_12", "human"),
        ("expert_7", "human"),
        ("author_0", "human"),
        (4711, "human"),
        ("2a3f5b7c-90aa", "human"),
        ("gpt4_pair", "model"),
        (["gpt-4", "pair-v2"], "model"),
        ("gpt-4-1106-preview", "model"),
    ],
)
def test_people_have_the_names_of_arenas(tmp_path, judge, kind):
    """Any other name is a model; judge_kind overrides this."""
    row = {"id": "b1", "model_a": "x", "model_b": "y", "winner": "tie", "judge": judge}

    [one] = read(tmp_path, row)
    [said] = read(tmp_path, row | {"judge_kind": "llm"})

    assert (one.ballots[0].kind, said.ballots[0].kind) == (kind, "model")


def test_vote_that_was_not_blind_has_no_weight(tmp_path):
    """It is stored, but does not count for either side."""
    [one] = read(tmp_path, ARENA | {"anony": False})
    [ballot] = one.ballots

    assert ballot.weight == 0.0
    assert "knew whose answers" in ballot.notes
    assert [standing.votes for standing in tally(one.ballots).standings] == [0, 0]


def test_judgements_of_one_question_are_one_session_per_turn(tmp_path):
    """A judgement of an earlier turn has the conversation up to that turn."""
    said = {
        "conversation_a": talk("Q1", "a1", "Q2", "a2"),
        "conversation_b": talk("Q1", "b1", "Q2", "b2"),
    }
    row = {"question_id": 81, "model_a": "x", "model_b": "y", "winner": "model_a", **said}

    first, second = read(
        tmp_path,
        row | {"judge": "expert_1", "turn": 1},
        row | {"judge": "expert_1", "turn": 2},
        row | {"judge": "author_2", "turn": 2},
    )

    assert (first.session, len(first.ballots)) == ("81/turn-1", 1)
    assert first.answers == {"x": "a1", "y": "b1"}
    assert (second.session, len(second.ballots)) == ("81", 2)
    assert second.answers == {"x": "a1\n\na2", "y": "b1\n\nb2"}
    assert first.question == second.question == "Q1"


def test_people_without_a_name_are_distinct(tmp_path):
    """Every vote counts if several people judge one pair."""
    row = {"question_id": "q", "model_a": "x", "model_b": "y", "winner": "tie"}
    turned = row | {"model_a": "y", "model_b": "x"}

    [one] = read(tmp_path, row, turned, row)

    assert [ballot.reviewer for ballot in one.ballots] == ["human", "human-2", "human-3"]


def test_ranking_by_human_stays_that_of_one_person(tmp_path):
    """Its pairs, exported and imported again, are not votes of several people."""
    vote = Ballot("human", (("x",), ("y",), ("z",)), session="q", kind="human")
    path = tmp_path / "battles.jsonl"
    write_battles([SessionImport(session="q", ballots=(vote,))], path)

    [one] = read_imports(path)

    assert [(b.reviewer, b.candidate_names()) for b in one.ballots] == [
        ("human", ("x", "y")),
        ("human", ("x", "z")),
        ("human", ("y", "z")),
    ]


def test_two_people_who_differ_are_two_votes(tmp_path):
    """Opposite orders and opposite views of one pair are not one undecided person."""
    row = {"question_id": "q", "model_a": "x", "model_b": "y", "winner": "model_a"}
    turned = {"question_id": "q", "model_a": "y", "model_b": "x", "winner": "model_a"}

    [one] = read(tmp_path, row, turned, row | {"judge": "human-2"})

    assert [(ballot.reviewer, ballot.groups) for ballot in one.ballots] == [
        ("human", (("x",), ("y",))),
        ("human-3", (("y",), ("x",))),
        ("human-2", (("x",), ("y",))),
    ]


@pytest.mark.parametrize("field", ["tstamp", "at"])
@pytest.mark.parametrize("when", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"])
def test_time_out_of_range_in_some_time_zone_is_refused(tmp_path, field, when):
    """Lists could not show it in every zone."""
    problems = []
    row = {"question_id": "q", "model_a": "x", "model_b": "y", "winner": "tie", field: when}
    path = tmp_path / "battles"
    path.write_text(json.dumps(row), encoding="utf-8")

    assert list(read_imports(path, on_problem=problems.append)) == []

    assert "the years 1 to 9999" in problems[0].sentence


def test_table_with_a_column_per_outcome_is_read(tmp_path):
    """Prompts and replies are JSON lists in its cells."""
    head = (
        "id,model_a,model_b,prompt,response_a,response_b,winner_model_a,winner_model_b,winner_tie"
    )
    cells = '30192,x,y,"[""Why?"", ""And?""]","[""a1"", ""a2""]","[""b1"", null]",0,1,0'

    [one] = read(tmp_path, text=f"{head}\n{cells}\n")

    assert (one.session, one.question) == ("30192", "Why?")
    assert one.answers == {"x": "a1\n\na2", "y": "b1"}
    assert one.ballots[0].groups == (("y",), ("x",))


def test_content_in_parts_and_times_as_text_are_read(tmp_path):
    """Later releases write content as a list of parts, and mark code."""
    parts = [{"role": "user", "content": [{"type": "text", "text": "Sort it"}]}]
    reply = [{"role": "assistant", "content": [{"type": "text", "text": "sorted(it)"}]}]

    [one] = read(
        tmp_path,
        {
            "id": "v1", "model_a": "x", "model_b": "y", "winner": "model_a", "is_code": True,
            "conversation_a": parts + reply, "conversation_b": json.dumps(parts),
            "timestamp": "2025-07-17 15:50:09.510",
        },
    )  # fmt: skip

    assert one.at == datetime(2025, 7, 17, 15, 50, 9, 510000, tzinfo=UTC)
    assert (one.question, one.category) == ("Sort it", "coding")
    assert one.answers == {"x": "sorted(it)"}


def test_comparisons_as_lines_are_battles_with_a_numbered_outcome(tmp_path):
    """1 is the first shown, 2 the second, 3 a tie; the raw review is stored as a note."""
    row = {"prompt_id": 1, "judge": "bard", "first": "bard", "second": "claude", "text": "Because."}

    [one] = read(tmp_path, *(row | {"score": score} for score in (1, 2, 3)))

    assert [ballot.groups for ballot in one.ballots] == [
        (("bard",), ("claude",)),
        (("claude",), ("bard",)),
        (("bard", "claude"),),
    ]
    assert {(b.reviewer, b.kind, b.notes) for b in one.ballots} == {("bard", "model", "Because.")}


def test_battles_without_an_id_are_named_by_file_and_line(tmp_path):
    """Each stays a separate session."""
    row = {"model_a": "x", "model_b": "y", "winner": "tie"}

    assert [one.session for one in read(tmp_path, row, row)] == ["battles/1", "battles/2"]
