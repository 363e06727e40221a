"""Reductions: the tables of sums, from whatever engine holds the history."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from witan.analytics.engines import panel_sql
from witan.analytics.engines.adding import Adding
from witan.analytics.engines.engine import Engine, SumQuery
from witan.analytics.engines.texts import texts_of
from witan.analytics.lake.columns import key_of
from witan.core.rules.elo import Match
from witan.core.stats.sums import (
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
            Tables of `witan.core.stats.sums`.
        rule
            Of the standings.
        human
            Whose ballots are behind standings and matchups: 1 for those of people.
        """
        given: dict[str, int | str] = {"rule": rule, "human": human}
        texts = texts_of(kinds)
        queries = [
            SumQuery(text.sql, {name: given[name] for name in text.params}, text.by_span)
            for text in texts
        ]
        adding = {kind: Adding(kind) for kind in kinds}
        for number, found in self._engine.sums(queries, self._window):
            for kind, taking in texts[number].fills.items():
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
        query = SumQuery(sql, {"rule": rule, "human": human})
        for _, found in self._engine.sums([query], self._window):
            adding.add(found)
        return adding.table()

    def coverage(self, rule: str, *, human: int = 0) -> int:
        """How many sessions have standings under a rule, among the ballots of one kind."""
        return self._count(SumQuery(panel_sql.COVERAGE, {"rule": rule, "human": human}, False))

    def uncounted(self, rule: str) -> int:
        """How many sessions of a history have ballots that were never counted under a rule."""
        return self._count(SumQuery(panel_sql.UNCOUNTED, {"rule": rule}))

    def _count(self, query: SumQuery) -> int:
        found = self._engine.sums([query], self._window)
        return sum(int(columns["n"].sum()) for _, columns in found)

    def matchups(self, *, human: int = 0) -> MatchupSums:
        """Pairs of models, among the ballots of one kind."""
        return self.tables(MatchupSums, human=human)[MatchupSums]

    def matches(self, *, human: int = 0) -> Iterator[Match]:
        """Pairs of models session by session in the order of time, for what depends on it.

        Sessions of one moment stand in the order of their keys, which is the same on every engine.
        """
        query = SumQuery(panel_sql.MATCHES, {"human": human})
        for span in self._engine.spans(self._window):
            found = self._engine.columns(*query.within(span))
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


def _keys(sessions: NDArray[Any]) -> NDArray[np.int64]:
    """Keys of sessions; a database has their names instead."""
    if sessions.dtype != object:
        return sessions.astype(np.int64, copy=False)
    known = {name: key_of(name) for name in set(sessions.tolist())}
    return np.array([known[name] for name in sessions.tolist()], dtype=np.int64)
