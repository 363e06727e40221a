"""Bounds of recorded fields, declared with their types.

They are checked when records are read. Numbers are finite unless their type allows otherwise.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, Any

from witan.core.escaping import is_blank


@dataclass(frozen=True, slots=True)
class Bound:
    """A condition on a value of the right type.

    Parameters
    ----------
    holds
        Function that returns True for values within the bound.
    expected
        The expected value in words.
    """

    holds: Callable[[Any], bool] = field(repr=False)
    expected: str


LARGEST = 1e300
"""Largest number in results; it keeps their sums and chart axes finite."""

ROUNDING = 1e-9
"""Rounding error allowed in sums of shares."""


Result = Annotated[
    float, Bound(lambda number: -LARGEST <= number <= LARGEST, "a number from -1e300 to 1e300")
]

MAY_BE_INFINITE = Bound(lambda number: abs(number) >= 0, "a number, or inf")
"""Any number except NaN."""

PossiblyInfinite = Annotated[float, MAY_BE_INFINITE]
"""A number that may be infinite in the limit, such as degrees of freedom."""

Amount = Annotated[float, Bound(lambda number: 0 <= number <= LARGEST, "a number, 0 or more")]
"""Money, time or weight."""

Share = Annotated[
    float, Bound(lambda number: -ROUNDING <= number <= 1 + ROUNDING, "a number from 0 to 1")
]

Count = Annotated[int, Bound((0).__le__, "a whole number, 0 or more")]

Ordinal = Annotated[int, Bound((1).__le__, "a whole number, 1 or more")]
"""A number that counts from 1 up."""

VisibleText = Annotated[str, Bound(lambda text: not is_blank(text), "text that is not blank")]
