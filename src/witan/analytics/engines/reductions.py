"""The reductions: every table of `witan.core.sums`, asked of whatever engine holds the history."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from witan.analytics.engines import panel_sql
from witan.analytics.engines.adding import Adding, Columns
from witan.analytics.engines.engine import Engine, Query
from witan.analytics.engines.texts import Text, texts_of
from witan.analytics.lake.columns import key_of
from witan.core.rules.elo import Match
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

__all__ = ["Found", "Reductions"]

Table = TypeVar("Table")


class Found:
    """Tables by their kinds."""

    def __init__(self, tables: Iterable[Any]) -> None:
        self._of = {type(table): table for table in tables}

    def __getitem__(self, kind: type[Table]) -> Table:
        found: Table = self._of[kind]
        return found


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

    def tables(self, *kinds: type[Any], rule: str = "", human: int = 0) -> Found:
        """Several tables, which an engine may sum side by side and from the same rows.

        Parameters
        ----------
        kinds
            Tables of `witan.core.sums`.
        rule
            Of the standings.
        human
            Whose ballots are behind standings and matchups: 1 for those of people.
        """
        given: dict[str, int | str] = {"rule": rule, "human": human}
        texts = texts_of(kinds)
        asked = [(text, query) for text in texts for query in self._queries(text, given)]
        adding = {kind: Adding(kind) for kind in kinds}
        answers = self._engine.several(query for _, query in asked)
        for (text, _), found in zip(asked, answers, strict=True):
            self._check(found)
            for kind, taking in text.fills.items():
                if kind in adding:
                    adding[kind].add(taking(found))
        return Found(one.table() for one in adding.values())

    def standings(self, rule: str, *, human: int = 0) -> StandingSums:
        """Standings under a rule, among the ballots of one kind."""
        return self.tables(StandingSums, rule=rule, human=human)[StandingSums]

    def twice(self, now: Mapping[int, int], rule: str, *, human: int = 0) -> StandingSums:
        """What to add to standings so that sessions of several codes of a model count once.

        Such a session then has one score, the mean of theirs, and one standing. Every session that
        has two of them is asked for.

        Parameters
        ----------
        now
            Codes of models that had another name, and of those they are now, to the latter.
        """
        cases = " ".join(f"WHEN {int(old)} THEN {int(new)}" for old, new in sorted(now.items()))
        sql = panel_sql.TWICE.replace("{now}", f"CASE model {cases} END")
        sql = sql.replace("{codes}", ", ".join(str(int(code)) for code in sorted(now)))
        adding = Adding(StandingSums)
        for span in self._engine.spans(self._window):
            adding.add(self._asked(sql, span, {"rule": rule, "human": human}))
        return adding.table()

    def coverage(self, rule: str, *, human: int = 0) -> int:
        """How many sessions have standings under a rule, among the ballots of one kind."""
        found = self._asked(panel_sql.COVERAGE, self._window, {"rule": rule, "human": human})
        return int(found["n"][0])

    def matchups(self, *, human: int = 0) -> MatchupSums:
        """Pairs of models, among the ballots of one kind."""
        return self.tables(MatchupSums, human=human)[MatchupSums]

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
        return self.tables(AnswerSums)[AnswerSums]

    def panel(self) -> PanelSums:
        """Sessions and their agreement."""
        return self.tables(PanelSums)[PanelSums]

    def votes(self) -> VoteSums:
        """What each reviewer gives to each model."""
        return self.tables(VoteSums)[VoteSums]

    def ballots(self) -> BallotSums:
        """Ballots of each reviewer."""
        return self.tables(BallotSums)[BallotSums]

    def reviewers(self) -> ReviewerSums:
        """Each reviewer beside the others."""
        return self.tables(ReviewerSums)[ReviewerSums]

    def positions(self) -> PositionSums:
        """Votes by the place on the sheet."""
        return self.tables(PositionSums)[PositionSums]

    def units(self) -> UnitSums:
        """Candidates that several reviewers judged."""
        return self.tables(UnitSums)[UnitSums]

    def lengths(self) -> LengthSums:
        """Votes beside the lengths of answers."""
        return self.tables(LengthSums)[LengthSums]

    def criteria(self) -> CriterionSums:
        """Grades by criterion."""
        return self.tables(CriterionSums)[CriterionSums]

    def gradings(self) -> GradingSums:
        """Grades of each reviewer by criterion."""
        return self.tables(GradingSums)[GradingSums]

    def humans(self) -> HumanSums:
        """Reviewers beside the people who decided the same pairs."""
        return self.tables(HumanSums)[HumanSums]

    def calibration(self) -> CalibrationSums:
        """The panel's confidence beside the people who decided the same pairs."""
        return self.tables(CalibrationSums)[CalibrationSums]

    def _queries(self, text: Text, given: Mapping[str, int | str]) -> Iterator[Query]:
        spans = self._engine.spans(self._window) if text.by_span else (self._window,)
        for span in spans:
            yield _query(text.sql, span, {name: given[name] for name in text.params})

    def _asked(
        self, sql: str, window: Window, params: dict[str, int | str]
    ) -> dict[str, NDArray[Any]]:
        found = self._engine.columns(*_query(sql, window, params))
        self._check(found)
        return found

    def _check(self, found: Columns) -> None:
        """Refuse what cannot be true of what was found."""


def _query(sql: str, window: Window, params: dict[str, int | str]) -> Query:
    conditions, bounds = _conditions(window)
    return Query(sql.replace("{window}", conditions), {**params, **bounds})


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
