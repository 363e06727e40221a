"""The README is true for a new clone without any setup."""

import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import click
import pytest

from pages import ROOT, Block, Workspace, blocks
from witan.surfaces.cli.app import cli

README = "README.md"


@pytest.fixture
def clone(tmp_path, monkeypatch):
    """A copy of the files that the repository ships, in a home where nothing is set up."""
    listed = subprocess.run(
        ["git", "ls-files", "-z"],  # noqa: S607 - wherever it is
        cwd=ROOT, capture_output=True, check=False,
    )  # fmt: skip
    if listed.returncode:
        pytest.skip("not a git repository, so nobody says which files are shipped")
    folder = tmp_path / "clone"
    for name in filter(None, listed.stdout.decode().split("\0")):
        if (ROOT / name).is_file():
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, target)
    for name in [n for n in os.environ if n.startswith("WITAN_") or n.endswith("API_KEY")]:
        monkeypatch.delenv(name)
    for name in ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME"):
        monkeypatch.setenv(name, str(tmp_path / "home"))
    return folder


def shell_commands(page: Path) -> list[list[str]]:
    """The words of every `witan` command in the blocks that show no output."""
    lines = [line for block in blocks(page) if block.language == "sh" for line in parts(block)]
    words = [shlex.split(line, comments=True) for line in lines]
    return [each[1:] for each in words if each and each[0] == "witan"]


def parts(block: Block) -> list[str]:
    """The commands of a block, those of a pipe one by one."""
    return [part.strip() for line in block.text.splitlines() for part in line.split("| ")]


@pytest.mark.slow
def test_every_example_prints_what_is_shown(clone):
    """Console and Python blocks run in order, with the files of the clone alone."""
    workspace = Workspace(clone, in_process=False)

    problems = workspace.follow(clone / README)

    assert not problems, "\n\n".join(problems)
    assert workspace.n_examples >= 6


def test_every_command_that_needs_a_key_or_a_port_is_accepted(clone, monkeypatch):
    """Its options exist, and so do the files that it reads."""
    monkeypatch.chdir(clone)
    commands = shell_commands(clone / README)

    assert len(commands) >= 2
    for words in commands:
        command = cli.get_command(click.Context(cli), words[0])
        command.make_context(words[0], words[1:])
        for file in re.findall(r"examples/\S+", " ".join(words)):
            assert Path(file).is_file(), file


def test_every_named_file_exists(clone):
    """It is in `examples`, as the text says."""
    named = re.findall(r"examples/[\w./]+\w", (clone / README).read_text(encoding="utf-8"))

    assert named
    for name in named:
        assert (clone / name).exists(), name
