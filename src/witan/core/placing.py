"""Ranks from scores: tie-breaks, and candidates barred from the lead."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from witan.core.outcome import MIN_VOTES
from witan.core.profile import BLOCK_CELLS, Floats, Profile
from witan.core.rules.positional import borda
from witan.core.rules.registry import Rule, Scores
from witan.errors import InvalidParameter

TieBreak = Literal["none", "wins", "borda"]

DIGITS = 10
"""Scores that agree to this many digits of the largest are equal: what sums in floats leave."""


@dataclass(frozen=True, slots=True)
class Placing:
    """Ranks of S sessions.

    Parameters
    ----------
    ranks : int array, shape (C, S)
        1 is best; equal candidates share it (1, 2, 2, 4).
    leads : bool array, shape (C, S)
        Shares the first rank, has a vote and passed the safety gate.
    tie_breaks : bool array, shape (S,)
        The tie-break separated equal scores somewhere.
    """

    ranks: NDArray[np.integer[Any]]
    leads: NDArray[np.bool_]
    tie_breaks: NDArray[np.bool_]


def votes(profile: Profile, rule: Rule) -> NDArray[np.integer[Any]]:
    """Weighted ballots informing each candidate's score, shape (C, S)."""
    counted: NDArray[np.integer[Any]] = _says(profile, rule).sum(axis=0)
    return counted


def worth(profile: Profile, rule: Rule) -> NDArray[Any]:
    """Convert each candidate's votes into equal votes, (C, S): (Σw)² / Σw².

    Source: Kish, Survey Sampling, 1965, section 11.7.
    """
    says = _says(profile, rule)
    if profile.weights is None:
        return np.asarray(says.sum(axis=0))
    weights = says * profile.weights[:, np.newaxis]
    square = (weights**2).sum(axis=0)
    return np.asarray(weights.sum(axis=0) ** 2 / np.where(square > 0, square, 1.0))


def vote_levels(n_votes: NDArray[np.integer[Any]], min_votes: int = MIN_VOTES) -> NDArray[np.int8]:
    """Rate numbers of votes: 2 enough to lead, 1 fewer, 0 none.

    The shape (C, ...) stays.

    Where fewer than two candidates have enough votes, nobody is better off for having them.
    """
    most = np.where((n_votes >= min_votes).sum(axis=0) > 1, min_votes, 1)
    levels: NDArray[np.int8] = np.minimum(n_votes, most).astype(np.int8)
    return levels


def effective_ballots(profile: Profile, rule: Rule) -> NDArray[np.bool_]:
    """Ballots informing the rule, shape (R, S).

    Without effect are ballots of weight 0 and, under a rule that reads grades, those that only
    rank.
    """
    return np.asarray(_says(profile, rule).any(axis=1))


def _says(profile: Profile, rule: Rule) -> NDArray[np.bool_]:
    """Cells informing the rule, shape (R, C, S)."""
    says = profile.grade_mask if rule.needs == "grades" else profile.rank_mask
    if rule.reads_both:
        says = says | profile.rank_mask
    if profile.weights is not None:
        says = says & (profile.weights > 0)[:, np.newaxis]
    return says


def first_places(profile: Profile) -> Floats:
    """Count wins per candidate, (C, S); k tied firsts get 1/k each."""
    last = profile.places - profile.places.dtype.type(1)  # unranked wraps to the far end
    best = last.min(axis=1, keepdims=True, initial=np.iinfo(last.dtype).max)
    first = (last == best) & profile.rank_mask
    if profile.weights is not None:
        first &= (profile.weights > 0)[:, np.newaxis]
    shared = np.maximum(first.sum(axis=1, keepdims=True), 1)
    wins: Floats = (first / shared).sum(axis=0)
    return wins


def place(
    scores: Scores,
    profile: Profile,
    rule: Rule,
    *,
    tie_break: TieBreak | None = None,
    failed: NDArray[np.bool_] | None = None,
    min_votes: int = MIN_VOTES,
) -> Placing:
    """Rank the candidates of every session.

    Order: by `vote_levels`, those that the safety gate failed last; within these by score, then by
    the tie-break (the rule's own unless given). What is still equal shares a rank.

    Parameters
    ----------
    failed : bool array, shape (C, S), optional
        Candidates that may not win.
    min_votes
        Of `vote_levels`.
    """
    level, key, second = _order(
        scores, profile, rule, tie_break=tie_break, failed=failed, min_votes=min_votes
    )
    ranks = np.ones(key.shape, dtype=np.int64)
    broken = np.zeros(key.shape[1], dtype=np.bool_)
    step = max(1, BLOCK_CELLS // max(1, key.size))  # rivals at once
    for start in range(0, len(key), step):
        their_level, their_key, their_second = (
            array[start : start + step, np.newaxis] for array in (level, key, second)
        )
        alike = their_level == level
        above = (their_level > level) | (alike & (their_key > key))
        if second.any():
            equal = alike & (their_key == key)
            above |= equal & (their_second > second)
            broken |= (equal & (their_second != second) & (level > 0)).any(axis=(0, 1))
        ranks += above.sum(axis=0)
    return Placing(ranks=ranks, leads=(ranks == 1) & (level > 0), tie_breaks=broken)


def leads(
    scores: Scores,
    profile: Profile,
    rule: Rule,
    *,
    tie_break: TieBreak | None = None,
    failed: NDArray[np.bool_] | None = None,
) -> NDArray[np.bool_]:
    """Find the leaders by `place`, (C, S), without the other ranks."""
    level, *keys = _order(scores, profile, rule, tie_break=tie_break, failed=failed)
    first: NDArray[np.bool_] = (level > 0) & (level == level.max(axis=0, initial=0))
    for key in keys:
        first &= key == np.where(first, key, -np.inf).max(axis=0, initial=-np.inf)
    return first


def _order(
    scores: Scores,
    profile: Profile,
    rule: Rule,
    *,
    tie_break: TieBreak | None,
    failed: NDArray[np.bool_] | None,
    min_votes: int = MIN_VOTES,
) -> tuple[NDArray[np.int8], Floats, Floats]:
    """Level, score and tie-break that order candidates, (C, S) each, higher first."""
    chosen = rule.tie_break if tie_break is None else tie_break
    if chosen not in ("none", "wins", "borda"):
        raise InvalidParameter("tie_break", chosen, "'none', 'wins' or 'borda'")
    level = vote_levels(votes(profile, rule), min_votes)
    if rule.needs == "history":  # votes without a match rate nobody
        level = np.where(np.isnan(scores.score), np.int8(0), level)
    if failed is not None:
        level = np.where(failed, np.int8(-1), level)
    key = _round_noise(-scores.score if rule.lower_is_better else scores.score)
    second = np.zeros_like(key)
    if chosen == "wins":
        second = _round_noise(first_places(profile))
    elif chosen == "borda":
        second = _round_noise(borda.compute(profile).score)
    return level, key, second


def _round_noise(key: Floats) -> Floats:
    """Round away summation noise; NaN sorts last."""
    # Never finer than the unit itself: scores that are all but 0 differ by dust alone.
    scale = np.fmax.reduce(np.abs(key), axis=0, initial=1.0)
    rounded = np.round(key / scale, DIGITS)
    return np.where(np.isnan(rounded), -np.inf, rounded)
