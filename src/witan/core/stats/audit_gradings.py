"""Grades of one reviewer on one criterion, beside those of the others."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from witan.core.stats.audit_biases import MIN_OTHERS, is_constant, withhold_preference
from witan.core.stats.measures import (
    Count,
    Measure,
    centred_correlation,
    correlation,
    estimate_measure,
    join_buckets,
    lack_data,
    per_bucket,
    rate,
    ratio,
    rows_by,
    undefined_measure,
)
from witan.core.stats.sums import GradingSums, Names, ReviewerSums

Array = NDArray[np.float64]
Rows = NDArray[np.intp]

MIN_BALLOTS = 20
"""Ballots that a rate needs: that of twenty errs by up to 11 points."""

MIN_JUDGED = 30
"""Votes beside the others' that a mean difference, a slope or a correlation needs."""

MIN_ENDS = 30
"""Votes at the first place, and at the last, that the position effect needs."""

MIN_BESIDE = 50
"""Grades that a correlation within ballots needs: that of fifty errs by .14 where there is none."""

NO_AUTHORS = "people write no answers"
ALL_OF_THEM = "all of them together are the panel"


class Slopes:
    """Sums of grades of some reviewers beside the others', by bucket.

    Parameters
    ----------
    table
        What is summed.
    rows : mapping
        Reviewer → its rows of the table.
    counts : integer array
        Grades of each row.
    """

    def __init__(
        self,
        table: ReviewerSums | GradingSums,
        rows: Mapping[int, Rows],
        counts: NDArray[np.int64],
    ) -> None:
        self._reviewers = list(rows)
        columns = (counts, table.x, table.y, table.xx, table.yy, table.xy)
        self._sums = _sum_by_reviewer(table.bucket, rows, columns)

    def discrimination(self, codes: list[int], count: Count, level: float) -> Measure:
        """Divide the slope of grades on others' means by the common slope.

        The common slope is that within all reviewers.

        The mean of few others is a noisy measure of an answer, which flattens a slope on it alike
        for all; the ratio takes that out. Two reviewers are each other's panel.
        """
        if count.n < count.needed:
            return lack_data(count, "slope")
        if len(codes) > 1:
            return undefined_measure(count, "slope", "all of them together are the panel")
        at = self._reviewers.index(codes[0])
        rest = np.delete(np.arange(len(self._reviewers)), at)
        return estimate_measure(
            self._sums,
            lambda totals: divide(_slope(totals[:, at]), _slope_within(totals)),
            count,
            "slope",
            level=level,
            sides=(slice(at, at + 1), rest),
        )


def divide(numerator: Array, denominator: Array) -> Array:
    """Divide one by the other; NaN: the other is not above 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(denominator > 0, numerator / denominator, np.nan)


def _slope(sums: Array) -> Array:
    """Least-squares slope of x on y, (N, 6) → (N,)."""
    n, x, y, _, yy, xy = np.moveaxis(sums, -1, 0)
    spread = n * yy - y * y
    with np.errstate(divide="ignore", invalid="ignore"):
        slope = (n * xy - x * y) / spread
    return np.where((spread > 1e-12 * n * yy) & (n > 1.5), slope, np.nan)


def _slope_within(sums: Array) -> Array:
    """Least-squares slope with an intercept per reviewer, (N, R, 6) → (N,)."""
    n, x, y, _, yy, xy = np.moveaxis(sums, -1, 0)
    known = np.maximum(n, 1.0)
    spread = (yy - y * y / known).sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        slope = (xy - x * y / known).sum(axis=1) / spread
    return np.where(spread > 1e-12 * yy.sum(axis=1), slope, np.nan)


def _sum_by_reviewer(
    bucket: NDArray[np.int64],
    rows: Mapping[int, Rows],
    columns: tuple[NDArray[np.float64 | np.int64], ...],
) -> Array:
    """Sums by bucket and reviewer, (B, R, K), in reviewer order."""
    chosen = np.concatenate([np.zeros(0, dtype=np.intp), *rows.values()])
    reviewer = np.repeat(np.arange(len(rows)), [len(grouped) for grouped in rows.values()])
    buckets, at = np.unique(bucket[chosen], return_inverse=True)
    sums = np.zeros((len(buckets), len(rows), len(columns)))
    for place, column in enumerate(columns):
        np.add.at(sums[..., place], (at, reviewer), column[chosen])
    return sums


@dataclass(frozen=True, slots=True)
class GradingAudit:
    """Grades of one reviewer on one criterion, beside its kind's.

    Parameters
    ----------
    criterion
        Its name.
    mean
        Of its grades.
    severity
        Mean of its grade less the others' mean for the same answer; below 0 is severe.
    discrimination
        Slope of its grades on the others' means, over the same slope within all of them together.
    spread
        Its mean standard deviation of grades within a ballot, over that of all of them together.
    flat_rate
        Of its ballots with two grades or more, those on which all are the same.
    agreement
        Correlation of its grade with the others' mean for the same answer.
    halo
        Correlation of its grade with the mean of those that it gives the same answer on all other
        criteria, centred within the ballot: 1 grades one impression under many names.
    halo_beyond_others
        The same less that of the others, for what is good in one way is often good in another.
    length
        Correlation of its grade with the log length of the answer, centred within the ballot.
    self_preference
        Its grade less the others' mean, of its own answers less of the others'.
    position_effect
        The same at the first place of the sheet, less that at the last.
    """

    criterion: str
    mean: Measure
    severity: Measure
    discrimination: Measure
    spread: Measure
    flat_rate: Measure
    agreement: Measure
    halo: Measure
    halo_beyond_others: Measure
    length: Measure
    self_preference: Measure
    position_effect: Measure


class _Graders(NamedTuple):
    """Rows of one criterion's graders, by reviewer, and their slopes."""

    rows: dict[int, Rows]
    slopes: Slopes


class _Part(NamedTuple):
    """Rows of one line, of all graders, and of the others."""

    own_rows: Rows
    everybody: Rows
    other_rows: Rows
    n_others: int


class Gradings:
    """The grades of all reviewers of one kind on every criterion.

    Parameters
    ----------
    table
        What is summed of them.
    names
        Of the criteria.
    human
        Whether they are people.
    level
        Of all intervals.
    """

    def __init__(self, table: GradingSums, names: Names, *, human: bool, level: float) -> None:
        self._table, self._human, self._level = table, human, level
        chosen = np.flatnonzero(table.human == human)
        grouped = rows_by(table.criterion[chosen])
        named = sorted((names[code], code) for code in grouped)
        self._graders = [(name, self._group_rows(chosen[grouped[code]])) for name, code in named]

    def _group_rows(self, rows: Rows) -> _Graders:
        grouped = {code: rows[at] for code, at in rows_by(self._table.reviewer[rows]).items()}
        return _Graders(grouped, Slopes(self._table, grouped, self._table.n))

    def of(self, codes: list[int]) -> tuple[GradingAudit, ...]:
        """Audit some reviewers together, criterion by criterion, by name."""
        return tuple(
            self._audit(name, graders, known)
            for name, graders in self._graders
            if (known := [code for code in codes if code in graders.rows])
        )

    def _audit(self, criterion: str, graders: _Graders, codes: list[int]) -> GradingAudit:
        rows_of_others = [rows for code, rows in graders.rows.items() if code not in codes]
        mine = np.concatenate([graders.rows[code] for code in codes])
        apart = np.concatenate([np.zeros(0, dtype=np.intp), *rows_of_others])
        part = _Part(mine, np.concatenate([mine, apart]), apart, len(rows_of_others))
        judged = Count(self._table.n[mine].sum(), "grades", MIN_JUDGED)
        return GradingAudit(
            criterion=criterion,
            mean=self._mean(part),
            severity=self._severity(part, judged),
            discrimination=graders.slopes.discrimination(codes, judged, self._level),
            spread=self._spread(part),
            flat_rate=self._flat_rate(part),
            agreement=estimate_measure(
                self._sum_buckets(mine, "n", "x", "y", "xx", "yy", "xy"),
                correlation, judged, "correlation", level=self._level, link="fisher",
            ),
            halo=self._correlate_within(part, "rests", "rr", "rx", "rxx"),
            halo_beyond_others=self._excess_halo(part),
            length=self._correlate_within(part, "lengths", "ll", "lx", "lxx"),
            self_preference=self._unless_constant(part, self._for_itself(part), is_own=True),
            position_effect=self._unless_constant(part, self._position_effect(part)),
        )  # fmt: skip

    def _unless_constant(self, part: _Part, measure: Measure, *, is_own: bool = False) -> Measure:
        """Return a preference, unless the reviewer grades everything the same.

        For its preference of its own answers, these have to be graded the same too.
        """
        flat, gradings, total, grades, own_total, n_own = (
            float(column.sum())
            for column in self._columns(
                part.own_rows, "flat", "gradings", "total", "grades", "own_total", "n_own"
            )
        )
        alike = not is_own or np.isclose(own_total * grades, total * n_own, rtol=1e-9)
        return withhold_preference(measure) if is_constant(flat, gradings) and alike else measure

    def _columns(self, rows: Rows, *names: str) -> tuple[Array, ...]:
        return tuple(getattr(self._table, name)[rows] for name in names)

    def _sum_buckets(self, rows: Rows, *names: str) -> Array:
        return per_bucket(self._table.bucket[rows], *self._columns(rows, *names))

    def _side_by_side(self, one: Rows, other: Rows, *names: str) -> Array:
        bucket = self._table.bucket
        return join_buckets(
            (bucket[one], self._columns(one, *names)),
            (bucket[other], self._columns(other, *names)),
        )

    def _mean(self, part: _Part) -> Measure:
        count = Count(self._table.grades[part.own_rows].sum(), "grades", MIN_JUDGED)
        sums = self._sum_buckets(part.own_rows, "total", "grades")
        return estimate_measure(sums, ratio, count, "grade", level=self._level)

    def _severity(self, part: _Part, count: Count) -> Measure:
        sums = self._sum_buckets(part.own_rows, "x", "y", "n")
        return estimate_measure(sums, _excess, count, "grade points", level=self._level)

    def _spread(self, part: _Part) -> Measure:
        return estimate_measure(
            self._side_by_side(part.own_rows, part.everybody, "spread", "gradings"),
            lambda totals: divide(ratio(totals[:, :2]), ratio(totals[:, 2:])),
            self._ballots(part),
            "ratio",
            level=self._level,
            link="log",
            sides=(slice(0, 2), slice(2, 4)),
        )

    def _flat_rate(self, part: _Part) -> Measure:
        sums = self._sum_buckets(part.own_rows, "flat", "gradings")
        return rate(sums, self._ballots(part), level=self._level)

    def _ballots(self, part: _Part) -> Count:
        n = self._table.gradings[part.own_rows].sum()
        return Count(n, "ballots with two grades or more", MIN_BALLOTS)

    def _correlate_within(self, part: _Part, count_column: str, *names: str) -> Measure:
        """Correlate values centred within ballots."""
        count = Count(
            getattr(self._table, count_column)[part.own_rows].sum(),
            _SUBJECT_OF_COUNT[count_column],
            MIN_BESIDE,
        )
        sums = self._sum_buckets(part.own_rows, *names)
        return estimate_measure(
            sums, centred_correlation, count, "correlation", level=self._level, link="fisher"
        )

    def _excess_halo(self, part: _Part) -> Measure:
        mine, theirs = (self._table.rests[rows].sum() for rows in (part.own_rows, part.other_rows))
        count = Count(min(mine, theirs), _SUBJECT_OF_COUNT["rests"], MIN_BESIDE)
        if not part.n_others:
            return undefined_measure(count, "difference of correlations", ALL_OF_THEM)
        return estimate_measure(
            self._side_by_side(part.own_rows, part.other_rows, "rr", "rx", "rxx"),
            lambda totals: centred_correlation(totals[:, :3]) - centred_correlation(totals[:, 3:]),
            count,
            "difference of correlations",
            level=self._level,
            sides=(slice(0, 3), slice(3, 6)),
        )

    def _for_itself(self, part: _Part) -> Measure:
        count = Count(
            self._table.n_own[part.own_rows].sum(), "grades of its own answers", MIN_JUDGED
        )
        if self._human:
            return undefined_measure(count, "grade points", NO_AUTHORS)
        if count.n < count.needed:
            return lack_data(count, "grade points")
        if part.n_others < MIN_OTHERS:
            why = f"not enough data: a single other reviewer, {MIN_OTHERS} needed"
            return undefined_measure(count, "grade points", why)
        return estimate_measure(
            self._sum_buckets(part.own_rows, "own_excess", "n_own", "x", "y", "n"),
            lambda totals: ratio(totals[:, :2]) - _excess(totals[:, 2:]),
            count,
            "grade points",
            level=self._level,
            sides=(slice(0, 2), slice(2, 5)),
        )

    def _position_effect(self, part: _Part) -> Measure:
        table = self._table
        n = min(table.n_first[part.own_rows].sum(), table.n_last[part.own_rows].sum())
        return estimate_measure(
            self._sum_buckets(part.own_rows, "first_excess", "n_first", "last_excess", "n_last"),
            lambda totals: ratio(totals[:, :2]) - ratio(totals[:, 2:]),
            Count(n, "grades at the first place and at the last", MIN_ENDS),
            "grade points",
            level=self._level,
            sides=(slice(0, 2), slice(2, 4)),
        )


_SUBJECT_OF_COUNT = {
    "rests": "grades beside those on other criteria",
    "lengths": "grades of known length",
}


def _excess(sums: Array) -> Array:
    return ratio(np.stack([sums[:, 0] - sums[:, 1], sums[:, 2]], axis=1))
