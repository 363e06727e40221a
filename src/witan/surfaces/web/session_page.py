"""The page of a session: report, conversation and controls."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import PurePath
from typing import TYPE_CHECKING

from witan.core.outcome import Outcome
from witan.core.rules import RULES
from witan.deliberation.events import SessionOpened
from witan.deliberation.ports import Message, Seat
from witan.deliberation.session import Session
from witan.errors import WitanError
from witan.service.dispatch import dispatch, keep_typed
from witan.service.operations.sessions import show as show_session
from witan.service.session_records import CouncilSession, ImportedSession, votes_beside
from witan.service.sessions.spending import LOCAL
from witan.service.stored_sessions import SessionRequest
from witan.service.text import clean
from witan.service.trust import leaders_text
from witan.surfaces.report.banner import failed_seats
from witan.surfaces.report.document import Block, Quote, Report
from witan.surfaces.report.names import SeatNames
from witan.surfaces.report.session import (
    RecountView,
    imported_report,
    question_beginning,
    recount_text,
    session_report,
    simulation_text,
)

if TYPE_CHECKING:
    from witan.service.sessions.councils import CouncilProfile
    from witan.service.sessions.manager import Service

TITLE_CHARS = 80

SWITCHES_SHOWN = 64
"""Most reviewers in a form for a recount."""

PLACES = ("answer", "ranking", "ballots", "answers", "run")
"""Sections that the page can jump to."""


@dataclass(frozen=True, slots=True)
class RecountNote:
    """A recount, its leader, the previous leader and any change."""

    how: str
    leader: str
    changed: bool


@dataclass(frozen=True, slots=True)
class BallotSwitch:
    """One reviewer's ballot in the form for a recount.

    `value` names the reviewer in forms and addresses.
    """

    name: str
    value: str
    weight: float
    session_weight: float
    is_left_out: bool

    @property
    def step(self) -> float:
        """A quarter, or a hundredth if the session's own weight needs it."""
        return 0.25 if (4 * self.session_weight).is_integer() else 0.01


@dataclass(frozen=True, slots=True)
class SessionPage:
    """A session on its page.

    `imported`: whether it was imported as ballots.
    `judges_texts`: whether it judges given texts with names that the reader knows.
    `ribbon`: notice of seats played by scripts; may be empty.
    `n_answers`: number of answers to judge again or vote on.
    `recount`: the leader of a recount, compared with the session's own; None: no recount.
    `retry`: failed seats: values in forms, and names.
    `n_children`: number of sessions derived from it.
    """

    report: Report
    id: str
    question: str
    status: str
    ribbon: str
    n_answers: int
    imported: bool = False
    judges_texts: bool = False
    hides_names: bool = False
    recount: "RecountNote | None" = None
    rule: str = ""
    session_rule: str = ""
    ballots: tuple[BallotSwitch, ...] = ()
    retry: tuple[tuple[str, str], ...] = ()
    n_children: int = 0

    @property
    def title(self) -> str:
        """The beginning of the question, on one line."""
        return question_beginning(clean(self.question), TITLE_CHARS) or clean(self.id)

    @property
    def opening(self) -> list[Block]:
        """Blocks below the question."""
        opening = self.report.section("")
        blocks = () if opening is None else opening.blocks
        return [block for block in blocks if not isinstance(block, Quote)]

    @property
    def noun(self) -> str:
        """The word for the candidates."""
        return "texts" if self.judges_texts else "answers"

    @property
    def simulated(self) -> bool:
        """True if scripts played seats."""
        return bool(self.ribbon)

    @property
    def places(self) -> list[tuple[str, str]]:
        """Key and title of the sections to jump to."""
        headings = [section.heading for section in self.report.sections]
        return [(each.key, each.text) for each in headings if each and each.key in PLACES]

    @property
    def rules(self) -> tuple[str, ...]:
        """Rules for recounts."""
        return session_rules()

    @property
    def status_line(self) -> Sequence[str]:
        """Status, time and name, in the order of the page."""
        return (*self.report.about[1:], self.report.about[0])


def session_page(
    result: Session | CouncilSession | ImportedSession,
    *,
    show_names: bool,
    recount: RecountView | None = None,
) -> SessionPage:
    """Return the page of a session; imported ones always show names."""
    if isinstance(result, ImportedSession):
        return _imported_page(result, recount)
    record = CouncilSession(result) if isinstance(result, Session) else result
    session = record.session
    judges_texts = session.opening.judging is not None
    names = SeatNames.of(session, hides_names=not (show_names or judges_texts))
    outcome = session.outcome if recount is None else recount.outcome
    failed = names.order(failed_seats(session))
    return SessionPage(
        session_report(record, names, recount=recount),
        session.id,
        session.question,
        "under way" if record.under_way else session.status,
        simulation_text(session.opening),
        len(session.answers),
        judges_texts=judges_texts,
        hides_names=names.hides_names,
        recount=None if recount is None else _compare(session.outcome, recount, names),
        rule="" if outcome is None else outcome.rule,
        session_rule="" if session.outcome is None else session.outcome.rule,
        ballots=tuple(_switches(session, recount, names)),
        retry=tuple((names.value(each), names.name(each)) for each in failed),
        n_children=len(record.children),
    )


def _imported_page(session: ImportedSession, recount: RecountView | None) -> SessionPage:
    own_rule = "" if session.outcome is None else session.outcome.rule
    without: tuple[str, ...] = ()
    weights: Mapping[str, float] = {}
    if recount is not None:
        without, weights = recount.without, recount.weights
        session = replace(session, outcome=recount.outcome, not_counted=None)
    outcome = session.outcome
    how = f"Without {', '.join(without)}" if without else "Counted with other settings"
    ballots = session.session_import.ballots
    people_count = not votes_beside(ballots)
    cast = dict.fromkeys(
        each.reviewer
        for each in ballots
        if not each.abstained and (people_count or each.kind == "model")
    )
    return SessionPage(
        imported_report(session, without),
        session.about.session,
        session.about.question,
        session.about.status,
        "Simulated: scripts cast these ballots." if session.about.simulated else "",
        len(session.session_import.answers),
        imported=True,
        recount=None if recount is None else RecountNote(how, "", changed=False),
        rule="" if outcome is None else outcome.rule,
        session_rule=own_rule,
        ballots=tuple(
            BallotSwitch(name, name, weights.get(name, 1.0), 1.0, name in without)
            for name in [*cast][:SWITCHES_SHOWN]
        ),
    )


def _switches(
    session: Session, recount: RecountView | None, names: SeatNames
) -> Iterator[BallotSwitch]:
    """Yield how each ballot counts, in the order of the page."""
    cast = [name for name, each in session.reviewer_ballots.items() if not each.abstained]
    own_weights = session.settings.weights
    for seat in names.order(cast):
        own_weight = float(own_weights.get(seat, 1))
        weight = own_weight if recount is None else recount.weights.get(seat, own_weight)
        is_out = recount is not None and seat in recount.without
        yield BallotSwitch(names.name(seat), names.value(seat), weight, own_weight, is_out)


def _compare(before: Outcome | None, recount: RecountView, names: SeatNames) -> RecountNote:
    after = recount.outcome
    how, now = recount_text(recount, names), _leaders_text(after, names)
    if before is not None and set(before.leaders) == set(after.leaders):
        return RecountNote(how, f"{now}, as before", changed=False)
    return RecountNote(
        how, f"{now}; in the session’s own count, {_leaders_text(before, names)}", changed=True
    )


def _leaders_text(outcome: Outcome | None, names: SeatNames) -> str:
    leaders = outcome.leaders if outcome is not None and outcome.can_be_won else ()
    text = leaders_text([*map(names.name, names.order(leaders))])
    if outcome is None or len(leaders) != 1:
        return text
    tied = [name for name in outcome.tied_for_best if name not in leaders]
    return f"{text}, too close to call against {names.name_list(tied)}" if tied else text


@lru_cache(maxsize=1)
def session_rules() -> tuple[str, ...]:
    """Return every rule that a single session can be counted by."""
    return tuple(sorted(name for name in RULES if RULES[name].needs != "history"))


def find_council(opening: SessionOpened, councils: Sequence["CouncilProfile"]) -> str:
    """Name the council of a session; empty: the configured one, or none."""
    seats = [*map(_identity, opening.seats)]
    same = [each for each in councils if [*map(_identity, each.seats)] == seats]
    jury = [*map(_identity, opening.jury)] if opening.members else []

    # Among councils with the same seats, prefer the session's jury and procedure.
    def differs(each: "CouncilProfile") -> tuple[bool, bool]:
        return [*map(_identity, each.jury)] != jury, each.procedure != opening.procedure

    return min(same, key=differs).name if same else ""


def _identity(seat: Seat) -> tuple[str, str]:
    """Name and source of a seat; for a script its file name."""
    kind, _, file = seat.source.partition(":")
    return seat.name, PurePath(file).stem if kind == "script" else seat.source


MOST_FOLLOW_UPS = 20
"""Most follow-ups on a session's page, latest first."""

CONTINUED = "continued"
"""The relation of a follow-up to its session."""


@dataclass(frozen=True, slots=True)
class FollowUp:
    """A session that continues another, and its final answer, if any."""

    session: str
    question: str
    status: str
    answer: str


@dataclass(frozen=True, slots=True)
class Conversation:
    """The conversation around a session.

    `council`: the council for a follow-up; empty: the configured one.
    `can_continue`: whether it has a final answer to continue from.
    `judges_texts`: whether it judges given texts.
    """

    session: str
    turns: tuple[Message, ...] = ()
    parent: str = ""
    follow_ups: tuple[FollowUp, ...] = ()
    council: str = ""
    can_continue: bool = False
    judges_texts: bool = False

    @property
    def last_turns(self) -> tuple[Message, ...]:
        """The question and the answer that the session continues."""
        return self.turns[-2:]

    @property
    def earlier_turns(self) -> tuple[Message, ...]:
        """The turns before the last question and answer."""
        return self.turns[:-2]


def conversation_of(
    result: Session | CouncilSession | ImportedSession,
    *,
    show_names: bool,
    councils: Sequence["CouncilProfile"] = (),
    follow_ups: Sequence[FollowUp] = (),
) -> Conversation | None:
    """Return the conversation around a session: empty for judged texts, None for ballots."""
    if isinstance(result, ImportedSession):
        return None
    session = result if isinstance(result, Session) else result.session
    opened = session.opening
    if opened.judging is not None:
        return Conversation(session.id, judges_texts=True)
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
    service: "Service", children: Mapping[str, str], *, show_names: bool
) -> tuple[FollowUp, ...]:
    """Read the sessions that continue one."""
    names = [name for name, relation in children.items() if relation == CONTINUED]
    follow_ups = [
        await _read_follow_up(service, name, show_names=show_names)
        for name in names[-MOST_FOLLOW_UPS:]
    ]
    return tuple(each for each in follow_ups if each is not None)


async def _read_follow_up(service: "Service", name: str, *, show_names: bool) -> FollowUp | None:
    """Read a follow-up; None if it has been deleted."""
    try:
        result = await dispatch(show_session, service, LOCAL, SessionRequest(name), keep_typed)
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
