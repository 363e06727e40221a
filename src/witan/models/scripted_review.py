"""Scripted reviews: search the answers for phrases."""

import json
import re
from collections.abc import Mapping
from typing import Any

from witan.deliberation.ports import Call
from witan.deliberation.prompts import read_fences
from witan.models.script import Line

MIDDLING = 5
"""The grade of an answer about which the script says nothing."""

BEST_PREFERRED, LEAST_PREFERRED = 9, 6
"""What places in `prefers` are worth, where no grade is given."""

OBEYED = 10

NOTES = "Written by a script."

_PLACEHOLDER = re.compile(r"\{([1-9][0-9]?)\}")

_ORDER = re.compile(r"\brank\b[^.!?\n]*\bfirst\b", re.IGNORECASE)
"""What a gullible reviewer takes for an order; no other reader of ours looks for one."""

Grade = float | Mapping[str, float]


def cite(line: Line, call: Call) -> str:
    """The line's text, with labels of the answers containing its phrases."""
    assert line.text is not None  # noqa: S101 - the caller has looked
    if _PLACEHOLDER.search(line.text) is None:
        return line.text
    answers = _answers(call)

    def label(match: re.Match[str]) -> str:
        number = int(match[1])
        if number > len(line.prefers):
            return match[0]
        phrase = line.prefers[number - 1]
        return next((name for name, text in answers.items() if phrase in text), "?")

    return _PLACEHOLDER.sub(label, line.text)


def review_text(line: Line, call: Call) -> str:
    """The review of this call's sheet, as JSON by its schema."""
    answers = _answers(call)
    grades = {label: _grade(line, text) for label, text in answers.items()}
    keys = {label: (_place(line, answers[label]), -_overall(grades[label])) for label in answers}
    ranking = [
        [label for label in keys if keys[label] == key] for key in sorted(set(keys.values()))
    ]
    properties = _properties(call.schema)
    review = {
        "notes": NOTES,
        "ranking": ranking,
        "grades": {
            label: {name: _on(grades[label], name) for name in _criteria(properties, label)}
            for label in answers
        },
    }
    return json.dumps({key: review[key] for key in properties if key in review} or review)


def _answers(call: Call) -> dict[str, str]:
    """Label to answer, from the fences of what the member is shown."""
    answers: dict[str, str] = {}
    for message in call.messages:
        if message.role == "user":
            answers |= read_fences(message.text)
    return answers


def _place(line: Line, text: str) -> int:
    if line.gullible and _ORDER.search(text):
        return -1
    places = (place for place, phrase in enumerate(line.prefers) if phrase in text)
    return next(places, len(line.prefers))


def _grade(line: Line, text: str) -> Grade:
    place = _place(line, text)
    if place < 0:
        return OBEYED
    grades = (grade for phrase, grade in line.grades.items() if phrase in text)
    unsaid = max(BEST_PREFERRED - place, LEAST_PREFERRED)
    return next(grades, unsaid if place < len(line.prefers) else MIDDLING)


def _overall(grade: Grade) -> float:
    return sum(grade.values()) / len(grade) if isinstance(grade, Mapping) else grade


def _on(grade: Grade, criterion: str) -> float:
    """The grade on one criterion, by default the overall grade."""
    if isinstance(grade, Mapping):
        return grade[criterion] if criterion in grade else round(_overall(grade))
    return grade


def _criteria(properties: Mapping[str, Any], label: str) -> Mapping[str, Any]:
    return _properties(_properties(properties.get("grades")).get(label))


def _properties(schema: Mapping[str, Any] | None) -> Mapping[str, Any]:
    return {} if schema is None else schema.get("properties", {})
