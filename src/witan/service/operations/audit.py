"""Audit how reviewers judge across the sessions of a history."""

from dataclasses import dataclass, replace
from typing import Annotated

from witan.analytics.audits import AuditReport, audit_of
from witan.service.catalogue import operation, redacts
from witan.service.parameters import Constraint, Doc
from witan.service.reports import ReportService
from witan.service.stored_sessions import WindowParameters


@dataclass(frozen=True, slots=True)
class AuditParameters(WindowParameters):
    """Sessions and figures of an audit."""

    reviewer: Annotated[
        str | None,
        Doc("Report everything of one reviewer: a model, a person, or people.", "Figures", "NAME"),
    ] = None
    criterion: Annotated[
        str | None, Doc("Report how each grades on this criterion alone.", "Figures", "NAME")
    ] = None
    level: Annotated[
        float,
        Constraint(gt=0, lt=1),
        Doc("Level of intervals, and of what stands out.", "Figures", label="Confidence level"),
    ] = 0.95


# Reviewers are called by the names that `ReportService.aliases` gives them.
@redacts(AuditReport)
def _without_aliases(report: AuditReport) -> AuditReport:
    return replace(report, aliases={})


@operation("audit", get="/audit", tag="reports", pool="kept")
def audit(service: ReportService, parameters: AuditParameters) -> AuditReport:
    """Audit how reviewers judge: whom they prefer, how far they agree, what they are worth.

    What stands out is marked; a measure without enough data says so. Simulated sessions never
    count. Families of models, and old names of models, come from the configuration.
    """
    with service.source() as source:
        report = audit_of(
            source,
            parameters.window,
            aliases=service.aliases(source),
            families=service.families,
            level=parameters.level,
        )
    return report.on(parameters.reviewer, parameters.criterion)
