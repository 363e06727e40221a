"""Opening of the history for commands, and rescue files."""

import os
import re
import shlex
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from witan.errors import HistoryError, WitanError

if TYPE_CHECKING:
    from witan.deliberation.session import Session
    from witan.history import History, LockWait
    from witan.history.history import ForgetResult
    from witan.service.config.configuration import Config


def rescue_session(session: "Session") -> Path:
    """Write a session to a new private file."""
    from witan.files.session_files import write_session

    folder = _folder()
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o700)
    path = _create_file(folder, _stem(session.id))
    with ExitStack() as undo:
        undo.callback(path.unlink, missing_ok=True)
        write_session(session, path, private=True)
        undo.pop_all()
    return path


def delete_rescued(sessions: Iterable[str]) -> int:
    """Delete rescue files of these sessions; return how many."""
    sessions_by_stem: dict[str, list[str]] = {}
    for session in sessions:
        sessions_by_stem.setdefault(_stem(session), []).append(session)
    n_deleted = 0
    for path in sorted(_folder().glob("*.json")):
        stems = dict.fromkeys((path.stem, re.sub(r"-\d+$", "", path.stem)))
        named = (session for stem in stems for session in sessions_by_stem.get(stem, ()))
        if any(_has_record_of(path, session) for session in named):
            path.unlink(missing_ok=True)
            n_deleted += 1
    return n_deleted


def is_rescued(path: Path) -> bool:
    """True for a rescue file, False for a user's own file."""
    return path.absolute().parent == _folder().absolute()


def _has_record_of(path: Path, session: str) -> bool:
    """True if the file, whose name others may share, has this session."""
    from witan.files.session_files import read_session

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
    """Create a new file: two processes may rescue the same session."""
    for number in count(1):
        path = folder / (f"{name}.json" if number == 1 else f"{name}-{number}.json")
        try:
            path.touch(mode=0o600, exist_ok=False)
        except FileExistsError:
            continue
        return path
    raise AssertionError("there is no end of numbers")


@dataclass(frozen=True, slots=True)
class RecordingPlace:
    """A history for recording sessions.

    `option`: the option that commands need to find it again: nothing, or `` --history URL``.
    `is_own`: whether it is a private file of the user.
    """

    history: "History"
    option: str = ""
    is_own: bool = True


def load_history_config(path: Path | None, url: str | None = None) -> "Config":
    """Return the configuration with the history of an option."""
    from witan.service.config.configuration import load_config

    return load_config(os.environ, Path.cwd(), path, history=url)


def history_place(config: "Config") -> str:
    """Return the place of the configured history; it may hold a password."""
    from witan.history import default_location

    url = config.history.url
    return str(default_location()) if url is None else url


def history_exists(place: str) -> bool:
    """Check whether a history file exists; servers are assumed to exist.

    Raises `HistoryError` if a folder on the path is not readable.
    """
    from witan.history import parse_location

    file = parse_location(place)
    if isinstance(file, str):
        return True
    try:
        return file.exists()
    except PermissionError:
        problem = "cannot be read: permission denied"
        raise HistoryError(
            place, problem, "ask its owner for read access, or name another place"
        ) from None
    except (OSError, ValueError):  # too long for a file's name, for one
        return False


def open_history(config: "Config", lock_wait: "LockWait", *, reading: bool = False) -> "History":
    """Open the configured history.

    `reading`: whether to open it only for reading, which neither creates nor changes it.
    """
    from witan.history import History

    place = history_place(config)
    if reading and not history_exists(place):
        remedy = "ask a question, import a file, or name another place"
        raise HistoryError(place, "there is no history yet", remedy)
    history = History.open(place, reading=reading, lock_wait=lock_wait)
    history.aliases, history.keep_days = config.aliases, config.history.keep_days
    return history


def forget_expired(history: "History", lock_wait: "LockWait | None" = None) -> "ForgetResult":
    """Delete sessions beyond the `keep_days` of a history, and their rescued records."""
    from datetime import UTC, datetime, timedelta

    from witan.history.history import ForgetResult

    if history.keep_days is None or not history.database.exists:
        return ForgetResult(())
    history.require_writable(lock_wait)
    cutoff = datetime.now(UTC) - timedelta(days=history.keep_days)
    deletion = history.forget_added_before(cutoff)
    delete_rescued(deletion.sessions)
    return deletion


def _open_writable(config: "Config", say: Callable[[str], None]) -> "History":
    """Open a writable history before any model is called."""
    from witan.history import LockWait

    lock_wait = LockWait(say)
    history = open_history(config, lock_wait)
    with ExitStack() as undo:
        undo.callback(history.close)
        history.require_writable(lock_wait)
        undo.pop_all()
    return history


def open_recording(
    config: "Config", file: Path | None, say: Callable[[str], None]
) -> RecordingPlace | None:
    """Open the history for a session; None without recording.

    `file`: the named configuration file, if any.
    `say`: called with a sentence about waiting.
    """
    settings = config.history
    if not settings.enabled and not settings.by_option:
        return None
    history = _open_writable(config, say)
    # Without these options a command uses another history.
    is_named_by_user = settings.by_option or (
        file is not None and settings.source == str(Path.cwd() / file)
    )
    place = history.url if history.url.startswith("postgresql:") else history_place(config)
    option = f" --history {shlex.quote(place)}" if is_named_by_user else ""
    return RecordingPlace(history, option, settings.is_own)


def is_path(name: str | Path) -> bool:
    """Check whether a name is that of an existing file or folder."""
    try:
        return Path(name).exists()
    except (OSError, ValueError):  # too long for a file's name, for one
        return False
