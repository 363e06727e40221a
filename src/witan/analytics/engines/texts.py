"""Which query fills which table: one may fill several, and a table may take several."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from witan.analytics.engines import grading_sql, length_sql, panel_sql, people_sql, vote_sql
from witan.analytics.engines.adding import KEYS
from witan.analytics.engines.engine import Columns
from witan.core.stats import sums

__all__ = ["Text", "texts_of"]

Taking = Callable[[Columns], Columns]
"""What a table takes of the columns that a query finds."""


def _all(found: Columns) -> Columns:
    return found


def _some(*columns: str, kept: str = "") -> Taking:
    """These columns of the rows in which a count is not nought; by default the first of them."""

    def taken(found: Columns) -> Columns:
        rows = np.asarray(found[kept or columns[0]]) > 0
        wanted = KEYS.intersection(found).union(columns)
        return {name: np.asarray(found[name])[rows] for name in wanted}

    return taken


def _overall(found: Columns, counted: str, columns: Mapping[str, str]) -> Columns:
    """Of models' grades as a whole: they stand under the criterion −1."""
    rows = (np.asarray(found["human"]) == 0) & (np.asarray(found[counted]) > 0)
    held = {name: np.asarray(found[of])[rows] for name, of in columns.items()}
    bucket = np.asarray(found["bucket"])[rows]
    return {**held, "bucket": bucket, "criterion": np.full(len(bucket), -1)}


def _overall_lengths(found: Columns) -> Columns:
    columns = {"lengths": "n_grades", "ll": "grade_ll", "lx": "grade_lx", "xx": "grade_xx"}
    return _overall(found, "n_grades", columns)


def _overall_units(found: Columns) -> Columns:
    columns = {name: f"any_grade_{name}" for name in ("units", "n", "variance")}
    return _overall(found, "any_grade_units", columns)


def _units(found: Columns) -> Columns:
    """Candidates by what they were given: shares under the measure 0, grades under 1."""
    parts = list[Columns]()
    for measure, given in enumerate(("share", "grade")):
        rows = np.asarray(found[f"{given}_units"]) > 0
        names = {name: f"{given}_{name}" for name in ("units", "n", "total", "squares", "within")}
        held = {name: np.asarray(found[of])[rows] for name, of in names.items()}
        keys = {name: np.asarray(found[name])[rows] for name in ("bucket", "human")}
        parts.append({**keys, **held, "measure": np.full(int(rows.sum()), measure)})
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _placed(found: Columns) -> Columns:
    """Votes whose place on the sheet is known."""
    taken = _some("votes", "total", "excess_votes", "excess")(found)
    known = np.asarray(taken["position"]) > 0
    return {name: column[known] for name, column in taken.items()}


@dataclass(frozen=True, slots=True)
class Text:
    """A query: what each table takes of it, its parameters, and whether it is asked by span."""

    sql: str
    fills: Mapping[type[Any], Taking]
    params: tuple[str, ...] = ()
    by_span: bool = True


_GRADES = ("n_grades", "x", "y", "xx", "yy", "xy")
_SHARES = ("n_shares", "share_x", "share_y", "share_xx", "share_yy", "share_xy")


def _compared(found: Columns) -> Columns:
    """Reviewers that voted where others did."""
    counts = np.asarray(found["n_grades"]) + np.asarray(found["n_shares"])
    return _some(*_GRADES, *_SHARES, kept="compared")({**found, "compared": counts})


_TEXTS = (
    Text(panel_sql.STANDINGS, {sums.StandingSums: _all}, ("rule", "human"), by_span=False),
    Text(panel_sql.MATCHUPS, {sums.MatchupSums: _all}, ("human",), by_span=False),
    Text(panel_sql.ANSWERS, {sums.AnswerSums: _all}, by_span=False),
    Text(panel_sql.PANEL, {sums.PanelSums: _all}, by_span=False),
    Text(vote_sql.VOTES, {sums.VoteSums: _all}, by_span=False),
    Text(vote_sql.BALLOTS, {sums.BallotSums: _all}),
    Text(
        length_sql.SHEETS,
        {
            sums.BallotSums: _some("gradings", "spread"),
            sums.LengthSums: _some(
                *("ballots", "n", "ll", "lx", "xx"),
                *("n_grades", "grade_ll", "grade_lx", "grade_xx"),
                kept="measured",
            ),
            sums.CriterionSums: _overall_lengths,
        },
    ),
    Text(length_sql.PAIRS, {sums.LengthSums: _all}),
    Text(vote_sql.BESIDE, {sums.ReviewerSums: _compared, sums.PositionSums: _placed}),
    Text(vote_sql.UNITS, {sums.UnitSums: _units, sums.CriterionSums: _overall_units}),
    Text(length_sql.CRITERIA, {sums.CriterionSums: _all}),
    *(Text(sql, {sums.GradingSums: _all}) for sql in grading_sql.GRADINGS),
    Text(people_sql.HUMANS, {sums.HumanSums: _all}),
    Text(people_sql.CALIBRATION, {sums.CalibrationSums: _all}),
)


def texts_of(kinds: Collection[type[Any]]) -> tuple[Text, ...]:
    """The queries that fill any of these tables, each once."""
    return tuple(text for text in _TEXTS if not text.fills.keys().isdisjoint(kinds))
