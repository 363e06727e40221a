"""Rules averaging the worth of places: Borda, weighted Borda, mean rank.

Sums are taken in whole numbers and divided once, so that candidates whose true scores are equal
come out exactly equal. `whole_sums`, `whole_error` and `weighted_error` serve the graded rules.
"""

import math
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from witan.core.profile import MAX_CANDIDATES, ROUNDING_VARIANCE, Floats, Profile
from witan.core.rules.registry import Axiom, Scores, rule
from witan.errors import InvalidParameter

BordaVariant = Literal["per_ballot", "roster", "truncated"]

Lengths = NDArray[np.integer[Any]]


@dataclass(frozen=True, slots=True)
class WholeSums:
    """Exact sums over ballots with a whole number for a candidate.

    Parameters
    ----------
    votes : integer array, shape (C, S), or (C, 1) or (1, 1) where these are equal
        Number v of ballots that have a number for the candidate.
    total : integer array, shape (C, S)
        Their sum, Σx.
    spread : integer array, shape (C, S)
        v·Σx² − (Σx)², which is v(v − 1) times the sample variance.
    """

    votes: NDArray[np.integer[Any]]
    total: NDArray[np.integer[Any]]
    spread: NDArray[np.integer[Any]]


def presence(values: NDArray[np.unsignedinteger[Any]]) -> NDArray[np.uint8]:
    """Mark each ballot's numbers as present, 1, or absent, 0.

    The shape is (R, C, S), or (R, C, 1) if all sessions have the same presence, as when every
    member votes and its own answer is recused.

    """
    if values.shape[2] == 1:
        return (values > 0).view(np.uint8)
    always = np.minimum.reduce(values, axis=2, keepdims=True, initial=1) > 0
    agreed = not values[~always[:, :, 0]].any()
    return (always if agreed else values > 0).view(np.uint8)


def whole_sums(values: NDArray[np.unsignedinteger[Any]], present: NDArray[np.uint8]) -> WholeSums:
    """Sum whole numbers (R, C, S) exactly over ballots; 0: no vote.

    Parameters
    ----------
    values : unsigned integer array, shape (R, C, S)
        Places, or whole grades.
    present : uint8 array, shape (R, C, S) or (R, C, 1)
        Their `presence`.
    """
    n_reviewers = values.shape[0]
    largest = n_reviewers * int(values.max(initial=0))
    narrow = np.int16 if largest**2 < 1 << 15 else np.int64
    wide = np.int32 if narrow is np.int64 and largest**2 < 1 << 31 else narrow
    votes = np.add.reduce(present, axis=0, dtype=_counter(n_reviewers))
    if votes.size and votes.min() == votes.max():
        votes = votes[:1, :1]
    votes = votes.astype(wide)
    summed = values.astype(wide)
    total = np.add.reduce(summed, axis=0, dtype=wide)
    np.multiply(summed, summed, out=summed)
    spread = np.add.reduce(summed, axis=0, dtype=wide)
    spread *= votes
    spread -= total * total
    return WholeSums(votes, total, spread)


def whole_error(sums: WholeSums, unit: int = 1, divisor: int = 1) -> NDArray[np.float64]:
    """Estimate the standard error of whole numbers' mean, (C, S).

    It is NaN with fewer than two votes.

    It is sqrt(max(sample variance, 1/12) / v), with the variance in the unit of a rank or grade:
    whole numbers are known only to ±½, so the error is never 0.

    Parameters
    ----------
    unit : int
        How many steps of the summed number make one rank or grade: 2 for places, 1 for grades.
    divisor : int
        How many ranks or grades make one unit of the error returned.
    """
    votes = np.where(sums.votes > 1, sums.votes, np.nan)
    pairs = votes * (votes - 1)
    error = sums.spread.astype(np.float64)
    np.maximum(error, unit**2 * ROUNDING_VARIANCE * pairs, out=error)
    error /= (unit * divisor) ** 2 * pairs * votes
    return np.sqrt(error, out=error)


def weighted_error(
    values: Floats, weights: Floats, mean: Floats, vote_variance: Floats | float
) -> NDArray[np.float64]:
    """Standard error of a weighted mean over ballots, shape (C, S).

    Weights say how much a vote counts, not how exact it is. With W = Σ w and Q = Σ w²,

        error² = max( Q·s²,  Σ w²·vote_variance ) / W²,    s² = Σ w(x − mean)² / (W − Q/W),

    where s² is the unbiased variance of one vote, which for equal weights is the sample variance.
    The error is at least that of votes that each have `vote_variance`.

    Parameters
    ----------
    values, weights : float arrays, shape (R, C, S)
        Finite everywhere; weight 0 where there is no vote.
    mean : float array, shape (C, S)
    vote_variance : float array, broadcastable to (R, C, S), or a number
        The least variance of one vote, in the unit of `values` squared.

    Returns
    -------
    float array, shape (C, S)
        In the unit of `values`; NaN under two votes, and where all but one weigh nothing beside it.
    """
    several = (weights > 0).sum(axis=0) > 1
    squares, total = weights * weights, weights.sum(axis=0)
    away = values - np.where(np.isnan(mean), 0.0, mean)
    with np.errstate(invalid="ignore", divide="ignore"):
        square = squares.sum(axis=0)
        freedom = total - square / total
        freedom = np.where(several & (freedom > 0), freedom, np.nan)
        sampled = square * ((weights * away * away).sum(axis=0) / freedom)
        least = (squares * vote_variance).sum(axis=0)
        error: NDArray[np.float64] = np.sqrt(np.maximum(sampled, least)) / total
    return error


def _shortest(variant: BordaVariant) -> int:
    """Return the shortest ballot; only `per_ballot` divides by its own rivals."""
    return 2 if variant == "per_ballot" else 1


POINTS = MappingProxyType({"points": lambda score, n_candidates: score * (n_candidates - 1)})


@rule(
    "borda",
    needs="rankings",
    source="Borda 1781; partial ballots after Emerson 2013; points as in ADR-007",
    summary="The share of its rivals that a candidate is placed above, averaged over ballots.",
    use_when="Ballots are rankings, or you do not trust the grades.",
    evidence=(
        "In simulation it finds the true first as often as Kemeny and, at 3 to 5 reviewers, more "
        "often than Schulze, with fewer shared leads; it can miss a Condorcet winner."
    ),
    satisfies={Axiom.ANONYMITY, Axiom.NEUTRALITY, Axiom.UNANIMITY, Axiom.MONOTONICITY},
    tie_break="wins",
    bounds=(0.0, 1.0),
    shortest=_shortest,
    restatements=POINTS,
)
def borda(profile: Profile, *, variant: BordaVariant = "per_ballot") -> Scores:
    """Score a candidate by its share of rivals beaten, averaged over ballots.

    With p the rank, n the candidates ranked on the ballot and k those it could have ranked,

        per_ballot   (n − p)/(n − 1)   every ballot spans 0 to 1; n = 1 is not counted
        roster       (k − p)/(k − 1)   ADR-007's listing; a short ballot stays near the top
        truncated    (n − p)/(k − 1)   a short ballot gives at most (n − 1)/(k − 1)

    and the score is the weighted mean over the ballots that rank the candidate; k = 1 is not
    counted. On complete ballots all three agree. Omission gains under `roster` and loses under
    `truncated`, so where reviewers may leave candidates out, only the latter deters it.

    Parameters
    ----------
    profile : Profile
        n is `lengths`, or by default the number of places; k is `eligible`, or by default C.

    Returns
    -------
    Scores
        ``score`` (C, S): in [0, 1] for ranks within 1 … n, 0 for a candidate without a vote.
        ``std_error`` (C, S): sample standard deviation over √votes, NaN under two votes. Ranks are
        whole numbers, so a vote's variance is at least 1/12 in ranks, which is the mean over the
        candidate's ballots of 1/12 over the divisor squared; it is never 0.
        Outcomes restate the score as ``points``, score × (C − 1), ADR-007's scale.

    Raises
    ------
    InvalidParameter
        If the variant is unknown.

    References
    ----------
    Borda, "Mémoire sur les élections au scrutin", 1781. Emerson, "The original Borda count and
    partial voting", Social Choice and Welfare 40 (2013) 353–358. ADR-007 of the council surveyed.
    """
    return _borda(profile, variant, profile.weights)


@rule(
    "weighted_borda",
    needs="rankings",
    source="Borda 1781; ADR-010, option G",
    summary="Borda, each ballot weighted by how reliable its reviewer was in other sessions.",
    use_when="A history shows that some reviewers agree with the others far more than the rest.",
    evidence=(
        "It gains only where reviewers truly differ: weights come from other sessions, shrunk "
        "toward 1, because weights learned from the session being decided feed on themselves."
    ),
    satisfies={Axiom.NEUTRALITY, Axiom.UNANIMITY, Axiom.MONOTONICITY},
    tie_break="wins",
    bounds=(0.0, 1.0),
    shortest=_shortest,
    restatements=POINTS,
)
def weighted_borda(profile: Profile, *, variant: BordaVariant = "per_ballot") -> Scores:
    """Score as `borda` does, with ballot weights multiplied by the reviewers' reliability.

    Parameters
    ----------
    profile : Profile
        ``reliability`` of shape (R, S) multiplies ``weights``; None leaves them as they are.
    variant : {"per_ballot", "roster", "truncated"}
        See `borda`.

    Raises
    ------
    InvalidParameter
        If the variant is unknown.

    References
    ----------
    ADR-010 of the council surveyed, option G.
    """
    weights = profile.reliability
    if weights is not None and profile.weights is not None:
        weights = weights * profile.weights
    return _borda(profile, variant, weights if weights is not None else profile.weights)


@rule(
    "mean_rank",
    needs="rankings",
    source='the article "Why majority vote fails for LLM councils"',
    summary="The mean of a candidate's ranks; low is better.",
    use_when="You want a number that needs no explanation, and all ballots rank equally many.",
    evidence=(
        "On ballots of one length it orders as Borda does; where lengths differ, the candidates "
        "of short ballots look better than they are."
    ),
    satisfies={Axiom.ANONYMITY, Axiom.NEUTRALITY, Axiom.UNANIMITY, Axiom.MONOTONICITY},
    tie_break="wins",
    lower_is_better=True,
    bounds=(1.0, math.inf),
)
def mean_rank(profile: Profile) -> Scores:
    """Score a candidate by its weighted mean rank: 1 is best.

    Returns
    -------
    Scores
        ``score`` (C, S): a rank, 1 or more; low is better; NaN without a vote.
        ``std_error`` (C, S): in ranks; sample standard deviation over √votes, NaN under two votes.
        Ranks are whole numbers, so the variance of a vote is at least 1/12; it is never 0.

    References
    ----------
    The article "Why majority vote fails for LLM councils", which calls it the average position.
    """
    if profile.weights is None:
        sums = whole_sums(profile.places, presence(profile.places))
        with np.errstate(invalid="ignore"):
            score = sums.total / (2.0 * sums.votes)
        return Scores(score, whole_error(sums, unit=2))
    ranks = profile.places / 2.0
    weights = profile.rank_mask * profile.weights[:, np.newaxis]
    with np.errstate(invalid="ignore"):
        score = (weights * ranks).sum(axis=0) / weights.sum(axis=0)
    return Scores(score, weighted_error(ranks, weights, score, ROUNDING_VARIANCE))


def _borda(profile: Profile, variant: BordaVariant, weights: Floats | None) -> Scores:
    present = presence(profile.places)
    last, longest = _lengths(profile, present, variant)
    one_last, one_longest = _common(last), _common(longest)
    if weights is None and one_last and one_longest > 1:
        return _equal_lengths(profile.places, present, one_last, one_longest - 1)
    return _any_lengths(profile.places, last, longest, weights)


def _lengths(
    profile: Profile, present: NDArray[np.uint8], variant: BordaVariant
) -> tuple[Lengths, Lengths]:
    """Find each ballot's rank worth 0 and number of candidates spanned.

    Both have shape (R, S), or (R, 1).
    """
    if variant not in get_args(BordaVariant):
        raise InvalidParameter("variant", variant, " or ".join(get_args(BordaVariant)))
    n_reviewers, n_candidates, n_sessions = profile.places.shape
    eligible = profile.eligible
    if eligible is None:
        eligible = np.broadcast_to(np.int16(n_candidates), (n_reviewers, n_sessions))
    if variant == "roster":
        return eligible, eligible
    ranked = profile.lengths
    if ranked is None:
        ranked = np.add.reduce(present, axis=1, dtype=_counter(n_candidates))
    return ranked, ranked if variant == "per_ballot" else eligible


def _common(lengths: Lengths) -> int:
    """The length shared by all non-empty ballots, or 0."""
    longest = int(lengths.max(initial=0))
    if int(lengths.min(initial=longest)) == longest:
        return longest
    return longest if bool(((lengths == longest) | (lengths == 0)).all()) else 0


def _counter(largest: int) -> type[np.uint8 | np.int16 | np.int64]:
    if largest < 1 << 8:
        return np.uint8
    return np.int16 if largest < 1 << 15 else np.int64


def _equal_lengths(
    places: NDArray[np.unsignedinteger[Any]], present: NDArray[np.uint8], last: int, divisor: int
) -> Scores:
    """Score with equal rank worth 0 and divisor everywhere."""
    sums = whole_sums(places, present)
    score = 2.0 * last * sums.votes - sums.total
    score /= 2.0 * divisor * np.maximum(sums.votes, 1)
    return Scores.defer_errors(score, partial(whole_error, sums, unit=2, divisor=divisor))


def _any_lengths(
    places: NDArray[np.unsignedinteger[Any]],
    last: Lengths,
    longest: Lengths,
    weights: Floats | None,
) -> Scores:
    """Score over a common denominator; unweighted sums are exact."""
    counted = (longest > 1)[:, np.newaxis] & (places > 0)
    mass = counted * (1.0 if weights is None else weights[:, np.newaxis])
    spans = np.maximum(longest, 2).astype(np.int64) - 1
    limit = (1 << 52) // (2 * MAX_CANDIDATES * max(1, spans.shape[0]))
    common = _common_denominator(spans, limit)
    worth = 2.0 * last[:, np.newaxis] - places
    worth *= (common / spans)[:, np.newaxis]
    voted = mass.sum(axis=0)
    score = (mass * worth).sum(axis=0)
    score /= 2.0 * common * np.where(voted > 0, voted, 1.0)

    def error() -> Floats:
        floor = ROUNDING_VARIANCE / (spans * spans)[:, np.newaxis]
        return weighted_error(worth / (2.0 * common), mass, score, floor)

    return Scores.defer_errors(score, error)


def _common_denominator(divisors: NDArray[np.int64], limit: int) -> NDArray[np.int64]:
    """Least common multiple over ballots, shape (S,); 1 over the limit."""
    common = np.ones(divisors.shape[1], dtype=np.int64)
    for row in divisors:
        common = np.lcm(common, row)
        common[common > limit] = 0  # np.lcm keeps a 0
    return np.where(common > 0, common, 1)
