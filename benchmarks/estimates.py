"""Estimates corrected by people beside those of ppi-python and judgy: coverage and width.

A jury that is right in nine of ten judges 500 texts, people 50 of them; 200 times for each share of
texts that pass. Packages that are not installed are left out.
"""

import importlib
import sys
from collections.abc import Callable, Iterator

import numpy as np
from harness import Row, show

from witan.core.stats.prediction_powered import estimate_powered_means

TEXTS, LABELLED, REPEATS, ACCURACY = 500, 50, 200, 0.9
SHARES = (0.5, 0.7, 0.9, 0.95)

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


def main() -> int:
    """Print the table; return 1 if the coverage is below .91 anywhere."""
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
