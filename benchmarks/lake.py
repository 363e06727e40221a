"""A lake of councils summed by DuckDB and by Spark: time, memory, and how both grow.

Sessions of five models, drawn at random from twenty, each of whom reviews the other four: five
ballots, twenty votes and ten pairs a session. Each measurement runs in a process of its own, so
that its peak of memory is its own. ``--sessions 1000000`` measures the size that the targets are
about; the default is small, and its times are shown per million sessions. Times are CPU seconds of
all threads, which is the most that a quiet machine takes. Spark is compared by the clock, in turns
with DuckDB, after a few turns in which Java compiles what it runs. Planning its jobs takes it about
a second, so that it is held to its target from a million sessions on.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pyarrow as pa
from harness import Row, show
from numpy.typing import NDArray

from witan.analytics import audits, leaderboards
from witan.analytics.lake import write_table
from witan.analytics.sources import DuckLake, LakeSource, SparkLake
from witan.core.stats.leaderboard import ALWAYS, Terms
from witan.core.stats.sums import StandingSums
from witan.history.schema import code_of

MODELS = tuple(f"vendor:model-{number:02d}" for number in range(20))
SEATS = 5
A_DAY = 50_000
TIMES = 5
WARMING = 4
"""Turns before Spark is measured."""

BY_BUCKET = ("standings", "matchups", "ballots", "answers")
"""The tables whose rows stand by bucket within their day."""

CODES = np.array([code_of(model) for model in MODELS])
NOW = datetime(2027, 1, 1, tzinfo=UTC)
I, J = np.triu_indices(SEATS, k=1)  # noqa: E741
OTHERS = ~np.eye(SEATS, dtype=bool)


@dataclass(frozen=True, slots=True)
class Drawn:
    """A day of councils: who sat, and what each reviewer gave to each candidate."""

    rng: np.random.Generator
    models: NDArray[np.int64]
    grades: NDArray[np.float64]
    sessions: dict[str, NDArray[Any]]

    @property
    def above(self) -> NDArray[np.bool_]:
        """By session, reviewer, i and j: i is placed above j, and neither is the reviewer's own."""
        above = self.grades[..., :, None] > self.grades[..., None, :]
        seen: NDArray[np.bool_] = above & OTHERS[:, :, None] & OTHERS[:, None, :]
        return seen


def draw(rng: np.random.Generator, number: int) -> Drawn:
    """One day of sessions, all in one category."""
    start = (date(2026, 1, 1) + timedelta(days=number) - date(1970, 1, 1)).days * 86_400_000_000
    order = rng.permuted(np.tile(np.arange(len(MODELS)), (A_DAY, 1)), axis=1)
    seats = np.sort(order[:, :SEATS], axis=1)
    quality = np.linspace(-1, 1, len(MODELS))[seats]
    felt = quality[:, None, :] + rng.standard_normal((A_DAY, SEATS, SEATS))
    sessions: dict[str, NDArray[Any]] = {
        "session": rng.integers(-(2**63), 2**63 - 1, A_DAY),
        "at_us": start + np.sort(rng.integers(0, 86_400_000_000, A_DAY)),
        "bucket": rng.integers(0, 256, A_DAY, dtype=np.int16),
        "category": np.full(A_DAY, "coding"),
        "simulated": np.zeros(A_DAY, np.int8),
        "rejudged": np.zeros(A_DAY, np.int8),
    }
    return Drawn(rng, CODES[seats], np.clip(np.rint(5.5 + 1.5 * felt), 1, 10), sessions)


def repeated(day: Drawn, times: int) -> dict[str, Any]:
    """What a session's rows share, for so many rows each."""
    return {name: np.repeat(column, times) for name, column in day.sessions.items()}


def standings(day: Drawn) -> dict[str, Any]:
    """A row per session and model."""
    n = A_DAY * SEATS
    share = day.above.sum(-1) / (SEATS - 2)
    return {
        **repeated(day, SEATS),
        "human": np.zeros(n, np.int8),
        "rule": np.full(n, "borda"),
        "model": day.models.ravel(),
        "score": (share.sum(1) / (SEATS - 1)).ravel(),
        "z": day.rng.standard_normal(n),
        "votes": np.full(n, SEATS - 1, np.int32),
        "offered": np.full(n, SEATS - 1, np.int32),
        "wins": (share == 1).sum(1).astype(float).ravel(),
    }


def matchups(day: Drawn) -> dict[str, Any]:
    """A row per session and pair."""
    n = A_DAY * len(I)
    above = day.above.sum(1)
    wins, losses = above[:, I, J].astype(float), above[:, J, I].astype(float)
    return {
        **repeated(day, len(I)),
        "human": np.zeros(n, np.int8),
        "i": day.models[:, I].ravel(),
        "j": day.models[:, J].ravel(),
        "wins": wins.ravel(),
        "losses": losses.ravel(),
        "ties": (SEATS - 2 - wins - losses).ravel(),
        "p_beats": day.rng.random(n),
    }


def ballots(day: Drawn) -> dict[str, Any]:
    """A row per session and reviewer, own candidates left out."""
    n, shown = A_DAY * SEATS, SEATS - 1
    share = day.above.sum(-1) / (SEATS - 2)
    chars = day.rng.integers(200, 4000, (A_DAY, 1, SEATS)).repeat(SEATS, axis=1)
    everyone = np.broadcast_to(day.models[:, None, :], share.shape)
    nought = np.zeros(n, np.int8)
    return {
        **repeated(day, SEATS),
        "ballot": np.tile(np.arange(1, SEATS + 1, dtype=np.int32), A_DAY),
        "human": nought,
        "reviewer": day.models.ravel(),
        **dict.fromkeys(("paired", "abstained", "repaired", "flat"), nought),
        "kept": nought,
        "compared": nought,
        "weight": np.ones(n),
        "models": listed(everyone[:, OTHERS], shown, pa.int64()),
        "own": listed(np.zeros(n * shown), shown, pa.int8()),
        "shares": listed(share[:, OTHERS], shown, pa.float64()),
        "grades": listed(day.grades[:, OTHERS], shown, pa.float64()),
        "positions": listed(np.tile(np.arange(1, shown + 1), n), shown, pa.int32()),
        "chars": listed(chars[:, OTHERS], shown, pa.int32()),
        "criteria": listed(np.zeros(0), 0, pa.int64(), n),
        "criterion_grades": listed(np.zeros(0), 0, pa.list_(pa.float64()), n),
    }


def listed(values: NDArray[Any], each: int, kind: Any, n: int | None = None) -> Any:
    """Lists of so many values each."""
    n = values.size // each if n is None else n
    ends = pa.array(np.arange(n + 1, dtype=np.int32) * each)
    return pa.ListArray.from_arrays(ends, pa.array(values.ravel()).cast(kind, safe=False)
                                    if each else pa.array([], kind))  # fmt: skip


def answers(day: Drawn) -> dict[str, Any]:
    """A row per session and seat."""
    n = A_DAY * SEATS
    return {
        **repeated(day, SEATS),
        "seat": np.tile([f"seat {seat}" for seat in range(SEATS)], A_DAY),
        "model": day.models.ravel(),
        "chars": np.full(n, 900, np.int32),
        "seconds": day.rng.exponential(4, n),
        "cost_usd": day.rng.exponential(0.01, n),
        "failed": np.zeros(n, np.int8),
    }


def by_bucket(columns: dict[str, Any]) -> dict[str, Any]:
    """The rows of a day in the order in which an export writes them."""
    order = np.argsort(columns["bucket"], kind="stable")
    return {
        name: column.take(pa.array(order)) if isinstance(column, pa.Array) else column[order]
        for name, column in columns.items()
    }


def make_lake(folder: Path, n_sessions: int) -> None:
    """Write a lake of so many sessions, rounded up to whole days."""
    rng = np.random.default_rng(20260101)
    for number in range(-(-n_sessions // A_DAY)):
        day = draw(rng, number)
        tables = {
            "sessions": {
                **day.sessions,
                "name": day.sessions["session"].astype(str),
                "kendall_w": rng.random(A_DAY),
                "agreement": rng.random(A_DAY),
            },
            "standings": standings(day),
            "matchups": matchups(day),
            "ballots": ballots(day),
            "answers": answers(day),
        }
        on = date(2026, 1, 1) + timedelta(days=number)
        for table, columns in tables.items():
            arranged = by_bucket(columns) if table in BY_BUCKET else columns
            write_table(folder, table, arranged, day=on, source="drawn")
    names = {"code": CODES, "name": list(MODELS)}
    write_table(folder, "names", names, source="drawn")


SCAN = """
SELECT SUM(bucket) AS a, SUM(model) AS b, SUM(score) AS c, SUM(z) AS d, SUM(votes) AS e,
    SUM(offered) AS f, SUM(wins) AS g, SUM(simulated) AS h, SUM(human) AS k, MIN(rule) AS l
FROM v_standings
"""


def scan_of(source: LakeSource) -> None:
    """The columns of the standings and nothing else."""
    source.engine.columns(SCAN)


def standings_of(source: LakeSource) -> None:
    """The mean of means."""
    source.sums(ALWAYS).table(StandingSums, rule="borda")


def board_of(source: LakeSource) -> None:
    """A whole leaderboard: means, pair counts, Bradley–Terry and its clustered errors."""
    leaderboards.board_of(source, Terms(), now=NOW)


def audit_of(source: LakeSource) -> None:
    """Every table of the audit, and the audit itself."""
    audits.audit_of(source, ALWAYS)


TASKS: dict[str, Callable[[LakeSource], object]] = {
    "scan": scan_of,
    "standings": standings_of,
    "board": board_of,
    "audit": audit_of,
}


@dataclass(frozen=True, slots=True)
class Taken:
    """What one task took, in the median of a few runs after a first one."""

    wall: float
    cpu: float
    peak_mb: float


def peak_mb() -> float:
    """The most memory that this process has held; what its parent held does not count."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return float(re.findall(r"VmHWM:\s+(\d+) kB", status)[0]) / 1024


def in_this_process(folder: Path, tasks: list[str]) -> Iterator[Taken]:
    """Measure tasks one after another, each run in turn with the others."""
    with DuckLake(folder) as engine:
        source = LakeSource(engine)
        walls: dict[str, list[float]] = {task: [] for task in tasks}
        cpus: dict[str, list[float]] = {task: [] for task in tasks}
        for turn in range(1 if tasks == ["audit"] else TIMES + 1):
            for task in tasks:
                wall, cpu = time.perf_counter(), time.process_time()
                TASKS[task](source)
                if turn or tasks == ["audit"]:
                    walls[task].append(time.perf_counter() - wall)
                    cpus[task].append(time.process_time() - cpu)
        peak = peak_mb()
        for task in tasks:
            yield Taken(median(walls[task]), median(cpus[task]), peak)


def in_turns(folder: Path) -> list[float]:
    """How many times as long Spark takes for a leaderboard as DuckDB, turn by turn."""
    with DuckLake(folder) as duck, SparkLake(folder) as distributed:
        duckdb, spark = LakeSource(duck), LakeSource(distributed)
        ratios = []
        for _ in range(WARMING + TIMES):
            start = time.perf_counter()
            board_of(duckdb)
            between = time.perf_counter()
            board_of(spark)
            ratios.append((time.perf_counter() - between) / (between - start))
        return ratios[WARMING:]


def measured(engine: str, folder: Path, *tasks: str) -> list[Taken]:
    """Measure tasks in a fresh process."""
    return [Taken(*line) for line in _told(engine, os.fspath(folder), *tasks)]


def _told(*arguments: str) -> list[Any]:
    run = subprocess.run(  # noqa: S603 - our own interpreter on our own file
        [sys.executable, __file__, "--measure", *arguments],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    told: list[Any] = json.loads(run.stdout.splitlines()[-1])
    return told


def compare(sessions: int, *, spark: bool) -> None:
    """Make two lakes, one four times the other, and print what they take."""
    with tempfile.TemporaryDirectory(prefix="witan-bench-") as place:
        small, large = Path(place, "small"), Path(place, "large")
        make_lake(small, sessions)
        make_lake(large, 4 * sessions)
        scan, means = measured("duckdb", small, "scan", "standings")
        [board], [board_4] = (measured("duckdb", lake, "board") for lake in (small, large))
        [audit], [audit_4] = (measured("duckdb", lake, "audit") for lake in (small, large))
        million = 1e6 / sessions
        ratio, growth = means.cpu / scan.cpu, board_4.cpu / board.cpu
        rows = [
            Row("mean of means / bare scan of its columns", f"{ratio:.2f} ×", "≤ 2 ×", ratio <= 2),
            Row("with pairs, Bradley–Terry, errors; s per million", f"{board.cpu * million:.2f} s",
                "≤ 3 s", board.cpu * million <= 3),
            Row("  by the clock on the wall", f"{board.wall * million:.2f} s", "—", None),
            Row("  peak of memory", f"{board.peak_mb:.0f} MB", "≤ 500 MB", board.peak_mb <= 500),
            Row("four times the sessions: time", f"{growth:.1f} ×", "≤ 5 ×", growth <= 5),
            Row("  peak of memory", f"{board_4.peak_mb:.0f} MB", "≤ 500 MB",
                board_4.peak_mb <= 500),
            Row("every table of the audit, s per million", f"{audit.cpu * million:.1f} s", "—",
                None),
            Row("  peak of memory, and with four times the sessions",
                f"{audit.peak_mb:.0f}, {audit_4.peak_mb:.0f} MB", "≤ 500 MB",
                max(audit.peak_mb, audit_4.peak_mb) <= 500),
        ]  # fmt: skip
        if spark:
            ratios = sorted(_told("spark", os.fspath(small)))
            times = median(ratios)
            met = times <= 4 if sessions >= 1_000_000 else None
            seen = f"{times:.1f} × ({ratios[0]:.1f}–{ratios[-1]:.1f})"
            rows.append(Row("Spark on this machine / DuckDB", seen, "≤ 4 × from 1 M", met))
        show(f"A lake of {sessions:,} sessions × {SEATS} × {SEATS}", rows)


def main() -> None:
    """Print the table; or, as its own child, measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sessions", type=int, default=100_000)
    parser.add_argument("--no-spark", action="store_true")
    parser.add_argument("--measure", nargs="+", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.measure:
        engine, folder, *tasks = given.measure
        if engine == "spark":
            print(json.dumps(in_turns(Path(folder))))
        else:
            taken = in_this_process(Path(folder), tasks)
            print(json.dumps([[t.wall, t.cpu, t.peak_mb] for t in taken]))
    else:
        compare(given.sessions, spark=not given.no_spark)


if __name__ == "__main__":
    main()
