"""Ballots of sessions as cast and as counted.

Ballots as cast include one's own candidate and separate comparisons, without the safety gate;
audits use these. `interpret` makes the counted ones under the settings.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import lru_cache
from itertools import chain
from math import isnan, nan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from witan.core.attributes import cached_property, set_by_slots
from witan.core.ballot import Ballot, BallotTable, Kind, are_battles, shown_pair
from witan.core.counting import CountColumn
from witan.core.interpretation import NOTHING_LEFT, authors_of, interpret
from witan.core.outcome import Outcome, Unit
from witan.core.plain_sessions import plain_blocks
from witan.core.profile import (
    BlockVotes,
    Electorate,
    Floats,
    LazyRows,
    Vote,
    VoteBlock,
    none_for_nan,
)
from witan.core.settings import Settings

BUCKETS = 256
"""Number of groups of sessions, by the checksum of their name, that errors are clustered by."""


@set_by_slots
@dataclass(frozen=True, slots=True)
class Noise:
    """Noise of one session by its additive fit, to learn a prior.

    Parameters
    ----------
    unit
        What it was fitted on.
    variance, df
        Residual variance and its degrees of freedom.
    effect_variance
        Variance between the candidates' effects, the errors of their estimates taken out, as
        `witan.core.entry_builder.noise_of` has it; may be negative. None: fewer than two effects.
    """

    unit: Unit
    variance: float
    df: float
    effect_variance: float | None


@set_by_slots
@dataclass(frozen=True, slots=True)
class SessionEntry:
    """One counted session.

    Parameters
    ----------
    session
        Its name; unique in a history.
    at
        When it was asked, in UTC.
    simulated
        Whether a seat plays a script; such sessions never count on leaderboards.
    kendall_w
        Concordance of the models' ballots.
    agreement
        The probability that another draw of reviewers would place the leader best.
    noise
        None: not enough ballots.
    """

    session: str
    at: datetime
    category: str | None = None
    simulated: bool = False
    kendall_w: float | None = None
    agreement: float | None = None
    noise: Noise | None = None


@set_by_slots
@dataclass(frozen=True, slots=True)
class StandingEntry:
    """One model's standing in one session, by ballot kind and rule.

    Parameters
    ----------
    score
        The rule's number, the mean over the model's candidates; None: it has none.
    z
        Mean standardised grade (`normalized_scores`); None: no ballot grades it.
    votes, offered
        Counted ballots that say something of it, and seats that could have.
    wins
        First places, k tied for first 1/k each.
    """

    kind: Kind
    rule: str
    model: str
    score: float | None
    z: float | None
    votes: int
    offered: int
    wins: float


@set_by_slots
@dataclass(frozen=True, slots=True)
class MatchupEntry:
    """Matchups of the models of one session, by kind of ballot.

    Pairs stand in the order (0, 1), (0, 2), …, (1, 2), … of `models`.

    Parameters
    ----------
    models
        In the order of their names, each once.
    wins, losses, ties
        Per pair, the weight of the counted ballots that place the first above, below, or level
        with the second; all 0 where no ballot ranks both. The weights of a session's ballots are
        scaled to a mean of 1.
    p_beats
        Per pair, the probability that another draw of reviewers would place the first above the
        second; None: unknown.
    """

    kind: Kind
    models: tuple[str, ...]
    wins: tuple[float, ...]
    losses: tuple[float, ...]
    ties: tuple[float, ...]
    p_beats: tuple[float | None, ...]


@set_by_slots
@dataclass(frozen=True, slots=True)
class BallotEntry:
    """One ballot as cast, own candidate included; the input of audits.

    The lists are in one order: that of the seats of the candidates on the ballot. They are empty
    where it abstains, and where it does not count: see `counts`.

    Parameters
    ----------
    reviewer
        The model, or the name of a person.
    models
        Who wrote each candidate.
    own
        The reviewer wrote it.
    shares
        Share of its rivals that the ballot places the candidate above, a tie half: rivals are the
        others on the ballot, for a candidate that is not own without those that are. None: not
        ranked, or without a rival.
    grades
        Overall grades after the ceiling; None: none.
    positions
        Places on the sheet, 1-based, of as many as there are candidates; 0: unknown, or a copy of
        an answer that has its place already.
    chars
        Lengths of the answers in characters; None: unknown.
    paired
        One comparison of two candidates.
    abstained, repaired
        No vote; read at the second attempt.
    kept, compared
        Of the pairs seen in both orders, those judged alike; of all ballots of a reviewer in a
        session one carries them.
    criteria
        Names of the criteria that are graded.
    criterion_grades
        Per criterion, then per candidate; None: none.
    """

    reviewer: str
    kind: Kind
    models: tuple[str, ...] = ()
    own: tuple[bool, ...] = ()
    shares: tuple[float | None, ...] = ()
    grades: tuple[float | None, ...] = ()
    positions: tuple[int, ...] = ()
    chars: tuple[int | None, ...] = ()
    paired: bool = False
    abstained: bool = False
    repaired: bool = False
    kept: int = 0
    compared: int = 0
    weight: float = 1.0
    criteria: tuple[str, ...] = ()
    criterion_grades: tuple[tuple[float | None, ...], ...] = ()

    @property
    def counts(self) -> bool:
        """True unless a later ballot replaces it or its weight is zero."""
        return self.abstained or bool(self.models)

    @property
    def flat(self) -> bool:
        """It ranks two candidates or more and tells none of them apart."""
        return _is_flat(self.shares)


@lru_cache(maxsize=1 << 14)
def _is_flat(shares: tuple[float | None, ...]) -> bool:
    n_ranked = len(shares) - shares.count(None)
    return n_ranked > 1 and len({*shares} - {None}) == 1


@set_by_slots
@dataclass(frozen=True, slots=True)
class AnswerEntry:
    """Cost and time of one answer; None: unknown.

    Parameters
    ----------
    seat
        The seat.
    model
        Its model.
    chars
        Its characters.
    seconds
        How long it took.
    cost_usd
        What it cost.
    output_tokens
        Its tokens.
    failed
        Whether the answer failed.
    """

    seat: str
    model: str
    chars: int | None = None
    seconds: float | None = None
    cost_usd: float | None = None
    output_tokens: int | None = None
    failed: bool = False


@set_by_slots
@dataclass(frozen=True, slots=True)
class Entries:
    """All rows of one session."""

    session: SessionEntry
    standings: tuple[StandingEntry, ...] = ()
    matchups: tuple[MatchupEntry, ...] = ()
    ballots: Sequence[BallotEntry] = ()
    answers: tuple[AnswerEntry, ...] = ()


@set_by_slots
@dataclass(frozen=True, slots=True)
class SessionBallots:
    """One session with its ballots as cast.

    Parameters
    ----------
    ballots
        Ballots of models and of people, in any order.
    models
        Candidate or reviewer to its model; by default its own name, or for a candidate the author
        on the ballots.
    lengths
        Candidate to the length of its answer in characters; those of `answers` need not be named.
    answers
        What each answer took. None given: one per candidate of known length.
    order_consistency
        Reviewer to pairs judged alike in both orders and pairs seen in both, where its one ballot
        was made of two.
    repaired_reviewers
        Reviewers whose ballot was read at the second attempt.
    outcome
        Outcome of the models' ballots; None: counted on demand.
    count
        A count of exactly these ballots by one rule, and the session's column in it, if available.
    """

    session: str
    at: datetime
    ballots: Sequence[Ballot] = ()
    category: str | None = None
    simulated: bool = False
    models: Mapping[str, str] = field(default_factory=dict)
    lengths: Mapping[str, int] = field(default_factory=dict)
    answers: tuple[AnswerEntry, ...] = ()
    order_consistency: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    repaired_reviewers: Collection[str] = ()
    outcome: Outcome | None = None
    count: CountColumn | None = None


class ModelNames:
    """Names of one session, and the models behind them."""

    def __init__(self, ballots: SessionBallots) -> None:
        self._models = ballots.models
        # A table has no authors.
        is_table = isinstance(ballots.ballots, BallotTable)
        self._authors = {} if is_table else authors_of(ballots.ballots, [])

    def reviewer(self, name: str) -> str:
        """The model behind a reviewer."""
        return self._models.get(name, name)

    def candidate(self, name: str) -> str:
        """The model behind a candidate."""
        author = name if name in self._models else self._authors.get(name, name)
        return self._models.get(author, author)


@dataclass(frozen=True, slots=True)
class Reading:
    """Ballots of one kind in one session.

    Parameters
    ----------
    ballots
        In the order given.
    replacement_mask
        Aligned: whether a later ballot of the same reviewer replaces it.
    votes
        Aligned: the ballot as cast; None: empty, superseded, or of weight 0.
    own_seats
        Author to the seats of what it wrote.
    electorate
        What counts, after recusal.
    """

    ballots: Sequence[Ballot]
    replacement_mask: Sequence[bool]
    votes: Sequence[Vote | None]
    own_seats: Mapping[str, frozenset[int]]
    electorate: Electorate


def read_ballots(session: str, ballots: Sequence[Ballot], settings: Settings) -> Reading:
    """Read the ballots of one kind, as cast and as counted.

    Raises
    ------
    TooLarge
        With more candidates than can be counted.
    InvalidParameter
        If a ballot's weight is negative or infinite.
    """
    counting, gate = settings.counting, settings.gates.get(session)
    ballots_before_recusal = replace(counting, recusal="off", unranked="skip")
    superseded = _find_superseded(session, ballots)
    whole = not any(ballot.paired for ballot in ballots)
    if whole and gate is None and counting.unranked == "skip" and counting.recusal != "after":
        electorate = interpret(session, ballots, ballots_before_recusal)
        by_reviewer = {vote.reviewer: vote for vote in electorate.votes}
        names = [ballot.reviewer for ballot in ballots]
        own = _own_seats(electorate.candidates, ballots)
        if counting.recusal == "before":
            standing = [b for b, late in zip(ballots, superseded, strict=True) if not late]
            electorate = _recuse(electorate, standing, own)
    else:
        electorate = interpret(session, ballots, counting, gate)
        # With distinct names, no two ballots merge into one opinion.
        names = [str(number) for number in range(len(ballots))]
        apart = [replace(b, reviewer=name) for b, name in zip(ballots, names, strict=True)]
        by_reviewer = {
            vote.reviewer: vote for vote in interpret(session, apart, ballots_before_recusal).votes
        }
        own = _own_seats(electorate.candidates, ballots)
    votes = [
        None if late else by_reviewer.get(name)
        for name, late in zip(names, superseded, strict=True)
    ]
    # A row of weight 0 is not an abstention.
    weighed = replace(
        electorate.scale_weights(settings.weights), abstentions=electorate.abstentions
    )
    return Reading(ballots, superseded, votes, own, weighed)


def reuse_electorate(
    electorate: Electorate, ballots: Sequence[Ballot], settings: Settings
) -> Reading | None:
    """Make `read_ballots` of the electorate that was counted, without reading them again.

    None if counting has changed a ballot by recusal, the gate or weights.
    """
    counting, names = settings.counting, [ballot.reviewer for ballot in ballots]
    if (
        counting.recusal == "after"
        or counting.unranked != "skip"
        or settings.weights
        or electorate.session in settings.gates
        or isinstance(electorate.votes, BlockVotes)
    ):
        return None
    votes = {vote.reviewer: vote for vote in electorate.votes}
    silent = electorate.abstentions.keys()
    if len(votes) + len(silent) != len(names) or votes.keys() | silent != {*names}:
        return None
    own_seats = _own_seats(electorate.candidates, ballots)
    for ballot in ballots:
        may_be_rescaled = ballot.scale is None and ballot.grades
        if ballot.paired or ballot.weight != 1.0 or may_be_rescaled:
            return None
        own = {electorate.candidates[seat] for seat in own_seats.get(ballot.reviewer, ())}
        if own and not own.isdisjoint(chain(ballot.grades, *ballot.groups)):
            return None
    cast = [votes.get(name) for name in names]
    return Reading(ballots, [False] * len(names), cast, own_seats, electorate)


class GradedBlock:
    """Grades-only ballots of same-shaped sessions, as cast and after recusal."""

    def __init__(self, block: VoteBlock, recusals: VoteBlock) -> None:
        self._cast, self._recused = block, recusals

    @cached_property
    def own(self) -> NDArray[np.bool_]:
        """The reviewer's own candidates, shape (S, R, C)."""
        return np.isnan(self._recused.grades)

    @cached_property
    def left_out(self) -> NDArray[np.bool_]:
        """Own candidates without a grade, shape (S, R, C)."""
        return np.asarray(self.own & np.isnan(self.grades))

    @property
    def grades(self) -> Floats:
        """The grades as cast, shape (S, R, C); NaN: none."""
        return self._cast.grades

    @cached_property
    def shares(self) -> Floats:
        """Share of rivals below each candidate, shape (S, R, C); NaN: unranked.

        With p twice its rank among n ranked candidates, a share is (2n − p) / (2n − 2): n and p are
        of the others alone, for a candidate that is not own.
        """
        own, places, others = self.own, self._cast.places, self._recused.places
        place = np.where(own, places, others).astype(np.float64)
        n_all, n_others = ((cells > 0).sum(axis=2, keepdims=True) for cells in (places, others))
        ranked: NDArray[np.int64] = np.where(own, n_all, n_others)
        known = (place > 0) & (ranked > 1)
        shares = np.full(place.shape, np.nan)
        np.divide(2 * ranked - place, 2 * ranked - 2, out=shares, where=known)
        return shares

    @cached_property
    def lines(self) -> list[list[tuple[Any, ...]]]:
        """List own seats, shares and grades per session and ballot.

        None: not ranked, or no grade.
        """
        columns = (self.own.tolist(), none_for_nan(self.shares), none_for_nan(self.grades))
        flat = [map(tuple, chain.from_iterable(column)) for column in columns]
        lines, n_ballots = list(zip(*flat, strict=True)), self.own.shape[1]
        return [lines[start : start + n_ballots] for start in range(0, len(lines), n_ballots)]


@set_by_slots
@dataclass(frozen=True, slots=True)
class GradedReading:
    """Grades-only ballots of one kind in one session.

    Parameters
    ----------
    reviewers, kinds
        Of each ballot, in the order given.
    block, row
        Where they stand as cast.
    electorate
        What counts, after recusal.
    """

    reviewers: Sequence[str]
    kinds: Sequence[Kind]
    block: GradedBlock
    row: int
    electorate: Electorate


class GradedEntries(LazyRows[BallotEntry]):
    """The rows of one session's ballots of grades.

    Parameters
    ----------
    models
        The models behind the candidates.
    chars
        Lengths of their answers.
    reviewers
        Of each ballot, the model behind its reviewer, or the person.
    repaired, order_counts
        Of each ballot, as in `BallotEntry`.
    """

    __slots__ = ("chars", "models", "order_counts", "reading", "repaired", "reviewers")

    def __init__(
        self,
        reading: GradedReading,
        *,
        models: tuple[str, ...],
        chars: tuple[int | None, ...],
        reviewers: Sequence[str],
        repaired: Sequence[bool],
        order_counts: Sequence[tuple[int, int]],
    ) -> None:
        super().__init__()
        self.reading, self.models, self.chars, self.reviewers = reading, models, chars, reviewers
        self.repaired, self.order_counts = repaired, order_counts

    def __len__(self) -> int:
        return len(self.reviewers)

    def make_rows(self) -> Iterator[BallotEntry]:
        """Make the row of each ballot."""
        kinds, lines = self.reading.kinds, self.reading.block.lines[self.reading.row]
        unplaced = (0,) * len(self.models)
        rows = zip(self.reviewers, kinds, lines, self.repaired, self.order_counts, strict=True)
        for reviewer, kind, (own, shares, grades), repaired, (alike, compared) in rows:
            lists: Any = (self.models, own, shares, grades, unplaced, self.chars)
            if True in own and grades[seat := own.index(True)] is None:
                lists = [column[:seat] + column[seat + 1 :] for column in lists]
            yield BallotEntry(
                reviewer,
                kind,
                *lists,  # type: ignore[misc]
                repaired=repaired,
                kept=alike,
                compared=compared,
            )


def read_graded_ballots(
    sessions: Mapping[str, Sequence[Ballot]], settings: Settings
) -> dict[str, GradedReading]:
    """Read sessions of grades-only ballots in blocks; leave out other sessions.

    The electorates, and the rows that follow, are those of `read_ballots`.
    """
    counting = settings.counting
    if counting.recusal == "after" or counting.unranked == "last":
        return {}
    open_to_all = {name: cast for name, cast in sessions.items() if name not in settings.gates}
    readings = {}
    for plain in plain_blocks(open_to_all):
        as_cast, recused = plain.votes("off"), plain.votes("before")
        block = GradedBlock(as_cast, recused)
        counted = recused if counting.recusal == "before" else as_cast
        for row, electorate in enumerate(plain.electorates(counting.recusal, counted)):
            weighed = electorate.scale_weights(settings.weights)
            if weighed is not electorate:  # a row of weight 0 is not an abstention
                weighed = replace(weighed, abstentions=electorate.abstentions)
            name = electorate.session
            cast = as_cast.reviewers[row], as_cast.kinds[row]
            readings[name] = GradedReading(*cast, block, row, weighed)
    return readings


def close_gaps(places: Sequence[int], own: frozenset[int]) -> tuple[int, ...]:
    """Places of the other candidates after recusal, as in `Vote`.

    What stood below one of them moves up by a place, what was tied with it by half a place.
    """
    places_without_gaps = list(places)
    for seat in own:
        below = places[seat]
        if below:
            places_without_gaps = [
                now - (2 if place > below else place == below)
                for place, now in zip(places, places_without_gaps, strict=True)
            ]
    for seat in own:
        places_without_gaps[seat] = 0
    return tuple(places_without_gaps)


def _find_superseded(session: str, ballots: Sequence[Ballot]) -> list[bool]:
    """Find ballots replaced by the reviewer's later one, like `one_opinion_each`."""
    last = {_opinion(ballot): n for n, ballot in enumerate(ballots)}
    if len(last) == len(ballots):
        return [False] * len(ballots)
    apart = are_battles(session, ballots)
    return [
        last[_opinion(ballot)] != n and not (apart and ballot.paired)
        for n, ballot in enumerate(ballots)
    ]


def _opinion(ballot: Ballot) -> object:
    """Key of an opinion: a ballot, or a comparison in one order."""
    if not ballot.paired:
        return ballot.reviewer
    return ballot.reviewer, shown_pair(ballot)


def _own_seats(
    candidates: Sequence[str], ballots: Sequence[Ballot]
) -> Mapping[str, frozenset[int]]:
    authors = authors_of(ballots, [])
    authors_by_candidate: dict[str, list[int]] = {}
    for seat, name in enumerate(candidates):
        authors_by_candidate.setdefault(authors.get(name, name), []).append(seat)
    return {author: frozenset(seats) for author, seats in authors_by_candidate.items()}


def _recuse(
    everyone: Electorate, ballots: Sequence[Ballot], own: Mapping[str, frozenset[int]]
) -> Electorate:
    """Apply recusal to a result of `interpret` without it.

    This halves the work.

    Only for whole ballots that are counted as they stand: none gated, none filled up.
    """
    offered = list(everyone.offered)
    n_own: dict[str, int] = {}
    for ballot in ballots:
        seats = own.get(ballot.reviewer)
        if seats is None:
            continue
        if ballot.candidates not in (None, everyone.candidates):
            named = ballot.candidate_names()
            seats = frozenset(seat for seat in seats if everyone.candidates[seat] in named)
        n_own[ballot.reviewer] = len(seats)
        for seat in seats:
            offered[seat] -= 1
    votes, silent = [], dict(everyone.abstentions)
    for vote in everyone.votes:
        own_seats = own.get(vote.reviewer)
        remainder = (
            vote if own_seats is None else _remove(vote, own_seats, n_own[vote.reviewer], everyone)
        )
        if remainder is None:
            silent[vote.reviewer] = NOTHING_LEFT
        else:
            votes.append(remainder)
    if len(silent) > len(everyone.abstentions):
        silent = {b.reviewer: silent[b.reviewer] for b in ballots if b.reviewer in silent}
    return replace(everyone, votes=tuple(votes), offered=tuple(offered), abstentions=silent)


def _remove(vote: Vote, own: frozenset[int], n_shown: int, everyone: Electorate) -> Vote | None:
    """Remove the reviewer's own candidates; None if no vote remains."""
    places, remaining = close_gaps(vote.places, own), list(vote.grades)
    recused_names = [everyone.candidates[seat] for seat in own]
    for seat in own:
        remaining[seat] = nan
    if not any(places) and all(isnan(grade) for grade in remaining):
        return None
    groups = [
        tuple([name for name in group if name not in recused_names]) if len(group) > 1 else group
        for group in vote.groups
    ]
    return Vote(
        reviewer=vote.reviewer,
        groups=tuple([group for group in groups if group and group[0] not in recused_names]),
        places=places,
        grades=tuple(remaining),
        weight=vote.weight,
        length=len(places) - places.count(0),
        eligible=vote.eligible - n_shown,
        mismatch=vote.mismatch,
        paired=False,
        kind=vote.kind,
        omitted=vote.omitted,
    )
