"""Texts of answers, one a line: session, candidate, text."""

import json
import sys
from collections.abc import Mapping
from pathlib import Path

from witan.errors import BallotFileError

Answers = Mapping[str, Mapping[str, str]]
"""Session to candidate to text."""


def load_answers(path: str) -> Answers:
    """Read a file of answers; ``-`` is standard input.

    Raises
    ------
    BallotFileError
        If it is not there, or a line is no answer.
    """
    try:
        content = sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
        return parse_answers(content.decode(), path)
    except UnicodeDecodeError:
        raise BallotFileError(path, "is no UTF-8 text") from None
    except OSError as error:
        raise BallotFileError(path, f"cannot be read: {error.strerror or error}") from error


def parse_answers(text: str, name: str = "answers") -> Answers:
    """Read answers as JSON Lines.

    Raises
    ------
    BallotFileError
        If a line is no answer.
    """
    answers: dict[str, dict[str, str]] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except ValueError as error:
            raise BallotFileError(name, f"no JSON ({error})", number) from None
        if not isinstance(record, dict):
            raise BallotFileError(name, "not an object", number)
        for field in ("candidate", "text"):
            if not isinstance(record.get(field), str):
                raise BallotFileError(name, f"the field {field!r} is missing or no text", number)
        session = str(record.get("session") or "")
        answers.setdefault(session, {})[record["candidate"]] = record["text"]
    return answers
