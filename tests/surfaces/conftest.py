"""Fixtures of the command line: arguments in; exit status, stdout and stderr out."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from recorded import place_of_its_own
from scripts import write_council
from witan.errors import ConfigError
from witan.service.config.configuration import Config, load_config
from witan.service.procedure_options import procedure_of
from witan.surfaces.cli.app import main


class ConfigFiles(NamedTuple):
    """The configuration files of a user's home and of a project."""

    project: Path
    own: Path

    def write(self, text: str) -> str:
        """Write the project's file; return its path."""
        path = self.project / "witan.toml"
        path.write_text(text, encoding="utf-8")
        return str(path)

    def write_own(self, text: str) -> str:
        """Write the user's file; return its path."""
        self.own.parent.mkdir(parents=True, exist_ok=True)
        self.own.write_text(text, encoding="utf-8")
        return str(self.own)

    def load(self, path=None, overrides=None, directory=None, **variables: str) -> Config:
        """Read the configuration under these variables."""
        environment = {"XDG_CONFIG_HOME": str(self.own.parents[1]), **variables}
        return load_config(environment, directory or self.project, path, overrides or {})

    def refusal(self, **given) -> str:
        """The error message for the configuration."""
        with pytest.raises(ConfigError) as caught:
            procedure_of(self.load(**given))
        assert "\n" not in str(caught.value)
        return str(caught.value)


class Output(NamedTuple):
    """The output of one run of the command."""

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
def witan(capsys) -> Callable[..., Output]:
    """Run the command line in this process."""

    def run(*args: object) -> Output:
        status = main([str(arg) for arg in args])
        captured = capsys.readouterr()
        return Output(int(status), captured.out, captured.err)

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
def files(tmp_path) -> ConfigFiles:
    """A project and a home, both without a configuration."""
    project = tmp_path / "project"
    project.mkdir()
    return ConfigFiles(project, tmp_path / "home" / "witan" / "witan.toml")


@pytest.fixture
def place(tmp_path, monkeypatch) -> Path:
    """The path of a history of the test's own, isolated from the machine."""
    return place_of_its_own(tmp_path, monkeypatch)


@pytest.fixture
def seats(tmp_path) -> list[str]:
    """The options that seat three scripted members, who agree, and a chairman."""
    return write_council(tmp_path)
