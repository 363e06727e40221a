"""Times as people write them: so long ago, a day, or to the second."""

import re
from datetime import UTC, datetime, timedelta

from witan.errors import InvalidParameter
from witan.service.parameters import Parser

__all__ = ["EXPECTED", "MOMENT", "moment"]

EXPECTED = "so long ago (30d, 12h, 2w), a day (2026-01-31) or a time (RFC 3339)"

_SPAN = re.compile(r"(\d+(?:\.\d+)?)([hdw])")

_UNITS = {"h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}


def _parsed(text: str) -> datetime | None:
    try:
        return moment("time", text)
    except InvalidParameter:
        raise ValueError(EXPECTED) from None


MOMENT = Parser(_parsed, EXPECTED)
"""How a time is written in a parameter."""


def moment(name: str, text: str | None) -> datetime | None:
    """The time that the text of a parameter says, in UTC if unsaid; None: there is no text.

    Raises
    ------
    InvalidParameter
        If it is no time.
    """
    if text is None:
        return None
    written = text.strip()
    try:
        if (span := _SPAN.fullmatch(written)) is not None:
            return datetime.now(UTC) - float(span[1]) * _UNITS[span[2]]
        read = datetime.fromisoformat(written)
        return (read if read.tzinfo is not None else read.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        raise InvalidParameter(name, text, EXPECTED) from None
