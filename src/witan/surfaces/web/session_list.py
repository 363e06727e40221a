"""Sessions as a list: their summaries, and whether they are under way."""

from collections.abc import Sequence
from datetime import UTC, date
from itertools import groupby
from typing import TypeAlias

from witan.history import SessionSummary
from witan.service.catalogue import redact
from witan.service.sessions import RunningSession

ListedSession: TypeAlias = tuple[SessionSummary, bool]
"""A session, and whether it is under way here.

Its leader is not named unless asked for: who is to read and vote without knowing who wrote what
begins here.
"""


def group_by_day(rows: Sequence[ListedSession]) -> list[tuple[date, list[ListedSession]]]:
    """Group sessions by the day of their question, in UTC."""
    days = groupby(rows, key=lambda row: row[0].at.astimezone(UTC).date())
    return [(day, list(members)) for day, members in days]


def list_sessions(
    summaries: Sequence[SessionSummary], running_session: Sequence[RunningSession]
) -> list[ListedSession]:
    """List sessions of a history, some of which are under way."""
    names = {each.id for each in running_session if each.has_name}
    return [(summary, summary.session in names) for summary in summaries]


def latest_sessions(
    summaries: Sequence[SessionSummary], local: Sequence[RunningSession], *, most: int
) -> list[ListedSession]:
    """List the latest sessions, those that no history has yet first."""
    stored_names = {each.session for each in summaries}
    new = [
        (_summarize(each), each.under_way)
        for each in reversed(local)
        if each.has_name and each.id not in stored_names
    ]
    running_session = [each for each in local if each.under_way]
    return [*new, *list_sessions([*map(redact, summaries)], running_session)][:most]


def _summarize(running_session: RunningSession) -> SessionSummary:
    session, opened = running_session.session, running_session.session.opening
    return SessionSummary(
        session=running_session.id,
        at=opened.at,
        status=session.status,
        category=opened.category,
        simulated=session.is_simulated,
        question=session.question,
        rule=None,
        leader=None,
        cost_usd=None,
        source="council",
        parent=opened.parent,
        relation=opened.relation,
        has_events=False,
    )
