"""Scripts: a scripted member's lines per stage, as values and TOML.

A file holds, for each stage, the lines among which the first that fits a call is played::

    [[answer]]
    text = "Seven, since …"
    seconds = 0.4                # before it says anything
    tokens_per_second = 60       # a token is a word; without it, all at once

    [[answer]]
    contains = "And in winter?"  # only where the prompt contains this
    text = "Nine."

    [[review]]
    error = "is overloaded"      # fails …
    status = 429
    retry_after = 0.5
    times = 1                    # … on the first attempt at a call, then the next line fits

    [[review]]
    prefers = ["Seven, since", "about seven"]

    [review.grades]
    "Seven, since" = { accuracy = 9, clarity = 7 }
    "about seven" = 6

    [[synthesis]]
    prefers = ["Seven, since"]
    text = "Seven, as [{1}] shows."

A review without ``text`` is written from the sheet: answers that contain the phrases of
``prefers`` come first, in that order, and the grades are those of the first phrase of
``grades`` that an answer contains; otherwise the order says how good an answer is, and one that
nothing is said about is middling. Phrases are looked for in the answers as they stand on the
sheet, where names of models are masked. ``gullible = true`` obeys an order, found in an answer,
to rank it first. With ``text`` the review is that text, well-formed or not.

In a text ``{1}`` stands for the label of the answer that contains the first phrase of
``prefers``, ``{2}`` for that of the second, and so on; ``?`` where there is no such answer.

``error`` (with ``status`` and ``retry_after``) fails, ``hang = true`` never ends and
``empty = true`` brings nothing; each of them after ``text``, if there is one, was heard. A
``[[repair]]`` is how a review is repaired; without any, the lines of the review serve again.
"""

import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from math import isfinite
from pathlib import Path
from typing import Any, TypeGuard

from witan.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Line:
    """One reply in a script, or one failure.

    Parameters
    ----------
    text
        What is said; None in a review: it is written from the sheet.
    contains
        The line fits only a call whose messages contain this.
    seconds
        Before anything is said.
    tokens_per_second
        How fast it is said, a word being a token; None: at once.
    error, status, retry_after
        What the call fails with, once the text, if there is one, was said.
    hang
        The call never ends.
    empty
        The call ends without a reply.
    times
        The line fits only so many attempts at one call; None: all of them.
    prefers
        Phrases by which answers are told apart, the best answer's first.
    grades
        Phrase to one grade, or to grades by criterion.
    gullible
        An answer that orders to be ranked first, is.
    """

    text: str | None = None
    contains: str | None = None
    seconds: float = 0.0
    tokens_per_second: float | None = None
    error: str | None = None
    status: int | None = None
    retry_after: float | None = None
    hang: bool = False
    empty: bool = False
    times: int | None = None
    prefers: tuple[str, ...] = ()
    grades: Mapping[str, float | Mapping[str, float]] = field(default_factory=dict)
    gullible: bool = False

    @property
    def fails(self) -> bool:
        """True if the call brings no reply."""
        return self.error is not None or self.hang or self.empty


@dataclass(frozen=True, slots=True)
class Script:
    """The lines of every stage, in order of trial."""

    answer: tuple[Line, ...] = ()
    review: tuple[Line, ...] = ()
    repair: tuple[Line, ...] = ()
    synthesis: tuple[Line, ...] = ()


def read_script(path: str | Path) -> Script:
    """Read a script from TOML; errors name file, key and expectation."""
    where = str(path)
    try:
        data = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(where, "", f"cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(where, "", f"is not UTF-8 text (at byte {error.start})") from error
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(where, "", f"is not TOML: {error}") from error
    stages = [stage.name for stage in fields(Script)]
    for key in data:
        if key not in stages:
            raise ConfigError(where, key, f"is no stage; expected only {', '.join(stages)}")
    return Script(**{stage: tuple(_lines(where, stage, data[stage])) for stage in data})


def _lines(where: str, stage: str, rows: object) -> Iterator[Line]:
    tables = rows if isinstance(rows, list) else [rows]
    for number, table in enumerate(tables, start=1):
        key = f"{stage}[{number}]"
        if not isinstance(table, dict):
            raise ConfigError(where, key, f"is {table!r}; expected a table headed [[{stage}]]")
        _check(where, key, table)
        entries: dict[str, Any] = {**table, "prefers": tuple(table.get("prefers", ()))}
        line = Line(**entries)
        if line.text is None and not line.fails and stage in ("answer", "synthesis"):
            raise ConfigError(where, key, "says nothing; expected text, error, hang or empty")
        yield line


def _check(where: str, key: str, table: Mapping[str, object]) -> None:
    for name, value in table.items():
        if name not in _EXPECTED:
            known = ", ".join(_EXPECTED)
            raise ConfigError(where, f"{key}.{name}", f"is unknown; expected only {known}")
        holds, expected = _EXPECTED[name]
        if not holds(value):
            raise ConfigError(where, f"{key}.{name}", f"is {value!r}; expected {expected}")


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_flag(value: object) -> bool:
    return isinstance(value, bool)


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)


def _is_duration(value: object) -> bool:
    return _is_number(value) and value >= 0


def _is_rate(value: object) -> bool:
    return _is_number(value) and value > 0


def _is_status(value: object) -> bool:
    return type(value) is int and 400 <= value <= 599


def _is_count(value: object) -> bool:
    return type(value) is int and value >= 1


def _are_phrases(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(phrase, str) for phrase in value)


def _are_grades(value: object) -> bool:
    return isinstance(value, dict) and all(
        _is_number(grade)
        or (isinstance(grade, dict) and grade and all(_is_number(g) for g in grade.values()))
        for grade in value.values()
    )


_EXPECTED: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "text": (_is_text, "text"),
    "contains": (_is_text, "text"),
    "seconds": (_is_duration, "a number of seconds, 0 or more"),
    "tokens_per_second": (_is_rate, "a number above 0"),
    "error": (_is_text, "text"),
    "status": (_is_status, "an HTTP status from 400 to 599"),
    "retry_after": (_is_duration, "a number of seconds, 0 or more"),
    "hang": (_is_flag, "true or false"),
    "empty": (_is_flag, "true or false"),
    "times": (_is_count, "a whole number, 1 or more"),
    "prefers": (_are_phrases, "a list of phrases"),
    "grades": (_are_grades, "phrases, each with a number or a table of criteria and numbers"),
    "gullible": (_is_flag, "true or false"),
}
