"""Rules that read only who beats whom: `tournament` and `schulze`, and what they share."""

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from witan.core.profile import Floats, Profile, matchups
from witan.core.rules.registry import Axiom, Scores, rule
from witan.errors import InvalidParameter

__all__ = [
    "FOLLOWED",
    "candidates_with_votes",
    "on_grid",
    "schulze",
    "share_of_rivals_not_above",
    "tournament",
    "voted_first",
    "whole_margins",
]

GRID = 2.0**40
"""Weighted sums are compared in units of their session's total weight over this number."""

FOLLOWED = 6
"""With up to so many candidates in a session, every way of breaking a tie is followed."""


def on_grid(sums: Floats, total: Floats) -> NDArray[np.int64]:
    """Weighted sums as whole multiples of total/2⁴⁰, so that float rounding decides no tie.

    0.1 + 0.2 and 0.3 differ in binary; sums of real weights that differ by less than one part in
    10¹² of the total are taken as equal.

    Parameters
    ----------
    sums : float array, shape (..., S)
    total : float array, shape (S,)
        Total weight of each session; where it is 0 every sum is 0.
    """
    step = np.where(total > 0, total, 1.0) / GRID
    return np.rint(sums / step).astype(np.int64)


def candidates_with_votes(profile: Profile) -> NDArray[np.bool_]:
    """Where some ballot of positive weight ranks the candidate, shape (C, S)."""
    ranked = profile.ranked
    if profile.weights is not None:
        ranked = np.logical_and(ranked, (profile.weights > 0)[:, np.newaxis])
    voted: NDArray[np.bool_] = np.logical_or.reduce(ranked, axis=0)
    return voted


def voted_first(voted: NDArray[np.bool_]) -> NDArray[np.intp]:
    """Seats of up to `FOLLOWED` candidates per session, shape (m, S), those with votes first.

    Candidates without votes thus never push a session over the number up to which ties are
    followed. Seat order holds within both groups.
    """
    return np.argsort(~voted, axis=0, kind="stable")[:FOLLOWED]


def whole_margins(profile: Profile) -> NDArray[np.signedinteger[Any]]:
    """Ballots for i over j minus the reverse, shape (C, C, S), as whole numbers.

    Counts when every ballot weighs 1, else multiples of `on_grid`.
    """
    margins = matchups(profile).margins
    if profile.weights is None:
        return margins
    return on_grid(margins, profile.weights.sum(axis=0))


def share_of_rivals_not_above(above: NDArray[Any], voted: NDArray[np.bool_]) -> NDArray[np.float64]:
    """(rivals − rivals above)/rivals per candidate, shape (C, S).

    Rivals are the other candidates with votes. A candidate without rivals has 1; one without
    votes has NaN.
    """
    rivals = np.maximum(voted.sum(axis=0) - 1, 1)
    return np.where(voted, (rivals - above) / rivals, np.nan)


@rule(
    "tournament",
    needs="rankings",
    source="Copeland, A reasonable social welfare function, 1951",
    summary="Share of its matchups that a candidate wins by majority, a draw counting half.",
    use_when="a result must be told in one breath (“it won three of its four matchups”), or one "
    "odd ballot must not move a clear majority.",
    evidence="One ballot far from the others changes no matchup it would not have decided, while "
    "it moves every mean. It forgets how clear a win was, so dead heats are frequent, and a "
    "near-copy of a candidate can change the winner.",
    satisfies={
        Axiom.ANONYMITY,
        Axiom.NEUTRALITY,
        Axiom.UNANIMITY,
        Axiom.CONDORCET,
        Axiom.MONOTONICITY,
    },
)
def tournament(profile: Profile) -> Scores:
    """Score a candidate by the share of its matchups that it wins.

    score[c] = (matchups won + ½ matchups drawn) / matchups played.

    A matchup is decided by the weighted majority of the ballots that rank both candidates; one
    that no ballot compares is not played. Where all are played, the order is Copeland's.

    Parameters
    ----------
    profile
        Ballots of shape (R, C, S).

    Returns
    -------
    Scores
        ``score`` (C, S), in [0, 1]; NaN for a candidate that played no matchup.

    References
    ----------
    Copeland, A reasonable social welfare function, University of Michigan seminar on applications
    of mathematics to the social sciences, 1951.
    """
    counts = matchups(profile)
    margins = counts.margins
    if profile.weights is not None:
        margins = on_grid(margins, profile.weights.sum(axis=0))
    met = counts.met > 0
    small = np.int8 if profile.n_candidates <= 64 else np.int16
    won = (margins > 0).sum(axis=1, dtype=small)
    lost = (margins < 0).sum(axis=1, dtype=small)
    played = met.sum(axis=1, dtype=small)
    # Played is won + drawn + lost, so won + ½ drawn is half of played + won − lost.
    halves = np.where(played > 0, 2.0 * played, np.nan)
    return Scores(score=(played + won - lost) / halves)


@rule(
    "schulze",
    needs="rankings",
    source="Schulze, Social Choice and Welfare 36, 2011",
    summary="A beats B if its strongest chain of majorities over B is stronger than any back.",
    use_when="near-copies of an answer or majority cycles are likely, and a head-to-head winner "
    "must always win.",
    evidence="Clone independent, monotone and Condorcet consistent at once. In simulation at four "
    "reviewers it finds the best candidate as often as Borda (47.1 % both) and leaves more dead "
    "heats (20 % against 15 %); from ten reviewers on it gains 1–2 points under Mallows noise and "
    "loses 4 under Plackett–Luce noise.",
    satisfies=set(Axiom),
)
def schulze(
    profile: Profile, *, strength: Literal["winning_votes", "margins"] = "winning_votes"
) -> Scores:
    """Score a candidate by the share of rivals that do not beat it by strongest path.

    A link i → j exists where more ballots prefer i to j than the reverse. Its strength is the
    number of those ballots (winning votes) or the difference (margins). A path is as strong as its
    weakest link; p[i, j] is the strongest path, 0 if there is none. Then

        score[c] = share of the rivals j with p[j, c] ≤ p[c, j].

    Beating is transitive, so there is always a winner, and every winner has exactly 1. The
    strongest paths come from the widest-path form of Floyd and Warshall's recursion, C³ steps.

    Parameters
    ----------
    profile
        Ballots of shape (R, C, S).
    strength
        ``winning_votes`` or ``margins``; they differ only where ballots are tied or partial.

    Returns
    -------
    Scores
        ``score`` (C, S), in [0, 1]; NaN for a candidate that no ballot ranks.

    Raises
    ------
    InvalidParameter
        If `strength` is neither.

    References
    ----------
    Schulze, A new monotonic, clone-independent, reversal symmetric, and Condorcet-consistent
    single-winner election method, Social Choice and Welfare 36 (2011) 267–303.
    """
    if strength not in {"winning_votes", "margins"}:
        raise InvalidParameter("strength", strength, "'winning_votes' or 'margins'")
    path = _links(profile, winning_votes=strength == "winning_votes")
    for hops in range(profile.n_candidates):
        np.maximum(path, np.minimum(path[:, hops, np.newaxis], path[np.newaxis, hops]), out=path)
    beaten_by = (path > path.swapaxes(0, 1)).sum(axis=0, dtype=np.int16)
    return Scores(score=share_of_rivals_not_above(beaten_by, candidates_with_votes(profile)))


def _links(profile: Profile, *, winning_votes: bool) -> NDArray[np.signedinteger[Any]]:
    """Strength of each majority over its minority as whole numbers, 0 where there is none."""
    counts = matchups(profile)
    margins, strengths = counts.margins, counts.over
    if profile.weights is not None:
        total = profile.weights.sum(axis=0)
        margins, strengths = on_grid(margins, total), on_grid(strengths, total)
    won = margins > 0
    return (strengths if winning_votes else margins) * won
