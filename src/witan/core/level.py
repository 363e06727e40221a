"""The level of an interval, and which levels there are."""

from witan.errors import InvalidParameter

__all__ = ["check_level"]

LEAST = 1e-9
"""How near to 0 or 1 a level may be; nearer, quantiles are infinite or intervals of zero width."""


def check_level(level: float) -> None:
    """Refuse a level that no interval can have.

    Raises
    ------
    InvalidParameter
        If it is not between 0 and 1, or within 10⁻⁹ of either.
    """
    if not 0 < level < 1:
        raise InvalidParameter("level", level, "a number between 0 and 1")
    if not LEAST <= level <= 1 - LEAST:
        raise InvalidParameter("level", level, "a number from 0.000000001 to 0.999999999")
