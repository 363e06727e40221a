"""What an audit says of all reviewers together: agreement, shared error, criteria, stability."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from witan.core.audit_length import LengthAudit
from witan.core.outcome import Interval
from witan.core.stats.agreement import MIN_DECIDED, effective_votes, kendall_tau
from witan.core.stats.measures import (
    Count,
    Measure,
    beside,
    centred_correlation,
    correlation,
    lacking,
    measured,
    per_bucket,
    ratio,
    undefined,
)
from witan.core.stats.sums import CriterionSums, HumanSums, Names, PanelSums, StandingSums, UnitSums

__all__ = [
    "MIN_CANDIDATES",
    "MIN_SESSIONS",
    "MIN_STABLE",
    "SPLITS",
    "Alphas",
    "CriterionAudit",
    "PanelAudit",
    "alphas",
    "criteria_lines",
    "mean_agreement",
    "mean_kendall_w",
    "shared_votes",
    "stability",
]

Array = NDArray[np.float64]

MIN_CANDIDATES = 30
"""Candidates judged by two or more that a variance or an α needs."""

MIN_GRADES = 50
"""Grades beside lengths that a correlation needs."""

MIN_SESSIONS = 10
"""Sessions that a mean over sessions needs."""

MIN_STABLE = 20
"""Sessions that can be halved: ten in each half."""

SPLITS = 200
"""Random halvings that the stability of a ranking is averaged over."""

OVERALL = -1
"""The code of the overall grade among criteria."""


@dataclass(frozen=True, slots=True)
class Alphas:
    """Krippendorff's α among the reviewers of one kind.

    Parameters
    ----------
    shares, grades
        Of the shares of rivals beaten, and of grades.
    """

    shares: Measure
    grades: Measure


@dataclass(frozen=True, slots=True)
class CriterionAudit:
    """How models grade on one criterion, beside the overall grade.

    Parameters
    ----------
    criterion
        None: the overall grade itself.
    variance
        Between reviewers of one answer, in squared grade points, mean over answers.
    variance_over_overall
        The same over that of the overall grade; below 1 reviewers agree more.
    length
        Correlation with the log length of the answer, centred within the ballot.
    length_beyond_overall
        The same less that of the overall grade; below 0 for a criterion that rewards brevity.
    """

    criterion: str | None
    variance: Measure
    variance_over_overall: Measure
    length: Measure
    length_beyond_overall: Measure


@dataclass(frozen=True, slots=True)
class PanelAudit:
    """What is said of all models that review together.

    Parameters
    ----------
    alpha, people_alpha
        Krippendorff's α among models, and among people.
    kendall_w, agreement
        Mean over sessions of Kendall's W, and of the leader's probability of being best.
    shared_error, effective_votes
        ρ, and the independent votes that the R reviewers it was learned from are worth.
    length
        Length beside the votes of all models.
    criteria
        The overall grade first, then every criterion by name.
    stability
        Mean Kendall's τ between the leaderboards of two random halves.
    """

    alpha: Alphas
    people_alpha: Alphas
    kendall_w: Measure
    agreement: Measure
    shared_error: Measure
    effective_votes: Measure
    length: LengthAudit
    criteria: tuple[CriterionAudit, ...]
    stability: Measure


def alphas(table: UnitSums, *, human: int, level: float) -> Alphas:
    r"""Krippendorff's α for interval data.

    With m values on a candidate u that two reviewers or more judged, and n such values in all,

        α = 1 − (n − 1) · Σ_u [m·Σx² − (Σx)²]/(m − 1)  /  (n·Σx² − (Σx)²),

    sums without u over all n values. It is the usual 1 − D_o/D_e with

        D_o = 1/n · Σ_u 1/(m − 1) · Σ_{i ≠ j in u} (x_i − x_j)²,
        D_e = 1/(n(n − 1)) · Σ_{i ≠ j} (x_i − x_j)²,

    since Σ_{i ≠ j} (x_i − x_j)² = 2(m·Σx² − (Σx)²). 1: all alike; 0: as by chance. Comparisons of
    two are not in it, as `UnitSums` says.

    References
    ----------
    Krippendorff, "Computing Krippendorff's alpha-reliability", University of Pennsylvania, 2011.
    """

    def one(measure: int) -> Measure:
        rows = (table.human == human) & (table.measure == measure)
        names = ("n", "total", "squares", "within")
        return measured(
            per_bucket(table.bucket[rows], *(getattr(table, name)[rows] for name in names)),
            _alpha,
            Count(table.units[rows].sum(), "candidates judged by two or more", MIN_CANDIDATES),
            "correlation",
            level=level,
        )

    return Alphas(shares=one(0), grades=one(1))


def _alpha(sums: Array) -> Array:
    n, total, squares, within = np.moveaxis(sums, -1, 0)
    expected = n * squares - total * total
    with np.errstate(divide="ignore", invalid="ignore"):
        found = 1 - (n - 1) * within / expected
    return np.where((n > 1.5) & (expected > 1e-12 * n * squares), found, np.nan)


def mean_kendall_w(table: PanelSums, *, level: float) -> Measure:
    """Mean of Kendall's W over the sessions that have one."""
    return _mean(table, table.kendall_w, table.concordant, level)


def mean_agreement(table: PanelSums, *, level: float) -> Measure:
    """Mean over sessions of the probability that another draw would place the leader best."""
    return _mean(table, table.agreement, table.sure, level)


def _mean(table: PanelSums, total: Array, n: NDArray[np.int64], level: float) -> Measure:
    return measured(
        per_bucket(table.bucket, total, n),
        ratio,
        Count(n.sum(), "sessions", MIN_SESSIONS),
        "share",
        level=level,
        link="clip",
    )


def shared_votes(table: HumanSums, *, level: float) -> tuple[Measure, Measure]:
    """ρ, the error that reviewers share, and the independent votes that they are worth.

    ρ is the mean over pairs of reviewers of the correlation of being right on the pairs that
    people decided and both judged, clipped to [0, 1), as `witan.core.stats.agreement.shared_error`
    says; the votes are R/(1 + (R − 1)·ρ) of the R reviewers in such pairs, and their interval is
    that of ρ put through the same formula.
    """
    first, second = np.minimum(table.reviewer, table.other), np.maximum(table.reviewer, table.other)
    same = table.reviewer == table.other
    # Each pair of reviewers may stand in both orders, and is then held twice: no harm to r.
    turned = table.reviewer > table.other
    codes, pair = np.unique(np.stack([first, second])[:, ~same], axis=1, return_inverse=True)
    own_codes = np.unique(codes)
    judged = max((table.n[same & (table.reviewer == c)].sum() for c in own_codes), default=0)
    count = Count(judged, "pairs that people decided", MIN_DECIDED)
    if count.n < count.needed or len(own_codes) < 2:
        return lacking(count, "correlation"), lacking(count, "votes")
    buckets, bucket = np.unique(table.bucket, return_inverse=True)
    sums = np.zeros((len(buckets), codes.shape[1], 6))
    x, y = np.where(turned, table.y, table.x), np.where(turned, table.x, table.y)
    xx, yy = np.where(turned, table.yy, table.xx), np.where(turned, table.xx, table.yy)
    for at, column in enumerate((table.n, x, y, xx, yy, table.xy)):
        np.add.at(sums[..., at], (bucket[~same], pair.ravel()), column[~same])
    rho = measured(sums, _mean_correlation, count, "correlation", level=level)
    return _votes_of(rho, len(own_codes), count)


def _mean_correlation(sums: Array) -> Array:
    """Mean over pairs that vary of the correlation, (N, P, 6) → (N,)."""
    n, n_pairs, _ = sums.shape
    found = correlation(sums.reshape(n * n_pairs, 6)).reshape(n, n_pairs)
    known = ~np.isnan(found)
    with np.errstate(invalid="ignore"):
        mean: Array = np.where(known, found, 0.0).sum(axis=1) / known.sum(axis=1)
    return mean


def _votes_of(rho: Measure, n_reviewers: int, count: Count) -> tuple[Measure, Measure]:
    """ρ clipped to [0, 1), and the votes that follow from it."""
    if rho.value is None:
        return rho, undefined(count, "votes", "undefined: no two reviewers vary")
    value, interval, worth = _clipped(rho.value), None, None
    if rho.interval is not None:
        low, high = _clipped(rho.interval.low), _clipped(rho.interval.high)
        interval = Interval(low, high, rho.interval.level)
        worth = Interval(
            effective_votes(n_reviewers, high),
            effective_votes(n_reviewers, low),
            rho.interval.level,
        )
    n, of, needed = round(count.n), count.of, count.needed
    return (
        Measure(value, interval, n, of, needed, "correlation"),
        Measure(effective_votes(n_reviewers, value), worth, n, of, needed, "votes"),
    )


def _clipped(rho: float) -> float:
    return min(max(rho, 0.0), 1 - 1e-9)


def criteria_lines(
    table: CriterionSums, names: Names, *, level: float
) -> tuple[CriterionAudit, ...]:
    """Variance between reviewers and correlation with length, overall first, then by criterion.

    An overall grade is a mean of criteria, and a mean varies less than its parts do: compare it
    with holistic grades of other sessions, and criteria with each other.
    """
    found = {int(code) for code in np.unique(table.criterion)}
    named = sorted((names[code], code) for code in found - {OVERALL})
    lines: list[tuple[str | None, int]] = [(None, OVERALL)] if OVERALL in found else []
    return tuple(_criterion(table, name, code, level) for name, code in [*lines, *named])


def _criterion(table: CriterionSums, name: str | None, code: int, level: float) -> CriterionAudit:
    mine, overall = table.criterion == code, table.criterion == OVERALL
    spread, length = ("variance", "units"), ("ll", "lx", "xx")
    n_units = Count(table.units[mine].sum(), "candidates graded by two or more", MIN_CANDIDATES)
    n_grades = Count(table.lengths[mine].sum(), "grades of known length", MIN_GRADES)

    def columns(rows: NDArray[np.bool_], wanted: Sequence[str]) -> tuple[Array, ...]:
        return tuple(getattr(table, column)[rows] for column in wanted)

    def both(wanted: Sequence[str]) -> Array:
        return beside(
            (table.bucket[mine], columns(mine, wanted)),
            (table.bucket[overall], columns(overall, wanted)),
        )

    return CriterionAudit(
        criterion=name,
        variance=measured(
            per_bucket(table.bucket[mine], *columns(mine, spread)),
            ratio, n_units, "variance", level=level,
        ),
        variance_over_overall=measured(
            both(spread),
            lambda held: ratio(held[:, :2]) / ratio(held[:, 2:]),
            n_units, "ratio", level=level, link="log", sides=(slice(0, 2), slice(2, 4)),
        ),
        length=measured(
            per_bucket(table.bucket[mine], *columns(mine, length)),
            centred_correlation, n_grades, "correlation", level=level, link="fisher",
        ),
        length_beyond_overall=measured(
            both(length),
            lambda held: centred_correlation(held[:, :3]) - centred_correlation(held[:, 3:]),
            n_grades, "difference of correlations", level=level,
            sides=(slice(0, 3), slice(3, 6)),
        ),
    )  # fmt: skip


def stability(table: StandingSums, rng: np.random.Generator, *, splits: int = SPLITS) -> Measure:
    """Kendall's τ-b between the leaderboards of two halves of the history, mean over splits.

    The buckets with standings are dealt into two halves at random, a leaderboard by mean score is
    made of each, and τ is taken over the models in both. Half a history ranks less firmly than the
    whole, so this is a lower bound. There is no interval: halvings of one history are not
    independent, and their spread is no error.

    Parameters
    ----------
    table : StandingSums
        Of one rule and kind.
    rng : Generator
        What halves are drawn with.
    splits : int
        How many halvings.
    """
    models, model = np.unique(table.model, return_inverse=True)
    buckets, bucket = np.unique(table.bucket, return_inverse=True)
    sums = np.zeros((len(buckets), len(models), 2))
    np.add.at(sums[..., 0], (bucket, model), table.total)
    np.add.at(sums[..., 1], (bucket, model), table.sessions)
    n = float(sums[..., 1].sum(axis=0).max(initial=0.0))
    count = Count(n, "sessions", MIN_STABLE)
    if n < count.needed:
        return lacking(count, "correlation")
    found = []
    for _ in range(splits):
        order = rng.permutation(len(buckets))
        halves = (sums[half].sum(axis=0) for half in np.array_split(order, 2))
        tau = kendall_tau(*(ratio(half) for half in halves))
        found += [] if tau is None else [tau]
    if not found:
        return undefined(count, "correlation", "undefined: no two models to rank in both halves")
    return Measure(float(np.mean(found)), None, round(n), "sessions", MIN_STABLE, "correlation")
