"""Uncertainty of counted sessions, in blocks over candidates and sessions.

The posterior of a session's effects gives probabilities of wins and first places. Let σ²·K be the
covariance of the fitted effects, and λ the variance of quality divided by that of noise:

    fitted effects ~ N(effects, σ²·K),    effects ~ N(0, λ·σ²),    σ² as the moderated variance.

Given λ, the effects have a multivariate t distribution in closed form. λ is averaged over ten
points of a log-normal prior, weighted by likelihood, unless a history determines it. The noise of
ranks depends on λ: the variance V of places is the same whatever their meaning, and V/(1 + λ) of it
is noise. The error that all reviewers share is left out, because probabilities are about another
draw of reviewers like these, who would share it too.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from witan.core.attributes import cached_property
from witan.core.counting import BatchCount, Fitted, opinion_rows
from witan.core.outcome import MIN_VOTES, Prior, Unit
from witan.core.profile import Electorate, Floats, Profile, pair_indices
from witan.core.sequential import look_level
from witan.core.settings import Settings
from witan.core.stats.additive import (
    AdditiveFit,
    adjusted_grades,
    fit_grades,
    fit_ranks,
)
from witan.core.stats.distributions import (
    chi_square_quantiles,
    normal_quantiles,
    quality_ratios,
    rank_ratios,
    tabulated_t_cdf,
)
from witan.core.stats.priors import CHANCE_DF, prior_of, rho_of
from witan.core.stats.uncertainty import PairEvidence, Uncertainty, design_effect

N_POINTS = 2048
"""Number of lattice points for p_best among more than two candidates.

The error is about 0.003, and below 0.025 in simulated councils of three to nine reviewers.
"""

LEAST_RATIO = 1e-20
"""Minimum ratio of quality to noise, so that effects stay near 0 but not exactly at it."""

ROUNDING = 1e-9
"""Relative to the largest number, differences up to this are rounding errors."""

ALIKE = 1e-7
"""Effects this close, in standard deviations of the posterior, are equally likely to be best."""

TINY = 1e-300
"""Divisor in place of 0 where nothing is left to move."""

POINTS_AT_ONCE = 1 << 15

REMEMBERED_CANDIDATES = 16
"""Maximum number of candidates to cache directions for: 10 MB."""

DRAWN = np.float32
"""Type of draws: single precision suffices to compare them, and is twice as fast."""


def ratios(prior: Prior | None) -> Floats | None:
    """Choose the values of λ to average over.

    A history determines a single ratio. With the public noise of grades, the ratios depend on each
    session's candidates (None). Otherwise they are those of the log-normal prior for five
    candidates. Rankings without a history always have their own (`rank_ratios`).
    """
    if prior is None or (prior.quality_variance is None and prior.unit == "ranks"):
        return quality_ratios()
    if prior.quality_variance is None:
        return None
    return np.array([max(prior.quality_variance / prior.noise_variance, LEAST_RATIO)])


@dataclass(frozen=True, slots=True)
class Beliefs:
    """Probabilities of S sessions.

    Parameters
    ----------
    p_beats : float array, shape (C, C, S)
        P(i above j); NaN where unknown, diagonal included.
    p_best : float array, shape (C, S)
        P(highest effect) among the eligible; NaN where unknown.
    """

    p_beats: Floats
    p_best: Floats


def beliefs(
    uncertainty: Uncertainty,
    eligible: NDArray[np.bool_],
    among: Floats | None = None,
    others: AdditiveFit | None = None,
    others_design: Floats | None = None,
) -> Beliefs:
    """Compute the probabilities of every session.

    Parameters
    ----------
    eligible : bool array, shape (C, S)
        Candidates that may be best if they have enough votes.
    among : float array, shape (L,), optional
        The result of `ratios`; None: `quality_ratios` of each session's candidates.
    others
        Fit of other reviewers with the same noise. The probabilities are then about *its* effects
        and closer to chance than those about the true ones. It must compare all eligible
        candidates.
    others_design : float array, shape (S,), optional
        Design effect of the weights of the others' ballots; None: 1.
    """
    fit, shape = uncertainty.fit, uncertainty.fit.effects.shape
    p_beats, p_best = np.full((shape[0], *shape), np.nan), np.full(shape, np.nan)
    enough, can_tell = uncertainty.enough_votes, uncertainty.can_tell
    freedom = uncertainty.belief_df.tolist()
    pattern, covariances = fit.pattern, [None] if others is None else [*others.inverses]
    if others is not None:
        pattern = pattern * len(covariances) + others.pattern
    numbers: list[int] = pattern.tolist()
    designs = uncertainty.belief_design
    beyond = np.ones(shape[1]) if others_design is None else others_design
    designs_by_session = list(zip(designs.tolist(), beyond.tolist(), strict=True))
    groups: dict[tuple[int, float, tuple[float, float]], list[int]] = {}
    for session in can_tell.nonzero()[0].tolist():
        key = numbers[session], freedom[session], designs_by_session[session]
        groups.setdefault(key, []).append(session)
    for (number, df, (design, wider)), sessions in groups.items():
        chosen = np.array(sessions)
        own, extra = divmod(number, len(covariances))
        more = covariances[extra]
        more = None if more is None else wider * more
        posterior = _Posterior(uncertainty, own, chosen, df, design, among, more)
        above = p_beats[:, :, chosen] = posterior.p_beats(enough[:, chosen])
        p_best[:, chosen] = posterior.p_best(enough[:, chosen] & eligible[:, chosen], above)
    return Beliefs(p_beats, p_best)


@dataclass(frozen=True, slots=True)
class _Directions:
    """The part of the posterior that depends only on the cell pattern.

    Parameters
    ----------
    is_even
        Whether all candidates can be compared and have equal variances.
    members : bool array, shape (K, C)
        The groups of candidates that can be compared.
    axes : float array, shape (C, r)
        The directions that the ballots compare.
    precision : float array, shape (L, r)
        By ratio, σ² divided by the variance of a fitted effect.
    log_weight : float array, shape (L, 1)
        Part of each ratio's log-likelihood that depends on these variances alone.
    shrink, spread : float array, shape (r, L)
        By ratio, the shrinkage factor of a fitted effect, and the true one's variance over σ².
    narrowest : float array, shape (L, 1)
        Minimum standard deviation of a difference of effects, divided by σ.
    first, second : int array, shape (P,)
        The pairs of candidates that can be compared.
    pair_spreads : float array, shape (L, P)
        `spread` of their differences.
    """

    is_even: bool
    members: NDArray[np.bool_]
    axes: Floats
    precision: Floats
    log_weight: Floats
    shrink: Floats
    spread: Floats
    narrowest: Floats
    first: NDArray[np.intp]
    second: NDArray[np.intp]
    pair_spreads: Floats

    @classmethod
    def of(cls, covariance: Floats, components: NDArray[Any], grid: Floats) -> "_Directions":
        """Compute directions of a covariance over σ², (C, C), for L ratios."""
        noise, axes = np.linalg.eigh(covariance)
        compared = noise > 1e-10 * max(float(noise[-1]), 1e-300)
        noise, axes = noise[compared], axes[:, compared]
        total = noise[:, np.newaxis] + grid
        shrink = grid / total
        spread = noise[:, np.newaxis] * shrink
        narrowest = np.full(grid.shape, np.nan)
        if len(noise):
            with np.errstate(divide="ignore"):  # beside a weight of 1e300 others show nothing
                narrowest = np.sqrt(spread.min(axis=0) / shrink.max(axis=0) ** 2)
        first, second = pair_indices(len(covariance))
        joined = (components[first] == components[second]) & (components[first] >= 0)
        first, second = first[joined], second[joined]
        return cls(
            is_even=len(noise) > 0
            and noise[-1] - noise[0] <= ROUNDING * noise[0]
            and not components.any(),
            members=components == np.arange(components.max() + 1)[:, np.newaxis],
            axes=axes,
            precision=(1 / total).T,
            log_weight=-0.5 * np.log(total).sum(axis=0)[:, np.newaxis],
            shrink=shrink,
            spread=spread,
            narrowest=narrowest[:, np.newaxis],
            first=first,
            second=second,
            pair_spreads=np.stack(
                [_pair_variances((axes * each) @ axes.T, first, second) for each in spread.T]
            ),
        )


class _Posterior:
    """The posterior of sessions with one cell pattern and one df.

    The mixture over L ratios has the parameters `weight` (L, S), `tau2` (L, S) and, in the
    directions that the ballots compare, `shrink` (r, L) and `spread` (r, L). `beyond` (C, C) is the
    covariance of the other reviewers' fit; None for the effects themselves.
    """

    def __init__(  # noqa: PLR0917 - called only by `beliefs`
        self,
        uncertainty: Uncertainty,
        number: int,
        sessions: NDArray[np.intp],
        df: float,
        design: float,
        among: Floats | None,
        beyond: Floats | None,
    ) -> None:
        fit, self.beyond = uncertainty.fit, beyond
        components, self.covariance = fit.components[number], design * fit.inverses[number]
        n_candidates = np.count_nonzero(components >= 0)
        chance = uncertainty.chance_variance
        if chance is not None:
            grid = rank_ratios(n_candidates)
        else:
            grid = quality_ratios(n_candidates) if among is None else among
        effects = fit.effects[:, sessions]
        self.effects = np.where(np.isnan(effects), 0.0, effects)
        self.directions = _find_directions(self.covariance, components, grid)
        self.axes = self.directions.axes
        self.shrink, self.spread = self.directions.shrink, self.directions.spread
        self.along = _product(self.axes.T, self.effects)
        squares = df * uncertainty.belief_variance[sessions] + _product(
            self.directions.precision, self.along**2
        )
        self.df = df + len(self.along)
        log_weight = self.directions.log_weight
        if chance is not None:
            # λ fixes the share of noise in the variance of places.
            shares = 1 / (1 + grid)[:, np.newaxis]
            squares = squares + CHANCE_DF * shares * chance[sessions]
            log_weight = log_weight + 0.5 * CHANCE_DF * np.log(shares)
        log_weight = log_weight - 0.5 * self.df * np.log(squares)
        weight = np.exp(log_weight - log_weight.max(axis=0))
        self.weight = weight / _total(weight)
        self.tau2 = squares / self.df

    @cached_property
    def means(self) -> Floats:
        """Posterior mean of the effects by ratio, shape (L, C, S)."""
        return np.stack([_product(self.axes * shrink, self.along) for shrink in self.shrink.T])

    def p_beats(self, enough: NDArray[np.bool_]) -> Floats:
        """P(i above j), shape (C, C, S), among those with enough votes."""
        first, second = self.directions.first, self.directions.second
        above: Floats = np.zeros((len(first), self.effects.shape[1]))
        spreads = self.directions.pair_spreads
        if self.beyond is not None:
            spreads = spreads + _pair_variances(self.beyond, first, second)
        step = max(1, POINTS_AT_ONCE // max(above.size, 1))
        for start in range(0, len(self.weight), step):
            some = slice(start, start + step)
            effects = self.means[some]
            means = effects[:, first] - effects[:, second]
            scales = spreads[some, :, np.newaxis] * self.tau2[some, np.newaxis]
            with np.errstate(divide="ignore", invalid="ignore"):
                shares = tabulated_t_cdf(means / np.sqrt(scales), self.df)
            shares *= self.weight[some, np.newaxis]
            shares[0] += above
            above = _total(shares)
        above = np.where(enough[first] & enough[second], above, np.nan)
        result = np.full((len(self.effects), *self.effects.shape), np.nan)
        result[first, second], result[second, first] = above, 1 - above
        return result

    def p_best(self, eligible: NDArray[np.bool_], above: Floats) -> Floats:
        """P(highest effect) among the eligible, shape (C, S).

        For two candidates, it is P(i above j). With more, effects are drawn on a fixed lattice, so
        that equal ballots give equal numbers, and the shares are corrected by `_bound_shares`.
        """
        pairs = (eligible.sum(axis=0) == 2).nonzero()[0]
        is_drawn = len(pairs) < eligible.shape[1]
        best = self._drawn_shares(eligible, above) if is_drawn else np.full(eligible.shape, np.nan)
        first = eligible[:, pairs].argmax(axis=0)
        second = len(eligible) - 1 - eligible[::-1, pairs].argmax(axis=0)
        best[first, pairs] = above[first, second, pairs]
        best[second, pairs] = above[second, first, pairs]
        return best

    def _drawn_shares(self, eligible: NDArray[np.bool_], above: Floats) -> Floats:
        known = (self.directions.members @ eligible).sum(axis=0) == 1
        added = self._even_noise()
        shares = self._shares(eligible) if added is None else self._even_shares(eligible, added)
        shares = _bound_shares(shares, eligible, above)
        return np.where(eligible & known, self._equalise(shares, eligible), np.nan)

    def _even_noise(self) -> float | None:
        """Return the variance `beyond` adds to every direction if it is equal.

        Drawing is then one multiplication. None: directions or variances differ.
        """
        if not self.directions.is_even:
            return None
        if self.beyond is None:
            return 0.0
        more = self.axes.T @ self.beyond @ self.axes
        added = float(np.trace(more)) / len(more)
        is_even = np.abs(more - added * np.eye(len(more))).max() <= ROUNDING * added
        return added if is_even else None

    def _blocks(self, n_points: int) -> Iterator[tuple[slice, Callable[[Floats], Floats]]]:
        """Yield blocks of sessions, with a function to repeat values over points.

        The function repeats values by λ, (L, S), over the points, (S, N). Each λ gets its share of
        the points, in the order of the lattice's last coordinate.
        """
        bounds = np.rint(np.add.accumulate(self.weight) * n_points).astype(np.intp)
        bounds[-1] = n_points
        n_each = bounds.T.copy()
        n_each[:, 1:] -= bounds[:-1].T
        step = max(1, POINTS_AT_ONCE // n_points)
        for start in range(0, len(n_each), step):
            some = slice(start, start + step)
            counts = n_each[some].ravel()

            # Annotations are quoted so that they are not evaluated every time.
            def spread_out(values: "Floats", counts: "NDArray[np.intp]" = counts) -> "Floats":
                return values.T.ravel().repeat(counts).reshape(-1, n_points)

            yield some, spread_out

    def _even_shares(self, eligible: NDArray[np.bool_], noise: float) -> Floats:
        points = _t_points(len(self.effects), self.df).astype(DRAWN)
        shares = np.zeros(self.effects.shape)
        spread = self.spread[0] + noise
        pull = (self.shrink[0] / np.sqrt(spread))[:, np.newaxis] / np.sqrt(self.tau2)
        effects, pull = self.effects.astype(DRAWN), pull.astype(DRAWN)
        for some, spread_out in self._blocks(points.shape[1]):
            draws = spread_out(pull[:, some]) * effects[:, some, np.newaxis]
            draws += points[:, np.newaxis]
            shares[:, some] = _count_highest(draws, eligible[:, some])
        return _normalise(shares)

    def _shares(self, eligible: NDArray[np.bool_]) -> Floats:
        points = _t_points(len(self.effects), self.df)
        n_points = points.shape[1]
        shares = np.zeros(self.effects.shape)
        roots = np.stack([self._root(spread) for spread in self.spread.T])
        # Draws are in units of the factor common to all candidates.
        means = (self.means / np.sqrt(self.tau2)[:, np.newaxis]).astype(DRAWN)
        # For each candidate, the points of all λ one after another.
        stretched = (
            (roots @ points).swapaxes(0, 1).astype(DRAWN, order="C").reshape(len(points), -1)
        )
        starts = np.arange(len(roots), dtype=np.intp)[:, np.newaxis] * n_points
        for some, spread_out in self._blocks(n_points):
            alike = np.broadcast_to(starts, self.weight[:, some].shape)
            places = spread_out(alike) + np.arange(n_points)
            draws = np.stack(
                [
                    row[places] + spread_out(mean[:, some])
                    for row, mean in zip(stretched, means.swapaxes(0, 1), strict=True)
                ]
            )
            shares[:, some] = _count_highest(draws, eligible[:, some])
        return _normalise(shares)

    def _root(self, spread: Floats) -> Floats:
        """Compute a symmetric root, which does not depend on a library's eigenvectors."""
        values, vectors = spread, self.axes
        if self.beyond is not None and self.beyond.any():
            values, vectors = np.linalg.eigh((vectors * values) @ vectors.T + self.beyond)
        root: Floats = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
        return root

    def _equalise(self, shares: Floats, eligible: NDArray[np.bool_]) -> Floats:
        """Equalise exchangeable candidates' shares, as the lattice is not symmetric."""
        near = ALIKE * (self.directions.narrowest * np.sqrt(self.tau2)).min(axis=0)
        first, second = self.directions.first, self.directions.second
        if not (np.abs(self.effects[first] - self.effects[second]) <= near).any():
            return shares
        levelled = shares.copy()
        covariance = self.covariance if self.beyond is None else self.covariance + self.beyond
        exchangeable = _find_exchangeable(covariance)
        for c in range(len(shares)):
            alike = np.abs(self.effects - self.effects[c]) <= near
            alike &= eligible & eligible[c] & exchangeable[c, :, np.newaxis]
            number = alike.sum(axis=0)
            mean = _total(alike * shares) / np.maximum(number, 1)
            levelled[c] = np.where(number > 1, mean, shares[c])
        return levelled


def _pair_variances(covariance: Floats, first: NDArray[Any], second: NDArray[Any]) -> Floats:
    own = np.diagonal(covariance)
    return np.asarray(np.maximum(own[first] + own[second] - 2 * covariance[first, second], 0.0))


def _find_directions(covariance: Floats, components: NDArray[Any], grid: Floats) -> _Directions:
    if len(covariance) > REMEMBERED_CANDIDATES:
        return _Directions.of(covariance, components, grid)
    seats = np.asarray(components, dtype=np.intp)
    return _remember_directions(covariance.tobytes(), seats.tobytes(), grid.tobytes())


@lru_cache(maxsize=256)
def _remember_directions(covariance: bytes, components: bytes, grid: bytes) -> _Directions:
    """Compute read-only directions from arrays as bytes."""
    seats = np.frombuffer(components, dtype=np.intp)
    matrix = np.frombuffer(covariance).reshape(len(seats), -1)
    directions = _Directions.of(matrix, seats, np.frombuffer(grid))
    for each in fields(directions):
        if isinstance(value := getattr(directions, each.name), np.ndarray):
            value.setflags(write=False)
    return directions


def _find_exchangeable(values: Floats) -> NDArray[np.bool_]:
    """Find pairs whose exchange leaves the covariance unchanged, (C, C)."""
    n = len(values)
    most = ROUNDING * np.abs(values).max()
    pairs = np.empty((n, n), dtype=np.bool_)
    for i in range(n):
        # A covariance is symmetric, so comparing one row is enough.
        swapped = values.copy()
        swapped[:, i], swapped[np.arange(n), np.arange(n)] = np.diagonal(values), values[:, i]
        pairs[i] = np.abs(values[i] - swapped).max(axis=1) <= most
    return pairs


def _total(rows: Floats) -> Floats:
    """Sum over the first axis in order.

    NumPy uses another order, pairwise summation, for a single column.
    """
    total: Floats = np.add.accumulate(rows)[-1] if len(rows) else np.zeros(rows.shape[1:])
    return total


def _product(matrix: Floats, columns: Floats) -> Floats:
    """Multiply matrices so that each result column depends only on its own.

    In BLAS, the order of summation depends on the number of columns, and thus on the batch.
    """
    return _total(matrix.T[:, :, np.newaxis] * columns[:, np.newaxis])


def _count_highest(draws: Floats, eligible: NDArray[np.bool_]) -> NDArray[np.intp]:
    """Count draws, (C, S, N), by their highest eligible candidate, (C, S)."""
    if not eligible.all():
        draws[~eligible] = -np.inf
    highest = draws == draws.max(axis=0)
    # Eight flags form one word, and in a sum of 128 words no byte overflows. This is five times as
    # fast as adding single flags.
    words = highest.view(np.uint64).reshape(*eligible.shape, -1, 128).sum(axis=3)
    counts: NDArray[np.intp] = words.view(np.uint8).sum(axis=2, dtype=np.intp)
    return counts


def _normalise(shares: Floats) -> Floats:
    whole: Floats = shares / np.maximum(shares.sum(axis=0), 1.0)
    return whole


def _bound_shares(shares: Floats, eligible: NDArray[np.bool_], above: Floats) -> Floats:
    """Move shares of first places, (C, S), into the bounds that P(i above j) sets.

        max(0, 1 − Σ_j P(j above i))  ≤  P(i best)  ≤  min_j P(i above j)

    The sum returns to 1 by moving all of them by one share of the room that their bounds leave.
    """
    beats = np.where(eligible, np.fmin(above, 1.0), 1.0)
    upper = beats.min(axis=1) * eligible
    lower = np.maximum(1 - _total((1 - beats).swapaxes(0, 1)), 0.0) * eligible
    within = np.minimum(np.maximum(shares, lower), upper)
    missing = 1 - _total(within)
    room = np.where(missing > 0, upper - within, within - lower)
    moved: Floats = within + room * (missing / np.maximum(_total(room), TINY))
    return moved


@lru_cache(maxsize=32)
def _t_points(n: int, df: float) -> NDArray[np.float64]:
    """Compute standard multivariate t points, shape (n, N_POINTS).

    They are a lattice and its mirror image, ordered by an extra coordinate.
    """
    normal, scale = _lattice(n)
    stretched = normal * np.sqrt(df / chi_square_quantiles(scale, df))[:, np.newaxis]
    return np.ascontiguousarray(np.stack([stretched, -stretched], axis=1).reshape(-1, n).T)


@lru_cache(maxsize=32)
def _lattice(n: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Generate half of the points: n normal columns and a uniform one.

    The uniform column is for the scale. The points are sorted by one more coordinate.

    Source: the additive recurrence with the roots of x^(d+1) = x + 1, a rank-one lattice of low
    discrepancy (Niederreiter, Random Number Generation and Quasi-Monte Carlo Methods, 1992).
    """
    dimensions, root = n + 2, 1.5
    for _ in range(60):
        root = (1 + root) ** (1 / (dimensions + 1))
    steps = (1 / root) ** np.arange(1, dimensions + 1)
    points = np.mod(0.5 + np.outer(np.arange(1, N_POINTS // 2 + 1), steps), 1.0)
    points = np.clip(points[np.argsort(points[:, -1], kind="stable")], 1e-9, 1 - 1e-9)
    return normal_quantiles(points[:, :n]), points[:, n]


@dataclass(frozen=True, slots=True)
class FittedSessions:
    """Sessions of a batch with one common fit.

    Parameters
    ----------
    columns : int array, shape (S,)
        Their columns in the batch.
    uncertainty
        Uncertainty of these sessions.
    unit, prior, rho
        The unit fitted, the prior used, and the error shared by the models among the reviewers;
        None: none.
    places : int array, shape (C,), optional
        The row of each candidate, if some are copies of one answer and share a row.
    """

    columns: NDArray[np.intp]
    uncertainty: Uncertainty
    unit: Unit
    prior: Prior | None
    rho: float | None
    places: NDArray[np.intp] | None = None

    def of_candidates(self, rows: NDArray[Any]) -> NDArray[Any]:
        """Select each candidate's row, (C, …)."""
        return rows if self.places is None else rows[self.places]

    def of_pairs(self, cells: NDArray[Any]) -> NDArray[Any]:
        """Select each pair of candidates' cell, (C, C, …)."""
        return cells if self.places is None else cells[np.ix_(self.places, self.places)]


@dataclass(frozen=True)  # without slots: beliefs are cached on first use
class Inference:
    """Effects, errors and probabilities of S sessions.

    Parameters
    ----------
    units
        Unit that each session was fitted on; None: no fit.
    priors
        Prior used for each session.
    effects, std_errors : float array, shape (C, S)
        NaN where unknown.
    separation_mask : bool array, shape (C, C, S)
        Whether i is above j beyond noise.
    rhos
        The error that reviewers share; None: none.
    df : float array, shape (S,)
        Degrees of freedom; NaN where unknown.
    can_tell : bool array, shape (S,)
        Whether there are enough ballots to separate a pair.
    is_connected : bool array, shape (S,)
        Whether all candidates with votes were compared, directly or through others.
    parts
        Fits from which beliefs are computed, with the candidates that may not win, (C, S).
    """

    units: list[Unit | None]
    priors: list[Prior | None]
    effects: Floats
    std_errors: Floats
    separation_mask: NDArray[np.bool_]
    rhos: list[float | None]
    df: Floats
    can_tell: NDArray[np.bool_]
    is_connected: NDArray[np.bool_]
    parts: list[tuple[FittedSessions, NDArray[np.bool_]]] = field(default_factory=list)

    @cached_property
    def beliefs(self) -> Beliefs:
        """Probabilities of all sessions, computed on first use."""
        shape = self.effects.shape
        whole = Beliefs(np.full((shape[0], *shape), np.nan), np.full(shape, np.nan))
        for part, excluded in self.parts:
            eligible, places = ~excluded, part.places
            if places is not None:
                eligible = np.ones_like(part.uncertainty.votes, dtype=np.bool_)
                np.logical_and.at(eligible, places, ~excluded)
            posterior = beliefs(part.uncertainty, eligible, ratios(part.prior))
            p_best = part.of_candidates(posterior.p_best)
            if places is not None:  # copies of an answer share its probability
                p_best = p_best / np.bincount(places)[places][:, np.newaxis]
            known = self.can_tell[part.columns]
            p_beats = np.where(known, part.of_pairs(posterior.p_beats), np.nan)
            whole.p_beats[:, :, part.columns] = p_beats
            whole.p_best[:, part.columns] = np.where(known, p_best, np.nan)
        return whole


def _share_of_models(electorate: Electorate) -> float:
    """Compute the models' share of the weight of all reviewers that rank two candidates."""
    kinds = electorate.kinds
    n_models = kinds.count("model")
    if n_models in (0, len(kinds)):
        return float(n_models > 0)
    comparing = (vote for vote in electorate.votes if vote.length > 1)
    weights = {vote.reviewer: (vote.kind, vote.weight) for vote in comparing}
    heaviest = max((weight for _, weight in weights.values()), default=0.0) or 1.0
    total = math.fsum(weight / heaviest for _, weight in weights.values())
    own = math.fsum(w / heaviest for kind, w in weights.values() if kind == "model")
    return own / total if total else 0.0


def infer(counted: BatchCount, fits: Sequence[Fitted] | None = None) -> Inference:
    """Infer a batch's sessions from the given fits or its own."""
    n_candidates, n_sessions = counted.votes.shape
    blocks = Inference(
        units=[None] * n_sessions,
        priors=[None] * n_sessions,
        effects=np.full((n_candidates, n_sessions), np.nan),
        std_errors=np.full((n_candidates, n_sessions), np.nan),
        separation_mask=np.zeros((n_candidates, n_candidates, n_sessions), dtype=np.bool_),
        rhos=[None] * n_sessions,
        df=np.full(n_sessions, np.nan),
        can_tell=np.zeros(n_sessions, dtype=np.bool_),
        is_connected=np.ones(n_sessions, dtype=np.bool_),
    )
    for part in fit_parts(counted, fits):
        barred = np.zeros((n_candidates, len(part.columns)), dtype=np.bool_)
        for at, column in enumerate(part.columns):
            failed = counted.electorates[column].failed
            if failed:
                names = counted.electorates[column].candidates
                barred[:, at] = [name in failed for name in names]
        _fill(blocks, part, counted.settings)
        blocks.parts.append((part, barred))
    # A rule that reads grades may count fewer votes than the fit of the rankings.
    rivals = (counted.votes >= MIN_VOTES).sum(axis=0) > 1
    blocks.can_tell[:] &= rivals
    blocks.separation_mask[:] &= rivals
    return blocks


def _fill(blocks: Inference, part: FittedSessions, settings: Settings) -> None:
    at, uncertainty = part.columns, part.uncertainty
    level = settings.level
    if settings.looks:
        level = look_level(level, settings.looks, float(uncertainty.shared_variance.min()))
    for column in at:
        blocks.units[column], blocks.priors[column] = part.unit, part.prior
        blocks.rhos[column] = part.rho
    blocks.effects[:, at] = part.of_candidates(uncertainty.fit.effects)
    blocks.std_errors[:, at] = part.of_candidates(uncertainty.std_errors())
    blocks.separation_mask[:, :, at] = part.of_pairs(uncertainty.separate_pairs(level))
    blocks.df[at] = uncertainty.df
    blocks.can_tell[at] = uncertainty.can_tell
    highest = uncertainty.fit.components.max(axis=1, initial=0)
    blocks.is_connected[at] = (highest <= 0)[uncertainty.fit.pattern]


def fit_parts(counted: BatchCount, fits: Sequence[Fitted] | None = None) -> list[FittedSessions]:
    """Group a batch's sessions by common fit, unit and prior."""
    if fits is None:
        fits = counted.fits
    if fits is None:
        return []
    groups: dict[tuple[int, Unit, bool, float], list[int]] = {}
    parts = []
    for column, (fit, _, unit) in enumerate(fits):
        electorate = counted.electorates[column]
        models = _share_of_models(electorate)
        if electorate.votes and electorate.stands_for:
            parts.append(_fit_copies(counted, column, unit, models))
        elif electorate.votes:
            shared = (id(fit), unit, electorate.is_paired, models)
            groups.setdefault(shared, []).append(column)
    for (_, unit, paired, models), members in groups.items():
        fit, profile = fits[members[0]][0], counted.profile
        columns = [fits[column][1] for column in members]
        if columns != [*range(len(fit.df))]:
            fit = fit.take(np.array(columns))
        if members != [*range(len(fits))]:
            profile = profile.take(np.array(members))
        one = counted.electorates[members[0]]
        values = opinion_rows(one) if paired and unit == "ranks" else None
        parts.append(
            _fit_sessions(
                counted.settings,
                np.array(members),
                fit,
                profile,
                unit=unit,
                models=models,
                values=values,
                paired=paired,
            )
        )
    return parts


def _fit_copies(counted: BatchCount, column: int, unit: Unit, models: float) -> FittedSessions:
    """Fit a session with copies of an answer.

    Copies count as one candidate; otherwise the uncertainty would be too small.
    """
    electorate = counted.electorates[column]
    judged, places = np.unique(np.array(electorate.stands_for, dtype=np.intp), return_inverse=True)
    profile = counted.profile.take(slice(column, column + 1)).keep_candidates(judged)
    fit = fit_grades(profile) if unit == "grades" else fit_ranks(profile)
    at = np.array([column])
    fitted = _fit_sessions(counted.settings, at, fit, profile, unit=unit, models=models)
    return replace(fitted, places=places)


def _fit_sessions(
    settings: Settings,
    columns: NDArray[np.intp],
    fit: AdditiveFit,
    profile: Profile,
    *,
    unit: Unit,
    models: float,
    values: Floats | None = None,
    paired: bool = False,
) -> FittedSessions:
    """Add prior and shared error; `models` is the models' share of reviewers.

    The models' shared error affects a mean in proportion to their share; people have none. The fit
    is of `values`, if given, otherwise of the profile.
    """
    prior = prior_of(settings.prior, unit, profile.n_candidates, is_paired=paired)
    shared = rho_of(settings.rho, unit)
    present = profile.mask_weighed(profile.grade_mask if unit == "grades" else profile.rank_mask)
    design = None
    if values is None:
        design = design_effect(profile.weights, present)
        values = adjusted_grades(profile) if unit == "grades" else -profile.ranks
    own = None
    if profile.n_candidates > 1:
        own = PairEvidence.of(values, prior, is_repeated=bool(settings.looks))
    uncertainty = Uncertainty.of(
        fit,
        present.sum(axis=0),
        shared=models**2 * shared / (1 - shared),
        prior=prior,
        own=own,
        design=design,
    )
    rho = None if settings.rho is None or not models else shared
    return FittedSessions(columns, uncertainty, unit, prior, rho)
