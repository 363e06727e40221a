"""How much of a ballot file is read, where somebody else sent it."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from witan.errors import TooLarge

__all__ = ["Bounds"]

REMEDY = "count a file of that size by witan tally"


@dataclass(frozen=True, slots=True)
class Bounds:
    """How much there may be of ballots, found out while they are unpacked.

    Parameters
    ----------
    n_bytes, n_lines, line_bytes
        How many bytes and lines there may be once they are unpacked, and how long a line is.
    check_wanted
        Called for every piece that is read; what it raises ends the reading.
    """

    n_bytes: int
    n_lines: int
    line_bytes: int
    check_wanted: Callable[[], None]

    def within(self, pieces: Iterator[bytes]) -> Iterator[bytes]:
        """The same pieces, up to the first that is beyond the bounds.

        Raises
        ------
        TooLarge
            At that one.
        """
        length = lines = line = 0
        for piece in pieces:
            self.check_wanted()
            length += len(piece)
            lines += piece.count(b"\n")
            first = piece.find(b"\n")
            longest = line + (len(piece) if first < 0 else first)
            line = longest if first < 0 else len(piece) - piece.rfind(b"\n") - 1
            self._check("bytes of unpacked ballots", length, self.n_bytes)
            self._check("lines of ballots", lines, self.n_lines)
            self._check("bytes of one line", longest, self.line_bytes)
            yield piece

    def check_table(self, n_rows: int, n_bytes: int) -> None:
        """Refuse a table that says itself that it is beyond the bounds.

        Raises
        ------
        TooLarge
            If it does.
        """
        self._check("rows of ballots", n_rows, self.n_lines)
        self._check("bytes of unpacked ballots", n_bytes, self.n_bytes)

    def _check(self, what: str, size: int, most: int) -> None:
        if size > most:
            # How much more there is, only unpacking the rest would tell.
            raise TooLarge(what, most + 1, most, REMEDY)
