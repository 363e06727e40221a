"""Elo ratings: one number per candidate, updated session by session."""

import math
from collections import defaultdict
from collections.abc import Hashable, Iterable
from itertools import groupby
from operator import attrgetter
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from witan.core.profile import Profile, matchups
from witan.core.rules.registry import Axiom, Scores, rule
from witan.errors import InvalidParameter

ROUNDING = 1e-9
"""A margin this small, relative to the votes on the pair, is a draw: weights do not add exactly."""


@rule(
    "elo",
    needs="history",
    shortest=2,
    source="Elo 1978",
    satisfies={Axiom.ANONYMITY, Axiom.NEUTRALITY},
    summary="Ratings that each session moves toward the results of its matches.",
    use_when="Strengths drift over time and recent sessions should weigh more.",
    evidence=(
        "It forgets at a fixed pace and states no error; over a history without drift, "
        "Bradley–Terry uses every comparison equally and states its errors."
    ),
)
def elo(
    profile: Profile, *, k: float = 32.0, base: float = 400.0, initial: float = 1000.0
) -> Scores:
    """Rate candidates by their matches, sessions in the order of time.

    In each session every two candidates that some ballot compares play one match, which the
    weighted majority of those ballots decides: result 1, 0, or 1/2 where it is even. With ratings
    ρ before the session, all its matches move the ratings at once:

        ρ_i ← ρ_i + k Σ_{j met} (result_ij − 1 / (1 + 10^((ρ_j − ρ_i) / base))).

    Neither the order of candidates nor that of ballots matters; the order of sessions does.
    The changes of each session sum to 0.

    Parameters
    ----------
    profile : Profile
        The whole history: places of shape (R, C, S), sessions in the order of time, and
        optionally ballot weights of shape (R, S).
    k : float
        The most that one match can move a rating; above 0.
    base : float
        The difference at which odds are ten to one; above 0.
    initial : float
        Every candidate's rating before its first match.

    Returns
    -------
    Scores
        ``score``: ratings after the last session, shape (C, 1); NaN for a candidate that played
        no match. ``details["matches"]``: the number of matches it played, shape (C, 1).

    Raises
    ------
    InvalidParameter
        If `k` or `base` is not a number above 0, or `initial` not a finite number.

    References
    ----------
    Elo, "The Rating of Chessplayers, Past and Present", 1978.
    """
    check_elo(k, base, initial)
    gained = np.zeros(profile.n_candidates)
    matches = np.zeros(profile.n_candidates, dtype=np.int64)
    for _, block in profile.blocks():
        played, won = _matches(block)
        _replay(gained, played, won, k, math.log(10.0) / base)
        matches += played.sum(axis=(0, 2), dtype=np.int64)
    score = np.where(matches > 0, initial + gained, np.nan)
    return Scores(
        score=score[:, np.newaxis], details=MappingProxyType({"matches": matches[:, np.newaxis]})
    )


def check_elo(k: float, base: float, initial: float) -> None:
    """Refuse parameters outside the ranges of `elo`."""
    for name, value in (("k", k), ("base", base)):
        if isinstance(value, bool) or not (math.isfinite(value) and value > 0):
            raise InvalidParameter(name, value, "a number above 0")
    if isinstance(initial, bool) or not math.isfinite(initial):
        raise InvalidParameter("initial", initial, "a finite number")


def _matches(profile: Profile) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Matches, shape (S, C, C), and wins per candidate, (S, C)."""
    counts = matchups(profile)
    met = np.moveaxis(counts.comparisons, -1, 0)
    margin = np.moveaxis(counts.margins, -1, 0)
    decided = np.where(np.abs(margin) > ROUNDING * met, np.sign(margin), 0)
    played = np.ascontiguousarray(met > 0, dtype=np.float64)
    return played, ((decided + 1) / 2 * played).sum(axis=2)


def _replay(
    ratings: NDArray[np.float64],
    matches: NDArray[np.float64],
    wins: NDArray[np.float64],
    k: float,
    scale: float,
) -> None:
    """Move the ratings, in place, through sessions one after the other."""
    # Imported here because it takes longer than the rest of start-up.
    from scipy.special import expit

    expected = np.empty(matches.shape[1:])
    for met, points in zip(matches, wins, strict=True):
        level = ratings * scale
        np.subtract.outer(level, level, out=expected)
        expit(expected, out=expected)
        expected *= met
        ratings += k * (points - expected.sum(axis=1))


class Match(NamedTuple):
    """Two models in one session: weight for first, second and tie."""

    session: Hashable
    first: int
    second: int
    wins: float
    losses: float
    ties: float

    @property
    def result(self) -> float:
        """Decide the first's result by majority: 1, 0, or ½ if even."""
        margin = self.wins - self.losses
        if abs(margin) <= ROUNDING * (self.wins + self.losses + self.ties):
            return 0.5
        return 1.0 if margin > 0 else 0.0


def rate_matches(
    matches: Iterable[Match], *, k: float = 32.0, base: float = 400.0, initial: float = 1000.0
) -> dict[int, float]:
    """Rate models by their matches, sessions in the order of time.

    The numbers are those of the rule `elo` on the same sessions: all matches of a session move
    the ratings ρ at once, starting from their values before it,

        ρ_i ← ρ_i + k Σ_{j met} (result_ij − 1 / (1 + 10^((ρ_j − ρ_i) / base))).

    The order of sessions matters: a win counts by the ratings at that moment, and later wins undo
    part of it, so the same sessions in another order give ratings that differ by about k. Elo can
    therefore not be computed from sums, has no standard error, and orders a leaderboard only on
    request.

    Parameters
    ----------
    matches
        In the order of time; matches of one session are adjacent, in any order. Pairs without
        ballots and pairs of a model with itself are skipped.

    Returns
    -------
    dict of int to float
        Rating after the last session by model code.

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
        for code, move in moves.items():
            rating[code] += move
    return dict(rating)
