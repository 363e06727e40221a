"""An audit off a SQLite history: the first time, again, and after one session more.

The history is drawn at random, in the shape of those that people have: long lists graded by two
models, and comparisons of two answers in both orders by five models and by people. Each audit runs
in a process of its own.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from harness import Row, show

from witan.analytics.audits import audit
from witan.core.ballot import Ballot
from witan.history import History, Imported

AT = datetime(2026, 1, 1, tzinfo=UTC)
LONG, GRADERS = 29, ("judge-1", "judge-2")
COUNCIL, PEOPLE = tuple(f"member-{k}" for k in range(5)), ("person-1", "person-2")
IN_PAIRS = 40
SECONDS = 1.0


def graded(rng: np.random.Generator, name: str) -> Imported:
    """A long list that two models grade."""
    models = [f"model-{k:02d}" for k in range(LONG)]
    worth = np.arange(LONG) / 8 + rng.standard_normal(LONG)
    cast = []
    for grader in GRADERS:
        seen = np.clip(np.rint(4 + worth + rng.standard_normal(LONG)), 1, 10).astype(int).tolist()
        grades = dict(zip(models, seen, strict=True))
        groups = tuple(
            tuple(model for model in models if grades[model] == grade)
            for grade in sorted(set(seen), reverse=True)
        )
        cast.append(Ballot(grader, groups, session=name, grades=grades))
    lengths = dict(zip(models, rng.integers(200, 4000, LONG).tolist(), strict=True))
    return Imported(name, AT, ballots=tuple(cast), lengths=lengths)


def compared(rng: np.random.Generator, name: str) -> Imported:
    """Every pair of five answers, in both orders by their authors, and in one by two people."""
    pairs = [(a, b) for a in COUNCIL for b in COUNCIL if a != b]
    cast = [
        Ballot(
            reviewer,
            ((pair[0],), (pair[1],)) if rng.random() < 0.6 else ((pair[1],), (pair[0],)),
            session=name,
            kind="human" if reviewer in PEOPLE else "model",
            positions={pair[0]: 1, pair[1]: 2},
        )
        for reviewer in (*COUNCIL, *PEOPLE)
        for pair in (pairs if reviewer in COUNCIL else pairs[::2])
    ]
    lengths = {member: int(rng.integers(200, 4000)) for member in COUNCIL}
    return Imported(name, AT, ballots=tuple(cast), lengths=lengths)


def drawn(n_sessions: int) -> Iterator[Imported]:
    """So many sessions, the first of them in pairs."""
    rng = np.random.default_rng(20260101)
    for number in range(n_sessions):
        yield (compared if number < IN_PAIRS else graded)(rng, f"q{number:06d}")


def taken(place: Path) -> tuple[float, float]:
    """CPU and wall seconds of one audit in a process of its own, its start included."""
    began = time.perf_counter()
    run = subprocess.run(  # noqa: S603 - our own interpreter on our own file
        [sys.executable, __file__, "--measure", str(place)],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return float(json.loads(run.stdout)), time.perf_counter() - began


def main() -> None:
    """Print the table; or, as its own child, measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sessions", type=int, default=1_140)
    parser.add_argument("--measure", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.measure:
        audit(given.measure)
        print(json.dumps(time.process_time()))
        return
    with tempfile.TemporaryDirectory(prefix="witan-bench-") as folder:
        place = Path(folder, "history.sqlite")
        with History.open(place) as history:
            history.add(drawn(given.sessions), "drawn", "drawn")
        first, again = taken(place), min(taken(place) for _ in range(3))
        with History.open(place) as history:
            history.add([graded(np.random.default_rng(), "one more")], "one more", "one more")
        more = taken(place)
    said = {"an audit, first": first, "again": again, "after one more session": more}
    rows = [
        Row(what, f"{cpu:.2f} s ({wall:.2f} s by the clock)", *wanted)
        for (what, (cpu, wall)), wanted in zip(
            said.items(),
            (("—", None), (f"≤ {SECONDS:g} s", again[0] <= SECONDS), ("—", None)),
            strict=True,
        )
    ]
    show(f"An audit of {given.sessions:,} sessions in SQLite, CPU", rows)


if __name__ == "__main__":
    main()
