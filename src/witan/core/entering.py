"""From counted sessions to rows: what a leaderboard and an audit are summed from.

Ballots of models and of people are two electorates, counted apart. Many sessions are counted at
once, those of one shape as one batch; one session is the batch of one.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np

from witan.core.ballot import Ballot, Kind
from witan.core.ballot_entries import ballot_entries
from witan.core.batch import by_shape, stack
from witan.core.casts import Cast, Named
from witan.core.counted import fits_of
from witan.core.entries import (
    AnswerEntry,
    Entries,
    MatchupEntry,
    Noise,
    SessionEntry,
    StandingEntry,
)
from witan.core.interpretation import Electorate
from witan.core.outcome import Outcome
from witan.core.profile import Profile
from witan.core.readings import Reading, read
from witan.core.rules import RULES
from witan.core.settings import AUTO, Settings
from witan.core.standing_entries import Block
from witan.core.stats.agreement import kendall_ws
from witan.core.stats.learning import noise_of
from witan.core.tally import tally_electorates

__all__ = ["entries_of", "entries_of_many"]

SESSIONS_AT_ONCE = 1024
"""Sessions whose rows are held back to come out in order."""

KINDS: tuple[Kind, ...] = ("model", "human")


def entries_of(
    cast: Cast,
    *,
    rules: Sequence[str] = ("borda",),
    settings: Settings | None = None,
    with_p_beats: bool | None = None,
) -> Entries:
    """All rows of one session; see `entries_of_many`."""
    [entries] = entries_of_many([cast], rules=rules, settings=settings, with_p_beats=with_p_beats)
    return entries


def entries_of_many(
    casts: Iterable[Cast],
    *,
    rules: Sequence[str] = ("borda",),
    settings: Settings | None = None,
    with_p_beats: bool | None = None,
) -> Iterator[Entries]:
    """Count sessions, each kind of ballots apart, and give their rows in the order given.

    Standings agree with `tally` under each rule; a rule that cannot count a session, or that needs
    a history, leaves no rows for it. A kind whose ballots all abstain has standings without a
    score. `BallotEntry` rows are aligned with the ballots of the session.

    Parameters
    ----------
    rules
        Rules under which standings are kept.
    settings
        How ballots are counted; its rule is that of the probabilities, and of the noise.
    with_p_beats
        Whether to work out what the outcome of a session would say of its pairs and its leader,
        where the session brings none. None: where people judged it too, to calibrate by.

    Raises
    ------
    UnknownName
        If there is no such rule.
    TooLarge
        If a session has more candidates than can be counted.
    InvalidParameter
        If a ballot's weight is negative or infinite.
    """
    for rule in rules:
        RULES[rule]
    source = iter(casts)
    chosen = settings or Settings()
    while block := list(islice(source, SESSIONS_AT_ONCE)):
        yield from _Counting(block, tuple(dict.fromkeys(rules)), chosen, with_p_beats).entries()


@dataclass(slots=True)
class _Half:
    """One kind of ballots of one session, and what became of them."""

    number: int
    kind: Kind
    reading: Reading
    outcome: Outcome | None
    standings: list[StandingEntry]
    matchup: MatchupEntry | None = None
    kendall_w: float | None = None
    noise: Noise | None = None

    @property
    def electorate(self) -> Electorate:
        """What counts of the ballots."""
        return self.reading.counted


class _Counting:
    """A block of sessions while they are counted."""

    def __init__(
        self,
        casts: Sequence[Cast],
        rules: tuple[str, ...],
        settings: Settings,
        with_p_beats: bool | None,
    ) -> None:
        self.casts, self.rules, self.settings = casts, rules, settings
        self.with_p_beats = with_p_beats
        self.named = [Named(cast) for cast in casts]
        self.halves = [half for number in range(len(casts)) for half in self._read(number)]

    def entries(self) -> Iterator[Entries]:
        """Count all, then give the rows in the order of the sessions."""
        for numbers in by_shape([half.electorate for half in self.halves]):
            self._count([self.halves[number] for number in numbers])
        waiting = iter(self.halves)
        half = next(waiting, None)
        for number in range(len(self.casts)):
            mine = []
            while half is not None and half.number == number:
                mine.append(half)
                half = next(waiting, None)
            yield self._entries(number, mine)

    def _read(self, number: int) -> list[_Half]:
        cast = self.casts[number]
        by_kind: dict[Kind, list[Ballot]] = {}
        for ballot in cast.ballots:
            by_kind.setdefault(ballot.kind, []).append(ballot)
        halves = []
        for kind in KINDS:
            if kind in by_kind:
                reading = read(cast.session, by_kind[kind], self.settings)
                halves.append(_Half(number, kind, reading, None, []))
        both = len(halves) == len(KINDS)
        wanted = both if self.with_p_beats is None else self.with_p_beats
        for half in halves:
            if half.kind == "model":
                half.outcome = cast.outcome
                if half.outcome is None and wanted:
                    half.outcome = _outcome(half.electorate, self.settings)
        return halves

    def _count(self, halves: Sequence[_Half]) -> None:
        """Count sessions of one shape."""
        electorates = [half.electorate for half in halves]
        given = self.settings.reliability
        reliability = None if given is None else [given] * len(halves)
        profile = stack(electorates, reliability=reliability)
        block = Block(electorates, profile, self.settings)
        for column, half in enumerate(halves):
            model_of = self.named[half.number].candidate
            for rule in self.rules:
                half.standings += block.standings(column, half.kind, model_of, rule, half.outcome)
            half.matchup = block.matchup(column, half.kind, model_of, half.outcome)
        models = [n for n, half in enumerate(halves) if half.kind == "model"]
        if models:
            self._agree([halves[column] for column in models], _part(profile, models))

    def _agree(self, halves: Sequence[_Half], profile: Profile) -> None:
        """Say how far models agree with each other, and how noisy they are."""
        if any(self.casts[half.number].outcome is None for half in halves):  # which says it too
            for half, agreement in zip(halves, _agreements(halves, profile), strict=True):
                half.kendall_w = agreement
        rule = RULES["calibrated" if self.settings.rule == AUTO else self.settings.rule]
        several = [n for n, half in enumerate(halves) if len(half.electorate.reviewers) > 1]
        if not several or profile.n_candidates < 2:
            return
        chosen = [halves[column] for column in several]
        fits = fits_of([half.electorate for half in chosen], _part(profile, several), rule)
        for half, noise in zip(chosen, noise_of(fits), strict=True):
            half.noise = noise

    def _entries(self, number: int, halves: Sequence[_Half]) -> Entries:
        """The rows of one session."""
        cast, named = self.casts[number], self.named[number]
        known = {answer.seat: answer.chars for answer in cast.answers if answer.chars is not None}
        lengths = {**known, **cast.lengths}
        rows = {
            half.kind: iter(ballot_entries(cast, half.reading, lengths, named)) for half in halves
        }
        models = next((half for half in halves if half.kind == "model"), None)
        return Entries(
            session=_session_entry(cast, models),
            standings=tuple(row for half in halves for row in half.standings),
            matchups=tuple(half.matchup for half in halves if half.matchup is not None),
            ballots=tuple(next(rows[ballot.kind]) for ballot in cast.ballots),
            answers=cast.answers
            or tuple(
                AnswerEntry(name, named.candidate(name), chars) for name, chars in lengths.items()
            ),
        )


def _part(profile: Profile, columns: Sequence[int]) -> Profile:
    """Some sessions of a profile, in its order; all of them are not copied."""
    return profile if len(columns) == profile.n_sessions else profile.take(np.array(columns))


def _session_entry(cast: Cast, models: _Half | None) -> SessionEntry:
    """The row of the session itself; its agreement and its noise are those of the models."""
    agreement = kendall_w = noise = None
    if models is not None:
        kendall_w, noise = models.kendall_w, models.noise
        if models.outcome is not None:
            agreement = _agreement(models.outcome)
    return SessionEntry(
        session=cast.session,
        at=cast.at,
        category=cast.category,
        simulated=cast.simulated,
        kendall_w=kendall_w if cast.outcome is None else cast.outcome.kendall_w,
        agreement=agreement,
        noise=noise,
    )


def _agreement(outcome: Outcome) -> float | None:
    """The probability that the leader is best; of several that share the lead, the highest."""
    leads = [line.p_best for line in outcome.standings if line.rank == 1 and line.votes > 0]
    return max((p for p in leads if p is not None), default=None)


def _outcome(electorate: Electorate, settings: Settings) -> Outcome | None:
    """What the session comes to; None where it cannot be counted, or nobody voted."""
    over_time = settings.rule != AUTO and RULES[settings.rule].needs == "history"
    if over_time or not electorate.votes:
        return None
    quick = replace(settings, flips=False)
    return next(tally_electorates([electorate], quick, on_unsuitable=lambda _: None), None)


def _agreements(halves: Sequence[_Half], profile: Profile) -> list[float | None]:
    """Kendall's W of the ballots that are not single comparisons."""
    if not any(vote.paired for vote in halves[0].electorate.votes):
        return kendall_ws(profile)
    found = []
    for column, half in enumerate(halves):
        whole = [row for row, vote in enumerate(half.electorate.votes) if not vote.paired]
        one = profile.take(slice(column, column + 1)).keep_ballots(np.array(whole, dtype=int))
        found += kendall_ws(one)
    return found
