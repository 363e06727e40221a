"""What came of a session, as a chat completion tells it."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from witan.deliberation import events as e
from witan.deliberation.session import Session
from witan.errors import WitanError
from witan.service.operations.results import verdict_object
from witan.service.redaction import public_error
from witan.service.sessions import RunningSession
from witan.service.trust import session_trust
from witan.surfaces.http.problems import status_of
from witan.surfaces.text.session import legend_text

__all__ = [
    "Ending",
    "Refusal",
    "completion",
    "council_object",
    "finish_reason",
    "refusal",
    "usage_of",
]

SPENDING = (
    e.AnswerDone | e.AnswerFailed | e.BallotCast | e.BallotAbstained | e.SynthesisFailedOver
    | e.SynthesisDone
)  # fmt: skip
"""Events that end a call."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why there is no reply."""

    status: int
    message: str
    code: str


@dataclass(frozen=True, slots=True)
class Ending:
    """The paragraphs below a final answer.

    Parameters
    ----------
    mark
        The trust line stands there if the session is simulated or lacks something.
    legend
        The legend of the labels and the trust line stand there always.
    """

    mark: bool = True
    legend: bool = False

    def of(self, session: Session) -> str:
        """The paragraphs of this session; empty if there are none."""
        legend = legend_text(session) if self.legend else ""
        lacking = session.status != "complete" or session.simulated
        trust = f"[{session_trust(session)}]" if self.legend or (self.mark and lacking) else ""
        return "".join(f"\n\n{part}" for part in (legend, trust) if part)


def completion(
    running: RunningSession, model: str, reasoning: str, *, ending: Ending, ignored: list[str]
) -> dict[str, Any]:
    """The whole reply, for a session that came to a text."""
    session = running.session
    assert session.text is not None  # noqa: S101 - else it was refused
    message = {
        "role": "assistant",
        "content": session.text + ending.of(session),
        "refusal": None,
        "reasoning_content": reasoning,
    }
    reason = finish_reason(session)
    choice = {"index": 0, "message": message, "finish_reason": reason, "logprobs": None}
    usage = usage_of(session)
    return {
        "id": f"chatcmpl-{session.id}",
        "object": "chat.completion",
        "created": int(session.opened.at.timestamp()),
        "model": model,
        "choices": [choice],
        **({} if usage is None else {"usage": usage}),
        "witan": council_object(running, ignored),
    }


def refusal(running: RunningSession) -> Refusal | None:
    """Why there is no text; None: there is one."""
    session, failure = running.session, running.failure
    if failure is not None:
        ours = isinstance(failure, WitanError)
        words = (
            public_error(failure)
            if ours
            else "a mistake within Witan; the log of the server says more"
        )
        return Refusal(status_of(failure), words, "session_failed")
    if session.status == "interrupted" and session.synthesis is None:
        words = f"the session {session.id} was interrupted before its final answer; resume it"
        return Refusal(503, words, "session_interrupted")
    if session.text is not None:
        return None
    words = f"the session {session.id} came to no text: {'; '.join(session.missing)}"
    if session.over_budget:
        return Refusal(402, words, "over_budget")
    return Refusal(502, words, "no_text")


def finish_reason(session: Session) -> str:
    """Whether the text is whole."""
    held = session.synthesis
    if held is not None and held.chairman is not None:
        return "length" if held.cut else "stop"
    shown = session.answers if held is None else {*held.labels.values()}
    cut = any(answer.cut for seat, answer in session.answers.items() if seat in shown)
    return "length" if cut else "stop"


def usage_of(session: Session) -> dict[str, Any] | None:
    """The tokens of all calls, with what they cost where that is known; None: they are not."""
    spent = [event.spent for event in session.events if isinstance(event, SPENDING)]
    made = [each.usage for each in spent if each.calls]
    read, written = (
        _sum(each.input_tokens for each in made),
        _sum(each.output_tokens for each in made),
    )
    if read is None or written is None:
        return None
    usage = {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}
    cost = session.cost.total_usd
    return usage if cost is None else {**usage, "cost": cost}


def council_object(running: RunningSession, ignored: list[str]) -> dict[str, Any]:
    """What only a council has to say of its text."""
    told = verdict_object(running.session, running.problem)
    del told["text"]  # it is the content of the message
    return {**told, "ignored": ignored}


def _sum(numbers: Iterable[int | None]) -> int | None:
    known = [*numbers]
    return None if None in known else sum(number for number in known if number is not None)
