"""Hostile text in ballots, scripts and sessions steers no terminal, on any surface."""

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest

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


def check(*texts: str) -> None:
    for text in texts:
        assert not STEERING.findall(text)
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

    @pytest.mark.parametrize("kind", ["svg", "html", "json"])
    def test_charts_hold_none(self, witan, ballots, tmp_path, kind):
        """Names, titles and notes of a chart are escaped in pictures, pages and specs."""
        pytest.importorskip("vl_convert")
        files = [tmp_path / f"{name}.{kind}" for name in ("standings", "matchups", "rules")]

        witan("tally", ballots, "--plot", files[0], "--matchups", files[1])
        witan("compare", ballots, "--plot", files[2])

        for file in files:
            text = file.read_text(encoding="utf-8")
            # A page holds the program that draws, which is not ours.
            check(text if kind != "html" else text[text.rindex("$schema") :])

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
