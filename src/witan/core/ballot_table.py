"""Grades-only ballots as columns; each is made on reading."""

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import overload

from witan.core.ballot import Ballot
from witan.core.scale import Scale


class BallotTable(Sequence[Ballot]):
    """Ballots of models with plain numbers for candidates and nothing else.

    Parameters
    ----------
    sessions, reviewers
        Of each ballot.
    grades
        Of each ballot, candidate to grade; none is empty.
    scale
        Of all grades; None: not known yet.
    ends
        The lowest and the highest grade; None: not known yet.
    """

    __slots__ = ("ends", "grades", "reviewers", "scale", "sessions")

    def __init__(
        self,
        sessions: Sequence[str],
        reviewers: Sequence[str],
        grades: Sequence[dict[str, float]],
        scale: Scale | None = None,
        ends: tuple[float, float] | None = None,
    ) -> None:
        self.sessions, self.reviewers, self.grades = sessions, reviewers, grades
        self.scale, self.ends = scale, ends

    def __len__(self) -> int:
        return len(self.sessions)

    def __iter__(self) -> Iterator[Ballot]:
        for session, reviewer, grades in zip(
            self.sessions, self.reviewers, self.grades, strict=True
        ):
            yield Ballot(reviewer, (), grades, session, scale=self.scale)

    @overload
    def __getitem__(self, index: int) -> Ballot: ...
    @overload
    def __getitem__(self, index: slice) -> "BallotTable": ...
    def __getitem__(self, index: int | slice) -> "Ballot | BallotTable":
        if isinstance(index, slice):
            columns = (self.sessions[index], self.reviewers[index], self.grades[index])
            return BallotTable(*columns, self.scale)
        grades, session = self.grades[index], self.sessions[index]
        return Ballot(self.reviewers[index], (), grades, session, scale=self.scale)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and tuple(self) == tuple(other)

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return repr(tuple(self))

    def put_on(self, scale: Scale) -> "BallotTable":
        """The same ballots, their grades on this scale."""
        return BallotTable(self.sessions, self.reviewers, self.grades, scale, self.ends)

    def range(self) -> tuple[float, float]:
        """The lowest and the highest grade."""
        if self.ends is not None:
            return self.ends
        numbers = list(chain.from_iterable(map(dict.values, self.grades)))
        return min(numbers), max(numbers)

    def by_session(self) -> dict[str, "BallotTable"]:
        """The ballots of each session, in the order of first ballots."""
        rows: dict[str, list[int]] = {}
        for row, session in enumerate(self.sessions):
            rows.setdefault(session, []).append(row)
        return {session: self._take(chosen) for session, chosen in rows.items()}

    def _take(self, rows: Sequence[int]) -> "BallotTable":
        if rows[-1] - rows[0] + 1 == len(rows):
            return self[rows[0] : rows[-1] + 1]
        return BallotTable(
            [self.sessions[row] for row in rows],
            [self.reviewers[row] for row in rows],
            [self.grades[row] for row in rows],
            self.scale,
        )
