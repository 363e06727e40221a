"""Sessions as a list: what was asked, when, and what came of it."""

from collections.abc import Sequence
from dataclasses import dataclass

from witan.history import SessionSummary
from witan.service.catalogue import redact
from witan.service.sessions import RunningSession
from witan.service.text import clean
from witan.surfaces.report.sessions import cost_of, origin_text, question_beginning, relation_text

UNDER_WAY = "under way"

LONGEST = 160
"""Characters of a question that are shown."""


@dataclass(frozen=True, slots=True)
class SessionLine:
    """One session of a list.

    Parameters
    ----------
    id
        Its whole name, for its address.
    beginning
        Of the question, on one line.
    origin
        The file that it came from, and the session that it came of; empty: neither.
    votable
        There are answers to vote on, and nothing but them is told before.
    """

    id: str
    at: str
    status: str
    beginning: str
    simulated: bool = False
    category: str = ""
    cost: str = ""
    origin: str = ""
    votable: bool = False


def session_rows(
    summaries: Sequence[SessionSummary], under_way: Sequence[RunningSession]
) -> tuple[SessionLine, ...]:
    """Sessions of a history; of those that go on here, it is said.

    Nobody is told who leads: who is to read and vote without knowing who wrote what begins here.
    """
    going = {running.id for running in under_way if running.named}
    return tuple(_row(each, going=each.session in going) for each in summaries)


def latest_rows(
    summaries: Sequence[SessionSummary], at_hand: Sequence[RunningSession], *, most: int
) -> tuple[SessionLine, ...]:
    """Return the latest sessions, those that are kept nowhere yet first."""
    kept = {each.session for each in summaries}
    new = [r for r in reversed(at_hand) if r.named and r.id not in kept]
    going = [running for running in at_hand if running.under_way]
    return (*map(_new, new), *session_rows([*map(redact, summaries)], going))[:most]


def _row(summary: SessionSummary, *, going: bool) -> SessionLine:
    return SessionLine(
        id=summary.session,
        at=f"{summary.at:%Y-%m-%d %H:%M}",
        status=UNDER_WAY if going else summary.status,
        beginning=_beginning(summary.question) or clean(summary.session),
        simulated=summary.simulated,
        category=clean(summary.category or ""),
        cost="" if summary.simulated else cost_of(summary),
        origin=clean(origin_text(summary)),
        votable=summary.has_events and not going and summary.status in ("complete", "degraded"),
    )


def _new(running: RunningSession) -> SessionLine:
    session = running.session
    at = f"{session.opened.at:%Y-%m-%d %H:%M}"
    status = UNDER_WAY if running.under_way else session.status
    beginning = _beginning(session.question)
    category = clean(session.opened.category or "")
    parent, relation = session.opened.parent, session.opened.relation
    return SessionLine(
        running.id,
        at,
        status,
        beginning,
        session.simulated,
        category,
        origin="" if parent is None else clean(relation_text(relation, parent)),
    )


def _beginning(question: str) -> str:
    return question_beginning(clean(question), LONGEST)
