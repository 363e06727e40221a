"""What p_best states beside how often it is right, by tenth: simulated, and on real judges.

    python benchmarks/probabilities.py [--sessions N] [--grades FILE]

Simulated reviewers grade three, five or eight candidates in whole points, with noise and levels of
standard deviation 1; the standard deviation of quality is one of `SPREADS`. Juries grade every
candidate, authors all but their own. "Knowing all" is the posterior that knows the noise and that
each spread is as likely: the best that can be stated without knowing the spread of the session.
``--grades``: many judges' grades on 0 to 3, as columns ``judge, prompt_id, candidate, score``,
gzipped; of five documents of a question, the best is the one to which the judges that are not drawn
give the highest mean.
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

from witan.core.outcome import Prior
from witan.core.profile import ROUNDING_VARIANCE, Profile
from witan.core.stats.additive import fit_grades
from witan.core.stats.posterior import beliefs, ratios
from witan.core.stats.priors import public_prior
from witan.core.stats.uncertainty import Uncertainty

Floats = NDArray[np.float64]
Found = list[tuple[float, bool]]
"""The highest p_best of each session, and whether it is that of the best candidate."""

SPREADS = (0.5, 1.0, 2.0)
REVIEWERS = (3, 5, 8)
CANDIDATES = (5, 3, 8)

TENTHS = (0.5, 0.6, 0.7, 0.8, 0.9)
DRAWS = 400
LEAST, LEAST_SHARE = 100, 0.02
"""Sessions, and share of them, that a tenth needs at least."""


def count(grades: Floats, best: NDArray[np.intp]) -> Found:
    """Count sessions of grades of shape (R, C, S) with the public prior; NaN: one's own."""
    prior = public_prior("grades", grades.shape[1])
    return believe(grades, best, prior, ratios(prior))


def know_all(grades: Floats, best: NDArray[np.intp]) -> Found:
    """Compute the posterior that knows the noise and the mix of spreads."""
    noise = 1 + ROUNDING_VARIANCE
    known = Prior(noise, 1e4, None, "grades", grades.shape[2])
    return believe(grades, best, known, np.square(SPREADS) / noise)


def believe(
    grades: Floats, best: NDArray[np.intp], prior: Prior, among: NDArray[np.floating] | None
) -> Found:
    """Compute p_best in columns, as a count does."""
    present = ~np.isnan(grades)
    profile = Profile.from_ranks(np.where(present, 1.0, np.nan), grades=grades)
    uncertainty = Uncertainty.of(fit_grades(profile), present.sum(axis=0), prior=prior)
    everyone = np.ones(grades.shape[1:], dtype=np.bool_)
    p_best = beliefs(uncertainty, everyone, among).p_best
    right = p_best.argmax(axis=0) == best
    return [*zip(p_best.max(axis=0).tolist(), right.tolist(), strict=True)]


def simulate(
    shape: tuple[int, int, int], spread: float, *, authors: bool
) -> tuple[Floats, NDArray[np.intp]]:
    """Grades (R, C, S) and the truly best of each session."""
    rng = np.random.default_rng((shape[0], int(10 * spread), authors))
    quality = rng.normal(0, spread, shape[1:])
    noise = rng.normal(size=shape)
    level = rng.normal(size=(shape[0], 1, shape[2]))
    grades = np.clip(np.rint(5.5 + quality + level + noise), 1, 10)
    if authors:
        for own in range(min(shape[:2])):
            grades[own, own] = np.nan
    return grades, quality.argmax(axis=0)


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
            some = rng.choice(len(names), CANDIDATES[0], replace=False)
            best.append(table[order[reviewers:]][:, some].mean(axis=0).argmax())
            grades.append(table[order[:reviewers]][:, some])
    return count(np.stack(grades, axis=2), np.array(best))


def by_tenth(found: Found) -> Iterator[tuple[float, float] | None]:
    """Mean of what is stated, and share of what is right, of each tenth with sessions enough."""
    stated, right = (np.array(column) for column in zip(*found, strict=True))
    for low in TENTHS:
        among = (stated >= low) & (stated < low + 0.1 + (low > 0.85))
        enough = among.sum() >= max(LEAST, LEAST_SHARE * len(stated))
        yield (float(stated[among].mean()), float(right[among].mean())) if enough else None


def print_row(name: str, found: Found) -> None:
    """Print stated → right of each tenth, and the largest difference with its sign."""
    tenths = [*by_tenth(found)]
    cells = [f"{each[0]:.2f} → {each[1]:.2f}" if each else "–" for each in tenths]
    gaps = [right - stated for stated, right in filter(None, tenths)]
    cells.append(f"{max(gaps, key=abs):+.2f}" if gaps else "–")
    print("  ".join([f"{name:<52}", *(f"{cell:<11}" for cell in cells)]))


def print_council(shape: tuple[int, int, int], *, authors: bool) -> None:
    """Print the rows of one council, and beside three reviewers those of knowing all."""
    parts = [simulate(shape, spread, authors=authors) for spread in SPREADS]
    ways = {"": count, ", knowing all": know_all}
    for words, way in ways.items():
        if words and shape[0] > REVIEWERS[0]:
            continue
        found = [way(*part) for part in parts]
        kind = "authors" if authors else "jurors"
        name = f"{shape[0]} {kind}, {shape[1]} candidates{words}"
        print_row(f"{name}, mixed", [*chain.from_iterable(found)])
        for spread, part in zip(SPREADS, found, strict=True):
            print_row(f"  spread {spread:g}", part)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sessions", type=int, default=3_000, help="of each spread")
    parser.add_argument("--grades", type=Path)
    given = parser.parse_args()
    print("\np_best of the likeliest: stated → right in each tenth, and the largest difference")
    for authors in (False, True):
        for candidates in CANDIDATES:
            for reviewers in REVIEWERS:
                print_council((reviewers, candidates, given.sessions), authors=authors)
    if given.grades:
        for reviewers in REVIEWERS[:2]:
            print_row(
                f"{reviewers} real judges, the others held out", draw(given.grades, reviewers)
            )


if __name__ == "__main__":
    main()
