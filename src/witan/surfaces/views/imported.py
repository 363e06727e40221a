"""A session that came in as ballots, as its page shows it: what is known, how they count."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from witan.core.ballot import Ballot, Grade
from witan.service.operations.imported_sessions import ImportedSession, votes_beside
from witan.service.text import clean, counted, listed, readable
from witan.service.trust import trust_line
from witan.surfaces.report.document import Block
from witan.surfaces.report.outcome import CandidateNames, ranking_blocks
from witan.surfaces.views.answers import is_long
from witan.surfaces.views.session import session_rules
from witan.surfaces.web.markdown import rendered

__all__ = ["ImportedView", "imported_view"]

SHOWN = 200
"""Reviewers that the page shows, and ballots of each; more are in a file."""


@dataclass(frozen=True, slots=True)
class ReviewerBallots:
    """The ballots of one reviewer; without any there is a reason.

    Parameters
    ----------
    amount
        How many ballots; empty: one, or none.
    orders
        Each in a line with its grades, and how often it was cast.
    """

    reviewer: str
    kind: str
    amount: str
    orders: tuple[str, ...]
    reason: str


@dataclass(frozen=True, slots=True)
class ImportedView:
    """Everything on the page of one imported session.

    Parameters
    ----------
    source
        The file that it came from.
    more
        Ballots that are not shown.
    by_models
        People voted, and only the models' ballots are counted.
    answers
        Place on the page, candidate, and text of each answer that came with it, and whether its
        card may not hold it.
    """

    id: str
    title: str
    question: str
    asked_at: str
    source: str
    simulated: bool
    trust: tuple[str, ...]
    said: str
    ranking: tuple[Block, ...]
    casts: tuple[ReviewerBallots, ...]
    more: int
    by_models: bool
    answers: tuple[tuple[str, str, Markup, bool], ...]
    rules: tuple[str, ...]
    rule: str
    without: tuple[str, ...]
    recounted: bool


def imported_view(
    imported: ImportedSession, *, recounted: bool = False, without: tuple[str, ...] = ()
) -> ImportedView:
    """Return the page of an imported session."""
    about, outcome = imported.about, imported.outcome
    ballots, answers = imported.held.ballots, imported.held.answers
    names = CandidateNames({name: at for at, name in enumerate(answers)})
    casts, more = _casts(ballots)
    beginning = clean(" ".join(about.question.split()))[:80]
    return ImportedView(
        id=about.session,
        title=beginning or clean(about.session),
        question=readable(about.question),
        asked_at=f"{about.at:%Y-%m-%d %H:%M} UTC",
        source=clean(about.source),
        simulated=about.simulated,
        trust=() if outcome is None else tuple(clean(trust_line(outcome)).split(" · ")),
        said="" if outcome is None else outcome.interpretation,
        ranking=() if outcome is None else ranking_blocks(outcome, names),
        casts=casts,
        more=more,
        by_models=bool(votes_beside(ballots)),
        answers=tuple(
            (names.answer_at(name)[1:], clean(name), rendered(text), is_long(text))
            for name, text in answers.items()
        ),
        rules=session_rules(),
        rule="" if outcome is None else outcome.rule,
        without=without,
        recounted=recounted,
    )


def _casts(ballots: Sequence[Ballot]) -> tuple[tuple[ReviewerBallots, ...], int]:
    """Return the ballots by reviewer, and how many are not among them."""
    held: dict[tuple[str, str], list[Ballot]] = {}
    for ballot in ballots:
        held.setdefault((ballot.reviewer, ballot.kind), []).append(ballot)
    shown = [*held.values()][:SHOWN]
    more = len(ballots) - sum(len(each[:SHOWN]) for each in shown)
    return tuple(_cast(each) for each in shown), more


def _cast(ballots: Sequence[Ballot]) -> ReviewerBallots:
    first = ballots[0]
    cast = [each for each in ballots if not each.abstained]
    orders = Counter(map(_order, cast[:SHOWN]))
    return ReviewerBallots(
        reviewer=clean(first.reviewer),
        kind="a person" if first.kind == "human" else "",
        amount=counted(len(cast), "ballot") if len(cast) > 1 else "",
        orders=tuple(f"{order} (×{n})" if n > 1 else order for order, n in orders.items()),
        reason="" if cast else readable(first.reason or "no reason given"),
    )


def _order(ballot: Ballot) -> str:
    """``a [8] > b [clarity 7, depth 6]``: the order, and the grades as they were given."""

    def graded(candidate: str) -> str:
        grade = _grade(ballot.grades.get(candidate))
        return f"{candidate} [{grade}]" if grade else candidate

    order = " > ".join(" = ".join(map(graded, group)) for group in ballot.groups)
    ranked = {candidate for group in ballot.groups for candidate in group}
    alone = [graded(candidate) for candidate in ballot.grades if candidate not in ranked]
    grades = f"grades alone: {listed(alone, most=20)}" if alone else ""
    return clean("; ".join(part for part in (order, grades) if part))


def _grade(held: Grade | Mapping[str, Grade] | None) -> str:
    if isinstance(held, Mapping):
        return ", ".join(f"{criterion} {grade}" for criterion, grade in held.items())
    return "" if held is None else str(held)
