"""Reports of a session and of imported ballots."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from pathlib import Path

from witan.core.ballot import Ballot
from witan.core.display import chance_percent
from witan.core.outcome import Outcome
from witan.deliberation.events import SessionOpened
from witan.deliberation.ports import NO_QUESTION, Seat
from witan.deliberation.session import Session, Synthesis
from witan.history import SessionSummary
from witan.service.operations.sessions import Deletion, SessionList
from witan.service.session_records import CouncilSession, ImportedSession, votes_beside
from witan.service.text import UNKNOWN, Page, count_noun, list_text, uncapitalize
from witan.service.trust import cost_sum_text, p_best_text, session_trust
from witan.surfaces.live_board import CUT, Board, answer_facts
from witan.surfaces.report.ballots import (
    ballot_line,
    ballot_matrix,
    imported_matrix,
    rank_candidates,
)
from witan.surfaces.report.banner import outcome_banner, session_banner, shortfall
from witan.surfaces.report.document import (
    AnswerText,
    Block,
    Cell,
    Column,
    FinalAnswer,
    Heading,
    Link,
    Note,
    Quote,
    Report,
    Sentence,
    Table,
    columns_with_values,
    quote_notes,
    table_of,
)
from witan.surfaces.report.names import CHAIRMAN, CandidateNames, SeatNames
from witan.surfaces.report.outcome import (
    abstention_notes,
    agreed_and_contested,
    grade_blocks,
    order_note,
    pair_map,
    ranking_blocks,
    verdict_blocks,
)
from witan.surfaces.report.text import report_text

AS_CHILD: Mapping[str | None, str] = {
    "rejudged": "rejudges",
    "retried": "retries",
    "continued": "continues",
    "compared": "comes from the comparison of",
    None: "comes from",
}
"""Sentence that links to a session's parent, by their relation."""

BEGINNING = 120
"""Characters of a question in a list."""


def sessions_report(listing: SessionList) -> Report:
    """Write the report of a list of sessions."""
    if not listing.sessions:
        return Report("Sessions", (), "No matching sessions.", ())
    blocks: list[Block] = [_table(listing)]
    if listing.next is not None:
        n_listed = len(listing.sessions)
        shown = "this one" if n_listed == 1 else f"these {n_listed:,}"
        text = f"There are more than {shown}; limit=NUMBER lists more."
        blocks.append(Note(text, "hint", option="limit"))
    return Report("Sessions", ("the latest first",), "", tuple(blocks))


def _table(listing: SessionList) -> Table:
    lines, short = listing.sessions, listing.short
    origins = [origin_text(s, short.get(s.parent or "")) for s in lines]
    categories = [s.category or "" for s in lines]
    columns = [
        (Column("session", "left", fit="middle", heads=True), [short[s.session] for s in lines]),
        (Column("asked, UTC", "left", keep=40), [f"{s.at:%Y-%m-%d %H:%M}" for s in lines]),
        (
            Column("status", "left", keep=70),
            [f"{'simulated, ' * s.simulated}{s.status}" for s in lines],
        ),
        (Column("question", "left", fit="end"), [question_beginning(s.question) for s in lines]),
        *columns_with_values(
            (Column("verdict", "left", keep=65), [s.decision or "" for s in lines]),
        ),
        (
            Column("leader", "left", keep=60, fit="middle"),
            [s.leader_seat or s.leader or UNKNOWN for s in lines],
        ),
        (
            Column("p_best", keep=35),
            [p_best_text(s.p_best) for s in lines],
        ),
        (Column("cost", keep=50), [cost_of(s) or UNKNOWN for s in lines]),
        *columns_with_values(
            (Column("category", "left", keep=20, fit="middle"), categories),
            (Column("origin", "left", keep=30, fit="middle"), origins),
        ),
    ]
    return table_of("Sessions", columns)


def readable_question(question: str) -> str:
    """Leave out the sentence that only reviewers need."""
    return question.removesuffix(NO_QUESTION).rstrip()


def question_beginning(question: str, most: int = BEGINNING) -> str:
    """Shorten a question to one line."""
    plain = " ".join(readable_question(question).split())
    return plain if len(plain) <= most else f"{plain[: most - 1]}…"


def outcome_text(line: SessionSummary, *, with_names: bool) -> str:
    """State a session's verdict, its leader and the probability; empty without an outcome.

    `with_names`: the leader is named although the session's page hides names.
    """
    leading = _leading_text(line, with_names=with_names)
    if line.decision is None:
        return leading
    decision = line.decision.capitalize()
    if line.leader is None and line.p_best is None:
        return decision  # of a single text
    is_named = line.leader is not None and leading.startswith(line.leader_seat or line.leader)
    return f"{decision}: {leading if is_named else uncapitalize(leading)}"


def _leading_text(line: SessionSummary, *, with_names: bool) -> str:
    if line.rule is None and line.leader is None:
        return ""
    sure = "" if line.p_best is None else f"{chance_percent(line.p_best)} likely to be best"
    leader = line.leader_seat or line.leader
    if leader is None:
        return f"Several lead, the likeliest {sure}" if sure else "No single leader"
    if with_names or not line.has_events:
        return f"{leader} leads{f', {sure}' * bool(sure)}"
    return f"The leader is {sure}" if sure else "One answer leads"


def cost_of(line: SessionSummary) -> str:
    """Describe the cost of a session; empty if unknown."""
    return "" if line.cost_usd is None else cost_sum_text(line.cost_usd)


def relation_text(relation: str | None, parent: str) -> str:
    """Name the parent of a session and its relation to it."""
    return f"{AS_CHILD.get(relation, AS_CHILD[None])} {parent}"


def origin_text(line: SessionSummary, parent: str | None = None) -> str:
    """Name a session's file and parent; empty without either.

    `parent` is the short name of that session, if any.
    """
    parts = [f"imported from {Path(line.source).name}"] if line.imported else []
    if line.parent is not None:
        parts.append(relation_text(line.relation, parent or line.parent))
    return ", ".join(parts)


SHOWN = 10
"""Most sessions to name."""


def deletion_report(result: Deletion) -> Report:
    """Write the report of a deletion."""
    names = list_text(result.sessions)
    finding = f"{count_noun(len(result.sessions), 'session')} forgotten."
    return Report("Deletion", (names,) if names else (), finding, tuple(_notes(result)))


def _notes(result: Deletion) -> Iterator[Note]:
    if result.note is not None:
        yield Note(result.note, "warning")
    if result.children:
        alone = len(result.children) == 1
        names = [f"{session} ({relation})" for session, relation in result.children.items()]
        hold, them = ("holds", "it") if alone else ("hold", "them")
        yield Note(
            f"{list_text(names, most=SHOWN)} still {hold} deleted text; delete {them} as well",
            "warning",
        )


@dataclass(frozen=True, slots=True)
class RecountView:
    """A recount of a session's ballots, without some reviewers.

    `weights` are those that differ from the session's.
    """

    outcome: Outcome
    without: tuple[str, ...] = ()
    weights: Mapping[str, float] = field(default_factory=dict)


VOTES_SHOWN = 20
"""Most people's votes to show."""


def session_report(
    result: Session | CouncilSession,
    names: SeatNames | None = None,
    *,
    recount: RecountView | None = None,
) -> Report:
    """Write the report of a session, or of a recount."""
    council_session = None if isinstance(result, Session) else result
    session = result if isinstance(result, Session) else result.session
    names = names or SeatNames.of(session, hides_names=False)
    before, again = None, ""
    if recount is not None:  # the whole report uses one count
        before, session = session.outcome, replace(session, outcome=recount.outcome)
        again = recount_text(recount, names)
    closed = council_session is None or not council_session.under_way
    judges = session.opening.judging is not None
    blocks = [
        *_opening(session, {} if council_session is None else council_session.children, names),
        *_verdict(session, names, again, is_closed=closed),
    ]
    if closed and not judges:
        blocks += _final_answer(session, names, is_recount=bool(again))
    if not judges or len(session.answers) > 1:
        blocks += outcome_section(session.outcome, names, before)
    if session.outcome is None and closed:
        why = ": fewer ballots count than the quorum requires"
        why = " yet" if session.status == "interrupted" else why
        blocks += [Heading("Ranking", "ranking"), Sentence(f"There is no outcome{why}.")]
    blocks += [
        *_ballots(session, names, recount.without if recount else (), is_closed=closed),
        *vote_blocks(() if council_session is None else council_session.votes, "members'", names),
        *_answers(session, names, is_closed=closed),
    ]
    if closed:
        blocks += _seats(session, names)
    return Report(
        report_title(is_simulated=session.is_simulated),
        (
            session.id,
            session.status if closed else "under way",
            f"{session.opening.at:%Y-%m-%d %H:%M} UTC",
        ),
        "",
        tuple(blocks),
    )


def report_title(*, is_simulated: bool) -> str:
    """Title the report of a session."""
    return "Simulated session" if is_simulated else "Session"


def simulation_text(opening: SessionOpened) -> str:
    """State that scripts play seats; empty if none does."""
    if not opening.is_simulated:
        return ""
    if opening.judging is not None and all(seat.simulated for seat in opening.callable_seats):
        return "Simulated: scripts play the jury."
    if all(seat.simulated for seat in (*opening.seats, *opening.callable_seats)):
        return "Simulated: scripts play the members."
    return "Simulated in part: scripts play the members that are marked."


def _opening(session: Session, children: Mapping[str, str], names: SeatNames) -> Iterator[Block]:
    opened = session.opening
    yield Quote(readable_question(session.question))
    if opened.files:
        yield Sentence(f"with {list_text([*opened.files], most=20)}", quiet=True)
    if opened.category is not None:
        yield Sentence(f"category {opened.category}", quiet=True)
    if opened.parent is not None:
        again = f": {names.name_list(opened.retried)} asked again" if opened.retried else ""
        text = f"{relation_text(opened.relation, opened.parent)}{again}"
        yield Sentence(text, quiet=True, link=Link("show", {"session": opened.parent}))
    if opened.jury:
        jury = [f"{names.name(s.name)}{_source(s, names, ' ({})')}" for s in opened.jury]
        yield Sentence(f"jury: {list_text(names.sort(jury), most=len(jury))}", quiet=True)
    for name, relation in children.items():
        yield Sentence(f"{relation} as {name}", quiet=True, link=Link("show", {"session": name}))
    # While names are hidden, the order of seats must not reveal them.
    n_seated = len(opened.notes)
    notes = [*map(names.sentence, session.notes)]
    for note in (*notes[:n_seated], *names.sort(notes[n_seated:])):
        yield Note(note, "warning")


def _verdict(
    session: Session, names: SeatNames, recount: str, *, is_closed: bool
) -> Iterator[Block]:
    """Write the verdict, what is missing, and the grades of texts."""
    yield Heading("Verdict", "verdict")
    yield session_banner(session, names, recount=recount, is_closed=is_closed)
    missing = shortfall(session, names) if is_closed else None
    yield from () if missing is None else (missing,)
    if session.verdict is not None:
        yield from grade_blocks(session.verdict, names)


def judgment_report(session: Session) -> Report:
    """Write a jury's verdict, with the ranking of several texts."""
    names = SeatNames.of(session, hides_names=False)
    blocks = [] if session.verdict is None else [*verdict_blocks(session.verdict, names)]
    if len(session.answers) > 1:
        blocks += outcome_section(session.outcome, names, None)
    title = report_title(is_simulated=session.is_simulated)
    return Report(title, (session.id,), "", tuple(blocks))


def judgment_text(session: Session) -> str:
    """Write a jury's verdict as text, or the missing parts."""
    names, mark = SeatNames.of(session, hides_names=False), session.is_simulated
    about = f"{report_title(is_simulated=mark).lower()} {session.id} · {session_trust(session)}"
    if session.verdict is None:
        return f"no verdict: {about}"
    blocks = tuple(verdict_blocks(session.verdict, names))
    _, *lines = report_text(Page(), Report("", (), "", blocks))
    return "\n".join([*lines, about])


def _source(seat: Seat, names: SeatNames, form: str = "{}") -> str:
    """Return the model of a seat not named after it."""
    differs = seat.source and not seat.simulated and not seat.source.endswith(seat.name)
    return form.format(seat.source) if differs and not names.hides_names else ""


def _answers(session: Session, names: SeatNames, *, is_closed: bool) -> Iterator[Block]:
    noun = "answers" if session.opening.judging is None else "texts"
    yield Heading(noun.capitalize(), "answers")
    # If every seat is a script, the report says so only once.
    is_mixed = not all(seat.simulated for seat in session.opening.seats)
    seats = {seat.name: seat for seat in session.opening.seats}
    for name in rank_candidates(session.answers, session.outcome, names):
        answer = session.answers[name]
        yield AnswerText(
            f"answer-{names.places[name]}",
            names.quote(answer.text),
            names.labels[name] if session.opening.judging is None else "",
            "" if names.hides_names else names.name(name),
            _source(seats[name], names),
            is_mixed and seats[name].simulated,
            (
                *_rank(session.outcome, name, names),
                *answer_facts(answer, session.failed.get(name, ())),
            ),
        )
    if is_closed:
        lines = [
            (names.name(seat), names.sentence(why)) for seat, why in session.unanswered.items()
        ]
        for seat, why in names.sort(lines):
            yield AnswerText("", "", author=seat, reason=why)


def _rank(outcome: Outcome | None, name: str, names: CandidateNames) -> Iterator[str]:
    outcome = None if outcome is None else names.order_outcome(outcome)
    if outcome is None:
        return
    for line in outcome.standings:
        if line.candidate == name and line.votes and len(outcome.standings) > 1:
            pairs = [pair for pair in outcome.unresolved if name in pair]
            others = [names.name(each) for pair in pairs for each in pair if each != name]
            tied = f", too close to call against {list_text(others, most=3)}" if others else ""
            yield f"rank {line.rank}{tied}"


def _ballots(
    session: Session, names: SeatNames, without: tuple[str, ...], *, is_closed: bool
) -> Iterator[Block]:
    yield Heading("Ballots", "ballots")
    if session.answers:
        yield ballot_matrix(session, names, without=without, is_closed=is_closed)
    else:
        yield Sentence("There was no answer to judge.")


def vote_blocks(votes: Sequence[Ballot], kind: str, names: CandidateNames) -> Iterator[Block]:
    """Yield each person's vote, and whose ballots count."""
    if not votes:
        return
    yield Heading("People's votes", "votes")
    for ballot in votes[:VOTES_SHOWN]:
        if names.hides_names:  # a reader who may still vote must not see a ranking
            yield Sentence(f"{ballot.reviewer} has voted; the ranking is shown with the names")
            continue
        yield Sentence(f"{ballot.reviewer}: {ballot_line(ballot)}")
        if notes := "\n".join(quote_notes(ballot.notes)):
            yield Quote(notes, is_aside=True)
    if (more := len(votes) - VOTES_SHOWN) > 0:
        yield Sentence(
            f"And {count_noun(more, 'more vote')}; export the session to see them.", quiet=True
        )
    yield Sentence(
        f"The standings count only the {kind} ballots; a recount of all kinds counts both.",
        quiet=True,
    )


def outcome_section(
    outcome: Outcome | None, names: CandidateNames, before: Outcome | None
) -> Iterator[Block]:
    """Write the ranking of an outcome, with agreement and contested parts; nothing without one."""
    if outcome is not None:
        yield Heading("Ranking", "ranking")
        yield from outcome_parts(outcome, names, before)


def outcome_parts(
    outcome: Outcome, names: CandidateNames, before: Outcome | None = None
) -> Iterator[Block]:
    """Write the parts under the heading of the ranking."""
    yield Sentence(names.sentence(outcome.interpretation))
    yield from ranking_blocks(outcome, names, before)
    yield agreed_and_contested(outcome, names)
    yield from pair_map(outcome, names)
    yield from order_note(outcome, names)


def _final_answer(session: Session, names: SeatNames, *, is_recount: bool) -> Iterator[Block]:
    yield Heading("Answer", "answer")
    if session.synthesis is not None:
        for chairman, why in session.synthesis.failed.items():
            yield Note(names.sentence(f"chairman {chairman} failed: {why}"), "warning")
    final = final_answer(session, names, is_recount=is_recount)
    yield Sentence("There is no final answer.") if final is None else final


def final_answer(
    session: Session, names: SeatNames, *, is_recount: bool = False
) -> FinalAnswer | None:
    """Return the final answer, the only answer, or None.

    `is_recount`: this is another count than the session's.
    """
    final = session.synthesis
    if session.text is None or final is None:
        text = session.text
        return None if text is None else FinalAnswer(names.quote(text), "the only answer")
    author = f"written by {CHAIRMAN if names.hides_names else names.name(final.chairman or '')}"
    if final.chairman is None:
        author = f"{_best(session, final)}{' by the session’s own count' if is_recount else ''}"
    elif final.mode == "consensus":
        author += " from the answers; the reviewers judged those, not this text"
    return FinalAnswer(
        names.quote(final.text),
        f"{author}; {CUT}" if final.cut else author,
        tuple(
            (label, names.anchor(seat), "" if names.hides_names else names.name(seat))
            for label, seat in final.labels.items()
        ),
        final.unresolved,
    )


def _best(session: Session, final: Synthesis) -> str:
    """Describe which answers stand in for a chairman's final answer."""
    if len(final.labels) < 2:
        return "the answer ranked best"
    if session.outcome is None:
        return "the answers, as there is no ranking"
    return "the answers too close to call for best"


def legend_text(session: Session) -> str:
    """List the member behind each label in the final answer."""
    final = final_answer(session, SeatNames.of(session, hides_names=False))
    return "" if final is None else final.legend


@dataclass(frozen=True, slots=True)
class ReplyFooter:
    """The paragraphs below a final answer in prose; JSON has none.

    Parameters
    ----------
    mark
        Add the trust line if the session is simulated or lacks something.
    legend
        Always add the legend of the labels and the trust line.
    """

    mark: bool = True
    legend: bool = False

    def of(self, session: Session) -> str:
        """Return the paragraphs of a session, possibly empty."""
        if session.opening.procedure.json_schema is not None:
            return ""
        legend = legend_text(session) if self.legend else ""
        is_incomplete = session.status != "complete" or session.is_simulated
        trust = (
            f"[{session_trust(session)}]" if self.legend or (self.mark and is_incomplete) else ""
        )
        return "".join(f"\n\n{part}" for part in (legend, trust) if part)


def _seats(session: Session, names: SeatNames) -> Iterator[Block]:
    yield Heading("Run", "run")
    board = reduce(Board.apply_event, session.events, Board()).settle()
    lines = {line.name: line for line in board.seats}
    seats = [lines[name] for name in names.order(lines)]
    columns: list[tuple[Column, list[str | Cell]]] = [
        (Column("seat", "left", fit="middle", heads=True), [names.name(x.name) for x in seats]),
        (Column("state", "left"), [Cell(line.status, state=line.mark) for line in seats]),
        (Column("seconds", keep=50), [line.seconds for line in seats]),
        (Column("text", keep=40), [line.amount for line in seats]),
    ]
    if any(line.note for line in seats):
        remarks: list[str | Cell] = [names.sentence(line.note) for line in seats]
        columns.append((Column("remark", "left", keep=30, fit="fold"), remarks))
    yield table_of("Seats", columns)
    usage_note = "Seconds and tokens cover all calls of a seat, for answers and reviews."
    yield Sentence(usage_note, quiet=True)


def recount_text(recount: RecountView, names: SeatNames) -> str:
    """Describe how ballots are counted again."""
    weights = list_text(
        [f"{names.name(seat)} × {recount.weights[seat]:g}" for seat in names.order(recount.weights)]
    )
    parts = (
        f"counted again by {recount.outcome.rule}",
        f"without {names.name_list(recount.without)}" if recount.without else "",
        f"weighing {weights}" if weights else "",
    )
    return ", ".join(filter(None, parts))


REVIEWERS_SHOWN = 200
"""Most reviewers to show, and ballots of each."""


def imported_report(session: ImportedSession, without: tuple[str, ...] = ()) -> Report:
    """Write the report of imported ballots, `without` some reviewers."""
    about, record, outcome = session.about, session.session_import, session.outcome
    names = CandidateNames({name: at for at, name in enumerate(record.answers)})
    mark = record.simulated
    blocks: list[Block] = [Quote(record.question)] if record.question else []
    lacks = ["the question"] * (not record.question) + ["the answers"] * (not record.answers)
    without_text = f", without {list_text(lacks)}" if lacks else ""
    blocks.append(Sentence(f"Imported ballots{without_text}.", quiet=True))
    votes = votes_beside(record.ballots)
    if outcome is None:
        blocks += [
            Heading("Ranking", "ranking"),
            Note(f"not counted: {session.not_counted}", "reason"),
        ]
    else:
        blocks += [Heading("Verdict", "verdict"), outcome_banner(outcome, names)]
        blocks += outcome_section(outcome, names, None)
    blocks += _imported_ballots(session, votes, names, without)
    blocks += () if outcome is None else abstention_notes(outcome, names)
    blocks += vote_blocks(votes, "models'", names)
    blocks.append(Heading("Answers", "answers"))
    for name in rank_candidates(record.answers, outcome, names):
        rank = tuple(_rank(outcome, name, names))
        text = record.answers[name]
        blocks.append(AnswerText(names.anchor(name)[1:], text, author=name, facts=rank))
    if not record.answers:
        blocks.append(Sentence("The file has no answer texts.", quiet=True))
    return Report(
        report_title(is_simulated=mark),
        (about.session, f"imported from {about.source}", f"{about.at:%Y-%m-%d %H:%M} UTC"),
        "",
        tuple(blocks),
    )


def _imported_ballots(
    session: ImportedSession,
    votes: Sequence[Ballot],
    names: CandidateNames,
    without: tuple[str, ...],
) -> Iterator[Block]:
    """Write the counted ballots as a matrix, otherwise as a line per reviewer."""
    yield Heading("Ballots", "ballots")
    cast = session.session_import.ballots
    ballots = [each for each in cast if not votes or each.kind == "model"]
    if session.outcome is not None:
        matrix = imported_matrix(ballots, session.outcome, names, without)
        if matrix is not None:
            yield matrix
            return
    by_reviewer: dict[tuple[str, str], list[Ballot]] = {}
    for ballot in ballots:
        by_reviewer.setdefault((ballot.reviewer, ballot.kind), []).append(ballot)
    shown = [*by_reviewer.values()][:REVIEWERS_SHOWN]
    reviewers = [_reviewer_cell(each, is_left_out=each[0].reviewer in without) for each in shown]
    yield table_of(
        "Ballots",
        [
            (Column("reviewer", "left", fit="middle", heads=True), reviewers),
            (Column("ballot", "left", fit="fold"), [*map(_orders, shown)]),
        ],
    )
    n_more = len(ballots) - sum(len(each[:REVIEWERS_SHOWN]) for each in shown)
    if n_more:
        yield Sentence(f"And {n_more:,} more; export the session to see them.", quiet=True)


def _reviewer_cell(ballots: Sequence[Ballot], *, is_left_out: bool) -> Cell:
    n_ballots = sum(not each.abstained for each in ballots)
    amount = [count_noun(n_ballots, "ballot")] if n_ballots > 1 else []
    kind = ["a person"] if ballots[0].kind == "human" else []
    left_out = ["left out"] if is_left_out else []
    return Cell(ballots[0].reviewer, basis=", ".join((*kind, *amount, *left_out)))


def _orders(ballots: Sequence[Ballot]) -> str:
    counted_ballots = [each for each in ballots if not each.abstained]
    if not counted_ballots:
        return f"abstained: {ballots[0].reason or 'no reason given'}"
    orders = Counter(map(ballot_line, counted_ballots[:REVIEWERS_SHOWN]))
    return "; ".join(f"{order} (×{n})" if n > 1 else order for order, n in orders.items())
