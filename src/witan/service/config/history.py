"""Settings of the history: its place, and how long sessions stay in it."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from witan.history.location import parse_location
from witan.service.config.layers import COMMAND_LINE, Setting

FILE_SCHEME = "sqlite:///"


@dataclass(frozen=True, slots=True)
class HistorySettings:
    """Place of the history, and how long sessions stay in it.

    Parameters
    ----------
    url
        A path or a URL; None: the place that this platform keeps a user's data in.
    keep_days
        Sessions that came in longer ago are forgotten; None: none are.
    enabled
        Whether sessions are recorded.
    where
        The file, variable or option that names the place; None: nothing does.
    found
        The place is named by a file that was found by searching.
    asked
        Some source says where sessions are recorded, or that they are; else that is the default of
        the commands.
    """

    url: str | None = None
    keep_days: int | None = None
    enabled: bool = True
    where: str | None = None
    found: bool = False
    asked: bool = False

    @property
    def by_option(self) -> bool:
        """Check that the place was named on the command line."""
        return self.where == COMMAND_LINE

    @property
    def own(self) -> bool:
        """Check for a file of the user's own, in which nobody else can have put a session."""
        return not self.found and (self.url is None or not on_server(self.url))


def history_settings(settings: Iterable[Setting]) -> HistorySettings:
    """Collect the settings of the history."""
    given = {setting.key[1]: setting for setting in settings if setting.key[0] == "history"}
    url, enabled = given.get("url"), given.get("enabled")
    keep = given.get("keep_days")
    on = True if enabled is None else enabled.value
    return HistorySettings(
        url=None if url is None else url.value,
        keep_days=None if keep is None else keep.value,
        enabled=on,
        where=None if url is None else url.where,
        found=url is not None and not url.trusted,
        asked=on and (url is not None or enabled is not None),
    )


def on_server(url: str) -> bool:
    """Check that a place is not a file."""
    return "://" in url and not url.casefold().startswith(FILE_SCHEME)


def anchored_place(setting: Setting) -> str:
    """Return the place, where it is a file from the directory that its setting starts from."""
    url = str(setting.value)
    if on_server(url) or not url.strip():
        return url
    return str(parse_location(url, setting.base))


def forbidden_to_found_files(setting: Setting) -> str | None:
    """Describe what a setting of an untrusted file may not do; None: it may."""
    if setting.key == ("history", "keep_days"):
        return "has sessions deleted"
    if setting.key != ("history", "url"):
        return None
    url = str(setting.value)
    if on_server(url):
        return "sends sessions to a server"
    place = Path(parse_location(url, setting.base)).resolve()
    if not place.is_relative_to(setting.base.resolve()):
        return "keeps sessions outside its own folder"
    return None
