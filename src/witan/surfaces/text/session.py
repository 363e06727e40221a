"""A session as text: its final answer, its line of trust, and everything it produced."""

import re
from collections.abc import Iterator, Mapping, Sequence

from witan.core.ballot import Ballot
from witan.core.rubric import Rubric, overall
from witan.core.scale import HOLISTIC, Scale, read_grade
from witan.deliberation import events as e
from witan.deliberation.ports import Seat
from witan.deliberation.session import Session
from witan.service.text import Page, counted, listed, number
from witan.service.trust import duration_text, session_trust
from witan.surfaces.report.outcome import outcome_report
from witan.surfaces.report.text import report_text

__all__ = ["legend_text", "overall_grade", "relation_text", "session_text", "votes_text"]

AS_CHILD: Mapping[str | None, str] = {
    "rejudged": "rejudges the answers of",
    "retried": "retries",
    "continued": "goes on from",
    None: "came of",
}
"""The sentence that leads to a session's parent, by their relation."""


def relation_text(relation: str | None, parent: str) -> str:
    """Name the parent of a session and its relation to it."""
    return f"{AS_CHILD.get(relation, AS_CHILD[None])} {parent}"


def session_text(
    page: Page, session: Session, came_of_it: Sequence[str] = (), votes: Sequence[Ballot] = ()
) -> Iterator[str]:
    """The lines of a session: question, answers, standings, ballots, final answer, trust.

    `came_of_it` says which sessions are known to follow from it, a sentence each; `votes` are the
    ballots that people cast on it later, which its outcome does not count.
    """
    mark = "simulated · " if session.simulated else ""
    head = f"{mark}{session.id} · {session.status} · {session.opened.at:%Y-%m-%d %H:%M} UTC"
    yield page.sentence(head, "bold")
    yield page.prose(session.question)
    if session.opened.files:
        yield page.sentence(f"with {listed([*session.opened.files], most=20)}", "dim")
    if session.opened.category is not None:
        yield page.sentence(f"category {session.opened.category}", "dim", hang=2)
    for note in (*_relations(session), *came_of_it):
        yield page.sentence(note, "dim", hang=2)
    for note in session.notes:
        yield page.sentence(f"note: {note}", "dim", hang=2)
    for seat in session.opened.seats:
        yield ""
        yield from _answer(page, session, seat)
    if any(not ballot.abstained for ballot in session.ballots):
        yield ""
        yield page.sentence(f"{mark}Ballots", "bold")
        yield from _ballots(page, session)
    if votes:
        yield ""
        yield page.sentence("People's votes", "bold")
        yield from votes_text(page, votes, session.opened.procedure.rubric, "members'")
    if session.outcome is not None:
        yield ""
        yield from report_text(page, outcome_report(session.outcome, simulated=session.simulated))
    if session.synthesis is not None:
        yield ""
        yield from _synthesis(page, session, mark)
    yield ""
    yield page.sentence(session_trust(session), hang=2)


def _relations(session: Session) -> Iterator[str]:
    """What the session is to the one that it came of, and who judged in place of its seats."""
    opened = session.opened
    if opened.parent is not None:
        again = f": {listed(opened.retried)} asked again" if opened.retried else ""
        yield f"{relation_text(opened.relation, opened.parent)}{again}"
    if opened.jury:
        jury = [f"{seat.name}{_source(seat)}" for seat in opened.jury]
        yield f"judged by {listed(jury, most=len(jury))}"


def _source(seat: Seat) -> str:
    """How a seat is written, where its name does not say so."""
    told_apart = seat.source and not seat.simulated and not seat.source.endswith(seat.name)
    return f" ({seat.source})" if told_apart else ""


def _answer(page: Page, session: Session, seat: Seat) -> Iterator[str]:
    mark = "simulated · " if seat.simulated else ""
    source = _source(seat)
    answer = session.answers.get(seat.name)
    if answer is None:
        why = session.unanswered[seat.name]
        yield page.sentence(f"{mark}{seat.name}{source} did not answer: {why}", "bold", hang=2)
        return
    told = [counted(len(answer.text.split()), "word"), duration_text(answer.spent.seconds)]
    if answer.round > 1:
        told.append(f"round {answer.round}")
    if answer.cut:
        told.append("cut at its token limit")
    if seat.name in session.failed:
        told.append(f"fails the safety gate: {', '.join(session.failed[seat.name])}")
    yield page.sentence(f"{mark}{seat.name}{source} · {' · '.join(told)}", "bold", hang=2)
    yield page.prose(answer.text.strip("\n"))


def _ballots(page: Page, session: Session) -> Iterator[str]:
    """What each reviewer said, where the candidates stood on its sheet, and what was odd."""
    rubric = session.opened.procedure.rubric
    cast = {event.seat: event for event in session.events if isinstance(event, e.BallotCast)}
    for ballot in session.ballots:
        if ballot.abstained:
            why = ballot.reason or "no reason given"
            abstained = "" if ballot.reviewer in session.outstanding else " abstained"
            yield page.sentence(f"{ballot.reviewer}{abstained}: {why}", hang=2)
            continue
        yield page.sentence(f"{ballot.reviewer}: {_order(ballot, rubric)}", hang=2)
        if ballot.notes:
            yield from _said(page, ballot.notes)
            for key in _keys(session, ballot):
                yield page.sentence(f"  {key}", "dim", hang=4)
        held = cast.get(ballot.reviewer)
        for note in held.notes if held else ():
            yield page.sentence(f"  reader: {note}", "dim", hang=4)
        if held and held.compared:
            pairs = f"{held.flipped} of {counted(held.compared, 'pair')}"
            flips = f"judged {pairs} otherwise when its sheet was turned round"
            yield page.sentence(f"  {flips}", "dim", hang=4)


def _keys(session: Session, ballot: Ballot) -> Iterator[str]:
    """Who stood under each label of a reviewer's sheets, where its notes speak of a label."""
    drawn = [event for event in session.events if isinstance(event, e.SheetDrawn)]
    own = [event for event in drawn if event.sheet.reviewer == ballot.reviewer]
    last = max((event.round for event in own), default=1)
    for sheet in dict.fromkeys(event.sheet for event in own if event.round == last):
        known = "|".join(map(re.escape, sheet.labels))
        if re.search(rf"\b({known})\b", ballot.notes or ""):
            pairs = zip(sheet.labels, sheet.candidates, strict=True)
            yield f"labels of its sheet: {', '.join(f'[{label}] {name}' for label, name in pairs)}"


def votes_text(
    page: Page, votes: Sequence[Ballot], rubric: Rubric, counted_by: str
) -> Iterator[str]:
    """What each person voted, where the candidates stood on the sheet, and who counts instead."""
    for ballot in votes:
        order = _order(ballot, rubric)
        yield page.sentence(f"{ballot.reviewer}: {order}", hang=2)
        if ballot.notes:
            yield from _said(page, ballot.notes)
    yield page.sentence(
        f"The standings are by the {counted_by} ballots; witan recount with --kind all counts "
        "both.",
        "dim",
    )


def _said(page: Page, notes: str) -> Iterator[str]:
    """A reviewer's notes, each line of them indented."""
    for place, line in enumerate(line for line in notes.splitlines() if line.strip()):
        yield page.prose(line if place else f"said: {line}", "dim", indent="  ")


def _order(ballot: Ballot, rubric: Rubric) -> str:
    """``a [place 2, grade 8.5] > b [place 1, grade 7.0]``: places are those on the sheet."""
    places = ballot.positions or {}

    def named(candidate: str) -> str:
        place = [f"place {places[candidate]}"] if candidate in places else []
        grade = overall_grade(ballot, candidate, rubric)
        told = [*place, *([] if grade is None else [f"grade {number(grade, 1)}"])]
        return f"{candidate} [{', '.join(told)}]" if told else candidate

    ranking = " > ".join(" = ".join(map(named, group)) for group in ballot.groups)
    return ranking or f"grades alone, of {listed([*map(named, ballot.grades)], most=20)}"


def overall_grade(ballot: Ballot, candidate: str, rubric: Rubric) -> float | None:
    """One grade for a candidate: by the rubric as far as it is graded by it, else its own."""
    held = ballot.grades.get(candidate)
    scale = Scale() if ballot.scale is None else ballot.scale
    if not isinstance(held, Mapping):
        return None if held is None else read_grade(held, scale.whole)
    names = [criterion.name for criterion in rubric.criteria if criterion.name in held]
    read = {name: read_grade(held[name], scale.of(name)) for name in names}
    weighed = overall(rubric, {name: grade for name, grade in read.items() if grade is not None})
    if weighed.value is not None:
        return weighed.value
    return read_grade(held.get(HOLISTIC), scale.whole)


def _synthesis(page: Page, session: Session, mark: str) -> Iterator[str]:
    held = session.synthesis
    if held is None:
        return
    for chairman, why in held.failed.items():
        yield page.sentence(f"chairman {chairman} failed: {why}", "warning", hang=2)
    by = f"written by {held.chairman}" if held.chairman else "the answer ranked best"
    yield page.sentence(f"{mark}Final answer, {by}", "bold")
    yield page.prose(held.text.strip("\n"))
    if legend := legend_text(session):
        yield page.sentence(legend, "dim", hang=2)


def legend_text(session: Session) -> str:
    """List the member behind each label; empty if the final answer has no label."""
    if session.synthesis is None:
        return ""
    held = session.synthesis
    strange = [f"[{label}] no answer" for label in held.unresolved]
    if set(re.findall(r"\w+", held.text)).isdisjoint(held.labels):
        return ", ".join(strange)
    return ", ".join([*(f"[{label}] {seat}" for label, seat in held.labels.items()), *strange])
