"""What tests of a recorded session do: keep one, list what is kept, break one off."""
# ruff: noqa: S603 - every process started here is our own command

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from witan.deliberation.events import Event
from witan.history import History

WITAN = [sys.executable, "-m", "witan"]

HANGS = [{"hang": True}]
"""The lines of a script that never replies."""


def isolate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide every configuration, key and state of the machine from this test."""
    for name in [name for name in os.environ if name.startswith("WITAN_") or "API_KEY" in name]:
        monkeypatch.delenv(name)
    for name in ("CONFIG", "STATE", "DATA"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / name.lower()))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)


def place_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Name a history for this test alone, and leave no other trace of the machine."""
    isolate(tmp_path, monkeypatch)
    path = tmp_path / "kept" / "history.sqlite"
    monkeypatch.setenv("WITAN_HISTORY", str(path))
    return path


def keep(place: Path, *pieces: Iterable[Event]) -> None:
    """Record events as a council would have told them."""
    with History.open(place) as history, history.recording() as recording:
        for stage in pieces:
            for event in stage:
                recording(event)


def listed(witan: Callable[..., Any], *arguments: object) -> list[dict[str, Any]]:
    """The sessions that the history lists."""
    return witan("sessions", "--json", *arguments).json["sessions"]


@contextmanager
def under_way(
    *arguments: object, kind: str = "answer_done", times: int = 2
) -> Iterator[subprocess.Popen[str]]:
    """A command that has told so many events of a kind."""
    with subprocess.Popen(
        [*WITAN, *map(str, arguments), "--events"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        told = (line for line in process.stdout if f'"{kind}"' in line)
        assert len(list(islice(told, times))) == times
        yield process


def interrupted(
    *arguments: object,
    kind: str = "answer_done",
    times: int = 2,
    number: int = signal.SIGINT,
) -> tuple[int, str]:
    """Ask, and interrupt once so many events of a kind were told; the status and what was said."""
    with under_way(*arguments, kind=kind, times=times) as process:
        process.send_signal(number)
        _, err = process.communicate(timeout=60)
    return process.returncode, err
