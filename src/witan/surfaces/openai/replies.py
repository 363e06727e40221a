"""The parts that all replies of OpenAI's protocol share."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NotRequired

from typing_extensions import TypedDict

from witan.core.outcome import Interval
from witan.deliberation import events as e
from witan.deliberation.session import Session, State
from witan.errors import WitanError
from witan.service.json_output import reduce_to
from witan.service.redaction import public_error
from witan.service.trust import session_trust
from witan.surfaces.http.problems import status_of
from witan.surfaces.live_board import Board, FinalText
from witan.surfaces.report.session import ReplyFooter


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
    store
        Whether the session can be found once it has ended.
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
        """Begin a text anew."""
        self._withheld, self._stopped = "", False

    def feed(self, piece: str, *, last: bool = False) -> str:
        """Return what is certain to stand before every stop."""
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
    """Return what only a council has to say of its text.

    Parameters
    ----------
    problem
        Why it is not in the history.
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
        """Return what is left of the text, and the paragraphs below it."""
        rest = self._join(*self._final.end(session.text or ""), last=True)
        return rest + self._form.footer.of(session)

    def _join(self, piece: str, void: str, *, last: bool = False) -> str:
        if void:
            self._stop.restart()
        text = self._stop.feed(piece, last=last)
        return f"\n\n{void}\n\n{text}" if void else text
