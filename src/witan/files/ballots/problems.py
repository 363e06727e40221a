"""What is wrong in a ballot file, where, and what was expected."""

from collections.abc import Callable
from dataclasses import dataclass

from witan.core.ballot_records import Unreadable
from witan.errors import BallotFileError

__all__ = ["Problem", "Report"]


@dataclass(frozen=True, slots=True)
class Problem:
    """One flaw of a ballot file; the line (in Parquet: the row) is left out, the others count.

    Parameters
    ----------
    read
        The line counts all the same, as `what` says.
    """

    path: str
    line: int
    field: str | None
    what: str
    read: bool = False

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.told}"

    @property
    def told(self) -> str:
        """The sentence without its place."""
        return self.what if self.field is None else f"field {self.field!r} {self.what}"


class Report:
    """Hands problems on, or raises the first where nobody asked for them.

    Parameters
    ----------
    doubting
        Tell as well what is odd about lines that are read.
    on_note
        Is told how the file is read, where that is not plain from its columns.
    """

    def __init__(
        self,
        path: str,
        on_problem: Callable[[Problem], None] | None,
        *,
        doubting: bool = False,
        on_note: Callable[[str], None] | None = None,
    ) -> None:
        self.path, self.on_problem, self.on_note = path, on_problem, on_note
        self.doubting = doubting and on_problem is not None
        self.n_problems = 0
        self.line = 0

    def __call__(self, line: int, flaw: Unreadable) -> None:
        """Say that `line` has this flaw."""
        self.n_problems += 1
        problem = Problem(self.path, line, flaw.field, flaw.what, flaw.read)
        if self.on_problem is None:
            raise BallotFileError(self.path, problem.told, line) from None
        self.on_problem(problem)

    def note(self, text: str) -> None:
        """Say how the file is read, where that is not plain from its columns."""
        if self.on_note is not None:
            self.on_note(f"{self.path}: {text}")

    def doubt(self, line: int, flaw: Unreadable | None) -> None:
        """Say what is odd about a line that is read, if something is and it is to be told."""
        self.line = line
        if self.doubting and flaw is not None:
            self(line, flaw)
