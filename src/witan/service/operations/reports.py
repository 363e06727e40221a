"""Leaderboards and audits of a history, and its sessions, as objects for programs.

Models are called as clients see them, and nothing says where the history is.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from witan.analytics.reports import AuditReport, HistorySource
from witan.analytics.reports.audits import audit_of
from witan.core.merging import present_name
from witan.core.window import ALWAYS, Window
from witan.errors import NothingToCount
from witan.history import History, SessionSummary
from witan.service.config.configuration import Config
from witan.service.redaction import public_names, redact_summaries
from witan.service.reports_json import (
    audit_object,
    criterion_object,
    reviewer_object,
)

__all__ = [
    "audit",
    "audit_report",
    "audit_told",
    "sessions",
]


def audit(history: History, config: Config, window: Window, *, level: float = 0.95) -> AuditReport:
    """How reviewers judge, in the sessions of a history.

    Raises
    ------
    NothingToCount, HistoryError
        If there is no session to count.
    """
    with HistorySource.apart(history) as source, _nowhere(source):
        aliases = _aliases(source, config)
        told = audit_of(source, window, aliases=aliases, families=config.families, level=level)
        # Of a name that clients do not see, none is told whether it is there.
        known = {old: present_name(old, aliases) for old in config.aliases}
        return replace(told, aliases=known)


def audit_report(
    history: History,
    config: Config,
    window: Window,
    *,
    reviewer: str | None = None,
    criterion: str | None = None,
    level: float = 0.95,
) -> dict[str, Any]:
    """The object of ``witan audit --json``, of all reviewers or of one, or on one criterion.

    Raises
    ------
    UnknownName
        If there is no such reviewer or criterion.
    NothingToCount
        If that reviewer gave no grade on that criterion.
    """
    report = audit(history, config, window, level=level)
    return audit_told(history, report, reviewer, criterion)


def audit_told(
    history: History,
    report: AuditReport,
    reviewer: str | None = None,
    criterion: str | None = None,
) -> dict[str, Any]:
    """The same object of an audit that is there."""
    engine = history.database.dialect
    if criterion is not None:
        found = report.on(criterion, reviewer)
        return _placeless(criterion_object(report, found, engine=engine, where=""))
    if reviewer is not None:
        return _placeless(reviewer_object(report, report[reviewer], engine=engine, where=""))
    return _placeless(audit_object(report, engine=engine, where=""))


def sessions(history: History, found: list[SessionSummary]) -> dict[str, Any]:
    """The object of ``witan sessions --json``; of the history it says what kind it is."""
    return {"history": history.database.dialect, "sessions": redact_summaries(found)}


def _placeless(told: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in told.items() if name != "where"}


def _aliases(source: HistorySource, config: Config) -> Mapping[str, str]:
    """What models are called now, and after that, what clients see of it."""
    names = source.reductions(ALWAYS).names().of.values()
    shown = public_names({present_name(name, config.aliases): None for name in names})
    return {**config.aliases, **shown}


@contextmanager
def _nowhere(source: HistorySource) -> Iterator[None]:
    """Say why there is nothing to count without the place where there is nothing."""
    try:
        yield
    except NothingToCount as error:
        raise NothingToCount(error.problem.removeprefix(f"{source.where}: ")) from None
