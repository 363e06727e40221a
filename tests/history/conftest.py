"""Locations of the histories in these tests: a SQLite file, and a PostgreSQL database."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from postgres import database_of, postgresql_url
from witan.history import History

__all__ = ["postgresql_url"]


@pytest.fixture
def file(tmp_path):
    """A path without a history."""
    return tmp_path / "history.sqlite"


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request, file):
    """A location without a history, on each database."""
    if request.param == "sqlite":
        yield str(file)
    else:
        yield from database_of()


@pytest.fixture
def history(place):
    """An empty history, on each database."""
    with History.open(place) as opened:
        opened.require_writable(creating=True)
        yield opened


@pytest.fixture
def running():
    """Start Python code and wait for its first line of output; it ends with the test."""
    started = []

    def start(code, *arguments):
        paths = [str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
        process = subprocess.Popen(  # noqa: S603 - our own interpreter on our own lines
            [sys.executable, "-c", code, *map(str, arguments)],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        assert process.stdout.readline()
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()
