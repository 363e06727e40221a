"""Ballots exactly as cast, and the reduction to one opinion per reviewer."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from itertools import chain
from operator import attrgetter
from typing import Literal

from witan.core.display import brief, list_names
from witan.core.scale import Scale
from witan.core.slots import set_by_slots
from witan.errors import InvalidBallot

Groups = tuple[tuple[str, ...], ...]
"""A weak order over candidates: groups, best first; a group is tied."""

Grade = float | str
"""A grade as given: a number, or text such as ``"8"``, ``"8/10"`` or ``"80%"``."""

Kind = Literal["model", "human"]

PEOPLE = "people"
"""The name of all people together, which no single person may have."""


@set_by_slots
@dataclass(frozen=True, slots=True)
class Ballot:
    """One reviewer's say in one session.

    A ballot keeps what was said, mistakes included: labels may be unknown or repeated, grades
    may be text or out of range. `witan.core.interpretation` decides what counts, and says so.

    Parameters
    ----------
    category
        The category of its session.
    at
        When it was cast.
    kind
        Whether a model or a person cast it.
    question
        The question, where the ballot came with it.
    notes
        What is remarkable about it.
    reviewer
        Who cast it.
    groups
        The ranking, best group first; candidates in one group are placed equal. Empty: none given.
    grades
        Per candidate either one holistic grade, or a mapping from criterion to grade, in which
        the key ``overall`` is the reviewer's own holistic grade.
    session
        The question it belongs to.
    abstained, reason
        A seat without a vote, and why.
    candidates
        The roster on offer, in seat order; None when the ballot does not say.
    authors
        Who wrote a candidate, where that is not the candidate's own name.
    positions
        Place on the sheet per candidate, 1-based.
    weight
        Non-negative; 1 by default.
    paired
        The ballot is one comparison of two candidates. A reviewer may cast several in a session,
        and both orders of one pair are one opinion.
    scale
        On which the grades are given; None: recognised over all ballots that are counted together.
    """

    reviewer: str
    groups: Groups = ()
    grades: Mapping[str, Grade | Mapping[str, Grade]] = field(default_factory=dict)
    session: str = ""
    abstained: bool = False
    reason: str | None = None
    candidates: tuple[str, ...] | None = None
    authors: Mapping[str, str] | None = None
    positions: Mapping[str, int] | None = None
    weight: float = 1.0
    category: str | None = None
    at: datetime | None = None
    kind: Kind = "model"
    question: str | None = None
    notes: str | None = None
    paired: bool = False
    scale: Scale | None = None

    def __post_init__(self) -> None:
        # Types say so too, but a ballot may come from code that is not checked.
        reviewer: object = self.reviewer
        grades: object = self.grades
        weight: object = self.weight
        scale: object = self.scale
        plain = type(reviewer) is str and type(grades) is dict and type(weight) is float
        if plain and not self.groups and type(scale) is not str:
            return  # as nearly every ballot is; there may be a million of them
        if not isinstance(reviewer, str):
            raise InvalidBallot(repr(reviewer), "names its reviewer by something but text")
        for group in self.groups:
            members: object = group
            # A string would be read letter by letter, each a candidate.
            if isinstance(members, str) or not all(isinstance(name, str) for name in group):
                raise InvalidBallot(reviewer, f"ranks {group!r}, which is no group of names")
        if isinstance(scale, str):
            object.__setattr__(self, "scale", Scale.parse(scale))
        if not isinstance(grades, Mapping):
            raise InvalidBallot(reviewer, f"grades by {grades!r}, which is no mapping")
        if not isinstance(weight, int | float):
            raise InvalidBallot(reviewer, f"weighs {weight!r}, which is no number")

    def __repr__(self) -> str:
        of = f" in {brief(str(self.session))}" if self.session else ""
        if self.abstained:
            vote = "abstains"
        elif self.groups:
            vote = brief(" > ".join(" = ".join(group) for group in self.groups))[1:-1]
        else:
            vote = f"grades {list_names(map(str, self.grades), most=2) or 'nobody'}"
        return f"<Ballot of {brief(self.reviewer)}{of}: {vote}>"

    def with_scale(self, scale: Scale) -> "Ballot":
        """Return the ballot with this scale.

        It does what `replace` does in a third of the time.
        """
        return Ballot(*(*_BEFORE_SCALE(self), scale))

    def candidate_names(self) -> tuple[str, ...]:
        """Every candidate named on the ballot, in the order of first mention."""
        names = chain(self.candidates or (), chain.from_iterable(self.groups), self.grades)
        return tuple(dict.fromkeys(names))


_BEFORE_SCALE = attrgetter(*[each.name for each in fields(Ballot)][:-1])


def is_unnamed(person: str) -> bool:
    """Recognise the names of unnamed voters: ``human``, ``human-2`` and so on."""
    return re.fullmatch(r"human(-\d+)?", person, re.IGNORECASE) is not None


def one_opinion_each(
    session: str, ballots: Sequence[Ballot], warnings: list[str]
) -> tuple[list[Ballot], dict[str, tuple[int, int]]]:
    """Keep each reviewer's last ballot; merge both orders of a pair.

    Comparisons that are battles (`are_battles`) all count, each by itself.
    """
    ballots_by_reviewer: dict[str, Ballot] = {}
    battles: list[Ballot] = []
    are_comparisons = are_battles(session, ballots)
    if are_comparisons:
        warnings.append(
            "the comparisons name no session, and some judge a pair again in the same order; each "
            "counts as a battle of its own (a column session or prompt groups them)"
        )
    pairs: dict[tuple[str, frozenset[str]], dict[tuple[str, ...], Ballot]] = {}
    for ballot in ballots:
        if ballot.paired and are_comparisons:
            battles.append(ballot)
        elif ballot.paired:
            pair = shown_pair(ballot)
            opinions = pairs.setdefault((ballot.reviewer, frozenset(pair)), {})
            if pair in opinions:
                warnings.append(
                    f"{ballot.reviewer} judged {pair[0]} against {pair[1]} more than once in the "
                    "same order; the last counts"
                )
            opinions[pair] = ballot
        else:
            if ballot.reviewer in ballots_by_reviewer:
                warnings.append(f"{ballot.reviewer} cast more than one ballot; the last counts")
                del ballots_by_reviewer[ballot.reviewer]
            ballots_by_reviewer[ballot.reviewer] = ballot
    merged = [*ballots_by_reviewer.values(), *battles]
    order_counts: Counter[str] = Counter()
    n_both_orders: Counter[str] = Counter()
    for (reviewer, _), opinions in pairs.items():
        opinion, order_kept = _merge_orders(list(opinions.values()))
        merged.append(opinion)
        if order_kept is not None:
            n_both_orders[reviewer] += 1
            order_counts[reviewer] += order_kept
    return merged, {
        reviewer: (order_counts[reviewer], n_both_orders[reviewer]) for reviewer in n_both_orders
    }


def are_battles(session: str, ballots: Sequence[Ballot]) -> bool:
    """True if comparisons are of different answers: a pair is judged again.

    A reviewer says once in a session which of two answers in one order it prefers. Comparisons
    that name no session and repeat one are of answers to different questions.
    """
    if session:
        return False
    pairs: set[tuple[str, tuple[str, ...]]] = set()
    for ballot in ballots:
        if ballot.paired:
            opinion = (ballot.reviewer, shown_pair(ballot))
            if opinion in pairs:
                return True
            pairs.add(opinion)
    return False


def shown_pair(ballot: Ballot) -> tuple[str, ...]:
    """Return the two candidates of a comparison in sheet order."""
    names = ballot.candidate_names()
    positions = ballot.positions or {}
    return tuple(sorted(names, key=lambda name: (positions.get(name, 0), name)))


def _merge_orders(opinions: list[Ballot]) -> tuple[Ballot, bool | None]:
    """Merge both orders of a pair.

    Equal votes count once; a flip is a tie.
    """
    voted = [ballot for ballot in opinions if not ballot.abstained]
    if len(voted) < 2:
        return (voted or opinions)[0], None
    first, second = voted
    if [set(group) for group in first.groups] == [set(group) for group in second.groups]:
        return first, True
    level = (tuple(sorted(shown_pair(first))),)
    return replace(first, groups=level), False
