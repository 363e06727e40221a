"""The page of a session: its report, and the controls beside it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import PurePath
from typing import TYPE_CHECKING

from witan.core.outcome import Outcome
from witan.core.rules import RULES
from witan.deliberation.events import SessionOpened
from witan.deliberation.ports import Seat
from witan.deliberation.session import Session
from witan.service.session_records import CouncilSession, ImportedSession
from witan.service.text import clean
from witan.surfaces.report.banner import failed_seats
from witan.surfaces.report.document import Block, Quote, Report
from witan.surfaces.report.imported import imported_report
from witan.surfaces.report.names import SeatNames
from witan.surfaces.report.session import recount_text, session_report, simulation_text
from witan.surfaces.report.sessions import question_beginning

if TYPE_CHECKING:
    from witan.service.sessions import CouncilProfile

TITLE_CHARS = 80

PLACES = ("answer", "ranking", "ballots", "answers", "run")
"""Sections that the page can jump to."""


@dataclass(frozen=True, slots=True)
class RecountNote:
    """A recount, its leader, the previous leader and any change."""

    how: str
    leader: str
    changed: bool


@dataclass(frozen=True, slots=True)
class SessionPage:
    """A session on its page.

    Parameters
    ----------
    imported
        It came in as ballots.
    judges_texts
        Its texts were handed in, by whom knows their names.
    ribbon
        That scripts played it; empty: none did.
    n_answers
        Answers that can be judged anew, or voted on.
    hides_names
        Names are hidden.
    recount
        The leader of another count beside that of the session's own; None: it is this.
    rule, without
        How it is counted, and without whose ballots, as forms and addresses have them.
    retry
        Seats that failed: as forms have them, and their names.
    has_text
        There is a final answer to go on from.
    n_children
        Sessions that came of it.
    council
        The council that can be asked to go on; empty: the configured one.
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
    without: tuple[str, ...] = ()
    retry: tuple[tuple[str, str], ...] = ()
    has_text: bool = False
    n_children: int = 0
    council: str = ""

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
    def simulated(self) -> bool:
        """True if scripts played it."""
        return bool(self.ribbon)

    @property
    def places(self) -> list[tuple[str, str]]:
        """Key and title of the sections to jump to."""
        headings = [section.heading for section in self.report.sections]
        return [(each.key, each.text) for each in headings if each and each.key in PLACES]

    @property
    def rules(self) -> tuple[str, ...]:
        """Rules that it can be counted by."""
        return session_rules()

    @property
    def status_line(self) -> Sequence[str]:
        """Status, time and name, in the order of the page."""
        return (*self.report.about[1:], self.report.about[0])


def session_page(
    result: Session | CouncilSession | ImportedSession,
    *,
    show_names: bool = False,
    recount: Outcome | None = None,
    without: tuple[str, ...] = (),
    councils: Sequence["CouncilProfile"] = (),
) -> SessionPage:
    """Return the page of a session.

    Parameters
    ----------
    show_names
        Names stand beside labels; they always do where it came in as ballots.
    recount, without
        The ballots counted again, and whose were left out; None: as the session counted them.
    councils
        Those that the next question can be put to.
    """
    if isinstance(result, ImportedSession):
        return _imported_page(result, recount, without)
    record = CouncilSession(result) if isinstance(result, Session) else result
    session = record.session
    judges_texts = session.opening.judging is not None
    names = SeatNames.of(session, hides_names=not (show_names or judges_texts))
    outcome = session.outcome if recount is None else recount
    return SessionPage(
        session_report(record, names, recount=recount, without=without),
        session.id,
        session.question,
        "under way" if record.under_way else session.status,
        simulation_text(session.opening),
        len(session.answers),
        judges_texts=judges_texts,
        hides_names=names.hides_names,
        recount=None if recount is None else _compare(session.outcome, recount, without, names),
        rule="" if outcome is None else outcome.rule,
        without=tuple(map(names.value, without)),
        retry=_failed_seats(session, names),
        has_text=session.text is not None,
        n_children=len(record.children),
        council=find_council(session.opening, councils),
    )


def _imported_page(
    session: ImportedSession, recount: Outcome | None, without: tuple[str, ...]
) -> SessionPage:
    if recount is not None:
        session = replace(session, outcome=recount, not_counted=None)
    outcome = session.outcome
    how = f"Without {', '.join(without)}" if without else "Counted with other settings"
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
        without=without,
    )


def _compare(
    before: Outcome | None, after: Outcome, without: Sequence[str], names: SeatNames
) -> RecountNote:
    how, now = recount_text(after, without, names), _leaders_text(after, names)
    if before is not None and set(before.leaders) == set(after.leaders):
        return RecountNote(how, f"{now}, as before", changed=False)
    return RecountNote(
        how, f"{now}; as the session counted, {_leaders_text(before, names)}", changed=True
    )


def _leaders_text(outcome: Outcome | None, names: SeatNames) -> str:
    if outcome is None or not outcome.leaders:
        return "nobody leads"
    leaders = names.name_list(outcome.leaders)
    if len(outcome.leaders) > 1:
        return f"{leaders} share the first place"
    tied = [name for name in outcome.tied_for_best if name not in outcome.leaders]
    return (
        f"{leaders} leads{f', too close to call against {names.name_list(tied)}' if tied else ''}"
    )


@lru_cache(maxsize=1)
def session_rules() -> tuple[str, ...]:
    """Return every rule that a single session can be counted by."""
    return tuple(sorted(name for name in RULES if RULES[name].needs != "history"))


def _failed_seats(session: Session, names: SeatNames) -> tuple[tuple[str, str], ...]:
    """Return seats to retry, as forms have them, and their names."""
    seats = names.order(failed_seats(session))
    return tuple((names.value(seat), names.name(seat)) for seat in seats)


def find_council(opening: SessionOpened, councils: Sequence["CouncilProfile"]) -> str:
    """Name the council of a session; empty: the configured one, or none."""
    seats = [*map(_identity, opening.seats)]
    same = [each for each in councils if [*map(_identity, each.seats)] == seats]
    jury = [*map(_identity, opening.jury)] if opening.members else []

    # Of councils with the same seats, the one that judges and deliberates as the session did.
    def differs(each: "CouncilProfile") -> tuple[bool, bool]:
        return [*map(_identity, each.jury)] != jury, each.procedure != opening.procedure

    return min(same, key=differs).name if same else ""


def _identity(seat: Seat) -> tuple[str, str]:
    """Name and source of a seat; of a script its file name."""
    kind, _, file = seat.source.partition(":")
    return seat.name, PurePath(file).stem if kind == "script" else seat.source
