"""Many processes at one history, forked off a process that has read everything in beforehand.

    crowd.py open URL PROCESSES           all create the history at once
    crowd.py kill URL FOLDER KILLS        four write and one reads; writers are killed at random

What a writer was told is durable stands in FOLDER, a line ``session seq`` each, written after the
acknowledgement and so never too early.
"""

import os
import signal
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from random import Random

from histories import session_events, stages
from witan.deliberation.session import Session
from witan.history import History

WRITERS = 4


def fork(work: Callable[[], None]) -> int:
    """Run `work` in a child; 1 is its exit status if it raises."""
    child = os.fork()
    if child:
        return child
    try:
        work()
    except BaseException:  # noqa: BLE001 - a child ends here, whatever happened
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def exit_status(child: int) -> int:
    """Wait for a child; return its exit status, negative for a signal."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def record(history: History, name: str, ack: int) -> None:
    """Record a session, and note every durable stage."""
    with history.recording() as recording:
        for stage in stages(name):
            for event in stage:
                recording(event)
            recording.flush()
            os.write(ack, f"{name} {stage[-1].seq}\n".encode())


def write(url: str, folder: Path, slot: int, life: int) -> None:
    """Finish the sessions of this writer's earlier lives, then write without end."""
    ack = os.open(folder / f"acks-{slot}", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    history = History.open(url)
    for found in history.find(status="interrupted"):
        if found.session.startswith(f"w{slot}-"):
            history.claim(found.session)
            record(history, found.session, ack)
    number = 0
    while True:
        record(history, f"w{slot}-{life}-{number}", ack)
        number += 1


def read(url: str) -> None:
    """Read without end: the events of a session are always its first ones, in order."""
    history = History.open(url)
    while True:
        for found in history.find(limit=3):
            session = history.session(found.session)
            whole = session_events(found.session)
            assert list(session.events) == whole[: len(session.events)], found
            if session.status != "interrupted":
                assert len(history.ballots(found.session)) == len(session.ballots), found
        time.sleep(0.02)


def await_stages(folder: Path, number: int) -> None:
    """Wait for so many durable stages in all; a slow machine needs more time."""
    deadline = time.monotonic() + 60
    while sum(file.read_bytes().count(b"\n") for file in folder.glob("acks-*")) < number:
        assert time.monotonic() < deadline, "the writers get nowhere"
        time.sleep(0.01)


def kill(url: str, folder: Path, kills: int) -> None:
    """Kill a random writer at a random moment; its next life continues."""
    draw = Random(1)  # noqa: S311 - a test draws whom it kills
    lives = [0] * WRITERS

    def start_writer(slot: int) -> int:
        return fork(lambda: write(url, folder, slot, lives[slot]))

    reader = fork(lambda: read(url))
    writers = [start_writer(slot) for slot in range(WRITERS)]
    for done in range(kills):
        time.sleep(draw.uniform(0.01, 0.14))
        await_stages(folder, done)
        slot = draw.randrange(WRITERS)
        os.kill(writers[slot], signal.SIGKILL)
        assert exit_status(writers[slot]) == -signal.SIGKILL, "a writer ended by itself"
        lives[slot] += 1
        writers[slot] = start_writer(slot)
    for child in (*writers, reader):
        os.kill(child, signal.SIGKILL)
        assert exit_status(child) == -signal.SIGKILL, "a writer or the reader ended by itself"


def open_at_once(url: str, processes: int) -> None:
    """Let all wait for one signal, then create the history."""
    ready, go = os.pipe()

    def opener() -> None:
        os.close(go)
        os.read(ready, 1)  # returns when the parent closes its end
        with History.open(url) as history:
            history.require_writable(creating=True)
            assert history.find() == []

    children = [fork(opener) for _ in range(processes)]
    os.close(go)
    assert [exit_status(child) for child in children] == [0] * processes


def main(command: str, url: str, *rest: str) -> None:
    """Run one of the commands."""
    if command == "open":
        open_at_once(url, int(rest[0]))
    else:
        kill(url, Path(rest[0]), int(rest[1]))


if __name__ == "__main__":
    # Counting is imported where it is first needed: before the fork, not in every child.
    Session.of(session_events("warm"))
    main(*sys.argv[1:])
