"""A history that is locked, read-only or misnamed: the message of each command."""

import json
import subprocess
import sys
import time
from threading import Timer

import pytest

from histories import session_events
from postgres import postgresql_url
from recorded import keep, place_of_its_own
from scripts import write_council
from witan.core.ballot import Ballot
from witan.deliberation.record import session_from_json
from witan.errors import HistoryError
from witan.history import History, LockWait, SessionImport
from witan.surfaces.cli.stored_sessions import is_file

__all__ = ["postgresql_url"]

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
    path = place_of_its_own(tmp_path, monkeypatch)
    keep(path, session_events("s1"))
    return path


@pytest.fixture
def locked_history(place):
    """A history on which another process holds a write lock."""
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
@pytest.mark.usefixtures("locked_history")
def test_no_question_is_asked_while_the_history_is_locked(witan, tmp_path, place):
    """A message says so, and after ten seconds how to continue without."""
    began = time.monotonic()

    said = witan("ask", "Is it so?", *write_council(tmp_path))

    assert time.monotonic() - began < 19
    assert said.status == 2
    assert f"another process has locked {place}" in said.err
    assert all(fact in said.err for fact in ("another process", "waited 10 s"))
    assert "--no-history" in said.err
    assert said.out == ""


@pytest.mark.slow
@pytest.mark.usefixtures("locked_history")
def test_a_command_that_writes_waits_ten_seconds_and_says_so(witan, place):
    """As a question does; then it ends, and nothing has changed."""
    began = time.monotonic()

    said = witan("forget", "s1", "--yes")

    assert time.monotonic() - began < 19
    assert said.status == 2
    assert f"another process has locked {place}: waiting up to 8 s for it" in said.err
    assert "waited 10 s" in said.err
    assert [line["session"] for line in witan("sessions", "--json").json["sessions"]] == ["s1"]


@pytest.mark.slow
def test_a_locked_row_of_a_server_is_waited_for_as_a_file(witan, postgresql_url):
    """Ten seconds, announced after two."""
    keep(postgresql_url, session_events("s1"))
    with History.open(postgresql_url) as history, history.database.transaction():
        history.database.rows("SELECT session FROM sessions FOR UPDATE")
        began = time.monotonic()

        said = witan("forget", "s1", "--yes", "--history", postgresql_url)

        assert time.monotonic() - began < 19
    assert said.status == 2
    assert ": waiting up to 8 s for it" in said.err
    assert "is locked by another process (waited 10 s); wait until" in said.err


@pytest.mark.slow
def test_a_read_of_a_server_waits_as_long_as_a_write(postgresql_url):
    """A statement alone waits ten seconds, and each says how long it waited."""
    keep(postgresql_url, session_events("s1"))
    briefly = LockWait(seconds=1.0)
    with (
        History.open(postgresql_url) as other,
        History.open(postgresql_url, lock_wait=briefly) as history,
        other.database.transaction(),
    ):
        other.database.execute("LOCK TABLE sessions IN ACCESS EXCLUSIVE MODE")
        began = time.monotonic()

        with pytest.raises(HistoryError, match=r"\(waited 1 s\)"):
            history.session("s1")
        assert time.monotonic() - began < 5
        with pytest.raises(HistoryError, match=r"\(waited 10 s\)"):
            history.database.rows("SELECT session FROM sessions")


@pytest.mark.slow
def test_a_read_that_waits_for_a_server_says_so(postgresql_url):
    """As a write does: an import may wait for an hour."""
    keep(postgresql_url, session_events("s1"))
    said = []
    with (
        History.open(postgresql_url) as other,
        History.open(postgresql_url, lock_wait=LockWait(said.append, 5.0)) as history,
        other.database.transaction(),
    ):
        other.database.execute("LOCK TABLE sessions IN ACCESS EXCLUSIVE MODE")

        with pytest.raises(HistoryError, match=r"\(waited 5 s\)"):
            history.session("s1")

    assert [line.partition(": ")[2] for line in said] == ["waiting up to 3 s for it"]


@pytest.mark.slow
def test_an_import_waits_for_another_to_finish(witan, tmp_path, place, locked_history):
    """However long it takes: nothing is lost meanwhile."""
    ballots = tmp_path / "votes.jsonl"
    ballots.write_text(
        json.dumps({"session": "q1", "reviewer": "r1", "ranking": ["a", "b"]}), encoding="utf-8"
    )
    release = Timer(13, locked_history.kill)
    release.start()

    said = witan("import", ballots)

    assert (said.status, said.out) == (0, f"{ballots}: 1 session · 1 ballot\n")
    assert f"another process has locked {place}: waiting up to 60 min for it" in said.err


@pytest.mark.usefixtures("locked_history")
def test_readers_do_not_wait(witan):
    """Despite the write lock, which nobody releases."""
    [line] = witan("sessions", "--json").json["sessions"]

    assert line["session"] == "s1"


@pytest.mark.parametrize("days", ["999999999", "365001", "0"])
def test_an_impossible_age_is_refused_by_its_variable(witan, monkeypatch, days):
    """Before any call."""
    monkeypatch.setenv("WITAN_HISTORY_KEEP_DAYS", days)

    said = witan("plan", "Is it so?", "--member", "script:x.toml")

    assert said.status == 2
    assert "WITAN_HISTORY_KEEP_DAYS" in said.err
    assert "history.keep_days" in said.err


@pytest.mark.usefixtures("place")
@pytest.mark.parametrize("url", [":memory:", "file:h.sqlite", "host=db password=secret"])
def test_an_address_of_another_database_is_refused(witan, tmp_path, url):
    """No file is created from it, and no password is shown."""
    before = sorted(path.name for path in tmp_path.iterdir())

    said = witan("sessions", "--history", url)

    assert said.status == 2
    assert "secret" not in said.err
    assert sorted(path.name for path in tmp_path.iterdir()) == before


def test_the_doctor_reports_an_empty_file(witan, place):
    """It is left alone; the next session makes it a history."""
    empty = place.with_name("empty.sqlite")
    empty.touch()

    said = witan("doctor", "--offline", "--json", "--history", empty)

    assert said.json["history"]["note"].startswith("the file is empty")
    assert empty.stat().st_size == 0


class TestNames:
    """Session names that look like paths."""

    @pytest.fixture
    def imported_conversation(self, place):
        """A session named like a saved conversation."""
        ballot = Ballot("r1", (("x",), ("y",)), session="talk/2")
        with History.open(place) as history:
            history.add([SessionImport("talk/2", ballots=(ballot,))], "talk.json", "digest")

    @pytest.mark.usefixtures("imported_conversation")
    def test_a_name_with_a_slash_is_found(self, witan):
        """In the history, if there is no such file."""
        assert "talk/2" in witan("show", "talk/2").out
        assert json.loads(witan("recount", "talk/2", "--json").out)["sessions"]

    @pytest.mark.usefixtures("imported_conversation")
    def test_an_existing_file_takes_precedence(self, tmp_path):
        (tmp_path / "talk").mkdir()
        (tmp_path / "talk" / "2").touch()

        assert is_file("talk/2")

    @pytest.mark.usefixtures("imported_conversation")
    def test_a_missing_file_is_named(self, witan):
        """If the history has no such session either."""
        said = witan("show", "talk/3")

        assert said.status == 2
        assert "talk/3" in said.err

    @pytest.mark.usefixtures("place")
    @pytest.mark.parametrize("command", ["show", "recount"])
    def test_an_empty_name_is_refused(self, witan, command):
        """Without a suggestion."""
        said = witan(command, "")

        assert said.status == 2
        assert "witan sessions lists" in said.err

    @pytest.mark.usefixtures("place")
    def test_commands_without_files_do_not_mention_them(self, witan):
        """Forget looks only in the history."""
        said = witan("forget", "s11", "--yes")

        assert all(fact in said.err for fact in ("'s11'", "did you mean s1?"))


@pytest.mark.usefixtures("place")
def test_an_inverted_window_is_reported_by_its_options(witan):
    """Both are named."""
    said = witan("sessions", "--since", "2026-02-01", "--until", "2026-01-01")

    assert said.status == 2
    assert "--since cannot be '2026-02-01T00:00:00+00:00'" in said.err
    assert "before --until, 2026-01-01T00:00:00+00:00" in said.err


@pytest.mark.usefixtures("place")
def test_the_leader_has_one_name(witan, tmp_path):
    """List and session show the same seat name, and how likely it is to be best."""
    asked = witan("ask", "Is it so?", "--json", *write_council(tmp_path))
    outcome = session_from_json(asked.out).outcome
    [leader] = outcome.leaders
    [line] = [
        line
        for line in witan("sessions", "--json").json["sessions"]
        if line["session"] == asked.json["session"]
    ]

    assert line["leader_seat"] == leader
    [standing] = [each for each in outcome.standings if each.candidate == leader]
    assert line["p_best"] == standing.p_best > 0
    assert f" {leader} " in witan("sessions").out
