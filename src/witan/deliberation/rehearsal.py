"""Counting made-up ballots before real ones are paid for."""

from collections import deque
from dataclasses import replace
from typing import Any

from witan.core.ballot import Ballot
from witan.core.rules import RULES
from witan.core.scale import Scale
from witan.core.settings import AUTO, Settings
from witan.core.tally import tally_sessions
from witan.deliberation.procedure import Procedure
from witan.errors import InvalidParameter, NothingToCount, UnsuitableBallots

__all__ = ["check_procedure"]

_went_well: deque[tuple[Settings, bool, bool]] = deque(maxlen=16)
"""Ways of counting that were rehearsed lately: a server seats the same council again and again."""


def check_procedure(procedure: Procedure, n_members: int, n_jurors: int = 0) -> None:
    """Refuse a procedure that a council of this size cannot follow.

    Raises
    ------
    InvalidParameter
        If more ballots or answers are asked for than there are seats, jurors are to review answers
        of their own, or as of `_rehearse`.
    """
    jurors = ("jurors", n_jurors) if n_jurors else ("members", n_members)
    for name, (who, n) in (("quorum", jurors), ("enough", ("members", n_members))):
        most = getattr(procedure, name)
        if most is not None and most > n:
            raise InvalidParameter(name, most, f"at most the {n} {who}")
    if n_jurors and procedure.self_review:
        expected = "False with a jury: its jurors answer nothing, so they have no answers to review"
        raise InvalidParameter("self_review", True, expected)
    _rehearse(procedure, n_members, jury=bool(n_jurors))


def _rehearse(procedure: Procedure, n_members: int, *, jury: bool) -> None:
    """Count ballots as this procedure will get them, so that what cannot be counted is refused.

    With a jury, reviewers see the answers of all members; else those of all others.

    Raises
    ------
    InvalidParameter
        If a parameter of the rule is not accepted, the rule needs grades and none will be asked
        for, or nobody could ever be ranked.
    """
    settings = procedure.counting
    if settings.rule != AUTO and RULES[settings.rule].needs == "history":
        raise InvalidParameter("the rule", settings.rule, "a rule that ranks a single session")
    sees_all = jury or procedure.self_review
    if n_members == 2 and not procedure.graded and not sees_all:
        expected = "at least three members, or grades: of two, each would rank one answer alone"
        raise InvalidParameter("the number of members that only rank", 2, expected)
    rehearsed = (settings, procedure.rubric_scoring, procedure.holistic)
    if rehearsed in tuple(_went_well):  # another thread may be adding to it
        return
    seats = ("a", "b", "c")
    grades: dict[str, Any] = {}
    if procedure.rubric_scoring:
        grades = dict.fromkeys((c.name for c in procedure.rubric.criteria), 5)
    elif procedure.holistic:
        grades = {"overall": 5}
    ballots = [_ballot(seat, seats, grades) for seat in seats]
    try:
        next(tally_sessions(ballots, replace(settings, weights={}, gates={})))
    except UnsuitableBallots as error:
        raise InvalidParameter("the rule", settings.rule, error.remedy) from error
    except NothingToCount as error:
        raise InvalidParameter("kind", settings.kind, "'all' or 'model'") from error
    _went_well.append(rehearsed)


def _ballot(reviewer: str, seats: tuple[str, ...], grades: dict[str, Any]) -> Ballot:
    groups = tuple((seat,) for seat in seats)
    given = {seat: {k: g + n for k, g in grades.items()} for n, seat in enumerate(seats)}
    return Ballot(reviewer, groups, given if grades else {}, candidates=seats, scale=Scale())
