"""Everything shown is in the history, whenever the process is killed."""
# ruff: noqa: S603 - every process started here is our own command

import json
import os
import subprocess
import sys
from contextlib import contextmanager, suppress

import httpx2
import pytest

from postgres import database_of
from recorded import WITAN, place_of_its_own
from served import serving_process
from services import write_config
from witan.deliberation.record import event_to_json
from witan.errors import UnknownName
from witan.history import History

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.name == "nt", reason="Windows kills otherwise"),
]

PIECES = ("answer_delta", "synthesis_delta")


@pytest.fixture(autouse=True)
def traceless(tmp_path, monkeypatch):
    """No other trace of the machine."""
    place_of_its_own(tmp_path, monkeypatch)


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request, tmp_path):
    """A place for a history, on each database."""
    if request.param == "sqlite":
        yield str(tmp_path / "history.sqlite")
    else:
        yield from database_of()


@pytest.fixture
def config(tmp_path):
    """Three scripted members, who answer at different times."""
    return write_config(tmp_path)


def events_of(lines):
    """The events among lines that were shown, pieces of texts aside; a torn line is none."""
    read = (json.loads(line) for line in lines if line.endswith("\n"))
    return [event for event in read if event.get("event") not in (None, *PIECES)]


def start_ask(config, place, *more):
    return subprocess.Popen(
        [*WITAN, "ask", "Is it so?", "--config", config, "--history", place, "--events", *more],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def shown_until_killed(config, place, number):
    """What is shown by a process that is killed at the event of this number; whether it came."""
    with start_ask(config, place) as process:
        lines = []
        for line in process.stdout:
            lines.append(line)
            if len(events_of(lines)) == number:
                process.kill()
                break
        # What it had shown by the time that it was dead.
        lines += process.stdout.readlines()
    shown = events_of(lines)
    return shown, len(shown) >= number


def missing(place, shown):
    """Which of these events the history does not hold as they were shown."""
    assert not any("provisional" in event for event in shown)
    if not shown:
        return []
    with History.open(place) as history:
        try:
            events = history.session(shown[0]["session"]).events
        except UnknownName:
            return shown
    held = {event.seq: json.loads(event_to_json(event, is_simulated=True)) for event in events}
    return [event for event in shown if held.get(event["seq"]) != event]


def test_printed_events_are_in_the_history(config, place):
    """The process is killed at every event that it prints."""
    number, came = 0, True
    while came:
        number += 1
        shown, came = shown_until_killed(config, place, number)
        assert missing(place, shown) == []

    assert number > 20
    assert shown[-1]["event"] == "session_closed"


@pytest.mark.parametrize("number", [1, 5, 9, 13, 17, 20])
def test_sent_events_are_in_the_history(config, place, tmp_path, number):
    """The server is killed at an event of its stream."""
    arguments = ("--config", config, "--history", place)
    lines: list[str] = []
    with (
        serving_process(*arguments, cwd=tmp_path) as (url, process),
        httpx2.Client(base_url=url, timeout=60) as client,
    ):
        session = client.post("/api/sessions", json={"question": "Is it so?"}).json()["session"]
        with (
            suppress(httpx2.TransportError),
            client.stream("GET", f"/api/sessions/{session}/events") as response,
        ):
            for line in response.iter_lines():
                if line.startswith("data: {"):
                    lines.append(line.removeprefix("data: ") + "\n")
                if len(events_of(lines)) == number:
                    process.kill()

    opened, *shown = events_of(lines)
    assert opened["session"] == session
    # How seats are written is not for readers; the rest is as it is kept.
    assert [event["seq"] for event in missing(place, [opened, *shown])] == [1]


@contextmanager
def locked(place):
    """Another process keeps the file of a history locked while the block lasts."""
    holding = (
        "import sys; from pathlib import Path\n"
        "from witan.history.engines import SqliteDatabase\n"
        "database = SqliteDatabase(Path(sys.argv[1]), sys.argv[1])\n"
        "database.execute('BEGIN IMMEDIATE'); print('held', flush=True); sys.stdin.read()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", holding, place], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout.readline()
        yield
        process.kill()


def test_unsaved_events_are_shown_as_provisional(tmp_path):
    """The file is locked once the session is opened: later events say so, and none is lost."""
    config = write_config(tmp_path, answer=[{"text": "Ada says so.", "seconds": 2.0}])
    place = str(tmp_path / "history.sqlite")
    with start_ask(config, place) as process:
        first = [process.stdout.readline() for _ in range(4)]
        with locked(place):
            # In all ten seconds are waited for it.
            while "answer_done" not in (line := process.stdout.readline()):
                first.append(line)
        rest = [line, *process.stdout]
        error = process.stderr.read()

    shown = events_of([*first, *rest])
    assert process.returncode == 0, error
    assert not any("provisional" in event for event in events_of(first))
    assert json.loads(line)["provisional"] is True
    for event in shown:
        event.pop("provisional", None)
    assert missing(place, shown) == []
