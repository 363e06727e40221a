"""Elo over a whole history: the rule `elo`, fed by a stream of matches in the order of time."""

import math
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple

from witan.core.rules.elo import LEVEL, check_elo

__all__ = ["EloRatings", "Match", "elo"]


class Match(NamedTuple):
    """Two models in one session: weight of the ballots for the first, against it, and level."""

    session: Hashable
    first: int
    second: int
    wins: float
    losses: float
    ties: float

    @property
    def result(self) -> float:
        """What the majority of the ballots gives the first: 1, 0, or ½ where it is even."""
        margin = self.wins - self.losses
        if abs(margin) <= LEVEL * (self.wins + self.losses + self.ties):
            return 0.5
        return 1.0 if margin > 0 else 0.0


@dataclass(frozen=True, slots=True)
class EloRatings:
    """Model code → rating after the last session, and → matches it played."""

    rating: Mapping[int, float]
    matches: Mapping[int, int]


def elo(
    matches: Iterable[Match], *, k: float = 32.0, base: float = 400.0, initial: float = 1000.0
) -> EloRatings:
    """Rate models by their matches, sessions in the order of time.

    The numbers are those of the rule `elo` on the same sessions: all matches of a session move
    the ratings ρ at once, from where they stood before it,

        ρ_i ← ρ_i + k Σ_{j met} (result_ij − 1 / (1 + 10^((ρ_j − ρ_i) / base))).

    The order of sessions matters, because a win counts by the ratings of that moment and later
    ones undo part of it: the same sessions in another order end elsewhere, by about k. That is
    why no sums can stand in for the stream, why no error is stated, and why a leaderboard orders
    by it only when asked to.

    Parameters
    ----------
    matches
        In the order of time; those of one session next to each other, in any order among
        themselves. Pairs without ballots, and of a model with itself, are passed over.
    k, base, initial
        As in the rule.

    Returns
    -------
    EloRatings
        Of the models that played.

    Raises
    ------
    InvalidParameter
        If `k` or `base` is not a number above 0, or `initial` not a finite number.

    References
    ----------
    Elo, "The Rating of Chessplayers, Past and Present", 1978.
    """
    check_elo(k, base, initial)
    scale = math.log(10.0) / base
    rating: defaultdict[int, float] = defaultdict(lambda: initial)
    played: Counter[int] = Counter()
    for _, session in groupby(matches, key=attrgetter("session")):
        moves: defaultdict[int, float] = defaultdict(float)
        for match in session:
            one, two = match.first, match.second
            if one == two or match.wins + match.losses + match.ties <= 0:
                continue
            # The hyperbolic tangent cannot overflow, however far apart ratings are.
            expected = 0.5 + 0.5 * math.tanh(scale * (rating[one] - rating[two]) / 2)
            move = k * (match.result - expected)
            moves[one] += move
            moves[two] -= move
            played[one] += 1
            played[two] += 1
        for code, move in moves.items():
            rating[code] += move
    return EloRatings(rating=dict(rating), matches=dict(played))
