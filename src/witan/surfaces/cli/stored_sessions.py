"""Sessions and histories as commands name them."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from witan.core.attributes import cached_property
from witan.errors import HistoryError, SessionFileError, UnknownName, WitanError
from witan.service import history_access
from witan.service.history_access import history_exists, history_place, is_path, load_history_config
from witan.service.stored_sessions import describe_session
from witan.surfaces.terminal import say

if TYPE_CHECKING:
    from witan.deliberation.record import SessionImport
    from witan.deliberation.session import Session
    from witan.history import History
    from witan.service.config.configuration import Config
    from witan.service.session_records import CouncilSession


def open_history(
    config: "Config", *, reading: bool = False, lock_seconds: float | None = None
) -> "History":
    """Open the configured history; report waiting on standard error."""
    from witan.history import LockWait

    lock_wait = LockWait(say) if lock_seconds is None else LockWait(say, lock_seconds)
    return history_access.open_history(config, lock_wait, reading=reading)


_SUFFIXES = frozenset(
    f".{suffix}"
    for suffix in (
        *("json", "jsonl", "ndjson", "csv", "tsv", "txt", "parquet", "eval", "gz", "zst"),
        *("soc", "soi", "toc", "toi"),
    )
)
"""Endings of files of ballots and of sessions."""


@contextmanager
def open_history_if_any(config: "Config") -> "Iterator[History | None]":
    """Open the configured history, or return None if it is unreadable."""
    with ExitStack() as stack:
        history = None
        if config.history.enabled:
            with suppress(WitanError, ValueError):
                history = stack.enter_context(open_history(config, reading=True))
        yield history


class LocalSessions:
    """The sessions of a history, with everything visible to its owner."""

    def __init__(self, history: "History") -> None:
        self._history = history

    @property
    def history(self) -> "History":
        """The history."""
        return self._history

    def show_import(
        self, session_import: "SessionImport"
    ) -> "tuple[SessionImport, Mapping[str, str]]":
        """Return an imported session as imported."""
        return session_import, {}

    def whole_name(self, name: str) -> str:
        """Complete the name of a session; ``last`` is the latest."""
        return whole_name(self.history, name)

    def voter(self, person: str | None) -> str:
        """Name a voter, by default by the login name."""
        import getpass

        name = person
        if name is None:
            try:
                name = getpass.getuser()
            except (OSError, KeyError, ImportError):
                name = ""
        name = name.strip()
        if not name:
            raise click.UsageError("say who votes: --as NAME")
        return name

    def delete(self, sessions: Sequence[str]) -> str | None:
        """Delete sessions, all of them or none."""
        return self.history.forget(*sessions).note

    @property
    def shared_history(self) -> "History | None":
        """The history that holds the other sessions."""
        return self.history

    def record(self, session: str) -> "Session | None":
        """Return a session by full name; None for imported ballots."""
        return self.history.session(session) if self.history.has_record(session) else None

    def describe(self, session: "Session") -> "CouncilSession":
        """Add votes, descendants, and whether a process is running the session."""
        record = describe_session(self.shared_history, session)
        if self.shared_history is None or session.status != "interrupted":
            return record
        running = self.history.summary(session.id).status == "running"
        return replace(record, session=replace(session, status="running")) if running else record


class NamedSessions(LocalSessions):
    """Sessions by name in the history, or by file name.

    The history is opened for the first name that is not a file.
    """

    def __init__(self, config: Path | None, url: str | None, stack: ExitStack) -> None:
        self._config, self._url, self._stack = config, url, stack
        self._files: dict[str, Session] = {}

    @cached_property
    def history(self) -> "History":
        """The configured history."""
        opened = open_history(load_history_config(self._config, self._url), reading=True)
        return self._stack.enter_context(opened)

    @property
    def shared_history(self) -> "History | None":
        """None if a file was named, which has only one session."""
        return None if self._files else self.history

    def whole_name(self, name: str) -> str:
        """Read the named file, or complete a session name."""
        if is_file(name, self._config, self._url):
            from witan.files.session_files import read_session

            session = read_session(name)
            self._files[session.id] = session
            return session.id
        return whole_name(self.history, name, or_file=True)

    def record(self, session: str) -> "Session | None":
        """Return the session of the file, or of the history."""
        return self._files[session] if self._files else super().record(session)


@contextmanager
def open_named_sessions(options: Mapping[str, Any]) -> Iterator[NamedSessions]:
    """Open sessions for a command that takes names and files."""
    with ExitStack() as stack:
        yield NamedSessions(options["config"], options["history"], stack)


@contextmanager
def open_sessions(options: Mapping[str, Any]) -> Iterator[LocalSessions]:
    """Open the configured history, for operations on stored sessions."""
    config = load_history_config(options["config"], options["history"])
    with open_history(config, reading=True) as history:
        yield LocalSessions(history)


def is_file(name: str, config: Path | None = None, url: str | None = None) -> bool:
    """Check that a session is named by its file.

    A name that looks like a missing file may be the name of a session.
    """
    if name == "-" or (is_path(name) and not Path(name).is_dir()):
        return True
    reads_like_one = "/" in name or "\\" in name or Path(name).suffix.lower() in _SUFFIXES
    return reads_like_one and not _is_held(name, config, url)


def _is_held(name: str, config: Path | None, url: str | None) -> bool:
    try:
        with open_history(load_history_config(config, url), reading=True) as history:
            history.summary(name)
    except WitanError:
        return False
    return True


def whole_name(history: "History", name: str, *, or_file: bool = False) -> str:
    """Complete the name of a session, or suggest where to look.

    With `or_file`, the name may be that of a missing file.
    """
    where, lists = history.database.location, "witan sessions lists them"
    if not name.strip():
        raise HistoryError(where, "no session has an empty name", lists)
    try:
        return history.resolve_name(name)
    except UnknownName as error:
        hint = lists if error.nearest is None else f"did you mean {error.nearest}?"
        kind = "session or file" if or_file else "session"
        raise HistoryError(where, f"no {kind} is named {name!r}", hint) from None


def stored_session(name: str, config: Path | None, url: str | None) -> "SessionImport":
    """Return a stored session with all ballots, including people's."""
    where = load_history_config(config, url)
    if not history_exists(history_place(where)):
        from witan.errors import BallotFileError

        problem = "does not exist, and there is no history to look for a session of that name"
        raise BallotFileError(name, f"{problem}; check the path")
    with open_history(where, reading=True) as history:
        return history.export(whole_name(history, name, or_file=True))


def council_session(name: str, config: Path | None, url: str | None, lacks: str) -> "Session":
    """Return the session of a file, or with that name in the history."""
    if is_file(name, config, url):
        from witan.files.session_files import read_session

        return read_session(name)
    with open_history(load_history_config(config, url), reading=True) as history:
        session_id = whole_name(history, name, or_file=True)
        if not history.has_record(session_id):
            raise SessionFileError(name, f"was imported as ballots{lacks}")
        return history.session(session_id)


def is_own_session(record: "Session", config: Path | None, url: str | None) -> bool:
    """Check that the user's own history recorded a session, with the same seats."""
    where = load_history_config(config, url)
    if where.history.is_own:
        with suppress(WitanError, ValueError), open_history(where, reading=True) as history:
            is_import = history.summary(record.id).imported
            return not is_import and history.session(record.id).opening == record.opening
    return False
