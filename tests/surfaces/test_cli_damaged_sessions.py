"""A session file that was edited, or a stored session that is damaged: a sentence, no traceback."""

import json
import shlex
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from histories import session_events
from recorded import keep
from scripts import write_council, write_jury, write_rows
from witan.deliberation.events import AnswerDone
from witan.deliberation.record import event_from_json
from witan.history import History

DAMAGED = "; the session is damaged, or was written by a later version of Witan"


pytestmark = pytest.mark.usefixtures("place")


def _set(kind: str, path: str, value: Any) -> Callable[[dict[str, Any]], None]:
    """Return an edit of a field of the first event of a kind."""

    def edit(record: dict[str, Any]) -> None:
        held = next(event for event in record["events"] if event["event"] == kind)
        *parents, last = path.split(".")
        for name in parents:
            held = held[int(name) if name.isdigit() else name]
        held[int(last) if last.isdigit() else last] = value

    return edit


EDITS = {
    "a label of nobody": (
        _set("synthesis_done", "labels", {"A": "cedr"}),
        "refers to the unknown seat cedr" + DAMAGED,
    ),
    "a start by nobody": (
        _set("synthesis_started", "chairman", "cedr"),
        "refers to the unknown seat cedr" + DAMAGED,
    ),
    "a final answer of nobody": (
        _set("synthesis_done", "chairman", "cedr"),
        "refers to the unknown seat cedr" + DAMAGED,
    ),
    "a standing of nobody": (
        _set("outcome_changed", "outcome.standings.0.candidate", "cedr"),
        "refers to the unknown seat cedr" + DAMAGED,
    ),
    "no matrix": (
        _set("outcome_changed", "outcome.p_beats", []),
        "contains an outcome with a matrix that does not fit its standings" + DAMAGED,
    ),
    "a short row": (
        _set("outcome_changed", "outcome.p_beats.0", [None]),
        "contains an outcome with a matrix that does not fit its standings" + DAMAGED,
    ),
    "an infinite chance": (
        _set("outcome_changed", "outcome.p_beats.0.1", float("inf")),
        "outcome.p_beats[0][1] is the number inf; expected a finite number",
    ),
    "an infinite time": (
        _set("answer_done", "spent.seconds", float("inf")),
        "spent.seconds is the number inf; expected a finite number",
    ),
    "a negative cost": (
        _set("answer_done", "spent.cost_usd", -5),
        "spent.cost_usd is the number -5; expected a number, 0 or more",
    ),
    "negative calls": (
        _set("answer_done", "spent.calls", -5),
        "spent.calls is the number -5; expected a whole number, 0 or more",
    ),
    "a negative reservation": (
        _set("review_started", "worst_usd", -1),
        "worst_usd is the number -1; expected a number, 0 or more",
    ),
    "a round that was never held": (
        _set("answer_done", "round", 7),
        "belongs to round 7 of 1" + DAMAGED,
    ),
    "a round before the first": (
        _set("answer_done", "round", -1),
        "round is the number -1; expected a whole number, 1 or more",
    ),
    "an empty answer": (
        _set("answer_done", "text", ""),
        "text is the text ''; expected text that is not blank",
    ),
    "a grade that is none": (
        _set("ballot_cast", "ballot.grades.bob", "zzz"),
        "contains a ballot with an invalid grade of bob" + DAMAGED,
    ),
    "an infinite grade": (
        _set("ballot_cast", "ballot.grades.bob", float("inf")),
        "is the number inf; expected a finite number",
    ),
}


@pytest.mark.parametrize(("edit", "problem"), EDITS.values(), ids=EDITS)
def test_a_file_that_was_edited_is_refused(witan, place, tmp_path, edit, problem):
    """What no council records is named as the file is read; nothing is shown, stored or called."""
    file = tmp_path / "told.json"
    witan("ask", "Is it so?", *write_council(tmp_path), "--no-history", "--save", file)
    record = json.loads(file.read_text(encoding="utf-8"))
    edit(record)
    file.write_text(json.dumps(record), encoding="utf-8")

    for command in (["show", file], ["import", file], ["resume", file, "--no-history", "--trust"]):
        said = witan(*command)
        assert problem in " ".join((said.out + said.err).split())
        assert said.status != 0
        assert "Traceback" not in said.err
    assert not place.exists()


def test_a_damaged_session_of_a_history_is_named(witan, place, tmp_path):
    """A session that an earlier version imported damaged is refused when it is read."""
    file = tmp_path / "told.json"
    witan("ask", "Is it so?", *write_council(tmp_path), "--no-history", "--save", file)
    record = json.loads(file.read_text(encoding="utf-8"))
    _set("synthesis_done", "labels", {"A": "cedr"})(record)
    keep(place, [event_from_json(json.dumps(event)) for event in record["events"]])

    said = witan("show", "last")
    doctor = witan("doctor", "--offline")

    problem = "refers to the unknown seat cedr in the session"
    assert (said.status, said.out) == (2, "")
    assert problem in " ".join(said.err.split())
    assert "Traceback" not in said.err
    assert "run witan doctor, which makes a copy" in " ".join(said.err.split())
    assert doctor.status != 0
    assert f"{problem} {record['session']}; it is unchanged, with a copy at" in doctor.out


def test_a_leaderboard_leaves_out_a_damaged_session(witan, place):
    """The others are counted and ranked; the damaged one is named, and the exit status tells."""
    keep(place, session_events("s1"), session_events("s2"))
    answered = next(event for event in session_events("s3") if isinstance(event, AnswerDone))
    damaged = [replace(x, round=7) if x == answered else x for x in session_events("s3")]
    keep(place, damaged)

    for _ in range(2):
        said = witan("leaderboard", "--rule", "schulze", "--min-sessions", 1, "--json")

        assert said.status == 1
        assert said.json["n_damaged"] == 1
        assert {line["sessions"] for line in said.json["lines"]} == {2}
        assert "damaged, not counted: 1 session: s3; witan show says why" in said.err
    assert witan("leaderboard", "--min-sessions", 1, "--json").status == 0


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ('{"reviewer": 5', "Expecting ',' delimiter"),
        ('{"reviewer": 5}', "reviewer is the number 5; expected a name as text"),
        ("[]", "its record is a list; expected a map"),
        ("[" * 100_000, "its record is nested too deeply"),
    ],
    ids=["no JSON", "no name", "no map", "deep"],
)
def test_a_damaged_ballot_of_an_imported_session_is_named(witan, place, tmp_path, body, reason):
    """It is refused when it is read or imported again, not exported, and found by doctor."""
    file, again = tmp_path / "ballots.jsonl", tmp_path / "again.jsonl"
    cast = [{"session": name, "reviewer": "ada", "ranking": ["b", "c"]} for name in ("s1", "s2")]
    file.write_text("".join(f"{json.dumps(each)}\n" for each in cast), encoding="utf-8")
    again.write_text(f"{file.read_text(encoding='utf-8')}\n", encoding="utf-8")
    witan("import", file)
    with History.open(place) as history:
        sql = "UPDATE ballots SET body = :body WHERE session = 's1'"
        history.database.execute(sql, {"body": body})

    shown = witan("show", "s1")
    exported = witan("export", "--kind", "ballots", "--all")
    doctor = witan("doctor", "--offline")
    imported = witan("import", again)

    problem = f"a ballot of the session s1 cannot be read: {reason}"
    assert (shown.status, shown.out) == (2, "")
    assert problem in " ".join(shown.err.split())
    assert "Traceback" not in shown.err
    assert '"session": "s2"' in exported.out
    assert "damaged, not exported: 1 session: s1" in exported.err
    assert problem in doctor.out
    assert (imported.status, imported.out) == (2, "")
    assert "the session s1 is in the history" in imported.err
    assert "with other ballots" in imported.err


class TestBatch:
    """A batch continues around a damaged session, and is not complete."""

    @pytest.fixture
    def command(self, tmp_path):
        """A batch of six texts, each with a person's vote."""
        rows = [
            {"id": f"r{n}", "question": f"Why {n}?", "text": f"moraine {n}", "votes": [4 + n]}
            for n in range(6)
        ]
        jury = [option for seat in write_jury(tmp_path) for option in ("--jury", seat)]
        return ["batch", write_rows(tmp_path / "rows.jsonl", rows[:5]), *jury, "--pass-mark", 6]

    def damage(self, place, table: str, session: str) -> None:
        """Cut the stored texts of a session."""
        with History.open(place) as history:
            sql = f"UPDATE {table} SET body = '{{' WHERE session = :session"  # noqa: S608 - own names
            history.database.execute(sql, {"session": session})

    def test_a_damaged_row_is_reported_and_the_others_continue(self, witan, place, command):
        """Its error names the session and the command that deletes it; then it runs again."""
        first = {row["id"]: row for row in map(json.loads, witan(*command).out.splitlines())}
        damaged = first["r1"]["session"]
        self.damage(place, "events", damaged)
        rows = command[1].read_text(encoding="utf-8")
        more = json.dumps({"id": "r9", "question": "Why 9?", "text": "glacier"})
        command[1].write_text(f"{rows}{more}\n", encoding="utf-8")

        plan = witan(*command, "--dry-run")
        again = witan(*command)
        results = {row["id"]: row for row in map(json.loads, again.out.splitlines())}

        assert plan.status == 0
        assert "1 row cannot run: its session is damaged" in " ".join(plan.out.split())
        assert again.status == 3
        assert "5 of 6 rows complete" in again.err
        assert [name for name, row in results.items() if row["status"] != "complete"] == ["r1"]
        error = results["r1"]["error"]
        assert f"event 1 of the session {damaged}" in error
        forget = shlex.split(error.partition("delete it with witan ")[2].partition(", then ")[0])
        assert witan(*forget).status == 0
        whole = witan(*command)
        assert (whole.status, "6 of 6 rows complete" in whole.err) == (0, True)

    def test_damaged_ballots_are_left_out_of_the_correction(self, witan, place, command):
        """The row keeps its verdict; a note and the exit status report the missing votes."""
        first = [json.loads(line) for line in witan(*command).out.splitlines()]
        self.damage(place, "ballots", first[1]["session"])

        again = witan(*command)

        assert again.status == 3
        assert "5 of 5 rows complete" in again.err
        assert "1 row left out of the correction by people's votes" in again.err

    def test_damaged_sessions_of_arms_are_reported(self, witan, place, tmp_path):
        """Each row shows the error of its own stage."""
        rows = write_rows(tmp_path / "q.jsonl", [{"question": f"Why {n}?"} for n in range(3)])
        judges = [option for seat in write_jury(tmp_path) for option in ("--judge", seat)]
        command = ["batch", rows, *write_council(tmp_path), "--arms", "council,best", *judges]
        command += ["--best", "ada"]
        first = [json.loads(line) for line in witan(*command).out.splitlines()]
        self.damage(place, "events", first[0]["session"])
        self.damage(place, "events", first[1]["judgment"])

        plan = witan(*command, "--dry-run")
        again = witan(*command)
        results = [json.loads(line) for line in again.out.splitlines()]
        errors = {row["row"]: row["error"] for row in results}

        assert (plan.status, again.status) == (0, 3)
        assert first[0]["session"] in errors[first[0]["row"]]
        assert first[1]["judgment"] in errors[first[1]["row"]]
        assert errors[first[2]["row"]] is None
