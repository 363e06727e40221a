"""What a reviewer said, exactly as cast; nothing is interpreted here."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from itertools import chain
from typing import Literal

from witan.core.scale import Scale
from witan.errors import InvalidBallot

__all__ = ["Ballot", "Grade", "Groups", "Kind", "is_unnamed"]

Groups = tuple[tuple[str, ...], ...]
"""A weak order over candidates: groups, best first; a group is tied."""

Grade = float | str
"""A grade as given: a number, or text such as ``"8"``, ``"8/10"`` or ``"80 %"``."""

Kind = Literal["model", "human"]


@dataclass(frozen=True, slots=True)
class Ballot:
    """One reviewer's say in one session.

    A ballot keeps what was said, mistakes included: labels may be unknown or repeated, grades
    may be text or out of range. `witan.core.interpretation` decides what counts, and says so.

    Parameters
    ----------
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
        if not isinstance(reviewer, str):
            raise InvalidBallot(repr(reviewer), "names its reviewer by something but text")
        for group in self.groups:
            held: object = group
            # A string would be read letter by letter, each a candidate.
            if isinstance(held, str) or not all(isinstance(name, str) for name in group):
                raise InvalidBallot(reviewer, f"ranks {group!r}, which is no group of names")
        scale: object = self.scale
        if isinstance(scale, str):
            object.__setattr__(self, "scale", Scale.parse(scale))
        if not isinstance(grades, Mapping):
            raise InvalidBallot(reviewer, f"grades by {grades!r}, which is no mapping")
        if not isinstance(weight, int | float):
            raise InvalidBallot(reviewer, f"weighs {weight!r}, which is no number")

    def mentioned(self) -> tuple[str, ...]:
        """Every candidate named on the ballot, in the order of first mention."""
        named = chain(self.candidates or (), chain.from_iterable(self.groups), self.grades)
        return tuple(dict.fromkeys(named))


def is_unnamed(person: str) -> bool:
    """Recognise the names of unnamed voters: ``human``, ``human-2`` and so on."""
    return re.fullmatch(r"human(-\d+)?", person, re.IGNORECASE) is not None
