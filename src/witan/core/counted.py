"""One rule over sessions of one shape: scores, ranks, fits and recounts, still as arrays."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from witan.core.batch import failed_candidates, gradable, opinion_rows
from witan.core.interpretation import Electorate
from witan.core.outcome import Prior, Unit
from witan.core.placing import Placing, effective_ballots, first_places, place, votes
from witan.core.profile import Floats, Profile, matchups
from witan.core.robustness import ballots_to_flip
from witan.core.rules import RULES, Rule, Scores
from witan.core.settings import Settings
from witan.core.stats.additive import (
    AdditiveFit,
    adjusted_grades,
    fit_grades,
    fit_ranks,
    fit_rows,
    pair_variances,
)
from witan.core.stats.uncertainty import Uncertainty
from witan.errors import TooLarge, UnsuitableBallots

__all__ = ["Counted", "Fitted", "GoOn", "count", "decider", "fits_of", "forever", "score"]

Fitted = tuple[AdditiveFit, int, Unit]
"""A fit of many sessions, which of them is meant, and what it was fitted on."""

GoOn = Callable[[], None]
"""Called again and again while counting takes long; what it raises ends it."""


def forever() -> None:
    """Go on in any case."""


@dataclass(frozen=True, slots=True)
class Counted:
    """Sessions of one shape under one rule.

    Parameters
    ----------
    profile
        What was counted; for a rule over a history, all sessions pooled into one.
    margins : array, shape (C, C, S)
    votes : int array, shape (C, S)
    wins : float array, shape (C, S)
    flips, flips_exact
        As `ballots_to_flip` gives them; None where they were not searched.
    fits
        Per session, its fit and what that was fitted on; None over a history.
    """

    rule: Rule
    settings: Settings
    electorates: Sequence[Electorate]
    profile: Profile
    scores: Scores
    placing: Placing
    margins: NDArray[Any]
    votes: NDArray[np.integer[Any]]
    wins: Floats
    flips: NDArray[np.int64] | None
    flips_exact: NDArray[np.bool_] | None
    fits: Sequence[Fitted] | None

    def uncertainty(self, column: int) -> tuple[Uncertainty, Unit] | None:
        """The fit of a session and what it was fitted on; None over a history or without votes."""
        if self.fits is None or not self.electorates[column].votes:
            return None
        fit, at, unit = self.fits[column]
        one = self.profile.take(slice(column, column + 1))
        seats = np.array(self.electorates[column].stands_for, dtype=np.intp)
        judged, place = np.unique(seats, return_inverse=True)
        if len(seats):  # copies of an answer are not judged again: they would add certainty
            one = one.keep_candidates(judged)
            fit, at = (fit_grades(one) if unit == "grades" else fit_ranks(one)), 0
        present = one.graded if unit == "grades" else one.ranked
        if one.weights is not None:
            present = present & (one.weights > 0)[:, np.newaxis]
        learned = self.settings.prior
        prior = learned if isinstance(learned, Prior) and learned.unit == unit else None
        rho = self.settings.rho if isinstance(self.settings.rho, float | int) else None
        own = pair_variances(self._read(column, one, unit))
        ballots = present.sum(axis=0)[:, 0]
        found = Uncertainty.of(fit, at, ballots, rho=rho, prior=prior, own=own)
        return (found.at(place) if len(seats) else found), unit

    def _read(self, column: int, one: Profile, unit: Unit) -> Floats:
        """What the fit reads of one session, shape (rows, C)."""
        if unit == "grades":
            return adjusted_grades(one)[:, :, 0]
        if any(vote.paired for vote in self.electorates[column].votes):
            return opinion_rows(self.electorates[column])[:, :, 0]
        return -one.ranks[:, :, 0]


def count(
    name: str,
    profile: Profile,
    electorates: Sequence[Electorate],
    settings: Settings,
    check_wanted: GoOn = forever,
) -> Counted:
    """Score and rank every session, and search for the ballots its lead depends on."""
    rule = RULES[name]
    parameters = settings.parameters if settings.rule == name else {}
    scores = score(rule, profile, **parameters)
    failed = failed_candidates(electorates)
    over_time = rule.needs == "history"
    profile = _pool(profile) if over_time else profile
    placing = place(scores, profile, rule, tie_break=settings.tie_break, failed=failed)
    flips = exact = None
    if settings.flips and not over_time and profile.n_candidates <= rule.searchable_up_to:
        flips, exact = ballots_to_flip(
            profile,
            placing.leads,
            decider(rule, settings, failed, check_wanted),
            effective=effective_ballots(profile, rule),
            max_cells=rule.recount_cells,
        )
    fits = None
    if profile.n_reviewers and not over_time:
        fits = fits_of(electorates, profile, rule, of_grades=scores.fit)
    return Counted(
        rule=rule,
        settings=settings,
        electorates=electorates,
        profile=profile,
        scores=scores,
        placing=placing,
        margins=matchups(profile).margins,
        votes=votes(profile, rule),
        wins=first_places(profile),
        flips=flips,
        flips_exact=exact,
        fits=fits,
    )


def score(rule: Rule, profile: Profile, **parameters: Any) -> Scores:
    """The rule's scores; no ballots at all score nobody."""
    if profile.n_reviewers == 0 or profile.n_candidates == 0:
        return Scores(score=np.full(profile.places.shape[1:], np.nan))
    try:
        return rule(profile, **parameters)
    except TooLarge as error:
        remedy = "take a rule without that limit, such as 'borda' or 'schulze'"
        raise UnsuitableBallots(rule.name, str(error), remedy) from None


def decider(
    rule: Rule, settings: Settings, failed: NDArray[np.bool_] | None, check_wanted: GoOn = forever
) -> Callable[[Profile, NDArray[np.integer[Any]]], NDArray[np.bool_]]:
    """Who leads a recount: the same rule, parameters, tie-break and gate."""
    parameters = settings.parameters if settings.rule == rule.name else {}

    def decide(profile: Profile, origin: NDArray[np.integer[Any]]) -> NDArray[np.bool_]:
        check_wanted()
        scores = score(rule, profile, **parameters)
        barred = None if failed is None else failed[:, origin]
        return place(scores, profile, rule, tie_break=settings.tie_break, failed=barred).leads

    return decide


def fits_of(
    electorates: Sequence[Electorate],
    profile: Profile,
    rule: Rule,
    *,
    of_grades: AdditiveFit | None = None,
) -> list[Fitted]:
    """The additive fit of each session: on grades where they speak for the ballots, else on ranks.

    Grades speak for the ballots if the rule reads them, or if every ballot that ranks two
    candidates also grades two; a rule that reads rankings must not be judged by half of them.
    `of_grades` is the fit of the grades, where it has been made already.
    """
    enough, all_graded = gradable(profile)
    by_grades = enough if rule.needs == "grades" else all_graded
    paired = any(vote.paired for vote in electorates[0].votes)
    graded = of_grades
    if graded is None and by_grades.any():
        graded = fit_grades(profile)
    ranked = None if paired or by_grades.all() else fit_ranks(profile)
    fits: list[Fitted] = []
    for column, electorate in enumerate(electorates):
        if graded is not None and by_grades[column]:
            fits.append((graded, column, "grades"))
        elif ranked is not None:
            fits.append((ranked, column, "ranks"))
        else:
            fits.append((fit_rows(opinion_rows(electorate)), 0, "ranks"))
    return fits


def _pool(profile: Profile) -> Profile:
    """All sessions as the rows of one."""
    n_candidates = profile.n_candidates

    def rows(held: NDArray[Any] | None) -> NDArray[Any] | None:
        return None if held is None else held.T.reshape(-1, 1)

    pooled = Profile(
        places=profile.places.transpose(2, 0, 1).reshape(-1, n_candidates, 1),
        weights=rows(profile.weights),
        lengths=rows(profile.lengths),
        eligible=rows(profile.eligible),
    )
    if pooled.weights is None:
        return pooled
    # Shorter sessions were filled up with rows that weigh nothing.
    return pooled.keep_ballots(pooled.weights[:, 0] > 0)
