"""A history that does not keep a session, black box: it is said, and nothing is lost."""
# ruff: noqa: S603 - every process started here is our own command

import json
import os
import shlex
import subprocess
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from itertools import islice
from pathlib import Path
from sqlite3 import connect

import pytest

from histories import told
from recorded import WITAN, listed, place_of_its_own
from scripts import write_council
from witan.deliberation.record import session_from_json, session_to_json
from witan.deliberation.session import Session
from witan.history import History
from witan.service.history_access import rescue_session

SLOW = {"answer": [{"text": "Ada says so.", "seconds": 3.0}]}
"""A member that leaves time for something to go wrong."""


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    """A history of the test's own, and no other trace of the machine."""
    path = place_of_its_own(tmp_path, monkeypatch)
    with History.open(path):
        pass
    return path


@pytest.fixture
def ask_while(tmp_path):
    """Ask, and have something go wrong once two have answered; the status and what was said."""

    def run(goes_wrong: Callable[[], None], *arguments: object) -> tuple[int, str]:
        command = [*WITAN, "ask", "Is it so?", *write_council(tmp_path, ada=SLOW), "--events"]
        with subprocess.Popen(
            [*command, *map(str, arguments)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            answered = (line for line in process.stdout if '"answer_done"' in line)
            assert len(list(islice(answered, 2))) == 2
            goes_wrong()
            _, err = process.communicate(timeout=60)
        return process.returncode, err

    return run


@pytest.fixture
def spoil(place):
    """Take the table of events away once there is one in it; or bring it `back`."""

    def rename(*, back: bool = False) -> None:
        old, new = ("gone", "events") if back else ("events", "gone")
        with closing(connect(place, timeout=20)) as database:
            while not database.execute(f"SELECT COUNT(*) FROM {old}").fetchone()[0]:  # noqa: S608
                time.sleep(0.01)
            database.execute(f"ALTER TABLE {old} RENAME TO {new}")

    return rename


def record_in(said: str) -> Path:
    """The file that a sentence names."""
    return Path(shlex.split(said.partition("; its record is ")[2].partition(";")[0])[0])


def status_in(path: Path) -> str:
    """How the session in a file stands."""
    return json.loads(path.read_text(encoding="utf-8"))["status"]


def counted_in(witan, *arguments: object) -> list[tuple[str, int]]:
    """Every model of the leaderboard, with the number of its votes."""
    board = witan("leaderboard", "--json", *arguments).json
    counted = [(line["model"], line["votes"]) for line in (*board["lines"], *board["provisional"])]
    assert counted != []
    return counted


class TestFile:
    """What the history did not keep is in a file, and the sentence says where."""

    @pytest.mark.slow
    def test_a_history_that_fails_half_way_is_completed_from_the_file(
        self, witan, ask_while, spoil, tmp_path
    ):
        """The command that is named puts the session in whole, over what is there of it."""
        status, err = ask_while(spoil)
        spoil(back=True)
        [half] = listed(witan)

        assert status == 6
        told = err.splitlines()[-1]
        assert told.startswith("the history did not keep")
        path = record_in(told)
        assert path.is_relative_to(tmp_path / "state")
        assert half["status"] == "interrupted"
        again = told.rpartition("put it in with: witan ")[2]
        assert witan(*shlex.split(again)).status == 0
        assert [line["status"] for line in listed(witan)] == ["complete"]
        saved = session_from_json(path.read_text(encoding="utf-8"))
        assert session_from_json(witan("show", "last", "--json").out).events == saved.events
        assert witan("recount", "last").status == 0

    @pytest.mark.slow
    def test_the_command_finds_a_place_that_was_named(self, ask_while, spoil, place):
        """Where the history was named by hand, so does the sentence."""
        _, err = ask_while(spoil, "--history", place)

        assert err.rstrip().endswith(f" --history {place}")

    @pytest.mark.slow
    def test_a_full_disk_under_both_leaves_the_state(self, ask_while, spoil, tmp_path):
        """Where the file that was asked for cannot be written either, another is."""
        status, err = ask_while(spoil, "--save", "/dev/full")

        path = record_in(next(line for line in err.splitlines() if "its record is" in line))
        assert status == 2
        assert path.is_relative_to(tmp_path / "state")
        assert status_in(path) == "complete"

    def test_a_session_that_is_lost_is_no_success(self, ask_while, spoil, tmp_path):
        """Where no file can be written it is said, and the status is not 0."""
        (tmp_path / "state").write_text("This is no folder.", encoding="utf-8")
        status, err = ask_while(spoil)

        assert status == 6
        assert "did not keep the session" in err
        assert "nor could its record" in err

    @pytest.mark.slow
    @pytest.mark.skipif(os.name == "nt", reason="Windows removes no file that is in use")
    def test_a_history_that_is_removed_meanwhile_is_missed(self, ask_while, place, tmp_path):
        """What was written to a removed file is in the file that is named."""
        status, err = ask_while(place.unlink)

        assert status == 6
        path = record_in(err.splitlines()[-1])
        assert str(place) in err
        assert path.is_relative_to(tmp_path / "state")
        assert status_in(path) == "complete"

    @pytest.mark.slow
    def test_a_history_that_is_locked_meanwhile_is_waited_for_a_bounded_time(
        self, ask_while, place, tmp_path
    ):
        """Ten seconds under way, ten at the end: then it is said where the record is."""
        with closing(connect(place, isolation_level=None)) as holder:

            def lock() -> None:
                holder.execute("BEGIN IMMEDIATE")

            began = time.monotonic()
            status, err = ask_while(lock)

        assert time.monotonic() - began < 40
        assert status == 6
        assert err.count(f"another process has locked {place}: waiting") == 1
        path = record_in(err.splitlines()[-1])
        assert path.is_relative_to(tmp_path / "state")
        assert status_in(path) == "complete"

    def test_no_record_is_written_over_another(self):
        """Who sets the same session aside at the same time gets a file each."""
        session = Session.of(told("s1"))
        with ThreadPoolExecutor(8) as pool:
            paths = list(pool.map(rescue_session, [session] * 8))

        assert len(set(paths)) == 8
        assert {path.read_text(encoding="utf-8") for path in paths} == {
            f"{session_to_json(session)}\n"
        }


class TestCompleting:
    """A record completes what the history holds of its session, and never joins another run."""

    @pytest.fixture
    def whole(self) -> list:
        """The events of a session that is over."""
        return told("s1")

    @pytest.fixture
    def record(self, whole, tmp_path) -> Path:
        """Its record."""
        path = tmp_path / "whole.json"
        path.write_text(session_to_json(Session.of(whole)), encoding="utf-8")
        return path

    @pytest.fixture
    def kept(self, place):
        """Keep some events as a council would have told them."""

        def keep(events: list) -> None:
            with History.open(place) as history, history.recording() as recording:
                for event in events:
                    recording(event)

        return keep

    @pytest.mark.parametrize("so_far", [1, 4, 9])
    def test_it_is_the_same_as_one_that_was_kept(self, witan, kept, whole, record, so_far):
        """However far the history came, the session is whole and counted once."""
        kept(whole[:so_far])
        said = witan("import", record)

        assert (said.status, said.err) == (0, "")
        assert session_from_json(witan("show", "s1", "--json").out).events == tuple(whole)
        witan("import", record, "--history", "other.sqlite")
        assert counted_in(witan) == counted_in(witan, "--history", "other.sqlite")
        assert "nothing new" in witan("import", record).out

    def test_one_that_went_on_otherwise_is_refused(self, witan, kept, record):
        """Of two runs of one session the history keeps its own, untouched."""
        kept(told("s1", taste="other")[:9])
        before = witan("show", "s1", "--json").out
        said = witan("import", record)

        assert said.status == 2
        assert "s1" in said.err
        assert witan("show", "s1", "--json").out == before

    def test_one_that_came_less_far_brings_nothing(self, witan, kept, whole, tmp_path):
        """An earlier state of a session changes nothing."""
        kept(whole)
        path = tmp_path / "half.json"
        path.write_text(session_to_json(Session.of(whole[:4])), encoding="utf-8")

        assert witan("import", path).status == 0
        assert [line["status"] for line in listed(witan)] == ["complete"]
