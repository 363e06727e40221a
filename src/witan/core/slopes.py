"""How far one reviewer spreads answers beside the others: slopes of its grades on their means."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from witan.core.stats.measures import Count, Measure, lacking, measured, undefined
from witan.core.stats.sums import GradingSums, ReviewerSums

__all__ = ["Slopes", "over"]

Array = NDArray[np.float64]
Rows = NDArray[np.intp]


class Slopes:
    """Sums of grades of some reviewers beside the others', by bucket.

    Parameters
    ----------
    table
        What is summed.
    rows : mapping
        Reviewer → its rows of the table.
    counts : integer array
        Grades of each row.
    """

    def __init__(
        self,
        table: ReviewerSums | GradingSums,
        rows: Mapping[int, Rows],
        counts: NDArray[np.int64],
    ) -> None:
        self._reviewers = list(rows)
        columns = (counts, table.x, table.y, table.xx, table.yy, table.xy)
        self._sums = _by_reviewer(table.bucket, rows, columns)

    def discrimination(self, codes: list[int], count: Count, level: float) -> Measure:
        """Measure the slope of grades on the others' means, over that within all reviewers.

        The mean of few others is a noisy measure of an answer, which flattens a slope on it alike
        for all; the ratio takes that out. Two reviewers are each other's panel.
        """
        if count.n < count.needed:
            return lacking(count, "slope")
        if len(codes) > 1:
            return undefined(count, "slope", "all of them together are the panel")
        at = self._reviewers.index(codes[0])
        rest = np.delete(np.arange(len(self._reviewers)), at)
        return measured(
            self._sums,
            lambda held: over(_slope(held[:, at]), _slope_within(held)),
            count,
            "slope",
            level=level,
            sides=(slice(at, at + 1), rest),
        )


def over(above: Array, below: Array) -> Array:
    """One over the other; NaN where the other is not above 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(below > 0, above / below, np.nan)


def _slope(sums: Array) -> Array:
    """Least-squares slope of x on y from n, x, y, xx, yy, xy, shape (N, 6) → (N,)."""
    n, x, y, _, yy, xy = np.moveaxis(sums, -1, 0)
    spread = n * yy - y * y
    with np.errstate(divide="ignore", invalid="ignore"):
        found = (n * xy - x * y) / spread
    return np.where((spread > 1e-12 * n * yy) & (n > 1.5), found, np.nan)


def _slope_within(sums: Array) -> Array:
    """Least-squares slope with an intercept for each reviewer, (N, R, 6) → (N,)."""
    n, x, y, _, yy, xy = np.moveaxis(sums, -1, 0)
    known = np.maximum(n, 1.0)
    spread = (yy - y * y / known).sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        found = (xy - x * y / known).sum(axis=1) / spread
    return np.where(spread > 1e-12 * yy.sum(axis=1), found, np.nan)


def _by_reviewer(
    bucket: NDArray[np.int64],
    rows: Mapping[int, Rows],
    columns: tuple[NDArray[np.float64 | np.int64], ...],
) -> Array:
    """Columns added up by bucket and reviewer, shape (B, R, K), in the order of the reviewers."""
    chosen = np.concatenate([np.zeros(0, dtype=np.intp), *rows.values()])
    reviewer = np.repeat(np.arange(len(rows)), [len(held) for held in rows.values()])
    buckets, at = np.unique(bucket[chosen], return_inverse=True)
    sums = np.zeros((len(buckets), len(rows), len(columns)))
    for place, column in enumerate(columns):
        np.add.at(sums[..., place], (at, reviewer), column[chosen])
    return sums
