"""Convert sessions of plain grades to votes, in blocks of one shape."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain, count, repeat
from math import nan
from operator import attrgetter, itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from witan.core.ballot import Ballot, BallotTable, Kind
from witan.core.interpretation import Counting, Recusal
from witan.core.profile import MAX_CANDIDATES, BlockVotes, Electorate, Floats, VoteBlock
from witan.core.scale import GRAIN, HIGHEST, LOWEST, NATIVE, NUMBER_TYPES, Range, Scale


def interpret_plain_sessions(
    sessions: Mapping[str, Sequence[Ballot]], counting: Counting
) -> dict[str, Electorate]:
    """Interpret the plain sessions among these, in blocks.

    In a plain session, every ballot contains just one number for each candidate except the
    reviewer's own, all on one scale. The electorates are the same as from `interpret`; other
    sessions are left out.
    """
    if counting.recusal == "after" or counting.unranked == "last":
        return {}
    return {
        electorate.session: electorate
        for block in plain_blocks(sessions)
        for electorate in block.electorates(counting.recusal, block.votes(counting.recusal))
    }


def plain_blocks(sessions: Mapping[str, Sequence[Ballot]]) -> Iterator["PlainBlock"]:
    """Group plain sessions by shape, as in `interpret_plain_sessions`."""
    shapes: dict[tuple[int, int], list[_PlainSession]] = {}
    for session, ballots in sessions.items():
        plain = _PlainSession.of(session, ballots)
        if plain is not None:
            shapes.setdefault((len(ballots), len(plain.candidates)), []).append(plain)
    for members in shapes.values():
        block = _read_block(members)
        if block is not None:
            yield block


@dataclass(frozen=True, slots=True)
class _PlainSession:
    """A session that may be plain; `_read_block` rejects any with missing grades."""

    session: str
    candidates: tuple[str, ...]
    reviewers: tuple[str, ...]
    kinds: tuple[Kind, ...]
    grades: Sequence[Mapping[str, float]]
    scale: Scale | None
    at: datetime | None

    @classmethod
    def of(cls, session: str, ballots: Sequence[Ballot]) -> "_PlainSession | None":
        if isinstance(ballots, BallotTable):
            kinds, times, scale = _MODELS * len(ballots), [], ballots.scale
            reviewers = tuple(ballots.reviewers)
            grades: Sequence[Mapping[str, Any]] = ballots.grades
        else:
            scale = ballots[0].scale
            if not all(_only_grades(ballot, scale) for ballot in ballots):
                return None
            grades = [ballot.grades for ballot in ballots]
            reviewers = tuple([ballot.reviewer for ballot in ballots])
            kinds = tuple([ballot.kind for ballot in ballots])
            times = [ballot.at for ballot in ballots if ballot.at is not None]
        if scale is not None and scale.criteria:
            return None
        names = set().union(*grades)
        repeated = len(set(reviewers)) < len(reviewers)
        if repeated or not 2 <= len(names) <= MAX_CANDIDATES:
            return None
        at = min(times, default=None)
        return cls(session, tuple(sorted(names)), reviewers, kinds, grades, scale, at)

    def given_grades(self) -> Iterator[Iterable[float]]:
        """Iterate over each ballot's grades in candidate order, unconverted; NaN: none."""
        take_grades = itemgetter(*self.candidates)
        try:
            return iter([*map(take_grades, self.grades)])
        except KeyError:
            return (map(one.get, self.candidates, repeat(nan)) for one in self.grades)

    def own_seats(self) -> list[int]:
        """Return the seat of each reviewer's own candidate; −1: none."""
        seats = {name: seat for seat, name in enumerate(self.candidates)}
        return [seats.get(reviewer, -1) for reviewer in self.reviewers]


_MODELS: tuple[Kind, ...] = ("model",)


def _only_grades(ballot: Ballot, scale: Scale | None) -> bool:
    """Test if a ballot contains only plain numbers, on this scale."""
    values = ballot.grades.values()
    return (
        _OTHER_FIELDS(ballot) == _DEFAULTS
        and ballot.scale is scale
        and len(values) > 0
        and NUMBER_TYPES.issuperset(map(type, values))
    )


_OTHER_FIELDS = attrgetter(
    "groups", "abstained", "reason", "candidates", "authors", "positions", "weight", "paired"
)
_DEFAULTS = ((), False, None, None, None, None, 1.0, False)


@dataclass(frozen=True, slots=True, eq=False)
class PlainBlock:
    """Plain sessions of one shape, before recusal.

    Parameters
    ----------
    grades : float array, shape (S, R, C)
        From 1 to 10; NaN: the reviewer's own candidate, ungraded.
    own : bool array, shape (S, R, C)
        Whether the candidate is the reviewer's own.
    """

    members: Sequence[_PlainSession]
    grades: Floats
    own: NDArray[np.bool_]

    def votes(self, recusal: Recusal) -> VoteBlock:
        """Build the votes, with or without reviewers' votes for themselves."""
        recused = self.own & (recusal == "before")
        grades = np.where(recused, nan, self.grades)
        return VoteBlock(
            candidates=[one.candidates for one in self.members],
            reviewers=[one.reviewers for one in self.members],
            kinds=[one.kinds for one in self.members],
            places=_places(grades),
            grades=grades,
            eligible=self.own.shape[2] - recused.sum(axis=2),
        )

    def electorates(self, recusal: Recusal, votes: VoteBlock) -> Iterator[Electorate]:
        """Build the electorates of these votes, in the order of the sessions."""
        recused = self.own & (recusal == "before")
        offered = self.own.shape[1] - recused.sum(axis=1)
        return map(_electorate, self.members, repeat(votes), count(), offered.tolist())


def _read_block(members: Sequence[_PlainSession]) -> PlainBlock | None:
    """Read sessions of one shape except those with missing or outlying grades."""
    shape = (len(members), len(members[0].reviewers), len(members[0].candidates))
    try:
        ballots = chain.from_iterable(member.given_grades() for member in members)
        flat = chain.from_iterable(ballots)
        grades = np.fromiter(flat, np.float64, math.prod(shape)).reshape(shape)
    except OverflowError:  # an integer too large for a float
        return None
    own = np.array([member.own_seats() for member in members])[:, :, np.newaxis]
    own = own == np.arange(shape[2])
    n_given = np.array([[*map(len, one.grades)] for one in members])
    present = ~np.isnan(grades)
    plain = (present | own).all(axis=(1, 2)) & (present.sum(axis=2) == n_given).all(axis=1)
    for scale in dict.fromkeys(member.scale for member in members):
        on_it = np.array([member.scale is scale or member.scale == scale for member in members])
        within = NATIVE if scale is None else scale.whole
        grades[on_it], outside = _convert(grades[on_it], within)
        plain[on_it] &= ~outside.any(axis=(1, 2))
    plain_members = [
        member for member, is_plain in zip(members, plain.tolist(), strict=True) if is_plain
    ]
    return PlainBlock(plain_members, grades[plain], own[plain])


def _convert(grades: Floats, within: Range) -> tuple[Floats, NDArray[np.bool_]]:
    """Convert an array like `Range.convert`, without clipping."""
    if within.low == LOWEST and within.high == HIGHEST:
        return grades, (grades < LOWEST) | (grades > HIGHEST)
    share = (grades - within.low) / (within.high - within.low)
    converted = np.rint((LOWEST + (HIGHEST - LOWEST) * share) * GRAIN) / GRAIN
    return converted, (share < 0) | (share > 1)


def _places(grades: Floats) -> NDArray[np.uint16]:
    """Double the rank on each ballot, (S, R, C); 0: no grade."""
    places = np.ones(grades.shape, dtype=np.uint16)
    for rival in range(grades.shape[2]):
        other = grades[:, :, rival : rival + 1]
        places += 2 * (other > grades).astype(np.uint16) + (other == grades)
    places[np.isnan(grades)] = 0
    return places


def _electorate(
    member: _PlainSession, block: VoteBlock, row: int, offers: Sequence[int]
) -> Electorate:
    scale = member.scale
    scales = () if scale is None or scale.is_plain else (scale,)
    return Electorate(
        session=member.session,
        candidates=member.candidates,
        votes=BlockVotes(block, row),
        offered=tuple(offers),
        abstentions={},
        order_kept={},
        failed={},
        warnings=tuple([scale.sentence for scale in scales]),
        at=member.at,
        scales=scales,
    )
