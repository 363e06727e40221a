"""Fitting Luce's choice model by damped Newton steps, all sessions at once."""

from collections.abc import Callable
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from witan.core.rules.registry import Scores
from witan.errors import UnsuitableBallots

__all__ = ["ELIMINATED", "conclude", "fit_matchups", "ghost", "maximise", "pair_information"]

Array = NDArray[np.float64]
Derivatives = Callable[[Array], tuple[Array, Array]]

MAX_STEPS = 200
SETTLED = 1e-7
"""A last step this small, relative to the strengths, leaves about its square as error."""

STALLED = 1e-5
"""Below this a Newton step that does not halve is rounding, and the fit has stopped moving."""

DEAD_HEAT = 1e-9
"""Strengths this close are equal: candidates in symmetric positions differ by rounding alone."""

ELIMINATED = 12
"""Up to this many candidates, elimination across the session axis beats a solver per session."""


def fit_matchups(
    wins: NDArray[Any], ghost_wins: float, voted: NDArray[np.bool_]
) -> tuple[Array, Array]:
    """Maximise the Bradley–Terry likelihood of win counts.

    Parameters
    ----------
    wins : array, shape (C, C, S)
        ``wins[i, j]`` is how often i beat j, ties counted half each way.
    ghost_wins : float
        Wins, and as many losses, of every candidate against a ghost of strength 0. With 0 the
        caller answers for the existence of the maximum, and strengths sum to 0.
    voted : bool array, shape (C, S)
        Candidates to fit; the others stay at 0.

    Returns
    -------
    strength : float array, shape (C, S)
        Logits relative to the ghost.
    information : float array, shape (C, C, S)
        Minus the second derivatives at the maximum, always invertible: rows of candidates not
        fitted are those of the identity, and without a ghost every cell is raised by 1, which
        changes no contrast.

    Raises
    ------
    UnsuitableBallots
        If no maximum is found.
    """
    # Imported here because it takes longer than all the rest of start-up.
    from scipy.special import expit

    losses = wins.swapaxes(0, 1)
    met = wins + losses

    def derivatives(strength: Array) -> tuple[Array, Array]:
        gradient, _ = ghost(strength, ghost_wins, voted)
        won = expit(strength[:, np.newaxis] - strength)
        # Wins and losses apart: their difference would lose all digits where one is near 0.
        gradient += (wins * won.swapaxes(0, 1) - losses * won).sum(axis=1)
        return gradient, pair_information(strength, met, ghost_wins, voted)

    return maximise("bradley_terry", derivatives, voted.shape)


def pair_information(
    strength: Array, met: NDArray[Any], ghost_wins: float, voted: NDArray[np.bool_]
) -> Array:
    """Information of `met` matchups of each pair and of the ghost's, shape (C, C, S)."""
    from scipy.special import expit

    won = expit(strength[:, np.newaxis] - strength)
    weight = met * won * won.swapaxes(0, 1)
    diagonal = np.arange(len(strength))
    weight[diagonal, diagonal] = 0.0
    _, information = ghost(strength, ghost_wins, voted)
    information -= weight
    information[diagonal, diagonal] += weight.sum(axis=1)
    return information


def ghost(strength: Array, ghost_wins: float, voted: NDArray[np.bool_]) -> tuple[Array, Array]:
    """Gradient and information of the matchups against the ghost, and 1 for the unfitted."""
    gradient = -ghost_wins * np.tanh(strength / 2) * voted
    information = np.full((*strength.shape[:1], *strength.shape), float(ghost_wins == 0))
    diagonal = np.arange(strength.shape[0])
    information[diagonal, diagonal] += np.where(
        voted, ghost_wins / 2 / np.cosh(strength / 2) ** 2, 1.0
    )
    return gradient, information


def maximise(fitted: str, derivatives: Derivatives, shape: tuple[int, ...]) -> tuple[Array, Array]:
    """Climb to the maximum of a sum of Luce terms; return it with the information there.

    Along a step d, the third derivative of such a term is at most max d − min d times the second
    (the ghost's 0 included), so the step log(1 + r)/r with r = max d − min d never overshoots.

    A session has settled when its step is small relative to the spread of its strengths, or so
    small that only rounding is left of it: how far down a step can go depends on the ballots, their
    weights and the processor.
    """
    strength = np.zeros(shape)
    before = np.inf
    for _ in range(MAX_STEPS):
        gradient, information = derivatives(strength)
        step = _solve(information, gradient[:, np.newaxis])[:, 0]
        reach = step.max(axis=0, initial=0.0) - step.min(axis=0, initial=0.0)
        strength += step * np.log1p(reach) / np.maximum(reach, np.finfo(np.float64).tiny)
        scale = 1.0 + strength.max(axis=0, initial=0.0) - strength.min(axis=0, initial=0.0)
        stalled = (reach <= STALLED * scale) & (reach > before / 2)
        if not np.any((reach > SETTLED * scale) & ~stalled):
            return strength, derivatives(strength)[1]
        before = reach
    raise UnsuitableBallots(
        fitted,
        f"the fit did not settle in {MAX_STEPS} steps",
        "weights that differ by less than a factor of a million will do, or a larger ghost_wins",
    )


def _solve(matrix: Array, right: Array) -> Array:
    """Solve positive definite systems, shapes (C, C, S) and (C, K, S), for every session."""
    n = len(matrix)
    if n > ELIMINATED:
        left, right = matrix.transpose(2, 0, 1), right.transpose(2, 0, 1)
        return np.asarray(np.linalg.solve(left, right).transpose(1, 2, 0), dtype=np.float64)
    rows = np.concatenate([matrix, right], axis=1)
    for k in range(n):
        rows[k, k + 1 :] /= rows[k, k]
        factors = rows[:, k].copy()
        factors[k] = 0.0
        rows[:, k + 1 :] -= factors[:, np.newaxis] * rows[k, k + 1 :]
    return rows[:, n:]


def conclude(
    strength: Array,
    information: Array,
    voted: NDArray[np.bool_],
    met: NDArray[np.bool_],
    clustered: Array,
) -> Scores:
    """Centre the strengths over the candidates with votes and say how sure they are."""
    # Imported here because it takes longer than all the rest of start-up.
    from scipy.special import expit

    n_voted = np.maximum(voted.sum(axis=0), 1)
    score = strength - (strength * voted).sum(axis=0) / n_voted
    score = _level(np.where(voted, score, np.nan))
    spread = _centred_variance(information, voted, clustered)
    known = voted & (n_voted > 1)
    joined = _joined(met)
    apart = ~joined & voted[:, np.newaxis] & voted
    diagonal = np.arange(len(score))
    joined[diagonal, diagonal] = False
    p_beats = np.where(joined, expit(score[:, np.newaxis] - score), np.nan)
    return Scores(
        score=score,
        std_error=np.sqrt(spread, out=np.full(score.shape, np.nan), where=known),
        details=MappingProxyType(
            {"p_beats_matchup": p_beats, "connected": np.logical_not(apart.any(axis=(0, 1)))}
        ),
    )


def _centred_variance(information: Array, voted: NDArray[np.bool_], clustered: Array) -> Array:
    """Variance of each strength less the mean strength of those with votes, shape (C, S).

    The inverse is centred before it is squared: what the prior alone holds up cancels first.
    """
    identity = np.broadcast_to(np.eye(len(information))[:, :, np.newaxis], information.shape)
    inverse = _solve(information, identity)
    share = voted / np.maximum(voted.sum(axis=0), 1)
    centred = inverse - np.einsum("is,ijs->js", share, inverse)
    variance: Array = np.einsum("ijs,jks,iks->is", centred, clustered, centred, optimize=True)
    return variance


def _level(score: Array) -> Array:
    """Give scores that differ by rounding alone the least of them, so dead heats stay so."""
    order = np.argsort(score, axis=0)
    ascending = np.take_along_axis(score, order, axis=0)
    starts = np.diff(ascending, axis=0, prepend=-np.inf) > DEAD_HEAT
    lowest = np.maximum.accumulate(np.where(starts, ascending, -np.inf), axis=0)
    levelled = np.full_like(score, np.nan)
    np.put_along_axis(levelled, order, np.where(np.isnan(ascending), np.nan, lowest), axis=0)
    return levelled


def _joined(met: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Which candidates a chain of comparisons joins, shape (C, C, S); each is joined to itself."""
    joined = met | np.eye(len(met), dtype=np.bool_)[:, :, np.newaxis]
    for k in range(len(met)):  # Warshall: paths through the first k + 1 candidates
        joined |= joined[:, k][:, np.newaxis] & joined[k]
    return joined
