"""A session as the chunks of a chat completion that is streamed."""

from typing import Any

from witan.deliberation import events as e
from witan.service.json_output import to_json
from witan.service.sessions import RunningSession, StreamMessage
from witan.service.text import clean
from witan.surfaces.openai.errors import error_object
from witan.surfaces.openai.replies import (
    Ending,
    council_object,
    finish_reason,
    refusal,
    usage_of,
)
from witan.surfaces.text.progress import Progress

__all__ = ["Frames"]

DONE = b"data: [DONE]\n\n"


class Frames:
    """The chunks of one session, for one reader.

    Parameters
    ----------
    model
        What it was asked for as.
    usage
        Whether a last chunk says what it took.
    ending
        The paragraphs below the final answer.
    ignored
        What was asked for and changed nothing.
    """

    def __init__(
        self,
        running: RunningSession,
        model: str,
        *,
        usage: bool,
        ending: Ending,
        ignored: list[str],
    ) -> None:
        self._usage, self._ending, self._ignored = usage, ending, ignored
        self._progress, self._voice = Progress(), _Voice()
        self._head = {
            "id": f"chatcmpl-{running.id}",
            "object": "chat.completion.chunk",
            "created": int(running.session.opened.at.timestamp()),
            "model": model,
        }

    def opening(self) -> bytes:
        """The chunk that comes first."""
        return self._chunk({"role": "assistant", "content": ""})

    def frame(self, told: StreamMessage) -> bytes:
        """What there is to say of an event: of progress, of the text, or nothing."""
        said = self._progress.after(told.event)
        chunks = [self._chunk({"reasoning_content": f"{said}\n"})] if said else []
        if text := self._voice.after(told.event):
            chunks.append(self._chunk({"content": text}))
        return b"".join(chunks)

    def ending(self, running: RunningSession) -> bytes:
        """The rest of the text, why it ended, and what it took; or the error that ended it."""
        refused = refusal(running)
        if refused is not None:
            return _data(error_object(refused.status, refused.message, refused.code))
        session = running.session
        last = self._voice.rest(session.text or "") + self._ending.of(session)
        chunks = [self._chunk({"content": last})] if last else []
        told = {"witan": council_object(running, self._ignored)}
        chunks.append(self._chunk({}, finish_reason(session), **told))
        if self._usage:
            chunks.append(_data({**self._head, "choices": [], "usage": usage_of(session)}))
        return b"".join((*chunks, DONE))

    def _chunk(self, delta: dict[str, str], finish: str | None = None, **more: Any) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": finish, "logprobs": None}
        usage = {"usage": None} if self._usage else {}
        return _data({**self._head, "choices": [choice], **usage, **more})


class _Voice:
    """Says the final answer as it is written; what was said cannot be taken back."""

    def __init__(self) -> None:
        self._said = ""

    def after(self, event: e.Event) -> str:
        """What to say next."""
        match event:
            case e.SynthesisDelta():
                self._said += event.text
                return event.text
            case e.SynthesisFailedOver():
                return self._start_again(f"{event.chairman} failed: {event.reason}")
            case e.CallRetried(stage="synthesis"):
                return self._start_again(f"attempt {event.attempt} failed: {event.reason}")
            case e.TextWithdrawn(stage="synthesis"):
                return self._start_again(f"so far {event.seat} was reasoning")
            case e.SynthesisDone():
                return self.rest(event.text)
            case _:
                return ""

    def rest(self, text: str) -> str:
        """What of the text that counts was not said yet."""
        said, self._said = self._said, text
        if text.startswith(said):
            return text[len(said) :]
        if text.strip() == said.strip():
            return ""
        return f"{_broken_off('the text that counts follows')}{text}"

    def _start_again(self, why: str) -> str:
        said, self._said = self._said, ""
        return _broken_off(f"{why}; it starts again") if said else ""


def _broken_off(why: str) -> str:
    return f"\n\n[interrupted: {clean(why)}]\n\n"


def _data(value: object) -> bytes:
    return f"data: {to_json(value)}\n\n".encode()
