"""Uncertainty of counted sessions, in blocks over candidates and sessions."""

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from witan.core.counting import BatchCount, opinion_rows
from witan.core.outcome import Prior, Unit
from witan.core.profile import Electorate, Floats, Profile
from witan.core.sequential import look_level
from witan.core.settings import Settings
from witan.core.stats.additive import (
    AdditiveFit,
    adjusted_grades,
    fit_grades,
    fit_ranks,
)
from witan.core.stats.posterior import beliefs, ratios
from witan.core.stats.priors import prior_of, rho_of
from witan.core.stats.uncertainty import PairEvidence, Uncertainty, design_effect


@dataclass(frozen=True, slots=True)
class Inference:
    """Effects, errors and probabilities of S sessions.

    Parameters
    ----------
    units
        What each session was fitted on; None: without a fit.
    priors
        What each session borrowed.
    effects, std_errors, p_best : float array, shape (C, S)
        NaN where unknown.
    p_beats : float array, shape (C, C, S)
    separation_mask : bool array, shape (C, C, S)
        i is above j beyond noise.
    df, rho : float array, shape (S,)
        Degrees of freedom, and the error that reviewers share; NaN where unknown.
    can_tell : bool array, shape (S,)
        Ballots enough to separate a pair.
    is_connected : bool array, shape (S,)
        Every candidate with votes was compared with every other, if only through others.
    """

    units: list[Unit | None]
    priors: list[Prior | None]
    effects: Floats
    std_errors: Floats
    p_beats: Floats
    p_best: Floats
    separation_mask: NDArray[np.bool_]
    df: Floats
    rho: Floats
    can_tell: NDArray[np.bool_]
    is_connected: NDArray[np.bool_]

    @classmethod
    def blank(cls, n_candidates: int, n_sessions: int) -> "Inference":
        """Make statistics of sessions with nothing known yet."""
        one = (n_candidates, n_sessions)
        pairs = (n_candidates, *one)
        return cls(
            units=[None] * n_sessions,
            priors=[None] * n_sessions,
            effects=np.full(one, np.nan),
            std_errors=np.full(one, np.nan),
            p_beats=np.full(pairs, np.nan),
            p_best=np.full(one, np.nan),
            separation_mask=np.zeros(pairs, dtype=np.bool_),
            df=np.full(n_sessions, np.nan),
            rho=np.full(n_sessions, np.nan),
            can_tell=np.zeros(n_sessions, dtype=np.bool_),
            is_connected=np.ones(n_sessions, dtype=np.bool_),
        )


@dataclass(frozen=True, slots=True)
class FittedSessions:
    """Sessions of a batch with one common fit.

    Parameters
    ----------
    columns : int array, shape (S,)
        Their numbers in the batch.
    uncertainty
        Of these sessions.
    unit, prior, rho
        What was fitted, what was borrowed, and the error that the models among the reviewers share;
        None: none.
    places : int array, shape (C,), optional
        Per candidate the row that speaks for it, where several are copies of one answer.
    """

    columns: NDArray[np.intp]
    uncertainty: Uncertainty
    unit: Unit
    prior: Prior | None
    rho: float | None
    places: NDArray[np.intp] | None = None


def _share_of_models(electorate: Electorate) -> float:
    """Compute the models' share of all reviewers' weight."""
    kinds = electorate.kinds
    n_models = kinds.count("model")
    if n_models in (0, len(kinds)):
        return float(n_models > 0)
    weights = {vote.reviewer: (vote.kind, vote.weight) for vote in electorate.votes}
    heaviest = max((weight for _, weight in weights.values()), default=0.0) or 1.0
    total = math.fsum(weight / heaviest for _, weight in weights.values())
    own = math.fsum(w / heaviest for kind, w in weights.values() if kind == "model")
    return own / total if total else 0.0


def infer(counted: BatchCount) -> Inference:
    """Compute all blocks of a batch."""
    n_candidates, n_sessions = counted.votes.shape
    blocks = Inference.blank(n_candidates, n_sessions)
    for part in fit_parts(counted):
        barred = np.zeros((n_candidates, len(part.columns)), dtype=np.bool_)
        for at, column in enumerate(part.columns):
            failed = counted.electorates[column].failed
            if failed:
                names = counted.electorates[column].candidates
                barred[:, at] = [name in failed for name in names]
        _fill(blocks, part, barred, counted.settings)
    return blocks


def _fill(
    blocks: Inference, part: FittedSessions, excluded: NDArray[np.bool_], settings: Settings
) -> None:
    at, uncertainty = part.columns, part.uncertainty
    places = np.arange(len(excluded)) if part.places is None else part.places
    level = settings.level
    if settings.looks:
        level = look_level(level, settings.looks, float(uncertainty.shared_variance.min()))
    eligible = np.ones_like(uncertainty.votes, dtype=np.bool_)
    for candidate, place in enumerate(places):
        eligible[place] &= ~excluded[candidate]
    posterior = beliefs(uncertainty, eligible, ratios(part.prior))
    pairs = np.ix_(places, places)
    copies = np.bincount(places)[places]
    for column in at:
        blocks.units[column], blocks.priors[column] = part.unit, part.prior
    blocks.rho[at] = np.nan if part.rho is None else part.rho
    blocks.effects[:, at] = uncertainty.fit.effects[places]
    blocks.std_errors[:, at] = uncertainty.std_errors()[places]
    blocks.p_beats[:, :, at] = posterior.p_beats[pairs]
    blocks.p_best[:, at] = posterior.p_best[places] / copies[:, np.newaxis]
    blocks.separation_mask[:, :, at] = uncertainty.separate_pairs(level)[pairs]
    blocks.df[at] = uncertainty.df
    blocks.can_tell[at] = uncertainty.can_tell
    highest = uncertainty.fit.components.max(axis=1, initial=0)
    blocks.is_connected[at] = (highest <= 0)[uncertainty.fit.pattern]


def fit_parts(counted: BatchCount) -> list[FittedSessions]:
    """Group a batch's sessions by common fit, unit and prior."""
    if counted.fits is None:
        return []
    groups: dict[tuple[int, Unit, bool, float], list[int]] = {}
    parts = []
    for column, (fit, _, unit) in enumerate(counted.fits):
        electorate = counted.electorates[column]
        models = _share_of_models(electorate)
        if electorate.votes and electorate.stands_for:
            parts.append(_fit_copies(counted, column, unit, models))
        elif electorate.votes:
            shared = (id(fit), unit, electorate.is_paired, models)
            groups.setdefault(shared, []).append(column)
    for (_, unit, paired, models), members in groups.items():
        fit, profile = counted.fits[members[0]][0], counted.profile
        columns = [counted.fits[column][1] for column in members]
        if columns != [*range(len(fit.df))]:
            fit = fit.take(np.array(columns))
        if members != [*range(len(counted.fits))]:
            profile = profile.take(np.array(members))
        one = counted.electorates[members[0]]
        values = opinion_rows(one) if paired and unit == "ranks" else None
        evidence = _Evidence(fit, profile, unit, values)
        parts.append(
            _fit_sessions(counted.settings, np.array(members), evidence, models, paired=paired)
        )
    return parts


@dataclass(frozen=True, slots=True)
class _Evidence:
    """A fit and its data: the profile, or rows of it."""

    fit: AdditiveFit
    profile: Profile
    unit: Unit
    values: Floats | None = None


def _fit_copies(counted: BatchCount, column: int, unit: Unit, models: float) -> FittedSessions:
    """Fit a session with copies of an answer.

    Copies are judged once, or the session would seem surer.
    """
    electorate = counted.electorates[column]
    judged, places = np.unique(np.array(electorate.stands_for, dtype=np.intp), return_inverse=True)
    profile = counted.profile.take(slice(column, column + 1)).keep_candidates(judged)
    fit = fit_grades(profile) if unit == "grades" else fit_ranks(profile)
    evidence = _Evidence(fit, profile, unit)
    fitted = _fit_sessions(counted.settings, np.array([column]), evidence, models, paired=False)
    return replace(fitted, places=places)


def _fit_sessions(
    settings: Settings,
    columns: NDArray[np.intp],
    evidence: _Evidence,
    models: float,
    *,
    paired: bool,
) -> FittedSessions:
    """Add prior and shared error; `models` is the models' share of reviewers.

    What models get wrong together moves a mean by their share of it; people share nothing.
    """
    profile, unit = evidence.profile, evidence.unit
    prior = prior_of(settings.prior, unit, profile.n_candidates, is_paired=paired)
    shared = rho_of(settings.rho, unit)
    present = profile.grade_mask if unit == "grades" else profile.rank_mask
    if profile.weights is not None:
        present = present & (profile.weights > 0)[:, np.newaxis]
    values, design = evidence.values, design_effect(None)
    if values is None:
        design = design_effect(profile.weights)
        values = adjusted_grades(profile) if unit == "grades" else -profile.ranks
    own = PairEvidence.of(values, prior, is_repeated=bool(settings.looks))
    uncertainty = Uncertainty.of(
        evidence.fit,
        present.sum(axis=0),
        shared=models**2 * shared / (1 - shared),
        prior=prior,
        own=own,
        design=design,
    )
    rho = None if settings.rho is None or not models else shared
    return FittedSessions(columns, uncertainty, unit, prior, rho)
