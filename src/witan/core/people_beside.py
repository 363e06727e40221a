"""Stored ballots beside those of people: who was right on the pairs that people decided.

The same definitions as the reductions `HumanSums` and `CalibrationSums` have in SQL, for as few
sessions as a council learns from before it counts, where asking an engine would take too long.
"""

from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from witan.core.calibration import BANDS
from witan.core.profile import Floats
from witan.core.sums import CalibrationSums, HumanSums

__all__ = ["BesidePeople", "JudgedSession", "StoredBallot", "beside_people"]

Pair = tuple[int, int]

EDGES = [k / BANDS for k in range(1, BANDS)]


@dataclass(frozen=True, slots=True)
class StoredBallot:
    """A ballot as a history keeps it, models and reviewers as codes; see `BallotEntry`."""

    reviewer: int
    human: bool
    models: Sequence[int]
    own: Sequence[bool]
    shares: Sequence[float | None]


@dataclass(frozen=True, slots=True)
class JudgedSession:
    """A session that people voted on, too.

    Parameters
    ----------
    models, p_beats
        Of its matchup among models: pairs stand in the order (0, 1), (0, 2), …, (1, 2), … of
        `models`; both empty where there is none.
    """

    bucket: int
    ballots: Sequence[StoredBallot]
    models: Sequence[int] = ()
    p_beats: Sequence[float | None] = ()


@dataclass(frozen=True, slots=True, eq=False)
class BesidePeople:
    """Models' opinions on the pairs that people decided.

    Parameters
    ----------
    reviewers
        Codes, one per row of `correct`.
    correct : float array, shape (R, N)
        Per pair: 1 as people, −1 against them, 0 neither; NaN: not judged.
    calibration
        How sure the panels were of those pairs, and how often they matched.
    """

    reviewers: tuple[int, ...]
    correct: Floats
    calibration: CalibrationSums

    def of(self, reviewers: Collection[int]) -> "BesidePeople":
        """The opinions of these reviewers alone."""
        mine = [row for row, code in enumerate(self.reviewers) if code in reviewers]
        kept = tuple(self.reviewers[row] for row in mine)
        return replace(self, reviewers=kept, correct=self.correct[mine])

    @property
    def sums(self) -> HumanSums:
        """Each reviewer beside itself, all sessions in one bucket."""
        known = ~np.isnan(self.correct)
        sides = np.where(known, self.correct, 0.0)
        codes = np.array(self.reviewers, dtype=np.int64)
        totals, squares = sides.sum(axis=1), (sides * sides).sum(axis=1)
        return HumanSums(
            bucket=np.zeros_like(codes),
            reviewer=codes,
            other=codes,
            n=known.sum(axis=1).astype(np.int64),
            x=totals,
            y=totals,
            xx=squares,
            yy=squares,
            xy=squares,
        )


def beside_people(sessions: Iterable[JudgedSession]) -> BesidePeople:
    """Set models' ballots, and what their panels said, beside the majorities of people.

    A pair of candidates of a session is decided where more human ballots place one above the other
    than below. Candidates of the reviewer's own are left out.
    """
    rights: dict[int, dict[int, float]] = {}
    banded: dict[tuple[int, int], list[float]] = {}
    n_decided = 0
    for session in sessions:
        truth, opinions = _opinions(session.ballots)
        for reviewer, sides in opinions.items():
            mine = rights.setdefault(reviewer, {})
            for at, (pair, right) in enumerate(truth.items(), start=n_decided):
                balance = sides.get(pair)
                if balance is not None:
                    mine[at] = right if balance > 0 else -right if balance else 0
        n_decided += len(truth)
        for confidence, matched in _sure(session, truth):
            row = banded.setdefault((session.bucket, _band(confidence)), [0.0, 0.0, 0.0])
            row[0] += 1
            row[1] += matched
            row[2] += confidence
    correct = np.full((len(rights), n_decided), np.nan)
    for at, held in enumerate(rights.values()):
        correct[at, list(held)] = list(held.values())
    return BesidePeople(tuple(rights), correct, _table(banded))


def _opinions(
    ballots: Sequence[StoredBallot],
) -> tuple[dict[Pair, int], dict[int, dict[Pair, int]]]:
    """Pairs that people decided, and per model its balance on every pair that it judged."""
    people: dict[Pair, int] = {}
    models: dict[int, dict[Pair, int]] = {}
    for ballot in ballots:
        held = people if ballot.human else models.setdefault(ballot.reviewer, {})
        for pair, side in _sides(ballot):
            held[pair] = held.get(pair, 0) + side
    return {pair: _sign(balance) for pair, balance in people.items() if balance}, models


def _sides(ballot: StoredBallot) -> Iterator[tuple[Pair, int]]:
    """1 for the smaller code of a pair, −1 for the other, 0 for neither."""
    placed = sorted(
        (model, share)
        for model, own, share in zip(ballot.models, ballot.own, ballot.shares, strict=True)
        if share is not None and not own
    )
    for (i, a), (j, b) in combinations(placed, 2):
        if i != j:
            yield (i, j), (a > b) - (a < b)


def _sure(session: JudgedSession, truth: Mapping[Pair, int]) -> Iterator[tuple[float, bool]]:
    """How sure the panel was of each decided pair that it took sides on, and whether rightly."""
    for (i, j), p in zip(combinations(session.models, 2), session.p_beats, strict=True):
        right = truth.get((min(i, j), max(i, j)))
        if right is None or p is None or p == 0.5:
            continue
        # p is that of i; what people decided is for or against the smaller code.
        for_smaller = (p > 0.5) == (i < j)
        yield max(p, 1.0 - p), for_smaller == (right > 0)


def _band(confidence: float) -> int:
    return bisect_right(EDGES, confidence)


def _sign(number: int) -> int:
    return (number > 0) - (number < 0)


def _table(banded: Mapping[tuple[int, int], Sequence[float]]) -> CalibrationSums:
    keys = np.array(list(banded), dtype=np.int64).reshape(-1, 2)
    rows = np.array(list(banded.values()), dtype=float).reshape(-1, 3)
    return CalibrationSums(
        bucket=keys[:, 0],
        band=keys[:, 1],
        pairs=rows[:, 0].astype(np.int64),
        matched=rows[:, 1].astype(np.int64),
        confidence=rows[:, 2],
    )
