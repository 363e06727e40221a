"""The report of a session: question, answers, ballots, ranking, final answer, trust."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING

from witan.core.ballot import Ballot
from witan.core.outcome import Outcome
from witan.deliberation.ports import Seat
from witan.deliberation.session import Session
from witan.service.text import Page, count_noun, list_text, number
from witan.service.trust import p_best_text, reliability_text, session_trust, verdict_text
from witan.surfaces.live_board import CUT, Board, answer_facts
from witan.surfaces.report.ballots import ballot_line, ballot_matrix
from witan.surfaces.report.document import (
    AnswerText,
    Block,
    Cell,
    Column,
    Facts,
    Figures,
    FinalAnswer,
    Heading,
    Link,
    Note,
    Quote,
    Report,
    Sentence,
    quote_notes,
    table_of,
)
from witan.surfaces.report.names import CHAIRMAN, CandidateNames, SeatNames
from witan.surfaces.report.outcome import agreement, order_note, ranking_blocks
from witan.surfaces.report.sessions import relation_text
from witan.surfaces.report.text import report_text
from witan.surfaces.report.verdict import verdict_blocks

if TYPE_CHECKING:
    from witan.service.session_records import CouncilSession

VOTES_SHOWN = 20
"""Votes of people on an imported session that are shown one by one."""


def session_report(
    result: "Session | CouncilSession",
    names: SeatNames | None = None,
    *,
    recount: Outcome | None = None,
    without: tuple[str, ...] = (),
) -> Report:
    """Write the report of a session.

    Parameters
    ----------
    names
        Names of its seats, or their labels; None: names.
    recount, without
        The ballots counted again, and whose were left out; None: as the session counted them.
    """
    council_session = None if isinstance(result, Session) else result
    session = result if isinstance(result, Session) else result.session
    names = names or SeatNames.of(session, hides_names=False)
    before, again = None, ""
    if recount is not None:  # one count all over the report
        before, session = session.outcome, replace(session, outcome=recount)
        again = recount_text(recount, without, names)
    closed = council_session is None or not council_session.under_way
    mark = session.is_simulated
    blocks = [
        *_opening(session, {} if council_session is None else council_session.children, names),
        *_verdict(session, names),
        *_answers(session, names, is_closed=closed),
        *_ballots(session, names, without, is_closed=closed),
        *vote_blocks(() if council_session is None else council_session.votes, "members'", names),
    ]
    judges = session.opening.judging is not None
    if not judges or len(session.answers) > 1:
        blocks += outcome_sections(session.outcome, names, before, is_simulated=mark)
    if session.outcome is None and closed:
        blocks += [section_heading("ranking", "ranking", is_simulated=mark), _no_outcome(session)]
    if closed:
        if not judges:
            blocks += _final_answer(session, names, is_recount=bool(again))
        blocks += _seats(session, names)
        blocks += [
            *_figures(session),
            *_missing_blocks(session, names),
            *_trust(session, names, again),
        ]
    return Report(
        report_title(is_simulated=mark),
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


def section_heading(noun: str, key: str, *, is_simulated: bool) -> Heading:
    """Head a section; of a simulated session, it says so."""
    return Heading(f"Simulated {noun}" if is_simulated else noun.capitalize(), key)


def _opening(session: Session, children: Mapping[str, str], names: SeatNames) -> Iterator[Block]:
    opened = session.opening
    yield Quote(session.question)
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
        yield Sentence(f"judged by {list_text(names.sort(jury), most=len(jury))}", quiet=True)
    for name, relation in children.items():
        yield Sentence(f"{relation} as {name}", quiet=True, link=Link("show", {"session": name}))
    # While names are hidden, no order of seats may tell who is who.
    n_seated = len(opened.notes)
    notes = [*map(names.sentence, session.notes)]
    for note in (*notes[:n_seated], *names.sort(notes[n_seated:])):
        yield Note(note, "warning")


def _verdict(session: Session, names: SeatNames) -> Iterator[Block]:
    """Write the verdict on texts; while names are hidden, nothing."""
    if session.verdict is not None and not names.hides_names:
        yield from verdict_blocks(session.verdict, names, is_simulated=session.is_simulated)


def judgment_report(session: Session) -> Report:
    """Write a jury's verdict, with the ranking of several texts."""
    names, mark = SeatNames.of(session, hides_names=False), session.is_simulated
    blocks = [*_verdict(session, names)]
    if len(session.answers) > 1:
        blocks += outcome_sections(session.outcome, names, None, is_simulated=mark)
    return Report(report_title(is_simulated=mark), (session.id,), "", tuple(blocks))


def judgment_text(session: Session) -> str:
    """Write a jury's verdict as text, or the missing parts."""
    names, mark = SeatNames.of(session, hides_names=False), session.is_simulated
    about = f"{report_title(is_simulated=mark).lower()} {session.id} · {session_trust(session)}"
    if session.verdict is None:
        return f"no verdict: {about}"
    _, *lines = report_text(Page(), Report("", (), "", tuple(_verdict(session, names))))
    return "\n".join([*lines, about])


def _source(seat: Seat, names: SeatNames, form: str = "{}") -> str:
    """Return the model of a seat not named after it."""
    differs = seat.source and not seat.simulated and not seat.source.endswith(seat.name)
    return form.format(seat.source) if differs and not names.hides_names else ""


def _answers(session: Session, names: SeatNames, *, is_closed: bool) -> Iterator[Block]:
    noun = "answers" if session.opening.judging is None else "texts"
    yield section_heading(noun, "answers", is_simulated=session.is_simulated)
    seats = {seat.name: seat for seat in session.opening.seats}
    for name in names.order(session.answers):
        answer = session.answers[name]
        yield AnswerText(
            f"answer-{names.places[name]}",
            names.quote(answer.text),
            names.labels[name],
            "" if names.hides_names else names.name(name),
            _source(seats[name], names),
            seats[name].simulated,
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


def _rank(outcome: Outcome | None, name: str, names: SeatNames) -> Iterator[str]:
    outcome = None if outcome is None else names.order_outcome(outcome)
    for line in () if outcome is None else outcome.standings:
        if line.candidate == name and line.votes:
            pairs = [pair for pair in outcome.unresolved if name in pair] if outcome else []
            others = [names.name(each) for pair in pairs for each in pair if each != name]
            tied = f", too close to call against {list_text(others, most=3)}" if others else ""
            yield f"rank {line.rank}{tied}"


def _ballots(
    session: Session, names: SeatNames, without: tuple[str, ...], *, is_closed: bool
) -> Iterator[Block]:
    yield section_heading("ballots", "ballots", is_simulated=session.is_simulated)
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
        if names.hides_names:  # whoever is still to vote is told no order
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
        f"The standings are by the {kind} ballots; a recount of all kinds counts both.",
        quiet=True,
    )


def outcome_sections(
    outcome: Outcome | None, names: CandidateNames, before: Outcome | None, *, is_simulated: bool
) -> Iterator[Block]:
    """Write what an outcome comes to, and its ranking; nothing without one."""
    if outcome is None:
        return
    yield section_heading("agreement and dissent", "concord", is_simulated=is_simulated)
    yield Sentence(names.sentence(outcome.interpretation))
    yield agreement(outcome, names)
    yield from order_note(outcome, names)
    yield section_heading("ranking", "ranking", is_simulated=is_simulated)
    yield from ranking_blocks(outcome, names, before)


def _no_outcome(session: Session) -> Sentence:
    if session.status == "interrupted":
        return Sentence("There is no outcome yet.")
    return Sentence("There is no outcome: fewer ballots were cast than the quorum asks for.")


def _final_answer(session: Session, names: SeatNames, *, is_recount: bool) -> Iterator[Block]:
    yield section_heading("final answer", "verdict", is_simulated=session.is_simulated)
    if session.synthesis is not None:
        for chairman, why in session.synthesis.failed.items():
            yield Note(names.sentence(f"chairman {chairman} failed: {why}"), "warning")
    final = final_answer(session, names, is_recount=is_recount)
    yield Sentence("There is no final answer.") if final is None else final


def final_answer(
    session: Session, names: SeatNames, *, is_recount: bool = False
) -> FinalAnswer | None:
    """Return the final answer, the only answer, or None.

    Parameters
    ----------
    is_recount
        The ballots are counted otherwise than the session did.
    """
    final = session.synthesis
    if session.text is None or final is None:
        text = session.text
        return None if text is None else FinalAnswer(names.quote(text), "the only answer")
    author = f"written by {CHAIRMAN if names.hides_names else names.name(final.chairman or '')}"
    if final.chairman is None:
        author = f"the answer ranked best{' by the session’s own count' if is_recount else ''}"
    return FinalAnswer(
        names.quote(final.text),
        f"{author}; {CUT}" if final.cut else author,
        verdict_text(final.approved) if final.mode == "verdict" else "",
        tuple(
            (label, names.anchor(seat), "" if names.hides_names else names.name(seat))
            for label, seat in final.labels.items()
        ),
        final.unresolved,
    )


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
        The trust line stands there if the session is simulated or lacks something.
    legend
        The legend of the labels and the trust line stand there always.
    """

    mark: bool = True
    legend: bool = False

    def of(self, session: Session) -> str:
        """Return the paragraphs of a session; empty: there are none."""
        if session.opening.procedure.json_schema is not None:
            return ""
        legend = legend_text(session) if self.legend else ""
        is_incomplete = session.status != "complete" or session.is_simulated
        trust = (
            f"[{session_trust(session)}]" if self.legend or (self.mark and is_incomplete) else ""
        )
        return "".join(f"\n\n{part}" for part in (legend, trust) if part)


def _seats(session: Session, names: SeatNames) -> Iterator[Block]:
    yield section_heading("seats", "seats", is_simulated=session.is_simulated)
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


def _figures(session: Session) -> Iterator[Block]:
    """Yield agreement, reliability and effective votes."""
    outcome = session.outcome
    if outcome is None or not outcome.leaders:
        return
    sure, reliable = outcome.standings[0].p_best, session.reliability.value
    *_, reliability = reliability_text(session)
    worth = "effective number unknown: reviewers may share mistakes"
    if outcome.effective_votes is not None:
        votes = number(outcome.effective_votes, 1)
        worth = f"worth {votes} independent ones, {_shared_error_text(outcome)}"
    yield Heading("Figures", "figures")
    yield Figures(
        (
            (
                "agreement",
                None if sure is None else p_best_text(sure),
                "the chance that another draw of such reviewers would choose the same",
            ),
            (
                "reliability",
                None if reliable is None else f"{number(100 * reliable, 0)}%",
                "unknown until people vote on the same answers"
                if reliable is None
                else reliability,
            ),
            ("votes", str(outcome.n_ballots), worth),
        )
    )


def _shared_error_text(outcome: Outcome) -> str:
    if outcome.rho is None:
        return "assuming no shared error"
    how = "assuming" if outcome.rho_is_assumed else "at"
    return f"{how} a shared error of {number(outcome.rho)}"


def _missing_blocks(session: Session, names: SeatNames) -> Iterator[Block]:
    if session.status != "complete":
        yield Heading(f"This session is {session.status}", "missing")
        for each in names.sort([*map(names.sentence, session.missing)]):
            yield Note(each, "reason")


def recount_text(outcome: Outcome, without: Sequence[str], names: SeatNames) -> str:
    """Say how ballots are counted again."""
    left_out = f", without {names.name_list(without)}" if without else ""
    return f"counted again by {outcome.rule}{left_out}"


def _trust(session: Session, names: SeatNames, recount: str) -> Iterator[Block]:
    line = session_trust(session).removesuffix(f": {'; '.join(session.missing)}")
    yield Heading("Trust", "trust")
    parts = names.sentence(line).split(" · ")
    yield Facts((*parts, recount) if recount else tuple(parts))
