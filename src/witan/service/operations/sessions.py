"""The history of a service, and its imported sessions."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import anyio

from witan.errors import HistoryConflict
from witan.history import History
from witan.service.error_boundary import as_request
from witan.service.operations.imported_sessions import ImportedSession, imported_session
from witan.service.operations.recount import recounted_import, settings_given
from witan.service.redaction import redact_import, redact_summaries
from witan.service.sessions import Service
from witan.service.worker_pool import run_counting


def history_of(service: Service) -> History:
    """The history of a service.

    Raises
    ------
    HistoryConflict
        If it keeps no sessions.
    """
    if service.history is None:
        problem = "this server keeps no history"
        raise HistoryConflict("the server", problem, "have it started without --no-history")
    return service.history


async def imported_of(
    service: Service, session: str, rule: str | None = None, *, without: Sequence[str] = ()
) -> ImportedSession | None:
    """A session that came in as ballots, as clients see it; None: a council held it.

    Parameters
    ----------
    rule, without
        What to count it by, and without whose ballots; unless given, as it is usually counted.

    Raises
    ------
    NothingToCount, UnknownName, InvalidParameter
        If it cannot be counted as it is asked for; that it usually cannot is no error.
    UnknownName
        If there is no such session.
    HistoryError
        If several begin so, or it cannot be read.
    """
    whole = await service.named(session)
    history = await _history_of_import(service, whole)
    if history is None:
        return None
    found = await run_counting(partial(_known, history, whole, rule, without), "session")
    [about] = redact_summaries([found.about])
    said = None if found.not_counted is None else as_request(found.not_counted)
    return replace(found, about=about, not_counted=said)


def _known(
    history: History, whole: str, rule: str | None, without: Sequence[str]
) -> ImportedSession:
    if rule is None and not without:
        return imported_session(history, whole, redact_import)
    settings = settings_given(rule, {})
    outcome = recounted_import(history, whole, settings, without=without, shown=redact_import)
    held, _ = redact_import(history.export(whole))
    return ImportedSession(history.summary(whole), held, outcome, None)


async def _history_of_import(service: Service, whole: str) -> History | None:
    """Where the ballots of a session are that no council held; None: one did."""
    history = service.history
    if history is None or service.running(whole) is not None:
        return None
    held = await anyio.to_thread.run_sync(history.has_record, whole)
    return None if held else history
