"""A session that came into the history as ballots: what is known of it, and how they count."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from witan.core.outcome import Outcome
from witan.core.settings import Settings
from witan.core.tally import tally_sessions
from witan.deliberation.teaching import with_learned
from witan.errors import UnknownName
from witan.surfaces.render import outcome_text
from witan.surfaces.text import Page

if TYPE_CHECKING:
    from witan.adapters.history import History

__all__ = ["imported_outcomes", "imported_text"]


def imported_outcomes(
    history: "History", session: str, settings: Settings, *, without: Sequence[str] = ()
) -> list[Outcome]:
    """Count the ballots of one session; one outcome, if any of them can be counted.

    Noise, shared error and, where the rule asks for it, the reliability of reviewers are learned
    from the other sessions.

    Raises
    ------
    UnknownName
        If a reviewer that is to be left out cast none.
    """
    cast = history.ballots(session)
    reviewers = list(dict.fromkeys(ballot.reviewer for ballot in cast))
    for name in without:
        if name not in reviewers:
            raise UnknownName("reviewer", name, reviewers)
    ballots = [ballot for ballot in cast if ballot.reviewer not in without]
    simulated = history.about(session).simulated
    weighed = settings.rule == "weighted_borda" and settings.reliability is None
    if weighed or "learn" in (settings.prior, settings.rho):
        learned = history.learned(reviewers if weighed else (), without=session)
        graded = any(ballot.grades for ballot in ballots)
        settings = with_learned(settings, learned, "grades" if graded else "ranks")
        settings = replace(settings, reliability=learned.reliability or settings.reliability)
    return [
        replace(outcome, details={**outcome.details, "simulated": simulated})
        for outcome in tally_sessions(ballots, settings)
    ]


def imported_text(
    page: Page, history: "History", session: str, outcomes: Sequence[Outcome]
) -> Iterator[str]:
    """The lines of an imported session: where it is from, question, answers, standings."""
    about = history.about(session)
    mark = "simulated · " if about.simulated else ""
    head = f"{mark}{session} · imported from {about.source} · {about.at:%Y-%m-%d %H:%M} UTC"
    yield page.sentence(head, "bold", hang=2)
    if about.question:
        yield page.prose(about.question)
    for candidate, text in history.answers(session).items():
        yield ""
        yield page.sentence(f"{mark}{candidate}", "bold")
        yield page.prose(text.strip("\n"))
    for outcome in outcomes:
        yield ""
        yield from outcome_text(page, outcome, simulated=about.simulated)
