"""What version 0.1.0 stored opens: a history in SQLite, and the file of a session.

The history holds the demonstration, its degraded twin, a person's vote on the first, a retry of the
second, and the ballots of ``examples/ballots.jsonl`` as imported sessions.
"""

import gzip
import json
from pathlib import Path

import pytest

from witan.surfaces.cli.app import main

STORED = Path(__file__).parent / "stored"

SESSIONS = json.loads((STORED / "sessions.json").read_text(encoding="utf-8"))


@pytest.fixture
def history(tmp_path):
    """A copy of the history."""
    path = tmp_path / "history.sqlite"
    path.write_bytes(gzip.decompress((STORED / "history-0.1.0.sqlite.gz").read_bytes()))
    return path


@pytest.fixture
def run(capsys):
    """Run a command; return what it prints as JSON."""

    def of(*arguments: object) -> object:
        status = main([str(each) for each in arguments])
        captured = capsys.readouterr()
        assert status == 0, captured.err
        return json.loads(captured.out)

    return of


def test_every_session_is_listed(run, history):
    """The list has sessions, their status and their parents."""
    listed = run("sessions", "--history", history, "--json")["sessions"]

    found = {each["session"]: [each["status"], each["parent"]] for each in listed}
    assert found == {name: held["listed"] for name, held in SESSIONS.items()}


@pytest.mark.parametrize("session", SESSIONS)
def test_a_session_is_shown_with_its_standings(run, history, session):
    """Answers, ballots and standings are unchanged."""
    shown = run("show", session, "--history", history, "--json")

    standings = (shown.get("outcome") or {}).get("standings", [])
    assert [[each["candidate"], each["rank"]] for each in standings] == SESSIONS[session]["ranks"]


def test_the_leaderboard_and_the_audit_can_be_computed(run, history):
    """Only imported sessions count, as the others are simulated."""
    board = run("leaderboard", "--history", history, "--min-sessions", "1", "--json")
    audit = run("audit", "--history", history, "--json")

    assert sorted(each["model"] for each in (*board["lines"], *board["provisional"])) == [
        "alder", "birch", "cedar", "maple", "rowan",
    ]  # fmt: skip
    assert audit["sessions"] == 3


def test_a_stored_session_can_be_recounted(run, history):
    """Another rule uses its stored ballots."""
    name = next(name for name, held in SESSIONS.items() if held["ranks"])

    counted = run("recount", name, "--rule", "schulze", "--history", history, "--json")

    assert counted["sessions"][0]["rule"] == "schulze"


def test_a_saved_session_is_read(run):
    """`--save` wrote the file."""
    shown = run("show", STORED / "session-0.1.0.json", "--json")

    assert shown["outcome"]["standings"]
