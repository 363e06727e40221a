"""What is known of a session beside its record: what came of it, and how people voted."""

from dataclasses import dataclass

import anyio

from witan.core.ballot import Ballot
from witan.errors import UnknownName
from witan.service.sessions import Service

__all__ = ["Beside", "beside"]


@dataclass(frozen=True, slots=True)
class Beside:
    """What the history knows of a session beside its record.

    Parameters
    ----------
    children
        Name of each session that came of it, and what it is to this one.
    votes
        Ballots of people.
    """

    children: tuple[tuple[str, str], ...] = ()
    votes: tuple[Ballot, ...] = ()


async def beside(service: Service, session: str) -> Beside:
    """Look it up; where nothing is kept, nothing is known."""
    history = service.history
    if history is None:
        return Beside()

    def find() -> Beside:
        try:
            ballots = history.ballots(session)
        except UnknownName:  # it is at hand, and not kept
            return Beside()
        children = history.find(parent=session)
        return Beside(
            tuple((each.session, each.relation or "followed") for each in reversed(children)),
            tuple(ballot for ballot in ballots if ballot.kind == "human"),
        )

    return await anyio.to_thread.run_sync(find)
