"""Requests of OpenAI's protocol, as questions to a council."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, NotRequired

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationInfo,
    WithJsonSchema,
    field_validator,
)
from pydantic_core import PydanticCustomError
from typing_extensions import TypedDict

from witan.deliberation.ports import Message
from witan.deliberation.structure import check_schema
from witan.errors import InvalidParameter
from witan.service.council_names import CouncilModel
from witan.service.council_settings import CouncilSettings
from witan.service.parameters import Doc
from witan.service.requests import (
    Category,
    CouncilRequest,
    Files,
    Options,
    QuestionRequest,
    Turn,
)
from witan.service.stored_sessions import Name, Text

TEXT_PARTS = {"text": "text", "input_text": "text", "refusal": "refusal"}
"""Kind of a part to the field with its text."""

CALLS_NOTHING = (
    "the council calls no tools and no functions; leave this out, or send tool_choice: none"
)

IMAGES = ("image_url", "input_image")


def _join(content: object) -> object:
    """Join the text of a message that is a list of parts."""
    if content is None:
        return ""
    if not isinstance(content, list):
        return content
    return "\n\n".join(map(_part, content))


def _part(part: object) -> str:
    kind = part.get("type") if isinstance(part, dict) else None
    if kind in IMAGES:
        words = "holds an image, and members see none yet; describe it in words"
        raise PydanticCustomError("not_text", words)
    if not isinstance(part, dict) or kind not in TEXT_PARTS:
        words = "holds a part of the type {kind}; the council reads text alone"
        raise PydanticCustomError("not_text", words, {"kind": repr(kind)})
    text = part.get(TEXT_PARTS[kind])
    if not isinstance(text, str):
        raise PydanticCustomError("not_text", "holds a part without its text")
    return text


class ContentPart(TypedDict):
    """A part of a message; the council reads text alone.

    Parameters
    ----------
    type
        Its kind; a refusal holds its text in the field of that name.
    text, refusal
        Its text.
    """

    type: Literal["text", "input_text", "refusal"]
    text: NotRequired[str]
    refusal: NotRequired[str]


Content = Annotated[
    Text, BeforeValidator(_join, json_schema_input_type=str | list[ContentPart] | None)
]


def _only(value: Any) -> WithJsonSchema:
    """Describe what is accepted, where a validator words the refusal."""
    return WithJsonSchema(TypeAdapter(value).json_schema())


Tools = Annotated[
    Any,
    WithJsonSchema(
        {
            "type": ["array", "null"],
            "items": {
                "type": "object",
                "properties": {"type": {"type": "string"}, "name": {"type": "string"}},
            },
            "description": "Only where the choice is `none`: the council calls nothing.",
        }
    ),
]


ToolChoice = Annotated[Any, WithJsonSchema({"type": ["string", "object", "null"]})]

Stops = Annotated[
    list[str],
    Field(max_length=4),
    BeforeValidator(
        lambda stop: [stop] if isinstance(stop, str) else stop,
        json_schema_input_type=str | Annotated[list[str], Field(max_length=4)],
    ),
]


class ReplySchema(TypedDict):
    """A JSON Schema under a name.

    Parameters
    ----------
    schema
        The schema; unless given, any JSON object will do.
    """

    schema: NotRequired[dict[str, Any] | None]


class ResponseFormat(TypedDict):
    """The form of the final answer.

    Parameters
    ----------
    type
        Prose, any JSON object, or JSON that satisfies a schema.
    json_schema
        The schema.
    """

    type: Literal["text", "json_object", "json_schema"]
    json_schema: NotRequired[ReplySchema | None]


ANY_OBJECT = '{"type": "object"}'


class _Lenient(BaseModel):
    """A part of earlier replies, which may hold more than the protocol."""

    model_config = ConfigDict(extra="ignore", strict=True, allow_inf_nan=False)


class FunctionBody(_Lenient):
    """A function that an assistant called."""

    name: Text = ""
    arguments: Text = ""


class ToolCallBody(_Lenient):
    """A call that an assistant made."""

    id: str = ""
    function: FunctionBody = FunctionBody()


class MessageBody(_Lenient):
    """One message of the conversation."""

    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: Content = ""
    name: Text | None = None
    tool_calls: Annotated[list[ToolCallBody], Field(max_length=1_000)] | None = None
    tool_call_id: str | None = None


class StreamOptionsBody(_Lenient):
    """Options of a stream."""

    include_usage: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CouncilBody(CouncilRequest):
    """A council, its deliberation, and what comes with the question."""

    category: Category = None
    files: Files = field(default_factory=dict)
    mark: Annotated[
        bool, Doc("Whether a text that is simulated or lacks something says so at its end.")
    ] = True
    legend: Annotated[
        bool, Doc("Put the legend of the labels and the trust line below every text.")
    ] = False
    narration: Annotated[
        bool | None,
        Doc("Say what the council does; unless given, streams of prose say it."),
    ] = None
    options: Options = field(default_factory=CouncilSettings)


class ChatBody(BaseModel):
    """A request for a chat completion, with `witan` beside it."""

    model_config = ConfigDict(
        extra="allow",
        strict=True,
        allow_inf_nan=False,
        json_schema_extra={
            "examples": [
                {
                    "model": "witan/demo",
                    "messages": [
                        {"role": "user", "content": "Is a hash map faster than a sorted array?"}
                    ],
                    "stream": False,
                    "witan": {"category": "coding", "options": {"rule": "schulze"}},
                }
            ]
        },
    )

    model: Annotated[Name, Field(description="One of those that `/v1/models` lists.")]
    messages: Annotated[list[MessageBody], Field(min_length=1, max_length=1_000)]
    stream: bool | None = None
    stream_options: StreamOptionsBody | None = None
    max_completion_tokens: Annotated[int, Field(ge=1)] | None = None
    max_tokens: Annotated[
        int | None, Field(ge=1, description="The most tokens of every reply, reviews included.")
    ] = None
    seed: Annotated[int, Field(ge=0, lt=2**53)] | None = None
    n: Annotated[Any, _only(Literal[1] | None)] = None
    stop: Annotated[
        Stops | None,
        Field(description="End the final answer before any of these; JSON is not cut."),
    ] = None
    tool_choice: ToolChoice = None
    function_call: ToolChoice = None
    tools: Tools = None
    functions: Tools = None
    response_format: Annotated[
        ResponseFormat | None, Field(description="Have the chairman write JSON, and check it.")
    ] = None
    modalities: Annotated[Any, _only(list[Literal["text"]] | None)] = None
    logprobs: Annotated[Any, _only(Literal[False] | None)] = None
    witan: Annotated[
        CouncilBody, Field(description="Counts before what the name of the model says.")
    ] = CouncilBody()

    @field_validator("n")
    @classmethod
    def _one(cls, n: object) -> object:
        return _check(n, n in (None, 1), "the council gives one text; ask once for each, or n = 1")

    @field_validator("tools", "functions")
    @classmethod
    def _no_tools(cls, tools: object, info: ValidationInfo) -> object:
        choice = info.data.get("tool_choice" if info.field_name == "tools" else "function_call")
        return _check(tools, not tools or choice == "none", CALLS_NOTHING)

    @field_validator("response_format")
    @classmethod
    def _meetable(cls, form: ResponseFormat | None) -> ResponseFormat | None:
        try:
            if (schema := schema_of(form)) is not None:
                check_schema(schema)
        except InvalidParameter as error:
            words = "is to hold {expected}"
            raise PydanticCustomError("no_schema", words, {"expected": error.expected}) from None
        return form

    @field_validator("modalities")
    @classmethod
    def _no_voice(cls, modalities: object) -> object:
        return _check(modalities, modalities in (None, ["text"]), "the council writes text alone")

    @field_validator("logprobs")
    @classmethod
    def _no_odds(cls, logprobs: object) -> object:
        words = "a text of several models has no probabilities of tokens; leave this out"
        return _check(logprobs, not logprobs, words)

    @field_validator("messages")
    @classmethod
    def _holding_a_question(cls, messages: list[MessageBody]) -> list[MessageBody]:
        if all(message.role != "user" for message in messages):
            raise PydanticCustomError("no_question", "hold no message of the user: ask something")
        if messages[-1].role == "assistant":
            words = "end with a text of the assistant; the last one is to be the user's"
            raise PydanticCustomError("no_question", words)
        return messages

    @property
    def ignored_parameters(self) -> list[str]:
        """Parameters of the request that have no effect on a council."""
        extra = {name for name, value in (self.model_extra or {}).items() if value is not None}
        return sorted(extra | ({"stop"} if self.stop and self.wants_json else set()))

    @property
    def wants_json(self) -> bool:
        """True if the final answer is to be JSON."""
        return schema_of(self.response_format) is not None

    @property
    def stops(self) -> tuple[str, ...]:
        """Texts that a final answer in prose ends before."""
        return () if self.wants_json else tuple(filter(None, self.stop or ()))

    def narrates(self, default: bool | None) -> bool:
        """Return true if the reply says what the council does.

        Parameters
        ----------
        default
            The setting of the server, which the request overrules; None: there is none.
        """
        wishes = (self.witan.narration, default, self.stream is True and not self.wants_json)
        return next(wish for wish in wishes if wish is not None)

    def question_for(self, model: CouncilModel) -> QuestionRequest:
        """Return the request as a service takes it."""
        council = self.witan
        profile = council.profile or model.profile
        seed = self.seed if council.seed is None else council.seed
        most = self.max_tokens if self.max_completion_tokens is None else self.max_completion_tokens
        limit = {} if most is None else {"max_tokens": most}
        schema = schema_of(self.response_format)
        form = {} if schema is None else {"json_schema": schema}
        options = {**model.options, **limit, **form, **council.options.values_given()}
        question, conversation = self._split_question()
        return QuestionRequest(
            question,
            conversation=tuple(Turn(turn.role, turn.text) for turn in conversation),
            files=council.files,
            category=council.category,
            profile=profile,
            members=council.members,
            jury=council.jury,
            chairman=council.chairman,
            seed=seed,
            options=CouncilSettings(**options),
        )

    def _split_question(self) -> tuple[str, tuple[Message, ...]]:
        """Split off the last message of the user.

        What follows the question, such as the result of a tool, was found on its behalf.
        """
        last = max(i for i, message in enumerate(self.messages) if message.role == "user")
        before = self.messages[:last] + self.messages[last + 1 :]
        return self.messages[last].content, tuple(_turns(before))


def schema_of(form: ResponseFormat | None) -> str | None:
    """Return the JSON Schema of a reply as text; None: it is prose."""
    if form is None or form["type"] == "text":
        return None
    schema = (form.get("json_schema") or {}).get("schema")
    return ANY_OBJECT if schema is None else json.dumps(schema, ensure_ascii=False)


def _check(value: object, is_valid: bool, words: str) -> object:
    if not is_valid:
        raise PydanticCustomError("not_taken", words)
    return value


def _turns(messages: list[MessageBody]) -> Iterator[Message]:
    """Convert the conversation; calls of tools become text."""
    tool_names: dict[str, str] = {}
    for message in messages:
        calls = [] if message.tool_calls is None else message.tool_calls
        tool_names |= {call.id: call.function.name for call in calls}
        match message.role:
            case "system" | "developer":
                turn = Message("system", message.content)
            case "tool" | "function":
                name = message.name or tool_names.get(message.tool_call_id or "") or "a tool"
                turn = Message("user", f"[{name} returned]\n{message.content}")
            case "user":
                turn = Message("user", message.content)
            case _:
                parts = [f"[called {c.function.name}({c.function.arguments})]" for c in calls]
                turn = Message("assistant", "\n\n".join(filter(None, [message.content, *parts])))
        if turn.text.strip():
            yield turn
