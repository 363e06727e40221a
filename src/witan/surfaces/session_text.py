"""A session as text: its closing text, its line of trust, and everything it produced."""

import re
from collections.abc import Iterator, Mapping, Sequence

from witan.core.approval import Approval
from witan.core.ballot import Ballot
from witan.core.rubric import Rubric, overall
from witan.core.scale import HOLISTIC, Scale, read_grade
from witan.deliberation import events as e
from witan.deliberation.session import Cost, Session
from witan.surfaces.render import outcome_text, p_best_text, trust_line
from witan.surfaces.text import Page, counted, listed, number

__all__ = [
    "cost_text",
    "duration_text",
    "legend_text",
    "missing_text",
    "overall_grade",
    "rankings_text",
    "relation_text",
    "reliability_text",
    "session_text",
    "session_trust",
    "votes_text",
]

AS_CHILD: Mapping[str | None, str] = {
    "rejudged": "rejudges the answers of",
    "retried": "retries",
    "continued": "goes on from",
    None: "came of",
}
"""The sentence that leads to a session's parent, by their relation."""


LEAST_USD = 0.0001
"""Less is not told from nothing in print."""


def relation_text(relation: str | None, parent: str) -> str:
    """Name the parent of a session and its relation to it."""
    return f"{AS_CHILD.get(relation, AS_CHILD[None])} {parent}"


def session_trust(session: Session) -> str:
    """Say who voted, who leads and how firmly, what it cost, and what is missing."""
    parts = ["simulated"] if session.simulated else []
    if session.synthesis is not None and session.synthesis.mode == "verdict":
        parts.append(verdict_text(session.synthesis.approved))
        parts += approval_text(session.approval)
    if session.outcome is not None:
        parts += [trust_line(session.outcome), *reliability_text(session)]
    elif session.answers_agree:
        parts.append(f"all {len(session.answers)} answers are the same, so none was reviewed")
    elif session.status not in ("interrupted", "running"):
        voted = sum(not ballot.abstained for ballot in session.ballots)
        parts.append(f"{voted} of {counted(len(session.ballots), 'reviewer')}")
        parts.append("no outcome")
    if session.outcome is not None:
        parts += [f"{listed(group)} gave the same answer" for group in session.same_answers]
    parts += rankings_text(session)
    if session.failed:
        parts.append(f"{listed([*session.failed])} failed the safety gate")
    # When it was broken off is not known, only when something last happened in it.
    until = " until its last event" if session.status == "interrupted" else ""
    parts += [cost_text(session.cost), f"{duration_text(session.seconds)}{until}"]
    if session.in_vain:
        again = listed([*session.opened.retried])
        parts.append(f"nothing was gained: {again} failed again, and what counts is as before")
    if missing := missing_text(session):
        parts.append(missing)
    return " · ".join(parts)


def rankings_text(session: Session) -> Iterator[str]:
    """Put the ranking before another jury judged beside the jury's own."""
    orders = {
        when: " > ".join(listed(group) for group in ranking)
        for when, ranking in session.rankings.items()
    }
    if not orders:
        return
    if orders["before"] == orders["now"]:
        yield f"ranked as before: {orders['now']}"
    else:
        yield f"ranked before: {orders['before']}; now: {orders['now']}"


def missing_text(session: Session) -> str:
    """The status of a session that is not complete, and what it lacks; else empty."""
    if session.status in ("complete", "running"):
        return "" if session.status == "complete" else "running: it goes on in another process"
    missing = "; ".join(session.missing)
    return f"{session.status}: {missing}" if missing else session.status


def reliability_text(session: Session) -> Iterator[str]:
    """The two numbers that are never one: whether others would say the same, and be right."""
    outcome = session.outcome
    if outcome is None or not outcome.leaders:
        return
    sure = outcome.standings[0].p_best
    yield "agreement unknown" if sure is None else f"agreement {p_best_text(sure)}"
    known = session.reliability
    if known.value is None:
        yield "reliability unknown"
        return
    within = ""
    if known.interval is not None:
        within = f" ({number(100 * known.interval.low, 0)}–{number(100 * known.interval.high, 0)}%)"
    pairs = counted(known.n, "decided pair")
    yield f"matched people on {number(100 * known.value, 0)}% of {pairs} at such agreement{within}"


def verdict_text(approved: bool | None) -> str:
    """The verdict in one word or a few."""
    if approved is None:
        return "neither approved nor rejected"
    return "approved" if approved else "rejected"


def approval_text(approval: Approval | None) -> Iterator[str]:
    """Count the members' votes, and say how surely others like them would vote the same."""
    if approval is None:
        return
    voted = approval.approve + approval.reject
    if not voted:
        yield f"none of {counted(approval.silent, 'member')} gave a verdict"
        return
    verb = "approves" if approval.approve == 1 else "approve"
    yield f"{approval.approve} of {counted(voted, 'member')} {verb}"
    if approval.silent:
        yield f"{approval.silent} gave no verdict"
    if approval.p_majority is not None:
        verdict = "approval" if approval.approved else "rejection"
        yield f"a majority for {verdict} again with probability {number(approval.p_majority)}"


def cost_text(cost: Cost) -> str:
    """``$0.041``; ``at least $0.012`` or ``cost unknown`` where a call's cost is not known."""
    if cost.total_usd is not None:
        return _dollars(cost.total_usd)
    # That it is at least next to nothing would tell nothing.
    known = cost.known_usd >= LEAST_USD
    return f"at least {_dollars(cost.known_usd)}" if known else "cost unknown"


def _dollars(usd: float) -> str:
    if usd == 0:
        return "$0"
    if usd < LEAST_USD:
        return f"under ${LEAST_USD}"
    digits = 2 if usd >= 1 else 3 if usd >= 0.01 else 4
    return f"${usd:,.{digits}f}"


def duration_text(seconds: float) -> str:
    """``4.2 s``, ``38 s``, ``3 min 5 s``."""
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def session_text(
    page: Page, session: Session, came_of_it: Sequence[str] = (), votes: Sequence[Ballot] = ()
) -> Iterator[str]:
    """The lines of a session: question, answers, standings, ballots, closing text, trust.

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
        yield from outcome_text(page, session.outcome, simulated=session.simulated)
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


def _source(seat: e.Seat) -> str:
    """How a seat is written, where its name does not say so."""
    told_apart = seat.source and not seat.simulated and not seat.source.endswith(seat.name)
    return f" ({seat.source})" if told_apart else ""


def _answer(page: Page, session: Session, seat: e.Seat) -> Iterator[str]:
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
    yield page.sentence(f"{mark}Closing text, {by}", "bold")
    yield page.prose(held.text.strip("\n"))
    if legend := legend_text(session):
        yield page.sentence(legend, "dim", hang=2)


def legend_text(session: Session) -> str:
    """List the member behind each label; empty if the closing text has no label."""
    if session.synthesis is None:
        return ""
    held = session.synthesis
    strange = [f"[{label}] no answer" for label in held.unresolved]
    if set(re.findall(r"\w+", held.text)).isdisjoint(held.labels):
        return ", ".join(strange)
    return ", ".join([*(f"[{label}] {seat}" for label, seat in held.labels.items()), *strange])
