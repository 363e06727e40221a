"""Columns of a table by field: own name, alias or caller's name."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from operator import itemgetter

from witan.errors import BallotFileError, InvalidParameter, Remedy, UnknownName, Way

ALIASES: Mapping[str, tuple[str, ...]] = {
    "session": (
        *("session", "session_id", "prompt_id", "question_id", "query_id", "qid", "item"),
        *("item_id", "task", "task_id", "example_id", "instance_id", "sample_id"),
        "conversation_id",
    ),
    "reviewer": (
        *("reviewer", "judge", "voter", "rater", "annotator", "grader", "evaluator", "assessor"),
        *("labeler", "labeller", "reviewer_id", "judge_id", "rater_id", "annotator_id"),
        *("judge_model", "judge_name", "user", "user_id"),
    ),
    "candidate": (
        *("candidate", "model", "answer", "model_id", "model_name", "candidate_id"),
        *("system", "system_id", "llm", "generator"),
    ),
    "rank": ("rank",),
    "grade": ("grade", "score", "rating", "mark", "points"),
    "first": (
        *("first", "model_a", "model_1", "left", "model_left", "a", "option_a", "candidate_a"),
        *("system_a", "assistant_a", "first_model"),
    ),
    "second": (
        *("second", "model_b", "model_2", "right", "model_right", "b", "option_b", "candidate_b"),
        *("system_b", "assistant_b", "second_model"),
    ),
    "outcome": (
        *("outcome", "winner", "preference", "preferred", "choice", "verdict", "vote", "result"),
        *("winning_model",),
    ),
    "position": ("position", "positions"),
    "author": ("author", "authors"),
    "kind": ("kind", "judge_kind", "reviewer_kind"),
    "abstained": ("abstained",),
    "reason": ("reason",),
    "candidates": ("candidates",),
    "weight": ("weight",),
    "category": ("category",),
    "at": ("at",),
    "question": ("question", "prompt", "instruction"),
    "notes": ("notes",),
    "scale": ("scale",),
}
"""Names under which the column of a field is found, first to last, whatever its case and spaces."""

CRITERIA = (
    *("accuracy", "relevance", "completeness", "conciseness", "clarity"),
    *("correctness", "robustness", "craft", "originality", "fidelity", "effect", "calibration"),
    "overall",
)
"""Columns that are criteria wherever they stand: those of the named rubrics, and `overall`, the
holistic grade beside them. Named here because the rubrics themselves load numpy."""

CRITERION_PREFIX = "grade:"
"""A column named with it is a criterion, whatever the criterion's name."""

TEXTS = ("text", "answer", "response", "output")
"""Fields of a line that holds an answer, under which its text stands."""

LENGTHS = ("chars", "output_chars", "length", "n_chars")
"""Fields, or columns, under which the length of an answer stands."""

CANDIDATES = ("candidate", "model", "model_id")
"""Fields of a line that holds an answer, under which its author stands."""

QUESTIONS = ("text", "question", "prompt")
"""Fields of a line that holds a question, under which its text stands."""

_RECORD_FIELDS = ("ranking", "grades", "positions", "authors", "paired")

Cell = Callable[[Sequence[str]], str]


def check_columns(columns: Mapping[str, str]) -> None:
    """Refuse fields unknown to every format."""
    known = (*ALIASES, *_RECORD_FIELDS, "criteria")
    for field, column in columns.items():
        if field not in known:
            raise UnknownName("field", field, known)
        if not column.strip():
            raise InvalidParameter(f"the column of {field!r}", column, "the name of a column")


def join_columns(parts: Iterable[object]) -> str:
    """One name out of several columns, the empty ones left out."""
    return "@".join(text for part in parts if (text := "" if part is None else str(part).strip()))


@lru_cache(maxsize=4096)
def fold_name(name: str) -> str:
    """Normalise a header: ``Model A``, ``model-a`` and ``modelA`` become ``model_a``."""
    parted = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name)
    return re.sub(r"[\W_]+", "_", parted).strip("_").casefold()


class Header:
    """The columns of one table.

    `columns` names the column of a field; ``"judge+version"`` joins two columns as
    ``judge@version``, and ``{"criteria": "a,b"}`` lists further columns that are criteria. With
    `absent`, a column that is named and not there is none, as in one record of many.
    """

    def __init__(
        self, names: Iterable[str], columns: Mapping[str, str], path: str, *, absent: bool = False
    ) -> None:
        self._absent = absent
        self.names = [name.strip() for name in names]
        self.path = path
        self._places = {name: place for place, name in reversed(list(enumerate(self.names)))}
        self._folded = {
            fold_name(name): self._places[name]
            for name in reversed(self.names)
            if not name.casefold().startswith(CRITERION_PREFIX)
        }
        listed = columns.get("criteria", "")
        self._listed = [name.strip() for name in listed.split(",") if name.strip()]
        self._where = {field: found for field in ALIASES if (found := self._find(field, columns))}

    def place(self, *names: str) -> int | None:
        """Position of the first of these columns, if any."""
        return next((self._folded[name] for name in names if name in self._folded), None)

    def column(self, field: str) -> str:
        """The column name of a field."""
        return "+".join(self.names[place] for place in self._where[field])

    def places(self, fields: Iterable[str]) -> set[int]:
        """Positions of these fields' columns."""
        return {place for field in fields for place in self._where.get(field, ())}

    def __contains__(self, field: str) -> bool:
        return field in self._where

    def require(self, *fields: str) -> None:
        """Refuse a table without one of these fields."""
        for field in fields:
            if field not in self:
                names = ", ".join(self.names[:12])
                raise BallotFileError(
                    self.path,
                    f"has no column for the field {field!r}; its columns are {names}",
                    remedy=Remedy(
                        f"call one {' or '.join(ALIASES[field][:5])}",
                        Way("name it with ", {"columns": {field: "HEADER"}}),
                    ),
                )

    def cell(self, field: str) -> Cell:
        """A getter of the field's text in a row."""
        where = self._where.get(field, ())
        if not where:
            return lambda _row: ""
        if len(where) == 1:
            return itemgetter(where[0])
        return lambda row: join_columns(row[place] for place in where)

    def getters(self, fields: Iterable[str]) -> list[tuple[str, Cell]]:
        """The present fields among these, with getters."""
        return [(field, self.cell(field)) for field in fields if field in self]

    def criteria(self) -> tuple[list[tuple[str, int]], bool]:
        """Criteria by name and position, and if they are guessed from leftovers.

        Guessed only where the table has neither ranks nor grades nor a criterion that is known.
        """
        known = []
        for place, name in enumerate(self.names):
            if name.casefold().startswith(CRITERION_PREFIX):
                known.append((name[len(CRITERION_PREFIX) :].strip(), place))
            elif name in self._listed:
                known.append((name, place))
            elif fold_name(name) in CRITERIA:
                known.append((fold_name(name), place))
        if known or "rank" in self or "grade" in self:
            return known, False
        places = self.places(ALIASES)
        return [(n, p) for p, n in enumerate(self.names) if p not in places and n], True

    def _find(self, field: str, columns: Mapping[str, str]) -> tuple[int, ...]:
        if field in columns:
            return self._named(columns[field].strip())
        for alias in ALIASES[field]:
            if alias in self._folded:
                return (self._folded[alias],)
        return ()

    def _named(self, wanted: str) -> tuple[int, ...]:
        if wanted in self._places:
            return (self._places[wanted],)
        parts = [part.strip() for part in wanted.split("+")]
        for part in parts:
            if part not in self._places and self._absent:
                return ()
            if part not in self._places:
                raise BallotFileError(
                    self.path,
                    f"has no column {part!r}; its columns are {', '.join(self.names[:12])}",
                )
        return tuple(self._places[part] for part in parts)
