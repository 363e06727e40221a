"""Ballots of sessions as cast and as counted.

Ballots as cast, which audits use, include reviewers' own candidates and separate comparisons, and
ignore the safety gate. `interpret` converts them to counted ones under the settings.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import lru_cache
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from witan.core.attributes import cached_property
from witan.core.ballot import Ballot, BallotTable, Kind, are_battles, shown_pair
from witan.core.counting import CountColumn
from witan.core.interpretation import authors_of, interpret
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
"""Number of groups of sessions for clustering errors, by the checksum of the session's name."""


@dataclass(frozen=True, slots=True)
class Noise:
    """Noise of one session from its additive fit, to learn a prior.

    Parameters
    ----------
    unit
        Whether it was fitted on grades or ranks.
    variance, df
        Residual variance and its degrees of freedom.
    effect_variance
        Variance between the candidates' effects, corrected for their estimation errors
        (`witan.core.entry_builder.noise_of`); may be negative. None: fewer than two effects.
    """

    unit: Unit
    variance: float
    df: float
    effect_variance: float | None


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
        Whether any seat is scripted; such sessions never count on leaderboards.
    kendall_w
        Concordance of the models' ballots.
    agreement
        The probability that another draw of reviewers would place the leader best.
    noise
        Noise of its fit; None: not enough ballots.
    """

    session: str
    at: datetime
    category: str | None = None
    simulated: bool = False
    kendall_w: float | None = None
    agreement: float | None = None
    noise: Noise | None = None


@dataclass(frozen=True, slots=True)
class StandingEntry:
    """One model's standing in one session, by ballot kind and rule.

    Parameters
    ----------
    score
        Mean score under the rule over the model's candidates; None: no score.
    z
        Mean standardised grade (`normalized_scores`); None: no ballot grades it.
    votes, offered
        Counted ballots that rank or grade it, and seats that could have.
    wins
        First places; k candidates tied for first get 1/k each.
    """

    kind: Kind
    rule: str
    model: str
    score: float | None
    z: float | None
    votes: int
    offered: int
    wins: float


@dataclass(frozen=True, slots=True)
class MatchupEntry:
    """Matchups of the models of one session, by kind of ballot.

    Pairs are in the order (0, 1), (0, 2), …, (1, 2), … of `models`.

    Parameters
    ----------
    models
        Distinct models, ordered by name.
    wins, losses, ties
        Per pair, the weight of the counted ballots that place the first above, below, or equal to
        the second; all 0 if no ballot ranks both. The weights of a session's ballots are scaled to
        a mean of 1.
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


@dataclass(frozen=True, slots=True)
class BallotEntry:
    """One ballot as cast, own candidate included; the input of audits.

    All lists are in seat order of the candidates on the ballot. They are empty if the ballot
    abstains or does not count (see `counts`).

    Parameters
    ----------
    reviewer
        The model, or the name of a person.
    models
        Model that wrote each candidate.
    own
        Whether the reviewer wrote it.
    shares
        Share of its rivals that the ballot places the candidate above; a tie counts half. Rivals
        are all other candidates on the ballot or, for a candidate that is not the reviewer's own,
        all others except the reviewer's. None: not ranked, or without a rival.
    grades
        Overall grades after the ceiling; None: no grade.
    positions
        Places on the sheet, from 1 to the number of candidates; 0: unknown, or a copy of an answer
        that already has a place.
    chars
        Lengths of the answers in characters; None: unknown.
    paired
        Whether it is a comparison of two candidates.
    abstained, repaired
        Whether it has no vote, and whether it was read at the second attempt.
    kept, compared
        Number of pairs judged alike in both orders, and of pairs seen in both; recorded on one
        ballot per reviewer and session.
    criteria
        Names of the graded criteria.
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
        """True unless a later ballot replaces it or it has weight 0."""
        return self.abstained or bool(self.models)

    @property
    def flat(self) -> bool:
        """True if it ranks two or more candidates, all equal."""
        return _is_flat(self.shares)


@lru_cache(maxsize=1 << 14)
def _is_flat(shares: tuple[float | None, ...]) -> bool:
    n_ranked = len(shares) - shares.count(None)
    return n_ranked > 1 and len({*shares} - {None}) == 1


@dataclass(frozen=True, slots=True)
class AnswerEntry:
    """Cost and time of one answer; None: unknown.

    Parameters
    ----------
    seat
        Name of the seat.
    model
        Its model.
    chars
        Length of the answer in characters.
    seconds
        Time taken in seconds.
    cost_usd
        Cost in US dollars.
    output_tokens
        Number of output tokens.
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


@dataclass(frozen=True, slots=True)
class Entries:
    """All rows of one session."""

    session: SessionEntry
    standings: tuple[StandingEntry, ...] = ()
    matchups: tuple[MatchupEntry, ...] = ()
    ballots: Sequence[BallotEntry] = ()
    answers: tuple[AnswerEntry, ...] = ()


@dataclass(frozen=True, slots=True)
class SessionBallots:
    """One session with its ballots as cast.

    Parameters
    ----------
    ballots
        Ballots of models and of people, in any order.
    models
        Model by candidate or reviewer; by default its own name or, for a candidate, the author on
        the ballots.
    lengths
        Length of the answer in characters by candidate; those in `answers` may be left out.
    answers
        Cost and time of each answer. Empty: one entry per candidate of known length.
    order_consistency
        By reviewer, pairs judged alike in both orders and pairs seen in both, if its ballot was
        merged from two.
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
        """Return the model of a reviewer."""
        return self._models.get(name, name)

    def candidate(self, name: str) -> str:
        """Return the model of a candidate."""
        author = name if name in self._models else self._authors.get(name, name)
        return self._models.get(author, author)


@dataclass(frozen=True, slots=True)
class Reading:
    """Ballots of one kind in one session.

    Parameters
    ----------
    ballots
        Ballots in the given order.
    replacement_mask
        For each ballot, whether a later ballot of the same reviewer replaces it.
    votes
        For each ballot, the vote as cast; None: empty, superseded, or of weight 0.
    own_seats
        Seats of the candidates written by each author.
    electorate
        The votes that count, after recusal.
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
        If there are more candidates than can be counted.
    InvalidParameter
        If a ballot's weight is negative or infinite.
    """
    counting, gate = settings.counting, settings.gates.get(session)
    superseded = _find_superseded(session, ballots)
    electorate = interpret(session, ballots, counting, gate)
    own = _own_seats(electorate.candidates, ballots)
    names, apart = [ballot.reviewer for ballot in ballots], ballots
    keeps_ballots = gate is None and counting.unranked == "skip" and counting.recusal != "after"
    if not keeps_ballots or any(ballot.paired for ballot in ballots):
        # Distinct names keep ballots from being merged into one opinion.
        names = [str(number) for number in range(len(ballots))]
        apart = [replace(b, reviewer=name) for b, name in zip(ballots, names, strict=True)]
    cast = interpret(session, apart, replace(counting, recusal="off", unranked="skip"))
    by_reviewer = {vote.reviewer: vote for vote in cast.votes}
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
    """Build the result of `read_ballots` from the counted electorate, if possible.

    None if recusal, the gate or weights may have changed a ballot.
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
        """Mask of the reviewers' own candidates, shape (S, R, C)."""
        return np.isnan(self._recused.grades)

    @cached_property
    def left_out(self) -> NDArray[np.bool_]:
        """Mask of own candidates without a grade, shape (S, R, C)."""
        return np.asarray(self.own & np.isnan(self.grades))

    @property
    def grades(self) -> Floats:
        """The grades as cast, shape (S, R, C); NaN: none."""
        return self._cast.grades

    @cached_property
    def shares(self) -> Floats:
        """Share of rivals below each candidate, shape (S, R, C); NaN: unranked.

        With p twice the rank among n ranked candidates, a share is (2n − p) / (2n − 2). For a
        candidate that is not the reviewer's own, n and p leave out the reviewer's own.
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

        A share or grade is None if the candidate is not ranked or graded.
        """
        columns = (self.own.tolist(), none_for_nan(self.shares), none_for_nan(self.grades))
        flat = [map(tuple, chain.from_iterable(column)) for column in columns]
        lines, n_ballots = list(zip(*flat, strict=True)), self.own.shape[1]
        return [lines[start : start + n_ballots] for start in range(0, len(lines), n_ballots)]


@dataclass(frozen=True, slots=True)
class GradedReading:
    """Grades-only ballots of one kind in one session.

    Parameters
    ----------
    reviewers, kinds
        Reviewer and kind of each ballot, in the given order.
    block, row
        Block of the ballots as cast, and the session's row in it.
    electorate
        The votes that count, after recusal.
    """

    reviewers: Sequence[str]
    kinds: Sequence[Kind]
    block: GradedBlock
    row: int
    electorate: Electorate


class GradedEntries(LazyRows[BallotEntry]):
    """The rows of one session's grades-only ballots.

    Parameters
    ----------
    models
        Models of the candidates.
    chars
        Lengths of their answers.
    reviewers
        For each ballot, the model of its reviewer, or the person.
    repaired, order_counts
        For each ballot, as in `BallotEntry`.
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
        """Build the row of each ballot."""
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

    The electorates, and the rows built from them, are the same as from `read_ballots`.
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
    """Close the gaps that recused candidates leave in a ballot's places.

    Candidates below a recused one move up by one rank, those tied with it by half a rank. `places`
    is as in `Vote`.
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
    """Find ballots that a later one replaces, as in `one_opinion_each`."""
    last = {_opinion(ballot): n for n, ballot in enumerate(ballots)}
    if len(last) == len(ballots):
        return [False] * len(ballots)
    apart = are_battles(session, ballots)
    return [
        last[_opinion(ballot)] != n and not (apart and ballot.paired)
        for n, ballot in enumerate(ballots)
    ]


def _opinion(ballot: Ballot) -> object:
    """Return the key of a ballot or of a one-order comparison."""
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
