"""An audit of reviewers: every measure with its interval, from sums that an engine returns."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from witan.core.audit_gradings import Gradings
from witan.core.audit_length import Lengths
from witan.core.audit_panel import (
    PanelAudit,
    alphas,
    criteria_lines,
    mean_agreement,
    mean_kendall_w,
    shared_votes,
    stability,
)
from witan.core.audit_preference import Preferences
from witan.core.audit_reviewers import ReviewerAudit, Reviewers, ReviewerTables
from witan.core.level import check_level
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

__all__ = ["PEOPLE", "Audit", "AuditTables", "audit"]

PEOPLE = "people"
"""The name of the line of all people together."""


@dataclass(frozen=True, slots=True, eq=False)
class AuditTables:
    """All that an audit is made of; `standings` of one rule, among the ballots of models."""

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
    """How reviewers judge, one by one and together.

    Parameters
    ----------
    reviewers
        The models that review, by name.
    persons
        The people that voted, by name.
    people
        All of them as one line; None: nobody voted.
    panel
        The models together.
    level
        Of all intervals.
    """

    reviewers: tuple[ReviewerAudit, ...]
    persons: tuple[ReviewerAudit, ...]
    people: ReviewerAudit | None
    panel: PanelAudit
    level: float

    def __getitem__(self, reviewer: str) -> ReviewerAudit:
        if self.people is not None and reviewer == PEOPLE:
            return self.people
        for line in self.lines:
            if line.reviewer == reviewer:
                return line
        raise KeyError(reviewer)

    @property
    def lines(self) -> tuple[ReviewerAudit, ...]:
        """Every line: models, people one by one, and people together."""
        together = () if self.people is None else (self.people,)
        return (*self.reviewers, *self.persons, *together)


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
        Sums of the sessions in question.
    names : Names
        Of models, reviewers and criteria.
    families : mapping
        Model → family; a model without one is a family of its own.
    rng : Generator
        For the halvings of the history that `PanelAudit.stability` is a mean of.
    level : float
        Of all intervals, between 0 and 1.

    Returns
    -------
    Audit
        A measure without enough data has no value, and says what it needs.

    Raises
    ------
    InvalidParameter
        If `level` is not between 0 and 1.
    """
    check_level(level)
    coded = {code: families[name] for code, name in names.of.items() if name in families}
    preferences = Preferences(tables.votes, coded, level)
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
        people=_together(people, by_people),
        panel=_panel(tables, names, rng, level),
        level=level,
    )


def _lines(reviewers: Reviewers, graded: Gradings, names: Names) -> tuple[ReviewerAudit, ...]:
    named = sorted((names[code], code) for code in reviewers.codes)
    return tuple(
        replace(reviewers.line(code, name), criteria=graded.of([code])) for name, code in named
    )


def _together(people: Reviewers, graded: Gradings) -> ReviewerAudit | None:
    if not people.codes:
        return None
    return replace(people.together(PEOPLE), criteria=graded.of(people.codes))


def _panel(tables: AuditTables, names: Names, rng: np.random.Generator, level: float) -> PanelAudit:
    rho, votes = shared_votes(tables.humans, level=level)
    return PanelAudit(
        alpha=alphas(tables.units, human=0, level=level),
        people_alpha=alphas(tables.units, human=1, level=level),
        kendall_w=mean_kendall_w(tables.panel, level=level),
        agreement=mean_agreement(tables.panel, level=level),
        shared_error=rho,
        effective_votes=votes,
        length=Lengths(tables.lengths, level).of(tables.lengths.human == 0),
        criteria=criteria_lines(tables.criteria, names, level=level),
        stability=stability(tables.standings, rng),
    )
