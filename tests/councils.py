"""Councils of scripted members, and a clock that tests can foretell."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from witan.core.settings import Settings
from witan.deliberation.council import BaseCouncil
from witan.deliberation.ports import Member, Price, SystemClock
from witan.deliberation.procedure import Limits, Procedure
from witan.models.scripted import Line, ScriptedModel

QUESTION = "Which sea is the saltiest?"


class CountingClock:
    """A clock that is a second further each time it is asked for the time of day."""

    def __init__(self) -> None:
        self._asked = 0

    def now(self) -> datetime:
        self._asked += 1
        return datetime(2026, 3, 1, 12, tzinfo=UTC) + timedelta(seconds=self._asked)

    def seconds(self) -> float:
        return 0.0


def says(name: str) -> str:
    """What the member of this name answers."""
    return f"The saltiest sea, says {name}, is sea number {ord(name[-1])}."


def member(name: str, order: str = "", **script: Any) -> Member:
    """A scripted member that prefers the answers of the members in `order`, best first."""
    lines = {
        "answers": [says(name)],
        "reviews": [Line(prefers=tuple(f"says {each}," for each in order))],
        "synthesis": [f"{name} sums up: [A]."],
    }
    model = ScriptedModel(name, **{**lines, **script})
    return Member(name, model, f"script:{name}", "script", price=Price(0, 0), simulated=True)


def members(names: str = "abcde", order: str = "cabde") -> list[Member]:
    """Members of these one-letter names, of one mind on the order of the answers."""
    return [member(name, order) for name in names]


def council(
    seated: Sequence[Member],
    chairmen: Sequence[Member] = (),
    *,
    jury: Sequence[Member] = (),
    clock: Any = None,
    **options: Any,
) -> BaseCouncil:
    """A council under the given options of procedure, limits and counting."""
    limits = {k: options.pop(k) for k in list(options) if k in Limits.__slots__}
    counting = {k: options.pop(k) for k in list(options) if k not in Procedure.__slots__}
    procedure = Procedure(counting=Settings.of(**counting), limits=Limits(**limits), **options)
    return BaseCouncil(seated, chairmen, procedure, jury=jury, clock=clock or SystemClock())
