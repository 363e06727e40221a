"""Write the ballots of a session as a matrix."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil

from witan.core.ballot import Ballot, Grade
from witan.core.outcome import BallotNote, Outcome
from witan.core.rubric import RUBRICS, Rubric, overall
from witan.core.scale import HIGHEST, HOLISTIC, Scale, read_grade
from witan.core.scale_recognition import recognise_scales
from witan.deliberation import events as e
from witan.deliberation.session import Authorship, Session
from witan.errors import UnclearScale
from witan.service.text import list_text, number
from witan.surfaces.live_board import reversal_text
from witan.surfaces.report.document import (
    SHADES,
    BallotCell,
    BallotMatrix,
    Cell,
    Column,
    ReviewRow,
    ReviewState,
    Table,
    table_of,
)
from witan.surfaces.report.names import CandidateNames, SeatNames

READINGS = {
    "schema": "The reply matches the schema.",
    "tolerant": "The reply does not match the schema; the ballot was read from its text.",
}


@dataclass(slots=True)
class _ReviewerEvents:
    """Events of one reviewer, folded."""

    sheets: list[e.SheetDrawn] = field(default_factory=list)
    repairs: list[e.BallotRepaired] = field(default_factory=list)
    ballot: e.BallotCast | None = None
    abstention: e.BallotAbstained | None = None
    failed: bool = False


def ballot_matrix(
    session: Session, names: SeatNames, *, without: tuple[str, ...] = (), is_closed: bool
) -> BallotMatrix:
    """Write the ballots so far; more may come unless `is_closed`."""
    events = _fold_events(session)
    counted_notes = () if session.outcome is None else names.order_outcome(session.outcome).ballots
    notes = {note.reviewer: note for note in counted_notes}
    own_candidates = Authorship.of(session.opening).candidates_by_author
    rubric = session.opening.procedure.rubric
    ballot_by_reviewer = session.reviewer_ballots
    candidates, reviews = rank_candidates(session.answers, session.outcome, names), []
    for reviewer in names.order(ballot_by_reviewer):
        ballot, reviewer_events = ballot_by_reviewer[reviewer], events[reviewer]
        note, own_answers = notes.get(reviewer), own_candidates.get(reviewer, ())
        groups = note.ranking if note else _remove_own(ballot, own_answers)
        # A member without an answer does not review; one that fails in a debate keeps its answer.
        mute = reviewer_events.failed and reviewer not in session.answers
        pending = (
            not (is_closed or mute) and ballot.abstained and reviewer_events.abstention is None
        )
        reviews.append(
            ReviewRow(
                names.name(reviewer),
                _state(session, ballot, is_pending=pending),
                names.sentence(ballot.reason or "no reason given") if ballot.abstained else "",
                tuple(_cells(rubric, ballot, groups, own_answers, candidates)),
                tuple(tuple(map(names.name, names.order(group))) for group in groups),
                "" if note is None or note.weight == 1 else f"{note.weight:.2f}",
                reviewer in without,
                tuple(map(names.sentence, _remarks(reviewer_events, note))),
                tuple(map(names.sentence, _facts(reviewer_events, note))),
                names.quote_notes(ballot.notes or ""),
                _grades_table(rubric, ballot, groups, names),
                tuple(_sheets(reviewer_events, names)),
                tuple(_replies(reviewer_events, names)),
            )
        )
    columns = tuple((names.name(each), names.anchor(each)) for each in candidates)
    return BallotMatrix(columns, tuple(reviews))


MATRIX_SIDE = 64
"""Most reviewers and candidates for a matrix of imported ballots."""


def imported_matrix(
    ballots: Sequence[Ballot], outcome: Outcome, names: CandidateNames, without: Collection[str]
) -> BallotMatrix | None:
    """Write imported ballots as a matrix; None if they do not fit."""
    reviewers = {ballot.reviewer for ballot in ballots}
    if not len(ballots) == len(reviewers) <= MATRIX_SIDE or any(b.paired for b in ballots):
        return None
    try:
        ballots = recognise_scales(ballots)
    except UnclearScale:
        return None
    notes = {note.reviewer: note for note in outcome.ballots}
    named = dict.fromkeys(name for ballot in ballots for name in ballot.candidate_names())
    if len(named) > MATRIX_SIDE:
        return None
    candidates = rank_candidates(named, outcome, names)
    reviews = [
        _imported_review(ballot, notes.get(ballot.reviewer), candidates, names, without)
        for ballot in ballots
    ]
    return BallotMatrix(tuple((each, names.anchor(each)) for each in candidates), tuple(reviews))


def _imported_review(
    ballot: Ballot,
    note: BallotNote | None,
    candidates: tuple[str, ...],
    names: CandidateNames,
    without: Collection[str],
) -> ReviewRow:
    authors, rubric = ballot.authors or {}, RUBRICS["general"]
    own = tuple(name for name in candidates if authors.get(name, name) == ballot.reviewer)
    groups = note.ranking if note else _remove_own(ballot, own)
    counted = {name for group in groups for name in group}
    own = tuple(name for name in own if name not in counted)
    kind = "" if ballot.kind == "model" else ", a person"
    return ReviewRow(
        f"{ballot.reviewer}{kind}",
        "abstained" if ballot.abstained else "cast",
        (ballot.reason or "no reason given") if ballot.abstained else "",
        tuple(_cells(rubric, ballot, groups, own, candidates)),
        groups,
        "" if note is None or note.weight == 1 else f"{note.weight:.2f}",
        ballot.reviewer in without,
        tuple(_remarks(_ReviewerEvents(), note)),
        tuple(_facts(_ReviewerEvents(), note)),
        ballot.notes or "",
        _grades_table(rubric, ballot, groups, names),
        (),
        (),
    )


def rank_candidates(
    candidates: Iterable[str], outcome: Outcome | None, names: CandidateNames
) -> tuple[str, ...]:
    """List candidates, the best first."""
    listed = names.order(candidates)
    lines = () if outcome is None else names.order_outcome(outcome).standings
    ranked = [line.candidate for line in lines if line.candidate in listed]
    return (*ranked, *(each for each in listed if each not in ranked))


def _state(session: Session, ballot: Ballot, *, is_pending: bool) -> ReviewState:
    if not ballot.abstained:
        return "cast"
    if is_pending:
        return "pending"
    return "out" if ballot.reviewer in session.outstanding_reviewers else "abstained"


def _fold_events(session: Session) -> Mapping[str, _ReviewerEvents]:
    events_by_reviewer = defaultdict[str, _ReviewerEvents](_ReviewerEvents)
    for event in session.events:
        match event:
            case e.SheetDrawn():
                events_by_reviewer[event.sheet.reviewer].sheets.append(event)
            case e.BallotRepaired():
                events_by_reviewer[event.seat].repairs.append(event)
            case e.BallotCast():
                events_by_reviewer[event.seat].ballot = event
            case e.BallotAbstained():
                events_by_reviewer[event.seat].abstention = event
            case e.AnswerStarted() | e.AnswerFailed():
                failed = isinstance(event, e.AnswerFailed)
                events_by_reviewer[event.seat].failed = failed
            case _:
                pass
    return events_by_reviewer


def _remove_own(ballot: Ballot, own: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
    groups = (tuple(name for name in group if name not in own) for group in ballot.groups)
    return tuple(group for group in groups if group)


def _cells(
    rubric: Rubric,
    ballot: Ballot,
    groups: tuple[tuple[str, ...], ...],
    own: tuple[str, ...],
    candidates: tuple[str, ...],
) -> Iterator[BallotCell]:
    ranks: dict[str, tuple[int, bool]] = {}
    for group in groups:
        rank = len(ranks) + 1
        ranks |= dict.fromkeys(group, (rank, len(group) > 1))
    places = ballot.positions or {}
    for name in candidates:
        if name in own:
            yield BallotCell(own=True)
            continue
        rank, equal = ranks.get(name, (0, False))
        grade = overall_grade(ballot, name, rubric)
        yield BallotCell(
            rank=str(rank) if rank and len(candidates) > 1 else "",
            equal=equal,
            grade="" if grade is None else number(grade, 1),
            place=str(places[name]) if name in places else "",
            shade=_shade(rank, len(ranks), grade if len(candidates) == 1 else None),
        )


def _shade(rank: int, n_ranks: int, grade: float | None) -> int:
    """Shade a cell by its grade, or by its rank without a grade."""
    if grade is not None:
        return 1 + SHADES - max(1, ceil(SHADES * grade / HIGHEST))
    return 1 + 4 * (rank - 1) // max(n_ranks - 1, 1) if rank else 0


def _grades_table(
    rubric: Rubric, ballot: Ballot, groups: tuple[tuple[str, ...], ...], names: CandidateNames
) -> Table | None:
    """Tabulate a ballot's grades, candidates by criteria, in its order."""
    order = [candidate for group in groups for candidate in names.order(group)]
    unranked = names.order(each for each in ballot.grades if each not in order)
    rows = [each for each in (*order, *unranked) if each in ballot.grades]
    if not rows:
        return None
    by_criterion = [grades for grades in ballot.grades.values() if isinstance(grades, Mapping)]
    in_rubric = [criterion.name for criterion in rubric.criteria]
    used = dict.fromkeys(name for grades in by_criterion for name in grades)
    criteria = [
        *(name for name in in_rubric if name in used),
        *(name for name in used if name not in in_rubric),
    ]
    cells = [[_grade_cell(ballot, row, name) for row in rows] for name in criteria]
    overall_cells = [_shaded(overall_grade(ballot, row, rubric)) for row in rows]
    return table_of(
        "Grades, from 1 to 10",
        [
            (Column("answer", "left", heads=True), [names.name(row) for row in rows]),
            *((Column(name), column) for name, column in zip(criteria, cells, strict=True)),
            (Column("overall"), overall_cells),
        ],
        form="heat",
    )


def _grade_cell(ballot: Ballot, candidate: str, criterion: str) -> Cell:
    grades, scale = ballot.grades[candidate], ballot.scale or Scale()
    grade = grades.get(criterion) if isinstance(grades, Mapping) else None
    return _shaded(None if grade is None else read_grade(grade, scale.of(criterion)))


def _shaded(grade: float | None) -> Cell:
    if grade is None:
        return Cell(None)
    return Cell(number(grade, 1).removesuffix(".0"), shade=max(1, ceil(SHADES * grade / HIGHEST)))


def overall_grade(ballot: Ballot, candidate: str, rubric: Rubric) -> float | None:
    """The overall grade of a candidate: by the rubric, otherwise its own."""
    grades = ballot.grades.get(candidate)
    scale = Scale() if ballot.scale is None else ballot.scale
    if not isinstance(grades, Mapping):
        return None if grades is None else read_grade(grades, scale.whole)
    names = [criterion.name for criterion in rubric.criteria if criterion.name in grades]
    grade_by_name = {name: read_grade(grades[name], scale.of(name)) for name in names}
    weighed = overall(
        rubric, {name: grade for name, grade in grade_by_name.items() if grade is not None}
    )
    if weighed.value is not None:
        return weighed.value
    return read_grade(grades.get(HOLISTIC), scale.whole)


def _remarks(events: _ReviewerEvents, note: BallotNote | None) -> Iterator[str]:
    if (cast := events.ballot) is not None:
        yield from (f"reader: {each}" for each in cast.notes)
        if cast.compared:
            yield reversal_text(cast)
        if cast.lost:
            read = "not all of its pairs" if cast.comparisons else "only one of its two orders"
            yield f"{read} could be read: {cast.lost}"
    yield from (f"asked again: {each.problem}" for each in events.repairs)
    if note is not None and note.mismatch:
        yield "its ranking and its grades disagree on some pair"


def _facts(events: _ReviewerEvents, note: BallotNote | None) -> Iterator[str]:
    if events.ballot is not None:
        yield READINGS[events.ballot.read_by]
    if note is not None and note.tau is not None:
        yield f"Kendall's τ with the ranking is {number(note.tau)} (1 the same, −1 the reverse)."


def _sheets(events: _ReviewerEvents, names: SeatNames) -> Iterator[tuple[tuple[str, str], ...]]:
    last = max((event.round for event in events.sheets), default=1)
    for event in events.sheets:
        if event.round == last:
            pairs = zip(event.sheet.labels, event.sheet.candidates, strict=False)
            yield tuple((label, names.name(each)) for label, each in pairs)


def _replies(events: _ReviewerEvents, names: SeatNames) -> Iterator[tuple[str, str]]:
    for each in events.repairs:
        yield "First reply (unreadable)", names.quote(each.reply)
    last = events.ballot or events.abstention
    replies = () if last is None else last.replies
    for turn, text in enumerate(replies, start=1):
        both = "one of two orders" if len(replies) == 2 else f"of {len(replies)}"
        which = f" {turn}, {both}" if len(replies) > 1 else ""
        if not any(text == each.reply for each in events.repairs):
            yield f"Reply{which}", names.quote(text)


def ballot_line(ballot: Ballot) -> str:
    """Write order and grades: ``a [8] > b [clarity 7, depth 6]``."""

    def write_grade(candidate: str) -> str:
        grade = _grade_text(ballot.grades.get(candidate))
        return f"{candidate} [{grade}]" if grade else candidate

    order = " > ".join(" = ".join(map(write_grade, group)) for group in ballot.groups)
    ranked = {candidate for group in ballot.groups for candidate in group}
    alone = [write_grade(candidate) for candidate in ballot.grades if candidate not in ranked]
    grades = f"grades alone: {list_text(alone, most=20)}" if alone else ""
    return "; ".join(part for part in (order, grades) if part)


def _grade_text(grade: Grade | Mapping[str, Grade] | None) -> str:
    if isinstance(grade, Mapping):
        return ", ".join(f"{criterion} {each}" for criterion, each in grade.items())
    return "" if grade is None else str(grade)
