"""People's votes on closed sessions, and imports of files.

A file is imported whole and once, and is never merged into existing sessions.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from operator import attrgetter
from typing import TYPE_CHECKING

from witan.core.ballot import PEOPLE, Ballot, BallotTable, Groups, Unreadable, is_unnamed
from witan.core.blind_vote import (
    PanelMatch,
    check_voter_apart,
    find_clear_pairs,
    match_ranking,
    paper_code,
    ranks_names,
    read_ranking,
    voting_sheet,
)
from witan.core.blinding import Sheet
from witan.core.entry_builder import entries_of, entries_of_many
from witan.core.escaping import is_blank
from witan.core.outcome import Outcome
from witan.core.session_ballots import Entries, SessionBallots
from witan.core.settings import Settings
from witan.core.tally import tally_sessions
from witan.deliberation.events import Event, SessionOpened
from witan.deliberation.record import ImportCounts, SessionImport
from witan.deliberation.session import Session
from witan.deliberation.texts import mask, masked_names
from witan.errors import (
    HistoryConflict,
    HistoryError,
    InvalidBallot,
    InvalidParameter,
    MissingParameter,
    Remedy,
    Way,
    WitanError,
)
from witan.history.counting import SessionRows, count_session, count_waiting_votes
from witan.history.database import Database, in_list
from witan.history.reading import (
    find_session,
    has_final_answers,
    parse_ballot,
    read_answers,
    read_session_ballots,
    require_session,
    stored_ballots,
    waiting_votes,
)
from witan.history.rows import (
    NO_HOLDER,
    Rows,
    SessionRow,
    ballot_bodies,
    check_names,
    close_session,
    insert_events,
    insert_sessions,
    lock_session,
    make_storable,
    normalize_body,
    read_events,
    to_microseconds,
    update_count,
)
from witan.history.writer import event_rows

if TYPE_CHECKING:
    from witan.deliberation.record import ImportRedactor
    from witan.history import History


@dataclass(frozen=True, slots=True)
class Paper:
    """The blind paper of one person.

    `texts`: label to answer, in the order of the sheet, with names of models masked.
    `absent`: number of candidates without a stored answer, which are left out.
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
        """The code to quote with a ranking by labels."""
        return paper_code(self.session, self.sheet)


@dataclass(frozen=True, slots=True)
class HumanVote:
    """A person's ranking of the candidates.

    `by_name`: true if the ranking has names instead of labels, so the vote is not blind.
    """

    groups: Groups
    by_name: bool = False


@dataclass(frozen=True, slots=True)
class RevealedAnswer:
    """An answer of a paper with its author.

    Parameters
    ----------
    label
        Its label on the paper.
    position
        Its position there, from 1.
    candidate
        Seat or candidate that wrote it.
    model
        Model of its seat, or its author in a file.
    rank
        The person's rank; equal answers share the best.
    panel_rank
        The panel's rank, if any.
    """

    label: str
    position: int
    candidate: str
    model: str
    rank: int
    panel_rank: int | None


@dataclass(frozen=True, slots=True)
class PanelResult:
    """The outcome of the panel in brief.

    Parameters
    ----------
    rule
        Rule that counted.
    interpretation
        Its standings in one sentence.
    n_ballots
        Number of ballots behind it.
    """

    rule: str
    interpretation: str
    n_ballots: int


@dataclass(frozen=True, slots=True)
class VoteResult:
    """The person's ranking with authors revealed, beside the panel's outcome.

    Parameters
    ----------
    session
        Session that was voted on.
    simulated
        Some seat plays a script.
    reviewer
        The voter's name.
    replaced
        True if it replaced an earlier vote.
    is_open
        True if the session is not closed; the vote counts once it is.
    answers
        Best first.
    panel
        The panel's outcome; None if none of its ballots can be counted yet.
    match
        Match of the two rankings; None: the panel has none.
    """

    session: str
    simulated: bool
    reviewer: str
    replaced: bool
    is_open: bool
    answers: tuple[RevealedAnswer, ...]
    panel: PanelResult | None
    match: PanelMatch | None


OPEN = ("interrupted", "running")
"""Status of a session that is not closed."""


def _check_final_answers(database: Database, session: str) -> None:
    if not has_final_answers(database, session):
        problem = f"the session {session} still lacks answers; voting starts with the reviews"
        raise HistoryConflict(database.location, problem, "wait for them, or resume it")


def prepare_paper(history: "History", session: str, person: str) -> Paper:
    """Prepare a person's paper for a session.

    Raises `UnknownName` if there is no such session; `HistoryConflict` if its answers are not
    complete, or fewer than two are stored; `InvalidBallot` if the name is already that of another
    person, a seat, or all people together.
    """
    check_voter(person)
    about = history.summary(session)
    location = history.database.location
    if about.status in OPEN:
        _check_final_answers(history.database, session)
    export = history.export(session)
    answers = {candidate: text for candidate, text in export.answers.items() if not is_blank(text)}
    if len(answers) < 2:
        raise HistoryConflict(location, *_too_few(export, 1 if answers else 0))
    if any(b.reviewer == person and b.kind == "human" and b.paired for b in export.ballots):
        problem = f"cannot be cast: an imported vote on {session} already uses this name"
        raise InvalidBallot(person, f"{problem}; vote under another name")
    candidates = {c for ballot in export.ballots for c in ballot.candidate_names()}
    record = export.session_record
    names: Sequence[str] = sorted({*candidates, *answers})
    check_voter_apart(person, names, "candidate")
    if record is not None:
        check_voter_apart(person, _seats(record.opening), "seat of the council")
        names = masked_names((*record.opening.seats, *record.opening.jury))
    sheet = voting_sheet(session, person, list(answers))
    return Paper(
        session=session,
        question=export.question,
        simulated=export.simulated,
        sheet=sheet,
        texts={
            label: mask(answers[candidate], export.question, names)
            for label, candidate in zip(sheet.labels, sheet.candidates, strict=True)
        },
        files=() if record is None else tuple(record.opening.files),
        absent=len(candidates - answers.keys()),
        earlier=next(
            (b for b in export.ballots if b.reviewer == person and _is_vote_on_all(b)), None
        ),
    )


def read_vote(
    paper: Paper, ranking: str, code: str | None, names: Mapping[str, str] | None = None
) -> HumanVote:
    """Read a ranking by labels, with the paper's code, or by names.

    `names`: name to candidate, if the voter knows candidates by other names than the history.

    Raises `InvalidBallot` if it does not rank every candidate once; `InvalidParameter` if it is by
    labels and `code` is missing or belongs to another paper.
    """
    candidate_by_name = {name: name for name in paper.sheet.candidates} if names is None else names
    if code is None and ranks_names(ranking, paper.sheet, candidate_by_name):
        return HumanVote(read_ranking(ranking, paper.sheet, candidate_by_name), by_name=True)
    groups = read_ranking(ranking, paper.sheet)
    check_code(paper, code)
    return HumanVote(groups)


def check_code(paper: Paper, code: str | None) -> None:
    """Refuse a ranking by the labels of another paper."""
    if code is None or not code.strip():
        expected = "the code of the paper that was ranked, because labels differ between voters"
        raise MissingParameter("paper", None, expected)
    if code.strip().lower() != paper.code:
        expected = f"the code of the paper of {paper.sheet.reviewer} for {paper.session}"
        raise InvalidParameter("paper", code, f"{expected}; labels differ between voters")


def _too_few(session: "SessionImport", answers: int) -> tuple[str, Remedy]:
    """Return the problem and remedy for fewer than two stored answers."""
    texts = "the text of only one answer" if answers else "no answer texts"
    if session.session_record is None:
        remedy = Remedy(Way("forget it, then import it again with ", {"answers": "FILE"}))
    elif session.session_record.opening.judging is not None:
        remedy = Remedy("judge two or more texts together")
    else:
        remedy = Remedy("retry the seats that failed in it", "ask the question again")
    return f"the session {session.session} has {texts}; a vote needs at least two", remedy


def reserved_use(person: str) -> str | None:
    """Describe whom a name is reserved for, if reserved."""
    if is_unnamed(person):
        return "people without a name in files"
    return "all people together in audits" if person.casefold() == PEOPLE else None


def check_voter(person: str) -> None:
    """Refuse a name reserved for several people."""
    if whom := reserved_use(person):
        problem = f"cannot be cast: this name is reserved for {whom}; vote under your own name"
        raise InvalidBallot(person, problem)


def reveal(
    history: "History", paper: Paper, groups: Groups, redactor: "ImportRedactor | None" = None
) -> VoteResult:
    """Reveal authors and the panel's ranking beside a person's ranking.

    `redactor` renames the candidates of a session that was imported as ballots.
    """
    export = history.export(paper.session)
    record = export.session_record
    names: Mapping[str, str] = {}
    if record is None and redactor is not None:
        export, names = redactor(export)
    outcome = panel_outcome(export)
    if record is None:
        models = {
            c: author for ballot in export.ballots for c, author in (ballot.authors or {}).items()
        }
    else:
        models = {seat.name: seat.source for seat in record.opening.seats if seat.source}
    ranks = {} if outcome is None else {one.candidate: one.rank for one in outcome.standings}
    positions = paper.sheet.positions
    lines, place = [], 1
    for group in groups:
        for candidate in sorted(group, key=positions.__getitem__):
            label, name = paper.sheet.label(candidate), names.get(candidate, candidate)
            model, rank = models.get(name, name), ranks.get(name)
            lines.append(RevealedAnswer(label, positions[candidate], name, model, place, rank))
        place += len(group)
    ranking = tuple(tuple(names.get(c, c) for c in group) for group in groups)
    return VoteResult(
        paper.session,
        paper.simulated,
        paper.sheet.reviewer,
        paper.earlier is not None,
        record is not None and record.status == "interrupted",
        tuple(lines),
        None
        if outcome is None
        else PanelResult(outcome.rule, outcome.interpretation, outcome.n_ballots),
        None if outcome is None else compare_with_panel(ranking, outcome),
    )


def panel_outcome(session: SessionImport) -> Outcome | None:
    """Return the outcome of the models' ballots.

    None if there is none, or the session is open.
    """
    record = session.session_record
    if record is not None:
        return None if record.status == "interrupted" else record.outcome
    ballots = [ballot for ballot in session.ballots if ballot.kind == "model"]
    if all(ballot.abstained for ballot in ballots):
        return None
    return next(iter(tally_sessions(ballots, Settings())), None)


def compare_with_panel(groups: Groups, outcome: Outcome) -> PanelMatch:
    """Compare a person's ranking with the outcome of a panel."""
    ranks = {one.candidate: float(one.rank) for one in outcome.standings}
    return match_ranking(groups, ranks, find_clear_pairs(outcome))


_RECOUNTED_TABLES = ("ballots", "standings", "matchups", "counted")


def vote(
    database: Database, session: str, votes: Sequence[Ballot], *, replace_earlier: bool = False
) -> None:
    """Add people's ballots to a session, and count it again.

    An open session is counted when it is closed.
    """
    for ballot in votes:
        check_voter(ballot.reviewer)
    require_session(database, session)
    for opening in read_events(database, session)[:1]:
        for ballot in votes:
            check_voter_apart(ballot.reviewer, _seats(opening), "seat of the council")
    _add_votes(database, session, votes, replace_earlier=replace_earlier)


def _seats(opening: Event) -> set[str]:
    """Return a council's names, jury included."""
    if not isinstance(opening, SessionOpened):
        return set()
    return {each.name for each in (*opening.seats, *opening.jury, *opening.chairmen)}


def _add_votes(
    database: Database, session: str, votes: Sequence[Ballot], *, replace_earlier: bool = False
) -> None:
    """Add ballots, whose names the caller has checked or read."""
    with database.transaction():
        require_session(database, session)
        lock_session(database, session)
        at_us, category, _, status, *_ = require_session(database, session)
        is_open = status == "interrupted"
        if is_open:
            _check_final_answers(database, session)
        counted_ballots = [] if is_open else stored_ballots(database, session)
        waiting = waiting_votes(database, session)
        new = [replace(ballot, session=ballot.session or session) for ballot in votes]
        if replace_earlier:
            voters = {ballot.reviewer for ballot in new if _is_vote_on_all(ballot)}
            counted_ballots, waiting = (
                [b for b in ballots if not (_is_vote_on_all(b) and b.reviewer in voters)]
                for ballots in (counted_ballots, waiting)
            )
            _delete_waiting_votes(database, session, voters)
        check_votes(session, [*counted_ballots, *waiting], new, read_answers(database, session))
        if is_open:
            insert_waiting_votes(database, session, new)
            return
        # Votes that still wait although the session is closed cannot be counted.
        ballots, entries = _count(database, (session, at_us, category), [*counted_ballots, *new])
        for table in _RECOUNTED_TABLES:
            database.execute(
                f"DELETE FROM {table} WHERE session = :session",  # noqa: S608 - names of our own
                {"session": session},
            )
        update_count(database, entries.session)
        rows = Rows()
        # The stored answers do not change.
        rows.add(session, replace(entries, answers=()), ballots, {})
        rows.write(database)


def insert_waiting_votes(database: Database, session: str, votes: Sequence[Ballot]) -> None:
    """Store people's ballots on an open session until it is closed."""
    sql = (
        "SELECT COALESCE(MAX(number), 0) + 1 FROM waiting_votes"
        " WHERE session = :session AND reviewer = :reviewer"
    )
    for vote, body in zip(votes, ballot_bodies(votes), strict=True):
        reviewer, number = make_storable(vote.reviewer), 0
        if vote.paired:
            [(number,)] = database.rows(sql, {"session": session, "reviewer": reviewer})
        row = (session, reviewer, number, body)
        database.insert("waiting_votes", ("session", "reviewer", "number", "body"), [row])


def _delete_waiting_votes(database: Database, session: str, voters: Collection[str]) -> None:
    """Delete people's ballots on a whole session, not on pairs."""
    sql = (
        "DELETE FROM waiting_votes WHERE session = :session AND reviewer = :reviewer AND number = 0"
    )
    for voter in sorted(voters):
        database.execute(sql, {"session": session, "reviewer": make_storable(voter)})


def _is_vote_on_all(ballot: Ballot) -> bool:
    return ballot.kind == "human" and not ballot.paired


def check_votes(
    session: str, earlier_ballots: Sequence[Ballot], new: Sequence[Ballot], seats: Collection[str]
) -> None:
    """Refuse people's ballots incompatible with the stored ones.

    `seats`: seats, or candidates, with an answer.

    Raises `InvalidBallot` if one cannot be read back, is not a person's, belongs to another
    session, names an unknown answer, is cast under the name of a candidate, or is its reviewer's
    second ballot.
    """
    _check_readable(new)
    candidate_names = {
        *seats,
        *(name for ballot in earlier_ballots for name in ballot.candidate_names()),
    }
    voters = {ballot.reviewer for ballot in earlier_ballots if _is_vote_on_all(ballot)}
    for ballot in new:
        if ballot.kind != "human":
            raise InvalidBallot(
                ballot.reviewer, "is not a person's; only people can vote on a closed session"
            )
        if ballot.session != session:
            raise InvalidBallot(ballot.reviewer, f"belongs to the session {ballot.session}")
        check_voter_apart(ballot.reviewer, candidate_names, "candidate")
        unknown_names = [name for name in ballot.candidate_names() if name not in candidate_names]
        if unknown_names:
            raise InvalidBallot(
                ballot.reviewer, f"names {unknown_names[0]}, which has no answer in this session"
            )
        if not ballot.paired and ballot.reviewer in voters:
            raise InvalidBallot(ballot.reviewer, "exists already; a person votes once")
        if not ballot.paired:
            voters.add(ballot.reviewer)


def _check_readable(votes: Sequence[Ballot]) -> None:
    """Refuse ballots that cannot be read back as they are."""
    for ballot, body in zip(votes, ballot_bodies(votes), strict=True):
        try:
            reviewer = parse_ballot(body).reviewer
        except Unreadable as error:
            problem = f"cannot be stored: its {error.field} {error.problem}"
            raise InvalidBallot(ballot.reviewer or "nobody", problem) from None
        if reviewer != ballot.reviewer:
            problem = "cannot be stored: its name begins or ends with white space"
            raise InvalidBallot(reviewer, problem)


def _count(
    database: Database, session: tuple[str, int, str | None], ballots: Sequence[Ballot]
) -> tuple[Sequence[Ballot], Entries]:
    """Count a session again; return its ballots in order, and entries."""
    record = find_session(database, session[0])
    if record is None:
        session_ballots = replace(read_session_ballots(database, *session), ballots=tuple(ballots))
        return ballots, entries_of(session_ballots)
    people = tuple(ballot for ballot in ballots if ballot.kind == "human")
    rows = count_session(record, people)
    if rows.entries is None:
        problem = f"the session {session[0]} has no answers to vote on"
        raise HistoryConflict(database.location, problem, "vote on a session with answers")
    return rows.ballots, rows.entries


BLOCK_SIZE = 1_000
"""Number of sessions counted and written together."""

_IMPORT_COLUMNS = ("digest", "path", "at_us", "n_sessions")


def import_sessions(
    database: Database,
    session_imports: Iterable[SessionImport],
    source: str,
    digest: str,
    at: datetime,
) -> ImportCounts:
    """Import a file, all or nothing; importing it again changes nothing."""
    added, already = 0, 0
    n_by_kind = Counter[str]()
    with database.transaction():
        row = (digest, make_storable(source), to_microseconds(at), 0)
        if not database.insert("imports", _IMPORT_COLUMNS, [row], ignore_existing=True):
            return ImportCounts(0, find_import(database, digest) or 0, 0)
        for block in _blocks(session_imports):
            new, continued_sessions = _compare(database, block, source)
            already += len(block) - len(new) - len(continued_sessions)
            added += len(new) + len(continued_sessions)
            n_by_kind.update(
                ballot.kind for record in continued_sessions for ballot in record.ballots
            )
            n_by_kind.update(_vote(database, block, new))
            n_by_kind.update(_write(database, new, source, at))
            sessions = [(digest, session) for session in block]
            database.insert("imported", ("digest", "session"), sessions, ignore_existing=True)
        database.execute(
            "UPDATE imports SET n_sessions = :n WHERE digest = :digest",
            {"n": added + already, "digest": digest},
        )
    return ImportCounts(added, already, n_by_kind.total(), n_by_kind["human"])


def find_import(database: Database, digest: str) -> int | None:
    """Return an imported file's number of sessions, or None if unknown."""
    sql = "SELECT n_sessions FROM imports WHERE digest = :digest"
    return next((n for (n,) in database.rows(sql, {"digest": digest})), None)


def _blocks(session_imports: Iterable[SessionImport]) -> Iterator[dict[str, SessionImport]]:
    """Cut sessions into blocks without repeated names."""
    block: dict[str, SessionImport] = {}
    for one in session_imports:
        if one.session in block or len(block) == BLOCK_SIZE:
            yield block
            block = {}
        block[one.session] = one
    if block:
        yield block


def _compare(
    database: Database, block: Mapping[str, SessionImport], source: str
) -> tuple[list[SessionImport], list[Session]]:
    """Return new sessions and continuations of stored ones; refuse others."""
    check_names(database, block)
    placeholders, params = in_list(block)
    sql = f"SELECT session FROM sessions WHERE session IN {placeholders} ORDER BY session"  # noqa: S608
    # The lock waits for processes that delete one, and prevents others from doing so.
    stored_sessions = {session for (session,) in database.rows(sql + database.locking, params)}
    rows = Rows()
    continued = []
    for session in sorted(stored_sessions):
        if _is_stored(database, block[session]):
            continue
        record = block[session].session_record
        if record is None or not complete_record(database, record, rows):
            other = "another record"
            ways: list[Way | str] = ["forget that session first"]
            if record is None:  # the prefix does not apply to records
                other = "other ballots"
                ways.append(Way("import the file with ", {"prefix": "TEXT"}))
            problem = f"the session {session} is in the history {database.location} with {other}; "
            raise HistoryError(source, f"{problem}nothing of the file was imported", Remedy(*ways))
        continued.append(record)
    rows.write(database)
    return [one for session, one in block.items() if session not in stored_sessions], continued


def _is_stored(database: Database, one: SessionImport) -> bool:
    """True if the same session is stored, ignoring later votes."""
    if one.session_record is not None:
        events = list(one.session_record.events)
        # An earlier state of the session adds no events.
        return read_events(database, one.session)[: len(events)] == events
    return Counter(ballot_bodies(one.ballots)) <= _stored_bodies(database, one.session)


def _stored_bodies(database: Database, session: str) -> Counter[str]:
    sql = (
        "SELECT body FROM ballots WHERE session = :session"
        " UNION ALL SELECT body FROM waiting_votes WHERE session = :session"
    )
    return Counter(normalize_body(body) for (body,) in database.rows(sql, {"session": session}))


def _vote(
    database: Database, block: Mapping[str, SessionImport], new: Sequence[SessionImport]
) -> Counter[str]:
    """Add people's votes in the file to stored council sessions."""
    unknown = {one.session for one in new}
    n_by_kind = Counter[str]()
    for session, one in block.items():
        if session in unknown or one.session_record is None:
            continue
        votes = [ballot for ballot in one.ballots if ballot.kind == "human"]
        if not votes:
            continue
        stored_bodies = _stored_bodies(database, session)
        missing = [
            ballot
            for body, ballot in zip(ballot_bodies(votes), votes, strict=True)
            if body not in stored_bodies
        ]
        if missing:
            _add_votes(database, session, missing)
            n_by_kind["human"] += len(missing)
    return n_by_kind


def _write(
    database: Database, new: Sequence[SessionImport], source: str, at: datetime
) -> Counter[str]:
    rows, all_rows, n_by_kind = Rows(), [], Counter[str]()
    for one, entries in zip(new, _entries(new, at), strict=True):
        session_rows = _session_rows(one, entries, source, at)
        all_rows.append(session_rows)
        session_rows.add_to(rows)
        if isinstance(one.ballots, BallotTable):
            n_by_kind["model"] += len(one.ballots)
        elif session_rows.entries is not None:
            n_by_kind.update(map(_KIND, session_rows.entries.ballots))
    insert_sessions(database, [session_rows.row for session_rows in all_rows])
    for one in new:
        if one.session_record is not None:
            insert_events(database, event_rows(one.session, one.session_record.events))
            if one.session_record.status == "interrupted":
                votes = [each for each in one.ballots if each.kind == "human"]
                insert_waiting_votes(database, one.session, votes)
    rows.write(database)
    return n_by_kind


_KIND = attrgetter("kind")


def _entries(new: Sequence[SessionImport], at: datetime) -> Iterator[Entries | None]:
    """Yield each session's entries: counted, imported, or None for a record."""
    entries = entries_of_many(
        _session_ballots(one, at)
        for one in new
        if one.entries is None and one.session_record is None
    )
    for one in new:
        needs_entries = one.entries is None and one.session_record is None
        yield next(entries) if needs_entries else one.entries


def _session_ballots(one: SessionImport, at: datetime) -> SessionBallots:
    return SessionBallots(
        one.session,
        at if one.at is None else one.at,
        one.ballots,
        category=one.category,
        simulated=one.simulated,
        models=one.models,
        answers=one.took,
        order_consistency=one.kept,
        repaired_reviewers=one.repaired,
        lengths={**one.lengths, **{name: len(text) for name, text in one.answers.items()}},
    )


def _session_rows(
    one: SessionImport, entries: Entries | None, source: str, at: datetime
) -> SessionRows:
    if one.session_record is not None:
        return _record_rows(one, source, at)
    assert entries is not None  # noqa: S101 - counted above, or in the import
    row = SessionRow(
        session=one.session,
        at=at if one.at is None else one.at,
        category=one.category,
        simulated=one.simulated,
        source=source,
        status="complete",
        question=one.question,
        closing=one.closing,
        entry=entries.session,
        added=at,
    )
    return SessionRows(row, entries, one.ballots, one.answers)


def _record_rows(one: SessionImport, source: str, at: datetime) -> SessionRows:
    """Make the rows of a council session with people's votes."""
    assert one.session_record is not None  # noqa: S101 - checked by the caller
    record = one.session_record
    votes = tuple(
        replace(ballot, session=ballot.session or record.id)
        for ballot in one.ballots
        if ballot.kind == "human"
    )
    if votes and record.status == "interrupted" and not record.has_reviews:
        raise _refusal(source, record.id, "is still open and has votes before its reviews")
    try:
        check_votes(record.id, record.ballots, votes, record.answers)
        rows = count_session(record, votes)
    except WitanError as error:
        raise _refusal(source, record.id, f"has a vote that cannot be counted: {error}") from error
    return replace(rows, row=replace(rows.row, source=source, added=at))


def _refusal(source: str, session: str, problem: str) -> HistoryError:
    problem = f"the session {session} {problem}; nothing was imported"
    return HistoryError(source, problem, "correct that session in the file")


def complete_record(database: Database, record: Session, rows: Rows) -> bool:
    """Add a record's new events; return false if the stored ones differ.

    The earlier writer can add no more events. The counted rows are added to `rows`.
    """
    stored_events = read_events(database, record.id)
    if not stored_events or list(record.events[: len(stored_events)]) != stored_events:
        return False
    holder = lock_session(database, record.id) or NO_HOLDER
    if (process := database.find_process(holder)) is not None:
        problem = f"the session {record.id} is running in {process}"
        raise HistoryConflict(
            database.location, problem, "wait until it ends, then import the file again"
        )
    insert_events(database, event_rows(record.id, record.events[len(stored_events) :]))
    session_rows = count_waiting_votes(database, record) or count_session(record)
    close_session(database, session_rows.row.closing_values())
    session_rows.add_to(rows)
    return True
