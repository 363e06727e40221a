"""Sessions as chat completions, whole or in chunks."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NotRequired

from typing_extensions import TypedDict

from witan.core.outcome import Interval
from witan.deliberation import events as e
from witan.deliberation.session import Session, State
from witan.errors import WitanError
from witan.service.json_output import reduce_to, to_json
from witan.service.redaction import public_error
from witan.service.sessions import RunningSession, StreamMessage
from witan.service.trust import session_trust
from witan.surfaces.http.problems import status_of
from witan.surfaces.live_board import Board, FinalText, progress_lines
from witan.surfaces.openai.errors import error_object
from witan.surfaces.report.session import ReplyFooter

DONE = b"data: [DONE]\n\n"

FinishReason = Literal["stop", "length"]


@dataclass(frozen=True, slots=True)
class StandingSummary:
    """A line of an outcome in short.

    Parameters
    ----------
    candidate
        Its name.
    rank
        1 is best; equal lines share it.
    score, interval
        The rule's number, and its interval; null: it has none.
    p_best
        Probability that other reviewers would place it best; null: unknown.
    tier
        Number of the group that ties cannot separate, 1 the best.
    failed
        Flags of the safety gate.
    """

    candidate: str
    rank: int
    score: float | None
    interval: Interval | None
    p_best: float | None
    tier: int
    failed: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class OutcomeSummary:
    """An outcome in short.

    Parameters
    ----------
    rule, interpretation
        The rule that counted, and what the standings say.
    leaders, tied_for_best
        Who shares the first rank, and whoever is too close to it to call.
    clear_leader
        The leader that stands alone; null: there is none.
    disputed_by
        Whom the fit places above the first line beyond noise.
    n_ballots, n_abstentions
        Ballots that count, and seats without one.
    effective_votes
        How many independent reviewers these are worth; null: unknown.
    ballots_to_flip
        The fewest ballots that could end the lead; null: no leader, or not searched.
    warnings
        What was changed or doubtful.
    standings
        Best first.
    """

    rule: str
    interpretation: str
    leaders: tuple[str, ...]
    tied_for_best: tuple[str, ...]
    clear_leader: str | None
    disputed_by: tuple[str, ...]
    n_ballots: int
    n_abstentions: int
    effective_votes: float | None
    ballots_to_flip: int | None
    warnings: tuple[str, ...]
    standings: tuple[StandingSummary, ...]


class CompletionMessage(TypedDict):
    """The reply of the council.

    Parameters
    ----------
    role
        Always ``assistant``.
    content
        The final answer.
    refusal
        Always null.
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
    index
        Always 0.
    message
        The reply of the council.
    finish_reason
        ``length``: the text was cut.
    logprobs
        Always null.
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


class CouncilReply(TypedDict):
    """The session behind a completion.

    Parameters
    ----------
    session, status, simulated
        Its name, how it ended, and whether scripts sat in it.
    missing
        A sentence for each missing thing.
    trust
        Who voted, what is too close to call, what it cost and what is missing.
    leaders
        Who shares the first rank.
    outcome
        What the ballots come to; null: fewer than the quorum.
    chairman
        Who wrote the final answer; null: nobody.
    labels
        Label of the final answer to the seat that it stands for.
    approved
        Whether the verdict approves; null: there is no verdict.
    unanswered
        Seat to why it has no answer.
    cost_usd, known_usd
        What it cost, null where a price is unknown; and what is known of it.
    seconds
        How long it took.
    record_problem
        Why it is not in the history; null: it is.
    rankings
        The ranking before, and now, of a session that another jury judged.
    ignored
        Parameters of the request that changed nothing.
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


class Completion(TypedDict):
    """A chat completion.

    Parameters
    ----------
    id, created, model
        Its name, when the session was opened, and the model as it was requested.
    object
        Always ``chat.completion``.
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
    index
        Always 0.
    delta
        The next piece.
    finish_reason
        Why the text ended; null: it goes on.
    logprobs
        Always null.
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
    object
        Always ``chat.completion.chunk``.
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


@dataclass(frozen=True, slots=True)
class Refusal:
    """A reason for no reply."""

    status: int
    message: str
    code: str


@dataclass(frozen=True, slots=True)
class ReplyForm:
    """The form of a reply, as the request wants it.

    Parameters
    ----------
    narration
        It says what the council does.
    stops
        Texts that the final answer ends before.
    ignored
        Parameters of the request that changed nothing.
    """

    footer: "ReplyFooter"
    narration: bool
    stops: tuple[str, ...]
    ignored: list[str]

    def content(self, session: Session) -> str:
        """Return the final answer, and the paragraphs below it."""
        assert session.text is not None  # noqa: S101 - else it was refused
        return StopFilter(self.stops).feed(session.text, last=True) + self.footer.of(session)


class StopFilter:
    """Ends a text before the first of some others, however it is cut into pieces."""

    def __init__(self, stops: Sequence[str]) -> None:
        self._stops = tuple(stops)
        self.restart()

    def restart(self) -> None:
        """Begin a text anew."""
        self._withheld, self._stopped = "", False

    def feed(self, piece: str, *, last: bool = False) -> str:
        """Return what is certain to stand before every stop."""
        text, self._withheld = self._withheld + piece, ""
        if self._stopped:
            return ""
        if found := [text.index(stop) for stop in self._stops if stop in text]:
            self._stopped = True
            return text[: min(found)]
        held = 0 if last else max((_overlap(text, stop) for stop in self._stops), default=0)
        self._withheld = text[len(text) - held :]
        return text[: len(text) - held]


def _overlap(text: str, stop: str) -> int:
    """Characters at the end of a text that may begin a stop."""
    longest = min(len(text), len(stop) - 1)
    return next((n for n in range(longest, 0, -1) if text.endswith(stop[:n])), 0)


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
        "witan": council_reply(running_session, form.ignored),
    }
    if (usage := usage_of(session)) is not None:
        result["usage"] = usage
    return result


def refusal(running_session: RunningSession) -> Refusal | None:
    """Return why a session has no text; None: it has one."""
    session, failure = running_session.session, running_session.failure
    if failure is not None:
        is_ours = isinstance(failure, WitanError)
        words = (
            public_error(failure)
            if is_ours
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
    unmet = session.opening.procedure.json_schema is not None and session.answers
    return Refusal(502, words, "schema_not_met" if unmet else "no_text")


def trust_headers(session: Session) -> dict[str, str]:
    """Return the name and the trust line of a session as headers."""
    line = session_trust(session).replace("·", "|").encode("ascii", "replace").decode()
    return {"Witan-Session": session.id, "Witan-Trust": " ".join(line.split())}


def finish_reason(session: Session) -> FinishReason:
    """Say whether the text is whole."""
    return "length" if session.is_cut else "stop"


def usage_of(session: Session) -> TokenUsage | None:
    """Sum the tokens and cost of all calls; None: unknown."""
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


def council_reply(running_session: RunningSession, ignored_parameters: list[str]) -> CouncilReply:
    """Return what only a council has to say of its text."""
    session, outcome = running_session.session, running_session.session.outcome
    closing = session.synthesis
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
        "record_problem": running_session.problem,
        "ignored": ignored_parameters,
    }
    if session.rankings:
        result["rankings"] = session.rankings
    return result


class Frames:
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
        self._usage, self._form, self._stop = usage, form, StopFilter(form.stops)
        self._board, self._final = Board(), FinalText()
        self._id, self._model = f"chatcmpl-{running_session.id}", model
        self._created = int(running_session.session.opening.at.timestamp())

    def opening(self) -> bytes:
        """Write the first chunk."""
        return self._chunk({"role": "assistant", "content": ""})

    def frame(self, message: StreamMessage) -> bytes:
        """Write the chunks of an event: progress, text, or nothing."""
        chunks = []
        if self._form.narration:
            self._board = self._board.apply_event(message.event)
            if line := self._board.line:
                chunks.append(self._chunk({"reasoning_content": f"{line}\n"}))
        if text := self._next_text(message.event):
            chunks.append(self._chunk({"content": text}))
        return b"".join(chunks)

    def _next_text(self, event: e.Event) -> str:
        if isinstance(event, e.SynthesisDone):
            return self._join(*self._final.end(event.text))
        return self._join(*self._final.take(event))

    def _join(self, piece: str, void: str, *, last: bool = False) -> str:
        if void:
            self._stop.restart()
        text = self._stop.feed(piece, last=last)
        return f"\n\n{void}\n\n{text}" if void else text

    def ending(self, running_session: RunningSession) -> bytes:
        """Write the last chunks, or an error."""
        reason = refusal(running_session)
        if reason is not None:
            return _data(error_object(reason.status, reason.message, reason.code))
        session = running_session.session
        rest = self._join(*self._final.end(session.text or ""), last=True)
        last = rest + self._form.footer.of(session)
        chunks = [self._chunk({"content": last})] if last else []
        reply = council_reply(running_session, self._form.ignored)
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
