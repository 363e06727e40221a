"""What came of a session, or how far it came, as a tool replies it; and its progress."""

import json
from contextlib import aclosing
from urllib.parse import quote

from witan.deliberation import events as e
from witan.deliberation.session import Session
from witan.service.error_boundary import as_request
from witan.service.operations.imported_sessions import ImportedSession
from witan.service.operations.results import import_object, verdict_object
from witan.service.session_records import CouncilSession
from witan.service.sessions import RunningSession
from witan.service.text import Page, clean, counted, listed, readable
from witan.service.trust import missing_text, session_trust
from witan.surfaces.mcp.calls import Reply, Report
from witan.surfaces.text.imported_session import imported_text
from witan.surfaces.text.outcome import outcome_text
from witan.surfaces.text.progress import Progress, told_in_short
from witan.surfaces.text.session import legend_text, session_text

__all__ = ["Steps", "address", "follow", "imported", "standing", "verdict", "whole"]

STEPS = e.AnswerDone | e.AnswerFailed | e.BallotCast | e.BallotAbstained | e.SynthesisDone
"""Events by which a session has come a step further."""

PAGE = Page()


class Steps:
    """Counts how far a session has come: answers, ballots, the final answer and the end are steps.

    Attributes
    ----------
    done, total
        Steps that are taken, and all that there will be, if none is saved.
    """

    def __init__(self) -> None:
        self.done, self.total = 0, 1

    def take(self, event: e.Event) -> None:
        """Count an event."""
        if isinstance(event, e.SessionOpened):
            procedure = event.procedure
            answers = 0 if event.answers else len(event.seats) * (1 + procedure.debate_rounds)
            reviews = len(event.reviewers) * procedure.review_rounds
            self.total = answers + reviews + 2
        elif isinstance(event, STEPS):
            self.done += 1
            self.total = max(self.total, self.done + 1)
        elif isinstance(event, e.SessionClosed):
            self.done = self.total


async def follow(running: RunningSession, report: Report) -> None:
    """Report what happens in a session, until nothing follows.

    The number grows with each report, by a whole one where a step was taken, else by less.
    """
    steps, words, told = Steps(), Progress(), 0.0
    async with aclosing(running.stream.follow()) as stream:
        async for each in stream:
            steps.take(each.event)
            if said := words.after(each.event):
                told = steps.done if steps.done > told else told + (steps.done + 1 - told) / 2
                await report(told, steps.total, said)
    if running.stream.closed:
        await report(steps.total, steps.total, "the session is closed")


def address(session: str) -> str:
    """Where the record of a session is read."""
    return f"witan://sessions/{quote(session, safe='')}"


def verdict(session: Session, running: RunningSession | None) -> Reply:
    """The final answer with its trust, and before it what it must not be read without."""
    problem = None if running is None else running.problem
    text = "\n\n".join(part for part in _verdict(session, problem) if part)
    told = {**verdict_object(session, problem), "under_way": False}
    return Reply(text, told, failed=session.text is None)


def _verdict(session: Session, problem: str | None) -> list[str]:
    known = address(session.id)
    return [
        _warning(session),
        *_body(session),
        legend_text(session),
        session_trust(session),
        "" if problem is None else f"It is not in the history: {problem}",
        f"session {session.id} · the whole record: {known}",
    ]


def _warning(session: Session) -> str:
    """What a text must not be read without; empty: it stands for itself."""
    said = ["simulated"] if session.simulated else []
    if missing := missing_text(session):
        said.append(missing)
    if session.status == "interrupted":
        said.append("it can be resumed")
    return clean(" · ".join(said))


def _body(session: Session) -> list[str]:
    if session.text is not None:
        return [readable(session.text.strip("\n"))]
    said = ["There is no final answer."]
    if session.status == "interrupted":  # else it is among what is missing
        said += [clean(f"{seat}: {why}") for seat, why in session.unanswered.items()]
    if session.outcome is not None:
        lines = outcome_text(PAGE, session.outcome, simulated=session.simulated)
        said.append("\n".join(lines))
    return said


def imported(found: ImportedSession, *, full: bool = False) -> Reply:
    """A session that came in as ballots, and what they come to; its record where it is asked for.

    It is no failure that there is no final answer: nobody was to write one.
    """
    known = f"the whole record: {address(found.about.session)}"
    text = "\n".join(imported_text(PAGE, found, as_request))
    told = {**import_object(found), "under_way": False}
    if full:
        told["record"] = json.loads(found.to_json())
    return Reply(f"{text}\n\n{known}", told)


def whole(session: Session, running: RunningSession | None) -> Reply:
    """All of a session, as ``witan show`` prints it, and its record."""
    told = {**verdict_object(session, None if running is None else running.problem)}
    under_way = running is not None and running.under_way
    record = json.loads(CouncilSession(session, under_way=under_way).to_json())
    text = "\n".join(session_text(PAGE, session))
    return Reply(text, {**told, "under_way": under_way, "record": record})


def standing(session: Session, running: RunningSession | None) -> Reply:
    """How far a session has come, line by line, and who leads by now."""
    under_way = running is not None and running.under_way
    steps = Steps()
    for event in session.events:
        steps.take(event)
    voted = sum(not ballot.abstained for ballot in session.ballots)
    opened, outcome = session.opened, session.outcome
    told = {
        "session": session.id,
        "under_way": under_way,
        "status": None if under_way else session.status,
        "simulated": session.simulated,
        "answered": [*session.answers],
        "unanswered": session.unanswered,
        "seats": len(opened.seats),
        "voted": voted,
        "reviewers": len(opened.reviewers),
        "leaders": () if outcome is None else outcome.leaders,
        "tied_for_best": () if outcome is None else outcome.tied_for_best,
        "closing_text": session.synthesis is not None,
        "done": steps.done,
        "total": steps.total,
        "trust": None if under_way else session_trust(session),
    }
    return Reply(_standing(session, voted, under_way=under_way), told)


def _standing(session: Session, voted: int, *, under_way: bool) -> str:
    opened = session.opened
    said = [
        *(["simulated"] if session.simulated else []),
        f"session {session.id} is {'under way' if under_way else session.status}",
        f"{len(session.answers)} of {counted(len(opened.seats), 'answer')}",
        f"{voted} of {counted(len(opened.reviewers), 'ballot')}",
    ]
    if session.outcome is not None and session.outcome.leaders:
        leaders = session.outcome.leaders
        lead = "lead" if len(leaders) > 1 else "leads"
        said.append(f"{clean(listed(leaders))} {lead}{' by now' if under_way else ''}")
    ending = "`result` waits for its end." if under_way else _ending(session)
    return f"{' · '.join(said)}\n\n{told_in_short(session.events)}\n{ending}"


def _ending(session: Session) -> str:
    """Where a session that is over leads to."""
    if session.text is not None:
        return "`result` has its final answer."
    if session.status == "interrupted":
        return "It has no final answer; `resume` takes it up."
    return "It came to no final answer; `result` says why."
