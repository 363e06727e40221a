"""Answers from a file, put through the safety gate session by session."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

import click

from witan.core.gate import Gate
from witan.core.safety import check

__all__ = ["read_answers"]


def read_answers(path: str) -> Mapping[str, Gate]:
    """The gate of every session that the file holds answers of."""
    texts: dict[str, dict[str, str]] = {}
    with click.open_file(path, encoding="utf-8") as lines:
        try:
            for session, candidate, text in _answers(path, lines):
                texts.setdefault(session, {})[candidate] = text
        except UnicodeDecodeError:
            raise click.BadParameter(f"{path} is no UTF-8 text", param_hint="--answers") from None
    return {session: Gate.of(answers, check) for session, answers in texts.items()}


def _answers(path: str, lines: Any) -> Iterator[tuple[str, str, str]]:
    for count, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            held = json.loads(line)
        except ValueError as error:
            raise _wrong(path, count, f"no JSON ({error})") from None
        if not isinstance(held, dict):
            raise _wrong(path, count, "not an object")
        for field in ("candidate", "text"):
            if not isinstance(held.get(field), str):
                raise _wrong(path, count, f"the field {field!r} is missing or no text")
        yield str(held.get("session") or ""), held["candidate"], held["text"]


def _wrong(path: str, line: int, problem: str) -> click.BadParameter:
    return click.BadParameter(f"{path}:{line}: {problem}", param_hint="--answers")
