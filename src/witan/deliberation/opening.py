"""Open sessions: from a question, or from the answers of another."""

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from datetime import datetime
from hashlib import blake2s

import numpy as np

from witan.core.escaping import is_blank
from witan.deliberation import events as e
from witan.deliberation.events import SessionOpened
from witan.deliberation.jury import Authorship, rename_clashes
from witan.deliberation.masking import list_names, mask
from witan.deliberation.plan import Plan
from witan.deliberation.planner import plan_reviews
from witan.deliberation.ports import Member, Message, Seat, StoredAnswer
from witan.deliberation.procedure import Procedure
from witan.deliberation.session import Session
from witan.errors import InvalidParameter, NoCouncil, NothingToCount


def check_question(question: object) -> None:
    """Refuse an empty question or a non-text."""
    if not isinstance(question, str) or is_blank(question):
        raise InvalidParameter("the question", question, "some text")


def check_category(category: object) -> None:
    """Refuse an empty category or a non-text."""
    if category is not None and not (isinstance(category, str) and category.strip()):
        raise InvalidParameter("category", category, "some text, or None")


def check_attachments(conversation: object, files: object) -> None:
    """Refuse malformed conversations and files."""
    turns = isinstance(conversation, Sequence) and not isinstance(conversation, str)
    if not (turns and all(isinstance(turn, Message) for turn in conversation)):  # type: ignore[attr-defined]
        raise InvalidParameter("conversation", conversation, "a list of Message")
    texts = [*files, *files.values()] if isinstance(files, Mapping) else [None]
    if not all(isinstance(text, str) for text in texts):
        raise InvalidParameter("files", files, "a table from name to text")


def check_same_seats(
    session: Session,
    members: Sequence[Member],
    reviewers: Sequence[Member],
    chairmen: Sequence[Member],
) -> None:
    """Refuse to resume a session with other seats than it began with."""
    opened = session.opened
    for who, here, there in (
        ("members", members, opened.members),
        ("jurors" if opened.members else "members", reviewers, opened.reviewers),
        ("chairmen", chairmen, opened.chairmen),
    ):
        if [(m.name, m.source) for m in here] != [(s.name, s.source) for s in there]:
            seats = ", ".join(f"{s.name} ({s.source})" if s.source else s.name for s in there)
            raise NoCouncil(
                f"the session {session.id} was begun by other {who}",
                f"seat {seats or 'none'} to take it up",
            )


def check_seats(
    members: Sequence[Member], jury: Sequence[Member], chairmen: Sequence[Member]
) -> None:
    """Refuse too few members or jurors and shared names."""
    if len(members) < 2:
        count = "there is one" if members else "there is none"
        raise NoCouncil(
            f"a council needs at least two members, and {count}",
            "seat another; the same model may hold several seats",
        )
    if len(jury) == 1:
        raise NoCouncil(
            "a jury needs at least two jurors, and there is one",
            "seat another, or none: then the members review each other",
        )
    seats: dict[str, Member] = {}
    n_apart = len(members) + len(jury)
    for number, seat in enumerate((*members, *jury, *chairmen)):
        # A chairman may have another seat; one under the name of another would pass for it.
        if seat.name in seats and (number < n_apart or seats[seat.name] != seat):
            expected = "a name that no other seat has"
            raise InvalidParameter("the name of a seat", seat.name, expected)
        seats[seat.name] = seat


def link_parent(opened: SessionOpened, parent: object) -> SessionOpened:
    """Link an opening to its question's parent session, if any."""
    if parent is None:
        return opened
    if not (isinstance(parent, str) and parent.strip()):
        raise InvalidParameter("parent", parent, "the name of a session, or None")
    return replace(opened, parent=parent, relation="continued")


def draw_seed(seed: int | None) -> int:
    """Return the given seed, or draw a JSON-safe one from system entropy."""
    if seed is None:
        return int(np.random.SeedSequence().generate_state(1, np.uint64)[0] >> 11)
    if type(seed) is not int or not 0 <= seed < 2**53:
        raise InvalidParameter("seed", seed, "a whole number from 0 to 2**53 - 1")
    return seed


def make_session_name(now: datetime, seed: int, nth: int, question: str) -> str:
    """Name the nth session of a council uniquely."""
    distinct = f"{seed} {now.microsecond} {nth} {question}".encode(errors="replace")
    return f"{now:%Y%m%d-%H%M%S}-{blake2s(distinct, digest_size=5).hexdigest()}"


def make_seat(member: Member) -> Seat:
    """Make the recorded seat of a member, without its model."""
    return Seat(**{field.name: getattr(member, field.name) for field in fields(Seat)})


def open_rejudgment(
    opened: e.SessionOpened,
    session: Session,
    jury: Sequence[Member],
    chairmen: Sequence[Member],
) -> e.SessionOpened:
    """Open a session for a jury's judgment of another's answers.

    Parameters
    ----------
    opened
        The opening of the question, as the jury itself would be asked it.
    jury, chairmen
        Members of this council; those that share the name of a seat are renamed.

    Raises
    ------
    NothingToCount
        If the session has fewer than two answers.
    """
    if len(session.answers) < 2:
        has = "one answer" if session.answers else "no answer"
        raise NothingToCount(
            f"the session {session.id} has {has}: with fewer than two none is best"
        )
    seats = tuple(seat for seat in session.opened.seats if seat.name in session.answers)
    named = rename_clashes((*jury, *chairmen), seats)
    before = replace(
        opened,
        seats=seats,
        chairmen=tuple(make_seat(named[chairman.name]) for chairman in chairmen),
        jury=tuple(make_seat(named[juror.name]) for juror in jury),
        answers=collect_answers(session),
        parent=session.id,
        relation="rejudged",
        parent_ranking=() if session.outcome is None else session.outcome.ranking,
    )
    names = list_names((*before.seats, *before.jury))
    plan = plan_reviews(
        before.jury,
        before.chairmen,
        before.procedure,
        before.question,
        conversation=before.conversation,
        files=before.files,
        answers={a.seat: mask(a.text, before.question, names) for a in before.answers},
        own=Authorship.of(before).own,
        substitutes=before.jury,
    )
    return replace(before, plan=plan)


def collect_answers(session: Session) -> tuple[StoredAnswer, ...]:
    """The answers of a session with their safety flags."""
    judged = {stored.seat: stored.flags for stored in session.opened.answers}
    judged |= {x.seat: x.flags for x in session.events if isinstance(x, e.GateVerdict)}
    return tuple(
        StoredAnswer(answer.seat, answer.text, answer.cut, answer.spent, judged.get(answer.seat))
        for answer in session.answers.values()
    )


def plan_rejudgment(
    session: Session, jury: Sequence[Member], chairmen: Sequence[Member], procedure: Procedure
) -> Plan:
    """Plan a jury's review of a session's answers.

    Raises
    ------
    NothingToCount
        If it has fewer than two.
    """
    opened = session.opened
    return open_rejudgment(replace(opened, procedure=procedure), session, jury, chairmen).plan
