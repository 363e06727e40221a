"""Hostile text in ballots, scripts and sessions steers no terminal, on any surface."""

import json
import os
import pty
import re
import shutil
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from types import SimpleNamespace

import pytest

from scripts import write_script
from witan.surfaces.cli.app import main

STEERING = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff]"
)
"""Characters that move a cursor, write a clipboard, turn a line around or hide in a name."""

STYLE = re.compile(r"\x1b\[(?:0|1|2|33)m")
"""The styles that Witan itself uses on a terminal."""

FORGED = "witan: forged"

NASTY = f"\x1b]52;c;aGk=\x07\x9b31m\x08\u202e\u2066\u200b\x7f\u2028\n{FORGED}\r\x1b[2J"


def nasty(name: str) -> str:
    return f"{name}{NASTY}{name}"


def steers_nothing(*texts: str) -> None:
    for text in texts:
        assert not STEERING.findall(text)


def check(*texts: str) -> None:
    steers_nothing(*texts)
    for text in texts:
        assert not [line for line in text.splitlines() if line.startswith(FORGED)]


@pytest.fixture
def ballots(write) -> Path:
    """Ballots of which every text is hostile."""
    names = [nasty(name) for name in "abc"]
    return write(
        "ballots.jsonl",
        *(
            {
                "session": nasty("q"),
                "reviewer": nasty(reviewer),
                "grades": {
                    name: {nasty("clarity"): grade}
                    for name, grade in zip(names, grades, strict=True)
                },
                "category": nasty("law"),
                "question": nasty("why"),
                "notes": nasty("because"),
            }
            for reviewer, grades in [("x", (9, 5, 2)), ("y", (8, 7, 3)), ("z", (9, 4, 6))]
        ),
        {
            "session": nasty("q"),
            "reviewer": nasty("w"),
            "abstained": True,
            "reason": nasty("tired"),
            "candidates": names,
        },
        {"reviewer": nasty("broken"), "ranking": nasty("c"), NASTY: NASTY},
    )


COUNTS = [
    ("tally",),
    ("tally", "--json"),
    ("tally", "--per-session"),
    ("compare",),
    ("compare", "--rules", "borda,schulze"),
    ("compare", "--json"),
    ("explain", "--session", nasty("q")),
    ("explain", "--session", "nobody"),
    ("explain", "--json", "--session", nasty("q")),
    ("tally", "--rule", NASTY),
    ("tally", f"--{NASTY}"),
    ("tally", "--param", NASTY),
    ("tally", "--column", f"reviewer={NASTY}"),
    ("tally", "--reference", NASTY),
]


class TestBallots:
    """Files of ballots that somebody sent."""

    @pytest.mark.parametrize("command", COUNTS)
    def test_counting_prints_no_control_character(self, witan, ballots, command):
        """Names, notes, reasons and arguments are escaped in tables, sentences and errors."""
        said = witan(*command, ballots)

        check(said.out, said.err)

    @pytest.mark.parametrize("kind", ["svg", "html"])
    def test_charts_hold_none(self, witan, ballots, tmp_path, kind):
        """Names, titles and notes of a chart are escaped in pictures and pages."""
        files = [tmp_path / f"{name}.{kind}" for name in ("standings", "matchups", "rules")]

        witan("tally", ballots, "--plot", files[0], "--matchups", files[1])
        witan("compare", ballots, "--plot", files[2])

        for file in files:
            check(file.read_text(encoding="utf-8"))

    @pytest.mark.parametrize("command", [(NASTY,), ("tally",), ("tally", "missing" + NASTY)])
    def test_errors_print_none(self, witan, command):
        """Commands and files that do not exist are named, escaped."""
        said = witan(*command)

        assert said.status == 2
        check(said.out, said.err)

    def test_a_terminal_gets_our_styles_alone(self, ballots):
        """On a terminal nothing but bold, dim and colour passes."""
        for command in (["compare"], ["tally"], ["explain", "--session", nasty("q")]):
            text = on_a_terminal(*command, str(ballots))

            assert "\x1b[1m" in text or "\x1b[2m" in text
            check(STYLE.sub("", text).replace("\r\n", "\n"))


CRASH = """
import logging, sys
from witan.surfaces.cli.app import main

main(["--version"])
logging.getLogger("elsewhere").warning("told %s", sys.argv[1])
raise RuntimeError(sys.argv[1])
"""


def test_warnings_of_libraries_and_tracebacks_are_escaped_too():
    """What nobody foresaw goes through the same gate: one line a warning, a traceback as text."""
    run = subprocess.run(  # noqa: S603 - our own interpreter
        [sys.executable, "-c", CRASH, NASTY], capture_output=True, check=False
    )

    err = run.stderr.decode("utf-8")
    steers_nothing(err)
    assert err.startswith("told \\x1b]52;")
    assert f"\\n{FORGED}" in err.splitlines()[0]
    assert "RuntimeError" in err


LINE = NASTY.replace("\n", "")
"""Hostile text as it may stand in the name of a file or in a cell."""

AFTERWARDS = [
    ("sessions",),
    ("sessions", "--json"),
    ("show", "last"),
    ("show", "last", "--json"),
    ("show", "last", "--events"),
    ("show", NASTY),
    ("recount", "last"),
    ("recount", "last", "--rule", NASTY),
    ("recount", "last", "--without", NASTY),
    ("retry", "last", NASTY),
    ("resume", NASTY),
    ("rejudge", NASTY),
    ("vote", "last", "--show", "--as", NASTY),
    ("vote", "last", "--as", NASTY, "--ranking", NASTY),
    ("forget", NASTY),
    ("leaderboard", "--min-sessions", "1"),
    ("leaderboard", "--category", NASTY),
    ("leaderboard", "--json"),
    ("audit",),
    ("audit", "--json"),
    ("audit", "--reviewer", NASTY),
    ("audit", "--criterion", NASTY),
    ("export",),
    ("export", "--kind", "ballots", "--all"),
    ("explain", "last"),
    ("compare", "last"),
    ("tally", "last"),
    ("plan", NASTY, "--member", f"openai:{NASTY}"),
    ("plan", "Which?", "--member", f"script:{LINE}"),
    ("ask", NASTY, "--member", NASTY),
    ("ask", "Which?", "--file", NASTY),
    ("ask", "Which?", "--rubric", NASTY),
    ("doctor", "--offline"),
    ("rules", NASTY),
    ("rubrics", NASTY),
    ("mcp", "--print-config", NASTY),
    ("serve", "--listen", NASTY),
    ("import", NASTY),
    ("import", "--column", NASTY, NASTY),
]


@pytest.fixture(scope="module")
def held_once(tmp_path_factory):
    """The folder of a session that was held there, and what it printed."""
    folder = tmp_path_factory.mktemp("held")
    seats = []
    for name in "abc":
        answer = {"text": f"{name} {NASTY} says so"}
        review = {"prefers": ["a ", "b ", "c "]}
        file = folder / f"{name}{LINE}.toml"
        write_script(file, answer=[answer], review=[review], synthesis=[answer])
        seats += ["--member", f"script:{file}"]
    files = folder / f"note{LINE}.txt"
    files.write_text(NASTY, encoding="utf-8")
    asked = ["ask", nasty("Which?"), *seats, "--file", str(files), "--category", nasty("law")]
    with (
        pytest.MonkeyPatch.context() as patch,
        redirect_stdout(StringIO()) as out,
        redirect_stderr(StringIO()) as err,
    ):
        patch.setenv("WITAN_HISTORY", str(folder / "history.db"))
        patch.setenv("XDG_CONFIG_HOME", str(folder / "config"))
        patch.chdir(folder)
        status = main(asked)
    return folder, SimpleNamespace(status=status, out=out.getvalue(), err=err.getvalue())


class TestSessions:
    """Members whose names, files and replies are hostile, and a configuration that is."""

    @pytest.fixture(autouse=True)
    def _history(self, tmp_path, monkeypatch):
        monkeypatch.setenv("WITAN_HISTORY", str(tmp_path / "history.db"))
        monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
        monkeypatch.chdir(tmp_path)

    @pytest.fixture
    def held(self, held_once, tmp_path):
        """A session that is held and kept, and what it printed."""
        folder, said = held_once
        for file in folder.glob("history.db*"):
            shutil.copy(file, tmp_path)
        return said

    def test_asking_prints_no_control_character(self, held):
        """The answer, the legend and the trust line are escaped."""
        assert held.status in (0, 2), held.err
        steers_nothing(held.out)
        check(held.err)

    @pytest.mark.parametrize("command", AFTERWARDS, ids=lambda command: " ".join(command)[:20])
    def test_no_command_prints_one(self, witan, held, command):
        """Whatever is asked of the history afterwards, and whatever is misspelt."""
        assert held.status == 0

        said = witan(*command)

        steers_nothing(said.out)
        check(said.err)

    def test_no_exported_file_holds_one(self, witan, held, tmp_path):
        """Pages, ballots and sessions that are exported are as safe."""
        assert held.status == 0
        files = {
            tmp_path / "sessions.jsonl": ("export", "--kind", "sessions"),
            tmp_path / "ballots.jsonl": ("export", "--kind", "ballots", "--all"),
            tmp_path / "ballots.csv": ("export", "--all"),
            tmp_path / "battles.jsonl": ("export", "--kind", "battles", "--all"),
            tmp_path / "page.html": ("show", "last"),
        }

        for file, command in files.items():
            said = witan(*command, "--html" if file.suffix == ".html" else "-o", file)
            assert said.status == 0, said.err
            check(said.err)
            steers_nothing(file.read_text(encoding="utf-8").replace("\r\n", "\n"))

    @pytest.mark.parametrize(
        "line",
        [
            "members = [{0}]",
            "{0} = 1",
            "[profiles.{0}]\nmembers = [{0}]",
            "[history]\nurl = {0}",
            "rubric = {0}",
            "[aliases]\n{0} = {0}",
            "chairman = {0}",
            "[{0}",
        ],
    )
    def test_a_configuration_prints_none(self, witan, tmp_path, line):
        """Settings, profiles and addresses of a file that somebody sent are escaped."""
        text = line.format(json.dumps(NASTY))
        (tmp_path / "witan.toml").write_text(text, encoding="utf-8")

        for command in (
            ["doctor", "--offline"],
            ["ask", "Which?"],
            ["plan", "Which?"],
            ["sessions"],
        ):
            said = witan(*command)
            steers_nothing(said.out)
            check(said.err)


def on_a_terminal(*arguments: str) -> str:
    """All that a command writes to a terminal that is its standard output and error."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "witan", *arguments]
    with subprocess.Popen(  # noqa: S603 - our own interpreter
        command, stdin=theirs, stdout=theirs, stderr=theirs, env={**os.environ, "TERM": "xterm"}
    ):
        os.close(theirs)
        pieces = []
        while True:
            try:
                piece = os.read(ours, 65536)
            except OSError:  # the other end is closed
                break
            if not piece:
                break
            pieces.append(piece)
    os.close(ours)
    return b"".join(pieces).decode()
