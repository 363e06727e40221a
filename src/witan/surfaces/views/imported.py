"""A session that came in as ballots, as its page shows it: what is known, how they count."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from markupsafe import Markup

from witan.core.ballot import Ballot
from witan.core.outcome import Outcome
from witan.surfaces.render import trust_line
from witan.surfaces.text import clean, counted, readable
from witan.surfaces.views.naming import Naming
from witan.surfaces.views.ranking import Ranking, ranking
from witan.surfaces.views.session import session_rules
from witan.surfaces.web.markdown import rendered

if TYPE_CHECKING:
    from witan.adapters.history import Found

__all__ = ["ImportedView", "imported_view"]

SHOWN = 200
"""Ballots that the page shows; more are in a file."""


@dataclass(frozen=True, slots=True)
class Cast:
    """One ballot in a line; without an order it has a reason."""

    reviewer: str
    kind: str
    order: str
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
    answers
        Place on the page, candidate, and text of each answer that came with it.
    """

    id: str
    title: str
    question: str
    asked_at: str
    source: str
    simulated: bool
    trust: tuple[str, ...]
    ranking: Ranking | None
    casts: tuple[Cast, ...]
    more: int
    answers: tuple[tuple[str, str, Markup], ...]
    rules: tuple[str, ...]
    rule: str
    without: tuple[str, ...]
    recounted: bool


def imported_view(
    about: "Found",
    ballots: Sequence[Ballot],
    answers: Mapping[str, str],
    outcome: Outcome | None,
    *,
    recounted: bool = False,
    without: tuple[str, ...] = (),
) -> ImportedView:
    """The page of an imported session; `outcome` is None where nothing can be counted."""
    naming = Naming.plain([*answers])
    beginning = clean(" ".join(about.question.split()))[:80]
    return ImportedView(
        id=about.session,
        title=beginning or clean(about.session),
        question=readable(about.question),
        asked_at=f"{about.at:%Y-%m-%d %H:%M} UTC",
        source=clean(about.source),
        simulated=about.simulated,
        trust=() if outcome is None else tuple(clean(trust_line(outcome)).split(" · ")),
        ranking=None if outcome is None else ranking(outcome, naming),
        casts=tuple(map(_cast, ballots[:SHOWN])),
        more=max(0, len(ballots) - SHOWN),
        answers=tuple(
            (naming.answer_at(name)[1:], clean(name), rendered(text))
            for name, text in answers.items()
        ),
        rules=session_rules(),
        rule="" if outcome is None else outcome.rule,
        without=without,
        recounted=recounted,
    )


def _cast(ballot: Ballot) -> Cast:
    kind = "a person" if ballot.kind == "human" else ""
    if ballot.abstained:
        return Cast(clean(ballot.reviewer), kind, "", readable(ballot.reason or "no reason given"))
    order = clean(" > ".join(" = ".join(group) for group in ballot.groups))
    order = order or f"{counted(len(ballot.grades), 'grade')} alone"
    return Cast(clean(ballot.reviewer), kind, order, "")
