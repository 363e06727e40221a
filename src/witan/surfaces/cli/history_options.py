"""The options of commands that read or write the history."""

from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from witan.errors import InvalidParameter
from witan.surfaces.cli.stacking import section

if TYPE_CHECKING:
    from witan.core.window import Window
    from witan.service.history_access import RecordingPlace

__all__ = [
    "Moment",
    "config_option",
    "history_option",
    "recorded_by",
    "recording_options",
    "window_of",
    "window_options",
]


class Moment(click.ParamType[datetime]):
    """A time: so long ago (``30d``), a day (``2026-01-31``), or to the second; in UTC if unsaid."""

    name = "time"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> datetime:
        """The time that a text says."""
        if isinstance(value, datetime):
            return value
        from witan.errors import InvalidParameter
        from witan.service.parameters import EXPECTED, moment

        text = str(value)
        try:
            read = moment("time", text)
        except InvalidParameter:
            read = None
        if read is None:
            self.fail(f"{text.strip()!r} is no time; expected {EXPECTED}.", param, ctx)
        return read


config_option = section(
    "History",
    click.option(
        "--config",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        metavar="FILE.toml",
        help="Read this configuration instead of the project's witan.toml.",
    ),
)

history_option = section(
    "History",
    click.option(
        "--history",
        metavar="URL",
        help="Use the history in this file, or at postgresql://user@host/database.",
    ),
)

no_history_option = click.option(
    "--no-history", is_flag=True, help="Keep nothing of the session in the history."
)

since_option = click.option(
    "--since",
    type=Moment(),
    metavar="TIME",
    help="Sessions from then on: 30d, 12h and 2w are ago, 2026-01-31 is a day, in UTC if unsaid.",
)

until_option = click.option(
    "--until", type=Moment(), metavar="TIME", help="Sessions before then, written likewise."
)

category_option = click.option("--category", metavar="NAME", help="Sessions of this category.")

recording_options = section("History", history_option, no_history_option)
"""Where a session is recorded, or that it is not."""

window_options = section("Which sessions", since_option, until_option, category_option)
"""Which sessions are meant: a span of time, and a category."""


def recorded_by(options: Mapping[str, Any], say: Callable[[str], None]) -> "RecordingPlace | None":
    """Open the history that the options of `recording_options` mean; None: it is not to be kept.

    Raises
    ------
    HistoryError
        If it cannot be opened.
    """
    from witan.service.history_access import configured, recorded

    if options["no_history"] and options["history"] is not None:
        raise click.UsageError("choose --history or --no-history, not both")
    if options["no_history"]:
        return None
    file: Path | None = options.get("config")
    return recorded(configured(file, options["history"]), file, say)


def window_of(options: Mapping[str, Any]) -> "Window":
    """The window that the options of `window_options` stand for."""
    from witan.core.window import Window

    since, until = options["since"], options["until"]
    if since is not None and until is not None and not since < until:
        expected = f"a time before that of --until, {until.isoformat(timespec='seconds')}"
        raise InvalidParameter("--since", since.isoformat(timespec="seconds"), expected)
    return Window(since, until, options["category"])
