"""The ballots: a row per reviewer, a column per candidate; and each review in full."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from markupsafe import Markup

from witan.core.ballot import Ballot
from witan.core.outcome import BallotNote
from witan.deliberation import events as e
from witan.deliberation.session import Authorship, Session
from witan.service.text import counted, number, readable
from witan.surfaces.report.session import overall_grade
from witan.surfaces.views.naming import Naming
from witan.surfaces.web.markdown import rendered

__all__ = ["Matrix", "MatrixCell", "MatrixRow", "ReviewView", "matrix"]

Groups = tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class MatrixCell:
    """One reviewer's rank and grades of one candidate.

    Parameters
    ----------
    rank
        On its ballot, its own answer left out; empty: it did not rank it.
    equal
        It shares that rank.
    grade, place
        The grade, and the place on the sheet; empty: unknown.
    own
        The reviewer wrote it.
    shade
        From 1, its best, to 5, its worst; 0: not ranked.
    """

    rank: str = ""
    equal: bool = False
    grade: str = ""
    place: str = ""
    own: bool = False
    shade: int = 0

    @property
    def spoken(self) -> str:
        """The cell in words, for whoever hears the page."""
        if self.own:
            return "its own answer"
        if not (self.rank or self.grade):
            return "not ranked"
        ranked = f"rank {self.rank}{', shared' if self.equal else ''}" if self.rank else ""
        grade = f"grade {self.grade}" if self.grade else ""
        place = f"place {self.place} on its sheet" if self.place else ""
        return ", ".join(part for part in (ranked, grade, place) if part)


@dataclass(frozen=True, slots=True)
class ReviewReply:
    """One text that a reviewer wrote, and what it is."""

    title: str
    text: str


@dataclass(frozen=True, slots=True)
class ReviewView:
    """Everything that is known of one reviewer's review.

    Parameters
    ----------
    order
        The ballot in one line.
    sheets
        What it saw, once or in two orders: label, then whose answer it was.
    facts
        Sentences of ours: how it was read, what was overlooked, how far it agrees.
    notes
        What the reviewer itself said beside its ranking.
    """

    order: str
    sheets: tuple[tuple[tuple[str, str], ...], ...]
    facts: tuple[str, ...]
    notes: Markup | None
    replies: tuple[ReviewReply, ...]


@dataclass(frozen=True, slots=True)
class MatrixRow:
    """One reviewer.

    Parameters
    ----------
    value
        What stands for the reviewer in forms and addresses.
    abstained
        Why there is no ballot; empty: there is one.
    outstanding
        The session was interrupted before its review: it did not abstain.
    pending
        It may still come.
    left_out
        Its ballot is not in the count that is shown.
    """

    key: int
    reviewer: str
    value: str
    cells: tuple[MatrixCell, ...]
    abstained: str
    outstanding: bool
    pending: bool
    left_out: bool
    weight: str
    review: ReviewView


@dataclass(frozen=True, slots=True)
class Matrix:
    """All ballots of a session; `begun`: some reviewer is done."""

    candidates: tuple[tuple[str, str], ...]
    rows: tuple[MatrixRow, ...]
    cast: int
    begun: bool


@dataclass(slots=True)
class _ReviewerEvents:
    """Events of one reviewer, folded."""

    sheets: list[e.SheetDrawn] = field(default_factory=list)
    repairs: list[e.BallotRepaired] = field(default_factory=list)
    cast: e.BallotCast | None = None
    abstained: e.BallotAbstained | None = None
    failed: bool = False


def matrix(
    session: Session, naming: Naming, *, without: tuple[str, ...] = (), closed: bool = True
) -> Matrix:
    """Return the ballots of a session as far as it came; unless `closed`, more may come."""
    heard = _fold_events(session)
    notes = () if session.outcome is None else naming.in_order(session.outcome).ballots
    counted_as = {note.reviewer: note for note in notes}
    candidates = [*naming.ordered(session.answers)]
    own = Authorship.of(session.opened).own
    rows = []
    outstanding = session.outstanding
    cast = {ballot.reviewer: ballot for ballot in session.ballots}
    for key, reviewer in enumerate(naming.ordered(cast)):
        ballot = cast[reviewer]
        told = heard.get(ballot.reviewer, _ReviewerEvents())
        note = counted_as.get(ballot.reviewer)
        groups = note.ranking if note else _without(ballot, own.get(ballot.reviewer, ()))
        cells = _cells(session, ballot, groups, candidates, own.get(ballot.reviewer, ()))
        # Who did not answer reviews nobody; who fails in a debate keeps the answer it had.
        mute = told.failed and ballot.reviewer not in session.answers
        pending = not (closed or mute) and ballot.abstained and told.abstained is None
        rows.append(
            MatrixRow(
                key=key,
                reviewer=naming.name(ballot.reviewer),
                value=naming.value(ballot.reviewer),
                cells=cells,
                abstained=_why(ballot, naming),
                outstanding=ballot.reviewer in outstanding,
                pending=pending,
                left_out=ballot.reviewer in without,
                weight="" if note is None or note.weight == 1 else f"{note.weight:.2f}",
                review=_review(ballot, told, groups, note, naming),
            )
        )
    named = tuple((naming.name(each), naming.answer_at(each)) for each in candidates)
    begun = any(told.cast or told.abstained for told in heard.values())
    return Matrix(named, tuple(rows), sum(not each.abstained for each in session.ballots), begun)


def _fold_events(session: Session) -> Mapping[str, _ReviewerEvents]:
    heard: dict[str, _ReviewerEvents] = {}
    for event in session.events:
        match event:
            case e.SheetDrawn():
                heard.setdefault(event.sheet.reviewer, _ReviewerEvents()).sheets.append(event)
            case e.BallotRepaired():
                heard.setdefault(event.seat, _ReviewerEvents()).repairs.append(event)
            case e.BallotCast():
                heard.setdefault(event.seat, _ReviewerEvents()).cast = event
            case e.BallotAbstained():
                heard.setdefault(event.seat, _ReviewerEvents()).abstained = event
            case e.AnswerStarted() | e.AnswerFailed():
                failed = isinstance(event, e.AnswerFailed)
                heard.setdefault(event.seat, _ReviewerEvents()).failed = failed
            case _:
                pass
    return heard


def _without(ballot: Ballot, own: tuple[str, ...]) -> Groups:
    kept = (tuple(name for name in group if name not in own) for group in ballot.groups)
    return tuple(group for group in kept if group)


def _cells(
    session: Session,
    ballot: Ballot,
    groups: Groups,
    candidates: list[str],
    own: tuple[str, ...],
) -> tuple[MatrixCell, ...]:
    ranks: dict[str, tuple[int, bool]] = {}
    for group in groups:
        rank = len(ranks) + 1
        ranks |= dict.fromkeys(group, (rank, len(group) > 1))
    rubric = session.opened.procedure.rubric
    places = ballot.positions or {}
    cells = []
    for name in candidates:
        if name in own:
            cells.append(MatrixCell(own=True))
            continue
        rank, equal = ranks.get(name, (0, False))
        grade = overall_grade(ballot, name, rubric)
        cells.append(
            MatrixCell(
                rank=str(rank) if rank else "",
                equal=equal,
                grade="" if grade is None else number(grade, 1),
                place=str(places[name]) if name in places else "",
                shade=1 + 4 * (rank - 1) // max(len(ranks) - 1, 1) if rank else 0,
            )
        )
    return tuple(cells)


def _why(ballot: Ballot, naming: Naming) -> str:
    if not ballot.abstained:
        return ""
    return naming.said(ballot.reason or "no reason given")


def _review(
    ballot: Ballot, told: _ReviewerEvents, groups: Groups, note: BallotNote | None, naming: Naming
) -> ReviewView:
    order = " > ".join(" = ".join(map(naming.name, naming.ordered(group))) for group in groups)
    last = max((event.round for event in told.sheets), default=1)
    seen = [event.sheet for event in told.sheets if event.round == last]
    notes = rendered(naming.notes(ballot.notes)) if ballot.notes else None
    return ReviewView(
        order=order,
        sheets=tuple(
            tuple((label, naming.name(each)) for label, each in zip(*pair, strict=False))
            for pair in ((sheet.labels, sheet.candidates) for sheet in seen)
        ),
        facts=tuple(map(naming.said, _facts(told, note))),
        notes=notes,
        replies=tuple(_replies(told, naming)),
    )


def _facts(told: _ReviewerEvents, note: BallotNote | None) -> list[str]:
    facts = []
    if told.cast is not None:
        how = {
            "schema": "The reply is as the schema asks.",
            "tolerant": "The reply is not as the schema asks; the ballot was looked for in it.",
        }
        facts.append(how[told.cast.read_by])
        facts += [f"Reader: {each}" for each in told.cast.notes]
        if told.cast.compared:
            pairs = counted(told.cast.compared, "pair")
            facts.append(
                f"It judged {told.cast.flipped} of {pairs} otherwise when its sheet was turned "
                "round."
            )
        if told.cast.lost:
            facts.append(f"Only one of its two orders could be read: {told.cast.lost}.")
    facts += [f"It was asked again: {each.problem}." for each in told.repairs]
    if note is not None and note.tau is not None:
        facts.append(
            f"Kendall's τ with the ranking is {number(note.tau)} (1 the same, −1 the reverse)."
        )
    if note is not None and note.mismatch:
        facts.append("Its ranking and its grades contradict each other in some pair.")
    return facts


def _replies(told: _ReviewerEvents, naming: Naming) -> list[ReviewReply]:
    def reply(title: str, text: str) -> ReviewReply:
        return ReviewReply(title, readable(naming.quoted(text)))

    result = [reply("First reply, which could not be read", each.reply) for each in told.repairs]
    last = told.cast or told.abstained
    for turn, text in enumerate(last.replies if last else (), start=1):
        which = f" {turn}, one of two orders" if last and len(last.replies) > 1 else ""
        if not any(text == each.reply for each in told.repairs):
            result.append(reply(f"Reply{which}", text))
    return result
