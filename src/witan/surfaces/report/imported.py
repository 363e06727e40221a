"""Write the report of a session imported as ballots."""

from collections import Counter
from collections.abc import Iterator, Sequence

from witan.core.ballot import Ballot
from witan.service.session_records import ImportedSession, votes_beside
from witan.service.text import count_noun
from witan.surfaces.report.ballots import ballot_line
from witan.surfaces.report.banner import outcome_banner
from witan.surfaces.report.document import (
    AnswerText,
    Block,
    Cell,
    Column,
    Heading,
    Note,
    Quote,
    Report,
    Sentence,
    table_of,
)
from witan.surfaces.report.names import CandidateNames
from witan.surfaces.report.outcome import abstention_notes
from witan.surfaces.report.session import (
    outcome_section,
    report_title,
    vote_blocks,
)

REVIEWERS_SHOWN = 200
"""Reviewers that are shown, and ballots of each."""


def imported_report(session: ImportedSession, without: tuple[str, ...] = ()) -> Report:
    """Write the report of imported ballots, `without` some reviewers."""
    about, record, outcome = session.about, session.session_import, session.outcome
    names = CandidateNames({name: at for at, name in enumerate(record.answers)})
    mark = record.simulated
    blocks: list[Block] = [Quote(record.question)] if record.question else []
    note = "Imported ballots: question and answers are shown if the file has them."
    blocks.append(Sentence(note, quiet=True))
    votes = votes_beside(record.ballots)
    if outcome is None:
        blocks += [
            Heading("Ranking", "ranking"),
            Note(f"not counted: {session.not_counted}", "reason"),
        ]
    else:
        blocks += [Heading("Verdict", "verdict"), outcome_banner(outcome, names)]
        blocks += outcome_section(outcome, names, None)
    blocks += _ballots(session, without)
    blocks += () if outcome is None else abstention_notes(outcome, names)
    blocks += vote_blocks(votes, "models'", names)
    blocks.append(Heading("Answers", "answers"))
    for name, text in record.answers.items():
        blocks.append(AnswerText(names.anchor(name)[1:], text, author=name))
    if not record.answers:
        blocks.append(Sentence("The file has no answer texts.", quiet=True))
    return Report(
        report_title(is_simulated=mark),
        (about.session, f"imported from {about.source}", f"{about.at:%Y-%m-%d %H:%M} UTC"),
        "",
        tuple(blocks),
    )


def _ballots(session: ImportedSession, without: tuple[str, ...]) -> Iterator[Block]:
    by_reviewer: dict[tuple[str, str], list[Ballot]] = {}
    for ballot in session.session_import.ballots:
        by_reviewer.setdefault((ballot.reviewer, ballot.kind), []).append(ballot)
    shown = [*by_reviewer.values()][:REVIEWERS_SHOWN]
    reviewers = [_reviewer(each, is_left_out=each[0].reviewer in without) for each in shown]
    yield Heading("Ballots", "ballots")
    yield table_of(
        "Ballots",
        [
            (Column("reviewer", "left", fit="middle", heads=True), reviewers),
            (Column("ballot", "left", fit="fold"), [*map(_orders, shown)]),
        ],
    )
    n_more = len(session.session_import.ballots) - sum(
        len(each[:REVIEWERS_SHOWN]) for each in shown
    )
    if n_more:
        yield Sentence(f"And {n_more:,} more; export the session to see them.", quiet=True)


def _reviewer(ballots: Sequence[Ballot], *, is_left_out: bool) -> Cell:
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
