"""The conversation around a session: before, after, and the next question."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from witan.deliberation.ports import Message
from witan.deliberation.session import Session
from witan.errors import WitanError
from witan.service.dispatch import dispatch, keep_typed
from witan.service.operations.sessions import ShowParameters
from witan.service.operations.sessions import show as show_session
from witan.service.session_records import CouncilSession
from witan.surfaces.report.names import SeatNames
from witan.surfaces.web.session_page import find_council

if TYPE_CHECKING:
    from witan.service.sessions import Client, CouncilProfile, Service

MOST_FOLLOW_UPS = 20
"""Follow-ups that the page of a session shows, the latest."""

CONTINUED = "continued"
"""The relation of a follow-up to its session."""


@dataclass(frozen=True, slots=True)
class FollowUp:
    """A session that goes on from another.

    Parameters
    ----------
    answer
        Its final answer; empty: it has none yet.
    """

    session: str
    question: str
    status: str
    answer: str


@dataclass(frozen=True, slots=True)
class Conversation:
    """The conversation around a session.

    Parameters
    ----------
    turns
        What was said before its question, oldest first.
    parent
        The session that it continues; empty: it begins the conversation, or has it from elsewhere.
    council
        The council that can be asked to go on; empty: the configured one.
    can_continue
        It has a final answer to go on from.
    """

    session: str
    turns: tuple[Message, ...] = ()
    parent: str = ""
    follow_ups: tuple[FollowUp, ...] = ()
    council: str = ""
    can_continue: bool = False

    @property
    def last_turns(self) -> tuple[Message, ...]:
        """The question and the answer that the session goes on from."""
        return self.turns[-2:]

    @property
    def earlier_turns(self) -> tuple[Message, ...]:
        """The turns before those."""
        return self.turns[:-2]


def conversation_of(
    session: Session,
    *,
    show_names: bool = False,
    councils: Sequence["CouncilProfile"] = (),
    follow_ups: Sequence[FollowUp] = (),
) -> Conversation:
    """Return the conversation around a session; none around texts that are judged."""
    opened = session.opening
    if opened.judging is not None:
        return Conversation(session.id)
    names = SeatNames.of(session, hides_names=not show_names)
    turns = tuple(
        Message(each.role, names.quote(each.text) if each.role == "assistant" else each.text)
        for each in opened.conversation
    )
    return Conversation(
        session.id,
        turns,
        opened.parent or "" if opened.relation == CONTINUED else "",
        tuple(follow_ups),
        find_council(opened, councils),
        session.text is not None and session.status != "interrupted",
    )


async def read_follow_ups(
    service: "Service", client: "Client", children: Mapping[str, str], *, show_names: bool
) -> tuple[FollowUp, ...]:
    """Read the sessions that go on from one."""
    names = [name for name, relation in children.items() if relation == CONTINUED]
    follow_ups = [
        await _read_follow_up(service, client, name, show_names=show_names)
        for name in names[-MOST_FOLLOW_UPS:]
    ]
    return tuple(each for each in follow_ups if each is not None)


async def _read_follow_up(
    service: "Service", client: "Client", name: str, *, show_names: bool
) -> FollowUp | None:
    """Read a follow-up; None: it was deleted meanwhile."""
    try:
        result = await dispatch(show_session, service, client, ShowParameters(name), keep_typed)
    except WitanError:
        return None
    if not isinstance(result, CouncilSession):
        return None
    session = result.session
    seat_names = SeatNames.of(session, hides_names=not show_names)
    status = "under way" if result.under_way else session.status
    return FollowUp(name, session.question, status, seat_names.quote(session.text or ""))


def question_again(session: Session, councils: Sequence["CouncilProfile"]) -> dict[str, str]:
    """Return the fields of a form to ask a session's question again."""
    opened = session.opening
    values = {
        "question": session.question,
        "profile": find_council(opened, councils),
        "category": opened.category or "",
    }
    if opened.parent is not None and opened.relation == CONTINUED:
        return {**values, "parent": opened.parent}
    turns = "\n".join(f"{turn.role}: {turn.text}" for turn in opened.conversation)
    return {**values, "conversation": turns}
