"""A session is stored though its output is lost."""

import json
import os
import subprocess
import sys

import pytest

from processes import run_program
from witan.surfaces.cli.options import Status


def demo(*options: object, **streams: object) -> subprocess.CompletedProcess[bytes]:
    """Run ``witan demo`` as a process of its own."""
    return subprocess.run(  # noqa: S603 - our own interpreter on our own command
        [sys.executable, "-m", "witan", "demo", *map(str, options)],
        check=False,
        timeout=60,
        **streams,
    )


def run_in_shell(line: str) -> subprocess.CompletedProcess[str]:
    """Run ``$WITAN`` in a shell, which alone can close a stream."""
    environment = {**os.environ, "WITAN": f"{sys.executable} -m witan"}
    return run_program("/bin/sh", "-c", line, env=environment)


class TestLostOutput:
    """A session ends when its reader is gone, and can be resumed."""

    def test_a_closed_pipe_ends_the_session_and_saves_it(self, tmp_path):
        """The record is written though the pipe closes after the first event."""
        record = tmp_path / "s.json"
        reading, writing = os.pipe()
        command = [sys.executable, "-m", "witan", "demo", "--events", "--no-history"]
        command += ["--save", str(record)]
        with subprocess.Popen(  # noqa: S603 - our own interpreter on our own command
            command, stdout=writing, stderr=subprocess.PIPE
        ) as process:
            os.close(writing)
            with open(reading, "rb") as pipe:  # noqa: PTH123 - a descriptor, no path
                pipe.readline()
            said = process.communicate(timeout=60)[1].decode()

        assert process.returncode == Status.PIPE_CLOSED
        assert json.loads(record.read_text())["status"] == "interrupted"
        assert f"resume with: witan resume {record}" in said

    @pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full here")  # noqa: PTH110
    def test_a_full_disk_is_one_sentence(self, tmp_path):
        """With the system's error and the location of the record."""
        record = tmp_path / "s.json"
        with open("/dev/full", "wb") as full:  # noqa: PTH123
            run = demo("--fast", "--events", "--save", record, stdout=full, stderr=subprocess.PIPE)

        said = run.stderr.decode()
        assert "Traceback" not in said
        assert "No space left on device" in said
        assert record.exists()

    @pytest.mark.parametrize("command", ["--version", "--help", "rules"])
    def test_help_into_a_closed_pipe_ends_with_141(self, command):
        """Without a message."""
        reading, writing = os.pipe()
        os.close(reading)
        run = subprocess.run(  # noqa: S603 - our own interpreter on our own command
            [sys.executable, "-m", "witan", command],
            check=False,
            timeout=60,
            stdout=writing,
            stderr=subprocess.PIPE,
        )
        os.close(writing)

        assert (run.returncode, run.stderr) == (Status.PIPE_CLOSED, b"")

    @pytest.mark.parametrize("command", ["--version", "rules"])
    def test_a_closed_standard_output_is_one_sentence(self, command):
        """The status says that nothing was written."""
        run = run_in_shell(f"$WITAN {command} >&-")

        assert run.returncode == Status.UNWRITTEN
        assert run.stderr == "witan: standard output cannot be written: Bad file descriptor\n"

    @pytest.mark.slow
    def test_every_simulated_event_is_marked(self):
        """In each line of the stream."""
        run = demo("--fast", "--events", stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)

        lines = [json.loads(line) for line in run.stdout.splitlines()]
        assert len(lines) > 100
        assert all(line["simulated"] is True for line in lines)

    @pytest.mark.parametrize(
        "closing",
        [*(pytest.param(one, marks=pytest.mark.slow) for one in ("<&-", "2>&-")), "<&- 2>&-"],
    )
    def test_a_closed_stream_loses_no_answer(self, closing):
        """Without standard input or standard error the text is on standard output."""
        run = run_in_shell(f"$WITAN demo --fast {closing}")

        assert run.returncode == Status.ANSWERED
        assert run.stdout.startswith("simulated | No, not UTC alone.")

    def test_a_question_needs_standard_input_or_an_argument(self):
        """The error says so."""
        seats = "--member script:a.toml --member script:b.toml"
        run = run_in_shell(f"$WITAN ask {seats} <&-")

        assert run.returncode == Status.MISUSED
        assert run.stderr == "witan: the question is empty\n"

    def test_a_record_keeps_its_permissions(self, tmp_path):
        record = tmp_path / "s.json"
        record.touch(mode=0o600)

        demo("--fast", "--save", record, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

        assert record.stat().st_mode & 0o777 == 0o600
        assert record.stat().st_size > 1000
