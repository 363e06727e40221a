"""Requests of OpenAI's protocol, as questions to a council."""

import json
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from types import MappingProxyType
from typing import Annotated, Any, Literal, NotRequired, TypeVar

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
    ValidationInfo,
    WithJsonSchema,
    field_validator,
)
from pydantic_core import PydanticCustomError
from typing_extensions import TypedDict

from witan.deliberation.ports import Message, Seat
from witan.deliberation.replies import check_schema, check_schema_cost
from witan.errors import ConfigError, InvalidParameter, UnknownName
from witan.service.operations.ask import (
    Category,
    CouncilRequest,
    Files,
    Options,
    QuestionRequest,
    Turn,
)
from witan.service.parameters import Doc, fault_place, fault_words
from witan.service.sessions.councils import CouncilModel, CouncilProfile
from witan.service.settings import CouncilSettings
from witan.service.stored_sessions import Name, Text

M = TypeVar("M", bound="MessageBody")

TEXT_PARTS = {"text": "text", "input_text": "text", "output_text": "text", "refusal": "refusal"}
"""Field with the text, by kind of part."""

CALLS_NOTHING = (
    "the council calls no tools and no functions; leave this out, or send tool_choice: none"
)

NO_ODDS = "token probabilities are not available for a text of several models; leave this out"

IMAGES = ("image_url", "input_image")


def _join(content: object) -> object:
    if content is None:
        return ""
    if not isinstance(content, list):
        return content
    return "\n\n".join(map(_part, content))


def _part(part: object) -> str:
    kind = part.get("type") if isinstance(part, dict) else None
    if kind in IMAGES:
        words = "contains an image, which is not supported yet; describe it in words"
        raise PydanticCustomError("not_text", words)
    if not isinstance(part, dict) or kind not in TEXT_PARTS:
        words = "contains a part of the type {kind}; only text is supported"
        raise PydanticCustomError("not_text", words, {"kind": repr(kind)})
    text = part.get(TEXT_PARTS[kind])
    if not isinstance(text, str):
        raise PydanticCustomError("not_text", "contains a part without its text")
    return text


ACCEPTED: Mapping[str, tuple[tuple[object, ...], str]] = MappingProxyType(
    {
        "n": ((None, 1), "the council writes one text; for more, repeat the request"),
        "modalities": ((None, ["text"]), "the council writes text alone"),
        "logprobs": ((None, False), NO_ODDS),
        "id": (("fusion",), "must be fusion: the council has no other plugin"),
        "preset": (
            (None,),
            "presets are not supported; name configured models in analysis_models",
        ),
        "tools": ((None, []), "members have no tools; leave this out"),
    }
)
"""Values allowed for a parameter of chat completions, or of the plugin `fusion`, and why."""


def _check(value: object, is_valid: bool, words: str) -> object:
    if not is_valid:
        raise PydanticCustomError("not_taken", words)
    return value


def _check_accepted(value: object, info: ValidationInfo) -> object:
    accepted, words = ACCEPTED[info.field_name or ""]
    return _check(value, value in accepted, words)


class ContentPart(TypedDict):
    """A part of a message; only text is supported.

    Parameters
    ----------
    type
        Its kind; a refusal has its text in the field of that name.
    text, refusal
        Its text.
    """

    type: Literal["text", "input_text", "output_text", "refusal"]
    text: NotRequired[str]
    refusal: NotRequired[str]


Content = Annotated[
    Text, BeforeValidator(_join, json_schema_input_type=str | list[ContentPart] | None)
]


def _accept_only(value: Any) -> WithJsonSchema:
    """Describe what is accepted, if a validator words the refusal."""
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
    """A named JSON Schema."""

    schema: Annotated[
        NotRequired[dict[str, Any] | None],
        Doc("The schema; without one, any JSON object will do."),
    ]


class ResponseFormat(TypedDict):
    """The form of the final answer."""

    type: Annotated[
        Literal["text", "json_object", "json_schema"],
        Doc("Prose, any JSON object, or JSON that satisfies a schema."),
    ]
    json_schema: Annotated[NotRequired[ReplySchema | None], Doc("The schema.")]


ANY_OBJECT = '{"type": "object"}'


class _Lenient(BaseModel):
    """A part of earlier replies, which may have fields outside the protocol."""

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


def _check_question(messages: "list[M]") -> "list[M]":
    if all(message.role != "user" for message in messages):
        raise PydanticCustomError("no_question", "contain no user message; add a question")
    if messages[-1].role == "assistant":
        words = "end with an assistant message; the last one must be the user's"
        raise PydanticCustomError("no_question", words)
    user_texts = [message.content for message in messages if message.role == "user"]
    if not user_texts[-1].strip():
        words = "no text in the last user message; expected a question"
        raise PydanticCustomError("no_question", words)
    return messages


class StreamOptionsBody(_Lenient):
    """Options of a stream."""

    include_usage: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CouncilBody(CouncilRequest):
    """A council, its deliberation, and what accompanies the question."""

    category: Category = None
    files: Files = field(default_factory=dict)
    mark: Annotated[bool, Doc("Append a note to simulated or incomplete texts.")] = True
    legend: Annotated[
        bool, Doc("Put the legend of the labels and the trust line below every text.")
    ] = False
    narration: Annotated[
        bool | None,
        Doc("Report progress; on by default for streamed prose only."),
    ] = None
    options: Options = field(default_factory=CouncilSettings)


class FusionPlugin(BaseModel):
    """OpenRouter's plugin `fusion`, over the configured seats.

    A model is the name of a seat, or its model as `provider/model`.
    """

    model_config = ConfigDict(extra="allow", strict=True, allow_inf_nan=False)

    id: Annotated[Any, _accept_only(Literal["fusion"])]
    enabled: bool = True
    analysis_models: Annotated[
        list[Name] | None, Field(min_length=1, max_length=8, description="The members.")
    ] = None
    model: Annotated[Name | None, Field(description="The chairman.")] = None
    max_completion_tokens: Annotated[int | None, Field(ge=1)] = None
    preset: Annotated[Any, _accept_only(None)] = None
    tools: Annotated[Any, _accept_only(Annotated[list[str], Field(max_length=0)] | None)] = None

    _check_accepted = field_validator("id", "preset", "tools")(_check_accepted)


class CouncilCallBody(BaseModel):
    """The fields that chat completions and responses share."""

    model_config = ConfigDict(extra="allow", strict=True, allow_inf_nan=False)

    model: Annotated[Name, Field(description="One of those that `/v1/models` lists.")]
    stream: bool | None = None
    seed: Annotated[int, Field(ge=0, lt=2**53)] | None = None
    store: Annotated[
        bool | None,
        Field(description="If false, the session is not recorded, and gone once it has ended."),
    ] = None
    tool_choice: ToolChoice = None
    tools: Tools = None
    plugins: Annotated[list[FusionPlugin] | None, Field(max_length=1)] = None
    witan: Annotated[CouncilBody, Field(description="Takes precedence over the model name.")] = (
        CouncilBody()
    )

    @field_validator("tools")
    @classmethod
    def _no_tools(cls, tools: object, info: ValidationInfo) -> object:
        return _check(tools, not tools or info.data.get("tool_choice") == "none", CALLS_NOTHING)

    @property
    @abstractmethod
    def turns(self) -> Sequence[MessageBody]:
        """The conversation, including the question."""

    @property
    @abstractmethod
    def json_schema(self) -> str | None:
        """The final answer's JSON Schema as text, or None for prose."""

    @property
    @abstractmethod
    def most_tokens(self) -> int | None:
        """The most tokens of each reply; None: as configured."""

    @property
    def stops(self) -> tuple[str, ...]:
        """Stop sequences of a final answer in prose."""
        return ()

    @property
    def ignored_parameters(self) -> list[str]:
        """Parameters of the request that have no effect on a council."""
        plugins = [plugin for plugin in self.plugins or () if plugin.enabled]
        plugin_fields = {f"plugins.{name}" for plugin in plugins for name in _extra(plugin)}
        return sorted(_extra(self) | plugin_fields)

    @property
    def fusion(self) -> FusionPlugin:
        """The settings of the plugin; empty without one."""
        plugins = [plugin for plugin in self.plugins or () if plugin.enabled]
        return plugins[0] if plugins else FusionPlugin(id="fusion")

    def narrates(self, default: bool | None) -> bool:
        """Return true if the reply narrates; requests override the server's default."""
        prose = self.json_schema is None
        wishes = (self.witan.narration, default, self.stream is True and prose)
        return next(wish for wish in wishes if wish is not None)

    def question_for(
        self, model: CouncilModel, profiles: Mapping[str, CouncilProfile]
    ) -> QuestionRequest:
        """Return the request in the form that a service takes."""
        council, fusion = self.witan, self.fusion
        profile = council.profile or model.profile
        find = partial(_find_seats, profiles.get(profile))
        seed = self.seed if council.seed is None else council.seed
        most = fusion.max_completion_tokens if self.most_tokens is None else self.most_tokens
        limit = {} if most is None else {"max_tokens": most}
        form = {} if self.json_schema is None else {"json_schema": self.json_schema}
        options = {**model.options, **limit, **form, **council.options.collect_values()}
        question, conversation = self._split_question()
        return QuestionRequest(
            question,
            conversation=tuple(Turn(turn.role, turn.text) for turn in conversation),
            files=council.files,
            category=council.category,
            profile=profile,
            members=council.members or find(fusion.analysis_models or (), chairs=False),
            jury=council.jury,
            chairman=council.chairman or find([fusion.model] if fusion.model else (), chairs=True),
            seed=seed,
            options=CouncilSettings(**options),
        )

    def _split_question(self) -> tuple[str, tuple[Message, ...]]:
        """Split off the last message of the user.

        Later messages, such as the result of a tool, belong to the question.
        """
        turns = self.turns
        last = max(i for i, message in enumerate(turns) if message.role == "user")
        earlier_turns = [*turns[:last], *turns[last + 1 :]]
        return turns[last].content, tuple(_turns(earlier_turns))


class ChatBody(CouncilCallBody):
    """A request for a chat completion, with the extension `witan`."""

    model_config = ConfigDict(
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

    messages: Annotated[list[MessageBody], Field(min_length=1, max_length=1_000)]
    stream_options: StreamOptionsBody | None = None
    max_completion_tokens: Annotated[int, Field(ge=1)] | None = None
    max_tokens: Annotated[
        int | None, Field(ge=1, description="The most tokens of every reply, reviews included.")
    ] = None
    n: Annotated[Any, _accept_only(Literal[1] | None)] = None
    stop: Annotated[
        Stops | None,
        Field(description="Stop sequences for the final answer; ignored for JSON."),
    ] = None
    function_call: ToolChoice = None
    functions: Tools = None
    response_format: Annotated[
        ResponseFormat | None, Field(description="Have the chairman write JSON, and check it.")
    ] = None
    modalities: Annotated[Any, _accept_only(list[Literal["text"]] | None)] = None
    logprobs: Annotated[Any, _accept_only(Literal[False] | None)] = None

    _check_accepted = field_validator("n", "modalities", "logprobs")(_check_accepted)
    _check_question = field_validator("messages")(_check_question)

    @field_validator("functions")
    @classmethod
    def _no_functions(cls, functions: object, info: ValidationInfo) -> object:
        choice = info.data.get("function_call")
        return _check(functions, not functions or choice == "none", CALLS_NOTHING)

    @field_validator("response_format")
    @classmethod
    def _meetable(cls, form: ResponseFormat | None) -> ResponseFormat | None:
        _check_schema(schema_of(form))
        return form

    @property
    def turns(self) -> Sequence[MessageBody]:
        """The conversation, including the question."""
        return self.messages

    @property
    def json_schema(self) -> str | None:
        """The final answer's JSON Schema as text, or None for prose."""
        return schema_of(self.response_format)

    @property
    def most_tokens(self) -> int | None:
        """The most tokens of each reply; None: as configured."""
        return self.max_tokens if self.max_completion_tokens is None else self.max_completion_tokens

    @property
    def stops(self) -> tuple[str, ...]:
        """Stop sequences of a final answer in prose."""
        return () if self.json_schema is not None else tuple(filter(None, self.stop or ()))

    @property
    def ignored_parameters(self) -> list[str]:
        """Parameters of the request that have no effect on a council."""
        unsupported = {"stop"} if self.stop and self.json_schema is not None else set[str]()
        return sorted({*super().ignored_parameters, *unsupported})


class TextFormat(TypedDict):
    """The form of the final answer."""

    type: Annotated[
        Literal["text", "json_object", "json_schema"],
        Doc("Prose, any JSON object, or JSON that satisfies a schema."),
    ]
    schema: Annotated[
        NotRequired[dict[str, Any] | None],
        Doc("The schema; without one, any JSON object will do."),
    ]


class TextBody(_Lenient):
    """The form of the final answer."""

    format: TextFormat | None = None
    verbosity: str | None = None


class InputItem(TypedDict):
    """A message, or a function call with its result, without reasoning.

    Parameters
    ----------
    type
        Its kind; by default a message.
    role, content
        Fields of a message.
    call_id, name, arguments, output
        Fields of a call and of its result.
    id
        Field of a reference: the message of an earlier response.
    """

    type: NotRequired[
        Literal["message", "function_call", "function_call_output", "reasoning", "item_reference"]
    ]
    id: NotRequired[str]
    role: NotRequired[Literal["system", "developer", "user", "assistant"]]
    content: NotRequired[str | list[ContentPart] | None]
    call_id: NotRequired[str]
    name: NotRequired[str]
    arguments: NotRequired[str]
    output: NotRequired[str | list[ContentPart]]


class InputBody(MessageBody):
    """One message of a response's input, or a message reference."""

    item_id: str | None = None


def _read_items(value: object) -> object:
    """Read input items as messages; plain text is the user's."""
    if isinstance(value, str):
        return [{"role": "user", "content": value}]
    if not isinstance(value, list):
        raise PydanticCustomError("not_taken", "must be text, or a list of messages")
    return [_read_item(item) for item in value if not _is_reasoning(item)]


def _is_reasoning(item: object) -> bool:
    """Return true for a council's narration, or a reference to it."""
    kind = _kind_of(item)
    is_own_item = isinstance(item, dict) and str(item.get("id")).startswith(REASONING_ID)
    return kind == "reasoning" or (kind == "item_reference" and is_own_item)


def _kind_of(item: object) -> object:
    return item.get("type") or "message" if isinstance(item, dict) else None


def _read_item(item: Any) -> object:
    match _kind_of(item):
        case "message":
            return {key: item[key] for key in ("role", "content") if key in item}
        case None:
            return item
        case "function_call":
            function = {key: item[key] for key in ("name", "arguments") if key in item}
            call = {"id": item.get("call_id", ""), "function": function}
            return {"role": "assistant", "tool_calls": [call]}
        case "function_call_output":
            call_id = item.get("call_id")
            return {"role": "tool", "tool_call_id": call_id, "content": item.get("output")}
        case "item_reference":
            return {"role": "assistant", "item_id": item.get("id")}
        case kind:
            words = "contains an item of the type {kind}; the council reads messages"
            raise PydanticCustomError("not_taken", words, {"kind": repr(kind)})


RESPONSE_ID, MESSAGE_ID, REASONING_ID = "resp_", "msg_", "rs_"
"""Prefixes of the ids of a response and of its items; the name of the session follows."""

REFUSALS: Mapping[str, str] = MappingProxyType(
    {
        "background": "background responses are not supported; use POST /api/sessions",
        "conversation": "the server keeps no conversations; send previous_response_id",
        "prompt": "the server keeps no prompts; send its text as instructions and input",
        "context_management": "a conversation is never shortened; leave this out",
        "moderation": "moderation is not supported; leave this out",
        "top_logprobs": NO_ODDS,
        "response_format": "belongs to chat completions; use text.format",
    }
)
"""Parameters of a response that would change the reply, and why they are not supported."""

Unsupported = Annotated[Any, WithJsonSchema({"type": ["null"]})]


class ResponseBody(CouncilCallBody):
    """A request for a response, with the extension `witan`."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "model": "witan/demo",
                    "input": "Is a hash map faster than a sorted array?",
                    "instructions": "Answer in one sentence.",
                    "witan": {"category": "coding"},
                }
            ]
        },
    )

    input: Annotated[
        list[InputBody],
        Field(min_length=1, max_length=1_000),
        BeforeValidator(_read_items, json_schema_input_type=str | list[InputItem]),
    ]
    instructions: Annotated[
        Text | None,
        Field(description="The system message; it replaces that of the response before."),
    ] = None
    max_output_tokens: Annotated[
        int | None, Field(ge=1, description="The most tokens of every reply, reviews included.")
    ] = None
    previous_response_id: Annotated[
        Name | None, Field(description="Continue from the final answer of this response.")
    ] = None
    text: Annotated[
        TextBody | None, Field(description="Have the chairman write JSON, and check it.")
    ] = None
    background: Unsupported = None
    conversation: Unsupported = None
    prompt: Unsupported = None
    context_management: Unsupported = None
    moderation: Unsupported = None
    top_logprobs: Unsupported = None
    response_format: Unsupported = None

    _check_question = field_validator("input")(_check_question)

    @field_validator(*REFUSALS)
    @classmethod
    def _refuse(cls, value: object, info: ValidationInfo) -> object:
        return _check(value, not value, REFUSALS[info.field_name or ""])

    @field_validator("text")
    @classmethod
    def _meetable(cls, text: TextBody | None) -> TextBody | None:
        _check_schema(_schema_of_text(text))
        return text

    @property
    def turns(self) -> Sequence[MessageBody]:
        """The conversation, including the question."""
        if not self.instructions:
            return self.input
        return [MessageBody(role="system", content=self.instructions), *self.input]

    @property
    def json_schema(self) -> str | None:
        """The final answer's JSON Schema as text, or None for prose."""
        return _schema_of_text(self.text)

    @property
    def most_tokens(self) -> int | None:
        """The most tokens of each reply; None: as configured."""
        return self.max_output_tokens

    @property
    def ignored_parameters(self) -> list[str]:
        """Parameters of the request that have no effect on a council."""
        verbose = self.text is not None and self.text.verbosity is not None
        return sorted([*super().ignored_parameters, *(["text.verbosity"] if verbose else [])])

    def continue_conversation(
        self, before: Sequence[Message], question: QuestionRequest
    ) -> QuestionRequest:
        """Prepend the conversation of the previous response."""
        earlier = [Turn(message.role, message.text) for message in before]
        own = [*question.conversation]
        if self.instructions:
            earlier = earlier[1:] if earlier[:1] and earlier[0].role == "system" else earlier
            earlier.insert(0, own.pop(0))
        return replace(question, conversation=(*earlier, *own))


def _schema_of_text(text: TextBody | None) -> str | None:
    if text is None or text.format is None or text.format["type"] == "text":
        return None
    return _schema_text(text.format.get("schema"))


def read_chat(values: Mapping[str, Any]) -> tuple[ChatBody, QuestionRequest]:
    """Read a request that no server has checked, and its question.

    Raises `ConfigError` if a field is not accepted.
    """
    try:
        body = ChatBody.model_validate(values)
    except ValidationError as error:
        fault = error.errors()[0]
        words = fault_words(fault["type"], fault["msg"], fault.get("ctx"))
        raise ConfigError(f"the request: {fault_place(fault['loc'])}", "", words) from None
    return body, body.question_for(CouncilModel("", ""), {})


def schema_of(form: ResponseFormat | None) -> str | None:
    """Return a reply's JSON Schema as text, or None for prose."""
    if form is None or form["type"] == "text":
        return None
    return _schema_text((form.get("json_schema") or {}).get("schema"))


def _schema_text(schema: Mapping[str, Any] | None) -> str:
    return ANY_OBJECT if schema is None else json.dumps(schema, ensure_ascii=False)


def _check_schema(schema: str | None) -> None:
    try:
        if schema is not None:
            check_schema(schema)
            check_schema_cost(schema)
    except InvalidParameter as error:
        words = "must contain {expected}"
        raise PydanticCustomError("no_schema", words, {"expected": error.expected}) from None


def _extra(body: BaseModel) -> set[str]:
    return {name for name, value in (body.model_extra or {}).items() if value is not None}


def _find_seats(
    profile: CouncilProfile | None, models: Sequence[str], *, chairs: bool
) -> tuple[str, ...]:
    """Name the seats of models, alternating if several fit.

    With `chairs`, chairmen are searched, too, and first. A model without a seat is refused; a
    profile with invalid seats raises its own error.
    """
    if profile is None or profile.problem is not None:
        return ()
    chairmen = profile.chairmen if chairs else ()
    seats = {seat.name: seat for seat in (*chairmen, *profile.seats, *profile.jury)}
    result: list[str] = []
    for model in models:
        names = [name for name, seat in seats.items() if model in (name, _slug_of(seat))]
        if not names:
            raise UnknownName("seat", model, seats)
        result.append(next((name for name in names if name not in result), names[0]))
    return tuple(dict.fromkeys(result))


def _slug_of(seat: Seat) -> str:
    """Write the model of a seat as ``provider/model``."""
    provider, _, model = seat.source.partition(":")
    if "#" in model and provider in ("http", "https"):
        return model.rpartition("#")[2]
    return model if "/" in model else f"{provider}/{model}"


def _turns(messages: Sequence[MessageBody]) -> Iterator[Message]:
    """Convert the conversation; tool calls become text."""
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
