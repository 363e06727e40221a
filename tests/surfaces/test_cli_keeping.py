"""A history that is damaged, in use, or named wrongly, black box: one sentence, and what to do."""

import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

from elections import ballot
from histories import ASKED, told
from scripts import write_council
from witan.history import History, SessionImport

HOLDER = (
    "import sys; from histories import stages; from witan.history import History\n"
    "recording = History.open(sys.argv[1]).recording()\n"
    "[recording(event) for stage in list(stages('s1'))[:2] for event in stage]\n"
    "recording.flush(); print('held', flush=True); sys.stdin.read()"
)


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    """A history of the test's own, and no other trace of the machine."""
    for name in [name for name in os.environ if name.startswith("WITAN_") or "API_KEY" in name]:
        monkeypatch.delenv(name)
    for name in ("CONFIG", "STATE", "DATA"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / name.lower()))
    path = tmp_path / "history.sqlite"
    monkeypatch.setenv("WITAN_HISTORY", str(path))
    monkeypatch.chdir(tmp_path)
    return path


def keep(place, *names):
    with History.open(place) as history, history.recording() as recording:
        for name in names:
            for event in told(name):
                recording(event)


def test_the_doctor_finds_damage_that_opening_does_not_read(witan, place):
    """A page in the middle is overwritten: the file is named, copied aside, and a problem."""
    keep(place, *(f"s{k}" for k in range(20)))
    whole = place.read_bytes()
    middle = len(whole) // 4096 * 3 // 4 * 4096
    place.write_bytes(whole[:middle] + b"\xaa" * 4096 + whole[middle + 4096 :])
    assert witan("sessions").status == 0

    said = witan("doctor", "--offline")

    assert said.status == 2
    assert "is damaged" in said.out
    assert [p.name for p in place.parent.iterdir() if ".corrupt-" in p.name] != []


@contextmanager
def holding(place):
    """A process that is at the session ``s1`` of a history, until it is told to die."""
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


def test_a_session_under_way_is_not_resumed_unless_that_is_meant(witan, place):
    """The process that is at it is named; with --take-over it loses the session."""
    with holding(place) as holder:
        said = witan("resume", "s1")

        assert said.status == 2
        assert f"under way in process {holder.pid}" in said.err
        assert "--take-over" in said.err
        taken = witan("resume", "s1", "--take-over")
        assert "under way" not in taken.err
        holder.kill()


@pytest.mark.parametrize("command", ["sessions", "show", "leaderboard", "doctor"])
@pytest.mark.parametrize("place", ["~nosuch-user/x", "x" * 300])
def test_a_place_that_cannot_be_is_one_sentence(witan, command, place):
    """No home of that user, a name that is too long: no traceback."""
    arguments = {"show": ["last"], "doctor": ["--offline"]}.get(command, [])
    said = witan(command, *arguments, "--history", place)

    assert said.status == 2
    assert "Traceback" not in said.err


def test_a_home_directory_is_understood_where_it_is_only_read(witan, place, monkeypatch):
    """A tilde stands for it, in every command alike."""
    keep(place, "s1")
    monkeypatch.setenv("HOME", str(place.parent))

    assert witan("sessions", "--history", "~/history.sqlite").status == 0


def test_a_place_that_is_only_read_is_not_made(witan, tmp_path):
    """However it is written."""
    said = witan("sessions", "--history", "sqlite:///nowhere.sqlite")

    assert said.status == 2
    assert not (tmp_path / "nowhere.sqlite").exists()


@pytest.mark.parametrize("command", ["sessions", "show", "recount", "forget"])
def test_a_byte_that_is_no_text_is_one_sentence(witan, place, command):
    """It stands in no question, and no session has it for its name."""
    keep(place, "s1")

    said = witan(command, "\udcff", *(["--yes"] if command == "forget" else []))

    assert said.status in (0, 2, 3)
    assert "Traceback" not in said.err


def test_what_was_imported_is_kept_from_its_import(witan, tmp_path, place, monkeypatch):
    """Sessions of long ago, imported today, are not deleted by the next question."""
    with History.open(place) as history:
        history.add(
            [SessionImport("old", ASKED.replace(year=2001), ballots=(ballot("a: b > c"),))],
            "f",
            "d",
        )
    keep(place, "s1")
    monkeypatch.setenv("WITAN_HISTORY_KEEP_DAYS", "1")

    assert witan("ask", "Is it so?", *write_council(tmp_path)).status == 0

    with History.open(place) as history:
        assert "old" in [found.session for found in history.find()]


def test_a_log_that_is_read_meanwhile_is_noted(witan, place):
    """What is forgotten is gone at once; that its text may lie in the log is said."""
    keep(place, "s1", "s2")
    with History.open(place) as history:
        if history.journal != "wal":
            pytest.skip("this SQLite keeps no log")
        with history.database.snapshot():
            assert len(history.find()) == 2
            said = witan("forget", "s1", "s2", "--yes")

    assert (said.status, said.lines[1]) == (0, "2 sessions forgotten.")
    assert "another process is reading it" in said.out


def test_a_session_under_way_is_called_running(witan, place):
    """List and show say so while its process lives, and interrupted once it has died."""
    with holding(place) as holder:
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
