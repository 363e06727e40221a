"""A session that came into the history as ballots: what is known of it, and how they count."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from witan.core.ballot import Ballot
from witan.core.outcome import Outcome
from witan.core.settings import Settings
from witan.core.tally import tally_sessions
from witan.deliberation.teaching import with_learned
from witan.errors import UnknownName
from witan.surfaces.render import outcome_text
from witan.surfaces.session_text import votes_text
from witan.surfaces.text import Page, counted

if TYPE_CHECKING:
    from witan.adapters.history import History

__all__ = ["imported_outcomes", "imported_text", "votes_beside"]

VOTES_SHOWN = 20
"""Votes of people that are shown one by one."""


def votes_beside(cast: Sequence[Ballot]) -> list[Ballot]:
    """The ballots of people that an imported session is not counted by: models voted, too."""
    if not any(ballot.kind == "model" and not ballot.abstained for ballot in cast):
        return []
    return [ballot for ballot in cast if ballot.kind == "human"]


def imported_outcomes(
    history: "History",
    session: str,
    settings: Settings,
    *,
    without: Sequence[str] = (),
    named: Collection[str] = (),
) -> list[Outcome]:
    """Count the ballots of one session; one outcome, if any of them can be counted.

    Noise, shared error and, where the rule asks for it, the reliability of reviewers are learned
    from the other sessions. Unless the `kind` is named among the settings that were asked for,
    people's ballots count only where no model voted, as in every session that was held.

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
    if "kind" not in named and votes_beside(cast):
        settings = replace(settings, kind="model")
    ballots = [
        ballot
        for ballot in cast
        if settings.kind in ("all", ballot.kind) and ballot.reviewer not in without
    ]
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
    if votes := votes_beside(history.ballots(session)):
        yield ""
        yield page.sentence("People's votes", "bold")
        yield from votes_text(page, votes[:VOTES_SHOWN], Settings().counting.rubric, "models'")
        if (more := len(votes) - VOTES_SHOWN) > 0:
            yield page.sentence(f"… and {counted(more, 'more vote')}; witan export has them", "dim")
    for outcome in outcomes:
        yield ""
        yield from outcome_text(page, outcome, simulated=about.simulated)
