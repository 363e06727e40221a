"""What ``witan doctor`` finds out about the history."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from witan.errors import HistoryError, WitanError
from witan.history import HistorySummary, LockWait, parse_location
from witan.history.location import redact_password
from witan.history.opening import has_log
from witan.history.sqlite import SqliteDatabase, is_full
from witan.service.config.configuration import Config
from witan.service.config.history import on_server
from witan.service.history_access import history_place, is_there, open_history

__all__ = ["HistoryFinding", "diagnose_history", "settings_shown"]

UNWRITABLE = (
    "can be read and not written, so that no session can be recorded there; name another place"
)
FULL = "can be read and not written, as the disk is full; free some space, or name another place"


@dataclass(frozen=True, slots=True)
class HistoryFinding:
    """The history, as far as it could be looked into.

    Parameters
    ----------
    found
        None: it is not there yet, was not asked, or cannot be opened.
    problem
        Why it cannot be opened, or written.
    note
        What else there is to know.
    """

    place: str
    enabled: bool
    found: HistorySummary | None = None
    problem: str | None = None
    note: str | None = None

    @property
    def hindrances(self) -> list[str]:
        """What keeps a session from being recorded that is to be."""
        return [self.problem] if self.problem is not None and self.enabled else []


def settings_shown(config: Config) -> Mapping[str, Any]:
    """The settings of the history as they may be shown: without a password."""
    settings = config.history
    return {
        "url": _shown(config),
        "keep_days": settings.keep_days,
        "enabled": settings.enabled,
    }


def diagnose_history(config: Config, *, offline: bool = False) -> HistoryFinding:
    """Look through the whole configured history, which is not made where it is not there."""
    place, enabled = _shown(config), config.history.enabled
    whole = history_place(config)
    if on_server(whole) and offline:
        return HistoryFinding(place, enabled, note="it is on a server, and was not asked")
    try:
        if not is_there(whole):
            note = "it is not there yet; the first session makes it"
            return HistoryFinding(place, enabled, note=note)
        if _is_empty(whole):
            note = "the file is empty; the first session makes a history of it"
            return HistoryFinding(place, enabled, note=note)
        with open_history(config, LockWait(None), reading=True) as history:
            history.check()
            database = history.database
            full = isinstance(database, SqliteDatabase) and is_full(database.path)
            why = FULL if full else UNWRITABLE
            problem = f"{place}: {why}" if history.read_only else None
            return HistoryFinding(place, enabled, history.describe(), problem)
    except HistoryError as error:
        return HistoryFinding(place, enabled, problem=str(error))
    except WitanError as error:
        return HistoryFinding(place, enabled, problem=f"{place}: {error}")


def _is_empty(place: str) -> bool:
    """Whether it is a file that was made and never written, with no log beside it."""
    file = parse_location(place)
    return isinstance(file, Path) and file.is_file() and not (file.stat().st_size or has_log(file))


def _shown(config: Config) -> str:
    place = history_place(config)
    return redact_password(place) if on_server(place) else place
