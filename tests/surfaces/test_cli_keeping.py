"""A history that is damaged, in use or misnamed, black box: one sentence with a remedy."""

import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

from elections import ballot
from histories import ASKED, session_events
from recorded import keep
from scripts import write_council
from witan.history import History, SessionImport

HOLDER = (
    "import sys; from histories import stages; from witan.history import History\n"
    "recording = History.open(sys.argv[1]).recording()\n"
    "[recording(event) for stage in list(stages('s1'))[:2] for event in stage]\n"
    "recording.flush(); print('held', flush=True); sys.stdin.read()"
)


pytestmark = pytest.mark.usefixtures("place")


def test_the_doctor_finds_damage_inside_the_file(witan, place):
    """An overwritten page in the middle: the file is named, backed up, and a problem."""
    keep(place, *(session_events(f"s{k}") for k in range(20)))
    whole = place.read_bytes()
    middle = len(whole) // 4096 * 3 // 4 * 4096
    place.write_bytes(whole[:middle] + b"\xaa" * 4096 + whole[middle + 4096 :])
    assert witan("sessions").status == 0

    said = witan("doctor", "--offline")

    assert said.status == 2
    assert "is damaged" in said.out
    assert [p.name for p in place.parent.iterdir() if ".corrupt-" in p.name] != []


@contextmanager
def hold_session(place):
    """Run a process that works on session ``s1`` of a history until it is killed."""
    paths = [str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    with subprocess.Popen(  # noqa: S603 - our own interpreter on our own lines
        [sys.executable, "-c", HOLDER, str(place)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as holder:
        assert holder.stdout.readline() == "held\n"
        yield holder


def test_a_running_session_is_resumed_only_on_request(witan, place):
    """Its process is named; --take-over takes the session from it."""
    with hold_session(place) as holder:
        said = witan("resume", "s1")

        assert said.status == 2
        assert f"running in process {holder.pid}" in said.err
        assert "--take-over" in said.err
        taken = witan("resume", "s1", "--take-over")
        assert "running in process" not in taken.err
        holder.kill()


@pytest.mark.parametrize("command", ["sessions", "show", "leaderboard", "doctor"])
@pytest.mark.parametrize("place", ["~nosuch-user/x", "x" * 300])
def test_an_impossible_path_is_one_sentence(witan, command, place):
    """An unknown user's home, or a name too long: no traceback."""
    arguments = {"show": ["last"], "doctor": ["--offline"]}.get(command, [])
    said = witan(command, *arguments, "--history", place)

    assert said.status == 2
    assert "Traceback" not in said.err


def test_a_tilde_is_expanded_for_reading(witan, place, monkeypatch):
    """In every command."""
    keep(place, session_events("s1"))
    monkeypatch.setenv("HOME", str(place.parent))

    assert witan("sessions", "--history", "~/history.sqlite").status == 0


def test_reading_creates_no_history(witan, tmp_path):
    """With any spelling of the path."""
    said = witan("sessions", "--history", "sqlite:///nowhere.sqlite")

    assert said.status == 2
    assert not (tmp_path / "nowhere.sqlite").exists()


@pytest.mark.parametrize("command", ["sessions", "show", "recount", "forget"])
def test_an_invalid_byte_is_one_sentence(witan, place, command):
    """In a question or in a session's name."""
    keep(place, session_events("s1"))

    said = witan(command, "\udcff", *(["--yes"] if command == "forget" else []))

    assert said.status in (0, 2, 3)
    assert "Traceback" not in said.err


def test_imports_age_from_their_arrival(witan, tmp_path, place, monkeypatch):
    """Old sessions imported today are not deleted by the next question."""
    with History.open(place) as history:
        history.add(
            [SessionImport("old", ASKED.replace(year=2001), ballots=(ballot("a: b > c"),))],
            "f",
            "d",
        )
    keep(place, session_events("s1"))
    monkeypatch.setenv("WITAN_HISTORY_KEEP_DAYS", "1")

    assert witan("ask", "Is it so?", *write_council(tmp_path)).status == 0

    with History.open(place) as history:
        assert "old" in [found.session for found in history.find()]


def test_a_log_in_use_is_mentioned(witan, place):
    """A deleted session is gone at once, but its text may remain in the log."""
    keep(place, session_events("s1"), session_events("s2"))
    with History.open(place) as history:
        if history.journal != "wal":
            pytest.skip("this SQLite keeps no log")
        with history.database.snapshot():
            assert len(history.find()) == 2
            said = witan("forget", "s1", "s2", "--yes")

    assert (said.status, said.lines[1]) == (0, "2 sessions forgotten.")
    assert "other processes that read it" in said.out


def test_a_running_session_is_shown_as_running(witan, place):
    """While its process lives; afterwards as interrupted."""
    with hold_session(place) as holder:
        listed = witan("sessions", "--json").json["sessions"]
        only = witan("sessions", "--status", "interrupted", "--json").json["sessions"]
        shown, record = witan("show", "s1"), witan("show", "s1", "--json").json
        holder.kill()
    after = witan("sessions", "--status", "interrupted", "--json").json["sessions"]
    ended = witan("show", "s1")

    assert [each["status"] for each in listed] == ["running"]
    assert only == []
    assert record["status"] == "running"
    assert "running" in shown.out
    assert "witan resume" not in shown.out + shown.err
    assert [each["status"] for each in after] == ["interrupted"]
    assert "witan resume s1" in ended.out + ended.err
