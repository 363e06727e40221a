"""Preference pairs (chosen, rejected), as in training data sets."""

from collections.abc import Iterator, Mapping
from typing import Any

from witan.core.ballot_records import Unreadable
from witan.errors import BallotFileError
from witan.files.ballots.columns import ALIASES, folded
from witan.files.ballots.formats import Records
from witan.files.ballots.problems import Report

_SIDES = ("chosen", "rejected")
_NAMES = ("model", "model_name", "name", "id", "source", "generator")
_SCORES = ("score", "rating", "grade", "reward")

_NAME_CHARS, _NAME_WORDS = 64, 4
"""A text that is longer, has more words or ends like a sentence is an answer and no name."""


def preferences_as_battles(
    records: Records, columns: Mapping[str, str], stem: str, report: Report
) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Turn pairs into battles won by the chosen; display order unknown.

    A prompt without an id is a session by its text.

    Raises
    ------
    BallotFileError
        If the first pair holds texts, and no field says whose they are.
    """
    first, numbers = True, dict[str, int]()
    for line, record in records:
        try:
            battle = _battle(record, columns)
            prompt = battle.get("prompt")
            if prompt is not None and not _has_session(record, columns):
                number = numbers.setdefault(str(prompt), len(numbers) + 1)
                battle["session"] = f"{stem}/{number}"
            yield line, battle
        except Unreadable as flaw:
            if first:
                problem = flaw.what if flaw.field is None else f"field {flaw.field!r} {flaw.what}"
                raise BallotFileError(report.path, problem, line) from None
            report(line, flaw)
        first = False


def _battle(record: Mapping[str, Any], columns: Mapping[str, str]) -> dict[str, Any]:
    fields = {folded(name): value for name, value in record.items()}
    sides = [columns.get(side) for side in ("first", "second")]
    names = [
        _name(side, fields, None if column is None else record.get(column))
        for side, column in zip(_SIDES, sides, strict=True)
    ]
    texts = [_text(fields.get(side)) for side in _SIDES]
    prompt = fields.get("prompt") or _question(fields.get("chosen"))
    battle = {
        **record,
        "model_a": names[0],
        "model_b": names[1],
        "winner": "model_a",
        "order_known": False,
    }
    battle["prompt"] = prompt
    if texts != names and all(texts):
        battle |= {"response_a": texts[0], "response_b": texts[1]}
    scores = [_score(side, fields) for side in _SIDES]
    if all(score is not None for score in scores):
        battle["notes"] = f"scores {scores[0]} and {scores[1]}"
    return {name: value for name, value in battle.items() if value is not None}


def _has_session(record: Mapping[str, Any], columns: Mapping[str, str]) -> bool:
    names = {folded(name) for name, value in record.items() if value not in (None, "")}
    return "session" in columns or not names.isdisjoint((*ALIASES["session"], "id"))


def _name(side: str, fields: Mapping[str, Any], value: object) -> str:
    """Author of an answer: a model's field, or the text if a name."""
    for name in (f"{side}_{name}" for name in _NAMES):
        value = fields.get(name) if value is None else value
    for name in (f"{name}_{side}" for name in _NAMES):
        value = fields.get(name) if value is None else value
    value = fields.get(side) if value is None else value
    if isinstance(value, str) and _is_name(value.strip()):
        return value.strip()
    raise Unreadable(
        side,
        "is an answer, and no field says whose it is; add chosen_model and rejected_model, or name "
        "the fields that say it: --column first=FIELD --column second=FIELD",
    )


def _is_name(text: str) -> bool:
    is_short = 0 < len(text) <= _NAME_CHARS and len(text.split()) <= _NAME_WORDS
    return is_short and "\n" not in text and text[-1] not in ".?!"


def _text(value: object) -> str | None:
    """An answer: a text, or the last message of a conversation."""
    if isinstance(value, list) and value and isinstance(value[-1], dict):
        value = value[-1].get("content")
    return value if isinstance(value, str) else None


def _question(value: object) -> str | None:
    """The user's first message in a conversation."""
    if not isinstance(value, list):
        return None
    contents = (turn.get("content") for turn in value if isinstance(turn, dict))
    return next((text for text in contents if isinstance(text, str)), None)


def _score(side: str, fields: Mapping[str, Any]) -> object:
    names = [*(f"{side}_{name}" for name in _SCORES), *(f"{name}_{side}" for name in _SCORES)]
    return next((fields[name] for name in names if fields.get(name) not in (None, "")), None)
