"""The JSON in a reply: whole, or wherever in the text it stands.

Of a key that an object repeats the last value counts, and `ambiguous_keys` names it.
"""

import json
import re
from collections.abc import Iterator
from math import isfinite
from typing import Any

__all__ = ["ambiguous_keys", "values_in", "whole"]

_OPENING = re.compile(r"[\[{]")

_LONGEST_NUMBER = 20
"""Digits beyond which a number is kept as the text it was."""

_PATIENCE = 32
"""How often the text may be read in vain: stray brackets must not make reading it quadratic."""

_LOOKING = 64
"""How many times quicker than reading a text it is to look for the lines that an error names."""

_DEEP = 10_000
"""What an attempt counts that ended for its depth; nobody says where."""


def _number(written: str) -> float | str:
    value = float(written)
    return value if isfinite(value) else written


def _whole_number(written: str) -> int | str:
    return int(written) if len(written) <= _LONGEST_NUMBER else written


class _Ambiguous(dict[str, Any]):
    """An object that gives one key different values."""

    def __init__(self, pairs: list[tuple[str, Any]], keys: tuple[str, ...]) -> None:
        super().__init__(pairs)
        self.ambiguous = keys


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    ambiguous: dict[str, None] = {}
    for key, value in pairs:
        name = key.strip().casefold()
        if values.setdefault(name, value) != value:
            ambiguous[name] = None
    return _Ambiguous(pairs, tuple(ambiguous)) if ambiguous else dict(pairs)


# Not strict: models put raw line breaks into strings. NaN and the infinities stay text.
_DECODER = json.JSONDecoder(
    strict=False,
    parse_constant=str,
    parse_float=_number,
    parse_int=_whole_number,
    object_pairs_hook=_object,
)


def whole(text: str) -> object:
    """What the text is, if all of it is one JSON value; else None, as for ``null``."""
    try:
        return _DECODER.decode(text)
    except (ValueError, RecursionError):
        return None


def ambiguous_keys(value: object) -> Iterator[str]:
    """Name the keys, in lower case, that an object in a JSON value gives different values."""
    pending = [value]
    while pending:
        each = pending.pop()
        if isinstance(each, _Ambiguous):
            yield from each.ambiguous
        if isinstance(each, dict):
            pending.extend(each.values())
        elif isinstance(each, list):
            pending.extend(each)


def values_in(text: str) -> Iterator[dict[str, Any] | list[Any]]:
    """Every JSON object and list in the text that stands in no other, first to last.

    A bracket that opens no value is passed over, so a value that is cut short is never completed,
    but what is complete inside it is found. Commas before a closing bracket are overlooked.
    """
    lock_wait, looking = _PATIENCE * len(text), len(text) // _LOOKING
    start = _OPENING.search(text)
    while start is not None and lock_wait >= 0:
        try:
            value, end = _DECODER.raw_decode(text, start.start())
        except json.JSONDecodeError as error:
            lock_wait -= error.pos - start.start() + 1 + looking
            comma = _trailing_comma(text, error.pos)
            if comma is None:
                end = start.end()
            else:
                text, end = text[:comma] + " " + text[comma + 1 :], start.start()
        except RecursionError:
            lock_wait -= _DEEP
            end = start.end()
        else:
            yield value
        start = _OPENING.search(text, end)


def _trailing_comma(text: str, position: int) -> int | None:
    """Where the comma stands that keeps a bracket from closing, if that is what is wrong."""
    # Interpreters disagree on whether the error is at the comma or at the bracket.
    comma = position if text[position : position + 1] == "," else _before(text, position)
    closing = re.compile(r"\s*[\]}]").match(text, comma + 1)
    return comma if comma >= 0 and text[comma] == "," and closing is not None else None


def _before(text: str, position: int) -> int:
    """Where the last character before a position stands that is not blank; -1: nowhere."""
    while position > 0 and text[position - 1].isspace():
        position -= 1
    return position - 1
