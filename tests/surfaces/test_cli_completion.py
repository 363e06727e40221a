"""Completion of commands and options, in the shells themselves."""
# ruff: noqa: S603 - every process started here is a shell of this machine

import os
import re
import select
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from processes import run_program

CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[=>]|\r|\x08")
BIN = Path(sys.executable).parent


def shell(name):
    """Find a shell, or skip."""
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed")
    return found


def environment(tmp_path):
    """An environment in which `witan` is on the path, and no file of the user is read."""
    path = f"{BIN}{os.pathsep}{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "HOME": str(tmp_path), "TERM": "xterm"}


def output_of(arguments, tmp_path):
    done = run_program(*arguments, env=environment(tmp_path), check=True)
    return done.stdout


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        (["witan", "ta"], ["tally"]),
        (["witan", "ask", "--mode", "v"], ["verdict"]),
    ],
)
class TestWords:
    """Completions of a partial word."""

    def test_bash(self, tmp_path, typed, offered):
        """With the function that the page says to load."""
        words = " ".join(typed)
        script = (
            'eval "$(_WITAN_COMPLETE=bash_source witan)"; '
            f"COMP_WORDS=({words}); COMP_CWORD={len(typed) - 1}; "
            '_witan_completion witan; printf "%s\\n" "${COMPREPLY[@]}"'
        )
        found = output_of([shell("bash"), "--norc", "-c", script], tmp_path)

        assert found.split() == offered

    def test_fish(self, tmp_path, typed, offered):
        """By its own command for completions."""
        script = f"_WITAN_COMPLETE=fish_source witan | source; complete -C '{' '.join(typed)}'"
        found = output_of([shell("fish"), "--no-config", "-c", script], tmp_path)

        assert [line.split("\t")[0] for line in found.splitlines()] == offered

    @pytest.mark.skipif(os.name == "nt", reason="Windows has no pseudo-terminals")
    def test_zsh(self, tmp_path, typed, offered):
        """On a terminal, after Tab."""
        [word] = offered
        rest = word.removeprefix(typed[-1])

        with ZshTerminal(shell("zsh"), tmp_path) as terminal:
            terminal.write("autoload -Uz compinit && compinit -u -D; ")
            terminal.write('eval "$(_WITAN_COMPLETE=zsh_source witan)"; echo load""ed\n')
            terminal.wait_for("loaded")
            terminal.write(f"{' '.join(typed)}\t")
            terminal.wait_for(f"{typed[-1]}{rest} ")


class ZshTerminal:
    """A Z shell on a pseudo-terminal."""

    def __init__(self, zsh, folder):
        import pty

        self.ours, theirs = pty.openpty()
        self.process = subprocess.Popen(
            [zsh, "-f", "-i"], stdin=theirs, stdout=theirs, stderr=theirs, env=environment(folder)
        )
        os.close(theirs)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait(timeout=60)
        os.close(self.ours)

    def write(self, text):
        """Type a text."""
        os.write(self.ours, text.encode())

    def wait_for(self, words):
        """Read the terminal until it shows these words, without control sequences."""
        said = ""
        while words not in CONTROL.sub("", said):
            readable, _, _ = select.select([self.ours], [], [], 30)
            assert readable, said
            said += os.read(self.ours, 4096).decode(errors="replace")
