"""From numbers to places on a plot, in percent, so that a plot fits whatever it stands in."""

from collections.abc import Iterable
from dataclasses import dataclass

from witan.core.outcome import Interval

SCORES = {
    "borda": "Borda score: share of rivals beaten",
    "weighted_borda": "Weighted Borda score: share of rivals beaten",
    "mean_rank": "Mean rank",
    "hybrid": "Hybrid of Borda score and mean grade",
    "range": "Mean grade",
    "normalized_scores": "Mean standardised grade, z",
    "calibrated": "Calibrated grade, in points from the mean",
    "tournament": "Share of matchups won",
    "schulze": "Share of rivals that do not beat it (Schulze)",
    "ranked_pairs": "Share of rivals that do not beat it (ranked pairs)",
    "kemeny": "Minus the mean place (Kemeny)",
    "irv": "Place in the order of elimination",
    "bradley_terry": "Bradley–Terry strength, log-odds",
    "plackett_luce": "Plackett–Luce worth, log-odds",
    "elo": "Elo rating",
}
"""What the score of each rule is, for the axis; other rules are called by their name."""

SHADES = ((0.95, 1), (0.8, 2), (0.65, 3), (0.5, 4))
"""Shares from which a square of a grid has a shade."""

MARGIN = 3.0
"""Percent of the plot left free at both ends, so that no dot is cut."""


def shade(share: float | None) -> int:
    """Shade a square of a grid: 1 for nearly 1, 5 for less than a half or unknown."""
    if share is None:
        return 5
    return next((shade for least, shade in SHADES if share >= least), 5)


@dataclass(frozen=True, slots=True)
class Dot:
    """A score and its interval, in percent of the plot's width.

    Parameters
    ----------
    start, width
        Of the interval; None: there is none.
    """

    at: float
    start: float | None
    width: float | None


@dataclass(frozen=True, slots=True)
class AxisScale:
    """From numbers to percent of the width; worse is left.

    Parameters
    ----------
    turned
        Lower is better.
    """

    low: float
    high: float
    turned: bool = False

    @classmethod
    def over(
        cls, numbers: Iterable[tuple[float | None, Interval | None]], *, turned: bool = False
    ) -> "AxisScale":
        """Return the scale that holds all of these, and their intervals."""
        values: list[float] = []
        for value, interval in numbers:
            values += [] if value is None else [value]
            values += [] if interval is None else [interval.low, interval.high]
        low, high = min(values, default=0.0), max(values, default=1.0)
        if low == high:
            low, high = low - 0.5, high + 0.5
        return cls(low, high, turned)

    @property
    def ends(self) -> tuple[float, float]:
        """Values at the left and the right end."""
        return (self.high, self.low) if self.turned else (self.low, self.high)

    def percent(self, value: float) -> float:
        """Convert a number to percent of the width."""
        share = (value - self.low) / (self.high - self.low)
        return round(MARGIN + (100 - 2 * MARGIN) * (1 - share if self.turned else share), 2)

    def down(self, value: float) -> float:
        """Convert a number to percent from the top, the better the higher."""
        return round(100 - self.percent(value), 2)

    def dot(self, value: float | None, interval: Interval | None) -> Dot | None:
        """Place a number and its interval; None: there is none."""
        if value is None:
            return None
        if interval is None:
            return Dot(self.percent(value), None, None)
        ends = sorted(map(self.percent, (interval.low, interval.high)))
        return Dot(self.percent(value), ends[0], round(ends[1] - ends[0], 2))
