"""Differences between servers of OpenAI's protocol: accepted request fields."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from witan.deliberation.ports import Call
from witan.models.openai_failures import Complaint

LimitField = Literal["max_tokens", "max_completion_tokens"]

Field = Literal[
    LimitField,
    "json_schema",
    "json_object",
    "reasoning_effort",
    "stream",
    "stream_options",
    "temperature",
]
"""What a server may refuse; ``json_…`` are forms of `response_format`."""

_FORMAT_WORDS = ("response_format", "json_schema", "json_object", "structured output", "grammar")
_WORDS: Mapping[Field, tuple[str, ...]] = {
    "max_tokens": ("max_tokens",),
    "max_completion_tokens": ("max_completion_tokens",),
    "json_schema": _FORMAT_WORDS,
    "json_object": _FORMAT_WORDS,
    "reasoning_effort": ("reasoning_effort", "reasoning.effort", "reasoningeffort"),
    "stream": ("streaming", "to stream", "'stream'", '"stream"', "`stream`"),
    "stream_options": ("stream_options", "include_usage"),
    "temperature": ("temperature",),
}
_LIMITS: tuple[LimitField, ...] = ("max_tokens", "max_completion_tokens")
_OPTIONS: tuple[Field, ...] = ("temperature", "reasoning_effort")
_NAMING_STATUSES = (400, 404, 422, 501)
_STREAMED_STAGES = ("answer", "synthesis")


@dataclass(frozen=True, slots=True)
class Dialect:
    """Known peculiarities of one model on one server.

    Parameters
    ----------
    limit
        What the limit on tokens is called, unless the server refuses that name.
    refused
        What requests go without.
    """

    limit: LimitField = "max_tokens"
    refused: frozenset[Field] = frozenset()

    def body(self, model: str, call: Call) -> dict[str, Any]:
        """The body of a request."""
        body: dict[str, Any] = {
            "model": model,
            "messages": [
                {"role": message.role, "content": message.text} for message in call.messages
            ],
        }
        for entry in self._fields(call).values():
            body |= entry
        return body

    def without(self, *fields: Field) -> "Dialect":
        """The dialect without further refused fields."""
        return replace(self, refused=self.refused.union(fields))

    def form(self, call: Call) -> Field | None:
        """The strongest `response_format` not refused."""
        if call.schema is None:
            return None
        forms: tuple[Field, ...] = ("json_schema", "json_object")
        return next((form for form in forms if form not in self.refused), None)

    def named(self, call: Call, status: int, complaint: Complaint) -> Field | None:
        """The field named in a complaint, if any.

        Where it names several the first counts, for the rest is advice.
        """
        if status not in _NAMING_STATUSES:
            return None
        lower = f"'{complaint.field}' {complaint.words}".lower()
        places = {
            field: min((lower.find(word) for word in _WORDS[field] if word in lower), default=None)
            for field in self._fields(call)
        }
        fields = {field: place for field, place in places.items() if place is not None}
        return min(fields, key=fields.__getitem__, default=None)

    def spares(self, field: Field, complaint: Complaint) -> bool:
        """Check that a call can do without the refused field.

        The limit on tokens may change its name but never goes, because what a call can cost rests
        on it; and a server may ignore what it has no name for, so only its name is changed that
        was refused as a name. An option goes only where the server does not take it at all: a
        value out of its range is for whoever set it to mend. The rest is form.
        """
        if field in _LIMITS:
            other = next(name for name in _LIMITS if name != field)
            renamed = other in complaint.words.lower() and not complaint.of_value
            return self.limit not in self.refused and (complaint.of_name or renamed)
        return field not in _OPTIONS or complaint.of_name

    def notes(self, call: Call) -> tuple[str, ...]:
        """Options of a call missing from its request."""
        options = (option for option in _OPTIONS if getattr(call.options, option) is not None)
        return tuple(f"the server does not take {name}" for name in options if name in self.refused)

    def _fields(self, call: Call) -> dict[Field, dict[str, Any]]:
        """Request fields beside model and messages, with their body values."""
        limit: Field = self.limit
        if limit in self.refused:
            limit = "max_completion_tokens" if limit == "max_tokens" else "max_tokens"
        fields: dict[Field, dict[str, Any]] = {limit: {limit: call.max_tokens}}
        if call.options.temperature is not None:
            fields["temperature"] = {"temperature": call.options.temperature}
        if call.options.reasoning_effort is not None:
            fields["reasoning_effort"] = {"reasoning_effort": call.options.reasoning_effort}
        if call.stage in _STREAMED_STAGES and "stream" not in self.refused:
            fields["stream"] = {"stream": True}
            fields["stream_options"] = {"stream_options": {"include_usage": True}}
        if (form := self.form(call)) is not None:
            fields[form] = {"response_format": _format(form, call)}
        return {field: entry for field, entry in fields.items() if field not in self.refused}


def _format(form: Field, call: Call) -> dict[str, Any]:
    if form == "json_object":
        return {"type": "json_object"}
    schema = {"name": call.stage, "strict": True, "schema": call.schema}
    return {"type": "json_schema", "json_schema": schema}
