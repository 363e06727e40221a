"""How far length goes with votes: of a reviewer, of the panel, and of people beside them."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from witan.core.stats.measures import (
    Count,
    Measure,
    MeasureUnit,
    beside,
    centred_correlation,
    measured,
    per_bucket,
    rate,
    ratio,
    undefined,
)
from witan.core.stats.sums import LengthSums

__all__ = ["MIN_LENGTH_PAIRS", "MIN_LENGTH_VOTES", "LengthAudit", "Lengths"]

Rows = NDArray[np.intp] | NDArray[np.bool_]

MIN_LENGTH_VOTES = 50
"""Votes that a correlation needs: that of fifty errs by .14 where there is none."""

MIN_LENGTH_PAIRS = 30
"""Decided pairs that a share needs: that of thirty errs by 9 points."""

VOTES, GRADES, PAIRS = "votes of known length", "grades of known length", "decided pairs"
BEYOND: MeasureUnit = "difference of correlations"
PEOPLE_THEMSELVES = "people are the baseline"


@dataclass(frozen=True, slots=True)
class LengthAudit:
    """Length beside votes. Length alone is no bias: people's own figures are the baseline.

    Parameters
    ----------
    shares, grades
        Correlation of the log length of an answer with its share of rivals beaten, and with its
        grade, both centred within the ballot.
    longer_wins
        Of the pairs of different length that a ballot tells apart, the share in which it places
        the longer above.
    shares_beyond_people, grades_beyond_people, longer_wins_beyond_people
        The same less that of all people together.
    """

    shares: Measure
    grades: Measure
    longer_wins: Measure
    shares_beyond_people: Measure
    grades_beyond_people: Measure
    longer_wins_beyond_people: Measure


class Lengths:
    """The table of lengths, read for some of its rows against those of people."""

    def __init__(self, table: LengthSums, level: float) -> None:
        self._table, self._level = table, level
        self._people = np.flatnonzero(table.human == 1)

    def of(self, rows: Rows, *, human: bool = False) -> LengthAudit:
        """What the rows of one reviewer, or of several together, say of length."""
        return LengthAudit(
            shares=self._correlation(rows, VOTES, "n", ""),
            grades=self._correlation(rows, GRADES, "n_grades", "grade_"),
            longer_wins=self._longer(rows),
            shares_beyond_people=self._beyond(rows, VOTES, "n", "", human=human),
            grades_beyond_people=self._beyond(rows, GRADES, "n_grades", "grade_", human=human),
            longer_wins_beyond_people=self._longer_beyond(rows, human=human),
        )

    def _columns(self, rows: Rows, *names: str) -> tuple[NDArray[np.float64], ...]:
        return tuple(getattr(self._table, name)[rows] for name in names)

    def _correlation(self, rows: Rows, of: str, counted: str, prefix: str) -> Measure:
        names = (f"{prefix}ll", f"{prefix}lx", f"{prefix}xx")
        sums = per_bucket(self._table.bucket[rows], *self._columns(rows, *names))
        count = Count(getattr(self._table, counted)[rows].sum(), of, MIN_LENGTH_VOTES)
        return measured(
            sums, centred_correlation, count, "correlation", level=self._level, link="fisher"
        )

    def _beyond(self, rows: Rows, of: str, counted: str, prefix: str, *, human: bool) -> Measure:
        if human:
            return undefined(Count(0, of, MIN_LENGTH_VOTES), BEYOND, PEOPLE_THEMSELVES)
        names = (f"{prefix}ll", f"{prefix}lx", f"{prefix}xx")
        sums = beside(
            (self._table.bucket[rows], self._columns(rows, *names)),
            (self._table.bucket[self._people], self._columns(self._people, *names)),
        )
        column = getattr(self._table, counted)
        count = _fewer(column[rows].sum(), column[self._people].sum(), of, MIN_LENGTH_VOTES)
        return measured(
            sums,
            lambda held: centred_correlation(held[:, :3]) - centred_correlation(held[:, 3:]),
            count,
            BEYOND,
            level=self._level,
            sides=(slice(0, 3), slice(3, 6)),
        )

    def _longer(self, rows: Rows) -> Measure:
        sums = per_bucket(self._table.bucket[rows], *self._columns(rows, "longer", "decided"))
        count = Count(self._table.decided[rows].sum(), PAIRS, MIN_LENGTH_PAIRS)
        return rate(sums, count, level=self._level)

    def _longer_beyond(self, rows: Rows, *, human: bool) -> Measure:
        if human:
            count = Count(0, PAIRS, MIN_LENGTH_PAIRS)
            return undefined(count, "difference of shares", PEOPLE_THEMSELVES)
        sums = beside(
            (self._table.bucket[rows], self._columns(rows, "longer", "decided")),
            (self._table.bucket[self._people], self._columns(self._people, "longer", "decided")),
        )
        decided = self._table.decided
        count = _fewer(decided[rows].sum(), decided[self._people].sum(), PAIRS, MIN_LENGTH_PAIRS)
        return measured(
            sums,
            lambda held: ratio(held[:, :2]) - ratio(held[:, 2:]),
            count,
            "difference of shares",
            level=self._level,
            sides=(slice(0, 2), slice(2, 4)),
        )


def _fewer(mine: float, people: float, of: str, needed: int) -> Count:
    """The smaller of both sides: a difference is no better known than its poorer side."""
    return Count(mine, of, needed) if mine <= people else Count(people, f"{of} by people", needed)
