"""Audit of reviewers, one by one and together, from an engine's sums."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from operator import attrgetter
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from witan.core.outcome import Interval, check_level
from witan.core.stats.audit_biases import LengthAudit, LengthVotes, Preferences
from witan.core.stats.audit_reviewers import (
    Gradings,
    ReviewerAudit,
    Reviewers,
    ReviewerTables,
    find_constant,
)
from witan.core.stats.concordance import MIN_DECIDED, effective_votes, kendall_tau
from witan.core.stats.measures import (
    Count,
    Measure,
    centred_correlation,
    compare_correlations,
    divide_means,
    estimate_measure,
    join_buckets,
    krippendorff_alpha,
    lack_data,
    mean_correlation,
    per_bucket,
    ratio,
    undefined_measure,
)
from witan.core.stats.sums import (
    BallotSums,
    CriterionSums,
    GradingSums,
    HumanSums,
    LengthSums,
    Names,
    PanelSums,
    PositionSums,
    ReviewerSums,
    StandingSums,
    UnitSums,
    VoteSums,
)

Array = NDArray[np.float64]

MIN_CANDIDATES = 30
"""Fewest candidates with two or more reviewers for a variance or an α."""

MIN_GRADES = 50
"""Fewest pairs of a grade and a length for a correlation."""

MIN_SESSIONS = 10
"""Fewest sessions for a mean over sessions."""

MIN_STABLE = 20
"""Fewest sessions for halving: ten in each half."""

SPLITS = 200
"""Number of random halvings for the stability of a ranking."""

OVERALL = -1
"""The code of the overall grade among criteria."""

Wish = Literal["none", "even", "no more", "chance", "above", "rare"]

OFTEN = 0.1
"""A rate whose interval lies above this is too high: one ballot in ten."""

HALF = 0.5


@dataclass(frozen=True, slots=True)
class Alphas:
    """Krippendorff's α among the reviewers of one kind.

    Parameters
    ----------
    shares, grades
        α of the shares of rivals beaten, and of grades.
    """

    shares: Measure
    grades: Measure


@dataclass(frozen=True, slots=True)
class CriterionAudit:
    """Models' grades on one criterion, compared with the overall grade.

    Parameters
    ----------
    criterion
        None: the overall grade itself.
    variance
        Variance between reviewers of one answer, in squared grade points, mean over answers.
    variance_over_overall
        Ratio to the variance of the overall grade; below 1, reviewers agree more on the criterion.
    length
        Correlation with the log length of the answer, centred within the ballot.
    length_beyond_overall
        `length` minus that of the overall grade; below 0 if the criterion rewards brevity.
    """

    criterion: str | None
    variance: Measure
    variance_over_overall: Measure
    length: Measure
    length_beyond_overall: Measure


@dataclass(frozen=True, slots=True)
class PanelAudit:
    """Measures of all reviewing models together.

    Parameters
    ----------
    alpha, people_alpha
        Krippendorff's α among models, and among people.
    kendall_w, agreement
        Mean over sessions of Kendall's W, and of the leader's probability of being best.
    shared_error, effective_votes
        ρ, and the number of independent votes that its R reviewers are worth.
    length
        Relation of length to the votes of all models.
    criteria
        The overall grade first, then every criterion by name.
    stability
        Mean Kendall's τ between the leaderboards of two random halves.
    """

    alpha: Alphas
    people_alpha: Alphas
    kendall_w: Measure
    agreement: Measure
    shared_error: Measure
    effective_votes: Measure
    length: LengthAudit
    criteria: tuple[CriterionAudit, ...]
    stability: Measure


def alphas(table: UnitSums, *, human: int, level: float) -> Alphas:
    r"""Krippendorff's α for interval data.

    With m values on a candidate u that two reviewers or more judged, and n such values in all,

        α = 1 − (n − 1) · Σ_u [m·Σx² − (Σx)²]/(m − 1)  /  (n·Σx² − (Σx)²),

    sums without u over all n values. It is the usual 1 − D_o/D_e with

        D_o = 1/n · Σ_u 1/(m − 1) · Σ_{i ≠ j in u} (x_i − x_j)²,
        D_e = 1/(n(n − 1)) · Σ_{i ≠ j} (x_i − x_j)²,

    since Σ_{i ≠ j} (x_i − x_j)² = 2(m·Σx² − (Σx)²). 1: all equal; 0: as by chance. Comparisons of
    two are excluded (see `UnitSums`).

    References
    ----------
    Krippendorff, "Computing Krippendorff's alpha-reliability", University of Pennsylvania, 2011.
    """

    def one(measure: int) -> Measure:
        rows = (table.human == human) & (table.measure == measure)
        names = ("n", "total", "squares", "within")
        return estimate_measure(
            per_bucket(table.bucket[rows], *(getattr(table, name)[rows] for name in names)),
            krippendorff_alpha,
            Count(table.units[rows].sum(), "candidates judged by two or more", MIN_CANDIDATES),
            "correlation",
            level=level,
        )

    return Alphas(shares=one(0), grades=one(1))


def mean_kendall_w(table: PanelSums, *, level: float) -> Measure:
    """Mean Kendall's W over sessions with one."""
    return _mean(table, table.kendall_w, table.concordant, level)


def mean_agreement(table: PanelSums, *, level: float) -> Measure:
    """Mean probability of an unchanged leader in another draw."""
    return _mean(table, table.agreement, table.sure, level)


def _mean(table: PanelSums, total: Array, n: NDArray[np.int64], level: float) -> Measure:
    return estimate_measure(
        per_bucket(table.bucket, total, n),
        ratio,
        Count(n.sum(), "sessions", MIN_SESSIONS),
        "share",
        level=level,
        link="clip",
    )


def shared_votes(table: HumanSums, *, level: float) -> tuple[Measure, Measure]:
    """ρ, the reviewers' shared error, and their effective votes.

    ρ is the mean over pairs of reviewers of the correlation of being right on the pairs that
    people decided and both judged, clipped to [0, 1), as in
    `witan.core.stats.concordance.shared_error`. R reviewers in such pairs are worth R/(1 + (R −
    1)·ρ) votes; the same formula gives their interval from that of ρ.
    """
    first, second = np.minimum(table.reviewer, table.other), np.maximum(table.reviewer, table.other)
    same = table.reviewer == table.other
    # After renaming, a pair of reviewers may be in either order.
    turned = table.reviewer > table.other
    codes, pair = np.unique(np.stack([first, second])[:, ~same], axis=1, return_inverse=True)
    own_codes = np.unique(codes)
    judged = max((table.n[same & (table.reviewer == c)].sum() for c in own_codes), default=0)
    count = Count(judged, "pairs that people decided", MIN_DECIDED)
    if count.n < count.needed or len(own_codes) < 2:
        return lack_data(count, "correlation"), lack_data(count, "votes")
    buckets, bucket = np.unique(table.bucket, return_inverse=True)
    sums = np.zeros((len(buckets), codes.shape[1], 6))
    x, y = np.where(turned, table.y, table.x), np.where(turned, table.x, table.y)
    xx, yy = np.where(turned, table.yy, table.xx), np.where(turned, table.xx, table.yy)
    for at, column in enumerate((table.n, x, y, xx, yy, table.xy)):
        np.add.at(sums[..., at], (bucket[~same], pair.ravel()), column[~same])
    rho = estimate_measure(sums, mean_correlation, count, "correlation", level=level)
    return _votes_of(rho, len(own_codes), count)


def _votes_of(rho: Measure, n_reviewers: int, count: Count) -> tuple[Measure, Measure]:
    """ρ clipped to [0, 1), and the effective votes."""
    if rho.value is None:
        return rho, undefined_measure(count, "votes", "undefined: no two reviewers vary")
    value, interval, worth = _clip(rho.value), None, None
    if rho.interval is not None:
        low, high = _clip(rho.interval.low), _clip(rho.interval.high)
        interval = Interval(low, high, rho.interval.level)
        worth = Interval(
            effective_votes(n_reviewers, high),
            effective_votes(n_reviewers, low),
            rho.interval.level,
        )
    n, of, needed = round(count.n), count.of, count.needed
    return (
        Measure(value, interval, n, of, needed, "correlation"),
        Measure(effective_votes(n_reviewers, value), worth, n, of, needed, "votes"),
    )


def _clip(rho: float) -> float:
    return min(max(rho, 0.0), 1 - 1e-9)


def criteria_lines(
    table: CriterionSums, names: Names, *, level: float
) -> tuple[CriterionAudit, ...]:
    """Variance between reviewers and correlation with length, overall first, then by criterion.

    An overall grade is a mean of criteria and therefore varies less than they do. Compare it with
    holistic grades of other sessions, and criteria with each other.
    """
    codes = {int(code) for code in np.unique(table.criterion)}
    sorted_names = sorted((names[code], code) for code in codes - {OVERALL})
    lines: list[tuple[str | None, int]] = [(None, OVERALL)] if OVERALL in codes else []
    return tuple(_criterion(table, name, code, level) for name, code in [*lines, *sorted_names])


def _criterion(table: CriterionSums, name: str | None, code: int, level: float) -> CriterionAudit:
    mine, overall = table.criterion == code, table.criterion == OVERALL
    spread, length = ("variance", "units"), ("ll", "lx", "xx")
    n_units = Count(table.units[mine].sum(), "candidates graded by two or more", MIN_CANDIDATES)
    n_grades = Count(table.lengths[mine].sum(), "grades of known length", MIN_GRADES)

    def columns(rows: NDArray[np.bool_], names: Sequence[str]) -> tuple[Array, ...]:
        return tuple(getattr(table, column)[rows] for column in names)

    def both(names: Sequence[str]) -> Array:
        return join_buckets(
            (table.bucket[mine], columns(mine, names)),
            (table.bucket[overall], columns(overall, names)),
        )

    return CriterionAudit(
        criterion=name,
        variance=estimate_measure(
            per_bucket(table.bucket[mine], *columns(mine, spread)),
            ratio, n_units, "variance", level=level,
        ),
        variance_over_overall=divide_means(both(spread), n_units, level),
        length=estimate_measure(
            per_bucket(table.bucket[mine], *columns(mine, length)),
            centred_correlation, n_grades, "correlation", level=level, link="fisher",
        ),
        length_beyond_overall=compare_correlations(both(length), n_grades, level),
    )  # fmt: skip


def stability(table: StandingSums, rng: np.random.Generator) -> Measure:
    """Mean Kendall's τ-b between leaderboards of random halves.

    The buckets with standings are split at random into two halves; each half gives a leaderboard by
    mean score, and τ is taken over the models in both. Half a history gives a less stable ranking
    than the whole, so this is a lower bound. There is no interval: halvings of one history are not
    independent, so their spread is not an error.

    Parameters
    ----------
    table : StandingSums
        Standings of one rule and kind.
    rng : Generator
        Source of the random halves.
    """
    models, model = np.unique(table.model, return_inverse=True)
    buckets, bucket = np.unique(table.bucket, return_inverse=True)
    sums = np.zeros((len(buckets), len(models), 2))
    np.add.at(sums[..., 0], (bucket, model), table.total)
    np.add.at(sums[..., 1], (bucket, model), table.sessions)
    n = float(sums[..., 1].sum(axis=0).max(initial=0.0))
    count = Count(n, "sessions", MIN_STABLE)
    if n < count.needed:
        return lack_data(count, "correlation")
    taus = []
    for _ in range(SPLITS):
        order = rng.permutation(len(buckets))
        halves = (sums[half].sum(axis=0) for half in np.array_split(order, 2))
        tau = kendall_tau(*(ratio(half) for half in halves))
        taus += [] if tau is None else [tau]
    if not taus:
        return undefined_measure(
            count, "correlation", "undefined: no two models to rank in both halves"
        )
    return Measure(float(np.mean(taus)), None, round(n), "sessions", MIN_STABLE, "correlation")


@dataclass(frozen=True, slots=True)
class Concern:
    """A measure that is undesirable beyond noise.

    Parameters
    ----------
    measure
        Its name.
    sentence
        The finding on the reviewer: "grades lower than the others".
    """

    measure: str
    sentence: str


@dataclass(frozen=True, slots=True)
class Check:
    """Condition for a concern.

    Parameters
    ----------
    measure
        Its name; for a measure of length, the name within ``length``.
    wish
        ``none``: an interval without 0 is a concern. ``even``: one without ½. ``no more``: one
        above 0. ``chance``: one below ½. ``above``: one that is not above the bound. ``rare``: one
        above `OFTEN`.
    low, high
        Sentences for a value below, and above, the ideal.
    """

    measure: str
    wish: Wish
    low: str = ""
    high: str = ""
    bound: float = 0.0

    def of(self, line: ReviewerAudit) -> Measure:
        """Return the measure of a reviewer."""
        measure: Measure = attrgetter(self.measure)(line)
        return measure


CHECKS = (
    Check("self_preference", "none", "places its own answers lower than the others do",
          "places its own answers higher than the others do"),
    Check("family_preference", "none", "places its family lower than outsiders do",
          "places its family higher than outsiders do"),
    Check("position_effect", "none", "prefers the last answer on the sheet",
          "prefers the first answer on the sheet"),
    Check("first_shown", "even", "picks the second shown of two more often than the first",
          "picks the first shown of two more often than the second"),
    # A noisy reviewer correlates less with everything: only more than people is a concern.
    Check("length.shares_beyond_people", "no more",
          high="ranks long answers higher than people do"),
    Check("length.longer_wins_beyond_people", "no more",
          high="picks the longer answer more often than people do"),
    Check("severity", "none", "grades lower than the others", "grades higher than the others"),
    Check("discrimination", "above", "is not shown to separate answers by its grades"),
    Check("agreement", "above", "is not shown to judge like the others"),
    Check("agreement_with_people", "above", "is not shown to side with people more than a coin",
          bound=HALF),
    Check("order_consistency", "chance", "keeps its choice in fewer than half of the pairs "
          "that it sees in both orders"),
    Check("abstention_rate", "rare", high="abstains on more than one ballot in ten"),
    Check("repair_rate", "rare", high="needs a second attempt on more than one ballot in ten"),
    Check("flat_rate", "rare", high="separates no candidates on more than one ballot in ten"),
)  # fmt: skip
"""Every check, in the order of an audit."""

FLAGS = {
    "dead": "never cast a valid ballot",
    "constant": "separates no candidates on nine ballots in ten",
}


def concerns(line: ReviewerAudit) -> tuple[Concern, ...]:
    """List the concerns about one reviewer, each measure by its own interval.

    A measure without an interval is never a concern, as its noise is unknown. Of a hundred measures
    without an effect, at most about five are concerns by chance.
    """
    flagged = [Concern(flag, FLAGS[flag]) for flag in line.flags]
    sentences = ((check.measure, concern_of(check, check.of(line))) for check in CHECKS)
    return (*flagged, *(Concern(name, words) for name, words in sentences if words is not None))


def concern_of(check: Check, measure: Measure) -> str | None:
    """Describe the concern about a measure; None: it is fine, or unknown."""
    if measure.value is None or measure.interval is None:
        return None
    return _CONCERNS[check.wish](check, measure.interval.low, measure.interval.high)


def _find_side(bound: float, check: Check, low: float, high: float) -> str | None:
    return check.high if low > bound else check.low if high < bound else None


_CONCERNS: dict[Wish, Callable[[Check, float, float], str | None]] = {
    "none": partial(_find_side, 0.0),
    "even": partial(_find_side, HALF),
    "no more": lambda check, low, _: check.high if low > 0 else None,
    "chance": lambda check, _, high: check.low if high < HALF else None,
    "above": lambda check, low, _: check.low if low <= check.bound else None,
    "rare": lambda check, low, _: check.high if low > OFTEN else None,
}


@dataclass(frozen=True, slots=True, eq=False)
class AuditTables:
    """Input of an audit; `standings` of one rule, among models' ballots."""

    standings: StandingSums
    ballots: BallotSums
    votes: VoteSums
    reviewers: ReviewerSums
    positions: PositionSums
    lengths: LengthSums
    units: UnitSums
    criteria: CriterionSums
    gradings: GradingSums
    humans: HumanSums
    panel: PanelSums


@dataclass(frozen=True, slots=True)
class Audit:
    """Measures of reviewers, one by one and together.

    Parameters
    ----------
    reviewers
        Reviewing models, by name.
    persons
        People who voted, by name.
    people
        All people as one line; None: nobody voted.
    panel
        All models together.
    """

    reviewers: tuple[ReviewerAudit, ...]
    persons: tuple[ReviewerAudit, ...]
    people: ReviewerAudit | None
    panel: PanelAudit


def audit(
    tables: AuditTables,
    names: Names,
    families: Mapping[str, str],
    rng: np.random.Generator,
    *,
    level: float = 0.95,
) -> Audit:
    """Measure how reviewers judge.

    Parameters
    ----------
    tables : AuditTables
        Sums of the sessions to audit.
    names : Names
        Names of models, reviewers and criteria.
    families : mapping
        Model → family; a model without one is a family of its own.
    rng : Generator
        Source of the random halves for `PanelAudit.stability`.
    level : float
        Level of all intervals, between 0 and 1.

    Returns
    -------
    Audit
        A measure without enough data has no value and states how much it needs.

    Raises
    ------
    InvalidParameter
        If `level` is not between 0 and 1.
    """
    check_level(level)
    coded = {code: families[name] for code, name in names.of.items() if name in families}
    preferences = Preferences(tables.votes, coded, level, find_constant(tables.ballots))
    parts = ReviewerTables(
        ballots=tables.ballots,
        reviewers=tables.reviewers,
        positions=tables.positions,
        lengths=tables.lengths,
        humans=tables.humans,
    )
    models = Reviewers(parts, preferences, human=False, level=level)
    people = Reviewers(parts, preferences, human=True, level=level)
    graded, by_people = (
        Gradings(tables.gradings, names, human=human, level=level) for human in (False, True)
    )
    return Audit(
        reviewers=_lines(models, graded, names),
        persons=_lines(people, by_people, names),
        people=_join_people(people, by_people),
        panel=_panel(tables, names, rng, level),
    )


def _lines(reviewers: Reviewers, gradings: Gradings, names: Names) -> tuple[ReviewerAudit, ...]:
    sorted_names = sorted((names[code], code) for code in reviewers.codes)
    return tuple(
        replace(reviewers.line(code, name), criteria=gradings.of([code]))
        for name, code in sorted_names
    )


def _join_people(people: Reviewers, gradings: Gradings) -> ReviewerAudit | None:
    if not people.codes:
        return None
    return replace(people.join_people(), criteria=gradings.of(people.codes))


def _panel(tables: AuditTables, names: Names, rng: np.random.Generator, level: float) -> PanelAudit:
    rho, votes = shared_votes(tables.humans, level=level)
    return PanelAudit(
        alpha=alphas(tables.units, human=0, level=level),
        people_alpha=alphas(tables.units, human=1, level=level),
        kendall_w=mean_kendall_w(tables.panel, level=level),
        agreement=mean_agreement(tables.panel, level=level),
        shared_error=rho,
        effective_votes=votes,
        length=LengthVotes(tables.lengths, level).of(tables.lengths.human == 0),
        criteria=criteria_lines(tables.criteria, names, level=level),
        stability=stability(tables.standings, rng),
    )
