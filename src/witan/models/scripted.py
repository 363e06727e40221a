"""A scripted model for demonstrations and tests, ours and users'.

Its replies do not come from a model. Without chance and clock, the same call always gets the same
reply. ``docs/members.md`` describes scripts as TOML. `demonstration` seats those of the package.
"""

import json
import re
import tomllib
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from math import isfinite
from pathlib import Path
from typing import Any, TypeGuard

import anyio

from witan.deliberation.ports import Call, Hear, Member, Price, Reply, Stage, Usage
from witan.deliberation.prompts import read_fences
from witan.errors import ConfigError, ModelError
from witan.models.openai_replies import is_transient

MIDDLING = 5
"""Grade of an answer that the script does not mention."""

BEST_PREFERRED, LEAST_PREFERRED = 9, 6
"""Grades of the places in `prefers` without a stated grade."""

OBEYED = 10

NOTES = "Written by a script."

_PLACEHOLDER = re.compile(r"\{([1-9][0-9]?)\}")

_ORDER = re.compile(r"\brank\b[^.!?\n]*\bfirst\b", re.IGNORECASE)
"""Words that a gullible reviewer takes for an order; no other reader of ours does."""

Grade = float | Mapping[str, float]

WORDS_A_PIECE = 3
"""Words that arrive in one piece."""

_WORD = re.compile(r"\s*\S+\s*")

MEMBERS = ("aster", "birch", "cedar", "dogwood", "elder")

ABSTAINER = "dogwood"
"""The seat without a ballot in the degraded demonstration."""

CHAIRMAN = "hazel"

SEED = 20_261_121
"""Seed of the demonstration, which is always the same."""


@dataclass(frozen=True, slots=True)
class Line:
    """One reply in a script, or one failure.

    Parameters
    ----------
    text
        The reply; None in a review that is written from the sheet.
    contains
        Text that the messages of a call must contain.
    seconds
        Seconds before the reply begins.
    tokens_per_second
        Speed of the reply, with one token per word; None for all at once.
    error, status, retry_after
        Failure of the call, after the text if there is one.
    hang
        True if the call never ends.
    empty
        True if the call ends without a reply.
    times
        Number of attempts at one call that the line serves; None for all.
    prefers
        Phrases that identify answers, the best answer's first.
    grades
        Phrase to one grade, or to grades by criterion.
    gullible
        True if the reviewer obeys an answer that orders to be ranked first.
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
        """True if the call gets no reply."""
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
    location = str(path)
    try:
        data = tomllib.loads(Path(path).read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise ConfigError(location, "", f"cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(location, "", f"is not UTF-8 text (at byte {error.start})") from error
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ConfigError(location, "", f"is not TOML: {error}") from error
    stages = [stage.name for stage in fields(Script)]
    for key in data:
        if key not in stages:
            raise ConfigError(location, key, f"is not a stage; expected only {', '.join(stages)}")
    return Script(**{stage: tuple(_lines(location, stage, data[stage])) for stage in data})


def _lines(source: str, stage: str, rows: object) -> Iterator[Line]:
    tables = rows if isinstance(rows, list) else [rows]
    for number, table in enumerate(tables, start=1):
        key = f"{stage}[{number}]"
        if not isinstance(table, dict):
            raise ConfigError(source, key, f"is {table!r}; expected a table headed [[{stage}]]")
        _check(source, key, table)
        entries: dict[str, Any] = {**table, "prefers": tuple(table.get("prefers", ()))}
        line = Line(**entries)
        if line.text is None and not line.fails and stage in ("answer", "synthesis"):
            raise ConfigError(source, key, "has no reply; expected text, error, hang or empty")
        yield line


def _check(source: str, key: str, table: Mapping[str, object]) -> None:
    for name, value in table.items():
        if name not in _FIELD_CHECKS:
            names = ", ".join(_FIELD_CHECKS)
            raise ConfigError(source, f"{key}.{name}", f"is unknown; expected only {names}")
        holds, expected = _FIELD_CHECKS[name]
        if not holds(value):
            raise ConfigError(source, f"{key}.{name}", f"is {value!r}; expected {expected}")


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_flag(value: object) -> bool:
    return isinstance(value, bool)


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)


def _is_duration(value: object) -> bool:
    return _is_number(value) and value >= 0


def _are_phrases(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(phrase, str) for phrase in value)


def _are_grades(value: object) -> bool:
    return isinstance(value, dict) and all(
        _is_number(grade)
        or (isinstance(grade, dict) and grade and all(_is_number(g) for g in grade.values()))
        for grade in value.values()
    )


_FIELD_CHECKS: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "text": (_is_text, "text"),
    "contains": (_is_text, "text"),
    "seconds": (_is_duration, "a number of seconds, 0 or more"),
    "tokens_per_second": (lambda value: _is_number(value) and value > 0, "a number above 0"),
    "error": (_is_text, "text"),
    "status": (
        lambda value: type(value) is int and 400 <= value <= 599,
        "an HTTP status from 400 to 599",
    ),
    "retry_after": (_is_duration, "a number of seconds, 0 or more"),
    "hang": (_is_flag, "true or false"),
    "empty": (_is_flag, "true or false"),
    "times": (lambda value: type(value) is int and value >= 1, "a whole number, 1 or more"),
    "prefers": (_are_phrases, "a list of phrases"),
    "grades": (_are_grades, "phrases, each with a number or a table of criteria and numbers"),
    "gullible": (_is_flag, "true or false"),
}


def cite(line: Line, call: Call) -> str:
    """Return the line's text, with labels of the answers containing its phrases."""
    assert line.text is not None  # noqa: S101 - checked by the caller
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
    """Return the review of this call's sheet, as JSON by its schema."""
    answers = _answers(call)
    grades = {label: _grade(line, text) for label, text in answers.items()}
    keys = {label: (_place(line, answers[label]), -_overall(grades[label])) for label in answers}
    ranking = [
        [label for label in keys if keys[label] == key] for key in sorted(set(keys.values()))
    ]
    properties = _properties(call.schema)
    graded_properties = _properties(properties.get("grades"))
    review = {
        "notes": NOTES,
        "ranking": ranking,
        "grades": {
            label: {
                name: _grade_on(grades[label], name)
                for name in _properties(graded_properties.get(label))
            }
            for label in answers
        },
    }
    return json.dumps({key: review[key] for key in properties if key in review} or review)


def _answers(call: Call) -> dict[str, str]:
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
    default_grade = max(BEST_PREFERRED - place, LEAST_PREFERRED)
    return next(grades, default_grade if place < len(line.prefers) else MIDDLING)


def _overall(grade: Grade) -> float:
    return sum(grade.values()) / len(grade) if isinstance(grade, Mapping) else grade


def _grade_on(grade: Grade, criterion: str) -> float:
    if isinstance(grade, Mapping):
        return grade[criterion] if criterion in grade else round(_overall(grade))
    return grade


def _properties(schema: Mapping[str, Any] | None) -> Mapping[str, Any]:
    return {} if schema is None else schema.get("properties", {})


ScriptLine = str | Line | Callable[[Call], str]
"""A text, a line, or a function from a call to its text."""


class ScriptedModel:
    """A scripted model, usable by concurrent sessions.

    Each sequence contains the entries of that stage; the first one that matches a call is played.
    An entry with `times` serves only that many attempts at one call; attempts share the same `Call`
    object. The number of attempts is the only state, and lasts as long as the call, so sessions do
    not affect each other.
    """

    def __init__(
        self,
        name: str,
        *,
        answers: Sequence[ScriptLine] = (),
        reviews: Sequence[ScriptLine] = (),
        repairs: Sequence[ScriptLine] = (),
        synthesis: Sequence[ScriptLine] = (),
    ) -> None:
        self.name = name
        self._lines_by_stage: dict[Stage, tuple[ScriptLine, ...]] = {
            "answer": tuple(answers),
            "review": tuple(reviews) or (Line(),),
            "repair": tuple(repairs) or tuple(reviews) or (Line(),),
            "synthesis": tuple(synthesis),
        }
        self._attempts = _Attempts()

    @classmethod
    def load(cls, path: str | Path, name: str | None = None) -> "ScriptedModel":
        """Play the script of a TOML file."""
        return cls.of(read_script(path), f"script:{path}" if name is None else name)

    @classmethod
    def of(cls, script: Script, name: str) -> "ScriptedModel":
        """Play a script."""
        return cls(
            name,
            answers=script.answer,
            reviews=script.review,
            repairs=script.repair,
            synthesis=script.synthesis,
        )

    def __repr__(self) -> str:
        return f"ScriptedModel({self.name!r})"

    async def complete(self, call: Call, hear: Hear, /) -> Reply:
        """Stream the script's line for this call, or fail as scripted."""
        line = self._pick(call)
        if not isinstance(line, Line):
            line = Line(line if isinstance(line, str) else line(call))
        await anyio.sleep(line.seconds)
        if line.text is not None:
            text = cite(line, call)
        else:
            text = "" if line.fails else review_text(line, call)
        words = _WORD.findall(text)
        spoken = words[: call.max_tokens]
        pause = 0.0 if line.tokens_per_second is None else 1 / line.tokens_per_second
        for start in range(0, len(spoken), WORDS_A_PIECE):
            piece = spoken[start : start + WORDS_A_PIECE]
            hear("".join(piece))
            await anyio.sleep(pause * len(piece))
        if line.hang:
            await anyio.sleep_forever()
        if line.empty:
            raise ModelError(self.name, "said nothing", transient=True)
        if line.error is not None:
            transient = line.status is not None and is_transient(line.status)
            raise ModelError(self.name, line.error, line.status, line.retry_after, transient)
        n_words = sum(len(message.text.split()) for message in call.messages)
        return Reply("".join(spoken), Usage(n_words, len(spoken)), cut=len(words) > len(spoken))

    def _pick(self, call: Call) -> ScriptLine:
        fitting = [entry for entry in self._lines_by_stage[call.stage] if _fits(entry, call)]
        if not fitting:
            raise ModelError(self.name, f"its script has no reply for this {call.stage}")
        return _skip_exhausted(self._attempts.count(call), fitting)


class _Attempts:
    """Attempts per call, identified by stage and seat instead of text."""

    def __init__(self) -> None:
        self._attempts_by_call: dict[int, tuple[weakref.ref[Call], int]] = {}

    def count(self, call: Call) -> int:
        """Count an attempt; return the number of those before it."""
        key = id(call)
        attempts = self._attempts_by_call.get(key)
        n_earlier = 0 if attempts is None else attempts[1]
        forget = self._attempts_by_call.pop
        self._attempts_by_call[key] = (
            weakref.ref(call, lambda _: forget(key, None)),
            n_earlier + 1,
        )
        return n_earlier


def _skip_exhausted(attempts: int, entries: Sequence[ScriptLine]) -> ScriptLine:
    """Skip exhausted entries; the last one never is."""
    for entry in entries[:-1]:
        if not isinstance(entry, Line) or entry.times is None or attempts < entry.times:
            return entry
        attempts -= entry.times
    return entries[-1]


def _fits(entry: ScriptLine, call: Call) -> bool:
    return (
        not isinstance(entry, Line)
        or entry.contains is None
        or any(entry.contains in message.text for message in call.messages)
    )


SCRIPTS = Path(__file__).parent / "demo"


@dataclass(frozen=True, slots=True)
class Demonstration:
    """Seats and question of the demonstration."""

    question: str
    members: tuple[Member, ...]
    chairman: Member
    seed: int


def demonstration(*, fast: bool, degraded: bool = False) -> Demonstration:
    """Seat the scripts of the demonstration.

    `fast`: play the scripts without their pauses.
    `degraded`: seat a reviewer that never casts a ballot, so that the session ends degraded.
    """
    name_of_degraded = {ABSTAINER: f"{ABSTAINER}-degraded"} if degraded else {}
    return Demonstration(
        (SCRIPTS / "question.txt").read_text(encoding="utf-8").strip(),
        tuple(_member(name, name_of_degraded.get(name, name), fast=fast) for name in MEMBERS),
        _member(CHAIRMAN, CHAIRMAN, fast=fast),
        SEED,
    )


def _member(name: str, script_name: str, *, fast: bool) -> Member:
    path = SCRIPTS / f"{script_name}.toml"
    script = read_script(path)
    model = ScriptedModel.of(_remove_pauses(script) if fast else script, name)
    return Member(name, model, f"script:{path}", "script", price=Price(0.0, 0.0), simulated=True)


def _remove_pauses(script: Script) -> Script:
    def hurry(lines: tuple[Line, ...]) -> tuple[Line, ...]:
        return tuple(replace(line, seconds=0.0, tokens_per_second=None) for line in lines)

    return replace(
        script,
        answer=hurry(script.answer),
        review=hurry(script.review),
        repair=hurry(script.repair),
        synthesis=hurry(script.synthesis),
    )
