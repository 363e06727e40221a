"""An audit of reviewers, computed from a history or a lake."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

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
from witan.core.display import FrameSource, NotebookDisplay, list_names
from witan.core.outcome import join_names
from witan.core.stats import audit as core
from witan.core.stats.audit import AuditTables, Concern, CriterionAudit, PanelAudit, concerns
from witan.core.stats.audit_reviewers import GradingAudit, ReviewerAudit
from witan.core.stats.calibration import Calibration, calibrate
from witan.core.stats.leaderboard import ALWAYS, Window
from witan.core.stats.measures import Measure
from witan.core.stats.sums import (
    CalibrationSums,
    StandingSums,
    merge,
    present_name,
    rename_codes,
)
from witan.errors import InvalidParameter, NothingToCount, UnknownName
from witan.history import History

NO_NAMES: Mapping[str, str] = MappingProxyType({})

NO_FAMILIES: Mapping[str, Collection[str]] = MappingProxyType({})

OVERALL = "overall"
"""Name of the holistic grade on a ballot without criteria."""

MAX_NAMES_LISTED = 8
"""Maximum number of reviewers named in a message."""

SEED = 0
"""Seed of the random halves of a history, so that stability is reproducible."""


@dataclass(frozen=True, slots=True)
class Grader:
    """One reviewer's grading on one criterion.

    Parameters
    ----------
    reviewer, human
        The model or person; all people together are "people".
    ballots
        Number of ballots requested from it.
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
        All models together; null in a report on one reviewer, or if no model grades it.
    graders
        Reviewers, in the order of the audit.
    """

    criterion: str
    panel: CriterionAudit | None
    graders: tuple[Grader, ...]


@dataclass(frozen=True, slots=True)
class AuditReport(NotebookDisplay, FrameSource):
    """Audit of a window: all reviewers, one, or all on one criterion.

    Parameters
    ----------
    window
        Window of the sessions.
    sessions
        Number of sessions.
    level
        Confidence level of all intervals.
    reviewers
        Models, by name.
    persons
        People who voted, by name.
    people
        All people together; None: nobody voted.
    panel
        All models together; null in a report on one reviewer or criterion.
    calibration
        How often panels this sure of a pair agreed with people; null in a report on one
        reviewer or criterion.
    concerns
        Measures that stand out, by reviewer.
    only
        The requested reviewer; null for all.
    criterion
        Grading on the requested criterion; None: none requested.
    aliases
        New name of a model, by its old one.
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
        """Return the line of one reviewer: a model, a person, or ``people``.

        A name may be as tables and charts shorten it, ``qwen3`` or ``http…qwen3``, if it is that of
        one reviewer.

        Raises
        ------
        UnknownName
            If there is no line of that name, or several.
        """
        # A person may be named "people", but the name means all people together.
        line_by_reviewer = {
            line.reviewer: line for line in reversed((*self.reviewers, *self.persons))
        }
        line_by_reviewer |= {} if self.people is None else {self.people.reviewer: self.people}
        for name in (reviewer, present_name(reviewer, self.aliases)):
            if name in line_by_reviewer:
                return line_by_reviewer[name]
        similar = [name for name in reversed(line_by_reviewer) if _shortens(reviewer, name)]
        if len(similar) == 1:
            return line_by_reviewer[similar[0]]
        if similar:
            raise _AmbiguousReviewer("reviewer", reviewer, similar)
        raise UnknownName("reviewer", reviewer, [line.reviewer for line in self.lines])

    def rows(self) -> Iterator[Mapping[str, Any]]:
        """Yield data-frame rows: lines, or graders on the requested criterion."""
        if self.criterion is None:
            for line in self.lines:
                yield _measure_columns(line)
            return
        for each in self.criterion.graders:
            names = {"reviewer": each.reviewer, "human": each.human, "ballots": each.ballots}
            yield names | _measure_columns(each.grading)

    @property
    def lines(self) -> tuple[ReviewerAudit, ...]:
        """Every line: models, people one by one, and people together."""
        together = () if self.people is None else (self.people,)
        return (*self.reviewers, *self.persons, *together)

    @property
    def overview(self) -> tuple[ReviewerAudit, ...]:
        """Lines of all models, persons with concerns, and all people together."""
        persons = [each for each in self.persons if self.only or each.reviewer in self.concerns]
        return (*self.reviewers, *persons, *self.lines[len(self.reviewers + self.persons) :])

    def on(self, reviewer: str | None = None, criterion: str | None = None) -> "AuditReport":
        """Return the report on one reviewer, one criterion, or both.

        Raises
        ------
        UnknownName
            If there is no such reviewer or criterion.
        NothingToCount
            If that reviewer gave no grades on it.
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


def _measure_columns(record: Any, prefix: str = "") -> dict[str, Any]:
    """Return a record's names, counts and measures, nested ones too, as columns."""
    columns: dict[str, Any] = {}
    for each in fields(record):
        value, name = getattr(record, each.name), f"{prefix}{each.name}"
        if isinstance(value, Measure):
            columns |= value.columns(name)
        elif is_dataclass(value):
            columns |= _measure_columns(value, f"{name}_")
        elif each.name != "criteria":
            columns[name] = value
    return columns


def _shortens(short: str, name: str) -> bool:
    """Check whether a name may be shortened so: to its last parts, or by an ellipsis."""
    head, ellipsis, tail = short.partition("…")
    if ellipsis:
        return len(head) + len(tail) < len(name) and name.startswith(head) and name.endswith(tail)
    return bool(short) and name.endswith(short) and name[: -len(short)].endswith((":", "/", "#"))


class _AmbiguousReviewer(UnknownName):
    """A shortened name of several reviewers; the error names them."""

    def __str__(self) -> str:
        several = join_names(self.known_names[:MAX_NAMES_LISTED])
        return f"reviewer {self.name!r} may be {several}; name one of them in full"


class _UnknownCriterion(UnknownName):
    """A criterion without grades; the error names the graded ones."""

    def __str__(self) -> str:
        if not self.known_names:
            return f"unknown criterion {self.name!r}: no reviewer graded by criteria"
        criterion_names = ", ".join(self.known_names)
        if self.name == OVERALL:
            hint = "leave out the criterion to audit it"
            return f"{OVERALL!r} is the holistic grade; {hint}; criteria: {criterion_names}"
        return f"unknown criterion {self.name!r}{self.suggestion} (known: {criterion_names})"


def _report_on_criterion(
    report: AuditReport, criterion: str, line_of_reviewer: ReviewerAudit | None
) -> CriterionReport:
    criteria = sorted({grading.criterion for line in report.lines for grading in line.criteria})
    if criterion not in criteria:
        raise _UnknownCriterion("criterion", criterion, criteria)
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
        more = [f"{len(names) - MAX_NAMES_LISTED:,} more"] if len(names) > MAX_NAMES_LISTED else []
        graders_text = join_names([*names[:MAX_NAMES_LISTED], *more])
        problem = f"{line_of_reviewer.reviewer} gave no grades on {criterion} {report.window}"
        problem += f"; these reviewers did: {graders_text}"
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
    """Measure the bias, severity and concordance of reviewers.

    Parameters
    ----------
    source
        A history, or its path or URL; an engine, or the folder of a lake.
    window
        Window of the sessions.
    aliases
        Old name → new name of a model.
    families
        Family → its models; a model in no family is its own family.
    level
        Confidence level of all intervals.

    Raises
    ------
    NothingToCount
        If no session is in the window, or none with a ballot.
    HistoryError
        If the source cannot be read.
    InvalidParameter
        If a model is in two families, aliases form a cycle, or the level is invalid.
    """
    with open_source(source) as opened_source:
        return audit_of(opened_source, window, aliases=aliases, families=families, level=level)


def audit_of(
    source: Source,
    window: Window,
    *,
    aliases: Mapping[str, str] = NO_NAMES,
    families: Mapping[str, Collection[str]] = NO_FAMILIES,
    level: float = 0.95,
) -> AuditReport:
    """Audit an open source."""
    family_of = _family_of(families, aliases)
    with source.moment():
        empty = explain_empty(source, window)
        if empty is not None:
            raise empty
        sums = source.sums(window)
        names = sums.names()
        tables = sums.tables(*_TABLES.values(), CalibrationSums, rule=BASE_RULE)
        standings = rename_standings(
            sums, tables[StandingSums], BASE_RULE, 0, aliases=aliases, names=names
        )
    merged = {name: merge(tables[kind], aliases, names) for name, kind in _TABLES.items()}
    measured = AuditTables(**merged | {"standings": standings})
    calibration = calibrate(tables[CalibrationSums], level=level)
    result = core.audit(
        measured, rename_codes(names, aliases), family_of, np.random.default_rng(SEED), level=level
    )
    if not result.reviewers and not result.persons:
        problem = f"{source.location}: no session {window} has a ballot"
        raise NothingToCount(f"{problem}; choose a wider window or another category")
    report = AuditReport(
        window=window,
        sessions=int(measured.panel.sessions.sum()),
        level=level,
        reviewers=result.reviewers,
        persons=result.persons,
        people=result.people,
        panel=result.panel,
        calibration=calibration,
        concerns={},
        aliases=aliases,
    )
    # Reversed, so that the line of all people together comes first among equal names.
    all_concerns = {line.reviewer: concerns(line) for line in reversed(report.lines)}
    return replace(
        report,
        concerns={
            name: reviewer_concerns
            for name, reviewer_concerns in reversed(all_concerns.items())
            if reviewer_concerns
        },
    )


_TABLES: Mapping[str, Any] = {each.name: each.type for each in fields(AuditTables)}
"""The tables of an audit by their names in it."""


def _family_of(
    families: Mapping[str, Collection[str]], aliases: Mapping[str, str]
) -> dict[str, str]:
    """Return the family of each model, by current names."""
    family_of: dict[str, str] = {}
    for family, models in families.items():
        for model in models:
            name = present_name(model, aliases)
            if family_of.setdefault(name, family) != family:
                problem = f"in {family_of[name]} and in {family}"
                raise InvalidParameter("families", f"{name} {problem}", "each model in one family")
    return family_of
