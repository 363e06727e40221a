"""The options of commands that sum over sessions: of what history or lake, by which engine."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from witan.surfaces.commands.council_options import config_option
from witan.surfaces.commands.history_options import history_option
from witan.surfaces.commands.stacking import stacked

if TYPE_CHECKING:
    from witan.adapters.reports import Source
    from witan.surfaces.config import Config

__all__ = ["opened_source", "source_options"]

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


source_options = stacked(history_option, lake_option, engine_option, config_option)
"""Where sessions are read: a history, or a lake and the engine that sums it."""


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
    if engine is not None and lake is None:
        raise click.UsageError("--engine sums a lake: name its folder with --lake")
    from witan.adapters.reports import HistorySource, open_lake
    from witan.surfaces.histories import configured, open_history

    config = configured(options["config"], options["history"])
    if lake is not None:
        with open_lake(lake, "duckdb" if engine is None else engine) as source:
            yield source, config
        return
    with open_history(config, reading=True) as history:
        yield HistorySource(history), config
