"""Count sessions of equal shape: profile, scores, ranks, fits and recounts."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from math import nan
from operator import attrgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from witan.core.attributes import cached_property
from witan.core.outcome import Unit
from witan.core.placing import (
    Placing,
    ballots_to_flip,
    effective_cells,
    equivalent_votes,
    first_places,
    leads,
    place,
    votes,
)
from witan.core.profile import (
    FRACTION_VARIANCE,
    ROUNDING_VARIANCE,
    BlockVotes,
    Electorate,
    Floats,
    Matchups,
    Profile,
    Vote,
    closure,
    matchups,
)
from witan.core.rules import RULES, Rule, Scores
from witan.core.scale import LOWEST
from witan.core.settings import AUTO, Settings
from witan.core.stats.additive import AdditiveFit, fit_grades, fit_ranks, fit_rows
from witan.errors import TooLarge, UnsuitableBallots

MATCHUP_CELLS, BALLOT_CELLS = 1 << 22, 1 << 20
"""Maximum number of cells of (C, C, S) and (R, C, S) counted at once, to limit memory."""

SESSIONS_AT_ONCE = 2048

HEAVIEST = 1e9
"""Largest weight of a ballot with one candidate, where those with more have a mean of 1."""

Fitted = tuple[AdditiveFit, int, Unit]
"""A fit of many sessions, the column of one of them, and the unit."""

CheckWanted = Callable[[], None]
"""A callback during a long count; it ends the count by raising an error."""


def group_by_shape(electorates: Sequence[Electorate]) -> Iterator[NDArray[np.intp]]:
    """Group the numbers of sessions of equal shape and kind, in blocks."""
    shapes: dict[tuple[int, int, bool], list[int]] = {}
    for number, electorate in enumerate(electorates):
        shape = (len(electorate.votes), len(electorate.candidates), electorate.is_paired)
        shapes.setdefault(shape, []).append(number)
    for (n_ballots, n_candidates, _), members in shapes.items():
        fitting = BALLOT_CELLS // max(1, n_ballots * n_candidates)
        fitting = min(fitting, MATCHUP_CELLS // max(1, n_candidates) ** 2)
        step = min(SESSIONS_AT_ONCE, max(1, fitting))
        for start in range(0, len(members), step):
            yield np.array(members[start : start + step])


def stack(
    electorates: Sequence[Electorate],
    *,
    reliability: Sequence[Mapping[str, float]] | None = None,
) -> Profile:
    """Stack sessions of R votes and C candidates as one profile.

    Parameters
    ----------
    reliability
        Learned weight by reviewer, one mapping per session.
    """
    rows = _rows_of_block(electorates) or _rows_of_votes(electorates)
    smallest = np.uint8 if rows.places.max(initial=0) < 256 else np.uint16
    weights = mass = None
    if rows.weights is not None and not (rows.weights == 1.0).all():
        mass = normalise_weights(rows.weights, rows.lengths)
        weights = None if np.array_equal(rows.weights, mass) else rows.weights
    reliability_array = None
    if reliability is not None:
        reliability_array = np.array(
            [
                [own.get(v.reviewer, 1.0) for v in e.votes]
                for e, own in zip(electorates, reliability, strict=True)
            ]
        ).T.reshape(rows.lengths.shape)
    return Profile(
        places=np.ascontiguousarray(rows.places.transpose(1, 2, 0).astype(smallest)),
        grades=_compact(np.ascontiguousarray(rows.grades.transpose(1, 2, 0))),
        weights=None if mass is None or (mass == 1.0).all() else mass,
        lengths=rows.lengths.astype(np.int32),
        eligible=rows.eligible.astype(np.int32),
        reliability=reliability_array,
        rounding=_rounding_variance(electorates, rows.grades),
        ballot_weights=weights,
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Rows:
    """Votes as arrays: places and grades (S, R, C), others (R, S)."""

    places: NDArray[Any]
    grades: Floats
    lengths: NDArray[Any]
    eligible: NDArray[Any]
    weights: Floats | None


def _rows_of_block(electorates: Sequence[Electorate]) -> _Rows | None:
    """Return sessions' arrays if all are from one block."""
    votes = [one.votes for one in electorates if isinstance(one.votes, BlockVotes)]
    if len(votes) < len(electorates) or len({id(one.block) for one in votes}) > 1:
        return None
    block, chosen = votes[0].block, [one.session for one in votes]
    places = block.places[chosen]
    lengths = (places > 0).sum(axis=2).T
    return _Rows(places, block.grades[chosen], lengths, block.eligible[chosen].T, None)


def _rows_of_votes(electorates: Sequence[Electorate]) -> _Rows:
    shape = (len(electorates), len(electorates[0].votes), len(electorates[0].candidates))
    numbers = np.array([[*map(_NUMBERS, e.votes)] for e in electorates], dtype=np.float64)
    lengths, eligible, weights = numbers.reshape(*shape[:2], 3).T.copy()
    return _Rows(
        places=np.array([[v.places for v in e.votes] for e in electorates]).reshape(shape),
        grades=np.array([[v.grades for v in e.votes] for e in electorates]).reshape(shape),
        lengths=lengths,
        eligible=eligible,
        weights=weights,
    )


_NUMBERS = attrgetter("length", "eligible", "weight")


def _rounding_variance(electorates: Sequence[Electorate], grades: Floats) -> Floats | None:
    """Compute the variance of rounding to converted scales' steps, shape (S,).

    On coarse scales, such as pass-fail or 1 to 5, judges' grades agree exactly more often than
    their opinions do. Each ballot is assigned the largest step, or half step, that divides all its
    grades; the variance is the mean over all grades. NaN if no ballot of a session has a step above
    half a point; None if this is so in all sessions. `grades` has the shape (S, R, C).
    """
    if all(scale.is_native for electorate in electorates for scale in electorate.scales):
        return None
    variances = np.full(len(electorates), np.nan)
    for number, electorate in enumerate(electorates):
        whole = [scale.whole.step for scale in electorate.scales if not scale.is_native]
        steps = sorted({step / part for step in whole for part in (1, 2)}, reverse=True)
        coarse = [step for step in steps if step**2 / 12 > FRACTION_VARIANCE]
        if coarse:
            variances[number] = _mean_rounding(grades[number], coarse)
    return None if np.isnan(variances).all() else variances


def _mean_rounding(grades: Floats, steps: Sequence[float]) -> float:
    """Mean rounding variance over the grades (R, C); NaN without steps."""
    total, n_grades, converted = 0.0, 0, False
    for row in grades:
        known = row[~np.isnan(row)]
        counts = ((known - LOWEST) / step for step in steps)
        fits = [bool(np.all(np.abs(column - np.rint(column)) < 1e-6)) for column in counts]
        step = next((one for one, fit in zip(steps, fits, strict=True) if fit), None)
        whole = bool(np.all(known == np.rint(known)))
        variance = ROUNDING_VARIANCE if whole else FRACTION_VARIANCE
        total += len(known) * (variance if step is None else step**2 / 12)
        n_grades += len(known)
        converted = converted or (step is not None and len(known) > 0)
    return total / n_grades if converted else np.nan


def normalise_weights(weights: Floats, lengths: NDArray[Any]) -> Floats:
    """Scale weights to mean 1 over ballots of positive weight that rank two candidates.

    If no ballot does, over all of positive weight.
    """
    counts = (weights > 0) & (lengths > 1)
    counts |= (weights > 0) & ~counts.any(axis=0)
    heaviest = np.where(counts, weights, 0.0).max(axis=0, initial=0.0)
    heaviest = np.maximum(heaviest, np.finfo(np.float64).tiny)
    scaled = np.minimum(weights / heaviest, HEAVIEST)
    total = np.where(counts, scaled, 0.0).sum(axis=0)
    normal: Floats = scaled * (np.maximum(counts.sum(axis=0), 1) / np.where(total > 0, total, 1.0))
    return normal


def _compact(grades: Floats) -> NDArray[Any] | None:
    """Convert whole grades from 1 up to bytes; None without grades."""
    known = ~np.isnan(grades)
    if not known.any():
        return None
    values = np.where(known, grades, 0.0)
    if (values == np.rint(values)).all() and (values[known] >= 1).all():
        return values.astype(np.uint8)
    return grades


def failed_candidates(electorates: Sequence[Electorate]) -> NDArray[np.bool_] | None:
    """Candidates that failed the safety gate, shape (C, S); None without any."""
    if not any(electorate.failed for electorate in electorates):
        return None
    return np.array([[c in e.failed for c in e.candidates] for e in electorates]).T.copy()


def timeline(electorates: Sequence[Electorate]) -> tuple[Electorate, Profile]:
    """Put all sessions on one roster, pooled and as columns in order.

    Since rosters may differ, the seats are all candidates in alphabetical order.
    """
    names = sorted(set(chain.from_iterable(e.candidates for e in electorates)))
    seats = {name: seat for seat, name in enumerate(names)}
    most = max((len(e.votes) for e in electorates), default=0)
    padded = []
    for electorate in electorates:
        at = [seats[name] for name in electorate.candidates]
        votes = [_reseat(vote, at, len(names)) for vote in electorate.votes]
        votes += [_blank_row(len(names))] * (most - len(votes))
        padded.append(replace(electorate, candidates=tuple(names), votes=tuple(votes)))
    offered = np.zeros(len(names), dtype=np.int64)
    for electorate in electorates:
        np.add.at(offered, [seats[c] for c in electorate.candidates], electorate.offered)
    pooled = Electorate(
        session="",
        candidates=tuple(names),
        votes=tuple(v for e in padded for v in e.votes if v.weight > 0),
        offered=tuple(int(n) for n in offered),
        abstentions={},
        order_kept={},
        failed={c: flags for e in electorates for c, flags in e.failed.items()},
        warnings=tuple(dict.fromkeys(chain.from_iterable(e.warnings for e in electorates))),
        scales=tuple(dict.fromkeys(chain.from_iterable(e.scales for e in electorates))),
    )
    return pooled, stack(padded) if padded else stack([pooled])


def _reseat(vote: Vote, at: Sequence[int], n_seats: int) -> Vote:
    places, grades = [0] * n_seats, [nan] * n_seats
    for seat, rank, grade in zip(at, vote.places, vote.grades, strict=True):
        places[seat], grades[seat] = rank, grade
    return replace(vote, places=tuple(places), grades=tuple(grades))


def _blank_row(n_seats: int) -> Vote:
    return Vote(
        reviewer="",
        groups=(),
        places=(0,) * n_seats,
        grades=(nan,) * n_seats,
        weight=0.0,
        length=0,
        eligible=n_seats,
        mismatch=False,
        paired=False,
        kind="model",
    )


def opinion_rows(electorate: Electorate) -> Floats:
    """Arrange paired opinions as one row per reviewer and connected group.

    The rows have shape (rows, C, 1).

    A reviewer's comparisons are not independent ballots. They are replaced by the potentials that
    fit them best by least squares (for a full round robin, its ranks), with one row for each group
    of candidates connected by the comparisons.

    References
    ----------
    Jiang, Lim, Yao and Ye, "Statistical ranking and combinatorial Hodge theory", Mathematical
    Programming 127 (2011) 203–244.
    """
    n_candidates = len(electorate.candidates)
    by_reviewer: dict[str, list[Vote]] = {}
    rows = []
    for vote in electorate.votes:
        if vote.paired:
            by_reviewer.setdefault(vote.reviewer, []).append(vote)
        else:
            places = np.array(vote.places, dtype=np.float64)
            rows.append(np.where(places > 0, -places / 2, np.nan))
    for opinions in by_reviewer.values():
        rows += _potentials(opinions, n_candidates)
    if not rows:
        return np.full((0, n_candidates, 1), np.nan)
    return np.stack(rows)[:, :, np.newaxis]


def _potentials(opinions: Sequence[Vote], n_candidates: int) -> list[Floats]:
    laplacian = np.zeros((n_candidates, n_candidates))
    flow = np.zeros(n_candidates)
    for opinion in opinions:
        i, j = (seat for seat, at in enumerate(opinion.places) if at > 0)
        ahead = float(np.sign(opinion.places[j] - opinion.places[i]))
        laplacian[[i, j], [i, j]] += 1
        laplacian[[i, j], [j, i]] -= 1
        flow[i] += ahead
        flow[j] -= ahead
    potential = np.linalg.pinv(laplacian, rcond=1e-10, hermitian=True) @ flow
    reach = closure(laplacian != 0)
    rows, visited = [], np.zeros(n_candidates, dtype=np.bool_)
    for seat in np.flatnonzero(np.diagonal(laplacian) > 0):
        if not visited[seat]:
            group = reach[seat]
            visited |= group
            # Half the group's size converts wins minus losses to ranks.
            rows.append(np.where(group, potential * group.sum() / 2, np.nan))
    return rows


def keep_counting() -> None:
    """Never end a count: the default `check_wanted`."""


@dataclass(frozen=True)  # without slots: fields are cached on first use
class BatchCount:
    """Sessions of one shape under one rule.

    Parameters
    ----------
    profile
        The counted ballots; for a rule over a history, all sessions pooled into one.
    votes : int array, shape (C, S)
    check_wanted
        Called before each recount.
    known_fits
        Cache of fits of this profile, shared with other rules.
    """

    rule: Rule
    settings: Settings
    electorates: Sequence[Electorate]
    profile: Profile
    scores: Scores
    placing: Placing
    votes: NDArray[np.integer[Any]]
    check_wanted: CheckWanted = keep_counting
    known_fits: dict[bytes, list[Fitted]] | None = None

    @cached_property
    def matchups(self) -> Matchups:
        """Matchups under the weights that the ballots state."""
        return matchups(self.profile.unscale_weights())

    @cached_property
    def equivalent_votes(self) -> NDArray[Any]:
        """Equally weighted votes that each score is worth, shape (C, S)."""
        return equivalent_votes(self.profile, self._effective_cells)

    @cached_property
    def wins(self) -> Floats:
        """First places, shape (C, S)."""
        return first_places(self.profile)

    @cached_property
    def effective(self) -> NDArray[np.bool_]:
        """Ballots that affect the scores, shape (R, S)."""
        return np.asarray(self._effective_cells.any(axis=1))

    @cached_property
    def _effective_cells(self) -> NDArray[np.bool_]:
        parameters = self.settings.parameters_of(self.rule.name)
        return effective_cells(self.profile, self.rule, parameters)

    @cached_property
    def fits(self) -> Sequence[Fitted] | None:
        """Fit and unit of each session; None for rules over histories."""
        if not self.profile.n_reviewers or self.rule.needs == "history":
            return None
        of_grades = self.scores.fit
        return fits_of(
            self.electorates, self.profile, self.rule, of_grades=of_grades, cache=self.known_fits
        )

    @cached_property
    def margins(self) -> NDArray[Any]:
        """Ballots for i over j minus the reverse, shape (C, C, S)."""
        return self.matchups.margins

    @cached_property
    def flips(self) -> tuple[NDArray[np.int64], NDArray[np.bool_]] | None:
        """Ballots that decide each lead, searched on first use; None: not searched."""
        profile, rule, settings = self.profile, self.rule, self.settings
        is_searchable = rule.needs != "history" and profile.n_candidates <= rule.searchable_up_to
        if not (settings.flips and is_searchable):
            return None
        return ballots_to_flip(
            profile,
            self.placing.leads,
            decider(rule, settings, failed_candidates(self.electorates), self.check_wanted),
            effective=self.effective,
            max_cells=rule.recount_cells,
        )


CountColumn = tuple[BatchCount, int]
"""A count of sessions and the column of one of them."""


def count(
    name: str,
    profile: Profile,
    electorates: Sequence[Electorate],
    settings: Settings,
    check_wanted: CheckWanted = keep_counting,
    *,
    known_fits: dict[bytes, list[Fitted]] | None = None,
) -> BatchCount:
    """Score and rank every session; `known_fits` is as in `BatchCount`."""
    rule = RULES[name]
    scores = score(rule, profile, **settings.parameters_of(name))
    failed = failed_candidates(electorates)
    profile = _pool(profile) if rule.needs == "history" else profile
    placing = place(scores, profile, rule, tie_break=settings.tie_break, failed=failed)
    counted = BatchCount(
        rule=rule,
        settings=settings,
        electorates=electorates,
        profile=profile,
        scores=scores,
        placing=placing,
        votes=votes(profile, rule),
        check_wanted=check_wanted,
        known_fits=known_fits,
    )
    if settings.rule != AUTO:  # raises here if the rule cannot count a recount
        _ = counted.flips
    return counted


def score(rule: Rule, profile: Profile, **parameters: Any) -> Scores:
    """Compute the rule's scores; without ballots, no candidate has a score."""
    if profile.n_reviewers == 0 or profile.n_candidates == 0:
        return Scores(score=np.full(profile.places.shape[1:], np.nan))
    try:
        return rule(profile, **parameters)
    except TooLarge as error:
        remedy = "take a rule without that limit, such as 'borda' or 'schulze'"
        raise UnsuitableBallots(rule.name, str(error), remedy) from None


def decider(
    rule: Rule,
    settings: Settings,
    failed: NDArray[np.bool_] | None,
    check_wanted: CheckWanted = keep_counting,
) -> Callable[[Profile, NDArray[np.integer[Any]]], NDArray[np.bool_]]:
    """Return a function that finds a recount's leaders under the same settings."""
    parameters = settings.parameters_of(rule.name)

    # Annotations are quoted so that they are not evaluated for every recount.
    def decide(profile: Profile, origin: "NDArray[np.integer[Any]]") -> "NDArray[np.bool_]":
        check_wanted()
        scores = score(rule, profile, **parameters)
        barred = None if failed is None else failed[:, origin]
        return leads(scores, profile, rule, tie_break=settings.tie_break, failed=barred)

    return decide


def fits_of(
    electorates: Sequence[Electorate],
    profile: Profile,
    rule: Rule,
    *,
    of_grades: AdditiveFit | None = None,
    cache: dict[bytes, list[Fitted]] | None = None,
) -> list[Fitted]:
    """Fit each session on grades if these represent the ballots; else ranks.

    Grades represent the ballots if the rule reads them, or if every ballot that ranks two
    candidates also grades two; otherwise, a rule that reads rankings would be judged by only some
    of its ballots. `of_grades` is the fit of the grades if it already exists; `cache` contains fits
    by the set of sessions fitted on grades.
    """
    enough, all_graded = profile.gradable
    by_grades = enough if rule.needs == "grades" else all_graded
    if profile.n_candidates == 1:  # has no rivals; its reviewers share the error of their grades
        by_grades = profile.grade_mask.sum(axis=(0, 1)) > 0
    if cache is not None and by_grades.tobytes() in cache:
        return cache[by_grades.tobytes()]
    paired = electorates[0].is_paired
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
    if cache is not None:
        cache[by_grades.tobytes()] = fits
    return fits


def _pool(profile: Profile) -> Profile:
    """Pool all sessions as the rows of one."""
    n_candidates = profile.n_candidates

    def rows(array: NDArray[Any] | None) -> NDArray[Any] | None:
        return None if array is None else array.T.reshape(-1, 1)

    pooled = Profile(
        places=profile.places.transpose(2, 0, 1).reshape(-1, n_candidates, 1),
        weights=rows(profile.weights),
        lengths=rows(profile.lengths),
        eligible=rows(profile.eligible),
    )
    if pooled.weights is None:
        return pooled
    # Shorter sessions were padded with rows of weight 0.
    return pooled.keep_ballots(pooled.weights[:, 0] > 0)
