"""Rules over grades: mean, standardised, calibrated, or blended with Borda.

Grades come as unsigned integers, 0 for none, or as floats, NaN for none; both give the same
scores. In a profile without grades, every candidate is ungraded.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from witan.core.profile import (
    FRACTION_VARIANCE,
    ROUNDING_VARIANCE,
    Floats,
    Profile,
    candidates_with_votes,
)
from witan.core.rules.positional import (
    borda,
    presence,
    weighted_error,
    whole_error,
    whole_sums,
)
from witan.core.rules.registry import Axiom, Scores, rule
from witan.core.stats.additive import fit_effects
from witan.errors import InvalidParameter

FLAT = 0.001
"""Standard deviation of grades below which a ballot is flat."""

DECIMALS = 9
"""Decimals of means of fractional grades and of z, so that 8.1 + 7.3 equals 7.7 + 7.7.

Rounding the sum instead would add up to half a unit over the weight to each mean, different for
equal means of different weight.
"""

ROUNDING = 1e-12
"""Variance of z below which it is a rounded 0."""

LEAST_FREEDOM = 0.01
"""Share of the variance of z that its weighted mean square shows; less states no error."""

WHOLE_GRADES = 180
"""Candidates times largest grade up to which a ballot's sums of squares fit 16 bits."""


@rule(
    "range",
    needs="grades",
    source="range voting; ADR-010, option E",
    summary="The mean of a candidate's grades as given.",
    use_when="All reviewers are known to grade alike, or for comparison with a calibrated rule.",
    evidence=(
        "A harsh or generous reviewer shifts the candidates that it alone judged, or alone did "
        "not judge, such as its own; calibrated corrects this."
    ),
    satisfies={Axiom.ANONYMITY, Axiom.NEUTRALITY, Axiom.UNANIMITY, Axiom.MONOTONICITY},
    tie_break="wins",
    bounds=(1.0, 10.0),
    rivals="none",
)
def range_(profile: Profile) -> Scores:
    """Score a candidate by the weighted mean of its grades.

    Returns
    -------
    Scores
        ``score`` (C, S): in grades; NaN without one.
        ``std_error`` (C, S): in grades; sample standard deviation over √votes, NaN under two
        votes. If all grades of a session are whole numbers, the variance of a vote is at least
        1/12, otherwise at least 1/48.

    References
    ----------
    ADR-010 of the council surveyed, option E.
    """
    return Scores(*_mean_grade(profile))


@rule(
    "normalized_scores",
    needs="grades",
    source="ADR-010",
    summary="The mean of a candidate's grades, each ballot scaled to mean 0 and deviation 1.",
    use_when="Numbers must agree with ADR-010; otherwise calibrated uses the same grades better.",
    evidence=(
        "Reviewers' severity and scale cancel only if all judged the same candidates: calibrated "
        "finds the best one 1 to 2 points more often at 3 to 5 reviewers, and never less."
    ),
    satisfies={Axiom.ANONYMITY, Axiom.NEUTRALITY},
    tie_break="borda",
    error="population",
)
def normalized_scores(profile: Profile) -> Scores:
    """Score a candidate by the mean over ballots of its standardised grade.

    With m and d the mean and population standard deviation of what the ballot grades,

        z = (s − m)/d,    z = 0 where d < 0.001,

    and the score is the weighted mean of z over the ballots that grade the candidate. Shifting
    or stretching a ballot's grades changes nothing.

    Returns
    -------
    Scores
        ``score`` (C, S): in standard deviations of a ballot; NaN without a grade.
        ``std_error`` (C, S): population standard deviation of the z over √votes; NaN under two,
        and where one weighs so much that its expectation falls below a tenth.
        ``fell_back`` (S,): True where every ballot grades all its candidates the same; score and
        error are then those of `borda`.

    References
    ----------
    ADR-010 of the council surveyed, which prints an error of 0 for a single vote.
    """
    grades, weights = profile.grades, profile.weights
    if grades is None:
        grades = np.zeros(profile.places.shape, dtype=np.uint8)
    if weights is None and _fits(grades):
        score, error, varied = _standardise_whole(grades)
    else:
        score, error, varied = _standardise(grades, weights)
    fell_back = np.logical_not(np.logical_or.reduce(varied, axis=0))
    if np.any(fell_back):
        instead = borda.compute(profile.take(fell_back))
        score[:, fell_back] = instead.score
        error[:, fell_back] = instead.std_error
    return Scores(score, error, fell_back=fell_back)


@rule(
    "hybrid",
    needs="grades",
    source="ADR-007, option C",
    summary="A blend of Borda and the mean grade, each between 0 and 1.",
    use_when="Both order and level should count and the reviewers grade alike.",
    evidence=("α is arbitrary, and the grades in it are uncalibrated; some councils use it."),
    satisfies={Axiom.ANONYMITY, Axiom.NEUTRALITY, Axiom.MONOTONICITY},
    tie_break="wins",
    bounds=(0.0, 1.0),
    reads_both=True,
)
def hybrid(profile: Profile, *, alpha: float = 0.5) -> Scores:
    """Score a candidate by α·borda + (1 − α)·mean((s − 1)/9).

    A candidate without grades has its Borda score alone.

    Parameters
    ----------
    alpha : float
        The share of Borda, from 0 to 1.

    Returns
    -------
    Scores
        ``score`` (C, S): in [0, 1] for grades from 1 to 10; NaN without any vote.
        ``std_error`` (C, S): α·error of borda + (1 − α)·error of the mean grade/9. The two come
        from the same ballots and are treated as fully correlated, so the error is conservative.
        ``details["ungraded"]`` (C, S): True where the score is Borda alone.

    Raises
    ------
    InvalidParameter
        If alpha is not a number from 0 to 1.

    References
    ----------
    ADR-007 of the council surveyed, option C.
    """
    if isinstance(alpha, bool) or not 0.0 <= alpha <= 1.0:
        raise InvalidParameter("alpha", alpha, "a number from 0 to 1")
    ranked, grade = borda.compute(profile), _mean_grade(profile)
    ungraded = np.isnan(grade[0])
    score, error = (
        np.where(ungraded, order, _part(alpha, order) + _part(1.0 - alpha, level))
        for order, level in (
            (ranked.score, (grade[0] - 1.0) / 9.0),
            (np.asarray(ranked.std_error, dtype=np.float64), grade[1] / 9.0),
        )
    )
    score[ungraded & ~candidates_with_votes(profile)] = np.nan
    return Scores(score, error, details={"ungraded": ungraded})


def _part(share: float, values: Floats) -> Floats | float:
    return share * values if share > 0 else 0.0


def _mean_grade(profile: Profile) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the mean grade and its standard error, both (C, S)."""
    grades = profile.grades
    if grades is None:
        nobody = np.full(profile.places.shape[1:], np.nan)
        return nobody, nobody.copy()
    if profile.weights is None and np.issubdtype(grades.dtype, np.integer):
        sums = whole_sums(grades, presence(grades))
        with np.errstate(invalid="ignore"):
            return sums.total / sums.votes, whole_error(sums)
    values, present = _to_floats(grades)
    weights = present * (1.0 if profile.weights is None else profile.weights[:, np.newaxis])
    with np.errstate(invalid="ignore"):
        mean = np.round((weights * values).sum(axis=0) / weights.sum(axis=0), DECIMALS)
    whole = (values == np.rint(values)).all(axis=(0, 1))
    least = np.where(whole, ROUNDING_VARIANCE, FRACTION_VARIANCE)
    error = weighted_error(values, weights, mean, least)
    return mean, error


def _to_floats(grades: NDArray[Any]) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Grades as floats with 0 for none, and their presence."""
    present = grades > 0 if np.issubdtype(grades.dtype, np.integer) else ~np.isnan(grades)
    return np.where(present, grades, 0).astype(np.float64), present


def _fits(grades: NDArray[Any]) -> bool:
    """Check for whole grades with sums of squares within 16 bits."""
    if grades.dtype.kind not in "iu":
        return False
    largest = np.maximum.reduce(grades, axis=None, initial=0)
    return bool(grades.shape[1] * int(largest) <= WHOLE_GRADES)


def _standardise_whole(
    grades: NDArray[np.unsignedinteger[Any]],
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.bool_]]:
    """Score, error and varied ballots, for whole grades of equal weight.

    With n grades on the ballot, z = (n·s − Σs) / √(n·Σs² − (Σs)²), of whole numbers; the variance
    of a candidate's z is Σz²/votes − score².
    """
    present = presence(grades)
    grade = grades.astype(np.int16)
    size = np.add.reduce(present, axis=1, keepdims=True, dtype=np.int16)
    total = np.add.reduce(grade, axis=1, keepdims=True, dtype=np.int16)
    spread = np.add.reduce(grade * grade, axis=1, keepdims=True, dtype=np.int16)
    spread *= size
    spread -= total * total
    grade *= size
    grade -= total
    grade *= present
    scale = np.maximum(spread, 1).astype(np.float64)
    np.divide(1.0, np.sqrt(scale, out=scale), out=scale)
    score, error, z = np.zeros((3, *grades.shape[1:]))
    for above, unit in zip(grade, scale, strict=True):
        np.copyto(z, above)  # a product of two types converts cell by cell
        z *= unit
        score += z
        z *= z
        error += z
    votes = np.add.reduce(present, axis=0, dtype=np.float64)
    share = 1.0 / np.where(votes > 0, votes, np.nan)
    score *= share
    error *= share
    error -= np.multiply(score, score, out=z)
    # If all agree, a rounding error must not count as a difference.
    np.copyto(error, 0.0, where=error < ROUNDING)
    error *= np.where(votes > 1, share, np.nan)
    return np.round(score, DECIMALS, out=score), np.sqrt(error, out=error), spread[:, 0] > 0


def _standardise(
    grades: NDArray[Any], weights: Floats | None
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.bool_]]:
    values, present = _to_floats(grades)
    size = np.maximum(present.sum(axis=1, keepdims=True), 1)
    z = np.where(present, values - values.sum(axis=1, keepdims=True) / size, 0.0)
    deviation = np.sqrt((z * z).sum(axis=1, keepdims=True) / size)
    varied = deviation >= FLAT
    z = np.where(varied, z / np.where(varied, deviation, 1.0), 0.0)
    weight = present * (1.0 if weights is None else weights[:, np.newaxis])
    votes, voted = (weight > 0).sum(axis=0), weight.sum(axis=0)
    with np.errstate(invalid="ignore"):
        score = (weight * z).sum(axis=0) / voted
        away = z - np.where(votes > 0, score, 0.0)
        variance = (weight * away * away).sum(axis=0) / voted
        # If all agree, a rounding error must not count as a difference.
        variance[variance < ROUNDING] = 0.0
        freedom = 1 - ((weight / voted) ** 2).sum(axis=0)
        several = (votes >= 2) & (freedom > LEAST_FREEDOM)
        error = np.sqrt(variance / np.where(several, votes, np.nan))
    score = np.round(score, DECIMALS)
    return score, error, (varied & (weight > 0).any(axis=1, keepdims=True))[:, 0]


@rule(
    "calibrated",
    needs="grades",
    shortest=2,
    source="least squares for unbalanced two-way layouts: Searle, Linear Models, 1971, ch. 7",
    summary="Mean grade after least squares removes each reviewer's own level and spread.",
    use_when="reviewers grade: it corrects harsh and generous reviewers exactly, even when they "
    "judged different candidates.",
    evidence="Simulated councils of 3–5 reviewers: it finds the best candidate 1–2 points more "
    "often than z-scores and never less. It needs meaningful grades: use borda for flat or "
    "arbitrary ones.",
    satisfies={Axiom.ANONYMITY, Axiom.NEUTRALITY},
    error="fit",
)
def calibrated(profile: Profile) -> Scores:
    """Candidate effects of the additive model, centred on 0, in grade points.

    The model is grade · panel scale / reviewer scale = candidate + reviewer + error, fitted by
    least squares; see `witan.core.stats.additive.fit_grades` for the scale.

    Parameters
    ----------
    profile
        With grades of shape (R, C, S).

    Returns
    -------
    Scores
        ``score`` (C, S): NaN where no ballot grades the candidate. ``std_error`` (C, S): of the
        centred effect, from the pooled residual variance; NaN without residual degrees of freedom
        or from fewer than two ballots. Candidates that no chain of ballots connects are centred
        group by group. ``fell_back`` (S,) stays False: on flat grades every effect is exactly 0.

    References
    ----------
    Searle, Linear Models, Wiley 1971, chapter 7. The scale's shrinkage is that of an
    inverse-chi-square prior: Gelman et al., Bayesian Data Analysis, 3rd ed., section 2.6.
    """
    effects, fit_whole = fit_effects(profile)

    def complete() -> Scores:
        fit, votes = fit_whole(), profile.grade_mask.sum(axis=0)
        return Scores(effects, np.where(votes >= 2, fit.std_errors(), np.nan), fit=fit)

    return Scores.defer_rest(effects, complete)
