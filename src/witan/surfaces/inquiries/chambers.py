"""What is asked of a chamber and of its history together."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import anyio

from witan.adapters.history import History
from witan.core.outcome import Outcome
from witan.deliberation.session import Session
from witan.errors import HistoryConflict
from witan.surfaces.chamber import Chamber, Profile
from witan.surfaces.discretion import Veil
from witan.surfaces.inquiries.in_turn import in_turn
from witan.surfaces.inquiries.recounting import recounted, recounted_import, settings_given

__all__ = ["count_again", "history_of", "profiles"]


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

    Raises
    ------
    WitanError
        As of `recounted` and `recounted_import`, or if there is no such session.
    """
    whole, history = await chamber.named(session), chamber.history
    if (
        history is not None
        and chamber.running(whole) is None
        and not await anyio.to_thread.run_sync(history.has_record, whole)
    ):
        named = given or {}
        settings = settings_given(rule, named)
        count = partial(
            recounted_import, history, whole, settings, without=without, named=named.keys()
        )
        return await in_turn(count)
    # What was learned of a model is found by how its seat is written.
    held = await _held(chamber, whole)
    outcome = await in_turn(partial(recounted, held, history, rule, without=without, given=given))
    return Veil(held.opened).outcome(outcome)


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
        "chairmen": [{"name": s.name, "source": s.source} for s in profile.chairmen],
        "simulated": profile.simulated,
        "notes": profile.notes,
        "problem": profile.problem,
    }
