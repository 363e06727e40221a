"""Estimates corrected by people beside those of ppi-python, truescore and judgy: coverage, width.

A jury that is right in nine of ten judges 500 texts, people 50 of them; 200 times for each share of
texts that pass. Packages that are not installed are left out.

``--pairs FILE`` checks panels without people's votes, beside judgepanel, on real pairs with known
answers (a column ``gold``, or people's majority): of each pair, one text passes if it is the better
one, drawn so that a stated share passes.

``--questions FILE`` checks intervals of pass rates where questions have several rows, on real
grades (columns ``prompt_id``, ``judge``, ``candidate``, ``score``): of a few questions drawn, rows
of the judge that grades most; the truth is the rate of all other questions.

``--clusters`` checks panels without people's votes on simulated questions with several texts, whose
chances to pass correlate within a question.
"""

import argparse
import csv
import gzip
import importlib
import sys
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path

import numpy as np
from harness import Row, show

from witan.core.ballot import Ballot
from witan.core.estimation import SHARED_ERROR, estimate, infer_share, sample_votes
from witan.core.stats.prediction_powered import estimate_powered_means

TEXTS, LABELLED, REPEATS, ACCURACY = 500, 50, 200, 0.9
SHARES = (0.5, 0.7, 0.9, 0.95)

PANELS, PAIRS = 40, 150
"""Panels drawn from real pairs for each share, and pairs of each."""

SIZES = ((5, 2), (5, 8), (10, 4), (20, 8), (60, 4))
"""Questions drawn from real grades, and most rows of each."""

DRAWN = 150
"""Samples of questions for each of these and each pass mark."""

CLUSTERS = ((10, 8), (20, 4), (60, 2))
"""Simulated questions, and texts of each."""

SIMULATED, CORRELATION = 60, 0.5
"""Panels for each of these, and the correlation of two texts of a question."""

Bounds = np.ndarray
"""Low and high ends, shape (2, REPEATS)."""


def draw(share: float) -> tuple[np.ndarray, np.ndarray]:
    """Draw what people say and what the jury says, shape (TEXTS, REPEATS)."""
    rng = np.random.default_rng(round(100 * share))
    people = (rng.random((TEXTS, REPEATS)) < share).astype(float)
    jury = np.where(rng.random(people.shape) < ACCURACY, people, 1 - people)
    people[LABELLED:] = np.nan
    return people, jury


def peers() -> Iterator[tuple[str, Callable[[np.ndarray, np.ndarray], tuple[float, float]]]]:
    """Estimators of other packages, of one sample each."""
    try:
        ppi = importlib.import_module("ppi_py")

        def by_ppi(people: np.ndarray, jury: np.ndarray) -> tuple[float, float]:
            parts = (people[:LABELLED], jury[:LABELLED], jury[LABELLED:])
            low, high = ppi.ppi_mean_ci(*parts, alpha=0.05)
            return float(np.squeeze(low)), float(np.squeeze(high))

        yield "ppi-python", by_ppi
    except ImportError:
        pass
    try:
        truescore = importlib.import_module("truescore")

        def by_truescore(people: np.ndarray, jury: np.ndarray) -> tuple[float, float]:
            found = truescore.ppi_estimate(jury, people[:LABELLED], np.arange(LABELLED))
            return float(found.low), float(found.high)

        yield "truescore", by_truescore
    except ImportError:
        pass
    try:
        judgy = importlib.import_module("judgy")

        def by_judgy(people: np.ndarray, jury: np.ndarray) -> tuple[float, float]:
            parts = (people[:LABELLED].astype(int), jury[:LABELLED].astype(int))
            rest = jury[LABELLED:].astype(int)
            try:
                _, low, high = judgy.estimate_success_rate(*parts, rest, bootstrap_iterations=500)
                return float(low), float(high)
            except (ValueError, RuntimeError):
                return np.nan, np.nan

        yield "judgy", by_judgy
    except ImportError:
        pass


def panel_peer() -> Callable[[np.ndarray], tuple[float, float]] | None:
    """Return how judgepanel bootstraps the interval of a pass rate, if installed."""
    try:
        judgepanel = importlib.import_module("judgepanel")
    except ImportError:
        return None

    def estimate(votes: np.ndarray) -> tuple[float, float]:
        labels = np.where(np.isnan(votes), judgepanel.MISSING, np.nan_to_num(votes)).astype(int)
        items, judges = ([*map(str, range(n))] for n in votes.shape)
        panel = judgepanel.Panel(labels, tuple(items), tuple(judges), ("fail", "pass"))
        low, high = judgepanel.bootstrap_judges(panel, n_boot=100).prevalence["pass"]
        return low, high

    return estimate


def read_right(path: str) -> np.ndarray:
    """Read whether each judge chose the better text of each pair, (pairs, judges)."""
    rng = np.random.default_rng(0)
    votes: dict[tuple[str, ...], dict[str, list[str]]] = {}
    truth: dict[tuple[str, ...], list[str]] = {}
    judges: list[str] = []
    with gzip.open(path, "rt") if path.endswith(".gz") else Path(path).open() as file:
        for row in csv.DictReader(file):
            pair = (row["prompt_id"], *sorted((row["first"], row["second"])))
            choice = row.get(row["outcome"]) or ""
            if row["judge_kind"] == "human":
                truth.setdefault(pair, []).append(choice)
            else:
                judges.append(row["judge"])
                votes.setdefault(pair, {}).setdefault(row["judge"], []).append(choice)
                if row["gold"]:
                    truth[pair] = [row["gold"]]
    names = sorted(set(judges))
    rows = []
    for pair, by_judge in votes.items():
        said = truth.get(pair, [])
        better = [text for text in pair[1:] if 2 * said.count(text) > len(said)]
        chosen = [str(rng.choice(by_judge.get(name, [""]))) for name in names]
        if better:
            rows.append([float(each == better[0]) if each else np.nan for each in chosen])
    return np.array(rows)


def check_panel(path: str) -> None:
    """Print how often panels without people's votes cover the share of texts that pass."""
    right = read_right(path)
    rng = np.random.default_rng(1)
    peer = panel_peer()
    rows = []
    for share in SHARES:
        found: dict[str, list[tuple[float, float]]] = {}
        values = []
        for _ in range(PANELS):
            some = right[rng.permutation(len(right))[:PAIRS]]
            passes = rng.random(len(some)) < share
            votes = np.where(
                np.isnan(some), np.nan, np.where(passes[:, np.newaxis], some, 1 - some)
            )
            values.append(np.nanmean(votes))
            if peer is not None:
                found.setdefault("judgepanel", []).append(peer(votes))
            system, bounds = np.zeros(len(some), dtype=np.intp), []
            for error in (0.0, SHARED_ERROR):
                drawn = sample_votes(system, votes, error)
                if drawn is not None:
                    bounds.append(np.quantile(drawn.rates, [0.025, 0.975]))
            if len(bounds) == 2:
                low, high = np.array(bounds).T
                found.setdefault("independent", []).append((low[0], high[0]))
                found.setdefault("shared error", []).append((low.min(), high.max()))
        rows.append(Row(f"pass rate {share:.2f}: jury alone", f"{np.mean(values):.3f}", "", None))
        for name, ends in found.items():
            low, high = np.array(ends).T
            covered = np.mean((low <= share) & (share <= high))
            figure = f"{covered:.2f}, {np.mean(high - low):.3f} wide; {len(ends)} of {PANELS} said"
            rows.append(Row(f"pass rate {share:.2f}: {name}", figure, "", None))
    correlation = np.corrcoef(right[~np.isnan(right).any(axis=1)], rowvar=False)
    mean = correlation[np.triu_indices(right.shape[1], 1)].mean()
    panel = f"{right.shape[1]} judges, {len(right)} pairs, right in {np.nanmean(right):.2f}"
    show(f"pass rates without people: {panel}; errors correlate by {mean:.2f}", rows)


def read_grades(path: str) -> list[np.ndarray]:
    """Read the grades of each question by the judge that has most."""
    with gzip.open(path, "rt") if path.endswith(".gz") else Path(path).open() as file:
        rows = [row for row in csv.DictReader(file) if row["score"]]
    judges = [row["judge"] for row in rows]
    judge = max(sorted(set(judges)), key=judges.count)
    grades: dict[str, list[float]] = {}
    for row in rows:
        if row["judge"] == judge:
            grades.setdefault(row["prompt_id"], []).append(float(row["score"]))
    return [np.array(each) for each in grades.values()]


def check_questions(path: str) -> bool:
    """Print how often intervals by question, and by row, cover the rate of other questions."""
    grades = read_grades(path)
    rng = np.random.default_rng(2)
    rows = []
    for mark in sorted({*np.concatenate(grades).tolist()})[1:]:
        passing = np.array([(each >= mark).sum() for each in grades])
        sizes = np.array([*map(len, grades)])
        for n_questions, n_rows in SIZES:
            hits, widths = [], []
            for _ in range(DRAWN):
                order = rng.permutation(len(grades)).tolist()
                some = [rng.permutation(grades[at])[:n_rows] for at in order[:n_questions]]
                truth = passing[order[n_questions:]].sum() / sizes[order[n_questions:]].sum()
                passes = [bool(grade >= mark) for each in some for grade in each]
                names = [str(at) for at, each in enumerate(some) for _ in each]
                found = [infer_share(passes, asked, 0.95) for asked in (names, [""] * len(names))]
                ends = np.array([(one.low, one.high) for one in found if one is not None])
                hits.append((ends[:, 0] <= truth) & (truth <= ends[:, 1]))
                widths.append(ends[:, 1] - ends[:, 0])
            covered, wide = np.mean(hits, axis=0), np.mean(widths, axis=0)
            name = f"pass rate {truth:.2f}, {n_questions} questions of {n_rows} rows"
            figure = f"{covered[0]:.3f}, {wide[0]:.3f} wide; by row {covered[1]:.3f}, {wide[1]:.3f}"
            rows.append(Row(name, figure, "≥ .90", bool(covered[0] >= 0.9)))
    show(f"95% intervals of a pass rate, {len(grades)} questions with several rows", rows)
    return all(row.met for row in rows)


def cast(seed: int, n_questions: int, n_texts: int, n_reviewers: int, rate: float) -> list[Ballot]:
    """Cast ballots of reviewers who are right in .7 to .9, each on all texts."""
    rng = np.random.default_rng(seed)
    ratio = 1 / CORRELATION - 1
    chances = rng.beta(rate * ratio, (1 - rate) * ratio, n_questions).repeat(n_texts)
    passes = rng.random(len(chances)) < chances
    right = rng.uniform(0.7, 0.9, (2, n_reviewers))[passes.astype(int)]
    votes = (rng.random(right.shape) < right) == passes[:, np.newaxis]
    return [
        Ballot(f"r{at}", grades={"x": 9 if vote else 2}, session=str(text), question=question)
        for text, row in enumerate(votes.tolist())
        for question in [f"Why {text // n_texts}?"]
        for at, vote in enumerate(row)
    ]


def check_clusters() -> bool:
    """Print how often intervals of panels cover where texts of a question resemble each other."""
    rows = []
    for n_questions, n_texts in CLUSTERS:
        for n_reviewers, rate in product((3, 5), (0.5, 0.9)):
            hits, widths = [], []
            for seed in range(SIMULATED):
                ballots = cast(seed, n_questions, n_texts, n_reviewers, rate)
                panel = estimate(ballots, pass_mark=6).panel
                for one in panel.rates if panel else ():
                    found = (one.independent.interval, one.shared.interval)
                    ends = [end for end in found if end is not None]
                    hits.append([end.low <= rate <= end.high for end in ends])
                    widths.append([end.high - end.low for end in ends])
            (alone, shared), (narrow, wide) = np.mean(hits, axis=0), np.mean(widths, axis=0)
            name = f"{n_questions} questions of {n_texts}, {n_reviewers} reviewers, rate {rate:.1f}"
            figure = f"{alone:.2f}, {narrow:.2f} wide; shared error {shared:.2f}, {wide:.2f}"
            rows.append(Row(name, figure, "≥ .90", bool(alone >= 0.9)))
            print(name, figure, file=sys.stderr, flush=True)
    show(f"95% intervals of panels, texts of a question correlate by {CORRELATION}", rows)
    return all(row.met for row in rows)


def main() -> int:
    """Print the table; return 1 if the coverage is below .91 anywhere."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", help="real pairs with known answers, as CSV")
    parser.add_argument("--questions", help="real grades of several rows to a question, as CSV")
    parser.add_argument("--clusters", action="store_true", help="simulated panels of questions")
    options = parser.parse_args()
    if options.clusters:
        return 0 if check_clusters() else 1
    if options.questions:
        return 0 if check_questions(options.questions) else 1
    if options.pairs:
        check_panel(options.pairs)
        return 0
    rows = []
    for share in SHARES:
        people, jury = draw(share)
        found = estimate_powered_means(people, jury, kind="shares")
        each = {
            "witan": np.array(found.corrected[1:3]),
            "people alone": np.array(found.people[1:3]),
            "jury alone": np.array(found.jury[1:3]),
        }
        for name, bounds in peers():
            each[name] = np.array([bounds(*one) for one in zip(people.T, jury.T, strict=True)]).T
        for name, (low, high) in each.items():
            covered = float(np.mean((low <= share) & (share <= high)))
            figure = f"{covered:.3f}, {np.nanmean(high - low):.3f} wide"
            own = name == "witan"
            met = covered >= 0.91 if own else None
            rows.append(Row(f"pass rate {share:.2f}: {name}", figure, "≥ .91" if own else "", met))
    show(f"95% intervals of a pass rate, {LABELLED} of {TEXTS} judged by people", rows)
    return 0 if all(row.met is not False for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
