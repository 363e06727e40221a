"""Records of sessions that nothing else keeps: files among the user's state."""

import re
from collections.abc import Iterable
from contextlib import ExitStack
from glob import escape
from itertools import count
from pathlib import Path

from witan.deliberation.session import Session
from witan.errors import WitanError
from witan.files.session_files import read_session, write_session


def set_aside(session: Session) -> Path:
    """Write a session to a file of its own, which nobody else may read; none is written over.

    Raises
    ------
    SessionFileError, OSError
        If it cannot be written.
    """
    folder = _folder()
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o700)
    path = _create_file(folder, _stem(session.id))
    with ExitStack() as undo:
        undo.callback(path.unlink, missing_ok=True)
        write_session(session, path, private=True)
        undo.pop_all()
    return path


def forget_aside(sessions: Iterable[str]) -> int:
    """Delete the records of these sessions that were set aside; return how many there were."""
    deleted = 0
    for session in sessions:
        stem = _stem(session)
        for path in sorted(_folder().glob(f"{escape(stem)}*.json")):
            if re.fullmatch(r"(-\d+)?", path.stem.removeprefix(stem)) and _is_of(path, session):
                path.unlink(missing_ok=True)
                deleted += 1
    return deleted


def is_aside(path: Path) -> bool:
    """Check that a file is a rescued record, and not one of the user's own."""
    return path.absolute().parent == _folder().absolute()


def _is_of(path: Path, session: str) -> bool:
    """Check that a record is of this session, and not of one with the same file name."""
    try:
        return read_session(path).id == session
    except (WitanError, OSError):
        return path.stem == _stem(session)


def _folder() -> Path:
    from platformdirs import user_state_path

    return user_state_path("witan") / "interrupted"


def _stem(session: str) -> str:
    return re.sub(r"[^\w.-]", "_", session).lstrip(".")


def _create_file(folder: Path, name: str) -> Path:
    """Make a file that was not there: two processes may set the same session aside."""
    for number in count(1):
        path = folder / (f"{name}.json" if number == 1 else f"{name}-{number}.json")
        try:
            path.touch(mode=0o600, exist_ok=False)
        except FileExistsError:
            continue
        return path
    raise AssertionError("there is no end of numbers")
