"""People's votes on closed sessions: blind papers, rankings, and the count with them."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from witan.core.audit import PEOPLE
from witan.core.ballot import Ballot, Groups, is_unnamed
from witan.core.blind_vote import (
    Agreement,
    agreement,
    paper_code,
    ranks_names,
    read_ranking,
    voting_sheet,
)
from witan.core.blinding import Sheet
from witan.core.entering import entries_of
from witan.core.entries import Entries
from witan.core.escaping import is_blank
from witan.core.settings import Settings
from witan.core.tally import tally_sessions
from witan.deliberation.masking import list_names, mask
from witan.deliberation.session import Session
from witan.errors import HistoryConflict, InvalidBallot, InvalidParameter, MissingParameter
from witan.history.counting import count_session
from witan.history.database import Database
from witan.history.events import read_events
from witan.history.reading import parse_ballot, read_answers, read_cast, require_session
from witan.history.rows import Rows, update_count

if TYPE_CHECKING:
    from witan.deliberation.imported_session import Imported, Shown
    from witan.history import History


@dataclass(frozen=True, slots=True)
class Paper:
    """What a person sees before the vote.

    Parameters
    ----------
    texts
        Label to answer, in the order of the sheet, names of models masked in them.
    files
        Names of the files that the question came with.
    absent
        How many candidates are not on it, because their answers are not stored.
    earlier
        The person's own ballot, cast before; None: there is none.
    """

    session: str
    question: str
    simulated: bool
    sheet: Sheet
    texts: Mapping[str, str]
    files: tuple[str, ...] = ()
    absent: int = 0
    earlier: Ballot | None = None

    @property
    def code(self) -> str:
        """What a ranking by its labels names it by."""
        return paper_code(self.session, self.sheet)


@dataclass(frozen=True, slots=True)
class Vote:
    """A person's ranking of the candidates.

    Parameters
    ----------
    by_name
        It names the candidates, so it is not blind.
    """

    groups: Groups
    by_name: bool = False


@dataclass(frozen=True, slots=True)
class RevealedAnswer:
    """One answer of a paper, and who wrote it.

    Parameters
    ----------
    label
        Its label on the paper.
    position
        Its place on the paper, 1-based.
    candidate
        The seat or candidate that wrote it.
    model
        How its seat is written, where it has one.
    rank
        The person's rank for it, those placed equal sharing the best.
    panel_rank
        The panel's; null: it has none.
    """

    label: str
    position: int
    candidate: str
    model: str
    rank: int
    panel_rank: int | None


@dataclass(frozen=True, slots=True)
class PanelResult:
    """The outcome of the panel, in short.

    Parameters
    ----------
    rule
        The rule that its ballots were counted by.
    interpretation
        What its standings say, in one sentence.
    """

    rule: str
    interpretation: str


@dataclass(frozen=True, slots=True)
class VoteResult:
    """What a person sees after the vote: the answers by the person's ranking, then the panel.

    Parameters
    ----------
    session
        The session that was voted on.
    simulated
        Some seat of it plays a script.
    reviewer
        Under which name the vote is stored.
    replaced
        It took the place of an earlier one.
    answers
        Best first.
    panel
        What the panel came to; null: nothing that it cast can be counted.
    agreement
        How the two rankings go together; null: the panel has none.
    """

    session: str
    simulated: bool
    reviewer: str
    replaced: bool
    answers: tuple[RevealedAnswer, ...]
    panel: PanelResult | None
    agreement: Agreement | None


def prepare_paper(history: "History", session: str, person: str) -> Paper:
    """Prepare a person's paper for a session.

    Raises
    ------
    UnknownName
        If there is no such session.
    HistoryConflict
        If it is not closed, or fewer than two of its answers are stored.
    InvalidBallot
        If the vote would join those of somebody else under that name, or of all people.
    """
    _check_name(person)
    about = history.summary(session)
    where = history.database.where
    if about.status == "interrupted":
        problem = f"the session {session} is not closed, so nobody can vote on it yet"
        raise HistoryConflict(where, problem, "wait for its end, or resume it")
    held = history.export(session)
    answers = {candidate: text for candidate, text in held.answers.items() if not is_blank(text)}
    if len(answers) < 2:
        raise HistoryConflict(where, *_too_few(held, 1 if answers else 0))
    if any(b.reviewer == person and b.kind == "human" and b.paired for b in held.ballots):
        problem = f"cannot be cast: somebody called so compared answers of {session} in a file"
        raise InvalidBallot(person, f"{problem}; vote under another name")
    candidates = {c for ballot in held.ballots for c in ballot.mentioned()}
    record = held.session_record
    names: Sequence[str] = sorted({*candidates, *answers})
    if record is not None:
        names = list_names((*record.opened.seats, *record.opened.jury))
    sheet = voting_sheet(session, person, list(answers))
    return Paper(
        session=session,
        question=held.question,
        simulated=held.simulated,
        sheet=sheet,
        texts={
            label: mask(answers[candidate], held.question, names)
            for label, candidate in zip(sheet.labels, sheet.candidates, strict=True)
        },
        files=() if record is None else tuple(record.opened.files),
        absent=len(candidates - answers.keys()),
        earlier=_earlier(held.ballots, person),
    )


def read_vote(
    paper: Paper, ranking: str, code: str | None, names: Mapping[str, str] | None = None
) -> Vote:
    """Read a ranking by the labels of the paper whose code is given, or by names.

    Parameters
    ----------
    names
        Name to candidate, where the voter knows candidates by other names than the history.

    Raises
    ------
    InvalidBallot
        If it does not rank every candidate once.
    InvalidParameter
        If it is by labels, and `code` is missing or that of another paper.
    """
    known = {name: name for name in paper.sheet.candidates} if names is None else names
    if code is None and ranks_names(ranking, paper.sheet, known):
        return Vote(read_ranking(ranking, paper.sheet, known), by_name=True)
    groups = read_ranking(ranking, paper.sheet)
    check_code(paper, code)
    return Vote(groups)


def check_code(paper: Paper, code: str | None) -> None:
    """Refuse a ranking by the labels of another paper.

    Raises
    ------
    InvalidParameter
        If the code is missing, or is not that of the paper.
    """
    if code is None or not code.strip():
        expected = "the code of the paper that was ranked, because labels differ between voters"
        raise MissingParameter("paper", None, expected)
    if code.strip().lower() != paper.code:
        expected = f"the code of the paper of {paper.sheet.reviewer} for {paper.session}"
        raise InvalidParameter("paper", code, f"{expected}; labels differ between voters")


def _too_few(held: "Imported", answers: int) -> tuple[str, str]:
    """Why nobody can vote on a session with no answer to read, or one alone, and what to do."""
    stored = "the text of one answer alone" if answers else "no text of any answer"
    if held.session_record is None:
        came, remedy = "came with", "forget it, then import it again with --answers FILE"
    else:
        came, remedy = "came to", "retry the seats that failed in it, or put the question anew"
    return f"the session {held.session} {came} {stored}, and a vote needs two to read", remedy


def _check_name(person: str) -> None:
    """Refuse to vote under a name that stands for others."""
    called = ""
    if is_unnamed(person):
        called = "people without a name are called so in files"
    elif person.casefold() == PEOPLE:
        called = "all people together are called so in audits"
    if called:
        raise InvalidBallot(person, f"cannot be cast: {called}; vote under a name of your own")


def _earlier(ballots: Sequence[Ballot], person: str) -> Ballot | None:
    own = (b for b in ballots if b.reviewer == person and b.kind == "human" and not b.paired)
    return next(own, None)


def reveal(
    history: "History", paper: Paper, groups: Groups, shown: "Shown | None" = None
) -> VoteResult:
    """Who wrote what is on a paper, and how the panel ranked it, beside a person's ranking.

    `shown` calls what came in as ballots otherwise than it is called in the history.
    """
    held = history.export(paper.session)
    record = held.session_record
    names: Mapping[str, str] = {}
    if record is None and shown is not None:
        held, names = shown(held)
    if record is None:
        models = [ballot for ballot in held.ballots if ballot.kind == "model"]
        voted = any(not ballot.abstained for ballot in models)
        outcome = next(iter(tally_sessions(models, Settings())), None) if voted else None
        written = _authors(held.ballots)
    else:
        outcome = record.outcome
        written = {seat.name: seat.source for seat in record.opened.seats if seat.source}
    ranks = {} if outcome is None else {one.candidate: one.rank for one in outcome.standings}
    positions = paper.sheet.positions
    lines, place = [], 1
    for group in groups:
        for candidate in sorted(group, key=positions.__getitem__):
            label, called = paper.sheet.label(candidate), names.get(candidate, candidate)
            who, rank = written.get(called, called), ranks.get(called)
            lines.append(RevealedAnswer(label, positions[candidate], called, who, place, rank))
        place += len(group)
    ranked = tuple(tuple(names.get(c, c) for c in group) for group in groups)
    known = {candidate: float(rank) for candidate, rank in ranks.items()}
    return VoteResult(
        paper.session,
        paper.simulated,
        paper.sheet.reviewer,
        paper.earlier is not None,
        tuple(lines),
        None if outcome is None else PanelResult(outcome.rule, outcome.interpretation),
        agreement(ranked, known) if known else None,
    )


def _authors(ballots: Sequence[Ballot]) -> dict[str, str]:
    return {c: author for ballot in ballots for c, author in (ballot.authors or {}).items()}


_RECOUNTED = ("ballots", "standings", "matchups", "counted")


def vote(
    database: Database, session: str, votes: Sequence[Ballot], *, replacing: bool = False
) -> None:
    """Add people's ballots to a session, and count it again.

    Parameters
    ----------
    replacing
        A ballot takes the place of an earlier one of its reviewer.

    Raises
    ------
    InvalidBallot
        If one is not a person's, is of another session, names an answer that is not there, is cast
        under the name of a candidate, or is the second of its reviewer.
    HistoryConflict
        If the session is not closed, or cannot be counted.
    """
    with database.transaction():
        require_session(database, session)
        sql = "SELECT holder FROM sessions WHERE session = :session" + database.locking  # noqa: S608
        database.rows(sql, {"session": session})
        at_us, category, _, status, *_ = require_session(database, session)
        if status == "interrupted":
            problem = f"the session {session} is not closed, so nobody can vote on it yet"
            raise HistoryConflict(database.where, problem, "wait for its end, or resume it")
        sql = "SELECT body FROM ballots WHERE session = :session ORDER BY ballot"
        there = [parse_ballot(body) for (body,) in database.rows(sql, {"session": session})]
        new = [replace(ballot, session=ballot.session or session) for ballot in votes]
        if replacing:
            voters = {ballot.reviewer for ballot in new}
            there = [b for b in there if not (_whole_vote(b) and b.reviewer in voters)]
        check(session, there, new, read_answers(database, session))
        cast, entries = _counted(database, (session, at_us, category), [*there, *new])
        for table in _RECOUNTED:
            database.execute(
                f"DELETE FROM {table} WHERE session = :session",  # noqa: S608 - names of our own
                {"session": session},
            )
        update_count(database, entries.session)
        rows = Rows()
        # The answers stand as they are.
        rows.add(session, replace(entries, answers=()), cast, {})
        rows.write(database)


def _whole_vote(ballot: Ballot) -> bool:
    """Whether it is a person's ballot on the session as a whole, of which there is one."""
    return ballot.kind == "human" and not ballot.paired


def check(
    session: str, there: Sequence[Ballot], new: Sequence[Ballot], answered: Collection[str]
) -> None:
    """Refuse people's ballots that cannot be cast on a session, beside those that are there.

    Parameters
    ----------
    answered
        Seats, or candidates, with an answer.

    Raises
    ------
    InvalidBallot
        If one is not a person's, is of another session, names an answer that is not there, is cast
        under the name of a candidate, or is the second of its reviewer.
    """
    known = {*answered, *(name for ballot in there for name in ballot.mentioned())}
    voted = {ballot.reviewer for ballot in there if _whole_vote(ballot)}
    for ballot in new:
        if ballot.kind != "human":
            raise InvalidBallot(ballot.reviewer, "is not a person's, and only people vote later")
        if ballot.session != session:
            raise InvalidBallot(ballot.reviewer, f"is of the session {ballot.session}")
        if ballot.reviewer in known:
            raise InvalidBallot(ballot.reviewer, "has the name of a candidate; vote under another")
        strange = [name for name in ballot.mentioned() if name not in known]
        if strange:
            raise InvalidBallot(ballot.reviewer, f"names {strange[0]}, which has no answer there")
        if not ballot.paired and ballot.reviewer in voted:
            raise InvalidBallot(ballot.reviewer, "is there already; a person votes once")
        if not ballot.paired:
            voted.add(ballot.reviewer)


def _counted(
    database: Database, where: tuple[str, int, str | None], cast: Sequence[Ballot]
) -> tuple[Sequence[Ballot], Entries]:
    """The session's ballots in the order in which they are kept, and what they leave."""
    events = read_events(database, where[0])
    if not events:
        held = replace(read_cast(database, *where), ballots=tuple(cast))
        return cast, entries_of(held)
    people = tuple(ballot for ballot in cast if ballot.kind == "human")
    left = count_session(Session.of(events), people)
    if left.entries is None:
        problem = f"the session {where[0]} has nothing that could be voted on"
        raise HistoryConflict(database.where, problem, "vote on a session with answers")
    return left.ballots, left.entries
