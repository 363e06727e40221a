"""Leaderboards and audits of a history, and its sessions, as objects for programs.

Models are called as clients see them, and nothing says where the history is.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from witan.analytics.reports import AuditReport, HistorySource
from witan.analytics.reports.audits import audit_of
from witan.analytics.reports.leaderboards import board_of, boards_over_time
from witan.analytics.reports.sources import check_rule
from witan.core.leaderboard import Leaderboard, Terms
from witan.core.merging import present_name
from witan.core.window import ALWAYS, Window
from witan.deliberation.system_clock import SystemClock
from witan.errors import NothingToCount
from witan.history import History, SessionSummary
from witan.service.config.configuration import Config
from witan.service.redaction import public_names, redact_summaries
from witan.service.reports_json import (
    audit_object,
    criterion_object,
    leaderboard_object,
    reviewer_object,
)

__all__ = [
    "audit",
    "audit_report",
    "audit_told",
    "leaderboard",
    "leaderboard_report",
    "leaderboard_told",
    "over_time",
    "sessions",
]


def leaderboard(
    history: History, config: Config, terms: Terms, *, with_elo: bool = False
) -> Leaderboard:
    """How models fare across the sessions of a history.

    Raises
    ------
    UnknownName
        If there is no such rule.
    NothingToCount, HistoryError
        If there is no session to count.
    """
    check_rule(terms.rule)
    with HistorySource.apart(history) as source, _nowhere(source):
        source.count_under(terms.rule)
        now, aliases = SystemClock().now(), _aliases(source, config)
        return board_of(source, terms, with_elo=with_elo, aliases=aliases, now=now)


def over_time(
    history: History, config: Config, terms: Terms, parts: int = 8
) -> tuple[tuple[Window, Leaderboard | None], ...]:
    """The mean scores of models in equal parts of the time that the sessions of a history span.

    Raises
    ------
    UnknownName
        If there is no such rule.
    """
    with HistorySource.apart(history) as source:
        return boards_over_time(source, terms, parts, aliases=_aliases(source, config))


def leaderboard_report(
    history: History, config: Config, terms: Terms, *, with_elo: bool = False
) -> dict[str, Any]:
    """The object of ``witan leaderboard --json``."""
    return leaderboard_told(history, leaderboard(history, config, terms, with_elo=with_elo))


def leaderboard_told(history: History, board: Leaderboard) -> dict[str, Any]:
    """The same object of a leaderboard that is there."""
    return _placeless(leaderboard_object(board, engine=history.database.dialect, where=""))


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
