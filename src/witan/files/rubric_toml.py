"""Rubrics as TOML files.

A file looks like this; scale, anchors and ceilings are optional::

    name = "support"
    scale = "1-5"

    [[criteria]]
    name = "accuracy"
    weight = 0.6
    description = "Is what it says about the product true?"

    [criteria.anchors]
    "9-10" = "Everything it says holds for this version."
    "1-2" = "Describes a feature that does not exist."

    [[criteria]]
    name = "tone"
    weight = 0.4
    description = "Would a customer feel taken seriously?"

    [[ceilings]]
    criterion = "accuracy"
    below = 5
    at_most = 4
"""

import re
import sys
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from witan.core.rubric import Anchor, Ceiling, Criterion, Rubric
from witan.core.scale import Scale
from witan.errors import InvalidParameter, InvalidRubric

_BAND = re.compile(r"\s*(\d{1,2})\s*[-–]\s*(\d{1,2})\s*", re.ASCII)

MAX_NUMBER = sys.float_info.max
"""Largest integer that is also a float; TOML allows larger ones."""

_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t"}


def load_rubric(path: str | Path) -> Rubric:
    """Read a rubric from TOML; errors name file, key and expected value."""
    location = str(path)
    try:
        return parse_rubric(Path(path).read_text(encoding="utf-8-sig"), location)
    except OSError as error:
        raise InvalidRubric(location, f"cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise InvalidRubric(location, f"is not UTF-8 text (at byte {error.start})") from error


def parse_rubric(text: str, source: str = "the rubric") -> Rubric:
    """Read a rubric from TOML; `source` names it in errors."""
    try:
        data = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise InvalidRubric(source, f"is not TOML: {error}") from error
    table = _Table(source, "", data)
    table.refuse_others("name", "criteria", "ceilings", "scale")
    name = table.text("name")
    criteria = tuple(_criterion(entry) for entry in table.tables("criteria"))
    ceilings = tuple(_ceiling(entry) for entry in table.tables("ceilings", optional=True))
    scale = _scale(table) if "scale" in data else None
    try:
        return Rubric(name, criteria, ceilings, scale)
    except InvalidRubric as error:
        raise InvalidRubric(source, error.problem) from error


def rubric_to_toml(rubric: Rubric) -> str:
    """Write a rubric as TOML, the inverse of `load_rubric`."""
    lines = [f"name = {_quote(rubric.name)}"]
    if rubric.scale is not None:
        lines.append(f"scale = {_quote(str(rubric.scale))}")
    for criterion in rubric.criteria:
        lines += [
            "",
            "[[criteria]]",
            f"name = {_quote(criterion.name)}",
            f"weight = {float(criterion.weight)!r}",
            f"description = {_quote(criterion.description)}",
        ]
        if criterion.anchors:
            lines += ["", "[criteria.anchors]"]
        lines += [f'"{a.low}-{a.high}" = {_quote(a.text)}' for a in criterion.anchors]
    for ceiling in rubric.ceilings:
        lines += [
            "",
            "[[ceilings]]",
            f"criterion = {_quote(ceiling.criterion)}",
            f"below = {float(ceiling.below)!r}",
            f"at_most = {float(ceiling.at_most)!r}",
        ]
    return "\n".join(lines) + "\n"


def _scale(table: "_Table") -> Scale:
    text = table.text("scale")
    try:
        return Scale.parse(text)
    except InvalidParameter as error:
        raise table.refuse("scale", error.expected) from error


class _Table:
    """One table of the file, with its path."""

    def __init__(self, path: str, key: str, data: Mapping[str, Any]) -> None:
        self.path, self.key, self.data = path, key, data

    def refuse(self, key: str, expected: str) -> InvalidRubric:
        full = f"{self.key}.{key}" if self.key else key
        if key not in self.data:
            return InvalidRubric(self.path, f"lacks {full}; expected {expected}")
        return InvalidRubric(self.path, f"has {full} = {self.data[key]!r}; expected {expected}")

    def refuse_others(self, *allowed_keys: str) -> None:
        for key in self.data:
            if key not in allowed_keys:
                raise self.refuse(key, f"only {', '.join(allowed_keys)}")

    def text(self, key: str) -> str:
        value = self.data.get(key)
        if not isinstance(value, str) or not value.strip():
            raise self.refuse(key, "text")
        return value

    def number(self, key: str) -> float:
        value = self.data.get(key)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self.refuse(key, "a number")
        if not -MAX_NUMBER <= value <= MAX_NUMBER:
            raise self.refuse(key, "a finite number")
        return float(value)

    def tables(self, key: str, *, optional: bool = False) -> "Iterator[_Table]":
        entries = self.data.get(key, [] if optional else None)
        if not isinstance(entries, list) or not all(isinstance(e, dict) for e in entries):
            raise self.refuse(key, f"tables, each headed [[{key}]]")
        for number, entry in enumerate(entries, start=1):
            yield _Table(self.path, f"{key}[{number}]", entry)


def _criterion(table: _Table) -> Criterion:
    table.refuse_others("name", "weight", "description", "anchors")
    return Criterion(
        table.text("name"), table.number("weight"), table.text("description"), _anchors(table)
    )


def _anchors(table: _Table) -> tuple[Anchor, ...]:
    """Read the anchors, sorted best first."""
    entries = table.data.get("anchors", {})
    if not isinstance(entries, dict):
        raise table.refuse("anchors", 'a table such as "9-10" = "…"')
    bands = _Table(table.path, f"{table.key}.anchors", entries)
    anchors = []
    for key in entries:
        band = _BAND.fullmatch(key)
        if band is None:
            raise bands.refuse(key, 'bands of grades such as "9-10"')
        anchors.append(Anchor(int(band[1]), int(band[2]), bands.text(key)))
    return tuple(sorted(anchors, key=lambda anchor: (-anchor.high, -anchor.low)))


def _ceiling(table: _Table) -> Ceiling:
    table.refuse_others("criterion", "below", "at_most")
    return Ceiling(table.text("criterion"), table.number("below"), table.number("at_most"))


def _quote(text: str) -> str:
    return (
        '"' + "".join(_ESCAPES.get(c) or (c if c.isprintable() else _code(c)) for c in text) + '"'
    )


def _code(character: str) -> str:
    point = ord(character)
    return f"\\u{point:04x}" if point <= 0xFFFF else f"\\U{point:08x}"
