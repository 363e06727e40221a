"""Durable sessions per second from four writers on one disk, beside what the disk itself can do.

A session is two commits: its opening, then everything else with the entries of five members who
answer and review each other. Each writer waits for both to be durable before it goes on.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from harness import Row, show

from witan.core.ballot import Ballot
from witan.core.settings import Settings
from witan.core.tally import tally_sessions
from witan.deliberation import events as e
from witan.deliberation.plan import Plan
from witan.deliberation.ports import Expense, Seat, Usage
from witan.deliberation.procedure import Procedure
from witan.history import History
from witan.history.engines import library_version

WRITERS = 4
SEATS = ("a", "b", "c", "d", "e")
ASKED = datetime(2026, 1, 1, tzinfo=UTC)
ANSWER = "Because of this, and because of that. " * 40
WANTED = 500


def session(name: str) -> list[e.Event]:
    """One session of five answers and five ballots, as its listener is told of it."""
    ballots = [_ballot(name, k) for k in range(len(SEATS))]
    [outcome] = tally_sessions(ballots, Settings.of("borda"))
    spent = Expense(Usage(900, 300), 0.01, 2.0)
    told: list[tuple[type[e.Event], dict[str, Any]]] = [
        (
            e.SessionOpened,
            {
                "session": name,
                "question": "Why?",
                "files": {},
                "seats": tuple(Seat(seat, f"bench:{seat}", "bench") for seat in SEATS),
                "chairmen": (),
                "procedure": Procedure(),
                "plan": Plan((), 0, 0.0),
                "seed": 1,
                "witan": "0",
            },
        )
    ]
    told += [(e.AnswerDone, {"seat": s, "text": ANSWER, "spent": spent}) for s in SEATS]
    told += [(e.BallotCast, _cast(ballot, spent)) for ballot in ballots]
    told.append((e.OutcomeChanged, {"outcome": outcome, "counted": SEATS}))
    end = {"status": "complete", "missing": (), "cost_usd": 0.1, "known_usd": 0.1, "seconds": 9.0}
    told.append((e.SessionClosed, end))
    return [
        kind(seq=k, at=ASKED + timedelta(seconds=k), **fields)
        for k, (kind, fields) in enumerate(told, start=1)
    ]


def _ballot(name: str, k: int) -> Ballot:
    others = [*SEATS[k + 1 :], *SEATS[:k]]
    grades = {seat: 9.0 - place for place, seat in enumerate(others)}
    return Ballot(SEATS[k], tuple((s,) for s in others), grades, session=name)


def _cast(ballot: Ballot, spent: Expense) -> dict[str, object]:
    return {
        "seat": ballot.reviewer,
        "ballot": ballot,
        "replies": ('{"ranking": []}',),
        "read_by": "schema",
        "spent": spent,
    }


def write(url: str, first: str, sessions: int, at_once: int) -> None:
    """Write sessions, some at once, when a line on standard input says so; print their CPU."""
    held = [session(f"{first}{k}") for k in range(sessions)]
    with History.open(url) as history:
        print("ready", flush=True)
        sys.stdin.readline()
        busy = time.process_time()
        for start in range(0, sessions, at_once):
            recordings = [(history.recording(), events) for events in held[start:][:at_once]]
            for part in (slice(0, 1), slice(1, None)):
                for recording, events in recordings:
                    for event in events[part]:
                        recording(event)
                for recording, _ in recordings:
                    recording.flush()
        print(time.process_time() - busy)


def rate(url: str, sessions: int, at_once: int) -> tuple[float, float]:
    """Sessions per second of four writers that begin together, and seconds of CPU for each."""
    mine = [sys.executable, __file__, "--write", url, "--at-once", str(at_once)]
    writers = [
        subprocess.Popen(  # noqa: S603 - ourselves
            [*mine, "--sessions", str(sessions), "--first", f"{at_once}-{k}-"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for k in range(WRITERS)
    ]
    for writer in writers:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "ready\n"
    began = time.monotonic()
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write("go\n")
        writer.stdin.flush()
    told = [writer.communicate()[0] for writer in writers]
    taken = time.monotonic() - began
    assert not any(writer.returncode for writer in writers)
    return WRITERS * sessions / taken, sum(map(float, told)) / (WRITERS * sessions)


def fsyncs(folder: Path, seconds: float = 1.0) -> float:
    """How often a second the disk makes four kilobytes durable, one after another."""
    descriptor = os.open(folder / "probe", os.O_RDWR | os.O_CREAT)
    done, began = 0, time.monotonic()
    while time.monotonic() - began < seconds:
        os.lseek(descriptor, done % 256 * 4096, os.SEEK_SET)
        os.write(descriptor, os.urandom(4096))
        os.fsync(descriptor)
        done += 1
    os.close(descriptor)
    return done / (time.monotonic() - began)


def main() -> None:
    """Print one line per way to write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", help="another place than a file in --folder")
    parser.add_argument("--folder", type=Path, help="on the disk to be measured")
    parser.add_argument("--sessions", type=int, default=300, help="of each writer")
    parser.add_argument("--write", help=argparse.SUPPRESS)
    parser.add_argument("--first", default="", help=argparse.SUPPRESS)
    parser.add_argument("--at-once", type=int, default=1, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.write is not None:
        write(given.write, given.first, given.sessions, given.at_once)
        return
    with tempfile.TemporaryDirectory(dir=given.folder) as name:
        url = given.url or str(Path(name) / "history.sqlite")
        with History.open(url) as history:
            journal = history.journal
        disk = fsyncs(Path(name))
        rows = []
        for at_once in (1, 16):
            reached, busy = rate(url, given.sessions, at_once)
            least = min(WANTED, disk)
            what = f"four writers, {at_once} session{'s' * (at_once > 1)} at once each"
            figure = f"{reached:,.0f} /s, {1000 * busy:.1f} ms of CPU each"
            rows.append(Row(what, figure, f"≥ {least:,.0f} /s", reached >= least))
        title = f"durable sessions ({journal}, SQLite {library_version()}; fsync {disk:,.0f}/s)"
        show(title, rows)


if __name__ == "__main__":
    main()
