"""The command as a process: start-up, pipes, terminals, signals."""
# ruff: noqa: S603 - every process started here is our own command

import json
import os
import signal
import subprocess
import sys
import time
import tomllib
from array import array
from pathlib import Path
from typing import IO

import pytest

from histories import record_sessions
from processes import run_python, run_witan
from witan.history import History
from witan.surfaces.cli.options import Status
from witan.surfaces.cli.session import SessionOutput, run_session

HEAVY = ("numpy", "scipy", "rich", "pydantic", "pyarrow")
"""Packages that asking for help must not wait for."""

WITAN = [sys.executable, "-m", "witan"]


def loaded_after(*arguments: object) -> set[str]:
    """Modules loaded after running the command."""
    program = (
        "import sys\n"
        "from witan.surfaces.cli.app import main\n"
        "status = main(sys.argv[1:])\n"
        "sys.stderr.write('\\n' + ' '.join(sys.modules))\n"
        "sys.exit(status)\n"
    )
    done = run_python(program, *arguments, check=True)
    return set(done.stderr.splitlines()[-1].split())


def unread(pipe: IO[bytes]) -> int:
    """The number of unread bytes in a pipe."""
    import fcntl
    import termios

    left = array("i", [0])
    fcntl.ioctl(pipe, termios.FIONREAD, left)
    return left[0]


class TestStart:
    """Start-up imports, and early interrupts."""

    @pytest.mark.skipif(os.name == "nt", reason="Windows sends no signals to a process")
    @pytest.mark.parametrize("module", ["click.globals", "witan.surfaces.cli.app"])
    def test_ctrl_c_during_imports_is_quiet(self, module):
        """The status is that of an interrupt, without a traceback."""
        with subprocess.Popen(
            [sys.executable, "-X", "importtime", *WITAN[1:], "ask"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            imported = (line.rpartition("|")[2].strip() for line in process.stderr)
            assert module in imported
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=60)

        said = [line for line in err.splitlines() if not line.startswith("import time:")]
        assert (process.returncode, out, "".join(said)) == (130, "", "")

    @pytest.mark.parametrize("module", ["witan.surfaces.cli.app", "witan.surfaces.cli.ask"])
    def test_ctrl_c_inside_a_class_that_is_made_has_the_same_status(self, module, tmp_path):
        """Methods of a data class are source text, whose interrupt Python remembers."""
        (tmp_path / "sitecustomize.py").write_text(
            "import sys\n"
            "class Finder:\n"
            "    def find_spec(self, name, *_):\n"
            f"        if name == {module!r}: exec('raise KeyboardInterrupt')\n"
            "sys.meta_path.insert(0, Finder())\n"
        )
        path = os.pathsep.join(filter(None, [str(tmp_path), os.environ.get("PYTHONPATH")]))
        done = run_witan("ask", "Is it so?", env=os.environ | {"PYTHONPATH": path})

        assert (done.returncode, done.stdout, done.stderr.strip()) == (130, "", "")

    def test_the_installed_command_handles_it_too(self):
        """The script ``witan`` imports nothing before."""
        project = Path(__file__).parents[2] / "pyproject.toml"
        with project.open("rb") as file:
            scripts = tomllib.load(file)["project"]["scripts"]

        assert scripts["witan"] == "witan.__main__:main"

    @pytest.mark.parametrize(
        "arguments",
        [["--help"], ["--version"], *([name, "--help"] for name in ("tally", "explain"))],
    )
    def test_help_loads_nothing_heavy(self, arguments):
        """Help and version come without numpy, scipy, rich and pydantic."""
        loaded = loaded_after(*arguments)

        assert "witan.surfaces.cli.app" in loaded
        assert not loaded.intersection(HEAVY)

    def test_showing_a_session_loads_nothing_that_calls_models_or_votes(self, tmp_path):
        """What is stored is read and worded: no draw is made, and no call."""
        place = tmp_path / "history.sqlite"
        with History.open(place) as history:
            record_sessions(history, "q1")

        loaded = loaded_after("show", "q1", "--history", place)

        unneeded = {"witan.deliberation.calls", "witan.history.ballots", "numpy.ma", "anyio.abc"}
        assert "witan.surfaces.report.session" in loaded
        assert not loaded & unneeded

    @pytest.mark.parametrize(
        "arguments",
        [
            ["ask", "Is a hash map always faster?", "--mirrored"],
            ["ask", "Is a hash map always faster?", "--pairs", "3", "--debate-rounds", "1"],
            ["batch", "rows.jsonl"],
        ],
    )
    def test_sheets_are_drawn_without_numpys_generators(self, arguments, tmp_path, monkeypatch):
        """Only ``--spend adaptive`` loads them, to simulate how many reviews it takes."""
        monkeypatch.chdir(tmp_path)
        Path("rows.jsonl").write_text('{"question": "Is a hash map always faster?"}\n')
        scripts = Path(__file__).parents[2] / "examples" / "hash-map"
        seats = [
            each
            for name in ("ada", "bob", "cyd")
            for each in ("--member", f"{name}=script:{scripts / name}.toml")
        ]
        chairman = ["--chairman", f"script:{scripts / 'dee'}.toml"]

        loaded = loaded_after(*arguments, *seats, *chairman, "--history", "history.sqlite")

        assert "witan.core.blinding" in loaded
        assert "numpy.random" not in loaded

    def test_a_tally_imports_only_what_it_needs(self, council):
        """JSON Lines into a pipe need no other readers, no rich and no fitting."""
        loaded = loaded_after("tally", council)

        unneeded = {
            "pyarrow", "zstandard", "pydantic", "rich", "scipy.stats", "scipy.optimize",
            "scipy.special",
        }  # fmt: skip
        assert "numpy" in loaded
        assert not loaded.intersection(unneeded)

    def test_the_version_is_printed(self):
        """``--version`` prints name and version."""
        import witan

        done = run_witan("--version", check=True)

        assert done.stdout == f"witan {witan.__version__}\n"


class TestPipes:
    """The command in pipelines."""

    def test_standard_input_is_a_file(self, council):
        """``-`` reads the ballots from standard input and counts the same."""
        command = [*WITAN, "tally"]
        piped = subprocess.run(
            [*command, "-"], input=council.read_bytes(), capture_output=True, check=True
        )

        assert piped.stdout == subprocess.check_output([*command, str(council)])

    @pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGPIPE")
    def test_a_closed_pipe_is_no_error(self, tmp_path):
        """After ``head`` the command stops silently."""
        path = tmp_path / "many.jsonl"
        with path.open("w") as file:
            for k in range(3_000):
                ballot = {"session": f"q{k}", "reviewer": "r", "ranking": ["x", "y", "z"]}
                file.write(json.dumps(ballot) + "\n")

        with subprocess.Popen(
            [*WITAN, "tally", str(path), "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
        ) as process:
            process.stdout.readline()
            process.stdout.close()
            said = process.stderr.read()

        assert said == b""
        assert process.returncode == 128 + signal.SIGPIPE

    @pytest.mark.skipif(os.name == "nt", reason="Windows sends no SIGINT to a process")
    def test_an_interrupt_is_quiet(self):
        """Ctrl-C while waiting for input ends with 130 and no traceback."""
        with subprocess.Popen(
            [*WITAN, "tally", "-"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        ) as process:
            process.stdin.write(b'{"reviewer": "r", "ranking": ["x", "y"]}\n')
            process.stdin.flush()
            while unread(process.stdin):  # until it waits for the next line
                assert process.poll() is None
                time.sleep(0.01)
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=60)

        assert process.returncode == 130
        assert out.strip() == b""
        assert err.strip() == b""

    def test_a_poor_encoding_loses_nothing(self, write):
        """With Latin-1, other letters are escaped and JSON stays valid."""
        path = write("names.jsonl", {"reviewer": "r", "ranking": ["modł", "y"]})
        poor = {**os.environ, "PYTHONIOENCODING": "latin-1", "PYTHONUTF8": "0"}

        text = subprocess.check_output([*WITAN, "tally", str(path)], env=poor)
        found = subprocess.check_output([*WITAN, "tally", str(path), "--json"], env=poor)

        assert b"mod\\u0142" in text
        assert json.loads(found)["sessions"][0]["leaders"] == ["modł"]


class TestEarlyInterrupt:
    """Ctrl-C before there is a session."""

    def test_an_early_interrupt_is_one_sentence(self, capsys):
        """Nothing is stored, and the status is that of an interrupt."""

        def prepare(_):
            raise KeyboardInterrupt

        status = run_session(SessionOutput(quiet=True), lambda _: None, prepare)

        assert status == Status.INTERRUPTED
        [line] = capsys.readouterr().err.splitlines()
        assert line.startswith("interrupted ")


@pytest.mark.skipif(os.name == "nt", reason="Windows has no pseudo-terminals")
class TestTerminal:
    """On a terminal the text is wrapped and may be coloured."""

    @pytest.fixture
    def on_terminal(self):
        """Run the command on a pseudo-terminal of some width; return what it showed."""
        import fcntl
        import pty
        import struct
        import termios

        def run(*arguments: object, columns: int = 60, **environment: str) -> str:
            ours, theirs = pty.openpty()
            fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
            kept = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "NO_COLOR")}
            process = subprocess.Popen(
                [*WITAN, *map(str, arguments)],
                stdin=subprocess.DEVNULL,
                stdout=theirs,
                stderr=theirs,
                env={**kept, "TERM": "xterm", **environment},
            )
            os.close(theirs)
            shown = b""
            while True:
                try:
                    piece = os.read(ours, 65536)
                except OSError:
                    break
                if not piece:
                    break
                shown += piece
            os.close(ours)
            assert process.wait(timeout=60) == 0
            return shown.decode().replace("\r\n", "\n")

        return run

    def test_it_fits_the_width(self, on_terminal, council):
        """At 60 columns no line is longer, and what was left out is named."""
        shown = on_terminal("tally", council, "--rho", "none", NO_COLOR="1")

        assert max(len(line) for line in shown.splitlines()) <= 60
        assert "(too narrow to show: 95% interval" in shown

    def test_no_color_is_honoured(self, on_terminal, council):
        """With NO_COLOR set nothing is coloured; without, something is."""
        assert "\x1b[" not in on_terminal("tally", council, "--rho", "none", NO_COLOR="1")
        assert "\x1b[1m" in on_terminal("tally", council)

    def test_tiers_are_boxed_by_a_line(self, on_terminal, council):
        """A terminal shows the line between tiers in box characters."""
        assert "─────" in on_terminal("tally", council, "--rho", "none", NO_COLOR="1")
