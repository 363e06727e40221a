"""Sessions as responses of OpenAI's protocol, whole or as typed events."""

import json
from collections.abc import Mapping
from typing import Annotated, Any, Literal, NotRequired

from typing_extensions import TypedDict

from witan.deliberation.session import Session
from witan.service.json_output import to_json
from witan.service.parameters import Doc
from witan.service.sessions.running import RunningSession, StreamMessage
from witan.surfaces.live_board import progress_lines
from witan.surfaces.openai.replies import (
    CouncilReply,
    ReplyForm,
    ReplyStream,
    council_reply,
    refusal,
)
from witan.surfaces.openai.requests import ANY_OBJECT, MESSAGE_ID, REASONING_ID, RESPONSE_ID

ResponseStatus = Literal["completed", "incomplete", "failed", "cancelled", "in_progress"]

ItemStatus = Literal["completed", "incomplete", "in_progress"]


class OutputPart(TypedDict):
    """A text of an item.

    Parameters
    ----------
    type
        ``output_text``: final answer; ``summary_text``: narration of the council's work.
    text
        The text.
    annotations, logprobs
        Fields of the final answer; always empty.
    """

    type: Literal["output_text", "summary_text"]
    text: str
    annotations: NotRequired[list[str]]
    logprobs: NotRequired[list[str]]


class OutputItem(TypedDict):
    """An item of a response: council narration, or final answer.

    Parameters
    ----------
    id
        Its name.
    type
        ``reasoning``: narration of the council's work; ``message``: the final answer.
    status
        Whether it is complete.
    role, content
        Fields of the final answer.
    summary
        The council's work, a line per step, if requested.
    """

    id: str
    type: Literal["reasoning", "message"]
    status: ItemStatus
    role: NotRequired[Literal["assistant"]]
    content: NotRequired[list[OutputPart]]
    summary: NotRequired[list[OutputPart]]


class CachedTokens(TypedDict):
    """Tokens read from a cache; required by the protocol, never counted."""

    cached_tokens: Literal[0]
    cache_write_tokens: Literal[0]


class ReasoningTokens(TypedDict):
    """Tokens of reasoning; required by the protocol, never counted."""

    reasoning_tokens: Literal[0]


class ResponseUsage(TypedDict):
    """The tokens of all calls of a session.

    Parameters
    ----------
    input_tokens, output_tokens, total_tokens
        Input tokens, output tokens, and their sum.
    input_tokens_details, output_tokens_details
        Not counted separately.
    cost
        US dollars, if known.
    """

    input_tokens: int
    input_tokens_details: CachedTokens
    output_tokens: int
    output_tokens_details: ReasoningTokens
    total_tokens: int
    cost: NotRequired[float]


class ResponseFailure(TypedDict):
    """The reason for a response without text."""

    code: Literal["server_error"]
    message: Annotated[str, Doc("What happened, and what to do.")]


class IncompleteDetails(TypedDict):
    """The reason for a cut text."""

    reason: Literal["max_output_tokens"]


class ResponseFormatObject(TypedDict):
    """The form of the final answer."""

    type: Annotated[
        Literal["text", "json_object", "json_schema"],
        Doc("Prose, any JSON object, or JSON that satisfies a schema."),
    ]
    name: Annotated[NotRequired[str], Doc("Name of the schema; always ``final_answer``.")]
    schema: Annotated[NotRequired[Mapping[str, Any]], Doc("The schema.")]


class ResponseText(TypedDict):
    """The form of the final answer."""

    format: Annotated[ResponseFormatObject, Doc("Its form.")]


class ResponseObject(TypedDict):
    """A response.

    Parameters
    ----------
    id, created_at, completed_at, model
        Its name, start and end of the session, and the council.
    status
        ``cancelled``: the session was interrupted, and can be resumed.
    error
        Why there is no text; null otherwise.
    incomplete_details
        Why the text was cut; null: not cut.
    output
        Narration of the council's work, if requested, and the final answer.
    instructions
        The system message at the beginning of the conversation.
    previous_response_id
        The previous response in the conversation.
    max_output_tokens
        The most tokens of each reply.
    text
        The form of the final answer.
    usage
        The tokens of all calls; null: unknown.
    store
        Whether it can be retrieved.
    tools, tool_choice, parallel_tool_calls
        Unused: the council does not call tools.
    temperature, top_p
        Always null: they are configured for each member.
    witan
        The session behind it, once it has ended.
    """

    id: str
    object: Literal["response"]
    created_at: float
    completed_at: float | None
    model: str
    status: ResponseStatus
    error: ResponseFailure | None
    incomplete_details: IncompleteDetails | None
    output: list[OutputItem]
    instructions: str | None
    previous_response_id: str | None
    max_output_tokens: int
    text: ResponseText
    usage: ResponseUsage | None
    store: bool
    tools: list[str]
    tool_choice: Literal["none"]
    parallel_tool_calls: Literal[False]
    temperature: None
    top_p: None
    metadata: Mapping[str, str]
    witan: NotRequired[CouncilReply]


class ResponseDeletion(TypedDict):
    """A deleted response."""

    id: Annotated[str, Doc("Its name.")]
    object: Literal["response"]
    deleted: Literal[True]


EventType = Literal[
    "response.created",
    "response.in_progress",
    "response.output_item.added",
    "response.reasoning_summary_part.added",
    "response.reasoning_summary_text.delta",
    "response.reasoning_summary_text.done",
    "response.reasoning_summary_part.done",
    "response.content_part.added",
    "response.output_text.delta",
    "response.output_text.done",
    "response.content_part.done",
    "response.output_item.done",
    "response.completed",
    "response.incomplete",
    "response.failed",
]


ENDS: Mapping[ResponseStatus, EventType] = {
    "completed": "response.completed",
    "incomplete": "response.incomplete",
    "failed": "response.failed",
    "cancelled": "response.failed",
}
"""Last event of a stream, by status of the response."""


class ResponseEvent(TypedDict):
    """An event of a streamed response.

    Parameters
    ----------
    type
        What happened.
    sequence_number
        Its number, from 0.
    response
        The response, in its first and last events.
    output_index, item_id
        The item of the event.
    item
        The item, in its first and last events.
    content_index, summary_index
        Always 0: an item has one part.
    part
        The part, in its first and last events.
    delta
        The next piece of its text.
    text
        The whole text, at its end.
    """

    type: EventType
    sequence_number: int
    response: NotRequired[ResponseObject]
    output_index: NotRequired[int]
    item_id: NotRequired[str]
    item: NotRequired[OutputItem]
    content_index: NotRequired[int]
    summary_index: NotRequired[int]
    part: NotRequired[OutputPart]
    delta: NotRequired[str]
    text: NotRequired[str]
    logprobs: NotRequired[list[str]]


def response_of(
    session: Session, model: str, form: ReplyForm, running_session: RunningSession | None
) -> ResponseObject:
    """Return the response of a past or running session."""
    if running_session is not None and running_session.under_way:
        return open_response(session, model, form)
    problem = None if running_session is None else running_session.problem
    output: list[OutputItem] = []
    if refusal(session) is None:
        if form.narration:
            output.append(_reasoning(session.id, progress_lines(session.events)))
        output.append(_message(session, form.content(session)))
    return _end_response(session, model, form, output, problem=problem)


def open_response(session: Session, model: str, form: ReplyForm) -> ResponseObject:
    """Return the response of a running session, without output."""
    opened = session.opening
    system = next((m.text for m in opened.conversation[:1] if m.role == "system"), None)
    is_continuation = opened.relation == "continued"
    return {
        "id": f"{RESPONSE_ID}{session.id}",
        "object": "response",
        "created_at": opened.at.timestamp(),
        "completed_at": None,
        "model": model,
        "status": "in_progress",
        "error": None,
        "incomplete_details": None,
        "output": [],
        "instructions": system,
        "previous_response_id": f"{RESPONSE_ID}{opened.parent}" if is_continuation else None,
        "max_output_tokens": opened.procedure.limits.max_tokens,
        "text": {"format": _format(opened.procedure.json_schema)},
        "usage": None,
        "store": form.store,
        "tools": [],
        "tool_choice": "none",
        "parallel_tool_calls": False,
        "temperature": None,
        "top_p": None,
        "metadata": {},
    }


def _end_response(
    session: Session,
    model: str,
    form: ReplyForm,
    output: list[OutputItem],
    *,
    problem: str | None,
    failure: Exception | None = None,
) -> ResponseObject:
    """Return the response of an ended session, with this output."""
    result, reason = open_response(session, model, form), refusal(session, failure)
    if reason is not None:
        result["status"] = "cancelled" if reason.code == "session_interrupted" else "failed"
        result["error"] = {"code": "server_error", "message": reason.message}
    elif session.is_cut:
        result["status"] = "incomplete"
        result["incomplete_details"] = {"reason": "max_output_tokens"}
    else:
        result["status"] = "completed"
        result["completed_at"] = session.events[-1].at.timestamp()
    result["output"] = output
    result["usage"] = _usage(session)
    result["witan"] = council_reply(session, problem, form.ignored)
    return result


def _format(schema: str | None) -> ResponseFormatObject:
    if schema is None:
        return {"type": "text"}
    if schema == ANY_OBJECT:
        return {"type": "json_object"}
    return {"type": "json_schema", "name": "final_answer", "schema": json.loads(schema)}


def _usage(session: Session) -> ResponseUsage | None:
    n_read, n_written = session.usage.input_tokens, session.usage.output_tokens
    if n_read is None or n_written is None:
        return None
    usage: ResponseUsage = {
        "input_tokens": n_read,
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens": n_written,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": n_read + n_written,
    }
    if (cost := session.cost.total_usd) is not None:
        usage["cost"] = cost
    return usage


def _reasoning(session: str, text: str, status: ItemStatus = "completed") -> OutputItem:
    return {
        "id": f"{REASONING_ID}{session}",
        "type": "reasoning",
        "summary": [_summary_part(text)] if text else [],
        "status": status,
    }


def _message(session: Session, text: str) -> OutputItem:
    status: ItemStatus = "incomplete" if session.is_cut else "completed"
    return _message_item(session.id, [_text_part(text)], status)


def _message_item(session: str, content: list[OutputPart], status: ItemStatus) -> OutputItem:
    return {
        "id": f"{MESSAGE_ID}{session}",
        "type": "message",
        "role": "assistant",
        "content": content,
        "status": status,
    }


def _text_part(text: str) -> OutputPart:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


class ResponseFrames:
    """The events of one response, for one reader.

    First the item that narrates the council's work, if requested; then the final answer, without
    further narration.
    """

    def __init__(self, running_session: RunningSession, model: str, form: ReplyForm) -> None:
        self._form, self._model, self._reply = form, model, ReplyStream(form)
        self._session, self._id = running_session.session, running_session.id
        self._n_events = 0
        self._items: list[OutputItem] = []
        self._lines: list[str] = []
        self._pieces: list[str] = []

    def opening(self) -> bytes:
        """Write the first events."""
        response = open_response(self._session, self._model, self._form)
        created = self._event("response.created", response=response)
        return created + self._event("response.in_progress", response=response)

    def frame(self, message: StreamMessage) -> bytes:
        """Write the response events for one session event, if any."""
        line, text = self._reply.take(message.event)
        events = self._narrate(f"{line}\n") if line and not self._pieces else []
        events += self._write(text) if text else []
        return b"".join(events)

    def ending(self, running_session: RunningSession) -> bytes:
        """Write the last events, with the text or its failure."""
        session = running_session.session
        if refusal(session, running_session.failure) is not None:
            events = self._end_narration()
        else:
            events = self._write(self._reply.end(session))
            events += self._end_text(_message(session, "".join(self._pieces)))
        response = _end_response(
            session,
            self._model,
            self._form,
            self._items,
            problem=running_session.problem,
            failure=running_session.failure,
        )
        return b"".join([*events, self._event(ENDS[response["status"]], response=response)])

    def _narrate(self, line: str) -> list[bytes]:
        place: Any = {"item_id": f"{REASONING_ID}{self._id}", "output_index": 0, "summary_index": 0}
        events = []
        if not self._lines:
            item, part = _reasoning(self._id, "", "in_progress"), _summary_part("")
            events = [
                self._event("response.output_item.added", output_index=0, item=item),
                self._event("response.reasoning_summary_part.added", part=part, **place),
            ]
        self._lines.append(line)
        delta = self._event("response.reasoning_summary_text.delta", delta=line, **place)
        return [*events, delta]

    def _end_narration(self) -> list[bytes]:
        """End the narration item if it is open."""
        if not self._lines or self._items:
            return []
        place: Any = {"item_id": f"{REASONING_ID}{self._id}", "output_index": 0, "summary_index": 0}
        text = "".join(self._lines)
        item, part = _reasoning(self._id, text), _summary_part(text)
        self._items.append(item)
        return [
            self._event("response.reasoning_summary_text.done", text=text, **place),
            self._event("response.reasoning_summary_part.done", part=part, **place),
            self._event("response.output_item.done", output_index=0, item=item),
        ]

    def _write(self, text: str) -> list[bytes]:
        events = self._end_narration()
        place = self._place_of_text()
        if not self._pieces:
            item, index = _message_item(self._id, [], "in_progress"), place["output_index"]
            events += [
                self._event("response.output_item.added", output_index=index, item=item),
                self._event("response.content_part.added", part=_text_part(""), **place),
            ]
        self._pieces.append(text)
        if text:
            delta = self._event("response.output_text.delta", delta=text, logprobs=[], **place)
            events.append(delta)
        return events

    def _end_text(self, item: OutputItem) -> list[bytes]:
        place = self._place_of_text()
        [part] = item["content"]
        text, index = part["text"], place["output_index"]
        self._items.append(item)
        return [
            self._event("response.output_text.done", text=text, logprobs=[], **place),
            self._event("response.content_part.done", part=part, **place),
            self._event("response.output_item.done", output_index=index, item=item),
        ]

    def _place_of_text(self) -> Any:
        index = len(self._items)
        return {"item_id": f"{MESSAGE_ID}{self._id}", "output_index": index, "content_index": 0}

    def _event(self, kind: EventType, **fields: Any) -> bytes:
        event = {"type": kind, "sequence_number": self._n_events, **fields}
        self._n_events += 1
        return f"event: {kind}\ndata: {to_json(event)}\n\n".encode()


def _summary_part(text: str) -> OutputPart:
    return {"type": "summary_text", "text": text}
