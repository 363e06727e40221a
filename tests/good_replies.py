"""What a well-behaved model says when a council calls it: the default of the test server."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any
from zlib import crc32

from witan.core.rubric import RUBRICS
from witan.deliberation.prompts import VERDICT_LINE, read_fences

CRITERIA = tuple(criterion.name for criterion in RUBRICS["general"].criteria)


@dataclass(frozen=True)
class ChatRequest:
    """A request for a chat completion, as far as its reply depends on it."""

    body: Mapping[str, Any]

    @property
    def model(self) -> str:
        return str(self.body.get("model"))

    @property
    def roles(self) -> list[str]:
        return [message["role"] for message in self.body.get("messages", [])]

    @property
    def prompt(self) -> str:
        return "\n".join(str(message["content"]) for message in self.body.get("messages", []))

    @property
    def schema(self) -> Mapping[str, Any] | None:
        held = self.body.get("response_format", {}).get("json_schema")
        return None if held is None else held["schema"]

    @property
    def stage(self) -> str:
        """Reviews and repairs are not streamed; a synthesis has its question between fences."""
        if not self.body.get("stream"):
            return "repair" if "assistant" in self.roles else "review"
        return "synthesis" if read_fences(self.prompt, "question") else "answer"

    @property
    def texts(self) -> dict[str, str]:
        """Label to text of the answers that are shown."""
        return read_fences(self.prompt)

    @property
    def criteria(self) -> tuple[str, ...]:
        """What each answer gets a grade for, as the schema says; without one, the usual."""
        if self.schema is None:
            return CRITERIA
        graded = self.schema["properties"].get("grades", {"properties": {}})["properties"]
        return tuple(next(iter(graded.values()))["properties"]) if graded else ()


def worth_of(name: str) -> int:
    """What a model's answers are worth unless a test says otherwise: from 3 to 9, by its name."""
    return 3 + crc32(name.encode()) % 7


def good_reply(asked: ChatRequest, worth: Mapping[str, int]) -> str:
    """An answer that says what it is worth, a review by that, or a final answer."""
    if asked.stage in ("review", "repair"):
        return json.dumps(good_review(asked.texts, asked.criteria))
    if asked.stage == "answer":
        text = f"This is an answer worth {worth.get(asked.model, worth_of(asked.model))} of 10."
    else:
        labels = " and ".join(f"[{label}]" for label in asked.texts)
        text = f"The council holds with {labels} that it is so."
    return f"{text}\nVERDICT: APPROVE" if VERDICT_LINE in asked.prompt else text


def good_review(texts: Mapping[str, str], criteria: tuple[str, ...] = CRITERIA) -> dict[str, Any]:
    """A review of these texts: ranked and graded by what they say they are worth."""
    grades = {label: _stated_worth(text) for label, text in texts.items()}
    best_first = sorted(grades, key=lambda label: -grades[label])
    review: dict[str, Any] = {
        "notes": "By what each says it is worth.",
        "ranking": [list(group) for _, group in groupby(best_first, key=grades.__getitem__)],
    }
    if criteria:
        review["grades"] = {label: dict.fromkeys(criteria, grades[label]) for label in grades}
    return review


def _stated_worth(text: str) -> int:
    """What an answer says it is worth; 5 if it does not."""
    found = re.search(r"worth (\d+)", text)
    return int(found[1]) if found else 5
