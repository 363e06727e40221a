"""Biases of votes: own answers, own family, and length."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from witan.core.stats.measures import (
    MIN_BUCKETS,
    Count,
    Measure,
    MeasureUnit,
    Side,
    centred_correlation,
    compare_correlations,
    compare_means,
    count_text,
    estimate_measure,
    join_buckets,
    lack_data,
    per_bucket,
    rate,
    undefined_measure,
)
from witan.core.stats.sums import LengthSums, VoteSums

Array = NDArray[np.float64]

MIN_VOTES = 30
"""Fewest votes for a mean: with a deviation of a third, thirty shares have an error of 6 points."""

MIN_EACH = 10
"""Fewest votes, in `MIN_BUCKETS` buckets, for another reviewer to count.

All others have equal weight, so one with few votes would distort the mean.
"""

MOST_CELLS = 1_000_000
"""Most cells (buckets × reviewers × models) in memory at once."""

MIN_OTHERS = 2
"""Fewest other reviewers to compare with; with only one, a difference may be its bias."""

Rows = NDArray[np.intp] | NDArray[np.bool_]

MIN_LENGTH_VOTES = 50
"""Fewest votes for a correlation: with fifty and no correlation, the error is .14."""

MIN_LENGTH_PAIRS = 30
"""Fewest decided pairs for a share: with thirty, the error is 9 points."""

VOTES, GRADES, PAIRS = "votes of known length", "grades of known length", "decided pairs"
BEYOND: MeasureUnit = "difference of correlations"
PEOPLE_THEMSELVES = "people are the baseline"

CONSTANT = 0.9
"""The share of flat ballots at which a reviewer is constant."""


def is_constant(flat: float, n_ballots: float) -> bool:
    """True if nine ballots in ten are flat."""
    return flat > 0 and flat >= CONSTANT * n_ballots


def withhold_preference(measure: Measure) -> Measure:
    """Withhold a constant reviewer's preference: an excess over ties means nothing."""
    if not measure.enough:
        return measure
    why = "undefined: it separates no candidates, so no preference can be measured"
    return replace(measure, value=None, interval=None, why=why)


class Preferences:
    """Mean shares between models, the basis of preference measures.

    Parameters
    ----------
    votes
        Sums of votes.
    families
        Model → family.
    level
        Level of all intervals.
    constant
        Constant reviewers, which have no preference and are not compared with others.
    """

    def __init__(
        self,
        votes: VoteSums,
        families: Mapping[int, str],
        level: float,
        constant: Collection[int] = (),
    ) -> None:
        self._families, self._level, self._constant = families, level, constant
        self._shares = _Shares(votes)

    def for_itself(self, reviewer: int) -> Measure:
        """Measure self-preference: its share for own answers minus others' shares.

        Mean share of rivals above which the reviewer places its own answers, where it was asked for
        own votes, minus the mean over the other reviewers of the mean share that each of them gives
        these answers. The others have equal weight: each leaves out its own answer, so that over
        all of them every rival occurs as often as with the reviewer itself.

        Source: Zheng et al., "Judging LLM-as-a-judge with MT-bench and Chatbot Arena", NeurIPS
        2023, section 3.3, against the mean of the other reviewers in place of people.
        """
        own = self._shares.own_part(reviewer)
        count = Count(own[:, 0].sum(), "votes on its own answers", MIN_VOTES)
        if count.n < count.needed:
            return lack_data(count, "difference of shares")
        others = [code for code in self._compared_on([reviewer]) if code != reviewer]
        if len(others) < MIN_OTHERS:
            return _too_few_others(count, len(others))
        other_shares = self._shares.part(others, [reviewer])[:, :, 0]
        sums = np.concatenate([own[:, np.newaxis], other_shares], axis=1)
        return estimate_measure(
            sums,
            _own_excess,
            count,
            "difference of shares",
            level=self._level,
            sides=[Side(slice(at, at + 1), sums[:, at, 0]) for at in range(sums.shape[1])],
        )

    def for_its_family(self, reviewer: int) -> Measure:
        r"""Measure family preference: its excess for relatives over outsiders' votes.

        With x_s(m) the mean share that reviewer s gives model m, A the models that reviewer r
        judges, and O the reviewers of other families, the excess of a relative m is

            mean over k in A of  [x_r(m) − x_r(k)] − mean over s in O, s ≠ k, of [x_s(m) − x_s(k)],

        and the measure is its mean over the relatives. On sheets of one size it is x_r(m) minus the
        share that outsiders would give m among the rivals that r sees: a plain difference x_r(m) −
        x_s(m) would be positive for every strong reviewer, whose own answer is not among the rivals
        on its own sheet.

        A model without a family is its own family; without relatives there is no measure.
        """
        family = self._families.get(reviewer)
        judged = self._shares.models_of(reviewer)
        relatives = [m for m in judged if family is not None and self._families.get(m) == family]
        relatives = [m for m in relatives if m != reviewer]
        count = Count(self._shares.votes(reviewer, relatives), "votes on its family", MIN_VOTES)
        if count.n < count.needed:
            return lack_data(count, "difference of shares")
        outside = self._compared_on(relatives)
        outside = [code for code in outside if self._families.get(code) != family]
        if len(outside) < MIN_OTHERS:
            return _too_few_others(count, len(outside))
        sums = self._shares.part([reviewer, *outside], judged)
        at = [judged.index(model) for model in relatives]
        return estimate_measure(
            sums,
            lambda means_of: _family_excess(means_of, at),
            count,
            "difference of shares",
            level=self._level,
            sides=[
                Side(at, sums[:, at, :, 0].sum(axis=(1, 2))) for at in (slice(1), slice(1, None))
            ],
        )

    def _compared_on(self, models: Sequence[int]) -> list[int]:
        return [code for code in self._shares.reviewers_of(models) if code not in self._constant]


def _too_few_others(count: Count, n: int) -> Measure:
    why = (
        f"not enough data: {count_text(n, 'other reviewers')} with {MIN_EACH} votes on the same "
        f"models in {MIN_BUCKETS} groups of sessions, {MIN_OTHERS} needed"
    )
    return undefined_measure(count, "difference of shares", why)


class _Shares:
    """Votes and totals per bucket, reviewer and model: a dense table."""

    def __init__(self, table: VoteSums) -> None:
        chosen = (table.human == 0) & (table.votes > 0)
        buckets, bucket = np.unique(table.bucket[chosen], return_inverse=True)
        reviewers, row = np.unique(table.reviewer[chosen], return_inverse=True)
        models, column = np.unique(table.model[chosen], return_inverse=True)
        # With very many models, buckets are merged: fewer groups are valid but less precise.
        n_pairs = max(1, len(reviewers) * len(models))
        groups = max(1, min(len(buckets), max(MIN_BUCKETS, MOST_CELLS // n_pairs)))
        cell = (bucket % groups) * len(reviewers) + row
        shape = (groups, len(reviewers), len(models))
        own = table.own[chosen] == 1
        columns_of = (table.votes[chosen], table.total[chosen])
        self._own = _sum_table(cell[own], [one[own] for one in columns_of], shape[:2])
        self._cells = _sum_table(
            (cell * len(models) + column)[~own], [one[~own] for one in columns_of], shape
        )
        self._votes = self._cells[..., 0].sum(axis=0)
        self._reviewers = {int(code): at for at, code in enumerate(reviewers)}
        self._models = {int(code): at for at, code in enumerate(models)}

    def own_part(self, reviewer: int) -> Array:
        """Votes and totals of a reviewer on its own answers, (B, 2)."""
        if reviewer not in self._reviewers:
            return np.zeros((0, 2))
        return self._own[:, self._reviewers[reviewer]]

    def votes(self, reviewer: int, models: Sequence[int]) -> float:
        """Votes of one reviewer on some models."""
        if reviewer not in self._reviewers:
            return 0.0
        model_rows = [self._models[code] for code in models if code in self._models]
        return float(self._votes[self._reviewers[reviewer], model_rows].sum())

    def models_of(self, reviewer: int) -> list[int]:
        """Models judged by a reviewer."""
        return [code for code in self._models if self.votes(reviewer, [code]) > 0]

    def reviewers_of(self, models: Sequence[int]) -> list[int]:
        """The reviewers with `MIN_EACH` votes in `MIN_BUCKETS` buckets on some models together."""
        enough = [code for code in self._reviewers if self.votes(code, models) >= MIN_EACH]
        known = [self._models[code] for code in models if code in self._models]
        return [code for code in enough if self._buckets(code, known) >= MIN_BUCKETS]

    def _buckets(self, reviewer: int, columns: Sequence[int]) -> int:
        received = self._cells[:, self._reviewers[reviewer], columns, 0]
        return int((received > 0).any(axis=1).sum())

    def part(self, reviewers: Sequence[int], models: Sequence[int]) -> Array:
        """Select votes and totals of reviewers on models, (B, R, M, 2)."""
        rows = [self._reviewers[code] for code in reviewers]
        columns = [self._models[code] for code in models]
        return self._cells[:, rows][:, :, columns]


def _sum_table(
    cell: NDArray[np.intp], columns_of: Sequence[Array], shape: tuple[int, ...]
) -> Array:
    """Columns of rows added up by cell, stacked on a last axis."""
    size = int(np.prod(shape))
    return np.stack(
        [np.bincount(cell, weights=column, minlength=size).reshape(shape) for column in columns_of],
        axis=-1,
    )


def _means(sums: Array) -> Array:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(sums[..., 0] > 0.5, sums[..., 1] / sums[..., 0], np.nan)


def _nan_mean(values: Array, axis: int) -> Array:
    """Mean of the non-NaN values along an axis; NaN without any."""
    known = ~np.isnan(values)
    with np.errstate(invalid="ignore"):
        mean: Array = np.where(known, values, 0.0).sum(axis=axis) / known.sum(axis=axis)
    return mean


def _own_excess(sums: Array) -> Array:
    """Subtract the others' mean of means from the first mean share.

    The shapes are (N, 1 + S, 2) → (N,).
    """
    means = _means(sums)
    return means[:, 0] - _nan_mean(means[:, 1:], axis=1)


def _family_excess(sums: Array, relatives: Sequence[int]) -> Array:
    """Average the excess of relatives.

    `Preferences` defines it; the shapes are (N, 1 + O, A, 2) → (N,).
    """
    means = _means(sums)
    known = (~np.isnan(means)).astype(np.float64)
    shares = np.where(known > 0, means, 0.0)
    # Sums over outsiders s of x_s(m) − x_s(k) and their number, as products of matrices.
    related = [totals[:, 1:, relatives].swapaxes(1, 2) for totals in (shares, known)]
    ahead = related[0] @ known[:, 1:] - related[1] @ shares[:, 1:]
    with np.errstate(divide="ignore", invalid="ignore"):
        theirs = ahead / (related[1] @ known[:, 1:])
    mine = means[:, 0, relatives, np.newaxis] - means[:, 0, np.newaxis]
    return _nan_mean(_nan_mean(mine - theirs, axis=2), axis=1)


@dataclass(frozen=True, slots=True)
class LengthAudit:
    """Relation of length to votes, with people's as baseline.

    Parameters
    ----------
    shares, grades
        Correlation of the log length of an answer with its share of rivals beaten, and with its
        grade, both centred within the ballot.
    longer_wins
        Share of pairs in which a ballot places the longer answer higher, among pairs of different
        length that it does not tie.
    shares_beyond_people, grades_beyond_people, longer_wins_beyond_people
        The same minus that of all people together.
    """

    shares: Measure
    grades: Measure
    longer_wins: Measure
    shares_beyond_people: Measure
    grades_beyond_people: Measure
    longer_wins_beyond_people: Measure


class LengthVotes:
    """Lengths and votes of some reviewers, compared with people's."""

    def __init__(self, table: LengthSums, level: float) -> None:
        self._table, self._level = table, level
        self._people = np.flatnonzero(table.human == 1)

    def of(self, rows: Rows, *, human: bool = False) -> LengthAudit:
        """Measure the relation of length for the rows of one reviewer, or of several together."""
        return LengthAudit(
            shares=self._correlation(rows, VOTES, "n", ""),
            grades=self._correlation(rows, GRADES, "n_grades", "grade_"),
            longer_wins=self._longer(rows),
            shares_beyond_people=self._excess_correlation(rows, VOTES, "n", "", human=human),
            grades_beyond_people=self._excess_correlation(
                rows, GRADES, "n_grades", "grade_", human=human
            ),
            longer_wins_beyond_people=self._excess_longer(rows, human=human),
        )

    def _columns(self, rows: Rows, *names: str) -> tuple[NDArray[np.float64], ...]:
        return tuple(getattr(self._table, name)[rows] for name in names)

    def _correlation(self, rows: Rows, of: str, count_column: str, prefix: str) -> Measure:
        names = (f"{prefix}ll", f"{prefix}lx", f"{prefix}xx")
        sums = per_bucket(self._table.bucket[rows], *self._columns(rows, *names))
        count = Count(getattr(self._table, count_column)[rows].sum(), of, MIN_LENGTH_VOTES)
        return estimate_measure(
            sums, centred_correlation, count, "correlation", level=self._level, link="fisher"
        )

    def _excess_correlation(
        self, rows: Rows, of: str, count_column: str, prefix: str, *, human: bool
    ) -> Measure:
        if human:
            return undefined_measure(Count(0, of, MIN_LENGTH_VOTES), BEYOND, PEOPLE_THEMSELVES)
        names = (f"{prefix}ll", f"{prefix}lx", f"{prefix}xx")
        sums = self._beside_people(rows, *names)
        count = self._smaller_count(rows, count_column, of, MIN_LENGTH_VOTES)
        return compare_correlations(sums, count, self._level)

    def _longer(self, rows: Rows) -> Measure:
        sums = per_bucket(self._table.bucket[rows], *self._columns(rows, "longer", "decided"))
        count = Count(self._table.decided[rows].sum(), PAIRS, MIN_LENGTH_PAIRS)
        return rate(sums, count, level=self._level)

    def _excess_longer(self, rows: Rows, *, human: bool) -> Measure:
        if human:
            count = Count(0, PAIRS, MIN_LENGTH_PAIRS)
            return undefined_measure(count, "difference of shares", PEOPLE_THEMSELVES)
        sums = self._beside_people(rows, "longer", "decided")
        count = self._smaller_count(rows, "decided", PAIRS, MIN_LENGTH_PAIRS)
        return compare_means(sums, count, "difference of shares", self._level)

    def _beside_people(self, rows: Rows, *names: str) -> Array:
        bucket, people = self._table.bucket, self._people
        return join_buckets(
            (bucket[rows], self._columns(rows, *names)),
            (bucket[people], self._columns(people, *names)),
        )

    def _smaller_count(self, rows: Rows, name: str, of: str, minimum: int) -> Count:
        n_own, n_people = (
            column.sum() for part in (rows, self._people) for column in self._columns(part, name)
        )
        if n_own <= n_people:
            return Count(n_own, of, minimum)
        return Count(n_people, f"{of} by people", minimum)
