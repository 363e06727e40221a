"""What p_best states beside how often it is right, by tenth: simulated, and on real judges.

    python benchmarks/probabilities.py [--sessions N] [--grades FILE] [--rankings]

Simulated reviewers grade three, five or eight candidates in whole points, with noise and levels of
standard deviation 1; the standard deviation of quality is one of `SPREADS`. Juries grade every
candidate, authors all but their own. "Knowing all" is the posterior that knows the noise and that
each spread is as likely: the best that can be stated without knowing the spread of the session.
``--grades``: many judges' grades on 0 to 3, as columns ``judge, prompt_id, candidate, score``,
gzipped; of five documents of a question, the best is the one to which the judges that are not drawn
give the highest mean.
``--rankings``: the same councils rank only; with ties a reviewer tells apart one standard deviation
of noise. "Exactly" is the share among all simulated sessions with the same rankings: no statement
that is right over the mix can be surer.
"""

import argparse
import csv
import gzip
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import chain, product
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from witan.core.inference import beliefs, ratios
from witan.core.outcome import Prior
from witan.core.profile import ROUNDING_VARIANCE, Profile
from witan.core.stats.additive import fit_grades, fit_ranks
from witan.core.stats.priors import public_prior
from witan.core.stats.uncertainty import Uncertainty

Floats = NDArray[np.float64]
Found = list[tuple[float, bool]]
"""The highest p_best of each session, and whether it is that of the best candidate."""

SPREADS = (0.5, 1.0, 2.0)
REVIEWERS = (3, 5, 8)
CANDIDATES = (5, 3, 8)
EXACT = ((3, 3), (3, 4))
"""Authors and candidates with few enough different rankings to count them all."""

TENTHS = (0.5, 0.6, 0.7, 0.8, 0.9)
DRAWS, RESAMPLES = 400, 2000
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
    if prior.unit == "grades":
        ranks = np.where(present, 1.0, np.nan)
        fit = fit_grades(Profile.from_ranks(ranks, grades=grades))
    else:
        fit = fit_ranks(Profile.from_ranks(grades))
    uncertainty = Uncertainty.of(fit, present.sum(axis=0), prior=prior)
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


def rank(
    shape: tuple[int, int, int], spread: float, *, authors: bool, tied: bool
) -> tuple[Floats, NDArray[np.intp]]:
    """Ranks (R, C, S), 1 best, and the truly best of each session."""
    rng = np.random.default_rng((*shape[:2], int(10 * spread), authors, tied))
    quality = rng.normal(0, spread, shape[1:])
    liking = quality + rng.normal(size=shape)
    if tied:
        liking = np.rint(liking + rng.normal(size=(shape[0], 1, shape[2])))
    if authors:
        for own in range(min(shape[:2])):
            liking[own, own] = np.nan
    return rank_all(liking), quality.argmax(axis=0)


def rank_all(liking: Floats) -> Floats:
    """Rank on each ballot of (R, C, S), 1 best; equals share their mean rank."""
    ranks = np.full(liking.shape, 0.5)
    for rival in range(liking.shape[1]):
        other = liking[:, rival : rival + 1]
        ranks += (other > liking) + 0.5 * (other == liking)
    return np.where(np.isnan(liking), np.nan, ranks)


def count_ranks(ranks: Floats, best: NDArray[np.intp]) -> Found:
    """Count sessions of ranks (R, C, S) with the public prior."""
    prior = public_prior("ranks", ranks.shape[1])
    return believe(ranks, best, prior, ratios(prior))


def count_exactly(parts: Sequence[tuple[Floats, NDArray[np.intp]]]) -> list[Found]:
    """State the shares that other sessions with the same rankings show; halves take turns."""
    cells = np.nan_to_num(np.concatenate([ranks for ranks, _ in parts], axis=2)).astype(np.uint8)
    keys = np.ascontiguousarray(cells.reshape(-1, cells.shape[2]).T)
    _, number = np.unique(keys, axis=0, return_inverse=True)
    best, half = np.concatenate([best for _, best in parts]), np.arange(len(number)) % 2
    shares = np.zeros((2, number.max() + 1, cells.shape[1]))
    np.add.at(shares, (half, number, best), 1)
    shares /= np.maximum(shares.sum(axis=2, keepdims=True), 1)
    stated = shares[1 - half, number]
    right = stated.argmax(axis=1) == best
    found = [*zip(stated.max(axis=1).tolist(), right.tolist(), strict=True)]
    size = len(found) // len(parts)
    return [found[at : at + size] for at in range(0, len(found), size)]


def draw(path: Path, reviewers: int, *, ranked: bool) -> list[Found]:
    """Count panels drawn from judges of documents, the others saying which is best, by question."""
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
    drawn = np.stack(grades, axis=2)
    way, ballots = (count_ranks, rank_all(drawn)) if ranked else (count, drawn)
    found = way(ballots, np.array(best))
    return [found[at : at + DRAWS] for at in range(0, len(found), DRAWS)]


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


def print_intervals(questions: Sequence[Found]) -> None:
    """Print each tenth's difference, with a 95% interval by a bootstrap over the questions."""
    drawn = np.random.default_rng(0).integers(0, len(questions), (RESAMPLES, len(questions)))
    cells = []
    for low in TENTHS:
        gaps = [
            [hit - p for p, hit in found if low <= p < low + 0.1 + (low > 0.85)]
            for found in questions
        ]
        sums, sizes = np.array([sum(gap) for gap in gaps]), np.array([len(gap) for gap in gaps])
        means = sums[drawn].sum(axis=1) / np.maximum(sizes[drawn].sum(axis=1), 1)
        least, most = np.quantile(means, (0.025, 0.975))
        cells.append(f"{sums.sum() / sizes.sum():+.2f} [{least:+.2f}, {most:+.2f}]")
    print("  ".join([f"{'  right less stated, of new questions':<52}", *cells]))


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


def print_rankings(shape: tuple[int, int, int], *, authors: bool, tied: bool) -> None:
    """Print the rows of one council that only ranks."""
    parts = [rank(shape, spread, authors=authors, tied=tied) for spread in SPREADS]
    kind = "authors" if authors else "jurors"
    name = f"{shape[0]} {kind}, {shape[1]} candidates{', ties' if tied else ''}"
    ways = {"": [count_ranks(*part) for part in parts]}
    if shape[:2] in EXACT and authors and not tied:
        ways[", exactly"] = count_exactly(parts)
    for words, found in ways.items():
        print_row(f"{name}{words}, mixed", [*chain.from_iterable(found)])
        for spread, part in zip(SPREADS, found, strict=True):
            print_row(f"  spread {spread:g}", part)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sessions", type=int, default=3_000, help="of each spread")
    parser.add_argument("--grades", type=Path)
    parser.add_argument("--rankings", action="store_true", help="instead of grades")
    given = parser.parse_args()
    print("\np_best of the likeliest: stated → right in each tenth, and the largest difference")
    if given.rankings:
        for authors, tied in product((False, True), repeat=2):
            for candidates, reviewers in product((*CANDIDATES, 4), REVIEWERS):
                shape = (reviewers, candidates, given.sessions)
                print_rankings(shape, authors=authors, tied=tied)
    else:
        for authors in (False, True):
            for candidates, reviewers in product(CANDIDATES, REVIEWERS):
                print_council((reviewers, candidates, given.sessions), authors=authors)
    if given.grades:
        for reviewers in REVIEWERS[:2]:
            found = draw(given.grades, reviewers, ranked=given.rankings)
            name = f"{reviewers} real judges, the others held out"
            print_row(name, [*chain.from_iterable(found)])
            print_intervals(found)


if __name__ == "__main__":
    main()
