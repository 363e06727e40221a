"""Replies of OpenAI's protocol: chat completions, and the parts that responses share."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, NotRequired

from typing_extensions import TypedDict

from witan.core.outcome import Outcome, Standing
from witan.deliberation import events as e
from witan.deliberation.session import Session, State
from witan.errors import WitanError
from witan.service.json_output import record_type, reduce_to, to_json
from witan.service.parameters import Doc
from witan.service.redaction import public_error
from witan.service.sessions.running import RunningSession, StreamMessage
from witan.service.trust import session_trust
from witan.surfaces.http.problems import error_object, status_of
from witan.surfaces.live_board import Board, FinalText, progress_lines
from witan.surfaces.report.session import ReplyFooter

StandingSummary: Any = record_type(
    "StandingSummary",
    Standing,
    ("candidate", "rank", "score", "interval", "p_best", "tier", "failed"),
)

OutcomeSummary: Any = record_type(
    "OutcomeSummary",
    Outcome,
    (
        *("rule", "interpretation", "leaders", "tied_for_best", "clear_leader", "disputed_by"),
        *("n_ballots", "n_abstentions", "effective_votes", "ballots_to_flip", "warnings"),
        "standings",
    ),
    standings=tuple[StandingSummary, ...],
)
"""An outcome in short."""


class CouncilReply(TypedDict):
    """The session behind a completion.

    Parameters
    ----------
    session, status, simulated
        Its name, how it ended, and whether scripts played seats.
    missing
        A sentence for each missing thing.
    trust
        Summary of voters, what is too close to call, cost and missing parts.
    leaders
        Candidates of the first rank.
    outcome
        The outcome of the ballots; null: fewer than the quorum.
    chairman
        Author of the final answer, or null.
    labels
        Seat by label in the final answer.
    approved
        Whether the verdict approves; null: there is no verdict.
    unanswered
        Reason for a missing answer, by seat.
    cost_usd, known_usd
        Its cost, null if a price is unknown; and the known part.
    seconds
        Its duration.
    record_problem
        Why it is not in the history; null: it is.
    rankings
        The previous and the current ranking, if another jury judged the session.
    ignored
        Parameters of the request without effect.
    """

    session: str
    status: State
    simulated: bool
    missing: Sequence[str]
    trust: str
    leaders: Sequence[str]
    outcome: OutcomeSummary | None
    chairman: str | None
    labels: Mapping[str, str]
    approved: bool | None
    unanswered: Mapping[str, str]
    cost_usd: float | None
    known_usd: float
    seconds: float
    record_problem: str | None
    rankings: NotRequired[Mapping[str, Sequence[Sequence[str]]]]
    ignored: Sequence[str]


@dataclass(frozen=True, slots=True)
class Refusal:
    """A reason for no reply."""

    status: int
    message: str
    code: str


@dataclass(frozen=True, slots=True)
class ReplyForm:
    """The form of a reply, as requested.

    `ignored`: parameters of the request without effect.
    `store`: whether the session can be found once it has ended.
    """

    footer: ReplyFooter
    narration: bool
    stops: tuple[str, ...] = ()
    ignored: list[str] = field(default_factory=list)
    store: bool = True

    def content(self, session: Session) -> str:
        """Return the final answer, and the paragraphs below it."""
        assert session.text is not None  # noqa: S101 - else it was refused
        return StopFilter(self.stops).feed(session.text, last=True) + self.footer.of(session)


class StopFilter:
    """Ends a text before the first stop sequence, across pieces."""

    def __init__(self, stops: Sequence[str]) -> None:
        self._stops = tuple(stops)
        self.restart()

    def restart(self) -> None:
        """Start a text again."""
        self._withheld, self._stopped = "", False

    def feed(self, piece: str, *, last: bool = False) -> str:
        """Return the text that certainly precedes every stop."""
        text, self._withheld = self._withheld + piece, ""
        if self._stopped:
            return ""
        if stop_places := [text.index(stop) for stop in self._stops if stop in text]:
            self._stopped = True
            return text[: min(stop_places)]
        n_held_back = 0 if last else max((_overlap(text, stop) for stop in self._stops), default=0)
        self._withheld = text[len(text) - n_held_back :]
        return text[: len(text) - n_held_back]


def _overlap(text: str, stop: str) -> int:
    """Characters at the end of a text that may begin a stop."""
    longest = min(len(text), len(stop) - 1)
    return next((n for n in range(longest, 0, -1) if text.endswith(stop[:n])), 0)


def refusal(session: Session, failure: Exception | None = None) -> Refusal | None:
    """Return the reason a finished session has no text, or None."""
    if failure is not None:
        is_ours = isinstance(failure, WitanError)
        words = public_error(failure) if is_ours else "internal error; see the server log"
        return Refusal(status_of(failure), words, "session_failed")
    if session.status == "interrupted" and session.synthesis is None:
        words = f"the session {session.id} was interrupted before its final answer; resume it"
        return Refusal(503, words, "session_interrupted")
    if session.text is not None:
        return None
    if session.opening.judging is not None:
        words = f"the session {session.id} judged texts, and has no final answer"
        return Refusal(502, words, "no_text")
    words = f"the session {session.id} produced no text: {'; '.join(session.missing)}"
    if session.over_budget:
        return Refusal(402, words, "over_budget")
    lacks_json = session.opening.procedure.json_schema is not None and session.answers
    return Refusal(502, words, "schema_not_met" if lacks_json else "no_text")


def trust_headers(session: Session) -> dict[str, str]:
    """Return the name and the trust line of a session as headers."""
    line = session_trust(session).replace("·", "|").encode("ascii", "replace").decode()
    return {"Witan-Session": session.id, "Witan-Trust": " ".join(line.split())}


def council_reply(
    session: Session, problem: str | None, ignored_parameters: list[str]
) -> CouncilReply:
    """Return the facts that only a council adds to its text.

    `problem` is why the session is not in the history.
    """
    outcome, closing = session.outcome, session.synthesis
    result: CouncilReply = {
        "session": session.id,
        "status": session.status,
        "simulated": session.is_simulated,
        "missing": session.missing,
        "trust": session_trust(session),
        "leaders": () if outcome is None else outcome.leaders,
        "outcome": None if outcome is None else reduce_to(OutcomeSummary, outcome),
        "chairman": None if closing is None else closing.chairman,
        "labels": {} if closing is None else closing.labels,
        "approved": None if closing is None else closing.approved,
        "unanswered": session.unanswered,
        "cost_usd": session.cost.total_usd,
        "known_usd": session.cost.known_usd,
        "seconds": session.seconds,
        "record_problem": problem,
        "ignored": ignored_parameters,
    }
    if session.rankings:
        result["rankings"] = session.rankings
    return result


class ReplyStream:
    """The narration and the final answer of one session, piece by piece."""

    def __init__(self, form: ReplyForm) -> None:
        self._form, self._stop = form, StopFilter(form.stops)
        self._board, self._final = Board(), FinalText()

    def take(self, event: e.Event) -> tuple[str, str]:
        """Return an event's narration line and text; both may be empty."""
        line = ""
        if self._form.narration:
            self._board = self._board.apply_event(event)
            line = self._board.line
        if isinstance(event, e.SynthesisDone):
            return line, self._join(*self._final.end(event.text))
        return line, self._join(*self._final.take(event))

    def end(self, session: Session) -> str:
        """Return the rest of the text, and the paragraphs below it."""
        rest = self._join(*self._final.end(session.text or ""), last=True)
        return rest + self._form.footer.of(session)

    def _join(self, piece: str, void: str, *, last: bool = False) -> str:
        if void:
            self._stop.restart()
        text = self._stop.feed(piece, last=last)
        return f"\n\n{void}\n\n{text}" if void else text


DONE = b"data: [DONE]\n\n"

FinishReason = Literal["stop", "length"]


class CompletionMessage(TypedDict):
    """The reply of the council."""

    role: Literal["assistant"]
    content: Annotated[str, Doc("The final answer.")]
    refusal: None
    reasoning_content: Annotated[
        NotRequired[str], Doc("What the council did, one line per step, if requested.")
    ]


class CompletionChoice(TypedDict):
    """The only choice of a completion."""

    index: int
    message: CompletionMessage
    finish_reason: Annotated[FinishReason, Doc("``length``: the text was cut.")]
    logprobs: None


class TokenUsage(TypedDict):
    """The tokens of all calls of a session.

    Parameters
    ----------
    prompt_tokens, completion_tokens, total_tokens
        Input tokens, output tokens, and their sum.
    cost
        US dollars, if known.
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
        The tokens of all calls, if known.
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
    """A piece of a reply."""

    role: Annotated[NotRequired[Literal["assistant"]], Doc("Role, in the first piece.")]
    content: Annotated[NotRequired[str], Doc("Text of the final answer.")]
    reasoning_content: Annotated[NotRequired[str], Doc("What the council did.")]


class ChunkChoice(TypedDict):
    """The only choice of a chunk."""

    index: int
    delta: Annotated[Delta, Doc("The next piece.")]
    finish_reason: Annotated[FinishReason | None, Doc("Why the text ended; null: it goes on.")]
    logprobs: None


class CompletionChunk(TypedDict):
    """A chunk of a streamed completion.

    Parameters
    ----------
    id, created, model
        As in the whole completion.
    choices
        One; none in the chunk with the usage.
    usage
        The tokens of all calls, in the last chunk, if requested.
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
    """Return the whole reply of a session with a text."""
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

    With `usage`, a last chunk has the usage.
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
