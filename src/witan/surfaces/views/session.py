"""A session as its page shows it: every part, and what may be done with it."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from operator import itemgetter
from typing import TYPE_CHECKING

from witan.core.ballot import Ballot
from witan.core.outcome import Outcome
from witan.core.rules import RULES
from witan.deliberation.session import Session
from witan.service.text import clean, listed, number, readable
from witan.service.trust import p_best_text, reliability_text, session_trust
from witan.surfaces.live_board import Board
from witan.surfaces.report.document import Block
from witan.surfaces.report.outcome import agreement, ranking_blocks
from witan.surfaces.report.sessions import AS_CHILD
from witan.surfaces.views.answers import (
    AnswerCard,
    FinalAnswer,
    Unanswered,
    answers,
    unanswered,
    verdict,
)
from witan.surfaces.views.following import council_of
from witan.surfaces.views.lanes import Lane, lanes
from witan.surfaces.views.matrix import Matrix, matrix
from witan.surfaces.views.naming import Naming

if TYPE_CHECKING:
    from witan.service.sessions import CouncilProfile

__all__ = ["Figure", "Recounted", "SessionView", "session_rules", "session_view"]


@dataclass(frozen=True, slots=True)
class Figure:
    """One number that must not be mixed up with another: its name, itself, what it means."""

    name: str
    value: str
    meaning: str


@dataclass(frozen=True, slots=True)
class Recounted:
    """The leader of a recount, beside the leader before."""

    how: str
    said: str
    changed: bool


@dataclass(frozen=True, slots=True)
class VoteView:
    """A person's vote in one line, and its note."""

    person: str
    order: str
    notes: str


@dataclass(frozen=True, slots=True)
class SessionView:
    """Everything on the page of one session.

    Parameters
    ----------
    parent
        What it is to the session that it came of, the name of that, and whom it asked again.
    judges
        Who reviewed in place of the seats.
    trust
        The line of trust in its parts, the same words as everywhere, without what is missing.
    missing
        What a complete session would have had.
    rules
        Rules that a single session can be counted by, for the switch.
    without
        Whose ballots are left out, as forms and addresses have them.
    retry
        Seats that failed: as forms have them, and what they are called.
    may_follow
        Whether there is a final answer to go on from.
    council
        The name of the council that can be asked to go on; empty: the configured one.
    """

    id: str
    title: str
    question: str
    status: str
    missing: tuple[str, ...]
    simulated: bool
    asked_at: str
    files: str
    notes: tuple[str, ...]
    parent: tuple[str, str, str] | None
    children: tuple[tuple[str, str], ...]
    judges: str
    votes: tuple[VoteView, ...]
    trust: tuple[str, ...]
    figures: tuple[Figure, ...]
    lanes: tuple[Lane, ...]
    verdict: FinalAnswer | None
    said: str
    agreement: tuple[Block, ...]
    ranking: tuple[Block, ...]
    recounted: Recounted | None
    matrix: Matrix
    answers: tuple[AnswerCard, ...]
    unanswered: tuple[Unanswered, ...]
    veiled: bool
    rule: str
    without: tuple[str, ...]
    rules: tuple[str, ...]
    retry: tuple[tuple[str, str], ...]
    may_follow: bool
    council: str
    naming: Naming = field(repr=False)

    @property
    def whole(self) -> bool:
        """True if nothing is missing."""
        return self.status == "complete"


def session_view(
    session: Session,
    *,
    revealed: bool = False,
    recounted: Outcome | None = None,
    without: tuple[str, ...] = (),
    children: Sequence[tuple[str, str]] = (),
    votes: Sequence[Ballot] = (),
    councils: Sequence["CouncilProfile"] = (),
    closed: bool = True,
) -> SessionView:
    """Return the page of a session.

    Parameters
    ----------
    revealed
        Whether names stand beside labels.
    recounted, without
        The ballots counted again, and whose were left out; None: as the session counted them.
    children
        Sessions that came of this one, and what they are to it.
    votes
        Ballots that people cast on it later, which its outcome does not count.
    councils
        Whom the next question can be put to.
    closed
        False: it is under way, and more may come.
    """
    naming = Naming.of(session, veiled=not revealed)
    own = session.outcome
    again = _recounted(own, recounted, without, naming)
    if recounted is not None:
        session = replace(session, outcome=recounted)  # one count all over the page
    shown, opened = session.outcome, session.opened
    return SessionView(
        id=session.id,
        title=_title(session.question),
        question=readable(session.question),
        status=session.status if closed else "under way",
        missing=_missing(session, naming) if closed else (),
        simulated=session.simulated,
        asked_at=f"{opened.at:%Y-%m-%d %H:%M} UTC",
        files=clean(listed([*opened.files], most=20)),
        notes=_notes(session, naming),
        parent=_parent(session, naming),
        children=tuple(children),
        judges=_judges(session, naming),
        votes=tuple(_vote(ballot, naming) for ballot in votes),
        trust=_trust(session, naming, again) if closed else (),
        figures=tuple(_figures(session)),
        lanes=lanes(_board(session), naming),
        verdict=verdict(session, naming, recounted=again is not None),
        said="" if shown is None else naming.said(shown.interpretation),
        agreement=() if shown is None else (agreement(shown, naming),),
        ranking=() if shown is None else ranking_blocks(shown, naming, own if again else None),
        recounted=again,
        matrix=matrix(session, naming, without=without, closed=closed),
        answers=answers(session, naming),
        unanswered=unanswered(session, naming) if closed else (),
        veiled=naming.veiled,
        rule=shown.rule if shown is not None else "",
        without=tuple(map(naming.value, without)),
        rules=session_rules(),
        retry=_to_retry(session, naming),
        may_follow=session.text is not None,
        council=council_of(opened, councils),
        naming=naming,
    )


def _parent(session: Session, naming: Naming) -> tuple[str, str, str] | None:
    opened = session.opened
    if opened.parent is None:
        return None
    again = f"{naming.listed(opened.retried)} asked again" if opened.retried else ""
    return AS_CHILD[opened.relation], opened.parent, again


def _trust(session: Session, naming: Naming, again: Recounted | None) -> tuple[str, ...]:
    line = session_trust(session)
    note = f": {'; '.join(session.missing)}"
    said = naming.said(line.removesuffix(note)).split(" · ")
    return (*said, again.how) if again else tuple(said)


def _missing(session: Session, naming: Naming) -> tuple[str, ...]:
    parts = [*map(naming.said, session.missing)]
    # In the order of the seats, labels would tell who is who.
    return tuple(sorted(parts) if naming.veiled else parts)


def _notes(session: Session, naming: Naming) -> tuple[str, ...]:
    seated = len(session.opened.notes)
    parts = [*map(naming.said, session.notes)]
    odd = sorted(parts[seated:]) if naming.veiled else parts[seated:]
    return (*parts[:seated], *odd)


def _judges(session: Session, naming: Naming) -> str:
    jury = [seat.name for seat in session.opened.jury]
    return f"judged by {naming.listed(jury, most=len(jury))}" if jury else ""


def _vote(ballot: Ballot, naming: Naming) -> VoteView:
    # While names are hidden, whoever is still to vote is told no order.
    groups = () if naming.veiled else ballot.groups
    order = " > ".join(" = ".join(map(naming.name, group)) for group in groups)
    notes = "" if naming.veiled else readable(ballot.notes or "")
    return VoteView(clean(ballot.reviewer), order, notes)


def _title(question: str) -> str:
    line = clean(" ".join(question.split()))
    return line if len(line) <= 80 else f"{line[:79]}…"


def _board(session: Session) -> Board:
    board = Board()
    for event in session.events:
        board = board.after(event)
    return board.settled()


def _figures(session: Session) -> list[Figure]:
    """Return the two numbers that are never one, and what the votes are worth."""
    outcome = session.outcome
    if outcome is None or not outcome.leaders:
        return []
    sure = outcome.standings[0].p_best
    words = [*reliability_text(session)]
    reliable = session.reliability.value
    worth = outcome.effective_votes
    return [
        Figure(
            "agreement",
            "unknown" if sure is None else p_best_text(sure),
            "the chance that another draw of such reviewers would choose the same",
        ),
        Figure(
            "reliability",
            "unknown" if reliable is None else f"{number(100 * reliable, 0)}%",
            "until there are votes of people to compare with" if reliable is None else words[-1],
        ),
        Figure(
            "votes",
            str(outcome.n_ballots),
            "what they are worth is unknown: reviewers may share their mistakes"
            if worth is None
            else f"worth {number(worth, 1)} independent ones, {_sharing(outcome)}",
        ),
    ]


def _sharing(outcome: Outcome) -> str:
    if outcome.rho is None:
        return "as nothing is shared"
    return (
        f"{'assuming' if outcome.rho_is_assumed else 'at'} a shared error of {number(outcome.rho)}"
    )


def _recounted(
    before: Outcome | None, after: Outcome | None, without: tuple[str, ...], naming: Naming
) -> Recounted | None:
    if after is None:
        return None
    left_out = f", without {naming.listed(without)}" if without else ""
    how = f"counted again by {after.rule}{left_out}"
    was = _leading(before, naming)
    now = _leading(after, naming)
    led = set() if before is None else set(before.leaders)
    if led == set(after.leaders):
        return Recounted(how, f"{now}, as before", changed=False)
    return Recounted(how, f"{now}; as the session counted, {was}", changed=True)


def _leading(outcome: Outcome | None, naming: Naming) -> str:
    if outcome is None or not outcome.leaders:
        return "nobody leads"
    names = naming.listed(outcome.leaders)
    if len(outcome.leaders) > 1:
        return f"{names} share the first place"
    tied = [name for name in outcome.tied_for_best if name not in outcome.leaders]
    apart = f", too close to call against {naming.listed(tied)}" if tied else ""
    return f"{names} leads{apart}"


@lru_cache(maxsize=1)
def session_rules() -> tuple[str, ...]:
    """Return every rule that a single session can be counted by."""
    return tuple(sorted(name for name in RULES if RULES[name].needs != "history"))


def _to_retry(session: Session, naming: Naming) -> tuple[tuple[str, str], ...]:
    """Seats that did not answer, and reviewers that cast no ballot though they were awaited."""
    silent = [ballot.reviewer for ballot in session.ballots if ballot.abstained]
    failed = dict.fromkeys((*session.unanswered, *silent))
    result = [(naming.value(seat), naming.name(seat)) for seat in failed]
    return tuple(sorted(result, key=itemgetter(1)) if naming.veiled else result)
