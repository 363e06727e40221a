"""What p_best states beside how often it is right, by tenth: simulated, and on real judges.

    python benchmarks/probabilities.py [--sessions N] [--grades FILE]

Simulated reviewers grade five candidates in whole points, with noise and levels of standard
deviation 1; the standard deviation of quality is one of `SPREADS`. Juries grade every candidate,
authors all but their own. ``--grades``: many judges' grades on 0 to 3, as columns ``judge,
prompt_id, candidate, score``, gzipped; of five documents of a question, the best is the one to
which the judges that are not drawn give the highest mean.
"""

import argparse
import csv
import gzip
from collections import defaultdict
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from witan import Settings, tally_sessions
from witan.core.ballot import Ballot

Floats = NDArray[np.float64]
Found = list[tuple[float, bool]]
"""The highest p_best of each session, and whether it is that of the best candidate."""

SPREADS = (0.5, 1.0, 2.0)
REVIEWERS = (3, 5, 8)
CANDIDATES = "abcde"
TENTHS = (0.5, 0.6, 0.7, 0.8, 0.9)
LEAST, DRAWS = 100, 400


def count(grades: Floats, best: Floats, seats: str) -> Found:
    """Count sessions of grades of shape (R, C, S); NaN: one's own candidate."""
    cast = (
        Ballot(
            seats[reviewer],
            session=str(session),
            grades={
                name: float(grade)
                for name, grade in zip(CANDIDATES, row, strict=True)
                if not np.isnan(grade)
            },
        )
        for session, ballots in enumerate(grades.transpose(2, 0, 1))
        for reviewer, row in enumerate(ballots)
    )
    found = []
    for outcome in tally_sessions(cast, Settings(flips=False, scale="1-10")):
        likeliest = max(outcome.standings, key=lambda line: line.p_best or 0.0)
        right = likeliest.candidate == CANDIDATES[best[int(outcome.session or 0)]]
        found.append((likeliest.p_best or 0.0, right))
    return found


def simulate(reviewers: int, spread: float, sessions: int, *, authors: bool) -> Found:
    """Count simulated sessions."""
    rng = np.random.default_rng((reviewers, int(10 * spread), authors))
    quality = rng.normal(0, spread, (len(CANDIDATES), sessions))
    noise = rng.normal(size=(reviewers, *quality.shape))
    level = rng.normal(size=(reviewers, 1, sessions))
    grades = np.clip(np.rint(5.5 + quality + level + noise), 1, 10)
    if authors:
        for own in range(min(grades.shape[:2])):
            grades[own, own] = np.nan
    return count(grades, quality.argmax(axis=0), CANDIDATES + "xyz" if authors else "jklmnopq")


def draw(path: Path, reviewers: int) -> Found:
    """Count panels drawn from judges of documents, the others saying which is best."""
    scores: dict[str, dict[str, dict[str, float]]] = defaultdict(lambda: defaultdict(dict))
    with gzip.open(path, "rt", encoding="utf-8", newline="") as lines:
        for row in csv.DictReader(lines):
            if row["score"]:
                grade = 1 + 3 * min(max(float(row["score"]), 0.0), 3.0)
                scores[row["prompt_id"]][row["judge"]][row["candidate"]] = grade
    rng = np.random.default_rng(reviewers)
    grades, best = [], []
    for judges in scores.values():
        names = sorted(set.intersection(*(set(given) for given in judges.values())))
        table = np.array([[given[name] for name in names] for given in judges.values()])
        for _ in range(DRAWS):
            order = rng.permutation(len(table))
            some = rng.choice(len(names), len(CANDIDATES), replace=False)
            best.append(table[order[reviewers:]][:, some].mean(axis=0).argmax())
            grades.append(table[order[:reviewers]][:, some])
    return count(np.stack(grades, axis=2), np.array(best), "jklmnopq")


def by_tenth(found: Found) -> Iterator[tuple[float, float] | None]:
    """Mean of what is stated, and share of what is right, of each tenth with sessions enough."""
    stated, right = (np.array(column) for column in zip(*found, strict=True))
    for low in TENTHS:
        among = (stated >= low) & (stated < low + 0.1 + (low > 0.85))
        enough = among.sum() >= LEAST
        yield (float(stated[among].mean()), float(right[among].mean())) if enough else None


def print_row(name: str, found: Found) -> None:
    """Print stated → right of each tenth, and the largest difference with its sign."""
    tenths = [*by_tenth(found)]
    cells = [f"{each[0]:.2f} → {each[1]:.2f}" if each else "–" for each in tenths]
    gaps = [right - stated for stated, right in filter(None, tenths)]
    cells.append(f"{max(gaps, key=abs):+.2f}" if gaps else "–")
    print("  ".join([f"{name:<40}", *(f"{cell:<11}" for cell in cells)]))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sessions", type=int, default=3_000, help="of each spread")
    parser.add_argument("--grades", type=Path)
    given = parser.parse_args()
    print("\np_best of the likeliest: stated → right in each tenth, and the largest difference")
    for authors in (False, True):
        kind = "authors" if authors else "jurors"
        for reviewers in REVIEWERS:
            parts = [
                simulate(reviewers, spread, given.sessions, authors=authors) for spread in SPREADS
            ]
            print_row(f"{reviewers} {kind}, spreads mixed", [*chain.from_iterable(parts)])
            for spread, part in zip(SPREADS, parts, strict=True):
                print_row(f"  spread {spread:g}", part)
    if given.grades:
        for reviewers in REVIEWERS[:2]:
            print_row(
                f"{reviewers} real judges, the others held out", draw(given.grades, reviewers)
            )


if __name__ == "__main__":
    main()
