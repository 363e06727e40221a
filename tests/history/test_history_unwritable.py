"""A history where nothing can be written is read, and nothing is made beside it."""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from histories import told
from witan.errors import HistoryError
from witan.history import History

READS = """
import os, sys
from witan.history import History
from witan.history.sqlite import (library_version)
library_version()
if sys.argv[2] != "0":
    os.setgroups([])
    os.setgid(int(sys.argv[2]))
    os.setuid(int(sys.argv[2]))
try:
    with History.open(sys.argv[1], reading=True) as history:
        print([found.session for found in history.find()], history.read_only)
except Exception as error:
    print(type(error).__name__, error)
"""

WRITES = READS.replace(", reading=True", "")


@pytest.fixture
def folder():
    """A folder that everybody may look into."""
    with tempfile.TemporaryDirectory() as name:
        path = Path(name)
        path.chmod(0o755)
        yield path
        path.chmod(0o755)


def fill(file):
    with History.open(file) as history, history.recording() as recording:
        for event in told("s1"):
            recording(event)


def said_by(code, file, before=()):
    """What a program says to whom the rights of the file are no formality."""
    user = 65534 if os.geteuid() == 0 and not before else 0
    done = subprocess.run(  # noqa: S603 - our own interpreter on our own lines
        [*before, sys.executable, "-c", code, str(file), str(user)],
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout.strip() or done.stderr


def names(folder):
    return sorted(path.name for path in folder.iterdir())


class TestRights:
    """What the file and its folder allow."""

    def test_a_folder_that_refuses_writing(self, folder):
        """A file in it is read as it is, and the folder stays as it is."""
        file = folder / "history.sqlite"
        fill(file)
        file.chmod(0o644)
        (folder / "history.sqlite.lock").unlink()
        folder.chmod(0o555)

        assert said_by(READS, file) == "['s1'] True"
        assert names(folder) == ["history.sqlite"]

    def test_a_file_that_nobody_may_write(self, folder):
        """A backup is read in a folder that may be written; nothing is laid beside it."""
        fill(folder / "history.sqlite")
        copy = folder / "backups" / "monday.sqlite"
        copy.parent.mkdir()
        copy.parent.chmod(0o777)
        shutil.copy(folder / "history.sqlite", copy)
        copy.chmod(0o444)

        assert said_by(READS, copy) == "['s1'] True"
        assert names(copy.parent) == ["monday.sqlite"]

    def test_what_stands_in_its_log_alone_is_not_passed_over(self, folder):
        """Without the right to work the log in, the file is refused: it would say something old."""
        file = folder / "history.sqlite"
        with History.open(file) as history, history.recording() as recording:
            if history.journal != "wal":
                pytest.skip("this SQLite keeps no log beside the file")
            for event in told("s1"):
                recording(event)
            recording.flush()
            copy = folder / "copy"
            copy.mkdir()
            for suffix in ("", "-wal"):
                shutil.copy(f"{file}{suffix}", copy)
        for path in copy.iterdir():
            path.chmod(0o644)
        copy.chmod(0o555)

        said = said_by(READS, copy / file.name)
        copy.chmod(0o755)

        assert said.startswith("HistoryError")
        assert "copy it, and what lies beside it, to a folder that you may write" in said

    def test_who_wants_to_write_is_told(self, folder):
        """To record in it is refused with a sentence."""
        file = folder / "history.sqlite"
        fill(file)
        file.chmod(0o644)
        folder.chmod(0o555)

        said = said_by(WRITES, file)

        assert said.startswith("HistoryError")
        assert "cannot be written" in said

    def test_an_earlier_version_is_not_migrated(self, folder):
        """It is said what to do with a history that would have to be migrated first."""
        file = folder / "history.sqlite"
        fill(file)
        with History.open(file) as history:
            history.database.execute("DELETE FROM migrations")
        file.chmod(0o444)
        folder.chmod(0o555)

        assert "copy it to a place that you may write" in said_by(READS, file)


def test_a_file_system_that_refuses_writing(folder):
    """On a disk that is mounted to be read only, even root reads it, and only reads."""
    script = 'mount --bind "$1" "$1" && mount -o remount,ro,bind "$1" && shift && exec "$@"'
    bind = ["unshare", "-m", "sh", "-c", script, "sh", str(folder)]
    if shutil.which("unshare") is None:
        pytest.skip("there is no unshare here")
    tried = subprocess.run(  # noqa: S603 - of our own making
        [*bind, "true"], capture_output=True, check=False
    )
    if tried.returncode:
        pytest.skip("nothing can be mounted here")
    file = folder / "history.sqlite"
    fill(file)

    assert said_by(READS, file, bind) == "['s1'] True"
    assert "cannot be written" in said_by(WRITES, file, bind)


FILLED = """
cd "$1" && mount -t tmpfs -o size=2m tmpfs full && cp -p history.sqlite* full/
cat /dev/zero > full/fill 2> /dev/null
shift && exec "$@"
"""


def test_a_full_disk(folder):
    """What a file says by itself is read where nothing more fits; a log beside it needs room."""
    if shutil.which("unshare") is None:
        pytest.skip("there is no unshare here")
    (folder / "full").mkdir()
    file = folder / "history.sqlite"
    fill(file)
    filled = ["unshare", "-m", "sh", "-c", FILLED, "sh", str(folder)]
    tried = subprocess.run(  # noqa: S603 - of our own making
        [*filled, "true"], capture_output=True, check=False
    )
    if tried.returncode:
        pytest.skip("nothing can be mounted here")

    with History.open(file, reading=True) as history:
        if history.journal != "wal":
            pytest.skip("this SQLite lays nothing beside a file to read it")
    whole = said_by(READS, folder / "full" / file.name, filled)
    wanted = said_by(WRITES, folder / "full" / file.name, filled)
    with History.open(file) as history, history.recording() as recording:
        for event in told("s2"):
            recording(event)
        recording.flush()
        (folder / "history.sqlite-shm").rename(folder / "aside")
        logged = said_by(READS, folder / "full" / file.name, filled)
        (folder / "aside").rename(folder / "history.sqlite-shm")

    assert whole == "['s1'] True"
    for said in (wanted, logged):
        assert "the disk is full; free some space, then try again" in said


class TestReadingOnly:
    """Who only reads makes nothing."""

    def test_what_is_not_there_is_not_made(self, file):
        """A place without a history stays one."""
        with pytest.raises(HistoryError, match="there is no history yet"):
            History.open(file, reading=True)

        assert not file.parent.exists() or names(file.parent) == []

    def test_an_empty_file_stays_empty(self, file):
        """A file without a byte holds no history yet, and is not made one by a reader."""
        file.touch()

        with pytest.raises(HistoryError, match="no history yet"):
            History.open(file, reading=True)

        assert file.stat().st_size == 0

    def test_what_can_be_written_is_opened_as_ever(self, file):
        """The history of a reader that may write can be written, and caches sums."""
        fill(file)

        with History.open(file, reading=True) as history:
            history.require_writable()
            assert not history.read_only
