"""Faults while sessions are written: kills, a full disk, a power cut."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from histories import MODELS, session_events, stages
from processes import run_program, run_python
from witan.deliberation.session import Session
from witan.errors import HistoryError
from witan.history import History
from witan.history.engines import SqliteDatabase

HERE = Path(__file__).parent


CROWD = HERE / "crowd.py"


PATHS = [str(HERE.parents[0]), *filter(None, [os.environ.get("PYTHONPATH")])]


ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(PATHS)}


def crowd(*arguments: object) -> None:
    """Run the crowd; fail with the output of its processes."""
    done = run_program(sys.executable, CROWD, *arguments, env=ENVIRONMENT)
    assert done.returncode == 0, done.stderr[-4000:]


def acknowledged(folder: Path) -> dict[str, int]:
    """The last durable event of each session, as acknowledged to its writer."""
    last: dict[str, int] = {}
    for file in folder.glob("acks-*"):
        for line in file.read_text(encoding="utf-8").splitlines():
            name, seq = line.split()
            last[name] = max(int(seq), last.get(name, 0))
    return last


def losses(history: History, acks: dict[str, int]) -> Iterator[str]:
    """Acknowledged events that are missing, changed or doubled."""
    for name, last in acks.items():
        whole = session_events(name)
        held = history.session(name)
        if list(held.events) != whole[: len(held.events)]:
            yield f"{name} holds other events"
        if len(held.events) < last:
            yield f"{name} has {len(held.events)} events of {last}"
        if last == len(whole) and history.ballots(name) != list(Session.of(whole).ballots):
            yield f"{name} holds other ballots"
    for table, each in (("ballots", len(MODELS)), ("standings", len(MODELS)), ("matchups", 1)):
        sql = (
            f"SELECT s.session, COUNT(t.session) FROM sessions s LEFT JOIN {table} t"  # noqa: S608
            " ON t.session = s.session WHERE s.status = 'complete' GROUP BY s.session"
        )
        for name, rows in history.database.rows(sql):
            if rows != each:
                yield f"{name} has {rows} rows in {table}"


class TestKilling:
    """Killed writers need no repair."""

    @pytest.mark.slow
    def test_two_hundred_kills_lose_and_double_nothing(self, file, tmp_path):
        """Four writers and a reader, a writer killed 200 times: every acknowledged stage is there.

        What a killed writer left is taken up by its next life, with its one set of ballots.
        """
        crowd("kill", file, tmp_path, 200)

        with History.open(file) as history:
            acks = acknowledged(tmp_path)
            history.check()
            assert sum(acks.values()) > 200
            assert list(losses(history, acks)) == []

    @pytest.mark.slow
    def test_killed_writers_lose_nothing_in_postgresql(self, postgresql_url, tmp_path):
        """The same holds with 30 kills and a server."""
        crowd("kill", postgresql_url, tmp_path, 30)

        with History.open(postgresql_url) as history:
            acks = acknowledged(tmp_path)
            assert sum(acks.values()) > 30
            assert list(losses(history, acks)) == []

    def test_acknowledged_stage_survives_an_immediate_kill(self, file):
        """The process is killed right after it reports the stage as durable."""
        names = [f"s{number}" for number in range(5)]
        code = (
            "import os, sys; from histories import stages; from witan.history import History\n"
            "import witan.history.writer  # once for all of them\n"
            "for name in sys.argv[2:]:\n"
            "    if os.fork():\n"
            "        os.wait()\n"
            "        continue\n"
            "    recording = History.open(sys.argv[1]).recording()\n"
            "    for stage in list(stages(name))[:3]:\n"
            "        [recording(event) for event in stage]\n"
            "    recording.flush(); print(os.getpid(), flush=True); sys.stdin.read()"
        )
        with subprocess.Popen(  # noqa: S603 - our own interpreter on our own lines
            [sys.executable, "-c", code, str(file), *names],
            env=ENVIRONMENT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as process:
            for name in names:
                os.kill(int(process.stdout.readline()), signal.SIGKILL)

                with History.open(file) as history:
                    opened, answers, ballots, _ = stages(name)
                    assert list(history.session(name).events) == opened + answers + ballots
                    history.check()


class TestOpeningAtOnce:
    """Concurrent openings create a new history once."""

    @pytest.mark.slow
    def test_forty_processes_open_a_new_history(self, place):
        """All of them succeed where there is no history yet."""
        crowd("open", place, 40)

        with History.open(place) as history:
            rows = history.database.rows("SELECT version FROM migrations ORDER BY version")
            assert rows == [(k,) for k in range(1, history.version + 1)]


class TestFullDisk:
    """A full disk is reported, and loses no stored session."""

    def test_full_disk_undoes_only_the_current_write(self, file):
        """Past the limit on a file's size a flush fails; the history opens again with the rest."""
        code = (
            "import resource, sys; from histories import session_events\n"
            "from witan.history import *; from witan.errors import HistoryError\n"
            "history = History.open(sys.argv[1])\n"
            "with history.recording() as recording:\n"
            "    [recording(event) for event in session_events('kept')]\n"
            "resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, 400_000))\n"
            "for k in range(1000):\n"
            "    recording = history.recording()\n"
            "    [recording(event) for event in session_events(f's{k}')]\n"
            "    try:\n"
            "        recording.flush()\n"
            "    except HistoryError as error:\n"
            "        print(k, error); break\n"
        )
        done = run_python(code, file, env=ENVIRONMENT)

        number, _, said = done.stdout.partition(" ")
        assert "try again" in said, done.stderr
        with History.open(file) as history:
            history.check()
            names = ["kept", *(f"s{k}" for k in range(int(number)))]
            assert [history.session(name) for name in names] == [
                Session.of(session_events(name)) for name in names
            ]
            assert f"s{number}" not in [found.session for found in history.find()]

    def test_history_continues_once_there_is_space(self, file):
        """SQLite's own "disk is full" is a sentence, and the next session is stored."""
        with History.open(file) as history:
            history.require_writable(creating=True)
            [(pages,)] = history.database.rows("PRAGMA page_count")
            history.database.rows(f"PRAGMA max_page_count = {pages}")
            names = [(k, "x" * 200) for k in range(10_000)]
            with pytest.raises(HistoryError, match="disk is full"):
                history.database.insert("names", ("code", "name"), names)

            history.database.rows("PRAGMA max_page_count = 1000000")

            assert history.database.rows("SELECT * FROM names") == []
            history.database.insert("names", ("code", "name"), [(1, "x")])


class TestLocked:
    """Another process holds the lock of the history."""

    def test_recording_waits_while_the_file_is_locked(self, file):
        """While another connection writes nothing fails; afterwards everything is stored."""
        with History.open(file) as history:
            history.require_writable(creating=True)
        with History.open(file) as history, SqliteDatabase(file, "other") as other:
            with history.recording() as recording:
                with other.transaction():
                    for event in session_events("s1"):
                        recording(event)
                    time.sleep(0.3)
                recording.flush()

            assert history.session("s1") == Session.of(session_events("s1"))

    def test_permanent_lock_is_an_error(self, file):
        """After the timeout the error names the holder, and the history stays usable."""
        with History.open(file) as history:
            history.require_writable(creating=True)
        with (
            History.open(file) as history,
            SqliteDatabase(file, "here", busy_seconds=0.1) as database,
        ):
            with (
                history.database.transaction(),
                pytest.raises(HistoryError, match="is locked"),
                database.transaction(),
            ):
                pass

            with database.transaction():
                database.insert("names", ("code", "name"), [(1, "x")])


class TestServerAway:
    """PostgreSQL stops and starts."""

    def test_lost_connection_is_reopened(self, postgresql_url):
        """The server ended the connection; the session is stored whole."""
        with History.open(postgresql_url) as history, history.recording() as recording:
            opened, *later = stages("s1")
            for event in opened:
                recording(event)
            recording.flush()
            with History.open(postgresql_url) as other:
                other.database.rows(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                    " WHERE datname = current_database() AND pid <> pg_backend_pid()"
                )

            for stage in later:
                for event in stage:
                    recording(event)
            recording.flush()

            assert history.session("s1") == Session.of(session_events("s1"))


CODE = (
    "import os, sys; from histories import stages; from witan.history import *\n"
    "with History.open(sys.argv[1]) as history, history.recording() as recording:\n"
    "    for stage in stages('s1'):\n"
    "        [recording(event) for event in stage]\n"
    "        recording.flush(); os.write(1, b'durable\\n')\n"
)


CALL = re.compile(r"(\w+)\((\d+)<([^>]*)>")


WRITES = ("write", "pwrite64", "pwritev", "ftruncate")


SYNCS = ("fsync", "fdatasync")


@pytest.fixture
def calls(file):
    """The system calls of a process that records a session: name, file descriptor, path."""
    program = shutil.which("strace")
    if program is None:
        pytest.skip("there is no strace")
    trace = file.parent / "trace"
    done = run_program(
        *(program, "-f", "-y", "-o", trace, "-e", f"trace={','.join(WRITES + SYNCS)}"),
        *(sys.executable, "-c", CODE, str(file)),
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])},
    )
    if "ptrace" in done.stderr:
        pytest.skip("no process may be traced here")
    assert done.returncode == 0, done.stderr
    lines = trace.read_text(encoding="utf-8", errors="replace").splitlines()
    return [found.groups() for line in lines if (found := CALL.search(line))]


def test_acknowledged_stage_is_synced(file, calls):
    """Four stages, and at each "durable" every write to the file and its log has been synced.

    Nor is the file itself written while its log or journal waits: a cut would leave pages of which
    there is neither the old nor the new state.
    """
    waiting, acknowledged, synced = set(), 0, 0
    for name, descriptor, path in calls:
        if name in WRITES and descriptor == "1":
            acknowledged += 1
            assert waiting == set()
        elif not path.startswith(str(file)) or path.endswith(("-shm", ".lock")):
            continue
        elif name in SYNCS:
            synced += 1
            waiting.discard(path)
        else:
            assert path != str(file) or not waiting - {path}
            waiting.add(path)

    assert acknowledged == 4
    assert synced >= 4
