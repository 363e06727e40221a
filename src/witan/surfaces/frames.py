"""Convert results to data frames with flat columns."""

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any, get_args, get_origin, get_type_hints

from witan.core.display import Library
from witan.errors import InvalidParameter

LIBRARIES: tuple[str, ...] = get_args(Library)


def make_frame(rows: Iterable[Mapping[str, Any]], library: Library | None = None) -> Any:
    """Make a data frame of rows; library and errors as of `FrameSource.frame`."""
    if library is not None and library not in LIBRARIES:
        raise InvalidParameter("library", library, " or ".join(LIBRARIES))
    name = library or _find_library()
    try:
        module = import_module(name)
    except ImportError as error:
        raise InvalidParameter("library", name, f"installed: pip install {name}") from error
    columns = _columns([flatten(row) for row in rows])
    if name == "pyarrow":
        return module.table(columns)
    return module.DataFrame(columns)


def _find_library() -> str:
    imported_libraries = [name for name in LIBRARIES if name in sys.modules]
    installed = (name for name in LIBRARIES if find_spec(name) is not None)
    return next(iter(imported_libraries), None) or next(installed, LIBRARIES[0])


def _columns(rows: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: [row.get(name) for row in rows] for name in names}


def flatten(row: object, prefix: str = "") -> dict[str, Any]:
    """Flatten nested fields into columns ``outer_inner``, and names into text.

    The level of an interval, and tuples of anything but names, are left out. A class stands for a
    record that is missing: its columns are None. So columns do not depend on what is known.
    """
    flat: dict[str, Any] = {}
    for name, value in _members(row):
        column = f"{prefix}{name}"
        if isinstance(value, tuple | list):
            if all(isinstance(each, str) for each in value):
                flat[column] = ", ".join(value)
        elif isinstance(value, Mapping) or is_dataclass(value):
            flat |= flatten(value, f"{column}_" if name else prefix)
        elif name != "level":
            flat[column] = value
    return flat


def _members(row: object) -> Iterator[tuple[str, Any]]:
    if isinstance(row, Mapping):
        yield from row.items()
    elif isinstance(row, type):
        yield from _empty_record(row).items()
    elif is_dataclass(row):
        kind: Any = type(row)
        empty = _empty_record(kind)
        for each in fields(row):
            value = getattr(row, each.name)
            yield each.name, empty.get(each.name) if value is None else value


@cache
def _empty_record(kind: type) -> dict[str, Any]:
    """Return the columns of a missing record, nested ones by class."""
    columns = {}
    for name, hint in get_type_hints(kind).items():
        kinds = (get_origin(hint), hint, *get_args(hint))
        if hint == tuple[str, ...] or kinds[0] not in (tuple, Mapping):
            columns[name] = next((each for each in kinds if is_dataclass(each)), None)
    return columns
