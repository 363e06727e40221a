"""Councils as models of the command ``llm``: a plugin."""

import json
from collections.abc import AsyncGenerator, Iterator
from dataclasses import fields
from typing import TYPE_CHECKING, Any, get_type_hints

import llm
from llm.parts import StreamEvent, TextPart
from pydantic import Field, create_model

import witan
from witan.bridges.replies import CouncilCall, ProgressLine, iterate, session_facts
from witan.councils import CouncilSettings, council_names

if TYPE_CHECKING:
    from witan.models import Message

MODEL_NAME = "witan"
"""Key of the session in the data that `llm` stores with a reply."""

EXCLUDED_OPTIONS = ("json_schema", "rubric_weights", "weights", "reliability", "rule_parameters")
"""Settings without an option of `llm`: it has its own for the schema, and the others are tables."""


def _make_options() -> type[llm.Options]:
    hints = get_type_hints(CouncilSettings, include_extras=True)
    shared_options: dict[str, Any] = {
        each.name: (hints[each.name], None)
        for each in fields(CouncilSettings)
        if each.name not in EXCLUDED_OPTIONS
    }
    options: type[llm.Options] = create_model(
        "Options",
        __base__=llm.Options,
        **shared_options,
        seed=(int | None, Field(None, ge=0, description="Random seed for sheets and labels.")),
        category=(str | None, Field(None, description="Kind of question, for leaderboards.")),
        legend=(
            bool,
            Field(False, description="End with the legend of the labels and the trust line."),
        ),
    )
    return options


class _NamedCouncil:
    can_stream = True
    supports_schema = True
    Options = _make_options()

    def __init__(self, name: str) -> None:
        self.model_id = name

    async def _reply(
        self, prompt: Any, response: Any, *, stream: bool
    ) -> AsyncGenerator[StreamEvent, None]:
        settings = prompt.options.model_dump(exclude_none=True)
        about = {name: settings.pop(name) for name in ("seed", "category") if name in settings}
        legend = settings.pop("legend")
        if prompt.schema is not None:
            settings["json_schema"] = json.dumps(prompt.schema)
        if (parent := _last_session(prompt.messages)) is not None:
            about["parent"] = parent
        messages = [*_read_messages(prompt.messages)]
        if not messages or messages[-1].role != "user":
            raise witan.errors.InvalidParameter("question", "", "something to ask")
        *conversation, question = messages
        call = CouncilCall(
            self.model_id, question.text, conversation, settings, about, legend=legend
        )
        async for piece in call.stream():
            match piece:
                case ProgressLine():
                    yield StreamEvent("reasoning", f"{piece.text}\n")
                case str() if stream:
                    yield StreamEvent("text", piece)
                case witan.Session() as session:
                    text = "" if stream else call.whole_text(session)
                    yield StreamEvent(
                        "text", text, provider_metadata={MODEL_NAME: {"session": session.id}}
                    )
                    response.set_usage(
                        input=session.usage.input_tokens,
                        output=session.usage.output_tokens,
                        details={"cost_usd": session.cost.total_usd},
                    )
                    response.response_json = session_facts(session)


class WitanModel(_NamedCouncil, llm.Model):
    """A council as a model, under its name."""

    def execute(
        self,
        prompt: Any,
        stream: bool,
        response: Any,
        conversation: Any,  # noqa: ARG002 - llm's
    ) -> Iterator[StreamEvent]:
        """Send the prompt to the council."""
        return iterate(lambda: self._reply(prompt, response, stream=stream))


class AsyncWitanModel(_NamedCouncil, llm.AsyncModel):
    """A council as an asynchronous model."""

    async def execute(
        self,
        prompt: Any,
        stream: bool,
        response: Any,
        conversation: Any,  # noqa: ARG002 - llm's
    ) -> AsyncGenerator[StreamEvent, None]:
        """Send the prompt to the council."""
        async for event in self._reply(prompt, response, stream=stream):
            yield event


def _read_messages(messages: list[Any]) -> "Iterator[Message]":
    for message in messages:
        text = "\n\n".join(part.text for part in message.parts if isinstance(part, TextPart))
        if text.strip():
            yield witan.models.Message("user" if message.role == "tool" else message.role, text)


def _last_session(messages: list[Any]) -> str | None:
    for message in reversed(messages):
        for part in message.parts:
            facts = (getattr(part, "provider_metadata", None) or {}).get(MODEL_NAME)
            if facts is not None:
                session: str = facts["session"]
                return session
    return None


@llm.hookimpl
def register_models(register: Any) -> None:
    """Register the configured council and each profile.

    A broken configuration is reported when one of these models is prompted.
    """
    try:
        names = council_names()
    except witan.errors.WitanError:
        names = [MODEL_NAME]
    for name in names:
        register(WitanModel(name), AsyncWitanModel(name))
