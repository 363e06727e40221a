"""Write to standard output, standard error and the log, escaping control sequences."""

import json
import logging
import os
import re
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING, TextIO

import click

from witan.service.text import RESET, STYLES, Page, clean, readable

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

_STYLE_CODES = re.compile(
    "(" + "|".join(map(re.escape, [*filter(None, STYLES.values()), RESET])) + ")"
)


def echo(text: str = "", *, err: bool = False, nl: bool = True) -> None:
    """Write a text to standard output, or to standard error.

    Control characters, bidirectional overrides and the like are always escaped; only our own styles
    are kept, and only on a terminal. Pass names in the text through `clean` first, so that they
    stay on one line.
    """
    stream = sys.stderr if err else sys.stdout
    # Without a terminal, styles are removed already; keep `click` from searching for them.
    color = None if stream.isatty() else True
    click.echo(_printable(text, stream), err=err, nl=nl, color=color)


def say(text: str) -> None:
    """Write a line to standard error, its control characters escaped."""
    echo(clean(text), err=True)


def is_terminal(*, err: bool = False) -> bool:
    """Check whether standard output, or standard error, is a terminal."""
    return (sys.stderr if err else sys.stdout).isatty()


def measure_page(*, err: bool = False) -> Page:
    """Return the width and styles of standard output, or of standard error."""
    return Page.of(sys.stderr if err else sys.stdout)


def page_through(text: str, *, has_colour: bool) -> None:
    """Show a text on a terminal through the reader's pager."""
    # Without -R, less shows escape codes instead of styles.
    os.environ.setdefault("LESS", "-R")
    click.echo_via_pager(_printable(text, sys.stdout), color=has_colour)


def ask(question: str) -> str:
    """Ask for a line on standard error."""
    answer: str = click.prompt(clean(question), err=True)
    return answer


def confirm(question: str, *, default: bool = False) -> bool:
    """Ask for yes or no on standard error."""
    return click.confirm(clean(question), default=default, err=True)


def console(size: tuple[int, int] | None = None) -> "Console":
    """Return a console on standard error, for moving output.

    `size` is that of a picture shown elsewhere, in columns and lines.
    """
    from rich.console import Console

    width, height = size or (None, None)
    return Console(
        stderr=True, highlight=False, markup=False, emoji=False, width=width, height=height
    )


def style_line(text: str, style: str = "", *, one_line: bool = False) -> "Text":
    """Return a console line, cut to its width under `one_line`."""
    from rich.text import Text

    if one_line:
        return Text(clean(text), style=style, no_wrap=True, overflow="ellipsis")
    return Text(clean(text), style=style)


def _printable(text: str, stream: TextIO) -> str:
    if not stream.isatty():
        return readable(text)
    parts = _STYLE_CODES.split(text)
    return "".join(part if at % 2 else readable(part) for at, part in enumerate(parts))


class PlainLine(logging.Formatter):
    """The message alone, with its details indented below."""

    def format(self, record: logging.LogRecord) -> str:
        """Write a record."""
        return "\n".join(map(clean, [record.getMessage(), *_traceback(self, record)]))


class TextLine(logging.Formatter):
    """Log line as text: time, message, fields and indented details."""

    def format(self, record: logging.LogRecord) -> str:
        """Write a record."""
        fields = " ".join(f"{k}={_value(v)}" for k, v in _fields(record).items() if v is not None)
        bad = f"{record.levelname.lower()}: " if record.levelno >= logging.WARNING else ""
        line = f"{_at(record)} {bad}{record.getMessage()} {fields}".rstrip()
        return "\n".join(map(clean, [line, *_traceback(self, record)]))


class JsonLine(logging.Formatter):
    """A line of JSON: time, level, message, and the fields."""

    def format(self, record: logging.LogRecord) -> str:
        """Write a record."""
        line = {
            "at": _at(record),
            "level": record.levelname.lower(),
            "message": record.getMessage(),
            **_fields(record),
        }
        if record.exc_info is not None:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line)  # ASCII only, so nothing in it controls a terminal


def _value(value: object) -> str:
    """Return a value, in quotes where it could pass for fields."""
    text = str(value)
    plain = text and not any(char in '"=\\' or char.isspace() for char in text)
    return text if plain else json.dumps(text, ensure_ascii=False)


def _fields(record: logging.LogRecord) -> dict[str, object]:
    fields: dict[str, object] = getattr(record, "fields", {})
    return fields


def _at(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")


def _traceback(formatter: logging.Formatter, record: logging.LogRecord) -> list[str]:
    if record.exc_info is None:
        return []
    return [f"  {line}" for line in formatter.formatException(record.exc_info).splitlines()]


def guard_unread_logs() -> None:
    """Format warnings without a handler before Python prints them."""
    if logging.lastResort is not None:
        logging.lastResort.setFormatter(PlainLine())


def open_streams() -> None:
    """Replace streams closed before the start, and escape what their encoding lacks.

    Writing to a closed standard output then fails. The order gives each stream its own descriptor,
    which otherwise a file opened later would take.
    """
    if sys.stdin is None:
        sys.stdin = open(os.devnull, encoding="utf-8")  # noqa: PTH123, SIM115
    if sys.stdout is None:
        # Opened for reading, so that writing fails as on a full disk.
        null_device = os.open(os.devnull, os.O_RDONLY)
        sys.stdout = open(null_device, "w", encoding="utf-8")  # noqa: PTH123, SIM115
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            # A character that the encoding lacks must not end the command.
            stream.reconfigure(errors="backslashreplace")


def flush_output() -> None:
    """Write what standard output has buffered."""
    sys.stdout.flush()


def discard_output() -> None:
    """Discard the buffered output, so that exit stays silent."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
