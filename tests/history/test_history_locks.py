"""Locks: processes wait for each other, within the time limit."""

import shutil
import sqlite3
import subprocess
import time
from socket import gethostname
from threading import Thread

import anyio
import pytest

from histories import send, session_events, stages
from witan.errors import HistoryError
from witan.history import History, LockWait
from witan.history.database import lock_file, own_process
from witan.history.engines import GRACE_SECONDS, HEARTBEAT_SECONDS

HOLDS = """
import sys
from witan.history.engines import (SqliteDatabase)
from pathlib import Path
database = SqliteDatabase(Path(sys.argv[1]), sys.argv[1])
database.execute("PRAGMA locking_mode = EXCLUSIVE")
database.execute("BEGIN EXCLUSIVE")
database.rows("SELECT * FROM sessions")
database.execute("INSERT INTO names VALUES (1, 'x')")
print("held", flush=True)
sys.stdin.read()
"""


WRITES = HOLDS.replace('database.execute("PRAGMA locking_mode = EXCLUSIVE")', "").replace(
    "EXCLUSIVE", "IMMEDIATE"
)


@pytest.fixture
def made(file):
    """An empty history in a file."""
    with History.open(file) as history:
        history.require_writable(creating=True)
    return file


def end(process):
    """End a process that holds a lock."""
    process.kill()
    process.wait()


def test_waiting_for_a_locked_file_times_out(made, running):
    """All waits of an opening share one limit, and are reported once."""
    running(HOLDS, made)
    told, began = [], time.monotonic()

    with pytest.raises(HistoryError) as refused:
        History.open(made, lock_wait=LockWait(told.append, seconds=3))

    assert time.monotonic() - began > 2.5
    assert all(fact in str(refused.value) for fact in ("another process", "waited 3 s"))
    assert len(told) == 1
    assert str(made) in told[0]


@pytest.mark.slow
def test_second_writer_waits(made, running):
    """A reader opens beside a writer; a recording waits as long as an opening."""
    running(WRITES, made)
    told = []
    lock_wait = LockWait(told.append, seconds=2.5)

    said = r"is locked by another process \(waited 2\.5 s"
    with (
        History.open(made, lock_wait=lock_wait) as history,
        pytest.raises(HistoryError, match=said),
    ):
        history.require_writable(lock_wait)

    assert len(told) == 1


def test_short_lock_is_not_reported(made):
    """A lock released within the limit lets the history open without a message."""
    told = []
    holder = sqlite3.connect(made, isolation_level=None, check_same_thread=False)
    holder.execute("BEGIN IMMEDIATE")
    free = Thread(target=lambda: (time.sleep(0.4), holder.execute("COMMIT"), holder.close()))
    free.start()

    with History.open(made) as history:
        history.require_writable(LockWait(told.append))
    free.join()

    assert told == []


@pytest.mark.slow
def test_waiting_for_another_opener_times_out(file):
    """The lock of a process that creates a history has the same limit, and is named."""
    told = []
    lock = lock_file(file.with_name(f"{file.name}.lock"), 1)
    with History.open(file) as history, lock, pytest.raises(HistoryError, match="is locked"):
        history.require_writable(LockWait(told.append, seconds=2.2), creating=True)

    assert len(told) == 1


class TestWhileSessionsRun:
    """Events wait while another process writes, within the limit."""

    def test_recording_is_abandoned_after_the_limit(self, made, running):
        """All of its sessions are abandoned with one error, and are not written later."""
        told_of = []
        with History.open(made) as history:
            recording = history.recording()
            holder = running(WRITES, made)
            for name in ("s1", "s2", "s3"):
                send(recording, session_events(name))

            began = time.monotonic()  # the start of the other process is no part of the wait
            with pytest.raises(HistoryError, match=r"waited 2\.5 s"):
                recording.flush(LockWait(told_of.append, seconds=2.5))
            assert time.monotonic() - began < 40
            end(holder)
            with history.recording() as other:
                send(other, session_events("s4"))
            assert [found.session for found in history.find()] == ["s4"]

        [sentence] = told_of
        assert f"another process has locked {made}" in sentence

    def test_events_are_stored_once_the_lock_is_released(self, made, running):
        """A released lock loses no event of the meantime."""
        with History.open(made) as history, history.recording() as recording:
            holder = running(WRITES, made)
            send(recording, session_events("s1"))
            assert anyio.run(recording.commit, LockWait(seconds=0.1)) == 0
            send(recording, session_events("s2"))
            end(holder)
            assert anyio.run(recording.commit, LockWait()) == session_events("s2")[-1].seq

            assert sorted(found.session for found in history.find()) == ["s1", "s2"]

    @pytest.mark.slow
    def test_waiting_for_a_locked_table_times_out(self, postgresql_url):
        """PostgreSQL has the same limit as a file."""
        told_of = []
        with History.open(postgresql_url) as history, History.open(postgresql_url) as other:
            recording = history.recording()
            with other.database.transaction():
                other.database.execute("LOCK TABLE sessions")
                send(recording, session_events("s1"))
                with pytest.raises(HistoryError, match=r"waited 2\.5 s"):
                    recording.flush(LockWait(told_of.append, seconds=2.5))
            send(recording, session_events("s2"))
            assert anyio.run(recording.commit, LockWait()) == session_events("s2")[-1].seq
            assert [found.session for found in history.find()] == ["s2"]
        assert len(told_of) == 1

    @pytest.mark.slow
    def test_closing_a_locked_history_times_out(self, made, running):
        """Closing has the same limit as opening."""
        with History.open(made) as history:
            running(WRITES, made)
            began = time.monotonic()
            send(history.recording(), session_events("s1"))

        assert 9 < time.monotonic() - began < 19


RECORDS = """
import anyio
from histories import stages
from witan.history import History
from witan.history.database import LockWait
history = History.open(sys.argv[1])
recording = history.recording()
[recording(event) for event in next(stages("s1"))]
anyio.run(recording.commit, LockWait())
print("held", flush=True)
sys.stdin.readline()
recording.flush()
history.close()
print("closed", flush=True)
sys.stdin.read()
"""

ELSEWHERE = f"""
import ctypes, socket, sys
assert ctypes.CDLL(None).unshare(0x04000000) == 0  # a machine's name of its own
socket.sethostname("elsewhere")
{RECORDS}
"""

NAMESAKE = f"""
import ctypes, os, sys
assert ctypes.CDLL(None).unshare(0x20000000) == 0  # numbers of processes of its own
if child := os.fork():
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
{RECORDS}
"""


def drop_connections(history):
    """Have the server end all connections but this one."""
    history.database.rows(
        "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
        " WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )


def record_opening(recording, session):
    """Record the beginning of a session, and wait until it is durable."""
    send(recording, next(stages(session)))
    anyio.run(recording.commit, LockWait())


def beating(history):
    """The processes with a heartbeat."""
    return [process for (process,) in history.database.rows("SELECT process FROM heartbeats")]


def refuse_claim(history, process):
    """The session of this process is listed as running, and cannot be claimed."""
    assert [found.status for found in history.find()] == ["running"]
    with pytest.raises(HistoryError, match=f"in process {process.pid} on elsewhere"):
        history.claim("s1")


class TestOtherMachines:
    """A server knows whether the process of a session lives, wherever it runs."""

    @pytest.fixture
    def elsewhere(self, postgresql_url, running):
        """A process of a machine of another name, which records session ``s1``."""
        unshare = shutil.which("unshare")
        if unshare is None or subprocess.run([unshare, "-u", "true"], check=False).returncode:  # noqa: S603
            pytest.skip("this user may not give a process a machine's name of its own")
        return running(ELSEWHERE, postgresql_url)

    def test_its_session_is_free_some_time_after_it_was_killed(self, postgresql_url, elsewhere):
        """Until then it is listed as running, and not taken over, whatever its connections do."""
        with History.open(postgresql_url) as history:
            refuse_claim(history, elsewhere)
            drop_connections(history)
            refuse_claim(history, elsewhere)
            elsewhere.kill()
            elsewhere.wait()
            refuse_claim(history, elsewhere)
            late = {"seconds": GRACE_SECONDS}
            history.database.execute("UPDATE heartbeats SET at_us = at_us - :seconds * 1e6", late)
            assert [found.status for found in history.find()] == ["interrupted"]
            assert history.claim("s1").status == "interrupted"

    @pytest.mark.slow
    def test_a_heartbeat_outlives_dropped_connections(self, postgresql_url, elsewhere):
        """For longer than the time of grace, which begins with the last one before a kill."""
        with History.open(postgresql_url) as history:
            deadline = time.monotonic() + GRACE_SECONDS + HEARTBEAT_SECONDS
            while time.monotonic() < deadline:
                drop_connections(history)
                refuse_claim(history, elsewhere)
                time.sleep(0.5)
            elsewhere.kill()
            elsewhere.wait()
            began = time.monotonic()
            [(age,)] = history.database.rows(
                "SELECT EXTRACT(EPOCH FROM clock_timestamp()) - at_us / 1e6 FROM heartbeats"
                " WHERE process <> :own",
                {"own": own_process()},
            )
            while history.find()[0].status == "running":
                time.sleep(0.05)
            took = time.monotonic() - began
            assert history.claim("s1").status == "interrupted"
        assert GRACE_SECONDS - 1 < float(age) + took <= GRACE_SECONDS + 15

    def test_closing_one_history_leaves_the_heartbeat_of_another(self, postgresql_url):
        """A process that has the history open twice beats as soon as it records again."""
        with History.open(postgresql_url) as history:
            with history.recording() as recording:
                record_opening(recording, "s1")
            with History.open(postgresql_url) as other, other.recording() as recording:
                record_opening(recording, "s2")
            with history.recording() as recording:
                record_opening(recording, "s3")
                assert beating(history) == [own_process()]

    def test_a_closed_history_needs_no_heartbeat(self, postgresql_url):
        """Nor do its sessions that nobody ended, or the one before the next."""
        with History.open(postgresql_url) as history:
            recording = history.recording()
            record_opening(recording, "s1")
            record_opening(recording, "s2")
            assert beating(history) == [own_process()]
        with History.open(postgresql_url) as history:
            assert beating(history) == []

    def test_a_machine_of_the_same_name_is_another(self, postgresql_url, running):
        """A copy of this machine, or a container, whose processes have other numbers."""
        unshare = shutil.which("unshare")
        command = [unshare, "-p", "-f", "true"]
        if unshare is None or subprocess.run(command, check=False).returncode:  # noqa: S603
            pytest.skip("this user may not give processes numbers of their own")
        namesake = running(NAMESAKE, postgresql_url)
        with History.open(postgresql_url) as history:
            with pytest.raises(HistoryError, match=f"in process 1 on {gethostname()}"):
                history.claim("s1")
            namesake.stdin.write("\n")
            namesake.stdin.flush()
            assert namesake.stdout.readline() == "closed\n"
            assert history.claim("s1").status == "interrupted"

    def test_its_session_is_free_once_its_history_is_closed(self, postgresql_url, elsewhere):
        """The process itself may go on."""
        elsewhere.stdin.write("\n")
        elsewhere.stdin.flush()
        assert elsewhere.stdout.readline() == "closed\n"

        with History.open(postgresql_url) as history:
            assert history.claim("s1").status == "interrupted"
            assert elsewhere.poll() is None
