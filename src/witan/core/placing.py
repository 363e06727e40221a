"""Ranks from scores, and how robust the lead is.

Ties are broken, and candidates barred from the lead. A recount with ballots removed or reversed is
one more session for the rule, so that thousands of them are one call.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations, product
from math import comb
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from witan.core.outcome import MIN_VOTES
from witan.core.profile import BLOCK_CELLS, Floats, Profile
from witan.core.rules.positional import borda
from witan.core.rules.registry import Rule, Scores
from witan.errors import InvalidParameter

Decide = Callable[[Profile, NDArray[np.integer[Any]]], NDArray[np.bool_]]
"""Function to the leaders: profile and session of each column → bool array (C, columns)."""

KEEP, REMOVE, REVERSE = 0, 1, 2

MAX_RECOUNTS = 20_000
"""Most recounts per session; then the search ends with an upper bound."""

CELLS_AT_ONCE = 20_000_000
"""Cells (R, C, recounts) of one call of the rule."""

TieBreak = Literal["none", "wins", "borda"]

DIGITS = 10
"""Significant digits, relative to the largest score, beyond which differences are rounding."""


def ballots_to_flip(
    profile: Profile,
    leads: NDArray[np.bool_],
    decide: Decide,
    *,
    effective: NDArray[np.bool_] | None = None,
    max_cells: int = 200_000_000,
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Count the fewest removed or reversed ballots to end each lead.

    All subsets are tried, smallest first, with each ballot removed or reversed. When the next size
    is too large, ballots are reversed in the order of their weight against the leader, which gives
    an upper bound.

    Parameters
    ----------
    leads : bool array, shape (C, S)
        Who leads as the ballots are.
    effective : bool array, shape (R, S), optional
        Ballots that the rule reads anything from; only these are taken into a bound.

    Returns
    -------
    counts : int array, shape (S,)
        0 where the lead is shared, −1 where nobody leads or nothing was found or searched.
    exact : bool array, shape (S,)
        Whether no smaller number does.
    """
    n_sessions, n_ballots = profile.n_sessions, profile.n_reviewers
    n_leaders = leads.sum(axis=0)
    counts = np.where(n_leaders > 1, 0, -1)
    exact = np.ones(n_sessions, dtype=np.bool_)
    open_sessions = (n_leaders == 1).nonzero()[0]
    if not len(open_sessions):
        return counts, exact
    recounts = _Recounts(profile)
    tried, cells = 0, n_ballots * profile.n_candidates
    for size in range(1, n_ballots + 1):
        tried += comb(n_ballots, size) * 2**size
        too_many = tried > MAX_RECOUNTS or tried * cells > max_cells
        if not len(open_sessions) or too_many:
            break
        for actions in _batches(n_ballots, size):
            if not len(open_sessions):
                break
            flipped = _flips(recounts, open_sessions, actions, leads, decide)
            counts[open_sessions[flipped]] = size
            open_sessions = open_sessions[~flipped]
    else:
        return counts, exact
    if n_ballots * n_ballots * profile.n_candidates**2 > max_cells:
        exact[open_sessions] = False
        return counts, exact
    for session in open_sessions:
        read = None if effective is None else effective[:, session]
        counts[session] = _upper_bound(recounts, int(session), leads, decide, read)
        exact[session] = counts[session] == size
    return counts, exact


def lead_kept_without_one(profile: Profile, rules: Sequence[Decide]) -> NDArray[np.float64]:
    """Share of ballots removable without any change of leaders, shape (rules, S)."""
    actions = np.full((profile.n_reviewers, profile.n_reviewers), KEEP, dtype=np.int8)
    np.fill_diagonal(actions, REMOVE)
    sessions = np.arange(profile.n_sessions)
    leads = [decide(profile, sessions) for decide in rules]
    shares = np.zeros((len(rules), profile.n_sessions))
    recounts = _Recounts(profile)
    for column in actions.T:
        recount = recounts.repeat(sessions, column[:, np.newaxis])
        for number, decide in enumerate(rules):
            shares[number] += (decide(recount, sessions) == leads[number]).all(axis=0)
    return shares / max(1, profile.n_reviewers)


@lru_cache(maxsize=16)
def _batches(n_ballots: int, size: int) -> tuple[NDArray[np.int8], ...]:
    """List removals or reversals of `size` ballots, as columns (R, ≤ 4096).

    The first are those that only reverse: most leads end by one of them.
    """
    reversals: list[NDArray[np.int8]] = []
    others: list[NDArray[np.int8]] = []
    for chosen in combinations(range(n_ballots), size):
        for actions in product((REVERSE, REMOVE), repeat=size):
            column = np.zeros(n_ballots, dtype=np.int8)
            column[list(chosen)] = actions
            (others if REMOVE in actions else reversals).append(column)
    return tuple(
        np.stack(columns[start : start + 4096], axis=1)
        for columns in (reversals, others)
        for start in range(0, len(columns), 4096)
    )


def _flips(
    recounts: "_Recounts",
    sessions: NDArray[np.integer[Any]],
    actions: NDArray[np.int8],
    leads: NDArray[np.bool_],
    decide: Decide,
) -> NDArray[np.bool_]:
    """True where any of these actions ends the lead, per session given."""
    flipped = np.zeros(len(sessions), dtype=np.bool_)
    profile = recounts.profile
    per_call = max(1, CELLS_AT_ONCE // (profile.places[..., 0].size * actions.shape[1]))
    for start in range(0, len(sessions), per_call):
        some = sessions[start : start + per_call]
        origin = np.concatenate([some] * actions.shape[1])
        recount = recounts.repeat(some, actions)
        unchanged = (decide(recount, origin) == leads[:, origin]).all(axis=0)
        flipped[start : start + per_call] = ~unchanged.reshape(-1, len(some)).all(axis=0)
    return flipped


def _upper_bound(
    recounts: "_Recounts",
    session: int,
    leads: NDArray[np.bool_],
    decide: Decide,
    effective: NDArray[np.bool_] | None,
) -> int:
    """Upper bound by reversing the leader's strongest supporters first.

    Ballots without effect come last, so that none is counted on the way.
    """
    profile = recounts.profile
    n_ballots, n_candidates = profile.n_reviewers, profile.n_candidates
    leader = int(leads[:, session].argmax())
    places = profile.places[:, :, session].astype(np.int64)
    ladder = np.tril(np.full((n_ballots, n_ballots), REVERSE, dtype=np.int8)).T
    fewest = n_ballots if effective is None else int(effective.sum())
    for rival in range(n_candidates):
        if rival == leader:
            continue
        both = (places[:, leader] > 0) & (places[:, rival] > 0)
        friendly = np.where(both, places[:, rival] - places[:, leader], 0)
        if effective is not None:
            friendly = np.where(effective, friendly, -n_candidates)
        order = np.argsort(-friendly, kind="stable")
        actions = np.empty_like(ladder)
        actions[order] = ladder
        recount = recounts.repeat(np.array([session]), actions)
        unchanged = (decide(recount, np.full(n_ballots, session)) == leads[:, [session]]).all(
            axis=0
        )
        if not unchanged.all():
            fewest = min(fewest, int(np.flatnonzero(~unchanged)[0]) + 1)
    return fewest


class _Recounts:
    """Maker of profiles with ballots kept, removed or reversed.

    `places` and `grades` have each ballot in these three ways, (3, R, C, S).
    """

    def __init__(self, profile: Profile) -> None:
        self.profile = profile
        places, grades, lengths = profile.places, profile.grades, profile.lengths
        if lengths is None:
            lengths = profile.rank_mask.sum(axis=1)
        mirrored = (2 * (lengths[:, np.newaxis] + 1) - places).astype(places.dtype)
        mirrored[~profile.rank_mask] = 0
        self.places = np.array([places, np.zeros(places.shape, places.dtype), mirrored])
        self.grades = None
        if grades is not None:
            # Whole grades stay bytes, in which 0 is none: an eighth of the memory.
            none = np.full(grades.shape, np.nan if grades.dtype.kind == "f" else 0, grades.dtype)
            self.grades = np.array([grades, none, _mirror(grades, profile.grade_mask)])

    def repeat(self, sessions: NDArray[np.integer[Any]], actions: NDArray[np.int8]) -> Profile:
        """Repeat sessions, in order, under each column of actions (R, V).

        All sessions under the first column come first.
        """
        (n_ballots, n_columns), profile = actions.shape, self.profile
        ballots = np.arange(n_ballots)[:, np.newaxis]
        some = slice(None) if len(sessions) == profile.n_sessions else sessions

        # Quoted: the types would be rebuilt for every recount.
        def choose(by_action: "NDArray[Any]") -> "NDArray[Any]":
            chosen: NDArray[Any] = by_action[..., some][actions, ballots].swapaxes(1, 2)
            return chosen.reshape(n_ballots, profile.n_candidates, -1)

        def repeat(values: "NDArray[Any] | None") -> "NDArray[Any] | None":
            if values is None:
                return None
            repeated: NDArray[Any] = np.concatenate([values[:, some]] * n_columns, axis=-1)
            return repeated

        return Profile(
            choose(self.places),
            None if self.grades is None else choose(self.grades),
            repeat(profile.weights),
            repeat(profile.lengths),
            repeat(profile.eligible),
            repeat(profile.reliability),
        )


def _mirror(grades: NDArray[Any], known: NDArray[np.bool_]) -> NDArray[Any]:
    """Grades mirrored about the middle of each ballot."""
    top = np.iinfo(grades.dtype).max if grades.dtype.kind in "iu" else np.inf
    low = np.where(known, grades, top).min(axis=1, keepdims=True)
    high = np.where(known, grades, 0).max(axis=1, keepdims=True)
    return np.where(known, low + high - grades, grades)


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


def worth(profile: Profile, rule: Rule, n_votes: NDArray[Any]) -> NDArray[Any]:
    """Convert each candidate's `votes` into equal votes, (C, S): (Σw)² / Σw².

    Source: Kish, Survey Sampling, 1965, section 11.7.
    """
    if profile.weights is None:
        return n_votes
    weights = _says(profile, rule) * profile.weights[:, np.newaxis]
    square = (weights**2).sum(axis=0)
    return np.asarray(weights.sum(axis=0) ** 2 / np.where(square > 0, square, 1.0))


def vote_levels(n_votes: NDArray[np.integer[Any]], min_votes: int = MIN_VOTES) -> NDArray[np.int8]:
    """Rate numbers of votes: 2 enough to lead, 1 fewer, 0 none.

    The shape (C, ...) stays.

    If fewer than two candidates have enough votes, votes make no difference.
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
    return profile.mask_weighed(says)


def first_places(profile: Profile) -> Floats:
    """Count wins per candidate, (C, S); k tied firsts get 1/k each."""
    last = profile.places - profile.places.dtype.type(1)  # unranked (0) wraps to the largest number
    best = last.min(axis=1, keepdims=True, initial=np.iinfo(last.dtype).max)
    first = profile.mask_weighed((last == best) & profile.rank_mask)
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

    Order: by `vote_levels`, those that failed the safety gate last; then by score; then by the
    tie-break, by default the rule's own. What is still equal shares a rank.

    Parameters
    ----------
    failed : bool array, shape (C, S), optional
        Candidates that may not win.
    """
    level, key, *second = _order(
        scores, profile, rule, tie_break=tie_break, failed=failed, min_votes=min_votes
    )
    ranks = np.ones(key.shape, dtype=np.int64)
    broken = np.zeros(key.shape[1], dtype=np.bool_)
    step = max(1, BLOCK_CELLS // max(1, key.size))  # rivals at once
    for start in range(0, len(key), step):
        some = slice(start, start + step)
        their_level, their_key = level[some, np.newaxis], key[some, np.newaxis]
        alike = their_level == level
        above = (their_level > level) | (alike & (their_key > key))
        for tie_key in second:
            theirs, equal = tie_key[some, np.newaxis], alike & (their_key == key)
            above |= equal & (theirs > tie_key)
            broken |= (equal & (theirs != tie_key) & (level > 0)).any(axis=(0, 1))
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
) -> list[NDArray[Any]]:
    """Level, score and any tie-break that order candidates, (C, S) each, higher first."""
    chosen = rule.tie_break if tie_break is None else tie_break
    if chosen not in ("none", "wins", "borda"):
        raise InvalidParameter("tie_break", chosen, "'none', 'wins' or 'borda'")
    level = vote_levels(votes(profile, rule), min_votes)
    if rule.needs == "history":  # votes without a match give no rating
        level = np.where(np.isnan(scores.score), np.int8(0), level)
    if failed is not None:
        level = np.where(failed, np.int8(-1), level)
    keys = [level, _round_noise(-scores.score if rule.lower_is_better else scores.score)]
    if chosen == "wins":
        keys.append(_round_noise(first_places(profile)))
    elif chosen == "borda":
        keys.append(_round_noise(borda.compute(profile).score))
    return keys


def _round_noise(key: Floats) -> Floats:
    """Round away summation noise; NaN sorts last."""
    # Never finer than the unit itself: scores near 0 differ by rounding alone.
    scale = np.fmax.reduce(np.abs(key), axis=0, initial=1.0)
    rounded = (key / scale).round(DIGITS)
    return np.where(np.isnan(rounded), -np.inf, rounded)
