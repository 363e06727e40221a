"""What the ends of Parquet files say of their columns, so that some of these need not be read."""

from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

from witan.analytics.lake.columns import arrow

__all__ = ["constants"]


def constants(files: Iterable[Path], columns: Collection[str]) -> Mapping[str, int]:
    """Column to the one value that it has in every row of all files; others are left out.

    Parameters
    ----------
    columns
        Of whole numbers: the least and the greatest of texts may be cut short in a file.
    """
    held: dict[str, set[int | None]] = {name: set() for name in columns}
    for file in files:
        metadata = arrow().parquet.read_metadata(file)
        for group in range(metadata.num_row_groups):
            for name, value in _of_group(metadata.row_group(group), columns):
                held[name].add(value)
    return {
        name: value
        for name, values in held.items()
        if len(values) == 1 and (value := next(iter(values))) is not None
    }


def _of_group(group: Any, columns: Collection[str]) -> Iterable[tuple[str, int | None]]:
    """Column to its only value in a group of rows; None: it has several, or nothing is said."""
    for at in range(group.num_columns if group.num_rows else 0):
        column = group.column(at)
        if column.path_in_schema in columns:
            said = column.statistics
            known = said is not None and said.has_min_max and said.has_null_count
            alone = known and said.null_count == 0 and said.min == said.max
            yield column.path_in_schema, int(said.min) if alone else None
