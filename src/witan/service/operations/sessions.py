"""What is asked of a chamber and of its history together."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import anyio

from witan.core.outcome import Outcome
from witan.deliberation.session import Session
from witan.errors import HistoryConflict
from witan.history import History
from witan.service.error_wording import as_request
from witan.service.import_redaction import discreet_import
from witan.service.operations.imported_sessions import ImportedSession, imported_session
from witan.service.operations.recount import recounted, recounted_import, settings_given
from witan.service.redaction import Veil, discreet_found
from witan.service.sessions import Chamber, Profile
from witan.service.worker_pool import in_turn

__all__ = ["count_again", "history_of", "imported_of", "profiles"]


def history_of(chamber: Chamber) -> History:
    """The history of a chamber.

    Raises
    ------
    HistoryConflict
        If it keeps no sessions.
    """
    if chamber.history is None:
        problem = "this server keeps no history"
        raise HistoryConflict("the server", problem, "have it started without --no-history")
    return chamber.history


async def count_again(
    chamber: Chamber,
    session: str,
    rule: str | None = None,
    *,
    without: Sequence[str] = (),
    given: Mapping[str, Any] | None = None,
) -> Outcome:
    """Count the ballots of a session of a chamber again, held here or imported; no call is made.

    Parameters
    ----------
    session
        An unambiguous beginning of its name.
    without
        Reviewers, called as askers see them.

    Raises
    ------
    WitanError
        As of `recounted` and `recounted_import`, or if there is no such session.
    """
    whole = await chamber.named(session)
    history = await _history_of_import(chamber, whole)
    if history is not None:
        named = given or {}
        settings = settings_given(rule, named)
        count = partial(
            recounted_import,
            history,
            whole,
            settings,
            without=without,
            named=named.keys(),
            shown=discreet_import,
        )
        return await in_turn(count, "session")
    # What was learned of a model is found by how its seat is written.
    held = await _held(chamber, whole)
    count_held = partial(recounted, held, chamber.history, rule, without=without, given=given)
    outcome = await in_turn(count_held, "session")
    return Veil(held.opened).outcome(outcome)


async def imported_of(
    chamber: Chamber, session: str, rule: str | None = None, *, without: Sequence[str] = ()
) -> ImportedSession | None:
    """A session that came in as ballots, as askers see it; None: a council held it.

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
    whole = await chamber.named(session)
    history = await _history_of_import(chamber, whole)
    if history is None:
        return None
    found = await in_turn(partial(_known, history, whole, rule, without), "session")
    [about] = discreet_found([found.about])
    said = None if found.not_counted is None else as_request(found.not_counted)
    return replace(found, about=about, not_counted=said)


def _known(
    history: History, whole: str, rule: str | None, without: Sequence[str]
) -> ImportedSession:
    if rule is None and not without:
        return imported_session(history, whole, discreet_import)
    settings = settings_given(rule, {})
    outcome = recounted_import(history, whole, settings, without=without, shown=discreet_import)
    held, _ = discreet_import(history.whole(whole))
    return ImportedSession(history.about(whole), held, outcome, None)


async def _history_of_import(chamber: Chamber, whole: str) -> History | None:
    """Where the ballots of a session are that no council held; None: one did."""
    history = chamber.history
    if history is None or chamber.running(whole) is not None:
        return None
    held = await anyio.to_thread.run_sync(history.has_record, whole)
    return None if held else history


async def _held(chamber: Chamber, whole: str) -> Session:
    running = chamber.running(whole)
    if running is not None:
        return running.held
    return await anyio.to_thread.run_sync(history_of(chamber).session, whole)


def profiles(chamber: Chamber) -> dict[str, Any]:
    """Who sits in each council that can be asked, and why one cannot be."""
    return {"profiles": [_profile(profile) for profile in chamber.profiles.values()]}


def _profile(profile: Profile) -> dict[str, Any]:
    return {
        "name": profile.name,
        "about": profile.about,
        "seats": [{"name": s.name, "source": s.source} for s in profile.seats],
        "jury": [{"name": s.name, "source": s.source} for s in profile.jury],
        "chairmen": [{"name": s.name, "source": s.source} for s in profile.chairmen],
        "simulated": profile.simulated,
        "notes": profile.notes,
        "problem": None if profile.problem is None else as_request(profile.problem),
    }
