"""The reductions: every table of `witan.core.sums`, asked of whatever engine holds the history."""

from collections.abc import Iterator
from dataclasses import fields
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from witan.adapters.engines import grading_sql, length_sql, panel_sql, people_sql, vote_sql
from witan.adapters.engines.engine import Engine
from witan.adapters.lake.columns import key_of
from witan.core.elo_history import Match
from witan.core.sums import (
    AnswerSums,
    BallotSums,
    CalibrationSums,
    CriterionSums,
    GradingSums,
    HumanSums,
    LengthSums,
    MatchupSums,
    Names,
    PanelSums,
    PositionSums,
    ReviewerSums,
    StandingSums,
    UnitSums,
    VoteSums,
)
from witan.core.window import ALWAYS, Window

__all__ = ["Reductions"]

Table = TypeVar("Table")


class Reductions:
    """Sufficient statistics of the sessions in a window, each by one query, or one per span.

    The texts are the same on every engine. What is summed ballot by ballot is asked for span by
    span, so that no engine has to hold all sessions at once; a key may then stand in several rows.
    """

    def __init__(self, engine: Engine, window: Window = ALWAYS) -> None:
        self._engine = engine
        self._window = window

    def names(self) -> Names:
        """Every code and its name."""
        return self._engine.names()

    def standings(self, rule: str, *, human: int = 0) -> StandingSums:
        """Standings under a rule, among the ballots of one kind."""
        return self._whole(StandingSums, panel_sql.STANDINGS, rule=rule, human=human)

    def coverage(self, rule: str, *, human: int = 0) -> int:
        """How many sessions have standings under a rule, among the ballots of one kind."""
        found = self._asked(panel_sql.COVERAGE, self._window, {"rule": rule, "human": human})
        return int(found["n"][0])

    def matchups(self, *, human: int = 0) -> MatchupSums:
        """Pairs of models, among the ballots of one kind."""
        return self._whole(MatchupSums, panel_sql.MATCHUPS, human=human)

    def matches(self, *, human: int = 0) -> Iterator[Match]:
        """Pairs of models session by session in the order of time, for what depends on it.

        Sessions of one moment stand in the order of their keys, which is the same on every engine.
        """
        for span in self._engine.spans(self._window):
            found = self._asked(panel_sql.MATCHES, span, {"human": human})
            keys = _keys(found["session"])
            order = np.lexsort((found["second"], found["first"], keys, found["at_us"]))
            pairs = (found[name][order].tolist() for name in Match._fields[1:])
            yield from map(Match, keys[order].tolist(), *pairs)

    def answers(self) -> AnswerSums:
        """What answers took."""
        return self._whole(AnswerSums, panel_sql.ANSWERS)

    def panel(self) -> PanelSums:
        """Sessions and their agreement."""
        return self._whole(PanelSums, panel_sql.PANEL)

    def votes(self) -> VoteSums:
        """What each reviewer gives to each model."""
        return self._whole(VoteSums, vote_sql.VOTES)

    def ballots(self) -> BallotSums:
        """Ballots of each reviewer."""
        return self._by_span(BallotSums, vote_sql.BALLOTS)

    def reviewers(self) -> ReviewerSums:
        """Each reviewer beside the others."""
        return self._by_span(ReviewerSums, vote_sql.REVIEWERS)

    def positions(self) -> PositionSums:
        """Votes by the place on the sheet."""
        return self._by_span(PositionSums, vote_sql.POSITIONS)

    def units(self) -> UnitSums:
        """Candidates that several reviewers judged."""
        return self._by_span(UnitSums, vote_sql.UNITS)

    def lengths(self) -> LengthSums:
        """Votes beside the lengths of answers."""
        return self._by_span(LengthSums, length_sql.LENGTHS)

    def criteria(self) -> CriterionSums:
        """Grades by criterion."""
        return self._by_span(CriterionSums, length_sql.CRITERIA)

    def gradings(self) -> GradingSums:
        """Grades of each reviewer by criterion."""
        return self._by_span(GradingSums, *grading_sql.GRADINGS)

    def humans(self) -> HumanSums:
        """Reviewers beside the people who decided the same pairs."""
        return self._by_span(HumanSums, people_sql.HUMANS)

    def calibration(self) -> CalibrationSums:
        """The panel's confidence beside the people who decided the same pairs."""
        return self._by_span(CalibrationSums, people_sql.CALIBRATION)

    def _whole(self, kind: type[Table], sql: str, **params: int | str) -> Table:
        return _table(kind, [self._asked(sql, self._window, params)])

    def _by_span(self, kind: type[Table], *queries: str) -> Table:
        spans = self._engine.spans(self._window)
        return _table(kind, [self._asked(sql, span, {}) for span in spans for sql in queries])

    def _asked(
        self, sql: str, window: Window, params: dict[str, int | str]
    ) -> dict[str, NDArray[Any]]:
        conditions, bounds = _conditions(window)
        return self._engine.columns(sql.replace("{window}", conditions), {**params, **bounds})


def _keys(sessions: NDArray[Any]) -> NDArray[np.int64]:
    """Keys of sessions; a database has their names instead."""
    if sessions.dtype != object:
        return sessions.astype(np.int64, copy=False)
    known = {name: key_of(name) for name in set(sessions.tolist())}
    return np.array([known[name] for name in sessions.tolist()], dtype=np.int64)


def _conditions(window: Window) -> tuple[str, dict[str, int | str]]:
    """What a row of a counted session meets, and the parameters in it.

    An end that is open asks for nothing, so that the column need not be read.
    """
    conditions, bounds = ["simulated = 0"], dict[str, int | str]()
    if window.since is not None:
        conditions.append("at_us >= :since_us")
        bounds["since_us"] = window.since_us
    if window.until is not None:
        conditions.append("at_us < :until_us")
        bounds["until_us"] = window.until_us
    if window.category is not None:
        conditions.append("category = :category")
        bounds["category"] = window.category
    return " AND ".join(conditions), bounds


def _table(kind: type[Table], parts: list[dict[str, NDArray[Any]]]) -> Table:
    """Rows of one table or of several, its columns in their own types."""
    columns = {}
    for column in fields(kind):  # type: ignore[arg-type]
        dtype = np.float64 if column.type == NDArray[np.float64] else np.int64
        held = [np.asarray(part[column.name]).astype(dtype, copy=False) for part in parts]
        columns[column.name] = held[0] if len(held) == 1 else np.concatenate(held)
    return kind(**columns)
