"""The options of commands that sum over sessions: of what history or lake, by which engine."""

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from witan.surfaces.cli.history_options import config_option, history_option
from witan.surfaces.cli.options import format_options
from witan.surfaces.cli.stacking import section, stacked
from witan.surfaces.terminal import echo

if TYPE_CHECKING:
    from witan.analytics.sources import Source
    from witan.service.config.configuration import Config

lake_option = click.option(
    "--lake",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="FOLDER",
    help="Read this folder of Parquet files instead of a history.",
)

engine_option = click.option(
    "--engine",
    type=click.Choice(["duckdb", "spark"]),
    help="What sums a lake; DuckDB by default.",
)


source_options = stacked(
    click.argument("files", nargs=-1, metavar="[FILE|ID]...", type=click.Path(allow_dash=True)),
    format_options,
    section("History", history_option, lake_option, engine_option, config_option),
)
"""Where sessions are read: a history, files, or a lake and the engine that sums it."""


@contextmanager
def opened_source(options: Mapping[str, Any]) -> "Iterator[tuple[Source, Config]]":
    """Open what the options of `source_options` mean, for the time of the block.

    Raises
    ------
    HistoryError
        If it is not there, or cannot be read.
    """
    lake, engine = options["lake"], options["engine"]
    if lake is not None and options["history"] is not None:
        raise click.UsageError("choose --history or --lake, not both")
    if options["files"] and lake is not None:
        raise click.UsageError("choose files or --lake, not both")
    if not options["files"]:
        for option in ("format", "columns", "scale", "strict"):
            if options[option]:
                name = option.removesuffix("s")
                raise click.UsageError(f"--{name} is for files: name one")
    if engine is not None and lake is None:
        raise click.UsageError("--engine sums a lake: name its folder with --lake")
    from witan.analytics.sources import HistorySource, open_lake
    from witan.service.history_access import configured
    from witan.surfaces.cli.stored_sessions import open_history

    config = configured(options["config"], options["history"])
    if options["files"]:
        with _of_files(options, config) as source:
            yield source, config
        return
    if lake is not None:
        with open_lake(lake, "duckdb" if engine is None else engine) as source:
            yield source, config
        return
    with open_history(config, reading=True) as history:
        yield HistorySource(history), config


@contextmanager
def _of_files(options: Mapping[str, Any], config: "Config") -> "Iterator[Source]":
    """What files and sessions come to, summed in a history that lasts as long as the block."""
    from tempfile import TemporaryDirectory

    from witan.analytics.sources import FilesSource
    from witan.history import History
    from witan.surfaces.cli.reading import Body

    body = Body.of(options)
    with (
        TemporaryDirectory(prefix="witan-") as folder,
        History.open(Path(folder) / "history.sqlite") as history,
    ):
        history.aliases = config.aliases
        history.add(body.imported(), body.name, "files")
        yield FilesSource(history, body.name)


@dataclass(frozen=True, slots=True)
class _Reports:
    """The service of one command that sums over sessions."""

    opened: "Source"
    config: "Config"

    @contextmanager
    def source(self) -> "Iterator[Source]":
        """The history, lake or files that the options name."""
        yield self.opened

    @property
    def families(self) -> "Mapping[str, Collection[str]]":
        """The configured ones."""
        return self.config.families

    def aliases(self, _: "Source") -> Mapping[str, str]:
        """The configured ones: whoever types commands may see every name."""
        return self.config.aliases

    def note(self, text: str) -> None:
        """Say it on standard error."""
        echo(text, err=True)


@contextmanager
def open_reports(options: Mapping[str, Any]) -> Iterator[_Reports]:
    """Open what the options of `source_options` mean as the service of one command."""
    with opened_source(options) as (source, config):
        yield _Reports(source, config)
