"""Which file a history was opened in, so that it is noticed when it goes."""

from pathlib import Path

from witan.errors import HistoryError
from witan.history.history import History
from witan.history.sqlite import SqliteDatabase

__all__ = ["OpenedFile"]


class OpenedFile:
    """The file of a history that was just opened; what is written to a removed file is lost."""

    def __init__(self, history: History) -> None:
        database = history.database
        self._path = database.path if isinstance(database, SqliteDatabase) else None
        self._was = None if self._path is None else _identity(self._path)

    def check(self) -> None:
        """Make sure that what was written can be read again.

        Raises
        ------
        HistoryError
            If the file is no longer there, or is another.
        """
        if self._path is not None and _identity(self._path) != self._was:
            problem = "was removed, or replaced, while it was in use"
            remedy = "leave it where it is as long as sessions run"
            raise HistoryError(str(self._path), problem, remedy)


def _identity(path: Path) -> tuple[int, int] | None:
    """Which file it is, whatever it is called; None: there is none."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino
