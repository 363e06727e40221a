"""Compute ranks from scores, and how robust the lead is.

Ranking includes tie-breaks and the safety gate. Recounts with ballots removed or reversed are
further sessions for the rule, so that one call counts thousands of them.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations, compress, product
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
"""Function that finds leaders: profile, session of each column → bool array (C, columns)."""

KEEP, REMOVE, REVERSE = 0, 1, 2

MAX_RECOUNTS = 20_000
"""Maximum number of recounts per session; beyond it, the search ends with an upper bound."""

CELLS_AT_ONCE = 20_000_000
"""Maximum number of cells (R, C, recounts) in one call of the rule."""

TieBreak = Literal["none", "wins", "borda"]

DIGITS = 10
"""Significant digits relative to the largest score; smaller differences are rounding errors."""


def ballots_to_flip(
    profile: Profile,
    leads: NDArray[np.bool_],
    decide: Decide,
    *,
    effective: NDArray[np.bool_] | None = None,
    max_cells: int = 200_000_000,
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Find the minimum number of ballots that end each lead.

    All subsets are tried, smallest first, with each ballot removed or reversed. When there are too
    many subsets of the next size, ballots are reversed one after another, the leader's strongest
    supporters first, which gives an upper bound.

    Parameters
    ----------
    leads : bool array, shape (C, S)
        The present leaders.
    effective : bool array, shape (R, S), optional
        Ballots that affect the scores; a bound counts only these.

    Returns
    -------
    counts : int array, shape (S,)
        0 if the lead is shared; −1 without a leader or a search, or if no number ends the lead.
    exact : bool array, shape (S,)
        Whether the number is the minimum, not an upper bound.
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
    """Compute the share of ballots removable without changing leaders, (rules, S)."""
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

    Columns with only reversals come first, because these end most leads.
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
    """Test for each session if any of these actions ends the lead."""
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
    """Find an upper bound by reversing the leader's strongest supporters first.

    Ballots without effect come last, so that the bound does not count them.
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
    """Builder of profiles with ballots kept, removed or reversed.

    `places` and `grades` contain each ballot in these three versions, (3, R, C, S).
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
            # Whole grades stay bytes, with 0 for none, which takes an eighth of the memory.
            none = np.full(grades.shape, np.nan if grades.dtype.kind == "f" else 0, grades.dtype)
            self.grades = np.array([grades, none, _mirror(grades, profile.grade_mask)])

    def repeat(self, sessions: NDArray[np.integer[Any]], actions: NDArray[np.int8]) -> Profile:
        """Repeat sessions, in order, under each column of actions (R, V).

        All sessions under the first column come first, then those under the second, and so on.
        """
        (n_ballots, n_columns), profile = actions.shape, self.profile
        ballots = np.arange(n_ballots)[:, np.newaxis]
        some = slice(None) if len(sessions) == profile.n_sessions else sessions

        # Annotations are quoted so that they are not evaluated for every recount.
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
    """Mirror grades about the middle of each ballot."""
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
        1 is best; equal candidates share a rank (1, 2, 2, 4).
    leads : bool array, shape (C, S)
        Whether the candidate is on the first rank, has a vote and passed the safety gate.
    tie_breaks : bool array, shape (S,)
        Whether the tie-break separated any equal scores.
    """

    ranks: NDArray[np.integer[Any]]
    leads: NDArray[np.bool_]
    tie_breaks: NDArray[np.bool_]


def votes(profile: Profile, rule: Rule) -> NDArray[np.integer[Any]]:
    """Count ballots of positive weight that rank or grade each candidate, (C, S)."""
    counted: NDArray[np.integer[Any]] = _readable_cells(profile, rule).sum(axis=0)
    return counted


def equivalent_votes(profile: Profile, cells: NDArray[np.bool_]) -> NDArray[Any]:
    """Count the equally weighted votes that each score is worth, (C, S).

    `cells` are those of `effective_cells`. The number is (Σw)² / Σw² (Kish, Survey Sampling, 1965,
    section 11.7).
    """
    if profile.weights is None:
        return np.asarray(cells.sum(axis=0))
    weights = cells * profile.weights[:, np.newaxis]
    square = (weights**2).sum(axis=0)
    return np.asarray(weights.sum(axis=0) ** 2 / np.where(square > 0, square, 1.0))


def vote_levels(n_votes: NDArray[np.integer[Any]], min_votes: int = MIN_VOTES) -> NDArray[np.int8]:
    """Classify vote counts: 2 is enough to lead, 1 fewer, 0 none.

    If fewer than two candidates have enough votes, any number above 0 is enough.
    """
    most = np.where((n_votes >= min_votes).sum(axis=0) > 1, min_votes, 1)
    levels: NDArray[np.int8] = np.minimum(n_votes, most).astype(np.int8)
    return levels


def effective_cells(
    profile: Profile, rule: Rule, parameters: Mapping[str, object]
) -> NDArray[np.bool_]:
    """Find the places and grades that affect the scores, shape (R, C, S).

    Ballots of weight 0 have no effect, nor do ballots without grades if the rule reads grades, nor
    do ballots with fewer candidates than `Rule.shortest`, unless all of the session are so short.
    """
    cells = _readable_cells(profile, rule)
    shortest = rule.shortest
    if not isinstance(shortest, int):
        shortest = shortest(**{**rule.parameters, **parameters})
    if shortest < 2:
        return cells
    lengths = profile.lengths
    if lengths is None:
        lengths = np.add.reduce(cells, axis=1, dtype=np.uint16)
    long = lengths >= shortest
    return cells & (long | ~long.any(axis=0))[:, np.newaxis]


def _readable_cells(profile: Profile, rule: Rule) -> NDArray[np.bool_]:
    """Find the cells that the rule reads, shape (R, C, S)."""
    cells = profile.grade_mask if rule.needs == "grades" else profile.rank_mask
    if rule.reads_both:
        cells = cells | profile.rank_mask
    return profile.mask_weighed(cells)


def first_places(profile: Profile) -> Floats:
    """Count first places, (C, S); k candidates tied get 1/k each.

    A ballot with one candidate, such as the rest of a ballot after recusal, places it before no
    rival, so it has no first place, unless the session has no rival.
    """
    last = profile.places - profile.places.dtype.type(1)  # unranked (0) wraps to the largest number
    best = last.min(axis=1, keepdims=True, initial=np.iinfo(last.dtype).max)
    compares = profile.rank_mask.sum(axis=1, keepdims=True) >= min(2, profile.n_candidates)
    first = profile.mask_weighed((last == best) & profile.rank_mask & compares)
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

    Candidates are ordered by `vote_levels`, with those that failed the safety gate last; then by
    score; then by the tie-break, by default the rule's own. Those still equal share a rank.

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
    step = max(1, BLOCK_CELLS // max(1, key.size))  # rivals per pass
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
    """Find the same leaders as `place`, (C, S), without computing other ranks."""
    return _lead(*_order(scores, profile, rule, tie_break=tie_break, failed=failed))


StoredStanding = tuple[float, int, float]
"""Score, votes and first places of a model."""


def lead_standings(
    rule: Rule,
    standings: Mapping[int, StoredStanding],
    borda_standings: Mapping[int, StoredStanding],
) -> list[int]:
    """Return the leaders by stored standings, without a safety gate."""
    if not standings:
        return []
    score, n_votes, wins = map(np.array, zip(*standings.values(), strict=True))
    keys = [-score if rule.lower_is_better else score]
    if rule.tie_break != "none":
        by_share = np.array([borda_standings.get(model, (np.nan,))[0] for model in standings])
        keys.append(wins if rule.tie_break == "wins" else by_share)
    leading = _lead(vote_levels(n_votes), *map(_round_noise, keys))
    return [*compress(standings, leading)]


def _lead(level: NDArray[np.int8], *keys: Floats) -> NDArray[np.bool_]:
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
    """Return level, score and any tie-break, (C, S) each, higher first."""
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
    # The scale is at least 1, because scores near 0 differ only by rounding errors.
    scale = np.fmax.reduce(np.abs(key), axis=0, initial=1.0)
    rounded = (key / scale).round(DIGITS)
    return np.where(np.isnan(rounded), -np.inf, rounded)
