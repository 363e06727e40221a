"""A selection of sessions by time and category."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from witan.errors import InvalidParameter

EARLIEST_US, LATEST_US = -(2**62), 2**62
"""Open ends, in microseconds since 1970: far outside what a time can be, and inside 64 bits."""

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Window:
    """Sessions asked from `since` on and before `until`, of one category.

    Parameters
    ----------
    since, until : datetime, optional
        With a time zone. None: open.
    category : str, optional
        None: all of them, those without one included.

    Raises
    ------
    InvalidParameter
        If a time is none or has no time zone, or `since` is not before `until`.
    """

    since: datetime | None = None
    until: datetime | None = None
    category: str | None = None

    def __post_init__(self) -> None:
        for name in ("since", "until"):
            time: object = getattr(self, name)
            if time is None or (isinstance(time, datetime) and time.utcoffset() is not None):
                continue
            value = time.isoformat() if isinstance(time, datetime) else time
            raise InvalidParameter(name, value, "a time with its zone, such as UTC")
        if self.since is not None and self.until is not None and not self.since < self.until:
            raise InvalidParameter(
                "since", self.since.isoformat(), f"a time before `until`, {self.until.isoformat()}"
            )

    @property
    def since_us(self) -> int:
        """The first microsecond inside, since 1970 in UTC."""
        return EARLIEST_US if self.since is None else _microseconds(self.since)

    @property
    def until_us(self) -> int:
        """The first microsecond past the end, since 1970 in UTC."""
        return LATEST_US if self.until is None else _microseconds(self.until)

    def previous(self) -> "Window | None":
        """The preceding window of equal length; None with an open end.

        It begins no earlier than a time can be.
        """
        if self.since is None or self.until is None:
            return None
        since = self.since.astimezone(UTC)
        length = self.until - since
        room = since - datetime.min.replace(tzinfo=UTC)
        if not room:
            return None
        return Window(since - min(length, room), since, self.category)

    def __str__(self) -> str:
        """Word the window for a sentence: ``from … in the category 'coding'``."""
        parts = [
            f"{word} {time.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
            for word, time in (("from", self.since), ("until", self.until))
            if time is not None
        ]
        if self.category is not None:
            parts.append(f"in the category {self.category!r}")
        return " ".join(parts) if parts else "since the first session"


ALWAYS = Window()
"""Every session there is."""


def _microseconds(time: datetime) -> int:
    return (time - EPOCH) // timedelta(microseconds=1)
