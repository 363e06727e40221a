"""The report of a session: question, answers, ballots, ranking, final answer, trust."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from witan.core.ballot import Ballot
from witan.core.outcome import Outcome
from witan.core.rubric import Rubric, overall
from witan.core.scale import HOLISTIC, Scale, read_grade
from witan.deliberation import events as e
from witan.deliberation.ports import Seat
from witan.deliberation.session import Session
from witan.service.text import counted, listed, number
from witan.service.trust import duration_text, session_trust
from witan.surfaces.report.document import Block, Facts, Heading, Note, Quote, Report, Sentence
from witan.surfaces.report.outcome import (
    BY_NAME,
    agreement,
    order_note,
    ranking_blocks,
)
from witan.surfaces.report.sessions import relation_text

if TYPE_CHECKING:
    from witan.service.session_records import CouncilSession

VOTES_SHOWN = 20
"""Votes of people on an imported session that are shown one by one."""


def session_report(result: "Session | CouncilSession") -> Report:
    """Write the report of a session."""
    session = result if isinstance(result, Session) else result.session
    children = {} if isinstance(result, Session) else result.children
    votes = () if isinstance(result, Session) else result.votes
    mark = "simulated · " if session.simulated else ""
    return Report(
        report_title(simulated=session.simulated),
        (session.id, session.status, f"{session.opened.at:%Y-%m-%d %H:%M} UTC"),
        "",
        (
            *_opening(session, children),
            *_answers(session),
            *_ballots(session, mark),
            *vote_blocks(votes, session.opened.procedure.rubric, "members'"),
            *ranking_section(session.outcome, mark),
            *_final_answer(session, mark),
            Facts(tuple(session_trust(session).split(" · "))),
        ),
    )


def report_title(*, simulated: bool) -> str:
    """Title the report of a session."""
    return "Simulated session" if simulated else "Session"


def _opening(session: Session, children: Mapping[str, str]) -> Iterator[Block]:
    opened = session.opened
    yield Quote(session.question)
    if opened.files:
        yield Sentence(f"with {listed([*opened.files], most=20)}", quiet=True)
    if opened.category is not None:
        yield Sentence(f"category {opened.category}", quiet=True)
    if opened.parent is not None:
        again = f": {listed(opened.retried)} asked again" if opened.retried else ""
        yield Sentence(f"{relation_text(opened.relation, opened.parent)}{again}", quiet=True)
    if opened.jury:
        jury = [f"{seat.name}{_source(seat)}" for seat in opened.jury]
        yield Sentence(f"judged by {listed(jury, most=len(jury))}", quiet=True)
    for name, relation in children.items():
        yield Sentence(f"{relation} as {name}", quiet=True)
    for note in session.notes:
        yield Note(note, "warning")


def _source(seat: Seat) -> str:
    """Return the model of a seat, where its name does not say so."""
    differs = seat.source and not seat.simulated and not seat.source.endswith(seat.name)
    return f" ({seat.source})" if differs else ""


def _answers(session: Session) -> Iterator[Block]:
    for at, seat in enumerate(session.opened.seats):
        own = "simulated · " if seat.simulated else ""
        name, key = f"{own}{seat.name}{_source(seat)}", f"answer-{at}"
        answer = session.answers.get(seat.name)
        if answer is None:
            yield Heading(f"{name} did not answer", key)
            yield Sentence(session.unanswered[seat.name])
            continue
        facts = [counted(len(answer.text.split()), "word"), duration_text(answer.spent.seconds)]
        if answer.round > 1:
            facts.append(f"round {answer.round}")
        if answer.cut:
            facts.append("cut at its token limit")
        if seat.name in session.failed:
            facts.append(f"fails the safety gate: {', '.join(session.failed[seat.name])}")
        yield Heading(" · ".join((name, *facts)), key)
        yield Quote(answer.text.strip("\n"))


def _ballots(session: Session, mark: str) -> Iterator[Block]:
    """Yield each ballot, places of candidates on its sheet, the reviewer's notes, and oddities."""
    if all(ballot.abstained for ballot in session.ballots):
        return
    yield Heading(f"{mark}Ballots", "ballots")
    rubric = session.opened.procedure.rubric
    cast = {event.seat: event for event in session.events if isinstance(event, e.BallotCast)}
    for ballot in session.ballots:
        if ballot.abstained:
            why = ballot.reason or "no reason given"
            abstained = "" if ballot.reviewer in session.outstanding else " abstained"
            yield Sentence(f"{ballot.reviewer}{abstained}: {why}")
            continue
        yield Sentence(f"{ballot.reviewer}: {_order(ballot, rubric)}")
        aside = [*_notes(ballot), *_keys(session, ballot)]
        event = cast.get(ballot.reviewer)
        aside += [f"reader: {note}" for note in (event.notes if event else ())]
        if event and event.compared:
            pairs = f"{event.flipped} of {counted(event.compared, 'pair')}"
            aside.append(f"judged {pairs} otherwise when its sheet was turned round")
        if aside:
            yield Quote("\n".join(aside), aside=True)


def _notes(ballot: Ballot) -> Iterator[str]:
    if ballot.notes:
        lines = [line for line in ballot.notes.splitlines() if line.strip()]
        yield from (f"said: {lines[0]}", *lines[1:]) if lines else ()


def _keys(session: Session, ballot: Ballot) -> Iterator[str]:
    """List candidates behind labels of a sheet, if the notes name labels."""
    drawn = [event for event in session.events if isinstance(event, e.SheetDrawn)]
    own = [event for event in drawn if event.sheet.reviewer == ballot.reviewer]
    last = max((event.round for event in own), default=1)
    for sheet in dict.fromkeys(event.sheet for event in own if event.round == last):
        known = "|".join(map(re.escape, sheet.labels))
        if re.search(rf"\b({known})\b", ballot.notes or ""):
            pairs = zip(sheet.labels, sheet.candidates, strict=True)
            yield f"labels of its sheet: {', '.join(f'[{label}] {name}' for label, name in pairs)}"


def vote_blocks(votes: Sequence[Ballot], rubric: Rubric, whose: str) -> Iterator[Block]:
    """Yield each person's vote, and whose ballots count."""
    if not votes:
        return
    yield Heading("People's votes", "votes")
    for ballot in votes[:VOTES_SHOWN]:
        yield Sentence(f"{ballot.reviewer}: {_order(ballot, rubric)}")
        if notes := "\n".join(_notes(ballot)):
            yield Quote(notes, aside=True)
    if (more := len(votes) - VOTES_SHOWN) > 0:
        yield Sentence(f"And {counted(more, 'more vote')}; an export has them.", quiet=True)
    yield Sentence(
        f"The standings are by the {whose} ballots; a recount of all kinds counts both.",
        quiet=True,
    )


def _order(ballot: Ballot, rubric: Rubric) -> str:
    """``a [place 2, grade 8.5] > b [place 1, grade 7.0]``: places are those on the sheet."""
    places = ballot.positions or {}

    def describe(candidate: str) -> str:
        place = [f"place {places[candidate]}"] if candidate in places else []
        grade = overall_grade(ballot, candidate, rubric)
        facts = [*place, *([] if grade is None else [f"grade {number(grade, 1)}"])]
        return f"{candidate} [{', '.join(facts)}]" if facts else candidate

    ranking = " > ".join(" = ".join(map(describe, group)) for group in ballot.groups)
    return ranking or f"grades alone, of {listed([*map(describe, ballot.grades)], most=20)}"


def overall_grade(ballot: Ballot, candidate: str, rubric: Rubric) -> float | None:
    """One grade for a candidate: by the rubric as far as it is graded by it, else its own."""
    given = ballot.grades.get(candidate)
    scale = Scale() if ballot.scale is None else ballot.scale
    if not isinstance(given, Mapping):
        return None if given is None else read_grade(given, scale.whole)
    names = [criterion.name for criterion in rubric.criteria if criterion.name in given]
    read = {name: read_grade(given[name], scale.of(name)) for name in names}
    weighed = overall(rubric, {name: grade for name, grade in read.items() if grade is not None})
    if weighed.value is not None:
        return weighed.value
    return read_grade(given.get(HOLISTIC), scale.whole)


def ranking_section(outcome: Outcome | None, mark: str) -> Iterator[Block]:
    """Write the section on the outcome of a session; nothing without one."""
    if outcome is None:
        return
    yield Heading(f"{mark}Ranking", "ranking")
    yield Sentence(outcome.interpretation)
    yield from ranking_blocks(outcome, BY_NAME)
    yield agreement(outcome, BY_NAME)
    yield from order_note(outcome, BY_NAME)


def _final_answer(session: Session, mark: str) -> Iterator[Block]:
    final = session.synthesis
    if final is None:
        return
    by = f"written by {final.chairman}" if final.chairman else "the answer ranked best"
    yield Heading(f"{mark}Final answer, {by}", "verdict")
    for chairman, why in final.failed.items():
        yield Note(f"chairman {chairman} failed: {why}", "warning")
    yield Quote(final.text.strip("\n"))
    if legend := legend_text(session):
        yield Sentence(legend, quiet=True)


def legend_text(session: Session) -> str:
    """List the member behind each label; empty if the final answer has no label."""
    final = session.synthesis
    if final is None:
        return ""
    strange = [f"[{label}] no answer" for label in final.unresolved]
    if set(re.findall(r"\w+", final.text)).isdisjoint(final.labels):
        return ", ".join(strange)
    return ", ".join([*(f"[{label}] {seat}" for label, seat in final.labels.items()), *strange])
