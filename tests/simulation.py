"""Councils of known quality: simulated, or drawn from real judges whose peers are held out."""

import csv
import gzip
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from elections import mean_ranks
from witan.core.profile import Profile


def council(
    quality: Sequence[float],
    *,
    reviewers: int,
    sessions: int,
    rng: np.random.Generator,
    shared: float = 0.0,
    spreads: float = 0.25,
    noise: np.ndarray | float = 1.0,
    recused: bool = True,
    rounded: bool = True,
) -> Profile:
    """Grades = level + spread · (quality + noise), rounded to 1–10, own answer recused.

    Reviewers differ in level (sd 1 grade point) and spread (log sd `spreads`). `shared` is the
    share of the noise variance that all reviewers of an answer have in common. `noise` is its
    standard deviation, one for all sessions or one each.
    """
    shape = (reviewers, len(quality), sessions)
    level = rng.normal(0, 1, (reviewers, 1, sessions))
    spread = np.exp(rng.normal(0, spreads, (reviewers, 1, sessions)))
    errors = np.sqrt(1 - shared) * rng.normal(size=shape)
    errors += np.sqrt(shared) * rng.normal(size=(1, len(quality), sessions))
    truth = np.asarray(quality, dtype=float)[np.newaxis, :, np.newaxis]
    grades = 6 + level + spread * (truth + noise * errors)
    if rounded:
        grades = np.clip(np.rint(grades), 1, 10)
    if recused:
        for own in range(min(reviewers, len(quality))):
            grades[own, own] = np.nan
    return Profile.from_ranks(mean_ranks(-grades), grades=grades)


def panels_of_judges(
    path: Path, reviewers: int, *, candidates: int = 5, draws: int = 400
) -> tuple[np.ndarray, np.ndarray]:
    """Panels drawn from many judges of documents, and the mean grades of the judges held out.

    `path` has columns judge, prompt_id, candidate and score, 0 to 3, gzipped. Returns the panels'
    grades (R, C, S) on 1 to 10 and the means (C, S); `draws` of each question.
    """
    scores = defaultdict(lambda: defaultdict(dict))
    with gzip.open(path, "rt", encoding="utf-8", newline="") as lines:
        for row in csv.DictReader(lines):
            if row["score"]:
                scores[row["prompt_id"]][row["judge"]][row["candidate"]] = row["score"]
    rng = np.random.default_rng(reviewers)
    panels, means = [], []
    for judges in scores.values():
        names = sorted(set.intersection(*(set(given) for given in judges.values())))
        table = np.array([[float(given[n]) for n in names] for given in judges.values()])
        table = 1 + 3 * np.clip(table, 0, 3)
        for _ in range(draws):
            order = rng.permutation(len(table))
            some = rng.choice(len(names), candidates, replace=False)
            means.append(table[order[reviewers:]][:, some].mean(axis=0))
            panels.append(table[order[:reviewers]][:, some])
    return np.stack(panels, axis=2), np.stack(means, axis=1)
