"""One session of a batch, every array in seat order, while its outcome is written."""

from itertools import compress
from math import isnan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from witan.core.counted import Counted
from witan.core.interpretation import Vote
from witan.core.outcome import Unit
from witan.core.placing import effective_ballots
from witan.core.profile import Floats
from witan.core.stats.uncertainty import Uncertainty

__all__ = ["View", "known", "known_all", "known_rows"]


class View:
    """The arrays of one session, and what is read off them in more than one place."""

    def __init__(self, counted: Counted, column: int) -> None:
        self.counted, self.column = counted, column
        self.settings, self.rule = counted.settings, counted.rule
        self.electorate = counted.electorates[column]
        self.names = self.electorate.candidates
        self.profile = counted.profile.take(slice(column, column + 1))
        self.ranks = counted.placing.ranks[:, column]
        seats = np.argsort(self.ranks, kind="stable")
        self.order: list[int] = seats.tolist()
        self._seats = seats
        self.effective = self._effective()
        self.margins = counted.margins[:, :, column]
        self.votes, self.wins = counted.votes[:, column], counted.wins[:, column]
        found = counted.uncertainty(column)
        self.uncertainty: Uncertainty | None = found[0] if found is not None else None
        self.unit: Unit | None = found[1] if found is not None else None
        self.beats = (
            np.full((len(self.names), len(self.names)), np.nan)
            if self.uncertainty is None
            else self.uncertainty.p_beats()
        )
        self.score = counted.scores.score[:, column]
        self.std_error = self._std_error()
        self.barred = np.array([name in self.electorate.failed for name in self.names], dtype=bool)

    def _effective(self) -> NDArray[np.bool_]:
        """Ballots that the rule reads anything from, shape (R,); all under a rule over time."""
        if self.rule.needs == "history":
            return np.ones(len(self.electorate.votes), dtype=np.bool_)
        return effective_ballots(self.profile, self.rule)[:, 0]

    def effective_votes(self) -> list[Vote]:
        """The ballots that the rule reads anything from."""
        return list(compress(self.electorate.votes, self.effective))

    def _std_error(self) -> Floats:
        """The rule's errors; those of a fitted rule with what was borrowed or is shared."""
        held = self.counted.scores.std_error
        if held is None:
            return np.full(len(self.names), np.nan)
        if self.rule.error != "fit" or self.uncertainty is None:
            return held[:, self.column]
        fitted = self.uncertainty.std_errors()
        return np.where(np.isnan(held[:, self.column]), np.nan, fitted)

    def above(self) -> NDArray[np.bool_]:
        """Which line is above which beyond noise, in the order of the standings.

        Candidates that may not win, or that nobody voted for, are apart from those that did
        without any statistics.
        """
        if self.settings.ties == "intervals":
            low = self.score - self.settings.threshold * np.nan_to_num(self.std_error)
            high = self.score + self.settings.threshold * np.nan_to_num(self.std_error)
            if self.rule.lower_is_better:
                low, high = -high, -low
            with np.errstate(invalid="ignore"):
                apart = low[:, np.newaxis] >= high
            apart &= ~(np.isnan(self.std_error)[:, np.newaxis] | np.isnan(self.std_error))
        elif self.uncertainty is not None:
            apart = self.uncertainty.told_apart(self.settings.level, self.beats)
        else:
            apart = np.zeros((len(self.names), len(self.names)), dtype=np.bool_)
        apart &= self.ranks[:, np.newaxis] != self.ranks  # a dead heat is tied
        level = np.where(self.barred, -1, (self.votes > 0).astype(int))
        apart = np.where(level[:, np.newaxis] == level, apart, level[:, np.newaxis] > level)
        return self.in_order(apart)

    def in_order(self, matrix: NDArray[Any]) -> NDArray[Any]:
        """A matrix over candidates, shape (C, C), in the order of the standings."""
        return matrix.take(self._seats, axis=0).take(self._seats, axis=1)

    def p_best(self) -> Floats:
        """P(best); 0 for a candidate that may not win."""
        if self.uncertainty is None:
            return np.full(len(self.names), np.nan)
        best = self.uncertainty.p_best(~self.barred)
        return np.where(self.barred & np.isfinite(best).any(), 0.0, best)

    def named(self, lines: NDArray[np.bool_]) -> list[str]:
        """The candidates of the lines chosen, in the order of the standings."""
        return [self.names[self.order[line]] for line in np.flatnonzero(lines)]

    def fell_back(self) -> bool:
        """Whether the rule had nothing to score by and shows `borda` scores instead."""
        fell = self.counted.scores.fell_back
        return fell is not None and bool(fell[self.column])

    def details(self, c: int | None) -> dict[str, Any]:
        """Rule-specific numbers of one candidate, or (None) of the session."""
        found: dict[str, Any] = {}
        for name, held in self.counted.scores.details.items():
            if c is not None and held.ndim == 2 and held.shape[0] == len(self.names):
                found[name] = _plain(held[c, self.column])
            elif c is None and held.ndim == 3:
                found[name] = known_rows(self.in_order(held[:, :, self.column]))
            elif c is None and held.ndim == 1:
                found[name] = _plain(held[self.column])
        if c is not None and not np.isnan(self.score[c]):
            score, n = float(self.score[c]), len(self.names)
            found |= {name: restate(score, n) for name, restate in self.rule.restated.items()}
        return found


def known(value: Any) -> float | None:
    """A number as Python has it; None for NaN."""
    # A single-precision number is written with the digits it has.
    number = float(str(value)) if isinstance(value, np.float32) else float(value)
    return None if np.isnan(number) else number


def known_all(values: NDArray[Any]) -> list[float | None]:
    """`known` of each number of a row."""
    if values.dtype != np.float64:
        return [known(value) for value in values]
    return [None if isnan(number) else number for number in values.tolist()]


def known_rows(matrix: NDArray[Any]) -> list[list[float | None]]:
    """`known` of each number of a matrix."""
    return [known_all(row) for row in matrix]


def _plain(value: Any) -> float | int | bool | None:
    held = value.item()
    return None if isinstance(held, float) and np.isnan(held) else held
