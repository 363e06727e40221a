"""The roll-up: sums of a history that are kept ready, and brought up to date cell by cell."""

from witan.adapters.rollup.reductions import HistoryReductions
from witan.adapters.rollup.rolling import Node, mend, roll_up
from witan.adapters.rollup.whole import Summed, keep_whole

__all__ = ["HistoryReductions", "Node", "Summed", "keep_whole", "mend", "roll_up"]
