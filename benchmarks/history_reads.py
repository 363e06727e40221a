"""A leaderboard off a SQLite history: by cached sums, and by reading every row again.

Sessions of five models, drawn at random from twenty, are written straight into the tables, a year
of them. Each measurement runs in a process of its own, so that its peak of memory is its own.
``--sessions 200000`` measures the size that the targets are about. With ``--url`` the history is
made in an empty PostgreSQL database instead.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
from harness import Row, show

from witan.analytics.leaderboards import leaderboard
from witan.analytics.sums import CachedEngine, WindowSums
from witan.analytics.views import SqlEngine
from witan.core.session_ballots import SessionEntry
from witan.core.stats.leaderboard import Terms, Window
from witan.core.stats.leaderboard_builder import leaderboard as board_of
from witan.core.stats.sums import AnswerSums, MatchupSums, StandingSums
from witan.history import History
from witan.history.rows import SessionRow, insert_sessions
from witan.history.schema import MICROSECONDS_A_DAY, code_of

MODELS = tuple(f"vendor:model-{number:02d}" for number in range(20))
CODES = [code_of(model) for model in MODELS]
SEATS = 5
DAYS = 365
BEGAN = datetime(2026, 1, 1, tzinfo=UTC)
AT_ONCE = 5_000
LEARNING_SECONDS = 0.1
SECONDS = 1.0
CATEGORIES = ("coding", "writing", None)

COLUMNS = {
    "standings": (
        *("session", "human", "rule", "model", "score", "z", "votes", "offered", "wins"),
    ),
    "matchups": ("session", "human", "models", "wins", "losses", "ties", "p_beats"),
    "ballots": (
        *("session", "ballot", "reviewer", "human", "paired", "abstained", "repaired", "flat"),
        *("kept", "compared", "weight", "models", "own", "shares", "grades", "positions", "chars"),
        *("criteria", "criterion_grades", "body"),
    ),
    "answers": (*("session", "seat", "model", "chars", "seconds", "cost_usd", "failed", "body"),),
}

PAIRS = np.triu_indices(SEATS, k=1)


def text(values: Any) -> str:
    """A list as a column holds it."""
    return json.dumps(values, separators=(",", ":"))


def session(rng: np.random.Generator, at_us: int, into: dict[str, list[Any]]) -> None:
    """One session's rows."""
    name, category = rng.bytes(12).hex(), CATEGORIES[int(rng.integers(len(CATEGORIES)))]
    seats = sorted(rng.choice(len(MODELS), SEATS, replace=False).tolist())
    felt = np.array(seats) / 10 + rng.standard_normal((SEATS, SEATS))
    grades = np.clip(np.rint(4 + 1.5 * felt), 1, 10)
    others = ~np.eye(SEATS, dtype=bool)
    above = (grades[:, :, None] > grades[:, None, :]) & others[:, :, None] & others[:, None, :]
    share = above.sum(-1) / (SEATS - 2)
    wins, losses = above.sum(0)[PAIRS].astype(float), above.sum(0).T[PAIRS].astype(float)
    codes = [CODES[seat] for seat in seats]
    at = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=at_us)
    entry = SessionEntry(name, at, category, kendall_w=0.5, agreement=0.7)
    into["sessions"].append(
        SessionRow(name, at, category, False, "drawn", "complete", "Why?", entry=entry)
    )
    into["standings"] += [
        (name, 0, "borda", code, share[:, k].sum() / (SEATS - 1), float(felt[:, k].mean()),
         SEATS - 1, SEATS - 1, float((share[:, k] == 1).sum()))
        for k, code in enumerate(codes)
    ]  # fmt: skip
    ties = (SEATS - 2 - wins - losses).tolist()
    lists = (codes, wins.tolist(), losses.tolist(), ties, [0.5] * len(ties))
    into["matchups"].append((name, 0, *map(text, lists)))
    for k, code in enumerate(codes):
        kept = [j for j in range(SEATS) if j != k]
        into["ballots"].append(
            (name, k + 1, code, 0, 0, 0, 0, 0, 0, 0, 1.0, text([codes[j] for j in kept]),
             "[0,0,0,0]", text(share[k, kept].tolist()), text(grades[k, kept].tolist()),
             "[1,2,3,4]", "[900,900,900,900]", "[]", "[]", "{}")
        )  # fmt: skip
        into["answers"].append((name, f"seat {k}", code, 900, 4.25, 0.0125, 0, "B" * 900))


def add(history: History, rng: np.random.Generator, times: list[int]) -> None:
    """Write sessions that were asked at these times."""
    rows: dict[str, list[Any]] = {table: [] for table in ("sessions", *COLUMNS)}
    for at_us in times:
        session(rng, at_us, rows)
    with history.database.transaction():
        insert_sessions(history.database, rows["sessions"])
        for table, columns in COLUMNS.items():
            history.database.insert(table, columns, rows[table])


def make(url: str, n_sessions: int) -> float:
    """Write a history, in the order of time; return the seconds that writing took."""
    rng, taken = np.random.default_rng(20260101), 0.0
    start = round(BEGAN.timestamp() * 1e6)
    times = (start + np.sort(rng.integers(0, DAYS * MICROSECONDS_A_DAY, n_sessions))).tolist()
    with History.open(url) as history:
        history.database.insert("names", ("code", "name"), list(zip(CODES, MODELS, strict=True)))
        for at in range(0, n_sessions, AT_ONCE):
            began = time.perf_counter()
            add(history, rng, times[at : at + AT_ONCE])
            taken += time.perf_counter() - began
    return taken


def all_time(history: History) -> None:
    """A whole leaderboard of every session."""
    leaderboard(history)


def a_month(history: History) -> None:
    """That of thirty days that begin at noon, and the change against the thirty days before."""
    noon = BEGAN + timedelta(days=300, hours=12)
    leaderboard(history, Terms(window=Window(noon, noon + timedelta(days=30))))


def one_more(history: History) -> None:
    """One session more, and the leaderboard of every session."""
    at = round((BEGAN + timedelta(days=200, hours=3)).timestamp() * 1e6)
    add(history, np.random.default_rng(), [at])
    all_time(history)


def learns(history: History) -> None:
    """What a council of three is told before it counts."""
    history.learn(MODELS[:3])


def direct(history: History) -> None:
    """The same leaderboard, every row read again."""
    sums = WindowSums(SqlEngine(history.database))
    standings, matchups = (
        sums.table(StandingSums, rule="borda"),
        sums.table(MatchupSums),
    )
    board_of(standings, matchups, sums.table(AnswerSums), sums.names())


def sums(history: History) -> None:
    """The sums of a leaderboard alone, from the cache."""
    WindowSums(CachedEngine(history.database)).tables(
        StandingSums, MatchupSums, AnswerSums, rule="borda"
    )


def matches(history: History) -> None:
    """What Elo is worked out of, a few thousand sessions at a time."""
    for _ in WindowSums(SqlEngine(history.database)).matches():
        pass


TASKS: dict[str, Callable[[History], None]] = {
    "sums": sums,
    "all_time": all_time,
    "a_month": a_month,
    "one_more": one_more,
    "learns": learns,
    "direct": direct,
    "matches": matches,
}


@dataclass(frozen=True, slots=True)
class Taken:
    """CPU of a task, the first time and at best; how long the first one lasted; and its memory."""

    first: float
    again: float
    wall: float
    peak_mb: float


def peak_mb() -> float:
    """The most memory that this process has held; what its parent held does not count."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return float(re.findall(r"VmHWM:\s+(\d+) kB", status)[0]) / 1024


def in_this_process(task: str, url: str, times: int) -> Taken:
    """Run a task on a file that the system's memory has forgotten."""
    if "://" not in url:
        with Path(url).open("rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    cpu, wall = [], []
    with History.open(url) as history:
        for _ in range(times):
            began, busy = time.perf_counter(), time.process_time()
            TASKS[task](history)
            cpu.append(time.process_time() - busy)
            wall.append(time.perf_counter() - began)
    return Taken(cpu[0], min(cpu), wall[0], peak_mb())


def measured(task: str, url: str, times: int = 1) -> Taken:
    """Run a task in a fresh process."""
    run = subprocess.run(  # noqa: S603 - our own interpreter on our own file
        [sys.executable, __file__, "--measure", task, url, str(times)],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return Taken(*json.loads(run.stdout.splitlines()[-1]))


def compare(url: str, n_sessions: int) -> None:
    """Make a history and print what is read off it takes."""
    wrote = make(url, n_sessions)
    whole, once = measured("direct", url, 2), measured("all_time", url)
    board, month, more = (measured(task, url, 4) for task in ("all_time", "a_month", "one_more"))
    learnt = measured("learns", url, 4)
    alone, pages = measured("sums", url, 4), measured("matches", url)
    most = max(board.peak_mb, month.peak_mb, more.peak_mb)

    def within(what: str, seconds: float, most: float = SECONDS) -> Row:
        return Row(what, f"{seconds:.2f} s", f"≤ {most:g} s", seconds <= most)

    def plain(what: str, figure: str) -> Row:
        return Row(what, figure, "—", None)

    rows = [
        plain("writing the rows in bulk", f"{wrote:.1f} s"),
        plain("before anything is cached, CPU", f"{once.first:.1f} s, {once.peak_mb:.0f} MB"),
        plain("every row read again", f"{whole.again:.1f} s, {whole.peak_mb:.0f} MB"),
        within("leaderboard, the first time in a process, CPU", board.first),
        plain("from the disk, wall, beside whatever else runs", f"{board.wall:.2f} s"),
        within("the same again, CPU", board.again),
        plain("of that, the sums", f"{alone.again:.2f} s"),
        within("after one more session, CPU", more.again),
        within("a month, and the change against the one before, CPU", month.first),
        plain("the same again, CPU", f"{month.again:.2f} s"),
        within("what a council learns before it counts, CPU", learnt.again, LEARNING_SECONDS),
        plain("every row read again / cached, CPU", f"{whole.again / board.again:.0f} ×"),
        plain("peak of memory", f"{most:.0f} MB"),
        plain("matches for Elo, wall and memory", f"{pages.wall:.1f} s, {pages.peak_mb:.0f} MB"),
    ]
    show(f"A history of {n_sessions:,} sessions × {SEATS} × {SEATS}", rows)


def main() -> None:
    """Print the table; or, as its own child, measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sessions", type=int, default=20_000)
    parser.add_argument("--url", help="an empty PostgreSQL database")
    parser.add_argument("--measure", nargs=3, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.measure:
        task, url, times = given.measure
        taken = in_this_process(task, url, int(times))
        print(json.dumps([taken.first, taken.again, taken.wall, taken.peak_mb]))
    elif given.url:
        compare(given.url, given.sessions)
    else:
        with tempfile.TemporaryDirectory(prefix="witan-bench-") as folder:
            compare(os.fspath(Path(folder) / "history.sqlite"), given.sessions)


if __name__ == "__main__":
    main()
