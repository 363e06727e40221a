"""A history that fails to store a session, black box: it is reported, and nothing is lost."""

import json
import os
import shlex
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from sqlite3 import connect
from threading import Event

import pytest

from histories import session_events
from misbehaving import MisbehavingServer
from recorded import listed, place_of_its_own, under_way
from witan.deliberation.record import session_from_json, session_to_json
from witan.deliberation.session import Session
from witan.history import History
from witan.service.history_access import rescue_session


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    """A history of the test's own, isolated from the machine."""
    path = place_of_its_own(tmp_path, monkeypatch)
    with History.open(path) as history:
        history.require_writable(creating=True)
    return path


@pytest.fixture
def ask_with_failure():
    """Ask, cause a failure once two of three have answered, and return status and output."""

    def run(goes_wrong: Callable[[], None], *arguments: object) -> tuple[int, str]:
        is_wrong = Event()
        with MisbehavingServer({"ada": 9, "bob": 8, "cyd": 7}) as server:
            server.fault("ada", "held", stage="answer", until=is_wrong)
            seats = [part for name in server.worth for part in ("--member", f"{server.url}#{name}")]
            with under_way("ask", "Is it so?", *seats, *arguments) as process:
                goes_wrong()
                is_wrong.set()
                _, err = process.communicate(timeout=60)
        return process.returncode, err

    return run


@pytest.fixture
def break_table(place):
    """Remove the table of events once it has one; `back` restores it."""

    def rename(*, back: bool = False) -> None:
        old, new = ("gone", "events") if back else ("events", "gone")
        with closing(connect(place, timeout=20)) as database:
            while not database.execute(f"SELECT COUNT(*) FROM {old}").fetchone()[0]:  # noqa: S608
                time.sleep(0.01)
            database.execute(f"ALTER TABLE {old} RENAME TO {new}")

    return rename


def rescued_file(said: str) -> Path:
    """The file named in a message."""
    return Path(shlex.split(said.partition("; its record is ")[2].partition(";")[0])[0])


def status_in(path: Path) -> str:
    """The status of the session in a file."""
    return json.loads(path.read_text(encoding="utf-8"))["status"]


def vote_counts(witan, *arguments: object) -> list[tuple[str, int]]:
    """Votes by model on the leaderboard."""
    board = witan("leaderboard", "--json", *arguments).json
    counted = [(line["model"], line["votes"]) for line in (*board["lines"], *board["provisional"])]
    assert counted != []
    return counted


class TestFile:
    """An unsaved session is written to a file, which the message names."""

    @pytest.mark.slow
    def test_a_failed_history_is_completed_from_the_file(
        self, witan, ask_with_failure, break_table, tmp_path
    ):
        """The suggested command imports the whole session over the partial one."""
        status, err = ask_with_failure(break_table)
        break_table(back=True)
        [half] = listed(witan)

        assert status == 6
        told = err.splitlines()[-1]
        assert told.startswith("the session was not recorded")
        path = rescued_file(told)
        assert path.is_relative_to(tmp_path / "state")
        assert half["status"] == "interrupted"
        again = told.rpartition("import it with: witan ")[2]
        assert witan(*shlex.split(again)).status == 0
        assert [line["status"] for line in listed(witan)] == ["complete"]
        saved = session_from_json(path.read_text(encoding="utf-8"))
        assert session_from_json(witan("show", "last", "--json").out).events == saved.events
        assert witan("recount", "last").status == 0

    @pytest.mark.slow
    def test_the_suggested_command_names_a_custom_history(
        self, ask_with_failure, break_table, place
    ):
        _, err = ask_with_failure(break_table, "--history", place)

        assert err.rstrip().endswith(f" --history {place}")

    @pytest.mark.slow
    def test_a_full_disk_falls_back_to_the_state_folder(
        self, ask_with_failure, break_table, tmp_path
    ):
        """If the requested file cannot be written either."""
        status, err = ask_with_failure(break_table, "--save", "/dev/full")

        path = rescued_file(next(line for line in err.splitlines() if "its record is" in line))
        assert status == 2
        assert path.is_relative_to(tmp_path / "state")
        assert status_in(path) == "complete"

    def test_a_lost_session_is_a_failure(self, ask_with_failure, break_table, tmp_path):
        """If no file can be written, a message says so and the status is not 0."""
        (tmp_path / "state").write_text("This is no folder.", encoding="utf-8")
        status, err = ask_with_failure(break_table)

        assert status == 6
        assert "the session was not recorded" in err
        assert "nor could its record" in err

    @pytest.mark.slow
    @pytest.mark.skipif(os.name == "nt", reason="Windows removes no file that is in use")
    def test_a_removed_history_is_noticed(self, ask_with_failure, place, tmp_path):
        """Its session is in the file that the message names."""
        status, err = ask_with_failure(place.unlink)

        assert status == 6
        path = rescued_file(err.splitlines()[-1])
        assert str(place) in err
        assert path.is_relative_to(tmp_path / "state")
        assert status_in(path) == "complete"

    @pytest.mark.slow
    def test_a_lock_is_awaited_for_a_limited_time(self, ask_with_failure, place, tmp_path):
        """Ten seconds in the session and ten at its end; then the message names the file."""
        with closing(connect(place, isolation_level=None)) as holder:

            def lock() -> None:
                holder.execute("BEGIN IMMEDIATE")

            began = time.monotonic()
            status, err = ask_with_failure(lock)

        assert time.monotonic() - began < 40
        assert status == 6
        assert err.count(f"another process has locked {place}: waiting") == 1
        path = rescued_file(err.splitlines()[-1])
        assert path.is_relative_to(tmp_path / "state")
        assert status_in(path) == "complete"

    def test_rescued_records_never_overwrite_each_other(self):
        """Two at the same time have a file each."""
        session = Session.of(session_events("s1"))
        with ThreadPoolExecutor(8) as pool:
            paths = list(pool.map(rescue_session, [session] * 8))

        assert len(set(paths)) == 8
        assert {path.read_text(encoding="utf-8") for path in paths} == {
            f"{session_to_json(session)}\n"
        }


class TestCompleting:
    """A record completes a partial session, and never joins another run."""

    @pytest.fixture
    def whole(self) -> list:
        """The events of a finished session."""
        return session_events("s1")

    @pytest.fixture
    def record(self, whole, tmp_path) -> Path:
        """Its record."""
        path = tmp_path / "whole.json"
        path.write_text(session_to_json(Session.of(whole)), encoding="utf-8")
        return path

    @pytest.fixture
    def kept(self, place):
        """Store some events as a council would."""

        def keep(events: list) -> None:
            with History.open(place) as history, history.recording() as recording:
                for event in events:
                    recording(event)

        return keep

    @pytest.mark.parametrize("so_far", [1, 4, 9])
    def test_a_completed_session_equals_a_stored_one(self, witan, kept, whole, record, so_far):
        """However much was stored, it is whole and counted once."""
        kept(whole[:so_far])
        said = witan("import", record)

        assert (said.status, said.err) == (0, "")
        assert session_from_json(witan("show", "s1", "--json").out).events == tuple(whole)
        witan("import", record, "--history", "other.sqlite")
        assert vote_counts(witan) == vote_counts(witan, "--history", "other.sqlite")
        assert "nothing new" in witan("import", record).out

    def test_a_different_run_is_refused(self, witan, kept, record):
        """The history keeps its own, unchanged."""
        kept(session_events("s1", taste="other")[:9])
        before = witan("show", "s1", "--json").out
        said = witan("import", record)

        assert said.status == 2
        assert "s1" in said.err
        assert witan("show", "s1", "--json").out == before

    def test_an_earlier_state_changes_nothing(self, witan, kept, whole, tmp_path):
        kept(whole)
        path = tmp_path / "half.json"
        path.write_text(session_to_json(Session.of(whole[:4])), encoding="utf-8")

        assert witan("import", path).status == 0
        assert [line["status"] for line in listed(witan)] == ["complete"]
