"""One line of an audit: measures and grades of one reviewer."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Literal, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from witan.core.ballot import PEOPLE
from witan.core.stats.audit_biases import (
    MIN_OTHERS,
    MIN_VOTES,
    LengthAudit,
    LengthVotes,
    Preferences,
    is_constant,
    withhold_preference,
)
from witan.core.stats.measures import (
    Count,
    Measure,
    Side,
    centred_correlation,
    compare_correlations,
    compare_means,
    correlation,
    divide,
    divide_means,
    estimate_measure,
    join_buckets,
    lack_data,
    per_bucket,
    rate,
    ratio,
    rows_by,
    undefined_measure,
)
from witan.core.stats.sums import (
    BallotSums,
    GradingSums,
    HumanSums,
    LengthSums,
    Names,
    PositionSums,
    ReviewerSums,
)

MIN_BALLOTS = 20
"""Fewest ballots for a rate: with twenty, the error is up to 11 points."""

MIN_JUDGED = 30
"""Fewest votes shared with others for a mean difference, a slope or a correlation."""

MIN_ENDS = 30
"""Fewest votes at the first place, and at the last, for the position effect."""

MIN_BESIDE = 50
"""Fewest grades for a correlation within ballots: with fifty and none, the error is .14."""

NO_AUTHORS = "people write no answers"
ALL_OF_THEM = "all of them together are the panel"

_SUBJECT_OF_COUNT = {
    "rests": "grades beside those on other criteria",
    "lengths": "grades of known length",
}

Array = NDArray[np.float64]

Rows = NDArray[np.intp]

Flag = Literal["dead", "constant"]

Table = TypeVar("Table", PositionSums, ReviewerSums, BallotSums, LengthSums, HumanSums)

MIN_PAIRS = 30
"""Fewest pairs for a share of pairs: with thirty, the error is 9 points."""

MIN_DEAD = 3
"""Fewest ballots, all without a vote, to call a seat dead."""

MIN_CONSTANT = 10
"""Fewest ballots with a vote to call a reviewer constant."""


class Slopes:
    """Sums of some reviewers' grades and of the others', by bucket.

    Parameters
    ----------
    table
        The sums.
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

        The mean of few others is a noisy measure of an answer, which flattens all slopes alike; the
        ratio removes that. With two reviewers, each is the other's panel.
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
            sides=(
                Side(slice(at, at + 1), self._sums[:, at, 0]),
                Side(rest, self._sums[:, rest, 0].sum(axis=1)),
            ),
        )


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
    """Grades of one reviewer on one criterion, compared with its kind's.

    Parameters
    ----------
    criterion
        Its name.
    mean
        Of its grades.
    severity
        Mean of its grade minus the others' mean for the same answer; below 0 is severe.
    discrimination
        Slope of its grades on the others' means, over the same slope within all of them together.
    spread
        Its mean standard deviation of grades within a ballot, over that of all of them together.
    flat_rate
        Share of its ballots with two grades or more on which all grades are equal.
    agreement
        Correlation of its grade with the others' mean for the same answer.
    halo
        Correlation of its grade with the mean of its grades for the same answer on all other
        criteria, centred within the ballot; 1 means one impression graded under many names.
    halo_beyond_others
        `halo` minus that of the others, since an answer that is good on one criterion is often good
        on others.
    length
        Correlation of its grade with the log length of the answer, centred within the ballot.
    self_preference
        Its grade minus the others' mean: for its own answers, minus the same for other answers.
    position_effect
        Its grade minus the others' mean at the first place of the sheet, minus the same at the
        last.
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
    """Grades of all reviewers of one kind on every criterion.

    Parameters
    ----------
    table
        Sums of the grades.
    names
        Names of the criteria.
    human
        Whether they are people.
    level
        Level of all intervals.
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

        A preference for its own answers is withheld only if these, too, are graded the same.
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
        x, y, n = self._columns(part.own_rows, "x", "y", "n")
        sums = per_bucket(self._table.bucket[part.own_rows], x - y, n)
        return estimate_measure(sums, ratio, count, "grade points", level=self._level)

    def _spread(self, part: _Part) -> Measure:
        sums = self._side_by_side(part.own_rows, part.everybody, "spread", "gradings")
        return divide_means(sums, self._ballots(part), self._level)

    def _flat_rate(self, part: _Part) -> Measure:
        sums = self._sum_buckets(part.own_rows, "flat", "gradings")
        return rate(sums, self._ballots(part), level=self._level)

    def _ballots(self, part: _Part) -> Count:
        n = self._table.gradings[part.own_rows].sum()
        return Count(n, "ballots with two grades or more", MIN_BALLOTS)

    def _correlate_within(self, part: _Part, count_column: str, *names: str) -> Measure:
        n = getattr(self._table, count_column)[part.own_rows].sum()
        count = Count(n, _SUBJECT_OF_COUNT[count_column], MIN_BESIDE)
        sums = self._sum_buckets(part.own_rows, *names)
        return estimate_measure(
            sums, centred_correlation, count, "correlation", level=self._level, link="fisher"
        )

    def _excess_halo(self, part: _Part) -> Measure:
        mine, theirs = (self._table.rests[rows].sum() for rows in (part.own_rows, part.other_rows))
        count = Count(min(mine, theirs), _SUBJECT_OF_COUNT["rests"], MIN_BESIDE)
        if not part.n_others:
            return undefined_measure(count, "difference of correlations", ALL_OF_THEM)
        sums = self._side_by_side(part.own_rows, part.other_rows, "rr", "rx", "rxx")
        return compare_correlations(sums, count, self._level)

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
        sums = self._sum_buckets(part.own_rows, "own_excess", "n_own", "x", "y", "n")
        return estimate_measure(
            sums,
            lambda totals: ratio(totals[:, :2]) - _excess(totals[:, 2:]),
            count,
            "grade points",
            level=self._level,
            sides=(Side(slice(0, 2), sums[:, 1]), Side(slice(2, 5), sums[:, 4])),
        )

    def _position_effect(self, part: _Part) -> Measure:
        table = self._table
        n = min(table.n_first[part.own_rows].sum(), table.n_last[part.own_rows].sum())
        count = Count(n, "grades at the first place and at the last", MIN_ENDS)
        names = ("first_excess", "n_first", "last_excess", "n_last")
        sums = self._sum_buckets(part.own_rows, *names)
        return compare_means(sums, count, "grade points", self._level)


def _excess(sums: Array) -> Array:
    return ratio(np.stack([sums[:, 0] - sums[:, 1], sums[:, 2]], axis=1))


@dataclass(frozen=True, slots=True)
class ReviewerAudit:
    """Measures of one reviewer, with intervals and counts.

    Parameters
    ----------
    reviewer, human
        The model or person; all people together are one line named "people".
    ballots, abstentions
        Requested ballots, and those without a valid vote.
    flags
        ``dead``: three ballots or more and no vote. ``constant``: of ten ballots or more, nine in
        ten tie all candidates.
    self_preference, family_preference
        Share given to its own answers, and to those of its family, minus the share that others give
        them.
    position_effect
        Excess of a candidate's share over the others' mean at the first place of the sheet, minus
        that at the last.
    first_shown
        Share of comparisons of two that the first shown wins, a tie half.
    length
        Relation of length to its votes.
    severity
        Mean of its grade minus the others' mean for the same answer; below 0 is severe.
    discrimination
        Slope of its grades on the others' means, over the same slope within all reviewers of its
        kind together: at 1 it spreads answers as they do, at 0 it does not distinguish answers. The
        slope itself would be below 1 for every reviewer, because of the noise in the others' mean.
    spread
        Its mean standard deviation of grades within a ballot, over that of all models.
    agreement, grade_agreement
        Correlation with the others' mean for the same answer, of shares and of grades.
    agreement_with_people
        Share of the pairs decided by people on which it agrees with them, a tie counting half.
    order_consistency
        Share of the pairs seen in both orders that it judged alike.
    abstention_rate, repair_rate
        Share of all ballots.
    flat_rate
        Share of the ballots with a vote that tie all candidates.
    criteria
        How it grades on each criterion, by name.
    """

    reviewer: str
    human: bool
    ballots: int
    abstentions: int
    flags: tuple[Flag, ...]
    self_preference: Measure
    family_preference: Measure
    position_effect: Measure
    first_shown: Measure
    length: LengthAudit
    severity: Measure
    discrimination: Measure
    spread: Measure
    agreement: Measure
    grade_agreement: Measure
    agreement_with_people: Measure
    order_consistency: Measure
    abstention_rate: Measure
    repair_rate: Measure
    flat_rate: Measure
    criteria: tuple[GradingAudit, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class ReviewerTables:
    """Input tables of the reviewers' lines."""

    ballots: BallotSums
    reviewers: ReviewerSums
    positions: PositionSums
    lengths: LengthSums
    humans: HumanSums


class Reviewers:
    """Reviewers of one kind, one line each; people in one line."""

    def __init__(
        self, tables: ReviewerTables, preferences: Preferences, *, human: bool, level: float
    ) -> None:
        self._tables, self._preferences = tables, preferences
        self._human, self._level = human, level
        self._lengths = LengthVotes(tables.lengths, level)
        self._rows: dict[type, dict[int, Rows]] = {
            type(table): _group(table.reviewer, table.human == human)
            for table in (tables.ballots, tables.reviewers, tables.positions, tables.lengths)
        }
        humans = tables.humans
        self._rows[HumanSums] = _group(humans.reviewer, humans.reviewer == humans.other)
        self._panel = np.flatnonzero(tables.ballots.human == 0)
        judged = tables.reviewers
        self._slopes = Slopes(judged, self._rows[ReviewerSums], judged.n_grades)

    @property
    def codes(self) -> list[int]:
        """Codes of all reviewers with ballots cast or requested."""
        return list(self._rows[BallotSums])

    def line(self, code: int, name: str) -> ReviewerAudit:
        """Return the line of one reviewer."""
        return self._line([code], name)

    def join_people(self) -> ReviewerAudit:
        """Return one line for all people, with their votes combined."""
        return self._line(self.codes, PEOPLE)

    def _line(self, codes: list[int], name: str) -> ReviewerAudit:
        ballots = self._choose_rows(self._tables.ballots, codes)
        for_itself, for_its_family = self._preferences_of(codes)
        judged = self._choose_rows(self._tables.reviewers, codes)
        line = ReviewerAudit(
            reviewer=name,
            human=self._human,
            ballots=int(ballots.ballots.sum()),
            abstentions=int(ballots.abstained.sum()),
            flags=_flags(ballots),
            self_preference=for_itself,
            family_preference=for_its_family,
            position_effect=self._position_effect(codes),
            first_shown=self._first_place_share(codes),
            length=self._lengths.of(self._rows_of(self._tables.lengths, codes), human=self._human),
            severity=self._severity(judged),
            discrimination=self._discrimination(codes),
            spread=self._spread(ballots),
            agreement=self._correlation(judged, "share_", "n_shares", "votes"),
            grade_agreement=self._correlation(judged, "", "n_grades", "grades"),
            agreement_with_people=self._with_people(codes),
            order_consistency=self._rate(
                ballots, ballots.kept, ballots.compared, "pairs seen in both orders", MIN_PAIRS
            ),
            abstention_rate=self._rate(ballots, ballots.abstained, ballots.ballots),
            repair_rate=self._rate(ballots, ballots.repaired, ballots.ballots),
            flat_rate=self._rate(
                ballots, ballots.flat, ballots.ballots - ballots.abstained, "ballots with a vote"
            ),
        )
        return _withhold_preferences(line) if _is_constant(ballots) else line

    def _rows_of(self, table: Table, codes: list[int]) -> Rows:
        by_code = self._rows[type(table)]
        parts = [by_code[code] for code in codes if code in by_code]
        return np.concatenate(parts) if parts else np.zeros(0, dtype=np.intp)

    def _choose_rows(self, table: Table, codes: list[int]) -> Table:
        return _take_rows(table, self._rows_of(table, codes))

    def _preferences_of(self, codes: list[int]) -> tuple[Measure, Measure]:
        """Preference for its own answers, and for its family's."""
        if self._human:
            count = Count(0, "votes on their own answers", MIN_VOTES)
            none = undefined_measure(count, "difference of shares", "people write no answers")
            return none, none
        [code] = codes
        return self._preferences.for_itself(code), self._preferences.for_its_family(code)

    def _rate(
        self,
        ballots: BallotSums,
        hits: NDArray[np.int64],
        cases: NDArray[np.int64],
        of: str = "ballots",
        minimum: int = MIN_BALLOTS,
    ) -> Measure:
        count = Count(cases.sum(), of, minimum)
        return rate(per_bucket(ballots.bucket, hits, cases), count, level=self._level)

    def _position_effect(self, codes: list[int]) -> Measure:
        """Subtract the last place's mean excess from the first place's.

        Excess is the share minus the others' mean share for the same answer, so that it does not
        matter which answers were first. On sheets of two, half of the answers' difference remains;
        there the measure needs both orders.
        """
        table = self._choose_rows(self._tables.positions, codes)
        several = table.shown > 1
        first, last = several & (table.position == 1), several & (table.position == table.shown)
        sums = per_bucket(
            table.bucket,
            np.where(first, table.excess, 0.0),
            np.where(first, table.excess_votes, 0),
            np.where(last, table.excess, 0.0),
            np.where(last, table.excess_votes, 0),
        )
        n = min(table.excess_votes[first].sum(), table.excess_votes[last].sum())
        count = Count(n, "votes at the first place and at the last", MIN_ENDS)
        return compare_means(sums, count, "difference of shares", self._level)

    def _first_place_share(self, codes: list[int]) -> Measure:
        table = self._choose_rows(self._tables.positions, codes)
        first = (table.shown == 2) & (table.position == 1)
        return rate(
            per_bucket(table.bucket[first], table.total[first], table.votes[first]),
            Count(table.votes[first].sum(), "comparisons of two", MIN_PAIRS),
            level=self._level,
            opposed_pairs=True,
        )

    def _severity(self, sums: ReviewerSums) -> Measure:
        return estimate_measure(
            per_bucket(sums.bucket, sums.x - sums.y, sums.n_grades),
            ratio,
            Count(sums.n_grades.sum(), "grades", MIN_JUDGED),
            "grade points",
            level=self._level,
        )

    def _discrimination(self, codes: list[int]) -> Measure:
        judged = self._choose_rows(self._tables.reviewers, codes)
        count = Count(judged.n_grades.sum(), "grades", MIN_JUDGED)
        return self._slopes.discrimination(codes, count, self._level)

    def _spread(self, ballots: BallotSums) -> Measure:
        panel = self._tables.ballots
        sums = join_buckets(
            (ballots.bucket, (ballots.spread, ballots.gradings)),
            (panel.bucket[self._panel], (panel.spread[self._panel], panel.gradings[self._panel])),
        )
        count = Count(ballots.gradings.sum(), "ballots with grades", MIN_BALLOTS)
        return divide_means(sums, count, self._level)

    def _correlation(self, sums: ReviewerSums, prefix: str, count_column: str, of: str) -> Measure:
        names = (count_column, *(prefix + name for name in ("x", "y", "xx", "yy", "xy")))
        return estimate_measure(
            per_bucket(sums.bucket, *(getattr(sums, name) for name in names)),
            correlation,
            Count(getattr(sums, count_column).sum(), of, MIN_JUDGED),
            "correlation",
            level=self._level,
            link="fisher",
        )

    def _with_people(self, codes: list[int]) -> Measure:
        if self._human:
            count = Count(0, "pairs that people decided", MIN_PAIRS)
            return undefined_measure(count, "share", "people are the baseline")
        table = self._choose_rows(self._tables.humans, codes)
        # An opinion of +1, 0 or −1 counts as 1, ½ or 0 correct.
        right = (table.x + table.n) / 2
        count = Count(table.n.sum(), "pairs that people decided", MIN_PAIRS)
        return rate(per_bucket(table.bucket, right, table.n), count, level=self._level)


def _group(reviewer: NDArray[np.int64], mask: NDArray[np.bool_]) -> dict[int, Rows]:
    rows = np.flatnonzero(mask)
    return {code: rows[at] for code, at in rows_by(reviewer[rows]).items()}


def _flags(ballots: BallotSums) -> tuple[Flag, ...]:
    cast = int(ballots.ballots.sum())
    voted = cast - int(ballots.abstained.sum())
    flags: list[Flag] = []
    if cast >= MIN_DEAD and voted == 0:
        flags.append("dead")
    if voted >= MIN_CONSTANT and _is_constant(ballots):
        flags.append("constant")
    return tuple(flags)


def _is_constant(ballots: BallotSums) -> bool:
    return is_constant(ballots.flat.sum(), (ballots.ballots - ballots.abstained).sum())


def find_constant(ballots: BallotSums) -> frozenset[int]:
    """Find models with flat ballots in nine cases of ten."""
    of_models = _group(ballots.reviewer, ballots.human == 0)
    return frozenset(
        code for code, rows in of_models.items() if _is_constant(_take_rows(ballots, rows))
    )


def _take_rows(table: Table, rows: Rows) -> Table:
    return type(table)(**{f.name: getattr(table, f.name)[rows] for f in fields(table)})


def _withhold_preferences(line: ReviewerAudit) -> ReviewerAudit:
    return replace(
        line,
        self_preference=withhold_preference(line.self_preference),
        family_preference=withhold_preference(line.family_preference),
        position_effect=withhold_preference(line.position_effect),
        first_shown=withhold_preference(line.first_shown),
        length=replace(
            line.length,
            shares=withhold_preference(line.length.shares),
            shares_beyond_people=withhold_preference(line.length.shares_beyond_people),
        ),
    )
