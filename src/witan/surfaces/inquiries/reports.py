"""Leaderboards and audits of a history, and its sessions, as objects for programs."""

from typing import Any

from witan.adapters.history import Found, History
from witan.adapters.reports import AuditReport, HistorySource
from witan.adapters.reports.audits import audit_of
from witan.adapters.reports.leaderboards import board_of, boards_over_time
from witan.adapters.reports.sources import check_rule
from witan.adapters.system_clock import SystemClock
from witan.core.leaderboard import Leaderboard, Terms
from witan.core.window import Window
from witan.surfaces.config import Config
from witan.surfaces.reports_json import audit_object, leaderboard_object, reviewer_object

__all__ = ["audit", "audit_report", "leaderboard", "leaderboard_report", "over_time", "sessions"]


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
    source = HistorySource(history)
    source.count_under(terms.rule)
    now = SystemClock().now()
    return board_of(source, terms, with_elo=with_elo, aliases=config.aliases, now=now)


def over_time(
    history: History, config: Config, terms: Terms, parts: int = 8
) -> tuple[tuple[Window, Leaderboard | None], ...]:
    """The mean scores of models in equal parts of the time that the sessions of a history span.

    Raises
    ------
    UnknownName
        If there is no such rule.
    """
    return boards_over_time(HistorySource(history), terms, parts, aliases=config.aliases)


def leaderboard_report(
    history: History, config: Config, terms: Terms, *, with_elo: bool = False
) -> dict[str, Any]:
    """The object of ``witan leaderboard --json``."""
    board = leaderboard(history, config, terms, with_elo=with_elo)
    source = HistorySource(history)
    return leaderboard_object(board, engine=source.name, where=source.where)


def audit(history: History, config: Config, window: Window, *, level: float = 0.95) -> AuditReport:
    """How reviewers judge, in the sessions of a history.

    Raises
    ------
    NothingToCount, HistoryError
        If there is no session to count.
    """
    return audit_of(
        HistorySource(history),
        window,
        aliases=config.aliases,
        families=config.families,
        level=level,
    )


def audit_report(
    history: History,
    config: Config,
    window: Window,
    *,
    reviewer: str | None = None,
    level: float = 0.95,
) -> dict[str, Any]:
    """The object of ``witan audit --json``, of all reviewers or of one.

    Raises
    ------
    UnknownName
        If there is no such reviewer.
    """
    report = audit(history, config, window, level=level)
    source = HistorySource(history)
    if reviewer is not None:
        line = report[reviewer]
        return reviewer_object(report, line, engine=source.name, where=source.where)
    return audit_object(report, engine=source.name, where=source.where)


def sessions(history: History, found: list[Found]) -> dict[str, Any]:
    """The object of ``witan sessions --json``."""
    return {"history": history.url, "sessions": found}
