"""One line of an audit: one reviewer's measures, or all people's."""

from dataclasses import dataclass, fields, replace
from typing import Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from witan.core.stats.audit_biases import (
    MIN_VOTES,
    LengthAudit,
    LengthVotes,
    Preferences,
    is_constant,
    withhold_preference,
)
from witan.core.stats.audit_gradings import (
    MIN_BALLOTS,
    MIN_ENDS,
    MIN_JUDGED,
    GradingAudit,
    Slopes,
    divide,
)
from witan.core.stats.measures import (
    Count,
    Measure,
    MeasureUnit,
    correlation,
    estimate_measure,
    join_buckets,
    per_bucket,
    rate,
    ratio,
    rows_by,
    undefined_measure,
)
from witan.core.stats.sums import BallotSums, HumanSums, LengthSums, PositionSums, ReviewerSums

Array = NDArray[np.float64]
Rows = NDArray[np.intp]
Flag = Literal["dead", "constant"]
Table = TypeVar("Table", PositionSums, ReviewerSums, BallotSums, LengthSums, HumanSums)

MIN_PAIRS = 30
"""Pairs that a share of pairs needs: that of thirty errs by 9 points."""

MIN_DEAD = 3
"""Ballots, all without a vote, that show a dead seat rather than a bad moment."""

MIN_CONSTANT = 10
"""Ballots with a vote from which a reviewer may be called constant."""


@dataclass(frozen=True, slots=True)
class ReviewerAudit:
    """Measures of one reviewer, with intervals and counts.

    Parameters
    ----------
    reviewer, human
        The model or person; all people together are one line of the name "people".
    ballots, abstentions
        What it was asked for, and how many cast no valid ballot.
    flags
        ``dead``: three ballots or more and never a vote. ``constant``: nine in ten of ten ballots
        or more tell no candidate apart.
    self_preference, family_preference
        Share given to its own answers, and to those of its family, beyond what the others give.
    position_effect
        Excess of a candidate's share over the others' mean at the first place of the sheet, less
        that at the last.
    first_shown
        Share of comparisons of two that the first shown wins, a tie half.
    length
        Length beside its votes.
    severity
        Mean of its grade less the others' mean for the same answer; below 0 is severe.
    discrimination
        Slope of its grades on the others' means, over the same slope within all reviewers of its
        kind together: 1 spreads answers as they do, 0 tells nothing apart. The slope itself would
        fall short of 1 for everybody, by the noise in the others' mean.
    spread
        Its mean standard deviation of grades within a ballot, over that of all models.
    agreement, grade_agreement
        Correlation with the others' mean for the same answer, of shares and of grades.
    agreement_with_people
        Share of the pairs that people decided in which it sides with them, a tie half.
    order_consistency
        Share of the pairs seen in both orders that it judged alike.
    abstention_rate, repair_rate
        Of all ballots.
    flat_rate
        Of the ballots with a vote, those that tell no candidate apart.
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
        """Codes of all reviewers with ballots cast or due."""
        return list(self._rows[BallotSums])

    def line(self, code: int, name: str) -> ReviewerAudit:
        """The line of one reviewer."""
        return self._line([code], name)

    def join_people(self, name: str) -> ReviewerAudit:
        """One line of all people, their votes put together."""
        return self._line(self.codes, name)

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
            agreement=self._agreement(judged, "share_", "n_shares", "votes"),
            grade_agreement=self._agreement(judged, "", "n_grades", "grades"),
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

        Excess is share less the others' mean share for the same answer, so that it does not
        matter which answers stood first. On sheets of two, half of their difference does; there
        the measure needs both orders.
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
        return estimate_measure(
            sums,
            lambda totals: ratio(totals[:, :2]) - ratio(totals[:, 2:]),
            Count(n, "votes at the first place and at the last", MIN_ENDS),
            "difference of shares",
            level=self._level,
            sides=(slice(0, 2), slice(2, 4)),
        )

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
        return estimate_measure(
            sums,
            lambda totals: divide(ratio(totals[:, :2]), ratio(totals[:, 2:])),
            Count(ballots.gradings.sum(), "ballots with grades", MIN_BALLOTS),
            "ratio",
            level=self._level,
            link="log",
            sides=(slice(0, 2), slice(2, 4)),
        )

    def _agreement(self, sums: ReviewerSums, prefix: str, count_column: str, of: str) -> Measure:
        names = (count_column, *(prefix + name for name in ("x", "y", "xx", "yy", "xy")))
        unit: MeasureUnit = "correlation"
        return estimate_measure(
            per_bucket(sums.bucket, *(getattr(sums, name) for name in names)),
            correlation,
            Count(getattr(sums, count_column).sum(), of, MIN_JUDGED),
            unit,
            level=self._level,
            link="fisher",
        )

    def _with_people(self, codes: list[int]) -> Measure:
        if self._human:
            count = Count(0, "pairs that people decided", MIN_PAIRS)
            return undefined_measure(count, "share", "people are the baseline")
        table = self._choose_rows(self._tables.humans, codes)
        # An opinion of +1, 0 or −1 is a whole, half or no case of being right.
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
