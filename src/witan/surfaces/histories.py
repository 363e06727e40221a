"""The history as commands meet it: found in the configuration, opened, and searched by name."""

import shlex
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from witan.errors import HistoryError, MissingExtra, UnknownName, WitanError
from witan.surfaces.terminal import echo

if TYPE_CHECKING:
    from witan.adapters.history import History, Patience
    from witan.adapters.history.importing import Imported
    from witan.adapters.history.whereabouts import Whereabouts
    from witan.deliberation.lengths import Lengths
    from witan.deliberation.session import Session
    from witan.surfaces.config import Config

__all__ = [
    "Place",
    "configured",
    "earlier_lengths",
    "history_place",
    "is_file",
    "is_there",
    "open_history",
    "recorded",
    "session_called",
    "stored_session",
    "whole_name",
]


@dataclass(frozen=True, slots=True)
class Place:
    """A history that sessions are recorded in.

    Parameters
    ----------
    keep_days
        Sessions that came in longer ago are forgotten once another was recorded; None: none are.
    option
        What a command has to be given to find it again: nothing, or `` --history URL``.
    own
        It is a file of the user's own, in which nobody else can have put a session.
    whereabouts
        The file that it was opened in.
    """

    history: "History"
    whereabouts: "Whereabouts"
    keep_days: int | None = None
    option: str = ""
    own: bool = True

    def patience(self, say: Callable[[str], None] | None = None) -> "Patience":
        """As long as another process is waited for; `say` is told of it."""
        from witan.adapters.history import Patience

        return Patience(say)


def configured(path: Path | None, url: str | None = None) -> "Config":
    """The configuration, with the history that an option names."""
    import os

    from witan.surfaces.config import load_config

    return load_config(os.environ, Path.cwd(), path, {"history.url": url})


def history_place(config: "Config") -> str:
    """Where the configured history is, or would be; it may hold a password."""
    from witan.adapters.history import default_place

    url = config.history.url
    return str(default_place()) if url is None else url


def is_there(place: str) -> bool:
    """Whether there is a file at the place of a history; a server is taken to be there.

    Raises
    ------
    HistoryError
        If it is no place for one.
    """
    from witan.adapters.history import place_of

    file = place_of(place)
    return isinstance(file, str) or _there(file)


def _said(text: str) -> None:

    from witan.surfaces.text import clean

    echo(clean(text), err=True)


def open_history(
    config: "Config", *, reading: bool = False, patience: "Patience | None" = None
) -> "History":
    """Open the configured history.

    Parameters
    ----------
    reading
        It is only read, so one that is not there is not made, and one that cannot be written will
        do.
    patience
        How long to wait for other processes; None: as long as any opening, which is said.

    Raises
    ------
    HistoryError
        If it cannot be opened, or another process keeps it locked, or is only to be read and not
        there.
    MissingExtra
        If it is in PostgreSQL, and psycopg is not installed.
    """
    from witan.adapters.history import History, Patience

    place = history_place(config)
    if reading and not is_there(place):
        remedy = "ask a question, try witan demo, or name another place with --history"
        raise HistoryError(place, "there is no history yet", remedy)
    patience = Patience(_said) if patience is None else patience
    history = History.open(place, reading=reading, patience=patience)
    history.aliases = config.aliases
    return history


def earlier_lengths(config: "Config") -> "Lengths":
    """How long earlier replies were; as published where there is no history to read."""
    from witan.deliberation.lengths import TYPICAL

    if not config.history.enabled:
        return TYPICAL
    try:
        with open_history(config, reading=True) as history:
            return history.lengths()
    except (WitanError, ValueError):
        return TYPICAL  # a plan needs no history


def _opened_to_record(config: "Config", say: Callable[[str], None]) -> "History":
    """Open the history of a session before anybody is asked, once it can be written."""
    from witan.adapters.history import Patience

    patience = Patience(say)
    history = open_history(config, patience=patience)
    with ExitStack() as undo:
        undo.callback(history.close)
        history.require_writable(patience)
        undo.pop_all()
    return history


def recorded(
    config: "Config", file: Path | None = None, say: Callable[[str], None] = _said
) -> Place | None:
    """Open the history that a session is to be recorded in; None: it is not to be.

    Parameters
    ----------
    file
        The configuration file that was named, if one was.
    say
        Is told what is waited for.

    Raises
    ------
    HistoryError
        If it cannot be opened; it says how to do without.
    """
    from witan.adapters.history.whereabouts import Whereabouts

    settings = config.history
    if not settings.enabled and not settings.by_option:
        return None
    try:
        history = _opened_to_record(config, say)
    except HistoryError as error:
        remedy = f"{error.remedy}, or go without it: --no-history"
        raise HistoryError(error.where, error.problem, remedy) from None
    except MissingExtra as error:
        raise HistoryError("the history", str(error), "or go without it: --no-history") from None
    # A command without options would look elsewhere.
    named = settings.by_option or (file is not None and settings.where == str(Path.cwd() / file))
    shown = history.url if history.url.startswith("postgresql:") else history_place(config)
    option = f" --history {shlex.quote(shown)}" if named else ""
    return Place(history, Whereabouts(history), settings.keep_days, option, settings.own)


_SUFFIXES = frozenset(
    f".{suffix}"
    for suffix in (
        *("json", "jsonl", "ndjson", "csv", "tsv", "txt", "parquet", "eval", "gz", "zst"),
        *("soc", "soi", "toc", "toi"),
    )
)
"""What names of files of ballots and of sessions end in."""


def is_file(name: str, config: Path | None = None, url: str | None = None) -> bool:
    """Whether what was given for a session is a file, and not the name of a session.

    What reads like the name of a file that is not there may be the name of a session.
    """
    if name == "-" or (_there(name) and not Path(name).is_dir()):
        return True
    reads_like_one = "/" in name or "\\" in name or Path(name).suffix.lower() in _SUFFIXES
    return reads_like_one and not _is_held(name, config, url)


def _is_held(name: str, config: Path | None, url: str | None) -> bool:
    try:
        with open_history(configured(config, url), reading=True) as history:
            history.about(name)
    except WitanError:
        return False
    return True


def _there(name: str | Path) -> bool:
    try:
        return Path(name).exists()
    except (OSError, ValueError):  # too long for a file's name, for one
        return False


def whole_name(history: "History", name: str, *, or_file: bool = False) -> str:
    """The name of the session that was meant; what is said of one that is not there helps.

    Parameters
    ----------
    or_file
        It might have been a file, which is not there either.
    """
    where, lists = history.database.where, "witan sessions lists what is there"
    if not name.strip():
        raise HistoryError(where, "no session has an empty name", lists)
    try:
        return history.named(name)
    except UnknownName as error:
        hint = lists if error.nearest is None else f"did you mean {error.nearest}?"
        nor = ", nor a file of that name" if or_file else ""
        raise HistoryError(where, f"there is no session {name!r} here{nor}", hint) from None


def stored_session(name: str, config: Path | None, url: str | None) -> "Imported":
    """A session of the history with all its ballots, people's as well.

    Raises
    ------
    HistoryError
        If there is none of that name, nor a file, or no history.
    """
    where = configured(config, url)
    if not is_there(history_place(where)):
        from witan.errors import BallotFileError

        problem = "does not exist, and there is no history to look for a session of that name"
        raise BallotFileError(name, f"{problem}; check the path")
    with open_history(where, reading=True) as history:
        return history.whole(whole_name(history, name, or_file=True))


@contextmanager
def session_called(
    name: str, config: Path | None, url: str | None
) -> "Iterator[tuple[Session | str, History | None]]":
    """The session of a file, or of the history, and that history while the block lasts.

    Of one that came in as ballots there is only the name.
    """
    if is_file(name, config, url):
        from witan.adapters.session_files import read_session

        yield read_session(name), None
        return
    with open_history(configured(config, url), reading=True) as history:
        session = whole_name(history, name, or_file=True)
        yield (history.session(session) if history.has_record(session) else session), history
