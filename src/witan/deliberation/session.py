"""A session: everything one question produced, folded from its events."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Unpack

from witan.core.ballot import Ballot
from witan.core.display import FrameSource, NotebookDisplay, brief, list_names
from witan.core.gate import Gate
from witan.core.outcome import Outcome, Standing
from witan.core.rules import RULES
from witan.core.settings import AUTO, SettingOptions, Settings
from witan.core.stats.calibration import reliability_of
from witan.core.stats.measures import Measure
from witan.core.tally import tally_sessions
from witan.core.verdict import Approval, Verdict, approval, judge_texts
from witan.deliberation import events as e
from witan.deliberation.costs import Cost, CostTally
from witan.deliberation.events import SessionOpened
from witan.deliberation.ports import TEXT, Expense, Member, Message, Seat, Usage, free_name
from witan.deliberation.prompts import read_verdict
from witan.deliberation.texts import are_identical, check_citations, group_duplicates
from witan.errors import InvalidParameter, NothingToCount, UnknownName

(
    ANSWER_FENCES,
    DEBATE_SHEETS,
    REVIEW_SHEETS,
    MIRRORED_SHEETS,
    SYNTHESIS_LABELS,
    RETRY_WAITS,
) = range(6)
"""Numbers of a session's random draws, each seeded by the session's seed and its number."""


def is_author(juror: Member | Seat, seat: Member | Seat) -> bool:
    """Return true if juror and seat are the same model.

    A model passed as an object is known only by the name of its seat.
    """
    if seat.provider == TEXT:
        return False
    if juror.source or seat.source:
        return juror.source == seat.source
    return juror.name == seat.name


def rename_clashes(council: Sequence[Member], seats: Sequence[Seat]) -> dict[str, Member]:
    """Rename members that share a seat's name without being its author.

    A juror may share the name of a seat whose answer it wrote; otherwise it would be taken for
    another model and recused in its place.
    """
    seats_by_name = {seat.name: seat for seat in seats}
    used_names = {*seats_by_name, *(member.name for member in council)}
    new_names = {}
    for member in council:
        if member.name in new_names:
            continue
        name = member.name
        if name in seats_by_name and not is_author(member, seats_by_name[name]):
            name = free_name(name, used_names)
            used_names.add(name)
        new_names[member.name] = member if name == member.name else replace(member, name=name)
    return new_names


def double_roles(
    members: Iterable[Member | Seat],
    jury: Iterable[Member | Seat],
    chairmen: Iterable[Member | Seat],
) -> Iterator[str]:
    """Name chairmen that are also members or jurors."""
    answer, judge = ({seat.name for seat in seats} for seats in (members, jury))
    for name in dict.fromkeys(chairman.name for chairman in chairmen):
        if name in answer | judge:
            role = "juror" if name in judge else "member"
            yield f"the chairman {name} is also a {role}"


@dataclass(frozen=True, slots=True)
class Authorship:
    """Candidates by their reviewing author.

    `candidates_by_author`: reviewer to the candidates that it wrote, in seat order.
    `authors`: candidate to the reviewer that wrote it, if that has another name. Of several jurors
    with the same model it names the first; the others never saw the candidate.
    """

    candidates_by_author: Mapping[str, tuple[str, ...]]
    authors: Mapping[str, str]

    @classmethod
    def of(cls, opening: SessionOpened) -> "Authorship":
        """Return the authorship in a session by its opening."""
        if not opening.jury:
            return cls({seat.name: (seat.name,) for seat in opening.seats}, {})
        own = {
            juror.name: tuple(seat.name for seat in opening.seats if is_author(juror, seat))
            for juror in opening.jury
        }
        authors = {
            candidate: juror
            for juror, candidates in reversed(own.items())
            for candidate in candidates
            if candidate not in own
        }
        return cls(own, authors)

    def sign(self, ballot: Ballot) -> Ballot:
        """Sign a ballot, for the same recusal in counting."""
        if not self.authors and self.candidates_by_author.get(ballot.reviewer) == (
            ballot.reviewer,
        ):
            return ballot
        own_candidates = self.candidates_by_author.get(ballot.reviewer, ())
        if not (self.authors or own_candidates or ballot.authors):
            return ballot
        unattributed_candidates = {
            c for c in own_candidates if self.authors.get(c, c) != ballot.reviewer
        }
        roster = ballot.candidates
        if roster is not None:
            roster = tuple(name for name in roster if name not in unattributed_candidates)
        return replace(ballot, candidates=roster, authors=self.authors or None)


_SPENDING = (
    e.AnswerDone | e.AnswerFailed | e.BallotCast | e.BallotAbstained | e.SynthesisFailedOver
    | e.SynthesisDone
)  # fmt: skip
"""Events that end a call."""


def _total(numbers: Iterable[int | None]) -> int | None:
    amounts = [*numbers]
    return None if None in amounts else sum(number for number in amounts if number is not None)


State = Literal["complete", "degraded", "failed", "interrupted", "running"]
"""Status of a session; ``interrupted`` if never closed, ``running`` while a process works on it."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A member's answer; `cut` if it ended at its token limit."""

    seat: str
    text: str
    round: int
    cut: bool
    spent: Expense


@dataclass(frozen=True, slots=True)
class Synthesis:
    """The final answer, its author, and earlier failed chairmen.

    Parameters
    ----------
    text
        The final answer.
    mode
        A synthesis, a verdict, or the best answer.
    cut
        It ended at its token limit.
    chairman
        Its author; None: the text is the best-ranked answer, or the tied ones.
    labels
        Seat by label: what [A] in the text means.
    approved
        Whether it approves; None outside the mode ``verdict``.
    failed
        Reason by chairman, in the order in which they were tried.
    unresolved
        Cited labels without an answer.
    """

    text: str
    chairman: str | None
    mode: str
    labels: Mapping[str, str]
    approved: bool | None
    cut: bool
    failed: Mapping[str, str]
    unresolved: tuple[str, ...] = ()

    def __repr__(self) -> str:
        author = f" by {brief(self.chairman, 32)}" if self.chairman else ""
        decisions = {None: "", True: " approves,", False: " rejects,"}
        failures = f", after {len(self.failed)} failed" if self.failed else ""
        about = f"{self.mode}{author}:{decisions[self.approved]} {brief(self.text, 32)}"
        return f"<Synthesis {about}{failures}>"


@dataclass(frozen=True, slots=True)
class Session(NotebookDisplay, FrameSource):
    """One question through all stages.

    Parameters
    ----------
    events
        Everything that happened, except deltas; the other fields follow from it.
    opening
        The question, the seats, the procedure, the plan and the seed.
    answers
        Seat to its last answer, in seat order.
    unanswered
        Seat to the reason why it has no answer.
    failed
        Seat to flags of the safety gate.
    ballots
        One per needed reviewer, in seat order, with abstentions; from the last round.
    outcome
        None if there are fewer ballots than the quorum.
    missing
        Sentences on what the session lacks; for an interrupted one, its progress.
    """

    events: tuple[e.Event, ...]
    opening: e.SessionOpened
    answers: Mapping[str, Answer]
    unanswered: Mapping[str, str]
    failed: Mapping[str, tuple[str, ...]]
    ballots: tuple[Ballot, ...]
    outcome: Outcome | None
    synthesis: Synthesis | None
    status: State
    missing: tuple[str, ...]
    cost: Cost
    seconds: float

    def __repr__(self) -> str:
        parts = [self.progress] if self.progress else []
        if self.outcome is not None and self.outcome.can_be_won:
            parts.append(f"leading: {list_names(self.outcome.leaders, ' = ')}")
        mark = "simulated " if self.is_simulated else ""
        about = f"<{mark}Session {brief(self.id)} {self.status}: {brief(self.question)}"
        return " · ".join([about, *parts]) + ">"

    @classmethod
    def of(cls, events: Iterable[e.Event]) -> "Session":
        """Fold a stream of events, whole or interrupted, into a session.

        Raises
        ------
        NothingToCount
            If the stream does not begin with the opening of a session, or has gaps.
        """
        return SessionFold.of(events).session()

    def rows(self) -> Iterator[Mapping[str, Any]]:
        """Yield seats with answers and standings as rows of a data frame."""
        rows = () if self.outcome is None else self.outcome.rows()
        standings = {row[""].candidate: row for row in rows}
        nothing = {"rule": None, "": Standing}
        for seat in self.opening.seats:
            answer = self.answers.get(seat.name)
            spent = None if answer is None else answer.spent
            yield {
                "session": self.id,
                "seat": seat.name,
                "source": seat.source,
                "answer": None if answer is None else answer.text,
                "reason": self.unanswered.get(seat.name),
                "seconds": None if spent is None else spent.seconds,
                "cost_usd": None if spent is None else spent.cost_usd,
                **standings.get(seat.name, nothing),
            }

    @property
    def id(self) -> str:
        """The session's name in records and on ballots."""
        return self.opening.session

    @property
    def question(self) -> str:
        """The question."""
        return self.opening.question

    @property
    def text(self) -> str | None:
        """The final answer, or else the only answer, if any."""
        if self.synthesis is not None:
            return self.synthesis.text
        if self.opening.judging is not None or self.opening.procedure.json_schema is not None:
            return None
        return next(iter(self.answers.values())).text if len(self.answers) == 1 else None

    @property
    def is_cut(self) -> bool:
        """True if the text ended at its token limit."""
        closing = self.synthesis
        if closing is not None and closing.chairman is not None:
            return closing.cut
        sources = self.answers if closing is None else {*closing.labels.values()}
        return any(answer.cut for seat, answer in self.answers.items() if seat in sources)

    @property
    def usage(self) -> Usage:
        """The tokens of all calls."""
        spent = [event.spent for event in self.events if isinstance(event, _SPENDING)]
        usages = [each.usage for each in spent if each.calls]
        return Usage(
            _total(each.input_tokens for each in usages),
            _total(each.output_tokens for each in usages),
        )

    @property
    def is_simulated(self) -> bool:
        """True if a seat plays a script."""
        return self.opening.is_simulated

    @property
    def consistency(self) -> Mapping[str, tuple[int, int]]:
        """Pairs judged alike in both orders and pairs compared, by reviewer."""
        ballot_by_seat = {
            event.seat: event for event in self.events if isinstance(event, e.BallotCast)
        }
        return {
            seat: (event.compared - event.flipped, event.compared)
            for seat, event in ballot_by_seat.items()
            if event.compared
        }

    @property
    def reviewer_ballots(self) -> Mapping[str, Ballot]:
        """Return one ballot per reviewer; of pairs, the ranking by them."""
        by_pairs = {
            event.seat: event.ballot
            for event in self.events
            if isinstance(event, e.BallotCast) and event.comparisons
        }
        return {b.reviewer: by_pairs.get(b.reviewer, b) for b in self.ballots}

    @property
    def reliability(self) -> Measure:
        """Share of equally confident panels that matched people, if known.

        It rests on the history at the opening of the session, and does not apply to scripts.
        """
        return reliability_of(self.outcome, None if self.is_simulated else self.opening.calibration)

    @property
    def progress(self) -> str:
        """Numbers of answers and ballots, received and requested."""
        parts, members = [], self.opening.members
        if members:
            parts.append(_events_of(len(self.answers), len(members), "answer"))
        if not members or any(isinstance(event, e.SheetDrawn) for event in self.events):
            ballots = self.reviewer_ballots.values()
            n_ballots = sum(not ballot.abstained for ballot in ballots)
            parts.append(_events_of(n_ballots, len(ballots), "ballot"))
        return ", ".join(parts)

    @property
    def outstanding_reviewers(self) -> frozenset[str]:
        """Reviewers with reviews left open by an interruption."""
        if self.status != "interrupted":
            return frozenset()
        finished_seats = {
            x.seat for x in self.events if isinstance(x, e.BallotCast | e.BallotAbstained)
        }
        return frozenset(
            seat.name for seat in self.opening.reviewers if seat.name not in finished_seats
        )

    @property
    def is_fruitless(self) -> bool:
        """True if a retry got no reply from any seat it asked."""
        opening = self.opening
        if not opening.retried or self.status == "interrupted":
            return False
        for event in self.events[1 + opening.kept :]:
            match event:
                case e.AnswerDone() | e.BallotCast():
                    retried = event.seat in opening.retried
                case e.SynthesisDone():
                    retried = event.chairman in opening.retried
                case _:
                    continue
            if retried and event.spent.calls:
                return False
        return True

    @property
    def rankings(self) -> Mapping[str, tuple[tuple[str, ...], ...]]:
        """Ranking of the parent as `before`, the jury's as `now`.

        Best first, equal ranks together, limited to seats in both sessions.
        """
        old_ranking = self.opening.parent_ranking
        if not old_ranking or self.outcome is None:
            return {}
        return {"before": old_ranking, "now": self.outcome.ranking}

    @property
    def same_answers(self) -> tuple[tuple[str, ...], ...]:
        """Groups of seats with the same answer."""
        return group_duplicates({seat: answer.text for seat, answer in self.answers.items()})

    @property
    def answers_agree(self) -> bool:
        """True if all answers are the same and none was reviewed."""
        return not self.has_reviews and _agree(self.opening, self.answers)

    @property
    def has_reviews(self) -> bool:
        """True if a review has begun; the answers do not change then."""
        return any(isinstance(event, e.ReviewStarted | e.BallotCast) for event in self.events)

    @property
    def ending(self) -> e.Decided | None:
        """Reason for ending the reviews early, if any."""
        ends = [x for x in self.events if isinstance(x, e.Decided) and x.reason != "certain"]
        return ends[-1] if ends else None

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes on seats and odd replies, a sentence each."""
        opening = self.opening
        seats_with_two_roles = [*double_roles(opening.seats, opening.jury, opening.chairmen)]
        for event in self.events[1:]:
            match event:
                case e.AnswerDone():
                    seats_with_two_roles += [f"{event.seat}: {note}" for note in event.notes]
                case e.SynthesisDone(chairman=str(chairman)):
                    seats_with_two_roles += [f"{chairman}: {note}" for note in event.notes]
        return tuple(dict.fromkeys((*opening.notes, *seats_with_two_roles)))

    @property
    def over_budget(self) -> bool:
        """True if the cost ceiling forbade a call."""
        return any(getattr(event, "over_budget", False) for event in self.events)

    @property
    def approval(self) -> Approval | None:
        """Votes of the members in the mode ``verdict``, else None."""
        if self.opening.procedure.mode != "verdict":
            return None
        votes = (self.answers.get(seat.name) for seat in self.opening.seats)
        return approval([None if answer is None else read_verdict(answer.text) for answer in votes])

    @property
    def verdict(self) -> Verdict | None:
        """The verdict on judged texts, if there are enough ballots."""
        return None if self.outcome is None else self.conclude(self.outcome, self.settings)

    def conclude(self, outcome: Outcome, settings: Settings) -> Verdict | None:
        """Return the verdict by a count and its settings.

        None without judged texts.
        """
        judging = self.opening.judging
        if judging is None:
            return None
        return judge_texts(
            self.ballots, outcome, settings, pass_mark=judging.pass_mark, expected=judging.expected
        )

    @property
    def conversation(self) -> tuple[Message, ...]:
        """The conversation with this question and its final answer."""
        turns = (*self.opening.conversation, Message("user", self.question))
        return turns if self.text is None else (*turns, Message("assistant", self.text))

    @property
    def settings(self) -> Settings:
        """Settings of the count, the safety gate included."""
        counting = self.opening.procedure.counting
        if not (self.failed or counting.gates):
            return counting
        gate = Gate(self.failed, self.opening.procedure.safety_cap)
        return replace(counting, gates={self.id: gate} if self.failed else {})

    def recount(
        self,
        rule: str | None = None,
        *,
        without: Sequence[str] = (),
        **overrides: Unpack[SettingOptions],
    ) -> Outcome:
        """Count the stored ballots again, by other settings or fewer reviewers.

        Parameters
        ----------
        rule
            Voting rule; by default the session's own.
        without
            Reviewers whose ballots do not count.
        **overrides
            Settings and parameters of the rule, as in `witan.tally`.

        Raises
        ------
        UnknownName
            If a reviewer or the rule does not exist.
        NothingToCount
            If no ballot is left.
        """
        seats = [seat.name for seat in self.opening.reviewers]
        weight_overrides = (overrides.get("weights") or {}, overrides.get("reliability") or {})
        for name in (*without, *weight_overrides[0], *weight_overrides[1]):
            if name not in seats:
                raise UnknownName("reviewer", name, seats)
        if rule is not None and rule != AUTO and RULES[rule].needs == "history":
            raise InvalidParameter("rule", rule, "a rule that ranks a single session")
        ballots = [ballot for ballot in self.ballots if ballot.reviewer not in without]
        if not any(not ballot.abstained for ballot in ballots):
            raise NothingToCount(f"no ballot of session {self.id} is left to count")
        [outcome] = tally_sessions(ballots, self.recount_settings(rule, overrides))
        return outcome

    def recount_settings(self, rule: str | None, overrides: Mapping[str, Any]) -> Settings:
        """Return the session's settings, changed as in `recount`."""
        settings = self.settings
        if rule is None and not overrides:
            return settings
        is_same_rule = rule in (None, settings.rule)
        requested = Settings.of(rule or settings.rule, **overrides)
        counting = {"recusal", "unranked", "rubric"} & overrides.keys()
        parameters_and_settings = replace(
            settings,
            rule=requested.rule,
            parameters={**(settings.parameters if is_same_rule else {}), **requested.parameters},
            counting=replace(settings.counting, **{name: overrides[name] for name in counting}),
        )
        own_settings = {
            name: getattr(requested, name) for name in overrides if name in Settings.__slots__
        }
        return replace(
            parameters_and_settings,
            **{name: own_settings[name] for name in own_settings if name != "counting"},
        )


NOT_REQUESTED = "not asked"
"""Reason of a seat that was not asked before the session ended."""


def _events_of(n_there: int, n_requested: int, noun: str) -> str:
    return f"{n_there} of {n_requested} {noun}{'' if n_requested == 1 else 's'}"


def _agree(opening: e.SessionOpened, answers: Mapping[str, Answer]) -> bool:
    are_same = are_identical({seat: answer.text for seat, answer in answers.items()})
    return are_same and not opening.procedure.self_review


def elapsed_seconds(events: Sequence[e.Event]) -> float:
    """Return the seconds from first to last event, at least 0."""
    return max(0.0, (events[-1].at - events[0].at).total_seconds()) if events else 0.0


class SessionFold:
    """Fold of events into a session, which may continue."""

    def __init__(self, opening: e.SessionOpened) -> None:
        self.opening = opening
        self.events: list[e.Event] = [opening]
        self.seat_names = {seat.name for seat in (*opening.seats, *opening.callable_seats)}
        self.authorship = Authorship.of(opening)
        self.answers = {
            stored.seat: Answer(stored.seat, stored.text, 1, stored.cut, stored.spent)
            for stored in opening.answers
        }
        if not self.answers.keys() <= {seat.name for seat in opening.seats}:
            raise NothingToCount("the opening of the session contains an answer of an unknown seat")
        self.failure_by_seat: dict[str, str] = {}
        self.flags = {stored.seat: stored.flags for stored in opening.answers if stored.flags}
        self.ballots: dict[str, tuple[Ballot, ...]] = {}
        self.rounds: dict[str, int] = {}
        self.abstention_by_seat: dict[str, str] = {}
        self.requested_seats: set[str] = set()
        self.sheets: set[str] = set()
        self.uncalled_seats: set[str] = set()
        self.outcome: Outcome | None = None
        self.synthesis: Synthesis | None = None
        self.chairman_failures: dict[str, str] = {}
        self.closing_event: e.SessionClosed | None = None
        self.cost_tally = CostTally(opening.kept)

    @classmethod
    def of(cls, events: Iterable[e.Event]) -> "SessionFold":
        """Fold events, with the errors of `Session.of`."""
        lasting = [x for x in events if not isinstance(x, e.DELTAS)]
        if not lasting or not isinstance(lasting[0], e.SessionOpened):
            raise NothingToCount("the events do not begin with the opening of a session")
        fold = cls(lasting[0])
        for event in lasting[1:]:
            fold.take(event)
        return fold

    def take(self, event: e.Event) -> None:
        """Add one more event."""
        before = self.events[-1].seq
        if event.seq <= before or self.closing_event is not None:
            raise NothingToCount(f"event {event.seq} does not follow event {before}")
        seat = getattr(event, "seat", None)
        if seat is not None and seat not in self.seat_names:
            raise NothingToCount(f"event {event.seq} refers to the unknown seat {seat}")
        self.events.append(event)
        self.cost_tally.take(event)
        add = _ADDITIONS.get(type(event))
        if add is not None:
            add(self, event)

    def session(self) -> Session:
        """Return the session so far; an open one lists its progress."""
        session = self.state()
        if self.closing_event is not None:
            return session
        return replace(session, missing=(f"{session.progress} kept",))

    def state(self) -> Session:
        """Return the session so far; an open one lists no gaps."""
        events = tuple(self.events)
        seats = [seat.name for seat in self.opening.seats]
        closing_event = self.closing_event
        return Session(
            events=events,
            opening=self.opening,
            answers={name: self.answers[name] for name in seats if name in self.answers},
            unanswered={
                name: self._reason_unanswered(name) for name in seats if name not in self.answers
            },
            failed={name: self.flags[name] for name in seats if name in self.flags},
            ballots=self._ballots(),
            outcome=self.outcome,
            synthesis=self._resolve_citations(self.synthesis),
            status="interrupted" if closing_event is None else closing_event.status,
            missing=() if closing_event is None else closing_event.missing,
            cost=self.cost_tally.total(),
            seconds=(
                elapsed_seconds(events)
                if closing_event is None
                else max(0.0, closing_event.seconds)
            ),
        )

    def _resolve_citations(self, synthesis: Synthesis | None) -> Synthesis | None:
        """Resolve the citations of prose that a chairman wrote."""
        opening = self.opening
        prose = opening.procedure.json_schema is None
        if (
            synthesis is None
            or synthesis.chairman is None
            or not prose
            or "[" not in synthesis.text
        ):
            return synthesis
        earlier_texts = (
            opening.question,
            *(message.text for message in opening.conversation),
            *opening.files.values(),
            *(answer.text for answer in self.answers.values()),
        )
        unresolved = check_citations(synthesis.text, synthesis.labels, earlier_texts)
        return replace(synthesis, unresolved=unresolved)

    def _reason_unanswered(self, name: str) -> str:
        return self.failure_by_seat.get(
            name, "did not finish" if name in self.requested_seats else NOT_REQUESTED
        )

    def _ballots(self) -> tuple[Ballot, ...]:
        """Return the ballots of the called reviewers; those without one abstain."""
        called = [s.name for s in self.opening.reviewers if s.name not in self.uncalled_seats]
        silent = [name for name in called if name not in self.ballots]
        roster = tuple(s.name for s in self.opening.seats if s.name in self.answers) or None
        agree = bool(silent) and self.closing_event is not None
        agree = agree and _agree(self.opening, self.answers)
        abstained = {
            name: Ballot(
                name,
                session=self.opening.session,
                abstained=True,
                reason=self._reason_abstained(name, agree=agree),
                candidates=roster,
            )
            for name in silent
        }
        return tuple(
            ballot
            for name in called
            for ballot in self.ballots.get(name) or (self.authorship.sign(abstained[name]),)
        )

    def _reason_abstained(self, name: str, *, agree: bool) -> str:
        if name in self.abstention_by_seat:
            return self.abstention_by_seat[name]
        if name in self.sheets:
            return "did not finish"
        if agree:
            return "had nothing to review: all answers are the same"
        if name in self.answers or self.opening.jury or name not in self.failure_by_seat:
            return NOT_REQUESTED
        return f"did not answer: {self.failure_by_seat[name]}"


def _add_answer(fold: SessionFold, event: e.AnswerDone) -> None:
    answer = Answer(event.seat, event.text, event.round, event.cut, event.spent)
    fold.answers[event.seat] = answer


def _add_flags(fold: SessionFold, event: e.GateVerdict) -> None:
    if event.flags:
        fold.flags[event.seat] = event.flags


def _add_ballot(fold: SessionFold, event: e.BallotCast) -> None:
    for ballot in (event.ballot, *event.comparisons):
        if ballot.reviewer != event.seat or ballot.session != fold.opening.session:
            raise NothingToCount(f"event {event.seq} contains a ballot of another seat or session")
    if event.round >= fold.rounds.get(event.seat, 0):
        fold.ballots[event.seat] = event.comparisons or (event.ballot,)
        fold.rounds[event.seat] = event.round


def _add_outcome(fold: SessionFold, event: e.OutcomeChanged) -> None:
    fold.outcome = event.outcome


def _add_decision(fold: SessionFold, event: e.Decided) -> None:
    if event.reason != "certain":
        fold.uncalled_seats = {*event.cancelled}


def _add_synthesis(fold: SessionFold, event: e.SynthesisDone) -> None:
    fold.synthesis = Synthesis(
        event.text,
        event.chairman,
        event.mode,
        event.labels,
        event.approved,
        event.cut,
        dict(fold.chairman_failures),
    )


def _add_end(fold: SessionFold, event: e.SessionClosed) -> None:
    fold.closing_event = event


_ADDITIONS: Mapping[type[e.Event], Callable[[SessionFold, Any], None]] = {
    e.AnswerStarted: lambda fold, event: fold.requested_seats.add(event.seat),
    e.AnswerDone: _add_answer,
    # A member that fails in a debate keeps its earlier answer.
    e.AnswerFailed: lambda fold, event: fold.failure_by_seat.update({event.seat: event.reason}),
    e.GateVerdict: _add_flags,
    e.SheetDrawn: lambda fold, event: fold.sheets.add(event.sheet.reviewer),
    e.BallotCast: _add_ballot,
    e.BallotAbstained: lambda fold, event: fold.abstention_by_seat.update(
        {event.seat: event.reason}
    ),
    e.OutcomeChanged: _add_outcome,
    e.Decided: _add_decision,
    e.SynthesisFailedOver: lambda fold, event: fold.chairman_failures.update(
        {event.chairman: event.reason}
    ),
    e.SynthesisDone: _add_synthesis,
    e.FruitlessResume: lambda fold, _: fold.chairman_failures.clear(),
    e.SessionClosed: _add_end,
}
"""How a fold adds each kind of event; the others tell only what calls cost."""
