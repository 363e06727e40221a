"""The roll-up: sums of a history that are kept ready, and brought up to date cell by cell."""

from witan.analytics.rollup.reductions import HistoryReductions
from witan.analytics.rollup.rolling import Node, mend, roll_up
from witan.analytics.rollup.whole import Summed, keep_whole

__all__ = ["HistoryReductions", "Node", "Summed", "keep_whole", "mend", "roll_up"]
