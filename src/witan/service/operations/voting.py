"""A person's vote: cast blind, then everything is revealed."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated

from witan.core.ballot import Ballot, Groups
from witan.core.blind_vote import ComparedVote, VoteRecord, build_ballot, vote_record
from witan.core.settings import Settings
from witan.core.stats.leaderboard import Window
from witan.core.tally import tally_sessions
from witan.deliberation.ports import SystemClock
from witan.errors import HistoryConflict, NothingToCount
from witan.history import History
from witan.history.ballots import (
    HumanVote,
    Paper,
    VoteResult,
    compare_with_panel,
    panel_outcome,
    prepare_paper,
    read_vote,
    reveal,
)
from witan.history.reading import StoredVote
from witan.service.batch_votes import NOTE
from witan.service.catalogue import operation, public, redacts
from witan.service.json_output import inherit_field_docs, reduce_to
from witan.service.parameters import Constraint, Doc, Parameters
from witan.service.redaction import public_names
from witan.service.stored_sessions import Name, SessionName, SessionStore, Text, WindowParameters

AFTERWARDS = "cast again, after it was revealed who wrote what"
"""Note on a ballot that replaces an earlier one."""

SEEN_NOTE = "cast after the page of the session was seen, which shows how the panel ranked"
"""Note on a ballot by a person who had seen the session's page."""

SEEN_BALLOTS_NOTE = "cast after ballots of the panel were seen, while the council reviewed"
"""Note on a ballot by a person who had seen ballots of the panel."""

SEEN_NOTES = {"1": SEEN_NOTE, "ballots": SEEN_BALLOTS_NOTE}
"""Note on a ballot by what its voter had seen, as pages name it."""

NAMED_NOTE = "cast by the names of the candidates, not blind"
"""Note on a ballot that ranks names instead of labels."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperParameters(Parameters):
    """Session to vote on, and voter."""

    session: SessionName
    as_: Annotated[
        Name | None,
        Doc("Vote under this name; a client with a token votes as itself.", label="Your name"),
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class VotesParameters(WindowParameters):
    """Person, and the sessions voted on."""

    as_: Annotated[
        Name | None,
        Doc("Votes under this name; a client with a token sees its own.", label="Your name"),
    ] = None
    level: Annotated[
        float,
        Constraint(gt=0, lt=1),
        Doc("Confidence level of intervals.", label="Confidence level"),
    ] = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class VoteParameters(PaperParameters):
    """A person's ranking of the answers on a paper."""

    ranking: Annotated[
        Text,
        Doc(
            "Ranking of all labels, best first: > for better, = for equal; names also work.",
            metavar="TEXT",
            brief="All labels, best first: > for better, = for equal",
        ),
    ]
    paper: Annotated[
        Name | None,
        Doc(
            "Code of the voting paper the labels belong to.",
            metavar="CODE",
            brief="Code of the voting paper",
        ),
    ] = None
    replace: Annotated[bool, Doc("Replace the vote cast earlier.")] = False


@public
@dataclass(frozen=True, slots=True)
class VotingPaper:
    """The answers of a session under labels drawn for one person."""

    session: Annotated[str, Doc("Session to vote on.")]
    paper: Annotated[str, Doc("Its code, to be sent with a ranking by labels.")]
    simulated: Annotated[bool, Doc("Whether a seat plays a script.")]
    reviewer: Annotated[str, Doc("Who votes.")]
    question: Annotated[str, Doc("The question.")]
    files: Annotated[tuple[str, ...], Doc("Names of the files with it.")]
    answers: Annotated[Mapping[str, str], Doc("Answer by label, with names of models masked.")]
    absent: Annotated[
        int, Doc("Candidates that are not on it, because their answers are not stored.")
    ]
    voted: Annotated[bool, Doc("Whether this person has already voted.")]

    @classmethod
    def of(cls, paper: Paper) -> "VotingPaper":
        """Return the paper without the authors."""
        return cls(
            paper.session,
            paper.code,
            paper.simulated,
            paper.sheet.reviewer,
            paper.question,
            paper.files,
            paper.texts,
            paper.absent,
            paper.earlier is not None,
        )


@redacts(VoteResult)
def redact_vote(result: VoteResult) -> VoteResult:
    """Rename models as clients see them."""
    models = public_names(answer.model for answer in result.answers)
    answers = (replace(one, model=models.get(one.model, one.model)) for one in result.answers)
    return replace(result, answers=tuple(answers))


@operation("GET /sessions/{session}/paper", tag="voting")
def paper(store: SessionStore, parameters: PaperParameters) -> VotingPaper:
    """Return a session's answers under a person's labels, for blind ranking.

    Nothing reveals the authors. Show them to the person; do not rank for them.
    """
    return VotingPaper.of(paper_for(store, parameters.session, parameters.as_))


@operation("POST /sessions/{session}/votes", tag="voting", changes=True, destroys=True)
def vote(store: SessionStore, parameters: VoteParameters) -> VoteResult:
    """Store a person's ranking by labels, then reveal the authors.

    Labels differ between voters, so `paper` names the paper that was ranked. With a token, names
    are within the token's: `ines` with the token `team` votes as `team/ines`.
    """
    voting_paper = paper_for(store, parameters.session, parameters.as_)
    if voting_paper.earlier is not None and not parameters.replace:
        problem = f"{voting_paper.sheet.reviewer} has voted on {voting_paper.session}"
        remedy = "set `replace` to change that vote"
        raise HistoryConflict(store.history.database.location, problem, remedy)
    export = store.history.export(voting_paper.session)
    names = store.show_import(export)[1] if export.session_record is None else {}
    candidate_by_name = {names.get(name, name): name for name in voting_paper.sheet.candidates}
    return cast_vote(
        store,
        voting_paper,
        read_vote(voting_paper, parameters.ranking, parameters.paper, candidate_by_name),
    )


LATEST = 50
"""Sessions that a record of votes lists."""


@public
@inherit_field_docs
@dataclass(frozen=True, slots=True)
class PersonalRecord(VoteRecord):
    """A person's votes beside the panels' outcomes.

    Parameters
    ----------
    reviewer
        Who voted.
    window
        Window of the sessions.
    level
        Confidence level of all intervals.
    latest
        The latest votes compared, at most 50, newest first, without their differences.
    not_blind, simulated, waiting, without_panel
        Votes not compared: not known to be blind (by names, after the reveal, after seeing the
        panel's ballots or ranking, or from a data set); on simulated sessions; on open sessions;
        without a panel's ranking.
    uncounted
        Reason why the vote cannot be counted, by closed session.
    """

    reviewer: str
    window: Window
    level: float
    latest: tuple[ComparedVote, ...]
    not_blind: int
    simulated: int
    waiting: int
    without_panel: int
    uncounted: Mapping[str, str]


@operation("GET /votes", tag="voting", pool="history")
def votes(store: SessionStore, parameters: VotesParameters) -> PersonalRecord:
    """Count over time the pairs on which person and panels agree.

    Only blind votes on closed, unsimulated sessions count. Pairs that are clear to the panel are
    counted separately from those too close to call.
    """
    person, history = store.voter(parameters.as_), store.history
    cast = history.votes_of(person, parameters.window)
    uncounted = {each.session: each.why for each in cast if each.why is not None}
    blind = [each for each in cast if each.why is None and is_blind(each.ballot)]
    counted = [each for each in blind if not (each.simulated or each.is_open)]
    compared = [each for each in map(partial(_compare, history), counted) if each is not None]
    if not cast:
        raise NothingToCount(f"no vote by {person}")
    return reduce_to(
        PersonalRecord,
        vote_record(compared, level=parameters.level),
        reviewer=person,
        window=parameters.window,
        level=parameters.level,
        latest=tuple(compared[: -LATEST - 1 : -1]),
        not_blind=len(cast) - len(uncounted) - len(blind),
        simulated=sum(each.simulated for each in blind),
        waiting=sum(each.is_open and not each.simulated for each in blind),
        without_panel=len(counted) - len(compared),
        uncounted=uncounted,
    )


def is_blind(ballot: Ballot) -> bool:
    """Return true unless a note says that the ballot was not blind."""
    notes = ballot.notes or ""
    return not any(note in notes for note in (*SEEN_NOTES.values(), NAMED_NOTE, AFTERWARDS, NOTE))


def _compare(history: History, vote: StoredVote) -> ComparedVote | None:
    outcome = panel_outcome(history.export(vote.session))
    if outcome is None:
        return None
    match = replace(compare_with_panel(_ranking(vote.ballot), outcome), differences=())
    return ComparedVote(vote.session, vote.at, match, vote.question)


def _ranking(vote: Ballot) -> Groups:
    """Return a vote's ranking, or that of its grades, if complete."""
    if vote.groups or vote.abstained:
        return vote.groups
    alone = tally_sessions([vote], Settings(flips=False))
    return next((each.ranking for outcome in alone for each in outcome.ballots), ())


def paper_for(store: SessionStore, session: str, person: str | None) -> Paper:
    """Prepare a person's paper, including the authors."""
    return prepare_paper(store.history, store.whole_name(session), store.voter(person))


def cast_vote(store: SessionStore, paper: Paper, vote: HumanVote, *, seen: str = "") -> VoteResult:
    """Store a vote, then reveal the authors and the panel's ranking.

    `seen`: what the person had seen, a key of `SEEN_NOTES`; empty: the answers alone.
    """
    ballot = build_ballot(paper.sheet, vote.groups, paper.session, SystemClock().now())
    notes = []
    if vote.by_name:
        ballot = replace(ballot, positions=None)
        notes.append(NAMED_NOTE)
    if paper.earlier is not None:
        notes.append(AFTERWARDS)
    elif seen:
        notes.append(SEEN_NOTES.get(seen, SEEN_NOTE))
    if notes:
        ballot = replace(ballot, notes="; ".join(notes))
    store.history.vote(paper.session, [ballot], replace_earlier=paper.earlier is not None)
    return reveal_paper(store, paper, vote.groups)


def reveal_paper(store: SessionStore, paper: Paper, groups: Groups) -> VoteResult:
    """Reveal a paper's authors and the panel's ranking."""
    return reveal(store.history, paper, groups, store.show_import)
