"""Rules fitting Luce's choice model: a strength per candidate, with error.

Both rules maximise a strictly concave likelihood by damped Newton steps, all sessions at once.
"""

import math
from collections.abc import Callable
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from witan.core.profile import Profile, candidates_with_votes, closure, matchups
from witan.core.rules.registry import Axiom, Scores, rule
from witan.core.stats.distributions import logistic
from witan.errors import InvalidParameter, UnsuitableBallots

Array = NDArray[np.float64]

Derivatives = Callable[[Array], tuple[Array, Array]]

MAX_STEPS = 200
SETTLED = 1e-7
"""A last step this small, relative to the strengths, leaves about its square as error."""

STALLED = 1e-5
"""Below this, a Newton step that does not halve is rounding error: the fit has converged."""

DEAD_HEAT = 1e-9
"""Strengths this close are equal: candidates in symmetric positions differ by rounding alone."""

ELIMINATED = 12
"""Up to this many candidates, elimination across the session axis beats a solver per session."""


@rule(
    "bradley_terry",
    needs="rankings",
    shortest=2,
    source="Bradley & Terry 1952; Ford 1957",
    satisfies={Axiom.ANONYMITY, Axiom.NEUTRALITY, Axiom.UNANIMITY, Axiom.MONOTONICITY},
    error="asymptotic",
    searchable_up_to=ELIMINATED,
    summary="Centred log-strength from matchup counts, with a standard error and a stated prior.",
    use_when="You want odds between candidates with errors, and comparisons come in pairs.",
    evidence=(
        "On complete ballots its order is Borda's. It fits the pairs of one ballot as if they "
        "were independent; uncorrected, its 95% intervals cover 83% at five candidates, so its "
        "errors are widened."
    ),
)
def bradley_terry(profile: Profile, *, ghost_wins: float = 0.5) -> Scores:
    r"""Fit one log-strength per candidate to pairwise orders.

    With w[i, j] the weight of ballots that rank i above j, plus half the weight of those that
    place them equal, the strengths θ and the ghost's strength γ maximise

        Σ_{i≠j} w[i, j] log σ(θ_i − θ_j) + ghost_wins Σ_i [log σ(θ_i − γ) + log σ(γ − θ_i)],

    where σ(x) = 1 / (1 + exp(−x)): every candidate with a vote also has `ghost_wins` wins and as
    many losses against one ghost candidate, whose strength is free. Only differences matter, so the
    ghost is fixed at 0 during the fit and θ is centred afterwards. The prior makes estimates finite
    after a 3–0 and connects candidates that no ballots compare; `connected` is False where that was
    needed.

    Parameters
    ----------
    profile : Profile
        Places of shape (R, C, S) and, optionally, ballot weights of shape (R, S).
    ghost_wins : float
        Wins, and as many losses, against the ghost; above 0. Half of each by default.

    Returns
    -------
    Scores
        ``score``: θ in logits, shape (C, S), mean 0 over the candidates with votes; NaN for one
        without. ``std_error``: of the centred strengths; NaN where fewer than two candidates
        have votes. The n(n − 1)/2 pairs of one ballot of n candidates are not independent: in a
        random order a candidate's wins vary (n + 1)/3 times as much as the same number of coin
        tosses. The information J of the score is therefore counted with each ballot's pairs
        weighing (n + 1)/3, and the variance is H⁻¹ J H⁻¹ with H the information of the likelihood.
        ``details["p_beats_matchup"]``: σ(θ_i − θ_j), the chance that i beats j on one more ballot,
        shape (C, C, S); NaN on the diagonal, without votes, and between candidates that no chain of
        comparisons joins. ``details["connected"]``: whether such chains join all candidates with
        votes, shape (S,), not counting the ghost.

    Raises
    ------
    InvalidParameter
        If `ghost_wins` is not a number above 0.
    UnsuitableBallots
        If weights differ so wildly that no maximum is found.

    References
    ----------
    Bradley and Terry, "Rank analysis of incomplete block designs", Biometrika 39 (1952) 324–345.
    Ford, "Solution of a ranking problem from binary comparisons", American Mathematical Monthly
    64 (1957) 28–33, for when the maximum is finite without a prior. The step length is Sun and
    Tran-Dinh's, "Generalized self-concordant functions", Mathematical Programming 178 (2019).
    """
    _check_prior(ghost_wins)
    counts = matchups(profile)
    wins = counts.wins + 0.5 * counts.ties
    has_votes = candidates_with_votes(profile)
    strength, information = fit_matchups(wins, ghost_wins, has_votes)
    weights = (profile.rank_mask.sum(axis=1) + 1) / 3
    if profile.weights is not None:
        weights = profile.weights * weights
    met = matchups(profile.replace_weights(weights)).comparisons
    clustered = pair_information(strength, met, ghost_wins, has_votes)
    return conclude(strength, information, has_votes, counts.comparisons > 0, clustered)


@rule(
    "plackett_luce",
    needs="rankings",
    shortest=2,
    source="Luce 1959; Plackett 1975; Efron 1977",
    satisfies={Axiom.ANONYMITY, Axiom.NEUTRALITY, Axiom.UNANIMITY},
    error="asymptotic",
    searchable_up_to=ELIMINATED,
    recount_cells=2_000_000,
    summary="Centred log-worth from whole rankings, with a standard error and a stated prior.",
    use_when="Ballots rank several candidates and you want odds and errors per ballot.",
    evidence=(
        "One ballot counts once, while Bradley–Terry treats its pairs as independent; first "
        "places weigh more than last ones."
    ),
)
def plackett_luce(profile: Profile, *, ghost_wins: float = 0.5) -> Scores:
    r"""Fit one log-worth per candidate to rankings read as choices, best first.

    A ballot fills its places l = 1, 2, … in order, choosing c among the remaining candidates with
    probability proportional to exp θ_c. Ties are treated as Efron treats tied times: a group of g
    candidates whose first place is f stays in the choice with the share

        u_i(l) = clip((f + g − l) / g, 0, 1),

    which is exact for strict rankings and the same for all members of a group; a tie of two is a
    win and a loss, where `bradley_terry` counts half of each. So θ maximises

        Σ_ballots weight · (Σ_c θ_c − Σ_l log Σ_i u_i(l) exp θ_i)

    plus the prior of `bradley_terry`: `ghost_wins` wins and as many losses of every candidate with
    a vote in a choice between it and one ghost of free strength. A candidate that a ballot leaves
    out is in none of its choices.

    Parameters
    ----------
    profile : Profile
        Places of shape (R, C, S) and, optionally, ballot weights of shape (R, S).
    ghost_wins : float
        Wins, and as many losses, against the ghost; above 0. Half of each by default.

    Returns
    -------
    Scores
        As `bradley_terry`: θ in logits, its errors, ``p_beats_matchup`` (the chance that the
        next ballot ranks i above j) and ``connected``.

    Raises
    ------
    InvalidParameter
        If `ghost_wins` is not a number above 0.
    UnsuitableBallots
        If weights differ so wildly that no maximum is found.

    References
    ----------
    Luce, "Individual Choice Behavior", 1959. Plackett, "The analysis of permutations", Applied
    Statistics 24 (1975) 193–202. Efron, "The efficiency of Cox's likelihood function for censored
    data", Journal of the American Statistical Association 72 (1977) 557–565. Hunter, "MM
    algorithms for generalized Bradley–Terry models", Annals of Statistics 32 (2004) 384–406.
    """
    _check_prior(ghost_wins)
    has_votes = candidates_with_votes(profile)
    shares = [_choice_shares(places) for places in profile.places]
    weights = np.ones((profile.n_reviewers, 1)) if profile.weights is None else profile.weights

    def derivatives(strength: Array) -> tuple[Array, Array]:
        gradient, information = ghost(strength, ghost_wins, has_votes)
        worth = np.exp(strength)
        for share, weight in zip(shares, weights, strict=True):
            _add_ballot(gradient, information, share * worth, weight)
        return gradient, information

    strength, information = maximise("plackett_luce", derivatives, has_votes.shape)
    met = np.zeros((*has_votes.shape[:1], *has_votes.shape), dtype=np.bool_)
    for ballot in profile.mask_weighed(profile.rank_mask):
        met |= ballot[:, np.newaxis] & ballot
    return conclude(strength, information, has_votes, met, information)


def _check_prior(ghost_wins: float) -> None:
    if isinstance(ghost_wins, bool) or not (math.isfinite(ghost_wins) and ghost_wins > 0):
        raise InvalidParameter("ghost_wins", ghost_wins, "a number above 0")


def _choice_shares(places: NDArray[Any]) -> Array:
    """Compute one ballot's choice shares u, (C, C, S).

    u[c, i] is the share of i at c's place.

    The places of a tied group go to its members in seat order, an arbitrary choice.
    """
    n_candidates = places.shape[0]
    ranked = places > 0
    both = ranked[:, np.newaxis] & ranked
    equal = (places[:, np.newaxis] == places) & both
    earlier = np.tri(n_candidates, k=-1, dtype=np.bool_)[:, :, np.newaxis]
    filled = (equal & earlier).sum(axis=1) / np.maximum(equal.sum(axis=1), 1)
    after = (places[:, np.newaxis] < places) & both
    return np.asarray(after + equal * (1.0 - filled[:, np.newaxis]))


def _add_ballot(gradient: Array, information: Array, pull: Array, weight: NDArray[Any]) -> None:
    """Add one ballot's choices in place; ``pull[c, i]`` is u_i exp θ_i."""
    total = pull.sum(axis=1, keepdims=True)
    placed = total[:, 0] > 0
    chance = pull / np.where(total > 0, total, 1.0)
    expected = chance.sum(axis=0)
    gradient += weight * (placed - expected)
    diagonal = np.arange(len(gradient))
    information[diagonal, diagonal] += weight * expected
    if len(gradient) <= ELIMINATED:
        information -= np.einsum("lis,ljs->ijs", chance, weight * chance)
    else:
        chosen = np.moveaxis(chance, -1, 0)
        scaled = np.moveaxis(weight * chance, -1, 0)
        information -= np.moveaxis(chosen.swapaxes(1, 2) @ scaled, 0, -1)


def fit_matchups(
    wins: NDArray[Any], ghost_wins: float, has_votes: NDArray[np.bool_]
) -> tuple[Array, Array]:
    """Maximise the Bradley–Terry likelihood of win counts.

    Parameters
    ----------
    wins : array, shape (C, C, S)
        ``wins[i, j]`` is how often i beat j, ties counted half each way.
    ghost_wins : float
        Wins, and as many losses, of every candidate against a ghost of strength 0. With 0 the
        caller must ensure that a maximum exists, and strengths sum to 0.
    has_votes : bool array, shape (C, S)
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
    losses = wins.swapaxes(0, 1)
    met = wins + losses

    def derivatives(strength: Array) -> tuple[Array, Array]:
        gradient, _ = ghost(strength, ghost_wins, has_votes)
        won = logistic(strength[:, np.newaxis] - strength)
        # Sum wins and losses separately: their difference would lose all digits where one is near
        # 0.
        gradient += (wins * won.swapaxes(0, 1) - losses * won).sum(axis=1)
        return gradient, pair_information(strength, met, ghost_wins, has_votes)

    return maximise("bradley_terry", derivatives, has_votes.shape)


def pair_information(
    strength: Array, comparisons: NDArray[Any], ghost_wins: float, has_votes: NDArray[np.bool_]
) -> Array:
    """Information of the matchups `comparisons` and the ghost's, shape (C, C, S)."""
    won = logistic(strength[:, np.newaxis] - strength)
    weight = comparisons * won * won.swapaxes(0, 1)
    diagonal = np.arange(len(strength))
    weight[diagonal, diagonal] = 0.0
    _, information = ghost(strength, ghost_wins, has_votes)
    information -= weight
    information[diagonal, diagonal] += weight.sum(axis=1)
    return information


def ghost(strength: Array, ghost_wins: float, has_votes: NDArray[np.bool_]) -> tuple[Array, Array]:
    """Gradient and information of the ghost's matchups; 1 for the unfitted."""
    gradient = -ghost_wins * np.tanh(strength / 2) * has_votes
    information = np.full((*strength.shape[:1], *strength.shape), float(ghost_wins == 0))
    diagonal = np.arange(strength.shape[0])
    information[diagonal, diagonal] += np.where(
        has_votes, ghost_wins / 2 / np.cosh(strength / 2) ** 2, 1.0
    )
    return gradient, information


def maximise(subject: str, derivatives: Derivatives, shape: tuple[int, ...]) -> tuple[Array, Array]:
    """Maximise a sum of Luce terms; return the maximum and information.

    Along a step d, the third derivative of such a term is at most max d − min d times the second
    (the ghost's 0 included), so the step log(1 + r)/r with r = max d − min d never overshoots.

    A session has settled when its step is small relative to the spread of its strengths, or so
    small that it is only rounding error; how small that is depends on the ballots, their weights
    and the processor.
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
        subject,
        f"the fit did not settle in {MAX_STEPS} steps",
        "weights that differ by less than a factor of a million will do, or a larger ghost_wins",
    )


def _solve(matrix: Array, right: Array) -> Array:
    """Solve positive definite systems per session, (C, C, S), (C, K, S)."""
    n = len(matrix)
    if n > ELIMINATED:
        systems, right = matrix.transpose(2, 0, 1), right.transpose(2, 0, 1)
        return np.asarray(np.linalg.solve(systems, right).transpose(1, 2, 0), dtype=np.float64)
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
    has_votes: NDArray[np.bool_],
    edges: NDArray[np.bool_],
    clustered_information: Array,
) -> Scores:
    """Centre the strengths over voted candidates; add their errors."""
    n_voted = np.maximum(has_votes.sum(axis=0), 1)
    score = strength - (strength * has_votes).sum(axis=0) / n_voted
    score = _level(np.where(has_votes, score, np.nan))
    spread = _centred_variance(information, has_votes, clustered_information)
    known = has_votes & (n_voted > 1)
    joined = closure(edges | np.eye(len(edges), dtype=np.bool_)[:, :, np.newaxis])
    apart = ~joined & has_votes[:, np.newaxis] & has_votes
    diagonal = np.arange(len(score))
    joined[diagonal, diagonal] = False
    p_beats = np.where(joined, logistic(score[:, np.newaxis] - score), np.nan)
    return Scores(
        score=score,
        std_error=np.sqrt(spread, out=np.full(score.shape, np.nan), where=known),
        details=MappingProxyType(
            {"p_beats_matchup": p_beats, "connected": np.logical_not(apart.any(axis=(0, 1)))}
        ),
    )


def _centred_variance(
    information: Array, has_votes: NDArray[np.bool_], clustered_information: Array
) -> Array:
    """Variance of strength less the mean over voted candidates, shape (C, S).

    The inverse is centred before it is squared, so that terms from the prior alone cancel first.
    """
    identity = np.broadcast_to(np.eye(len(information))[:, :, np.newaxis], information.shape)
    inverse = _solve(information, identity)
    share = has_votes / np.maximum(has_votes.sum(axis=0), 1)
    centred = inverse - np.einsum("is,ijs->js", share, inverse)
    variance: Array = np.einsum(
        "ijs,jks,iks->is", centred, clustered_information, centred, optimize=True
    )
    return variance


def _level(score: Array) -> Array:
    """Equalise scores within rounding error at their least, preserving ties."""
    order = np.argsort(score, axis=0)
    ascending = np.take_along_axis(score, order, axis=0)
    starts = np.diff(ascending, axis=0, prepend=-np.inf) > DEAD_HEAT
    lowest = np.maximum.accumulate(np.where(starts, ascending, -np.inf), axis=0)
    levelled = np.full_like(score, np.nan)
    np.put_along_axis(levelled, order, np.where(np.isnan(ascending), np.nan, lowest), axis=0)
    return levelled
