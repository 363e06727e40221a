"""A session's votes as rows; many plain sessions as one array block."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import repeat
from typing import Any, overload

from numpy.typing import NDArray

from witan.core.ballot import Groups, Kind
from witan.core.profile import Floats
from witan.core.scale import Scale
from witan.core.slots import set_by_slots

Note = tuple[str, float | None, float, bool, Groups]
"""Reviewer, τ, weight, mismatch and ranking of one vote."""


@set_by_slots
@dataclass(frozen=True, slots=True)
class Vote:
    """One counted ballot, as a row of the profile.

    Parameters
    ----------
    places
        Twice the rank per candidate in seat order; 0: no vote.
    grades
        Overall grade per candidate; NaN: none.
    length, eligible
        Candidates ranked, and candidates that could have been, as `Profile` takes them.
    mismatch
        Its ranking and its grades strictly contradict each other in some pair.
    paired
        One opinion on two candidates.
    omitted
        Seats on its sheet that it gives no grade; in `grades` they have the lowest.
    """

    reviewer: str
    groups: Groups
    places: tuple[int, ...]
    grades: tuple[float, ...]
    weight: float
    length: int
    eligible: int
    mismatch: bool
    paired: bool
    kind: str
    omitted: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class VoteBlock:
    """The votes of same-shaped sessions with grades only; each weighs 1.

    Parameters
    ----------
    candidates
        Per session, in seat order.
    reviewers, kinds
        Per session, one for each vote.
    places : int array, shape (S, R, C)
        Twice the rank; 0: no vote.
    grades : float array, shape (S, R, C)
        From 1 to 10; NaN: none.
    eligible : int array, shape (S, R)
        Candidates that could have been ranked.
    """

    candidates: Sequence[tuple[str, ...]]
    reviewers: Sequence[tuple[str, ...]]
    kinds: Sequence[tuple[Kind, ...]]
    places: NDArray[Any]
    grades: Floats
    eligible: NDArray[Any]
    rankings: dict[tuple[str, ...], dict[tuple[int, ...], Groups]] = field(default_factory=dict)
    """Groups by candidates and places: many ballots of a history rank alike."""

    def groups(self, session: int) -> list[Groups]:
        """The rankings of a session's votes, best first."""
        names = self.candidates[session]
        known = self.rankings.setdefault(names, {})
        return [
            known.get(places) or self._rank(names, places, known)
            for places in map(tuple, self.places[session].tolist())
        ]

    def notes(self, session: int, taus: Iterable[float | None]) -> Iterator[Note]:
        """Fields of `BallotNote` of a session's votes."""
        names = self.reviewers[session]
        return zip(names, taus, repeat(1.0), repeat(False), self.groups(session))

    @staticmethod
    def _rank(
        names: tuple[str, ...], places: tuple[int, ...], known: dict[tuple[int, ...], Groups]
    ) -> Groups:
        levels: dict[int, list[str]] = {}
        for name, place in zip(names, places, strict=True):
            if place:
                levels.setdefault(place, []).append(name)
        groups = tuple(tuple(levels[place]) for place in sorted(levels))
        known[places] = groups
        return groups

    def votes(self, session: int) -> Iterator[Vote]:
        """The votes of a session, as rows."""
        for reviewer, kind, groups, places, grades, eligible in zip(
            self.reviewers[session],
            self.kinds[session],
            self.groups(session),
            self.places[session].tolist(),
            self.grades[session].tolist(),
            self.eligible[session].tolist(),
            strict=True,
        ):
            yield Vote(
                reviewer=reviewer,
                groups=groups,
                places=tuple(places),
                grades=tuple(grades),
                weight=1.0,
                length=len(places) - places.count(0),
                eligible=eligible,
                mismatch=False,
                paired=False,
                kind=kind,
            )


class BlockVotes(Sequence[Vote]):
    """The votes of one session of a block, made on first use."""

    __slots__ = ("_votes", "block", "session")

    def __init__(self, block: VoteBlock, session: int) -> None:
        self.block, self.session = block, session
        self._votes: tuple[Vote, ...] | None = None

    def _make_votes(self) -> tuple[Vote, ...]:
        if self._votes is None:
            self._votes = tuple(self.block.votes(self.session))
        return self._votes

    def __len__(self) -> int:
        return len(self.block.reviewers[self.session])

    def __iter__(self) -> Iterator[Vote]:
        return iter(self._make_votes())

    @overload
    def __getitem__(self, index: int) -> Vote: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Vote, ...]: ...
    def __getitem__(self, index: int | slice) -> Vote | tuple[Vote, ...]:
        return self._make_votes()[index]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and self._make_votes() == tuple(other)

    def __hash__(self) -> int:
        return hash(self._make_votes())

    def __repr__(self) -> str:
        return repr(self._make_votes())


@set_by_slots
@dataclass(frozen=True, slots=True)
class Electorate:
    """The votes of one session, and the seats without one.

    Parameters
    ----------
    candidates
        In seat order: the declared roster, else by name.
    offered
        Per candidate, the seats that could have voted for it, abstentions included.
    abstentions
        Reviewer and reason.
    order_kept
        Per reviewer who saw pairs in both orders: pairs judged alike, and pairs seen twice.
    at
        When its first ballot was cast; None: unknown.
    scales
        On which grades are given, where that is not 1–10 beyond doubt.
    stands_for
        Per candidate, the seat of the one that was judged for it: candidates that share a place on
        every sheet have the same answer. Empty: each was judged for itself.
    """

    session: str
    candidates: tuple[str, ...]
    votes: Sequence[Vote]
    offered: tuple[int, ...]
    abstentions: Mapping[str, str]
    order_kept: Mapping[str, tuple[int, int]]
    failed: Mapping[str, tuple[str, ...]]
    warnings: tuple[str, ...]
    at: datetime | None = None
    scales: tuple[Scale, ...] = ()
    stands_for: tuple[int, ...] = ()

    @property
    def reviewers(self) -> tuple[str, ...]:
        """Reviewers with a counted ballot, each once, in ballot order."""
        return tuple(dict.fromkeys(self.voters))

    @property
    def voters(self) -> Sequence[str]:
        """The reviewer of each vote."""
        if isinstance(self.votes, BlockVotes):
            return self.votes.block.reviewers[self.votes.session]
        return [vote.reviewer for vote in self.votes]

    @property
    def kinds(self) -> Sequence[str]:
        """The kind of each vote: model or human."""
        if isinstance(self.votes, BlockVotes):
            return self.votes.block.kinds[self.votes.session]
        return [vote.kind for vote in self.votes]

    @property
    def weights(self) -> Sequence[float]:
        """The weight of each vote."""
        if isinstance(self.votes, BlockVotes):
            return (1.0,) * len(self.votes)
        return [vote.weight for vote in self.votes]

    @property
    def rankings(self) -> Sequence[Groups]:
        """The ranking of each vote, best group first."""
        if isinstance(self.votes, BlockVotes):
            return self.votes.block.groups(self.votes.session)
        return [vote.groups for vote in self.votes]

    @property
    def mismatches(self) -> Sequence[bool]:
        """Each vote's flag for a contradiction between its ranking and its grades."""
        if isinstance(self.votes, BlockVotes):
            return (False,) * len(self.votes)
        return [vote.mismatch for vote in self.votes]

    def notes(self, taus: Iterable[float | None]) -> list[Note]:
        """Fields of `BallotNote` of each vote, given its τ."""
        if isinstance(self.votes, BlockVotes):
            return list(self.votes.block.notes(self.votes.session, taus))
        return [
            (vote.reviewer, tau, vote.weight, vote.mismatch, vote.groups)
            for vote, tau in zip(self.votes, taus, strict=True)
        ]

    @property
    def is_paired(self) -> bool:
        """True with a comparison of two candidates among the votes."""
        return not isinstance(self.votes, BlockVotes) and any(vote.paired for vote in self.votes)

    def scale_weights(self, weights: Mapping[str, float]) -> "Electorate":
        """Multiply votes by weights per reviewer; weight 0 makes an abstention."""
        if not weights:
            return self
        weighed = [
            replace(vote, weight=vote.weight * weights.get(vote.reviewer, 1.0))
            for vote in self.votes
        ]
        silent = {vote.reviewer: "weighs nothing" for vote in weighed if vote.weight == 0}
        return replace(
            self,
            votes=tuple(vote for vote in weighed if vote.weight > 0),
            abstentions={**self.abstentions, **silent},
        )
