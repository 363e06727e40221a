"""An audit of reviewers, read off a history or a lake."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import numpy as np

from witan.analytics.engines import DuckLake, Found, SparkLake
from witan.analytics.reports.criteria import CriterionReport, on_criterion
from witan.analytics.reports.emptiness import nothing
from witan.analytics.reports.renaming import renamed_standings
from witan.analytics.reports.sources import Source, check_rule, open_source
from witan.core import audit as core
from witan.core.audit import Audit, AuditTables
from witan.core.audit_reviewers import ReviewerAudit
from witan.core.calibration import Calibration, calibrate
from witan.core.concerns import Concern, concerns
from witan.core.display import Displayed, quoted
from witan.core.merging import merge, present_name, renamed
from witan.core.sums import (
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
)
from witan.core.window import ALWAYS, Window
from witan.errors import InvalidParameter, NothingToCount, UnknownName
from witan.history import History

__all__ = ["AuditReport", "audit", "audit_of"]

NO_NAMES: Mapping[str, str] = MappingProxyType({})

NO_FAMILIES: Mapping[str, Collection[str]] = MappingProxyType({})

SEED = 0
"""What the halvings of a history are drawn from: the same history, the same stability."""


@dataclass(frozen=True, slots=True)
class AuditReport(Displayed):
    """How the reviewers of a window judge.

    Parameters
    ----------
    window
        Which sessions.
    sessions
        How many they are.
    audit
        Reviewers one by one, and together.
    calibration
        How often a panel this sure of a pair matched people.
    concerns
        Reviewer to what is beyond noise of what one would not wish; those without are left out. All
        people together are one reviewer more.
    aliases
        Old name → new name of a model, by either of which a reviewer may be asked for.
    """

    window: Window
    sessions: int
    audit: Audit
    calibration: Calibration
    concerns: Mapping[str, tuple[Concern, ...]]
    aliases: Mapping[str, str]

    def __repr__(self) -> str:
        reviewers = quoted(line.reviewer for line in self.audit.lines)
        return f"<AuditReport of {self.sessions} sessions: {reviewers}>"

    def __getitem__(self, reviewer: str) -> ReviewerAudit:
        """The line of one reviewer: a model, a person, or ``people``, who are all of them together.

        Raises
        ------
        UnknownName
            If there is none of that name.
        """
        known = [line.reviewer for line in self.audit.lines]
        for name in (reviewer, present_name(reviewer, self.aliases)):
            if name in known:
                return self.audit[name]
        raise UnknownName("reviewer", reviewer, known)

    def on(self, criterion: str, reviewer: str | None = None) -> CriterionReport:
        """How the reviewers, or one of them, grade on one criterion.

        Raises
        ------
        UnknownName
            If there is no such criterion or reviewer.
        NothingToCount
            If that reviewer gave no grade on it.
        """
        if reviewer is not None:
            reviewer = self[reviewer].reviewer  # where there is none, it says who there is
        return on_criterion(self.audit, self.window, criterion, reviewer)

    @property
    def overview(self) -> tuple[ReviewerAudit, ...]:
        """A line for each model, each person that stands out, and all people together."""
        found = self.audit
        persons = [line for line in found.persons if line.reviewer in self.concerns]
        return (*found.reviewers, *persons, *found.lines[len(found.reviewers + found.persons) :])


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
    rule: str = "borda",
    aliases: Mapping[str, str] = NO_NAMES,
    families: Mapping[str, Collection[str]] = NO_FAMILIES,
    level: float = 0.95,
) -> AuditReport:
    """The audit of a source as it is; the stability of its ranking is that under a rule."""
    check_rule(rule)
    family_of = _family_of(families, aliases)
    with source.moment():
        empty = nothing(source, window)
        if empty is not None:
            raise empty
        asked = source.reductions(window)
        names = asked.names()
        summed = asked.tables(*_KINDS, rule=rule)
        standings = renamed_standings(
            asked, summed[StandingSums], rule, 0, aliases=aliases, names=names
        )
    tables = _tables(summed, standings, aliases, names)
    calibration = calibrate(summed[CalibrationSums], level=level)
    found = core.audit(
        tables, renamed(names, aliases), family_of, np.random.default_rng(SEED), level=level
    )
    if not found.reviewers and not found.persons:
        problem = f"{source.where}: no session {window} has a ballot"
        raise NothingToCount(f"{problem}; choose a wider window, or another category")
    # Backwards, so that whoever is called as all people together keeps the name.
    worried = {line.reviewer: concerns(line) for line in reversed(found.lines)}
    return AuditReport(
        window=window,
        sessions=int(tables.panel.sessions.sum()),
        audit=found,
        calibration=calibration,
        concerns={name: held for name, held in reversed(worried.items()) if held},
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
"""What an audit is asked for at once."""


def _tables(
    found: Found, standings: StandingSums, aliases: Mapping[str, str], names: Names
) -> AuditTables:
    return AuditTables(
        standings=standings,
        ballots=merge(found[BallotSums], aliases, names),
        votes=merge(found[VoteSums], aliases, names),
        reviewers=merge(found[ReviewerSums], aliases, names),
        positions=merge(found[PositionSums], aliases, names),
        lengths=merge(found[LengthSums], aliases, names),
        units=found[UnitSums],
        criteria=found[CriterionSums],
        gradings=merge(found[GradingSums], aliases, names),
        humans=merge(found[HumanSums], aliases, names),
        panel=found[PanelSums],
    )


def _family_of(
    families: Mapping[str, Collection[str]], aliases: Mapping[str, str]
) -> dict[str, str]:
    """Model to family, by the names that models have now."""
    found: dict[str, str] = {}
    for family, models in families.items():
        for model in models:
            name = present_name(model, aliases)
            if found.setdefault(name, family) != family:
                both = f"in {found[name]} and in {family}"
                raise InvalidParameter("families", f"{name} {both}", "each model in one family")
    return found
