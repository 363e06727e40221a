"""Lines of ballots that could not be read, as text."""

from collections.abc import Iterator, Sequence

from witan.service.ballots import Unread
from witan.service.text import clean, counted

SHOWN = 10
"""Sessions shown in full, and problems that are listed."""


def unread_text(not_read: Sequence[Unread]) -> Iterator[str]:
    """Yield the first lines that could not be read, and how many more there are."""
    for each in not_read[:SHOWN]:
        yield f"not read: line {each.line}: {clean(each.problem)}"
    if more := len(not_read[SHOWN:]):
        yield f"… and {counted(more, 'more line')} could not be read"
