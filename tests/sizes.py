"""How often a leader is declared, wrongly and rightly: the figures of docs/benchmarks.md."""

from collections.abc import Callable, Iterator

import numpy as np

from elections import mean_ranks
from simulation import council
from witan.core.inference import beliefs, ratios
from witan.core.outcome import Prior
from witan.core.profile import Profile
from witan.core.rules import RULES
from witan.core.stats.additive import adjusted_grades, fit_grades, fit_ranks
from witan.core.stats.priors import PUBLIC_RHO, learn_prior, public_prior
from witan.core.stats.uncertainty import PairEvidence, Uncertainty, design_effect

TIED_AT_THE_TOP = (1.0, 1.0, -1.0, -2.0, -2.0)
CLEAR_LEADER = (3.0, 0.0, 0.0, 0.0, 0.0)

Told = tuple[np.ndarray, np.ndarray]
"""Whether the first line is told apart from the second, and who is first, per session."""


def declared_and_found(
    told: Callable[[Profile], Told],
    *,
    reviewers: int,
    sessions: int,
    rng: np.random.Generator,
    shared: float = 0.0,
) -> tuple[float, float]:
    """In percent: a leader declared between equals, and a clear leader found."""
    drawn = {"reviewers": reviewers, "sessions": sessions, "rng": rng, "shared": shared}
    falsely, _ = told(council(TIED_AT_THE_TOP, **drawn))
    apart, first = told(council(CLEAR_LEADER, **drawn))
    return 100 * falsely.mean(), 100 * (apart & (first == 0)).mean()


def ways_to_tell(prior: Prior) -> dict[str, Callable[[Profile], Told]]:
    """What may tell two lines apart, by its name in the table."""
    return {
        "overlap of intervals (ADR-010)": _by_overlap,
        "contrast on grades, without a prior": lambda profile: first_is_told_apart(
            profile, "grades", prior=None, rho=0.0
        ),
        "contrast on grades (default)": lambda profile: first_is_told_apart(profile, "grades"),
        "contrast on ranks (default)": lambda profile: first_is_told_apart(profile, "ranks"),
        "contrast on grades, with a history": lambda profile: first_is_told_apart(
            profile, "grades", prior=prior
        ),
        "P(best) ≥ 0.95": lambda profile: _by_p_best(profile, public_prior("grades", 5)),
        "P(best) ≥ 0.95 with a history": lambda profile: _by_p_best(profile, prior),
        "contrast on grades, ρ = 0": lambda profile: first_is_told_apart(
            profile, "grades", rho=0.0
        ),
        "contrast on grades, ρ = 0.2 (default)": lambda profile: first_is_told_apart(
            profile, "grades"
        ),
        "contrast on grades, ρ = 0.5": lambda profile: first_is_told_apart(
            profile, "grades", rho=0.5
        ),
    }


def history(reviewers: int, rng: np.random.Generator) -> Prior:
    """A prior learned from 400 sessions of councils of this size."""
    past = [
        fit_grades(council(rng.normal(0, 1, 5), reviewers=reviewers, sessions=20, rng=rng))
        for _ in range(20)
    ]
    prior = learn_prior(past, "grades")
    assert prior is not None
    return prior


def uncertainty_of(
    profile: Profile,
    unit: str = "grades",
    *,
    prior: Prior | str | None = "public",
    rho: float | None = None,
    is_repeated: bool = False,
) -> Uncertainty:
    """What a count makes of these ballots, by default or with something else borrowed."""
    fit = fit_grades(profile) if unit == "grades" else fit_ranks(profile)
    values = adjusted_grades(profile) if unit == "grades" else -profile.ranks
    ballots = (~np.isnan(values)).sum(axis=0)
    if prior == "public":
        prior = public_prior(unit, profile.n_candidates)
    rho = PUBLIC_RHO[unit] if rho is None else rho
    return Uncertainty.of(
        fit,
        ballots,
        shared=rho / (1 - rho),
        prior=prior,
        own=PairEvidence.of(values, prior, is_repeated=is_repeated),
        design=design_effect(profile.weights, ~np.isnan(values)),
    )


def first_is_told_apart(profile: Profile, unit: str, **borrowed: object) -> Told:
    """The contrast between the first two lines of every session."""
    uncertainty = uncertainty_of(profile, unit, **borrowed)
    first, second = np.argsort(-uncertainty.fit.effects, axis=0, kind="stable")[:2]
    return uncertainty.separate_pairs(0.95)[first, second, np.arange(len(first))], first


def worlds_of_equals(
    reviewers: int, sessions: int, rng: np.random.Generator
) -> Iterator[tuple[str, bool, Profile]]:
    """Councils whose first two candidates are equal: name, whether it is hostile, ballots.

    Hostile are those that break an assumption of the fit: reviewers err together by more than the
    default, candidates are judged with different noise, or grades are coins.
    """

    def graded(keys: np.ndarray) -> Profile:
        grades = np.clip(np.rint(keys), 1, 10)
        return Profile.from_ranks(mean_ranks(-grades), grades=grades)

    def recused(keys: np.ndarray) -> np.ndarray:
        for own in range(min(reviewers, keys.shape[1])):
            keys[own, own] = np.nan
        return keys

    drawn = {"reviewers": reviewers, "sessions": sessions, "rng": rng}
    yield "two at the top", False, council(TIED_AT_THE_TOP, **drawn)
    yield "two at the top, a jury", False, council(TIED_AT_THE_TOP, recused=False, **drawn)
    yield "three candidates", False, council((1.0, 1.0, -1.0), **drawn)
    yield "eight candidates", False, council((1.0, 1.0, 0, 0, 0, -1, -1, -2.0), **drawn)
    yield "all equal", False, council((0.0,) * 5, **drawn)
    yield "loud reviewers", False, council(TIED_AT_THE_TOP, noise=2.0, **drawn)
    yield "the ceiling", False, council((5.0, 5.0, 2.0, 0.0, 0.0), **drawn)
    yield "the floor", False, council((-3.0, -3.0, -5.0, -6.0, -6.0), **drawn)
    shape = (reviewers, 5, sessions)
    yield "random grades", False, graded(rng.integers(1, 11, shape).astype(float))
    keys = 6 + np.array(TIED_AT_THE_TOP)[:, np.newaxis] + rng.normal(size=shape)
    shown = rng.permuted(np.broadcast_to(np.arange(5.0)[:, np.newaxis], shape), axis=1)
    yield "the first shown is favoured", False, graded(recused(keys - 0.4 * shown))
    yield "a third of the noise shared", True, council(TIED_AT_THE_TOP, shared=0.3, **drawn)
    alike = council(TIED_AT_THE_TOP, shared=0.3, recused=False, **drawn)
    yield "a third of the noise shared, a jury", True, alike
    coins = np.tile(np.array([8.0, 8, 5, 3, 1])[:, np.newaxis], (reviewers, 1, sessions))
    coins[:, :2] += rng.random((reviewers, 2, sessions)) < 0.5
    yield "a point apart by chance", True, graded(coins)
    spread = np.array([2.0, 2.0, 0.3, 0.3, 0.3])[:, np.newaxis]
    keys = 6 + np.array([0.0, 0, -2, -3, -4])[:, np.newaxis] + spread * rng.normal(size=shape)
    keys += rng.normal(size=(reviewers, 1, sessions))
    yield "noise at the top alone", True, graded(recused(keys))
    flips = np.tile(np.array([0.0, 0, 2, 3, 4])[:, np.newaxis], (reviewers, 1, sessions))
    flips[:, 0] = rng.random((reviewers, sessions)) < 0.5
    flips[:, 1] = 1 - flips[:, 0]
    yield "coin flips above a fixed order", True, graded(9 - 2 * flips)
    yield "coin flips above a fixed order, authors", True, graded(recused(9 - 2 * flips))


def _by_overlap(profile: Profile) -> Told:
    scores = RULES["normalized_scores"](profile)
    order = np.argsort(-scores.score, axis=0, kind="stable")
    score = np.take_along_axis(scores.score, order, 0)
    error = np.take_along_axis(scores.std_error, order, 0)
    return score[0] - 1.96 * error[0] >= score[1] + 1.96 * error[1], order[0]


def _by_p_best(profile: Profile, prior: Prior) -> Told:
    uncertainty = uncertainty_of(profile, prior=prior)
    everyone = np.ones(uncertainty.votes.shape, dtype=bool)
    best = np.nan_to_num(beliefs(uncertainty, everyone, ratios(prior)).p_best)
    return best.max(axis=0) >= 0.95, best.argmax(axis=0)
