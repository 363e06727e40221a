"""The rule `irv`: eliminate the fewest first places until one remains."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import lcm
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from witan.core.profile import Floats, Profile, candidates_with_votes
from witan.core.rules.pairwise import (
    FOLLOWED,
    round_to_grid,
    share_of_rivals_not_above,
    voted_first,
)
from witan.core.rules.positional import borda
from witan.core.rules.registry import Axiom, Scores, rule
from witan.errors import InvalidParameter


@dataclass(frozen=True, slots=True)
class Round:
    """One elimination.

    Parameters
    ----------
    first_places : float array, shape (C,)
        Weight of the ballots that place the candidate first among those left; k tied for first
        have 1/k each; 0 for a candidate that is out.
    exhausted : float
        Weight of the ballots that rank some candidates, but none that remain.
    eliminated : int
        Index of the eliminated candidate.
    broken_by : {"none", "borda", "seat"}
        What decided the elimination: ``none``, first places alone; ``borda``, the lower Borda
        score; ``seat``, the later seat.
    """

    first_places: NDArray[np.float64]
    exhausted: float
    eliminated: int
    broken_by: Literal["none", "borda", "seat"]

    def describe(self, names: Sequence[str]) -> dict[str, Any]:
        """The round in plain values, candidates by name."""
        return {
            "first_places": dict(zip(names, self.first_places.tolist(), strict=True)),
            "exhausted": self.exhausted,
            "eliminated": names[self.eliminated],
            "broken_by": self.broken_by,
        }


@rule(
    "irv",
    needs="rankings",
    source="Ware 1871; ties after Conitzer, Rognlie and Xia, IJCAI 2009",
    summary="The candidate with the fewest first places is eliminated, and its ballots move on, "
    "until one is left.",
    use_when="the electorate is large, first places matter most, and a winner needs a majority of "
    "the ballots that remain in the last round.",
    evidence="Near-copies of a candidate do not split its vote. It can eliminate the candidate "
    "that beats every other head to head, and raising a candidate can make it lose; in a "
    "council ties for the fewest are frequent, and Borda decides them.",
    satisfies={Axiom.ANONYMITY, Axiom.NEUTRALITY, Axiom.UNANIMITY},
    bounds=(0.0, 1.0),
    rivals="session",
    trace={
        "rounds": lambda profile, names: [
            weighed.describe(names) for weighed in irv_rounds(profile)
        ]
    },
)
def irv(profile: Profile) -> Scores:
    """Score a candidate by its place in the order of elimination.

    In each round every ballot gives its weight to the remaining candidate it places highest, split
    equally if several tie for highest; a ballot that ranks none of the remaining candidates is
    exhausted. The candidate with the smallest sum is eliminated; among several, the one with the
    lowest Borda score on the whole profile. If these tie too, every order of elimination is
    followed with up to six candidates; with more, the later seat is eliminated. With V candidates
    with votes,

        score[c] = (V − best place of c over the followed orders) / (V − 1),

    and 1 if V = 1: every winner has 1.

    Returns
    -------
    Scores
        ``score`` (C, S), in [0, 1]; NaN for a candidate that no ballot ranks.
        ``seat_order_decided`` (S,): with seven candidates or more, seat order broke a tie.
        ``details["exhausted"]`` (S,): weight of the ballots that rank neither of the last two, on
        the path that eliminates the later seat; 0 with fewer than two candidates.
        ``details["decided_by_borda"]`` (S,): on a followed path Borda narrowed a tie for fewest.

    References
    ----------
    Ware, Application of Mr. Hare's system of voting to the nomination of overseers of Harvard
    College, 1871. Conitzer, Rognlie and Xia, Preference functions that score rankings and maximum
    likelihood estimation, IJCAI 2009 (all tie orders).
    """
    ballots = _Ballots.of(profile)
    if profile.n_candidates <= FOLLOWED:
        followed = _every_order(ballots)
    else:
        followed = _seat_order(ballots)
        _improve_where_few_stand(followed, ballots)
    return Scores(
        score=share_of_rivals_not_above(followed.best_place - 1, ballots.has_votes),
        seat_order_decided=followed.seat_decided,
        details={"exhausted": followed.exhausted, "decided_by_borda": followed.borda_decided},
    )


def irv_rounds(profile: Profile) -> tuple[Round, ...]:
    """List the eliminations of one session, ties broken by seat order.

    This is one of the orders that `irv` follows, in a form that can be recounted by hand.

    Parameters
    ----------
    profile
        Ballots of shape (R, C, 1).

    Returns
    -------
    tuple of Round
        One round fewer than candidates with votes. The candidate that is never eliminated wins.

    Raises
    ------
    InvalidParameter
        If the profile does not hold exactly one session.
    """
    if profile.n_sessions != 1:
        raise InvalidParameter("profile", f"{profile.n_sessions} sessions", "one session")
    ballots = _Ballots.of(profile)
    return tuple(
        Round(
            first_places=step.sums[:, 0] / ballots.unit,
            exhausted=float(step.exhausted[0]),
            eliminated=int(step.gone[0]),
            broken_by="seat" if step.by_seat[0] else "borda" if step.by_borda[0] else "none",
        )
        for step in _steps(ballots)
    )


@dataclass(frozen=True, slots=True)
class _Ballots:
    """Input of the rounds: ballots, votes and the Borda order, computed once.

    ``below[r, c, s]`` is the place less one; unranked is the largest number of its type, below
    everything. ``share[k]`` is what each of k tied candidates gets from a ballot of weight 1, in
    parts of 1/`unit` of a ballot; None if no ballot has a tie.
    """

    below: NDArray[np.unsignedinteger[Any]]
    weights: Floats | None
    has_votes: NDArray[np.bool_]
    standing: NDArray[np.int16]
    share: NDArray[Any] | None
    unit: int

    @classmethod
    def of(cls, profile: Profile) -> "_Ballots":
        n_reviewers, n_candidates, _ = profile.places.shape
        score = round_to_grid(borda.compute(profile).score, np.ones(profile.n_sessions))
        standing = (score[:, np.newaxis] > score[np.newaxis]).sum(axis=1, dtype=np.int16)
        below = profile.places - profile.places.dtype.type(1)
        profile = profile.unscale_weights()  # rounds are reported in the ballots' own weights
        unit, share = 1, None
        parts = np.maximum(np.arange(n_candidates + 1), 1)
        if profile.weights is not None or n_candidates > FOLLOWED:
            share = 1.0 / parts
        elif _has_tie(below):
            unit = lcm(*parts.tolist())
            small = n_reviewers * unit <= np.iinfo(np.int16).max
            share = (unit // parts).astype(np.int16 if small else np.int64)
        return cls(below, profile.weights, candidates_with_votes(profile), standing, share, unit)

    def first_places(
        self, below: NDArray[np.unsignedinteger[Any]]
    ) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        """First places among some candidates, (m, S), and active ballots, (R, S)."""
        best = below.min(axis=1)
        speaks = best != _unranked_seats(below)
        first = (below == best[:, np.newaxis]) & speaks[:, np.newaxis]
        if self.share is None:
            counter = np.int8 if len(first) < 128 else np.int32
            return first.view(np.int8).sum(axis=0, dtype=counter), speaks
        share = self.share.take(first.sum(axis=1, dtype=np.int16))
        if self.weights is not None:
            share = share * self.weights
        return (first * share[:, np.newaxis]).sum(axis=0, dtype=share.dtype), speaks

    def comparable(self, sums: NDArray[Any]) -> NDArray[np.signedinteger[Any]]:
        """First places as whole numbers; equal sums compare equal."""
        if np.issubdtype(sums.dtype, np.integer):
            return sums
        total = np.full(sums.shape[1], float(len(self.below)))
        return round_to_grid(sums, total if self.weights is None else self.weights.sum(axis=0))

    def silent(self, speaks: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Weight of exhausted ballots, shape (S,)."""
        exhausted = (self.below.min(axis=1) != _unranked_seats(self.below)) & ~speaks
        weighed: NDArray[Any] = exhausted if self.weights is None else exhausted * self.weights
        summed: NDArray[np.float64] = weighed.sum(axis=0, dtype=np.float64)
        return summed


@dataclass(frozen=True, slots=True)
class _FollowedOrders:
    """Results of the followed orders: ``best_place`` (C, S), the rest (S,)."""

    best_place: NDArray[np.int16]
    exhausted: NDArray[np.float64]
    borda_decided: NDArray[np.bool_]
    seat_decided: NDArray[np.bool_]

    @classmethod
    def start(cls, ballots: _Ballots) -> "_FollowedOrders":
        """Start with every candidate in first place and nothing decided."""
        n_sessions = ballots.has_votes.shape[1]
        return cls(
            best_place=np.ones(ballots.has_votes.shape, dtype=np.int16),
            exhausted=np.zeros(n_sessions),
            borda_decided=np.zeros(n_sessions, dtype=np.bool_),
            seat_decided=np.zeros(n_sessions, dtype=np.bool_),
        )


def _every_order(ballots: _Ballots) -> _FollowedOrders:
    """Follow every order of elimination through its sets of survivors.

    What happens next depends only on who is left, so a session of C candidates passes through at
    most 2^C sets, however many orders lead there. Sets are bit masks, large ones first.
    """
    n_candidates = len(ballots.has_votes)
    followed = _FollowedOrders.start(ballots)
    everyone = (ballots.has_votes << np.arange(n_candidates)[:, np.newaxis]).sum(axis=0)
    reached = [everyone == rest for rest in range(1 << n_candidates)]
    in_seat_order = [start.copy() for start in reached]
    for size in range(n_candidates, 1, -1):
        for members in combinations(range(n_candidates), size):
            rest = sum(1 << member for member in members)
            here, seat_path = reached[rest], in_seat_order[rest]
            if not here.any():
                continue
            sums, speaks = ballots.first_places(ballots.below[:, members])
            fewest, going = _find_last(ballots.comparable(sums), ballots.standing[list(members)])
            decided = here & (fewest != going).any(axis=0)
            np.copyto(followed.borda_decided, True, where=decided)
            unsettled = seat_path.copy()
            for member, goes in reversed(list(zip(members, going & here, strict=True))):
                np.copyto(followed.best_place[member], np.int16(size), where=goes)
                reached[rest ^ 1 << member] |= goes
                in_seat_order[rest ^ 1 << member] |= goes & unsettled
                unsettled &= ~goes
            if size == 2:
                np.copyto(followed.exhausted, ballots.silent(speaks), where=seat_path)
    for winner in range(n_candidates):
        followed.best_place[winner, reached[1 << winner]] = 1
    return followed


def _seat_order(ballots: _Ballots) -> _FollowedOrders:
    """Follow one order, ties in first places and Borda broken by seat."""
    followed = _FollowedOrders.start(ballots)
    for step in _steps(ballots):
        followed.best_place[step.gone[step.due], np.flatnonzero(step.due)] = step.size
        np.copyto(followed.borda_decided, True, where=step.due & step.by_borda)
        np.copyto(followed.seat_decided, True, where=step.due & step.by_seat)
        np.copyto(followed.exhausted, step.exhausted, where=step.due)
    return followed


def _improve_where_few_stand(orders: _FollowedOrders, ballots: _Ballots) -> None:
    """Follow every order in sessions of long rosters with few voted candidates."""
    few = np.flatnonzero(ballots.has_votes.sum(axis=0) <= FOLLOWED)
    if few.size == 0:
        return
    seats = voted_first(ballots.has_votes[:, few])
    among = replace(
        ballots,
        below=ballots.below[:, seats, few],
        weights=None if ballots.weights is None else ballots.weights[:, few],
        has_votes=ballots.has_votes[seats, few],
        standing=ballots.standing[seats, few],
    )
    every = _every_order(among)
    orders.best_place[seats, few] = every.best_place
    orders.exhausted[few] = every.exhausted
    orders.borda_decided[few] = every.borda_decided
    orders.seat_decided[few] = False


@dataclass(frozen=True, slots=True)
class _Step:
    """Elimination from `size` candidates to one fewer, in the `due` sessions."""

    size: int
    due: NDArray[np.bool_]
    sums: NDArray[Any]
    exhausted: NDArray[np.float64]
    gone: NDArray[np.intp]
    by_borda: NDArray[np.bool_]
    by_seat: NDArray[np.bool_]


def _steps(ballots: _Ballots) -> Iterator[_Step]:
    """Eliminate one at a time; the later seat among ties in Borda."""
    remaining = ballots.has_votes.copy()
    for size in range(len(remaining), 1, -1):
        due = remaining.sum(axis=0) == size
        if not due.any():
            continue
        sums, speaks = ballots.first_places(
            np.where(remaining, ballots.below, _unranked_seats(ballots.below))
        )
        counts = ballots.comparable(sums)
        fewest, going = _find_last(
            np.where(remaining, counts, np.iinfo(counts.dtype).max), ballots.standing
        )
        gone = len(remaining) - 1 - going[::-1].argmax(axis=0)
        yield _Step(
            size=size,
            due=due,
            sums=sums,
            exhausted=ballots.silent(speaks),
            gone=gone,
            by_borda=(fewest != going).any(axis=0),
            by_seat=going.sum(axis=0) > 1,
        )
        remaining[gone[due], np.flatnonzero(due)] = False


def _find_last(
    counts: NDArray[np.signedinteger[Any]], standing: NDArray[np.int16]
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Candidates with fewest first places, then lowest Borda, (m, S)."""
    fewest = counts == counts.min(axis=0)
    among = np.where(fewest, standing, np.int16(np.iinfo(np.int16).max))
    return fewest, among == among.min(axis=0)


def _unranked_seats(below: NDArray[np.unsignedinteger[Any]]) -> np.unsignedinteger[Any]:
    return below.dtype.type(np.iinfo(below.dtype).max)


def _has_tie(below: NDArray[np.unsignedinteger[Any]]) -> bool:
    unranked = _unranked_seats(below)
    return any(
        bool(((below[:, i] == below[:, j]) & (below[:, i] != unranked)).any())
        for i, j in combinations(range(below.shape[1]), 2)
    )
