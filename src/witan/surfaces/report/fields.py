"""Write the report of a result from its declared fields."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime
from typing import Any, Literal, get_type_hints

from witan.core.outcome import Interval
from witan.service.json_output import field_docs
from witan.service.parameters import Doc
from witan.service.text import UNKNOWN, interval_text, list_text, number
from witan.surfaces.report import report_of
from witan.surfaces.report.document import Block, Column, Heading, Report, Sentence, Table, table_of


def fields_report(result: Any) -> Report:
    """Write each list or mapping as a table, all other fields as one."""
    kind = type(result)
    title = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", kind.__name__).capitalize()
    return Report(title, (), "", tuple(_blocks(result, title)))


def _blocks(record: Any, title: str) -> Iterator[Block]:
    values = {each.name: getattr(record, each.name) for each in fields(record)}
    long = {name: value for name, value in values.items() if _is_long(value)}
    if short := {name: value for name, value in values.items() if name not in long}:
        yield _facts(short, title, _describe_fields(type(record)))
    for name, value in long.items():
        label = _label(name)
        yield Heading(label, name)
        if is_dataclass(value):
            report = report_of(value)
            yield from [Sentence(report.finding)] if report.finding else []
            yield from report.blocks
        else:
            yield _list(value, label)


def _is_long(value: object) -> bool:
    """True for a list of records, a mapping with entries, or a record other than an interval."""
    if isinstance(value, tuple):
        return any(map(is_dataclass, value))
    is_record = is_dataclass(value) and not isinstance(value, Interval)
    return is_record or (isinstance(value, Mapping) and bool(value))


def _facts(values: Mapping[str, object], title: str, meanings: Mapping[str, str]) -> Table:
    return table_of(
        title,
        [
            (Column("", "left", heads=True), [_label(name) for name in values]),
            (Column("value", "left", fit="fold"), [*map(_text, values.values())]),
            (
                Column("is", "left", keep=50, fit="fold"),
                [meanings.get(name, "") for name in values],
            ),
        ],
    )


def _list(value: Any, title: str) -> Table:
    if isinstance(value, Mapping):
        names, texts = [*map(str, value)], [*map(_text, value.values())]
        return table_of(
            title,
            [
                (Column("name", "left", heads=True), names),
                (Column("value", "left", fit="fold"), texts),
            ],
        )
    meanings = _describe_fields(type(value[0]))
    columns = []
    for at, each in enumerate(fields(value[0])):
        cells = [getattr(row, each.name) for row in value]
        align: Literal["left", "right"] = "right" if all(map(_is_number, cells)) else "left"
        meaning = meanings.get(each.name, "")
        column = Column(_label(each.name), align, keep=100 - at, meaning=meaning)
        columns.append((column, [*map(_text, cells)]))
    return table_of(title, columns)


def _is_number(value: object) -> bool:
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))


def _describe_fields(kind: Any) -> Mapping[str, str]:
    """Describe the fields by their `Doc`, or by the docstring of the class."""
    _, docs = field_docs(kind.__doc__ or "")
    texts = {name: text for names, text in docs.items() for name in names.split(", ")}
    for name, hint in get_type_hints(kind, include_extras=True).items():
        for each in getattr(hint, "__metadata__", ()):
            if isinstance(each, Doc):
                texts[name] = each.text
    return {name: text.rstrip(".") for name, text in texts.items()}


def _label(name: str) -> str:
    return name.replace("_", " ")


def _text(value: object) -> str:
    match value:
        case bool():
            text = "yes" if value else "no"
        case float():
            text = number(value, 3)
        case int():
            text = f"{value:,}"
        case datetime():
            text = f"{value:%Y-%m-%d %H:%M}"
        case Interval():
            text = interval_text(value, 3)
        case tuple():
            text = list_text([*map(_text, value)], most=len(value))
        case Mapping():
            text = ", ".join(f"{name} {_text(each)}" for name, each in value.items())
        case _:
            text = "" if value is None else str(value)
    return text or UNKNOWN
