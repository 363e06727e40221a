"""Ratings of many models across sessions: Bradley–Terry strengths with errors that hold."""

from witan.core.comparisons import Comparisons, count_pairs, session_squares
from witan.core.rating_fit import (
    MAX_MODELS,
    Clusters,
    Errors,
    Ratings,
    check_options,
    conclude,
    fit_pairs,
    residuals,
)
from witan.errors import NothingToCount, TooLarge

__all__ = ["MAX_MODELS", "Errors", "Ratings", "rate"]


def rate(
    comparisons: Comparisons, *, ghost_wins: float = 0.5, cluster: bool = True, level: float = 0.95
) -> Ratings:
    r"""Rate models by a Bradley–Terry fit to all comparisons, with sandwich errors.

    The strengths θ are those of the rule `bradley_terry`, all comparisons in one matchup table,
    ties half a win each way. With H the information at θ, r = y − σ(θ_i − θ_j) the residual of a
    comparison with outcome y in {0, ½, 1}, x the vector with 1 for its first and −1 for its
    second model, and H₀ the part of H that the prior brings, the covariance of θ is

        H⁻¹                                                model-based,
        H⁻¹ (Σ_n r_n² x_n x_nᵀ + H₀) H⁻¹                   robust per comparison,
        H⁻¹ (G/(G − 1) Σ_s g_s g_sᵀ + H₀) H⁻¹              clustered by session,

    g_s = Σ_{n in s} r_n x_n being the gradient of one of G sessions. Comparisons inside a session
    share its question, answers and reviewers; only the clustered errors allow for that. They are
    used where sessions are given, with G − 1 degrees of freedom; `errors` of the result names the
    kind in use. With fewer than 20 sessions, errors and contrasts are at least the model-based
    ones, so that agreement by chance does not pass for certainty.

    Parameters
    ----------
    comparisons : Comparisons
        N comparisons of M models, optionally with sessions.
    ghost_wins : float
        Wins, and as many losses, of every model against one ghost of free strength; half of each
        by default. With 0 there must be a finite answer without it.
    cluster : bool
        Whether to use the sessions, if there are any.
    level : float
        Of the intervals, between 0 and 1.

    Returns
    -------
    Ratings
        In logits, mean 0 within each connected group.

    Raises
    ------
    InvalidParameter
        If `ghost_wins` is negative or `level` not between 0 and 1.
    NothingToCount
        If there is no comparison.
    TooLarge
        If there are more than `MAX_MODELS` models.
    UnsuitableBallots
        If `ghost_wins` is 0 and some models never lost to, or never met, the others (Ford's
        condition).

    References
    ----------
    Bradley and Terry, Biometrika 39 (1952) 324–345. Ford, American Mathematical Monthly 64 (1957)
    28–33. White, "Maximum likelihood estimation of misspecified models", Econometrica 50 (1982)
    1–25. Liang and Zeger, "Longitudinal data analysis using generalized linear models",
    Biometrika 73 (1986) 13–22.
    """
    check_options(ghost_wins, level)
    if not len(comparisons):
        raise NothingToCount("there are no comparisons to rate models by")
    if len(comparisons.models) > MAX_MODELS:
        raise TooLarge("models", len(comparisons.models), MAX_MODELS)
    fit = fit_pairs(comparisons.models, count_pairs(comparisons), ghost_wins)
    n_sessions = comparisons.n_sessions if cluster else None
    clusters = None
    if n_sessions is not None:
        squares = session_squares(comparisons, residuals(fit.strength))
        clusters = Clusters(n_sessions, squares, n_sessions)
    warnings = _session_warnings(n_sessions, len(fit.models), cluster=cluster)
    return conclude(fit, clusters, level, tuple(warnings))


def _session_warnings(n_sessions: int | None, n_models: int, *, cluster: bool) -> list[str]:
    """Say where the errors allow too little, or nothing, for sessions."""
    if n_sessions is None:
        unknown = (
            "without sessions, comparisons are taken as independent and errors may be too small"
        )
        return [unknown] if cluster else []
    if n_sessions == 1:
        return ["all comparisons are of one session: how ratings vary between sessions is unknown"]
    if n_sessions <= n_models:
        return [f"{n_sessions} sessions are few for {n_models} models: clustered errors are rough"]
    return []
