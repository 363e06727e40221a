"""An audit off a SQLite history: the first time, again, after one session more; and of one session.

One history is drawn at random in the shape of those that people have: long lists graded by two
models, and comparisons of two answers in both orders by five models and by people. One holds a year
of councils of five out of twenty models. The one session has 34 reviewers, nine of them people, and
ever more candidates. Each audit runs in a process of its own, its start included.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
from harness import Row, show

from witan.analytics.audits import audit
from witan.core.ballot import Ballot, Kind
from witan.history import History, SessionImport

AT = datetime(2026, 1, 1, tzinfo=UTC)
LONG, GRADERS = 29, ("judge-1", "judge-2")
COUNCIL, PEOPLE = tuple(f"member-{k}" for k in range(5)), ("person-1", "person-2")
IN_PAIRS = 40
COUNCILS, DAYS, MODELS, SEATS = 20_000, 365, 20, 5
SECONDS = 1.0
JURY, JURY_PEOPLE, WIDTHS = 34, 9, (20, 40, 80)
WIDE_SECONDS = 2.0


def graded(
    rng: np.random.Generator, name: str, n: int = LONG, reviewers: Sequence[str] = GRADERS
) -> SessionImport:
    """A list that two models grade, or models and people."""
    models = [f"model-{k:02d}" for k in range(n)]
    worth = np.arange(n) * LONG / n / 8 + rng.standard_normal(n)
    cast = []
    for reviewer in reviewers:
        seen = np.clip(np.rint(4 + worth + rng.standard_normal(n)), 1, 10).astype(int).tolist()
        grades = dict(zip(models, seen, strict=True))
        groups = tuple(
            tuple(model for model in models if grades[model] == grade)
            for grade in sorted(set(seen), reverse=True)
        )
        kind: Kind = "human" if reviewer.startswith("person") else "model"
        cast.append(Ballot(reviewer, groups, session=name, kind=kind, grades=grades))
    lengths = dict(zip(models, rng.integers(200, 4000, n).tolist(), strict=True))
    return SessionImport(name, AT, ballots=tuple(cast), lengths=lengths)


def compared(rng: np.random.Generator, name: str) -> SessionImport:
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
    return SessionImport(name, AT, ballots=tuple(cast), lengths=lengths)


def drawn(n_sessions: int) -> Iterator[SessionImport]:
    """So many sessions, the first of them in pairs."""
    rng = np.random.default_rng(20260101)
    for number in range(n_sessions):
        yield (compared if number < IN_PAIRS else graded)(rng, f"q{number:06d}")


def council(rng: np.random.Generator, name: str, at: datetime) -> SessionImport:
    """Five models that grade each other's answers, shown in any order."""
    models = [f"model-{k:02d}" for k in sorted(rng.choice(MODELS, SEATS, replace=False).tolist())]
    worth = rng.standard_normal(SEATS)
    cast = []
    for reviewer in models:
        seen = np.clip(np.rint(6 + worth + rng.standard_normal(SEATS)), 1, 10).astype(int).tolist()
        grades = {
            model: grade for model, grade in zip(models, seen, strict=True) if model != reviewer
        }
        places = (1 + rng.permutation(SEATS - 1)).tolist()
        groups = tuple(
            tuple(model for model in grades if grades[model] == grade)
            for grade in sorted(set(grades.values()), reverse=True)
        )
        cast.append(
            Ballot(
                reviewer,
                groups,
                session=name,
                grades=grades,
                candidates=tuple(models),
                positions=dict(zip(grades, places, strict=True)),
            )
        )
    lengths = dict(zip(models, rng.integers(200, 4000, SEATS).tolist(), strict=True))
    return SessionImport(name, at, ballots=tuple(cast), lengths=lengths)


def year_of_councils(n_sessions: int) -> Iterator[SessionImport]:
    """So many councils, evenly over a year."""
    rng = np.random.default_rng(20260101)
    for number in range(n_sessions):
        yield council(rng, f"q{number:06d}", AT + timedelta(days=DAYS * number / n_sessions))


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


def wide_rows() -> Iterator[Row]:
    """Audits of a session by ever more candidates, each beside the one of half as many."""
    jury = [f"person-{k}" if k < JURY_PEOPLE else f"judge-{k}" for k in range(JURY)]
    before = None
    for width in WIDTHS:
        with tempfile.TemporaryDirectory(prefix="witan-bench-") as folder:
            place = Path(folder, "history.sqlite")
            with History.open(place) as history:
                one = graded(np.random.default_rng(width), "wide", width, jury)
                history.add([one], "wide", "wide")
            cpu = taken(place)[0]
        ratio = "" if before is None else f", {cpu / before:.1f} × half"
        widest = width == WIDTHS[-1]
        yield Row(
            f"{width} candidates",
            f"{cpu:.2f} s{ratio}",
            f"≤ {WIDE_SECONDS:g} s, ≤ 4 ×" if widest else "—",
            cpu <= min(WIDE_SECONDS, 4 * (before or cpu)) if widest else None,
        )
        before = cpu


def growth_rows(sessions: Iterator[SessionImport], one_more: SessionImport) -> Iterator[Row]:
    """Audits of a history: the first, the second, and one after one session more."""
    with tempfile.TemporaryDirectory(prefix="witan-bench-") as folder:
        place = Path(folder, "history.sqlite")
        with History.open(place) as history:
            history.add(sessions, "drawn", "drawn")
        first, again = taken(place), min(taken(place) for _ in range(3))
        more = []
        for number in range(3):
            name = f"one more {number}"
            with History.open(place) as history:
                cast = tuple(replace(ballot, session=name) for ballot in one_more.ballots)
                added = replace(one_more, session=name, ballots=cast)
                history.add([added], name, name)
            more.append(taken(place))
    for what, (cpu, wall), most in (
        ("an audit, first", first, None),
        ("again", again, SECONDS),
        ("after one more session", min(more), SECONDS),
    ):
        figure = f"{cpu:.2f} s ({wall:.2f} s by the clock), {cpu / first[0]:.2f} × first"
        target = "—" if most is None else f"≤ {most:g} s"
        yield Row(what, figure, target, None if most is None else cpu <= most)


def main() -> None:
    """Print the tables; or, as its own child, measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sessions", type=int, default=1_140)
    parser.add_argument("--councils", type=int, default=COUNCILS)
    parser.add_argument("--measure", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.measure:
        audit(given.measure)
        print(json.dumps(time.process_time()))
        return
    rng = np.random.default_rng(2)
    lists = [*growth_rows(drawn(given.sessions), graded(rng, "more"))]
    show(f"An audit of {given.sessions:,} sessions, long lists and pairs, in SQLite, CPU", lists)
    year = year_of_councils(given.councils)
    councils = [*growth_rows(year, council(rng, "more", AT))]
    show(f"An audit of {given.councils:,} councils over a year in SQLite, CPU", councils)
    show(f"An audit of one session of {JURY} reviewers, CPU", list(wide_rows()))


if __name__ == "__main__":
    main()
