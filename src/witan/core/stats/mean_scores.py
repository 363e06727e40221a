"""Mean score per model over sessions, with errors and differences beyond noise."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from witan.core.stats.measures import MIN_BUCKETS
from witan.core.stats.sums import StandingSums

Array = NDArray[np.float64]
Counts = NDArray[np.int64]

DUST = 1e-12
"""A sum of squared deviations this small, relative to the squares, is rounding."""


@dataclass(frozen=True, slots=True, eq=False)
class MeanScores:
    """Means of M models; NaN where there is no number.

    Parameters
    ----------
    sessions, appearances, votes, offered : integer arrays, shape (M,)
        As in `StandingSums`, over all buckets.
    wins : float array, shape (M,)
    mean : float array, shape (M,)
        Σ score / sessions.
    std_error : float array, shape (M,)
        s / √sessions with s the sample deviation of a session's score. NaN for one session, and
        where all sessions gave one score: that says nothing of how scores vary.
    constant : bool array, shape (M,)
        Two sessions or more gave one and the same score.
    z : float array, shape (M,)
        Mean standardised grade.
    pulls : float array, shape (B, M)
        How far each bucket moves the mean: (Σ score − mean · sessions) of the bucket, over all
        sessions. The sum over buckets is 0.
    filled : bool array, shape (B, M)
        The bucket has a score of the model.
    """

    sessions: Counts
    appearances: Counts
    votes: Counts
    offered: Counts
    wins: Array
    mean: Array
    std_error: Array
    constant: NDArray[np.bool_]
    z: Array
    pulls: Array
    filled: NDArray[np.bool_]

    def ahead(self, level: float) -> NDArray[np.bool_]:
        r"""True where model i's mean exceeds model j's beyond noise, (M, M).

        With u_bi the pull of bucket b on model i, B_i the buckets that hold it, and
        v_bi = u_bi · √(B_i/(B_i − 1)),

            error² = Σ_b (v_bi − v_bj)²,        |t| = difference / error,

        over all buckets, so that what two models share in a bucket cancels. The sum falls into
        that over the buckets that hold both, only i, and only j; with P the size of a part and n
        its buckets, Student's t is two-sided at `level` on Satterthwaite's degrees of freedom

            error⁴ / Σ_parts P²/(n − 1).

        A model of one and the same score is given the spread per session of its rival: a few equal
        scores are no proof that there are no others. Where neither spreads, or the difference is
        the same in every bucket, the signs decide: n equal ones in the buckets that hold both come
        by chance with probability 2^(1 − n). Nothing is above a model that fills fewer than
        `MIN_BUCKETS` buckets, nor is that above anything.

        References
        ----------
        Cochran, Sampling Techniques, 3rd edition 1977, section 6.4 (ratio of two sums, by
        cluster). Satterthwaite, "An approximate distribution of estimates of variance components",
        Biometrics Bulletin 2 (1946) 110–114. Dixon and Mood, "The statistical sign test", Journal
        of the American Statistical Association 41 (1946) 557–566.
        """
        from scipy.special import stdtrit

        holds = self.filled.astype(np.float64)
        n = holds.sum(axis=0)
        scaled = self.pulls * np.sqrt(n / np.maximum(n - 1, 1))
        both = holds.T @ holds
        gap = self.mean[:, np.newaxis] - self.mean
        shared, apart = _shared_and_apart(scaled, holds)
        squares = shared + apart + apart.T
        own = (scaled**2).sum(axis=0)
        exact = squares <= DUST * np.maximum(gap**2, own[:, np.newaxis] + own)
        lent = self._lent(own)
        parts = [
            (shared, both), (apart, n[:, np.newaxis] - both), (apart.T, n - both),
            (lent, n[:, np.newaxis] + 0 * both), (lent.T, n + 0 * both),
        ]  # fmt: skip
        squares = squares + lent + lent.T
        doubt = sum(part**2 / np.maximum(count - 1, 1) for part, count in parts)
        degrees = np.divide(squares**2, doubt, out=np.ones_like(squares), where=doubt > 0)
        reach = stdtrit(np.maximum(degrees, 1.0), 0.5 + level / 2) * np.sqrt(squares)
        beyond = np.where(exact, 2.0 ** (1 - both) < 1 - level, gap > reach)
        enough = n >= MIN_BUCKETS
        return np.asarray(beyond & (gap > 0) & enough & enough[:, np.newaxis])

    def _lent(self, own: Array) -> Array:
        """Squares from model i for a j of constant scores, (M, M)."""
        varies = ~self.constant & (own > 0)
        spread = np.where(varies, own * self.sessions, 0.0)
        rate = spread[:, np.newaxis] / np.maximum(self.sessions, 1)
        return np.where(self.constant, rate, 0.0)


def _shared_and_apart(scaled: Array, holds: Array) -> tuple[Array, Array]:
    """Sums of (v_i − v_j)² over shared buckets, and v_i² over the others."""
    squares = scaled**2
    together = squares.T @ holds
    shared = together + together.T - 2 * (scaled.T @ scaled)
    apart = squares.sum(axis=0)[:, np.newaxis] - together
    return np.maximum(shared, 0.0), np.maximum(apart, 0.0)


def mean_scores(sums: StandingSums, place: Counts, n_models: int) -> MeanScores:
    """Add up standings.

    Parameters
    ----------
    sums : StandingSums
        Rows in any order; a key may stand in several.
    place : integer array
        Which of the `n_models` models each row is of.
    """

    def added(column: NDArray[np.integer] | Array) -> Array:
        return np.asarray(np.bincount(place, column, minlength=n_models), dtype=np.float64)

    def counted(column: Counts) -> Counts:
        return np.rint(added(column)).astype(np.int64)

    _, bucket = np.unique(sums.bucket, return_inverse=True)
    shape = (int(bucket.max(initial=-1)) + 1, n_models)
    cell, cells = bucket * n_models + place, shape[0] * n_models
    by_bucket = np.bincount(cell, sums.total, minlength=cells).reshape(shape)
    n_by_bucket = np.bincount(cell, sums.sessions, minlength=cells).reshape(shape)
    n, squares = counted(sums.sessions), added(sums.squares)
    mean = _ratio(added(sums.total), n)
    deviations = squares - mean * mean * n
    constant = (n > 1) & (deviations <= DUST * squares)
    variance = _ratio(deviations, np.where(constant, 0, n * (n - 1)))
    pulls = np.where(n > 0, (by_bucket - np.nan_to_num(mean) * n_by_bucket) / np.maximum(n, 1), 0.0)
    return MeanScores(
        sessions=n,
        appearances=counted(sums.appearances),
        votes=counted(sums.votes),
        offered=counted(sums.offered),
        wins=added(sums.wins),
        mean=mean,
        std_error=np.sqrt(variance),
        constant=constant,
        z=_ratio(added(sums.z_total), counted(sums.z_sessions)),
        pulls=pulls,
        filled=n_by_bucket > 0,
    )


def _ratio(total: Array, n: NDArray[np.integer]) -> Array:
    """Total / n; NaN where n is 0."""
    ratio: Array = np.divide(total, n, out=np.full(total.shape, np.nan), where=n > 0)
    return ratio
