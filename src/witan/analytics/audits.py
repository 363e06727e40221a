"""An audit of reviewers, read off a history or a lake."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType

import numpy as np

from witan.analytics.leaderboards import rename_standings
from witan.analytics.sources import (
    BASE_RULE,
    DuckLake,
    Source,
    SparkLake,
    explain_empty,
    open_source,
)
from witan.analytics.sums import Tables
from witan.core.display import NotebookDisplay, list_names
from witan.core.outcome import join_names
from witan.core.stats import audit as core
from witan.core.stats.audit import AuditTables, Concern, CriterionAudit, PanelAudit, concerns
from witan.core.stats.audit_gradings import GradingAudit
from witan.core.stats.audit_reviewers import ReviewerAudit
from witan.core.stats.calibration import Calibration, calibrate
from witan.core.stats.sums import (
    BallotSums,
    CalibrationSums,
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
    merge,
    present_name,
    rename_codes,
)
from witan.core.window import ALWAYS, Window
from witan.errors import InvalidParameter, NothingToCount, UnknownName
from witan.history import History

NO_NAMES: Mapping[str, str] = MappingProxyType({})

NO_FAMILIES: Mapping[str, Collection[str]] = MappingProxyType({})

OVERALL = "overall"
"""Name on a ballot of a grade of no criterion."""

NAMED = 8
"""Reviewers that a message names at most."""

SEED = 0
"""Seed of a history's halvings: the same history, the same stability."""


@dataclass(frozen=True, slots=True)
class Grader:
    """One reviewer's grading on one criterion.

    Parameters
    ----------
    reviewer, human
        The model or person; all people together are "people".
    ballots
        What it was asked for.
    grading
        Its measures.
    """

    reviewer: str
    human: bool
    ballots: int
    grading: GradingAudit


@dataclass(frozen=True, slots=True)
class CriterionReport:
    """All reviewers' grading on one criterion.

    Parameters
    ----------
    criterion
        Its name.
    panel
        The models together; null in a report on one reviewer, or where no model grades on it.
    graders
        Reviewers in the order of the audit; at least one.
    """

    criterion: str
    panel: CriterionAudit | None
    graders: tuple[Grader, ...]


@dataclass(frozen=True, slots=True)
class AuditReport(NotebookDisplay):
    """Audit of a window: all reviewers, one, or all on one criterion.

    Parameters
    ----------
    window
        Which sessions.
    sessions
        How many they are.
    level
        Of all intervals.
    reviewers
        The models that review, by name.
    persons
        The people that voted, by name.
    people
        All of them as one line; null: nobody voted.
    panel
        The models together; null in a report on one reviewer or criterion.
    calibration
        How often a panel this sure of a pair matched people; null likewise.
    concerns
        Reviewer to the measures that stand out; reviewers without any are left out.
    only
        The requested reviewer; null: all.
    criterion
        Everybody's grading on the requested criterion; null: none.
    aliases
        Old name of a model to its new one.
    """

    window: Window
    sessions: int
    level: float
    reviewers: tuple[ReviewerAudit, ...]
    persons: tuple[ReviewerAudit, ...]
    people: ReviewerAudit | None
    panel: PanelAudit | None
    calibration: Calibration | None
    concerns: Mapping[str, tuple[Concern, ...]]
    only: str | None = None
    criterion: CriterionReport | None = None
    aliases: Mapping[str, str] = field(default_factory=dict)

    def __repr__(self) -> str:
        reviewers = list_names(line.reviewer for line in self.lines)
        return f"<AuditReport of {self.sessions} sessions: {reviewers}>"

    def __getitem__(self, reviewer: str) -> ReviewerAudit:
        """The line of one reviewer: a model, a person, or all ``people``.

        Raises
        ------
        UnknownName
            If there is none of that name.
        """
        # A person may bear the name of all people together, who keep it.
        known = {line.reviewer: line for line in reversed((*self.reviewers, *self.persons))}
        known |= {} if self.people is None else {self.people.reviewer: self.people}
        for name in (reviewer, present_name(reviewer, self.aliases)):
            if name in known:
                return known[name]
        raise UnknownName("reviewer", reviewer, [line.reviewer for line in self.lines])

    @property
    def lines(self) -> tuple[ReviewerAudit, ...]:
        """Every line: models, people one by one, and people together."""
        together = () if self.people is None else (self.people,)
        return (*self.reviewers, *self.persons, *together)

    @property
    def overview(self) -> tuple[ReviewerAudit, ...]:
        """Lines of all models, remarkable persons, and all people together."""
        persons = [each for each in self.persons if self.only or each.reviewer in self.concerns]
        return (*self.reviewers, *persons, *self.lines[len(self.reviewers + self.persons) :])

    def on(self, reviewer: str | None = None, criterion: str | None = None) -> "AuditReport":
        """Return the report on one reviewer, one criterion, or both.

        Raises
        ------
        UnknownName
            If there is no such reviewer or criterion.
        NothingToCount
            If that reviewer gave no grade on it.
        """
        if reviewer is None and criterion is None:
            return self
        line = None if reviewer is None else self[reviewer]
        lines = self.lines if line is None else (line,)
        selected = lines if criterion is None else ()
        return replace(
            self,
            reviewers=tuple(each for each in self.reviewers if each in selected),
            persons=tuple(each for each in self.persons if each in selected),
            people=self.people if self.people in selected else None,
            panel=None,
            calibration=None,
            concerns={
                each.reviewer: self.concerns[each.reviewer]
                for each in lines
                if each.reviewer in self.concerns
            },
            only=None if line is None else line.reviewer,
            criterion=None if criterion is None else _report_on_criterion(self, criterion, line),
        )


class _UnknownCriterion(UnknownName):
    """A criterion without grades; the error names the graded ones."""

    def __str__(self) -> str:
        known = ", ".join(self.known_names) or "none"
        if self.name == OVERALL:
            without = "which an audit without a criterion tells of"
            return f"{OVERALL!r} is the grade as a whole, {without}; criteria: {known}"
        return f"unknown criterion {self.name!r}{self.suggestion} (known: {known})"


def _report_on_criterion(
    report: AuditReport, criterion: str, line_of_reviewer: ReviewerAudit | None
) -> CriterionReport:
    known = sorted({grading.criterion for line in report.lines for grading in line.criteria})
    if criterion not in known:
        raise _UnknownCriterion("criterion", criterion, known)
    graded = [
        (line, grading)
        for line in report.lines
        for grading in line.criteria
        if grading.criterion == criterion
    ]
    graders = tuple(
        Grader(line.reviewer, line.human, line.ballots, grading)
        for line, grading in graded
        if line_of_reviewer is None or line is line_of_reviewer
    )
    if not graders and line_of_reviewer is not None:
        names = [line.reviewer for line, _ in graded]
        more = [f"{len(names) - NAMED:,} more"] if len(names) > NAMED else []
        did = f"{join_names([*names[:NAMED], *more])} did"
        problem = f"{line_of_reviewer.reviewer} gave no grade on {criterion} {report.window}; {did}"
        raise NothingToCount(problem)
    panel = None
    if line_of_reviewer is None and report.panel is not None:
        panel = next((each for each in report.panel.criteria if each.criterion == criterion), None)
    return CriterionReport(criterion, panel, graders)


def audit(
    source: History | DuckLake | SparkLake | str | Path,
    window: Window = ALWAYS,
    *,
    aliases: Mapping[str, str] = NO_NAMES,
    families: Mapping[str, Collection[str]] = NO_FAMILIES,
    level: float = 0.95,
) -> AuditReport:
    """Measure how reviewers judge.

    Parameters
    ----------
    source
        A history, or its path or URL; an engine, or the folder of a lake.
    window
        Which sessions.
    aliases
        Old name → new name of a model.
    families
        Family → the models that belong to it; a model in none is one of its own.
    level
        Of all intervals.

    Raises
    ------
    NothingToCount
        If no session is in the window, or none with a ballot.
    HistoryError
        If the source cannot be read.
    InvalidParameter
        If a model is in two families, aliases run in a circle, or the level is no level.
    """
    with open_source(source) as opened:
        return audit_of(opened, window, aliases=aliases, families=families, level=level)


def audit_of(
    source: Source,
    window: Window,
    *,
    aliases: Mapping[str, str] = NO_NAMES,
    families: Mapping[str, Collection[str]] = NO_FAMILIES,
    level: float = 0.95,
) -> AuditReport:
    """Audit a source as is."""
    family_of = _family_of(families, aliases)
    with source.moment():
        empty = explain_empty(source, window)
        if empty is not None:
            raise empty
        sums = source.sums(window)
        names = sums.names()
        tables = sums.tables(*_KINDS, rule=BASE_RULE)
        standings = rename_standings(
            sums, tables[StandingSums], BASE_RULE, 0, aliases=aliases, names=names
        )
    measured = _audit_tables(tables, standings, aliases, names)
    calibration = calibrate(tables[CalibrationSums], level=level)
    result = core.audit(
        measured, rename_codes(names, aliases), family_of, np.random.default_rng(SEED), level=level
    )
    if not result.reviewers and not result.persons:
        problem = f"{source.location}: no session {window} has a ballot"
        raise NothingToCount(f"{problem}; choose a wider window, or another category")
    # Backwards, so that whoever is called as all people together keeps the name.
    all_concerns = {line.reviewer: concerns(line) for line in reversed(result.lines)}
    return AuditReport(
        window=window,
        sessions=int(measured.panel.sessions.sum()),
        level=result.level,
        reviewers=result.reviewers,
        persons=result.persons,
        people=result.people,
        panel=result.panel,
        calibration=calibration,
        concerns={name: known for name, known in reversed(all_concerns.items()) if known},
        aliases=aliases,
    )


_KINDS = (
    StandingSums,
    BallotSums,
    VoteSums,
    ReviewerSums,
    PositionSums,
    LengthSums,
    UnitSums,
    CriterionSums,
    GradingSums,
    HumanSums,
    PanelSums,
    CalibrationSums,
)
"""The tables of an audit."""


def _audit_tables(
    sums: Tables, standings: StandingSums, aliases: Mapping[str, str], names: Names
) -> AuditTables:
    return AuditTables(
        standings=standings,
        ballots=merge(sums[BallotSums], aliases, names),
        votes=merge(sums[VoteSums], aliases, names),
        reviewers=merge(sums[ReviewerSums], aliases, names),
        positions=merge(sums[PositionSums], aliases, names),
        lengths=merge(sums[LengthSums], aliases, names),
        units=sums[UnitSums],
        criteria=sums[CriterionSums],
        gradings=merge(sums[GradingSums], aliases, names),
        humans=merge(sums[HumanSums], aliases, names),
        panel=sums[PanelSums],
    )


def _family_of(
    families: Mapping[str, Collection[str]], aliases: Mapping[str, str]
) -> dict[str, str]:
    """Model to family, by present names."""
    family_of: dict[str, str] = {}
    for family, models in families.items():
        for model in models:
            name = present_name(model, aliases)
            if family_of.setdefault(name, family) != family:
                both = f"in {family_of[name]} and in {family}"
                raise InvalidParameter("families", f"{name} {both}", "each model in one family")
    return family_of
