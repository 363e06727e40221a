"""A form as somebody filled it in: it is shown again with what is wrong, or what it would cost."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from witan.surfaces.web.options import Group

__all__ = ["BLANK", "Filled"]


@dataclass(frozen=True, slots=True)
class Filled:
    """A form as it was filled in.

    Parameters
    ----------
    given
        Field to text; that of boxes has a line for each that is ticked.
    problem
        Why it is refused; empty: it is not.
    faults
        Field to what is wrong with it.
    """

    given: Mapping[str, str] = field(default_factory=dict)
    problem: str = ""
    faults: Mapping[str, str] = field(default_factory=dict)
    status: int = 200

    def said(self, name: str) -> str:
        """What was written in a field."""
        return self.given.get(name, "")

    def ticked(self, name: str) -> list[str]:
        """What was ticked of it."""
        return self.said(name).splitlines()

    def chosen(self, groups: tuple[Group, ...]) -> int:
        """How many options say something."""
        return sum(bool(self.said(each.name).strip()) for g in groups for each in g.options)

    def amiss(self, groups: tuple[Group, ...]) -> bool:
        """Whether one of the options is refused."""
        return any(each.name in self.faults for g in groups for each in g.options)


BLANK = Filled()
"""Nothing is filled in yet."""
