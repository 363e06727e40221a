"""Sessions as chat completions, whole or in chunks."""

from typing import Literal, NotRequired

from typing_extensions import TypedDict

from witan.deliberation.session import Session
from witan.service.json_output import to_json
from witan.service.sessions.running import RunningSession
from witan.service.sessions.stream import StreamMessage
from witan.surfaces.live_board import progress_lines
from witan.surfaces.openai.errors import error_object
from witan.surfaces.openai.replies import (
    CouncilReply,
    ReplyForm,
    ReplyStream,
    council_reply,
    refusal,
)

DONE = b"data: [DONE]\n\n"

FinishReason = Literal["stop", "length"]


class CompletionMessage(TypedDict):
    """The reply of the council.

    Parameters
    ----------
    content
        The final answer.
    reasoning_content
        What the council did, a line each, where the request wants it.
    """

    role: Literal["assistant"]
    content: str
    refusal: None
    reasoning_content: NotRequired[str]


class CompletionChoice(TypedDict):
    """The only choice of a completion.

    Parameters
    ----------
    message
        The reply of the council.
    finish_reason
        ``length``: the text was cut.
    """

    index: int
    message: CompletionMessage
    finish_reason: FinishReason
    logprobs: None


class TokenUsage(TypedDict):
    """The tokens of all calls of a session.

    Parameters
    ----------
    prompt_tokens, completion_tokens, total_tokens
        Read, written, and both.
    cost
        US dollars, where they are known.
    """

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    cost: NotRequired[float]


class Completion(TypedDict):
    """A chat completion.

    Parameters
    ----------
    id, created, model
        Its name, when the session was opened, and the model as it was requested.
    choices
        One.
    usage
        The tokens of all calls, where they are known.
    witan
        The session behind it.
    """

    id: str
    object: Literal["chat.completion"]
    created: int
    model: str
    choices: list[CompletionChoice]
    usage: NotRequired[TokenUsage]
    witan: CouncilReply


class Delta(TypedDict):
    """A piece of a reply.

    Parameters
    ----------
    role
        Of the first piece.
    content
        Text of the final answer.
    reasoning_content
        What the council did.
    """

    role: NotRequired[Literal["assistant"]]
    content: NotRequired[str]
    reasoning_content: NotRequired[str]


class ChunkChoice(TypedDict):
    """The only choice of a chunk.

    Parameters
    ----------
    delta
        The next piece.
    finish_reason
        Why the text ended; null: it goes on.
    """

    index: int
    delta: Delta
    finish_reason: FinishReason | None
    logprobs: None


class CompletionChunk(TypedDict):
    """A chunk of a streamed completion.

    Parameters
    ----------
    id, created, model
        As of the whole completion.
    choices
        One; none in the chunk that says the usage.
    usage
        The tokens of all calls, in the last chunk, where the request wants them.
    witan
        The session behind it, in the chunk that ends the text.
    """

    id: str
    object: Literal["chat.completion.chunk"]
    created: int
    model: str
    choices: list[ChunkChoice]
    usage: NotRequired[TokenUsage | None]
    witan: NotRequired[CouncilReply]


def completion(running_session: RunningSession, model: str, form: ReplyForm) -> Completion:
    """Return the whole reply, for a session that came to a text."""
    session = running_session.session
    message: CompletionMessage = {
        "role": "assistant",
        "content": form.content(session),
        "refusal": None,
    }
    if form.narration:
        message["reasoning_content"] = progress_lines(session.events)
    reason = finish_reason(session)
    choice: CompletionChoice = {
        "index": 0,
        "message": message,
        "finish_reason": reason,
        "logprobs": None,
    }
    result: Completion = {
        "id": f"chatcmpl-{session.id}",
        "object": "chat.completion",
        "created": int(session.opening.at.timestamp()),
        "model": model,
        "choices": [choice],
        "witan": council_reply(session, running_session.problem, form.ignored),
    }
    if (usage := usage_of(session)) is not None:
        result["usage"] = usage
    return result


def finish_reason(session: Session) -> FinishReason:
    """Return whether the text ended or was cut."""
    return "length" if session.is_cut else "stop"


def usage_of(session: Session) -> TokenUsage | None:
    """Return the tokens and cost of all calls; None: unknown."""
    n_read, n_written = session.usage.input_tokens, session.usage.output_tokens
    if n_read is None or n_written is None:
        return None
    usage: TokenUsage = {
        "prompt_tokens": n_read,
        "completion_tokens": n_written,
        "total_tokens": n_read + n_written,
    }
    if (cost := session.cost.total_usd) is not None:
        usage["cost"] = cost
    return usage


class ChatFrames:
    """The chunks of one session, for one reader.

    Parameters
    ----------
    model
        What it was asked for as.
    usage
        Whether a last chunk says what it took.
    """

    def __init__(
        self, running_session: RunningSession, model: str, form: ReplyForm, *, usage: bool
    ) -> None:
        self._usage, self._form, self._reply = usage, form, ReplyStream(form)
        self._id, self._model = f"chatcmpl-{running_session.id}", model
        self._created = int(running_session.session.opening.at.timestamp())

    def opening(self) -> bytes:
        """Write the first chunk."""
        return self._chunk({"role": "assistant", "content": ""})

    def frame(self, message: StreamMessage) -> bytes:
        """Write the chunks of an event: progress, text, or nothing."""
        line, text = self._reply.take(message.event)
        deltas: list[Delta] = [{"reasoning_content": f"{line}\n"}] if line else []
        if text:
            deltas.append({"content": text})
        return b"".join(map(self._chunk, deltas))

    def ending(self, running_session: RunningSession) -> bytes:
        """Write the last chunks, or an error."""
        session = running_session.session
        reason = refusal(session, running_session.failure)
        if reason is not None:
            return _data(error_object(reason.status, reason.message, reason.code))
        last = self._reply.end(session)
        chunks = [self._chunk({"content": last})] if last else []
        reply = council_reply(session, running_session.problem, self._form.ignored)
        chunks.append(self._chunk({}, finish_reason(session), reply))
        if self._usage:
            chunks.append(_data({**self._make(), "usage": usage_of(session)}))
        return b"".join((*chunks, DONE))

    def _chunk(
        self, delta: Delta, finish: FinishReason | None = None, reply: CouncilReply | None = None
    ) -> bytes:
        choice: ChunkChoice = {
            "index": 0,
            "delta": delta,
            "finish_reason": finish,
            "logprobs": None,
        }
        chunk = self._make(choice)
        if self._usage:
            chunk["usage"] = None
        if reply is not None:
            chunk["witan"] = reply
        return _data(chunk)

    def _make(self, *choices: ChunkChoice) -> CompletionChunk:
        return {
            "id": self._id,
            "object": "chat.completion.chunk",
            "created": self._created,
            "model": self._model,
            "choices": [*choices],
        }


def _data(value: object) -> bytes:
    return f"data: {to_json(value)}\n\n".encode()
