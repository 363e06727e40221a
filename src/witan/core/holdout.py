"""Calibration of probabilities against held-out reviewers or people.

Some reviewers of each session are drawn and counted alone. Their p_best and p_beats are compared
with the judgments of the other reviewers on the same candidates. Since these are also few and
noisy, the posterior of the drawn reviewers also gives the probability of the others' result,
assuming equal precision (`beliefs`). This is the expected share; calibrated probabilities come true
as often as expected. For a known truth, the expected share is the stated probability.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import comb
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from witan.core.ballot import Ballot
from witan.core.counting import (
    CheckWanted,
    fits_of,
    group_by_shape,
    keep_counting,
    normalise_weights,
    opinion_rows,
    stack,
)
from witan.core.display import NotebookDisplay
from witan.core.inference import N_POINTS, beliefs, ratios
from witan.core.outcome import Unit
from witan.core.profile import Electorate, Floats, Profile
from witan.core.rules import RULES
from witan.core.settings import Settings
from witan.core.stats.additive import AdditiveFit, fit_grades, fit_ranks, fit_rows
from witan.core.stats.calibration import PAIRS
from witan.core.stats.concordance import MIN_DECIDED, sides_with_people
from witan.core.stats.learning import weights_by_people
from witan.core.stats.measures import Count, Measure, rate_by_session
from witan.core.stats.priors import prior_of
from witan.core.stats.uncertainty import Uncertainty, design_effect
from witan.core.tally import prepare
from witan.errors import InvalidParameter, NothingToCount

Against = Literal["reviewers", "people", "truth"]

SIZES = (3, 5, 9)
"""Default panel sizes, as far as the ballots allow."""

MIN_OTHERS = 2
"""Minimum number of reviewers held out."""

MIN_SESSIONS = 5
"""Minimum number of sessions for a share."""

MOST_CASES = 100_000
"""Maximum number of draws over all sessions for one panel size."""

CASES_AT_ONCE = 2048

CELLS_AT_ONCE = 1 << 22
"""Maximum number of cells of (C, C, cases) computed at once."""

TENTHS = 5
"""Number of tenths from .5 to 1."""

EQUAL = 1e-9
"""Effects that differ by at most this are equal."""

LIKENESS = 0.5
"""Correlation of a session's draws where few sessions show the rarer outcome.

In simulation it is .1 to .2 in the highest tenth, and .3 to .7 in those below.
"""

LEAST = 0.5 / N_POINTS
"""Minimum probability in a log score: half a point of the lattice."""

Rows = NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class Tenth:
    """Claims of similar probability, `low` ≤ stated < `high`.

    The last band includes 1.

    Parameters
    ----------
    low, high
        Bounds of the band, from .5 to 1.
    probability
        Mean stated probability.
    expectation
        Expected share of claims confirmed by the others if the probabilities are right.
    share
        Share of claims confirmed by the others; a tie counts half, and n counts sessions.
    n_claims
        Number of claims: draws for p_best, pairs in draws for p_beats.
    deviates
        Whether share and expectation differ beyond chance, corrected for the number of tenths.
    """

    low: float
    high: float
    probability: float
    expectation: float
    share: Measure
    n_claims: int
    deviates: bool


@dataclass(frozen=True, slots=True)
class CalibrationCurve:
    """Stated probabilities of one kind compared with the results.

    Parameters
    ----------
    tenths
        Bands from .5 up that contain claims.
    gap
        Observed minus expected share.
    log_score, log_floor
        Mean −ln of the expected probability of the observed result; the same if all probabilities
        were equal.
    brier, brier_floor
        Mean squared difference of expected probability and observed result; the same if all
        probabilities were equal.
    """

    tenths: tuple[Tenth, ...]
    gap: Measure
    log_score: float
    log_floor: float
    brier: float
    brier_floor: float


@dataclass(frozen=True, slots=True)
class PanelCheck:
    """The probabilities of panels of one size.

    Parameters
    ----------
    reviewers
        Number of reviewers drawn.
    others
        Mean number of reviewers in the comparison.
    sessions, draws
        Number of sessions, and of draws over all sessions.
    p_best
        Calibration of p_best of the likeliest best candidate.
    p_beats
        Calibration of p_beats of every pair, on its likelier side.
    """

    reviewers: int
    others: float
    sessions: int
    draws: int
    p_best: CalibrationCurve
    p_beats: CalibrationCurve


@dataclass(frozen=True, slots=True)
class CalibrationCheck(NotebookDisplay):
    """Stated probabilities compared with others' judgments.

    Parameters
    ----------
    against
        Whose judgments they are compared with.
    prior
        ``public``, ``history`` (learned from these sessions), or ``none``.
    level
        Level of the intervals.
    seed
        Seed of the draws.
    sessions
        Number of sessions, including those with too few reviewers.
    panels
        One check per number of reviewers drawn.
    matched
        By reviewer, the share of pairs decided the same way as by people, where a tie counts half;
        empty against reviewers.
    weights
        Weight by reviewer, for use on other sessions; empty against reviewers, or if no reviewer
        judged fifty pairs that people decided.
    """

    against: Against
    prior: str
    level: float
    seed: int
    sessions: int
    panels: tuple[PanelCheck, ...]
    matched: Mapping[str, Measure]
    weights: Mapping[str, float]

    def __repr__(self) -> str:
        sizes = ", ".join(str(panel.reviewers) for panel in self.panels)
        return f"<CalibrationCheck of {sizes} reviewers over {self.sessions} sessions>"


def check_calibration(
    ballots: Iterable[Ballot],
    settings: Settings | None = None,
    *,
    against: Against = "reviewers",
    reviewers: Sequence[int] = (),
    draws: int = 20,
    seed: int = 0,
    check_wanted: CheckWanted = keep_counting,
) -> CalibrationCheck:
    """Compare stated probabilities with held-out reviewers, or with people.

    Models are drawn if there are any, otherwise people. Sessions are weighted by their number of
    draws; intervals are clustered by session.

    Parameters
    ----------
    settings
        As for `tally_sessions`; None: the defaults. The rule is ignored: probabilities come from
        the fit.
    against
        ``reviewers``: compare with held-out reviewers. ``people``: compare with people's ballots on
        the same sessions, assuming the reviewers' precision. ``truth``: as ``people``, but treat
        their ballots as exact, such as known answers.
    reviewers
        Panel sizes to draw; empty: 3, 5 and 9, as far as the ballots allow.
    draws
        Draws of each size from each session, at least 1; each subset is drawn at most once.
    check_wanted
        Called before each step; it ends the check by raising an error.

    Raises
    ------
    NothingToCount
        If no session has enough reviewers, or none has people's ballots.
    InvalidParameter
        If a panel size is below 2, or `draws` below 1.
    UnclearScale
        As `tally_sessions`.
    """
    for name, values, least in (("reviewers", reviewers, 2), ("draws", [draws], 1)):
        for value in values:
            if value < least:
                raise InvalidParameter(name, value, f"a whole number from {least} up")
    chosen = replace(settings or Settings(), rho=None)
    electorates, chosen = prepare(ballots, chosen)
    groups = [*_groups(electorates, against)]
    sizes = _sizes(electorates, groups, against, reviewers)
    panels = []
    for size in sizes:
        rng = np.random.default_rng([seed, size])
        sums = _Sums(len(electorates))
        able = sum(group.n_sessions for group in groups if group.can_spare(size))
        each = max(1, min(draws, MOST_CASES // max(able, 1)))
        for group in groups:
            if group.can_spare(size):
                for case in group.draw(size, each, rng):
                    check_wanted()
                    _compare(case, chosen, sums)
        if sums.beats.scores[:, 0].any():
            panels.append(sums.panel(size, chosen.level))
    if not panels:
        problem = "so few reviewers state no probability, or the others judged other candidates"
        raise NothingToCount(f"{problem}; draw more reviewers")
    prior = "public" if chosen.prior == "learn" else chosen.prior  # no prior was learned
    source = prior if isinstance(prior, str) else "none" if prior is None else prior.source
    sided = {} if against == "reviewers" else _side_with_people(electorates)
    return CalibrationCheck(
        against=against,
        prior=source,
        level=chosen.level,
        seed=seed,
        sessions=len(electorates),
        panels=tuple(panels),
        matched={
            name: rate_by_session(
                rows,
                Count(rows[:, 1].sum(), PAIRS, MIN_DECIDED),
                level=chosen.level,
                likeness=LIKENESS,
            )
            for name, rows in sided.items()
        },
        weights=_weights(sided),
    )


def learn_weights_from_people(
    ballots: Iterable[Ballot], settings: Settings | None = None
) -> Mapping[str, float]:
    """Weight reviewers by how often they agree with people.

    A pair of candidates counts if a majority of the human ballots decided it; known answers are
    ballots of kind ``human``. As in `witan.core.stats.learning.learn_reliability_from_people`,
    weights are log-odds shrunk toward the panel.

    Parameters
    ----------
    ballots
        Ballots of models and people. Do not use the weights on these sessions.
    settings
        How ballots are read, as for `tally_sessions`. None: the defaults.

    Returns
    -------
    mapping
        Weight by reviewer, with mean 1, for the setting ``weights``; empty if no reviewer judged
        fifty pairs that people decided.

    Raises
    ------
    NothingToCount
        As `tally_sessions`.
    UnclearScale
        As `tally_sessions`.
    """
    electorates, _ = prepare(ballots, replace(settings or Settings(), rho=None, prior=None))
    return _weights(_side_with_people(electorates))


def _side_with_people(electorates: Sequence[Electorate]) -> dict[str, NDArray[np.float64]]:
    """Count agreements with people and decided pairs by reviewer, (sessions, 2)."""
    sums: dict[str, dict[int, list[float]]] = {}
    for number, sides in sides_with_people(electorates):
        for reviewer, side in sides.items():
            row = sums.setdefault(reviewer, {}).setdefault(number, [0.0, 0.0])
            row[0] += (1 + side) / 2
            row[1] += 1
    return {name: np.array([*sums[name].values()]) for name in sorted(sums)}


def _weights(sided: Mapping[str, NDArray[np.float64]]) -> Mapping[str, float]:
    totals = {name: rows.sum(axis=0) for name, rows in sided.items()}
    return weights_by_people({name: (float(h), float(n)) for name, (h, n) in totals.items()})


@dataclass(frozen=True, slots=True)
class _Draw:
    """Ballots of N drawn panels and of the others; comparisons are `_Opinions`."""

    numbers: Rows
    panel: "Profile | _Opinions"
    others: "Profile | _Opinions | AdditiveFit"
    n_others: Floats

    def take(self, cases: Rows) -> "_Draw":
        """Select some of the draws of whole ballots."""
        assert isinstance(self.panel, Profile)  # noqa: S101 - comparisons are fitted together
        assert not isinstance(self.others, _Opinions)  # noqa: S101
        panel, others = self.panel.take(cases), self.others.take(cases)
        return _Draw(self.numbers[cases], panel, others, self.n_others[cases])


@dataclass(frozen=True, slots=True)
class _Opinions:
    """Comparisons of pairs as rows.

    Values have the shape (R, K, C, S), with K rows per reviewer; votes (R, C, S).
    """

    values: Floats
    votes: NDArray[np.integer[Any]]

    def fit(self) -> AdditiveFit:
        n, k, n_candidates, n_cases = self.values.shape
        return fit_rows(self.values.reshape(n * k, n_candidates, n_cases))


@dataclass(frozen=True, slots=True)
class _Group:
    """Sessions of one shape.

    Parameters
    ----------
    numbers
        Numbers of the sessions.
    ballots
        Ballots of the reviewers to draw from.
    people
        Fit of people's ballots, and their number per session; None: against reviewers.
    """

    numbers: Rows
    ballots: Profile | _Opinions
    n_reviewers: int
    n_candidates: int
    people: tuple[AdditiveFit, Floats] | None

    @classmethod
    def of(
        cls,
        numbers: Rows,
        ballots: "Profile | _Opinions",
        people: Mapping[int, Electorate],
        against: Against,
    ) -> "_Group":
        """Group sessions, with a fit of people's ballots if these are compared."""
        people_of_group = [people[number] for number in numbers.tolist()] if people else []
        counts = np.array([len(one.reviewers) for one in people_of_group], dtype=np.float64)
        values = ballots.places if isinstance(ballots, Profile) else ballots.votes
        fit = _joined_fits(people_of_group) if people_of_group else None
        if fit is not None and against == "truth":
            fit = replace(fit, inverses=np.zeros_like(fit.inverses))
        fit_of_people = None if fit is None else (fit, counts)
        return cls(numbers, ballots, len(values), values.shape[1], fit_of_people)

    @property
    def n_sessions(self) -> int:
        return len(self.numbers)

    def can_spare(self, size: int) -> bool:
        return self.n_reviewers >= size + (MIN_OTHERS if self.people is None else 0)

    def draw(self, size: int, draws: int, rng: "np.random.Generator") -> Iterator[_Draw]:
        """Draw panels in blocks of sessions."""
        whole = None
        if comb(self.n_reviewers, size) <= draws:
            whole = np.array([*combinations(range(self.n_reviewers), size)], dtype=np.intp)
            draws = len(whole)
        most = min(CASES_AT_ONCE, max(1, CELLS_AT_ONCE // self.n_candidates**2))
        at_once = max(1, most // draws)
        for start in range(0, self.n_sessions, at_once):
            columns = np.arange(start, min(start + at_once, self.n_sessions))
            columns = np.repeat(columns, draws)
            if whole is None:
                order = rng.random((len(columns), self.n_reviewers)).argsort(axis=1)
                order[:, :size].sort(axis=1)
                order[:, size:].sort(axis=1)
            else:
                rest = [np.setdiff1d(np.arange(self.n_reviewers), some) for some in whole]
                one = np.concatenate([whole, np.array(rest, dtype=np.intp)], axis=1)
                order = np.tile(one, (len(columns) // draws, 1))
            for part in range(0, len(columns), most):
                some = slice(part, part + most)
                yield self._split_draw(order[some], columns[some], size)

    def _split_draw(self, order: Rows, columns: Rows, size: int) -> _Draw:
        panel = _take_ballots(self.ballots, order[:, :size].T, columns)
        if self.people is not None:
            fit, counts = self.people
            return _Draw(self.numbers[columns], panel, fit.take(columns), counts[columns])
        others = _take_ballots(self.ballots, order[:, size:].T, columns)
        n_others = np.full(len(columns), float(self.n_reviewers - size))
        return _Draw(self.numbers[columns], panel, others, n_others)


def _take_ballots(ballots: Profile | _Opinions, rows: Rows, columns: Rows) -> Profile | _Opinions:
    """Select the ballots of rows (n, N) in sessions (N,)."""
    if isinstance(ballots, _Opinions):
        values = np.moveaxis(ballots.values[rows, :, :, columns], 1, -1)
        return _Opinions(values, np.moveaxis(ballots.votes[rows, :, columns], 1, -1))

    def of_ballots(array: NDArray[Any] | None) -> NDArray[Any] | None:
        return None if array is None else array[rows, columns]

    def of_cells(array: NDArray[Any]) -> NDArray[Any]:
        return np.ascontiguousarray(np.moveaxis(array[rows, :, columns], 1, -1))

    weights = of_ballots(ballots.weights)
    places = of_cells(ballots.places)
    return Profile(
        places=places,
        grades=None if ballots.grades is None else of_cells(ballots.grades),
        weights=None if weights is None else normalise_weights(weights, (places > 0).sum(axis=1)),
        rounding=None if ballots.rounding is None else ballots.rounding[columns],
    )


def _groups(everyone: Sequence[Electorate], against: Against) -> Iterator[_Group]:
    """Group sessions with enough reviewers for a draw by shape."""
    kinds = {kind for electorate in everyone for kind in electorate.kinds}
    kind = "model" if "model" in kinds else "human"
    of_kind = {number: _keep_kind(electorate, kind) for number, electorate in enumerate(everyone)}
    people: dict[int, Electorate] = {}
    if against != "reviewers":
        everybody = ((n, _keep_kind(e, "human")) for n, e in enumerate(everyone) if kind != "human")
        people = {number: one for number, one in everybody if one.votes}
        of_kind = {number: of_kind[number] for number in people}
    usable = [n for n, e in of_kind.items() if len(e.reviewers) > 1 and len(e.candidates) > 1]
    for members in group_by_shape([of_kind[number] for number in usable]):
        numbers = np.array(usable)[members]
        some = [of_kind[number] for number in numbers]
        if not some[0].is_paired:
            yield _Group.of(numbers, stack(some), people, against)
            continue
        by_shape: dict[tuple[int, ...], list[tuple[int, _Opinions]]] = {}
        for number, one in zip(numbers, map(_opinions, some), strict=True):
            by_shape.setdefault(one.values.shape, []).append((number, one))
        for alike in by_shape.values():
            values = np.concatenate([one.values for _, one in alike], axis=-1)
            votes = np.concatenate([one.votes for _, one in alike], axis=-1)
            opinions = _Opinions(values, votes)
            yield _Group.of(np.array([n for n, _ in alike]), opinions, people, against)


def _keep_kind(electorate: Electorate, kind: str) -> Electorate:
    if all(one == kind for one in electorate.kinds) and all(electorate.weights):
        return electorate
    votes = tuple(vote for vote in electorate.votes if vote.kind == kind and vote.weight > 0)
    return replace(electorate, votes=votes)


def _joined_fits(electorates: Sequence[Electorate]) -> AdditiveFit:
    """Fit sessions with equal numbers of candidates as one batch."""
    fits: list[AdditiveFit] = []
    for electorate in electorates:
        fit, at, _ = fits_of([electorate], stack([electorate]), RULES["calibrated"])[0]
        fits.append(fit.take(np.array([at])))
    patterns = {(one.inverses.tobytes(), one.components.tobytes()): one for one in fits}
    number = {key: at for at, key in enumerate(patterns)}
    return AdditiveFit(
        effects=np.concatenate([one.effects for one in fits], axis=1),
        residual_variance=np.concatenate([one.residual_variance for one in fits]),
        least_variance=np.concatenate([one.least_variance for one in fits]),
        df=np.concatenate([one.df for one in fits]),
        inverses=np.concatenate([one.inverses for one in patterns.values()]),
        components=np.concatenate([one.components for one in patterns.values()]),
        pattern=np.array([number[o.inverses.tobytes(), o.components.tobytes()] for o in fits]),
        observed_variance=np.concatenate([one.observed_variance for one in fits]),
    )


def _opinions(electorate: Electorate) -> _Opinions:
    """Arrange one session's comparisons as rows, equally many per reviewer.

    Reviewers with fewer connected groups of candidates are padded with NaN.
    """
    rows, votes = [], []
    for reviewer in electorate.reviewers:
        mine = tuple(vote for vote in electorate.votes if vote.reviewer == reviewer)
        rows.append(opinion_rows(replace(electorate, votes=mine)))
        votes.append(np.sum([np.array(vote.places) > 0 for vote in mine], axis=0))
    values = np.full((len(rows), max(map(len, rows)), len(electorate.candidates), 1), np.nan)
    for row, of_reviewer in enumerate(rows):
        values[row, : len(of_reviewer)] = of_reviewer
    return _Opinions(values, np.array(votes)[:, :, np.newaxis])


def _sizes(
    everyone: Sequence[Electorate],
    groups: Sequence[_Group],
    against: Against,
    panel_sizes: Sequence[int],
) -> Sequence[int]:
    """Choose the numbers of reviewers to draw."""
    if not everyone:
        raise NothingToCount("there is no ballot to count")
    if all(len(electorate.candidates) < 2 for electorate in everyone):
        problem = "no session has two candidates to compare"
        raise NothingToCount(f"{problem}; judge two or more texts together")
    if against != "reviewers" and not groups:
        problem = "no session has ballots of two models and of people"
        raise NothingToCount(f"{problem}; compare with reviewers held out")
    spare = MIN_OTHERS if against == "reviewers" else 0
    most = max((group.n_reviewers for group in groups), default=1)
    sizes = [size for size in panel_sizes or SIZES if size + spare <= most]
    if sizes:
        return sorted(set(sizes))
    if not panel_sizes and most - spare >= 2:
        return [most - spare]
    needed = min(panel_sizes or [2]) + spare
    holdout_text = f", {spare} of them held out" if spare else ""
    problem_text = f"no session has the {needed} reviewers needed{holdout_text}"
    if most - spare < 2:
        raise NothingToCount(
            f"{problem_text}; the most is {most}: have more models review, or import more"
        )
    raise NothingToCount(f"{problem_text}; the most is {most}: draw {most - spare} or fewer")


def _compare(draw: _Draw, settings: Settings, sums: "_Sums") -> None:
    """Compare panels with the others on grades if possible, else on ranks."""
    if isinstance(draw.panel, _Opinions):
        assert not isinstance(draw.others, Profile)  # noqa: S101 - same type as the panel
        others = draw.others.fit() if isinstance(draw.others, _Opinions) else draw.others
        votes = draw.panel.votes.sum(axis=0)
        evidence = _Evidence(draw.panel.fit(), votes, "ranks", paired=True)
        _add(draw, evidence, others, settings, sums)
        return
    enough, _ = draw.panel.gradable
    units: tuple[tuple[Unit, NDArray[np.bool_]], ...] = (("grades", enough), ("ranks", ~enough))
    for unit, rows in units:
        if not rows.any():
            continue
        some = draw if rows.all() else draw.take(np.flatnonzero(rows))
        panel = some.panel
        assert isinstance(panel, Profile)  # noqa: S101 - checked above
        assert not isinstance(some.others, _Opinions)  # noqa: S101
        fit = fit_grades if unit == "grades" else fit_ranks
        present, design = _weigh(panel, unit)
        others = fit(some.others) if isinstance(some.others, Profile) else some.others
        widened = _weigh(some.others, unit)[1] if isinstance(some.others, Profile) else None
        evidence = _Evidence(fit(panel), present.sum(axis=0), unit, design, widened)
        _add(some, evidence, others, settings, sums)


def _weigh(panel: Profile, unit: Unit) -> tuple[NDArray[np.bool_], Floats | None]:
    """Return the votes of a panel, (R, C, S), and the design effect of its weights."""
    present = panel.mask_weighed(panel.grade_mask if unit == "grades" else panel.rank_mask)
    return present, design_effect(panel.weights, present)


@dataclass(frozen=True, slots=True)
class _Evidence:
    """A fit of drawn panels and the data for its probabilities."""

    fit: AdditiveFit
    votes: NDArray[np.integer[Any]]
    unit: Unit
    design: Floats | None = None
    others_design: Floats | None = None
    paired: bool = False


def _add(
    draw: _Draw,
    evidence: _Evidence,
    others: AdditiveFit,
    settings: Settings,
    sums: "_Sums",
) -> None:
    fit = evidence.fit
    n_candidates = len(fit.effects)
    prior = prior_of(settings.prior, evidence.unit, n_candidates, is_paired=evidence.paired)
    uncertainty = Uncertainty.of(fit, evidence.votes, prior=prior, design=evidence.design)
    everybody, among = np.ones(fit.effects.shape, dtype=np.bool_), ratios(prior)
    stated = beliefs(uncertainty, everybody, among)
    expected = beliefs(uncertainty, everybody, among, others, evidence.others_design)
    sums.others += float(draw.n_others.sum())
    sums.draws += len(draw.numbers)
    sums.is_drawn[draw.numbers] = True
    _add_best(draw.numbers, stated.p_best, expected.p_best, others, sums.best)
    first, second = np.triu_indices(n_candidates, k=1)
    cases = np.broadcast_to(draw.numbers, (len(first), len(draw.numbers)))
    pairs = (stated.p_beats[first, second], expected.p_beats[first, second])
    _add_pairs(cases, *pairs, _sides_of(others, first, second), sums.beats)


def _sides_of(others: AdditiveFit, first: Rows, second: Rows) -> Floats:
    """Return 1 if the others place the first higher, 0 if lower.

    0.5 means equal, NaN not compared.
    """
    above = others.effects[first] - others.effects[second]
    side = np.where(np.abs(above) <= EQUAL, 0.5, above > 0)
    components = others.components[others.pattern].T
    met = (components[first] == components[second]) & (components[first] >= 0)
    return np.where(met, side, np.nan)


def _add_pairs(
    numbers: Rows, stated_p: Floats, expected: Floats, outcomes: Floats, sums: "_ClaimSums"
) -> None:
    known = ~(np.isnan(stated_p) | np.isnan(outcomes))
    p, q, hit = stated_p[known], expected[known], outcomes[known]
    hit = np.where(np.abs(p - 0.5) <= EQUAL, 0.5, hit)
    turned = p < 0.5
    p, q, hit = (np.where(turned, 1 - each, each) for each in (p, q, hit))
    sure = np.clip(q, LEAST, 1 - LEAST)
    logs = -(hit * np.log(sure) + (1 - hit) * np.log(1 - sure))
    scores = (logs, np.full(p.shape, np.log(2)), (q - hit) ** 2, (0.5 - hit) ** 2)
    sums.add(numbers[known], (p, q, hit), scores)


def _add_best(
    numbers: Rows, stated_p: Floats, expected: Floats, others: AdditiveFit, sums: "_ClaimSums"
) -> None:
    """Add each draw's claim about the likeliest best candidate, averaged over ties."""
    running = ~np.isnan(stated_p)
    component = np.where(running, others.components[others.pattern].T, -2)
    highest = component.max(axis=0)
    compared = (highest >= 0) & ((component == highest) | ~running).all(axis=0)
    which = np.flatnonzero(compared & (running.sum(axis=0) > 1))
    running, stated_p, expected = running[:, which], stated_p[:, which], expected[:, which]
    effects = np.where(running, others.effects[:, which], -np.inf)
    share = (effects >= effects.max(axis=0) - EQUAL).astype(np.float64)
    share /= share.sum(axis=0)
    likeliest = running & (stated_p >= np.where(running, stated_p, 0.0).max(axis=0) - EQUAL)
    q, even = np.where(running, expected, 0.0), running / running.sum(axis=0)
    logs = -(share * np.log(np.maximum(q, LEAST))).sum(axis=0)
    scores = (
        logs,
        np.log(running.sum(axis=0)),
        ((q - share) ** 2).sum(axis=0),
        ((even - share) ** 2).sum(axis=0),
    )
    stated_p = np.where(running, stated_p, 0.0)
    claims = [np.mean(each, axis=0, where=likeliest) for each in (stated_p, q, share)]
    sums.add(numbers[which], claims, scores)


class _ClaimSums:
    """Sums of claims by session.

    `tenths` has the sums of cases, stated, expected and observed shares by tenth; `scores` the
    number of cases and the sums of four scores.
    """

    def __init__(self, n_sessions: int) -> None:
        self.tenths = np.zeros((n_sessions, TENTHS, 4))
        self.scores = np.zeros((n_sessions, 5))

    def add(self, numbers: Rows, claims: Sequence[Floats], scores: Sequence[Floats]) -> None:
        """Add claims and their four scores.

        `claims` are stated, expected and observed shares; each of these and each score has shape
        (N,).
        """
        np.add.at(self.scores, numbers, np.stack([np.ones(len(numbers)), *scores], axis=-1))
        sure = claims[0] >= 0.5
        stated = claims[0][sure]
        tenth = np.minimum((10 * (stated - 0.5) + 1e-9).astype(np.intp), TENTHS - 1)
        rows = np.stack([np.ones(len(stated)), *(each[sure] for each in claims)], axis=-1)
        np.add.at(self.tenths, (numbers[sure], tenth), rows)

    def curve(self, level: float, n_draws: int) -> CalibrationCurve:
        """Compute the calibration curve; pairs of a draw count as independent."""
        n_cases = max(self.scores[:, 0].sum(), 1.0)
        likeness = LIKENESS * min(1.0, n_draws / n_cases)
        scores = self.scores[:, 1:].sum(axis=0) / n_cases
        filled = [at for at in range(TENTHS) if self.tenths[:, at, 0].any()]
        return CalibrationCurve(
            tuple(self._tenth(at, level, len(filled), likeness) for at in filled),
            _gap(self.tenths.sum(axis=1), level, likeness),
            *(float(each) for each in scores),
        )

    def _tenth(self, at: int, level: float, n_filled: int, likeness: float) -> Tenth:
        sums = self.tenths[:, at]
        cases, stated, expected, _ = sums.sum(axis=0)
        strict = _gap(sums, 1 - (1 - level) / n_filled, likeness).interval
        return Tenth(
            low=(5 + at) / 10,
            high=(6 + at) / 10,
            probability=float(stated / cases),
            expectation=float(expected / cases),
            share=rate_by_session(
                sums[:, [3, 0]], _of_sessions(sums), level=level, likeness=likeness
            ),
            n_claims=round(cases),
            deviates=strict is not None and not strict.low <= 0 <= strict.high,
        )


def _of_sessions(sums: Floats) -> Count:
    return Count(float((sums[:, 0] > 0).sum()), "sessions", MIN_SESSIONS)


def _gap(sums: NDArray[np.float64], level: float, likeness: float) -> Measure:
    """Measure observed minus expected share."""
    return rate_by_session(
        sums[:, [3, 0]], _of_sessions(sums), level=level, likeness=likeness, expected=sums[:, 2]
    )


class _Sums:
    """Sums over all draws of one panel size."""

    def __init__(self, n_sessions: int) -> None:
        self.best, self.beats = _ClaimSums(n_sessions), _ClaimSums(n_sessions)
        self.is_drawn = np.zeros(n_sessions, dtype=np.bool_)
        self.draws, self.others = 0, 0.0

    def panel(self, reviewers: int, level: float) -> PanelCheck:
        """Build the check of this panel size."""
        return PanelCheck(
            reviewers=reviewers,
            others=self.others / max(self.draws, 1),
            sessions=int(self.is_drawn.sum()),
            draws=self.draws,
            p_best=self.best.curve(level, self.draws),
            p_beats=self.beats.curve(level, self.draws),
        )
