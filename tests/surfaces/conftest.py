"""The command line as a test sees it: arguments in; exit status, stdout and stderr out."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from configured import Place
from witan.surfaces.cli.app import main


class Said(NamedTuple):
    """What one run of the command said."""

    status: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        """The lines of standard output."""
        return self.out.splitlines()

    @property
    def json(self) -> Any:
        """Standard output as JSON."""
        return json.loads(self.out)


@pytest.fixture
def witan(capsys) -> Callable[..., Said]:
    """Run the command line in this process."""

    def run(*args: object) -> Said:
        status = main([str(arg) for arg in args])
        captured = capsys.readouterr()
        return Said(int(status), captured.out, captured.err)

    return run


@pytest.fixture
def write(tmp_path) -> Callable[..., Path]:
    """Write ballots, one mapping or line each, to a file."""

    def to(name: str, *ballots: dict[str, Any] | str) -> Path:
        lines = [b if isinstance(b, str) else json.dumps(b) for b in ballots]
        path = tmp_path / name
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        return path

    return to


@pytest.fixture
def council(write) -> Path:
    """One session: x leads y leads z on four ballots without grades, and one seat timed out."""
    return write(
        "council.jsonl",
        {"session": "q1", "reviewer": "r1", "ranking": ["x", "y", "z"]},
        {"session": "q1", "reviewer": "r2", "ranking": ["x", "y", "z"]},
        {"session": "q1", "reviewer": "r3", "ranking": ["x", "y", "z"]},
        {"session": "q1", "reviewer": "r4", "ranking": ["y", "x", "z"]},
        {"session": "q1", "reviewer": "r5", "abstained": True, "reason": "timed out"},
    )


@pytest.fixture
def sessions(write) -> Path:
    """Twelve sessions: x leads ten of them clearly, and x and y share two."""
    clear = [
        {"session": f"q{k}", "reviewer": f"r{r}", "ranking": ["x", "y", "z"]}
        for k in range(1, 11)
        for r in range(1, 9)
    ]
    shared = [
        {"session": f"q{k}", "reviewer": f"r{r}", "ranking": order}
        for k in (11, 12)
        for r, order in enumerate((["x", "y", "z"], ["y", "x", "z"]) * 4, 1)
    ]
    return write("sessions.jsonl", *clear, *shared)


@pytest.fixture
def place(tmp_path) -> Place:
    """A project of somebody's, and a home of the user's, both without a configuration."""
    project = tmp_path / "project"
    project.mkdir()
    return Place(project, tmp_path / "home" / "witan" / "witan.toml")
