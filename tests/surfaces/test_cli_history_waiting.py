"""A history that is locked, closed to writing, or written wrongly: what each command says of it."""

import json
import subprocess
import sys
import time

import pytest

from histories import told
from scripts import write_council
from witan.core.ballot import Ballot
from witan.deliberation.record import session_from_json
from witan.history import History, SessionImport
from witan.surfaces.cli.stored_sessions import is_file

HOLDS = """
import sys
from pathlib import Path
from witan.history.engines import (SqliteDatabase)
database = SqliteDatabase(Path(sys.argv[1]), sys.argv[1])
database.execute("BEGIN IMMEDIATE")
print("held", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A history of the test's own, with one session."""
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("CONFIG", "STATE", "DATA"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / name.lower()))
    path = tmp_path / "kept.sqlite"
    monkeypatch.setenv("WITAN_HISTORY", str(path))
    monkeypatch.chdir(tmp_path)
    with History.open(path) as history, history.recording() as recording:
        for event in told("s1"):
            recording(event)
    return path


@pytest.fixture
def held(place):
    """Another process writes to the history, and does not end."""
    with subprocess.Popen(  # noqa: S603 - our own interpreter on our own lines
        [sys.executable, "-c", HOLDS, str(place)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout.readline()
        yield process
        process.kill()


@pytest.mark.slow
@pytest.mark.usefixtures("held")
def test_nobody_is_asked_while_the_history_is_locked(witan, tmp_path, place):
    """It is said that it waits, and for what; after ten seconds, how to do without."""
    began = time.monotonic()

    said = witan("ask", "Is it so?", *write_council(tmp_path))

    assert time.monotonic() - began < 19
    assert said.status == 2
    assert f"another process has locked {place}" in said.err
    assert all(fact in said.err for fact in ("another process", "for 10 s"))
    assert "--no-history" in said.err
    assert said.out == ""


@pytest.mark.usefixtures("held")
def test_what_is_only_read_waits_for_nobody(witan):
    """Whoever writes keeps no reader out."""
    began = time.monotonic()

    [line] = witan("sessions", "--json").json["sessions"]

    assert line["session"] == "s1"
    assert time.monotonic() - began < 9


@pytest.mark.parametrize("days", ["999999999", "365001", "0"])
def test_an_age_that_no_session_reaches_is_refused_where_it_is_read(witan, monkeypatch, days):
    """The variable is named, before anybody is asked."""
    monkeypatch.setenv("WITAN_HISTORY_KEEP_DAYS", days)

    said = witan("plan", "Is it so?", "--member", "script:x.toml")

    assert said.status == 2
    assert "WITAN_HISTORY_KEEP_DAYS" in said.err
    assert "history.keep_days" in said.err


@pytest.mark.usefixtures("place")
@pytest.mark.parametrize("url", [":memory:", "file:h.sqlite", "host=db password=secret"])
def test_a_place_of_another_program_is_refused(witan, tmp_path, url):
    """No file is made of what was meant otherwise, and no password is shown."""
    before = sorted(path.name for path in tmp_path.iterdir())

    said = witan("sessions", "--history", url)

    assert said.status == 2
    assert "secret" not in said.err
    assert sorted(path.name for path in tmp_path.iterdir()) == before


def test_the_doctor_tells_of_a_file_without_a_byte(witan, place):
    """It is left as it is; the next session makes a history of it."""
    place.with_name("empty.sqlite").touch()

    said = witan("doctor", "--offline", "--json", "--history", "empty.sqlite")

    assert said.json["history"]["note"].startswith("the file is empty")
    assert place.with_name("empty.sqlite").stat().st_size == 0


class TestNames:
    """Sessions whose names read like files."""

    @pytest.fixture
    def imported(self, place):
        """A session called as saved conversations are."""
        ballot = Ballot("r1", (("x",), ("y",)), session="talk/2")
        with History.open(place) as history:
            history.add([SessionImport("talk/2", ballots=(ballot,))], "talk.json", "digest")

    @pytest.mark.usefixtures("imported")
    def test_a_name_with_a_slash_is_reached(self, witan):
        """What the history holds wins over a file that is not there."""
        assert "talk/2" in witan("show", "talk/2").out
        assert json.loads(witan("recount", "talk/2", "--json").out)["sessions"]

    @pytest.mark.usefixtures("imported")
    def test_a_file_that_is_there_wins(self, tmp_path):
        """A path names what lies there."""
        (tmp_path / "talk").mkdir()
        (tmp_path / "talk" / "2").touch()

        assert is_file("talk/2")

    @pytest.mark.usefixtures("imported")
    def test_what_is_neither_is_said_of_the_file(self, witan):
        """A path that leads nowhere is named."""
        said = witan("show", "talk/3")

        assert said.status == 2
        assert "talk/3" in said.err

    @pytest.mark.usefixtures("place")
    @pytest.mark.parametrize("command", ["show", "recount"])
    def test_an_empty_name_is_no_name(self, witan, command):
        """It is said as such, and no session is suggested."""
        said = witan(command, "")

        assert said.status == 2
        assert "witan sessions lists" in said.err

    @pytest.mark.usefixtures("place")
    def test_what_takes_no_file_speaks_of_none(self, witan):
        """A session to be forgotten is in the history or nowhere."""
        said = witan("forget", "s11", "--yes")

        assert all(fact in said.err for fact in ("'s11'", "did you mean s1?"))


@pytest.mark.usefixtures("place")
def test_a_window_that_ends_before_it_begins_is_said_as_it_was_asked(witan):
    """Both options are named."""
    said = witan("sessions", "--since", "2026-02-01", "--until", "2026-01-01")

    assert said.status == 2
    assert "--since cannot be '2026-02-01T00:00:00+00:00'" in said.err
    assert "before --until, 2026-01-01T00:00:00+00:00" in said.err


@pytest.mark.usefixtures("place")
def test_the_leader_has_one_name(witan, tmp_path):
    """The list names the seat that the session names."""
    asked = witan("ask", "Is it so?", "--json", *write_council(tmp_path))
    [leader] = session_from_json(asked.out).outcome.leaders
    [line] = [
        line
        for line in witan("sessions", "--json").json["sessions"]
        if line["session"] == asked.json["session"]
    ]

    assert line["leader_seat"] == leader
    assert f" {leader} " in witan("sessions").out
