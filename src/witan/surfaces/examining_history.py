"""What ``witan doctor`` finds out about the history."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from witan.adapters.history import Described
from witan.adapters.history.postgresql import without_password
from witan.errors import HistoryError, WitanError
from witan.surfaces.config import Config
from witan.surfaces.config_history import on_server
from witan.surfaces.histories import history_place, is_there, open_history

__all__ = ["HistoryFinding", "examine_history", "settings_shown"]


@dataclass(frozen=True, slots=True)
class HistoryFinding:
    """The history, as far as it could be looked into.

    Parameters
    ----------
    found
        None: it is not there yet, was not asked, or cannot be opened.
    problem
        Why it cannot be opened.
    note
        What else there is to know.
    """

    place: str
    enabled: bool
    found: Described | None = None
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


def examine_history(config: Config, *, offline: bool = False) -> HistoryFinding:
    """Look through the whole configured history, which is not made where it is not there."""
    place, enabled = _shown(config), config.history.enabled
    whole = history_place(config)
    if on_server(whole) and offline:
        return HistoryFinding(place, enabled, note="it is on a server, and was not asked")
    try:
        if not is_there(whole):
            note = "it is not there yet; the first session makes it"
            return HistoryFinding(place, enabled, note=note)
        with open_history(config, reading=True) as history:
            history.check()
            return HistoryFinding(place, enabled, found=history.describe())
    except HistoryError as error:
        return HistoryFinding(place, enabled, problem=str(error))
    except WitanError as error:
        return HistoryFinding(place, enabled, problem=f"{place}: {error}")


def _shown(config: Config) -> str:
    place = history_place(config)
    return without_password(place) if on_server(place) else place
