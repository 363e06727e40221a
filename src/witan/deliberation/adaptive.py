"""Adaptive spending: the order of reviewers, and when ballots suffice."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from witan.core.ballot import Ballot
from witan.core.early_stopping import p_lead_settled
from witan.core.outcome import Outcome
from witan.core.sequential import HOPELESS
from witan.core.settings import Settings
from witan.core.verdict import decide, judge_texts, p_pass_settled
from witan.deliberation.events import Judging
from witan.deliberation.ports import Member, Seat

AnySeat = TypeVar("AnySeat", bound=Member | Seat)


SECOND_ORDER = 1 / 3
"""Information of a reviewer's second order, as a share of that of its first.

Where half of a ballot's noise stays in the other order, their mean has the information 4/3.
"""


def order_sheets(
    reviewers: Sequence[AnySeat], settings: Settings, n_orders: int = 1
) -> list[tuple[AnySeat, int]]:
    """Order sheets, as seat and order, the most informative first.

    Reversed sheets come after all first ones. Where reliability is known, that of a more reliable
    reviewer comes before the first sheet of one with less than a third of its weight; but as many
    reviewers as the first look needs begin.
    """
    ranking = order_reviewers(reviewers, settings)
    reliability = settings.reliability or {}
    first_look = settings.looks[0] if settings.looks else len(ranking)
    sheets: list[tuple[AnySeat, int]] = []
    begun: list[AnySeat] = []
    for seat in ranking:
        if n_orders > 1 and reliability and len(begun) >= first_look:
            bar = reliability.get(seat.name, 1.0)
            better = [s for s in begun if reliability.get(s.name, 1.0) * SECOND_ORDER > bar]
            sheets += [(each, 1) for each in better if (each, 1) not in sheets]
        sheets.append((seat, 0))
        begun.append(seat)
    later = [(seat, turn) for turn in range(1, n_orders) for seat in ranking]
    return [*sheets, *(each for each in later if each not in sheets)]


def order_reviewers(reviewers: Sequence[AnySeat], settings: Settings) -> list[AnySeat]:
    """Order reviewers by how informative their ballots are likely to be.

    Models of one maker share errors, so makers take turns. Within a turn the more reliable reviewer
    comes first if reliability is known, else the earlier seat.
    """
    reliability = settings.reliability or {}
    turns: Counter[str] = Counter()
    turn: dict[str, int] = {}
    by_trust = sorted(reviewers, key=lambda each: -reliability.get(each.name, 1.0))
    for seat in by_trust:
        turn[seat.name] = turns[_maker(seat)]
        turns[_maker(seat)] += 1
    return sorted(by_trust, key=lambda each: turn[each.name])


def _maker(seat: Member | Seat) -> str:
    """Return the maker of a seat's model, such as ``openrouter:qwen`` for ``openrouter:qwen/x``.

    Every script, program and model passed as an object counts as a separate maker.
    """
    if not seat.source or seat.provider in ("script", "cmd"):
        return f"seat {seat.name}"
    return seat.source.rpartition("/")[0] or seat.provider


@dataclass(frozen=True, slots=True)
class Look:
    """State of the reviews: settled, hopeless or open.

    Parameters
    ----------
    is_settled
        True if nothing is too close to call.
    p_settled
        Probability that the remaining ballots would settle it.
    leader
        The candidate that is decided on, if any.
    """

    is_settled: bool
    p_settled: float
    leader: str | None

    @property
    def ends(self) -> bool:
        """True if no more ballots should be requested."""
        return self.is_settled or self.p_settled < HOPELESS


def look_at(
    ballots: Sequence[Ballot],
    outcome: Outcome | None,
    settings: Settings,
    judging: Judging | None,
    growth: float,
) -> Look:
    """Look at the ballots so far.

    Parameters
    ----------
    outcome
        Outcome of these ballots; None if they are too few for one.
    settings
        The settings of the count, planned looks included.
    growth
        Ratio of all ballots that may be requested to those received, ≥ 1.
    """
    if outcome is None:
        return Look(is_settled=False, p_settled=1.0, leader=None)
    if judging is None:
        leader = outcome.clear_leader
        if leader is not None or growth <= 1:
            return Look(leader is not None, float(leader is not None), leader)
        return Look(False, p_lead_settled(ballots, outcome, settings, growth), None)
    ballots_cast = [ballot for ballot in ballots if not ballot.abstained]
    mark, expected = judging.pass_mark, judging.expected
    verdict = judge_texts(ballots_cast, outcome, settings, pass_mark=mark, expected=expected)
    if verdict.decision not in (None, "too close to call"):
        return Look(is_settled=True, p_settled=1.0, leader=verdict.text)
    if growth <= 1:
        return Look(is_settled=False, p_settled=0.0, leader=None)
    chances = [1.0]
    if len(verdict.texts) > 1 and verdict.leader is None:
        chances.append(p_lead_settled(ballots_cast, outcome, settings, growth))
    grades = {each.text: each for each in verdict.texts}
    about = grades[verdict.text or verdict.texts[0].text]
    if mark is not None and decide(about.p_pass, verdict.look_level) == "too close to call":
        chance = p_pass_settled(
            ballots_cast, outcome, settings, about.text, pass_mark=mark, growth=growth
        )
        chances.append(chance)
    return Look(is_settled=False, p_settled=min(chances), leader=None)
