"""What is acknowledged is on the disk by then: the order of the system calls says so."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

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
    """The system calls of a process that keeps a session: name, file descriptor, path."""
    program = shutil.which("strace")
    if program is None:
        pytest.skip("there is no strace")
    trace = file.parent / "trace"
    done = subprocess.run(  # noqa: S603 - our own interpreter on our own lines
        [
            *(program, "-f", "-y", "-o", trace, "-e", f"trace={','.join(WRITES + SYNCS)}"),
            *(sys.executable, "-c", CODE, str(file)),
        ],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])},
        capture_output=True,
        text=True,
        check=False,
    )
    if "ptrace" in done.stderr:
        pytest.skip("no process may be traced here")
    assert done.returncode == 0, done.stderr
    lines = trace.read_text(encoding="utf-8", errors="replace").splitlines()
    return [found.groups() for line in lines if (found := CALL.search(line))]


def test_nothing_written_waits_to_be_synced_when_a_stage_is_acknowledged(file, calls):
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
