"""The rule `kemeny`: the ranking with fewest pairwise disagreements."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from witan.core.profile import Profile, candidates_with_votes, matchups
from witan.core.rules.pairwise import FOLLOWED, round_to_grid, voted_first
from witan.core.rules.positional import borda
from witan.core.rules.registry import Axiom, Scores, rule

if TYPE_CHECKING:
    from witan.core.rules.kemeny_search import Cells

BATCHED = 10
"""Most candidates for computing all sessions at once."""

CELLS = 1 << 20
"""Cells of (candidates, sets, sessions) that a batch works on at once; two bytes each at most
council sizes."""

ROUNDING = 1e-9
"""Distances of weighted ballots are equal within this share of all weight compared."""


@rule(
    "kemeny",
    needs="rankings",
    shortest=2,
    source="Kemeny, Mathematics without numbers, Daedalus 88 (1959); Young and Levenglick 1978",
    summary="Ranks by the order that disagrees with the ballots on the fewest pairs.",
    use_when="you want one consensus ranking as a whole, not only a winner, and majority cycles "
    "are to be resolved at the least cost.",
    evidence="It is the most likely true order if each ballot gets each pair right with one and "
    "the same probability, and the only neutral, consistent Condorcet rule on rankings. Adding a "
    "copy of a candidate can change the winner, and exact search is hard in the worst case.",
    satisfies={Axiom.ANONYMITY, Axiom.NEUTRALITY, Axiom.UNANIMITY, Axiom.CONDORCET},
    bounds=(-math.inf, -1.0),
    searchable_up_to=BATCHED,
)
def kemeny(profile: Profile) -> Scores:
    """Score a candidate by its mean place in the Kemeny-optimal rankings.

    The distance of a ranking is

        sum over pairs it places a above b of the weight of the ballots that rank b strictly
        above a.

    A ballot that ties a pair, or does not rank both, does not count for that pair. With up to six
    candidates the mean is over all rankings of least distance. With more, the score uses only one
    of them: the ranking that reverses the fewest pairs of the order by per-ballot Borda score;
    among several, the one that reverses the fewest pairs of seat order, the lowest seats first.

    Parameters
    ----------
    profile
        Places of shape (R, C, S); weights count.

    Returns
    -------
    Scores
        ``score`` (C, S): minus the mean place, −1 at best. NaN for a candidate that no ballot
        ranks; such candidates are left out of the rankings. ``seat_order_decided`` (S,): several
        optimal rankings were equally near to Borda. ``details``: ``distance`` (S,);
        ``unique`` (S,), whether a single ranking is optimal; ``optima`` (S,), how many are, 0
        meaning "more than one, not counted".

    Raises
    ------
    TooLarge
        If majority cycles tie more candidates together than can be ranked exactly
        (`witan.core.rules.kemeny_search.MAX_TIED`), or leave too many rankings nearly optimal.

    References
    ----------
    Kemeny, "Mathematics without numbers", Daedalus 88 (1959) 577–591. Young and Levenglick, "A
    consistent extension of Condorcet's election principle", SIAM Journal on Applied Mathematics
    35 (1978) 285–300. Young, "Condorcet's theory of voting", American Political Science Review
    82 (1988) 1231–1244.
    """
    has_votes = candidates_with_votes(profile)
    costs = _Costs.of(profile.unscale_weights(), has_votes)
    results = _Results.empty(*has_votes.shape)
    if profile.n_candidates <= FOLLOWED:
        _follow(costs, results)
    else:
        few = has_votes.sum(axis=0) <= FOLLOWED
        _choose(costs, results, profile, np.flatnonzero(~few))
        if few.any():
            _follow_few(costs, results, has_votes, np.flatnonzero(few))
    results.score[~has_votes] = np.nan
    details = {
        "distance": results.distance,
        "unique": results.optima == 1,
        "optima": results.optima,
    }
    return Scores(results.score, seat_order_decided=results.by_seat, details=details)


@dataclass(frozen=True, slots=True)
class _Costs:
    """Costs of rankings: ``over`` (C, C, S), slack (S,), None for integers."""

    wins: "Cells"
    slack: "Cells | None"

    @classmethod
    def of(cls, profile: Profile, has_votes: NDArray[np.bool_]) -> "_Costs":
        """Count the pairs; penalise unvoted candidates unless last, in seat order."""
        over = matchups(profile).wins
        slack, deterrent = None, np.ones(1, dtype=over.dtype)
        if not np.issubdtype(over.dtype, np.integer):
            compared = over.sum(axis=(0, 1))
            slack, deterrent = ROUNDING * compared, 1.0 + compared
        if not has_votes.all():
            earlier = np.triu(np.ones(over.shape[:2], dtype=np.bool_), 1)[..., np.newaxis]
            over = np.where(~has_votes & (has_votes[:, np.newaxis] | earlier), deterrent, over)
        return cls(over, slack)

    def take(self, sessions: slice | NDArray[np.intp]) -> "_Costs":
        """Return the costs of these sessions."""
        slack = None if self.slack is None else self.slack[sessions]
        return _Costs(self.wins[..., sessions], slack)


@dataclass(frozen=True, slots=True)
class _Results:
    """Results to be filled in: ``score`` (C, S), the rest (S,)."""

    score: NDArray[np.float64]
    distance: NDArray[np.float64]
    optima: NDArray[np.int64]
    by_seat: NDArray[np.bool_]

    @classmethod
    def empty(cls, n_candidates: int, n_sessions: int) -> "_Results":
        """Allocate arrays for the sessions."""
        return cls(
            score=np.empty((n_candidates, n_sessions)),
            distance=np.empty(n_sessions),
            optima=np.empty(n_sessions, dtype=np.int64),
            by_seat=np.zeros(n_sessions, dtype=np.bool_),
        )


def _follow(costs: _Costs, results: _Results) -> None:
    from witan.core.rules.kemeny_search import optima_of, place_sums

    n_candidates, n_sessions = results.score.shape
    for batch in _batches(n_candidates, n_sessions):
        part = costs.take(batch)
        optima = optima_of(part.wins, slack=part.slack)
        np.divide(place_sums(optima, n_candidates), -optima.count, out=results.score[:, batch])
        results.distance[batch] = optima.least
        results.optima[batch] = optima.count


def _follow_few(
    costs: _Costs, results: _Results, has_votes: NDArray[np.bool_], sessions: NDArray[np.intp]
) -> None:
    seats = voted_first(has_votes[:, sessions])
    few = _Costs(
        costs.wins[seats[:, np.newaxis], seats, sessions],
        None if costs.slack is None else costs.slack[sessions],
    )
    inner = _Results.empty(*seats.shape)
    _follow(few, inner)
    results.score[seats, sessions] = inner.score
    results.distance[sessions] = inner.distance
    results.optima[sessions] = inner.optima


def _choose(costs: _Costs, results: _Results, profile: Profile, sessions: NDArray[np.intp]) -> None:
    """Take the places in the optimal ranking nearest to Borda."""
    from witan.core.rules.kemeny_search import nearest, optima_of

    standing = round_to_grid(borda.compute(profile).score, np.ones(profile.n_sessions))
    target = standing[:, np.newaxis] > standing
    if profile.n_candidates > BATCHED:
        for s in sessions.tolist():
            _choose_alone(costs, results, target[..., s], s)
        return
    n_candidates = profile.n_candidates
    for batch in _batches(n_candidates, len(sessions)):
        where = sessions[batch]
        part = costs.take(where)
        optima = optima_of(part.wins, slack=part.slack)
        order, results.by_seat[where] = nearest(optima, target[..., where])
        results.score[order, where] = -1.0 - np.arange(n_candidates)[:, np.newaxis]
        results.distance[where] = optima.least
        results.optima[where] = optima.count


def _choose_alone(costs: _Costs, results: _Results, target: NDArray[np.bool_], s: int) -> None:
    from witan.core.rules.kemeny_search import cost, rank_session

    over = costs.wins[..., s]
    slack = None if costs.slack is None else float(costs.slack[s])
    consensus = rank_session(over, target, slack)
    results.score[consensus.order, s] = -1.0 - np.arange(len(over))
    results.distance[s] = cost(over.astype(np.float64), consensus.order)
    results.optima[s] = consensus.optima
    results.by_seat[s] = consensus.several


def _batches(n_candidates: int, n_sessions: int) -> Iterator[slice]:
    step = max(1, CELLS // (n_candidates << n_candidates))
    for start in range(0, n_sessions, step):
        yield slice(start, min(start + step, n_sessions))
