"""The only way into the log: one safe line per record."""

import json
import logging
from datetime import UTC, datetime

from witan.service.text import clean

__all__ = ["JsonLine", "PlainLine", "TextLine", "guard_unread_logs"]


class PlainLine(logging.Formatter):
    """The message alone; what belongs to it follows indented."""

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
    """A line of JSON: when, how bad, what, and the fields."""

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
        return json.dumps(line)  # ASCII alone: nothing in it steers a terminal


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
