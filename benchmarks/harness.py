"""Timing shared by the benchmarks: CPU seconds, peak memory, and ratios side by side.

Absolute times mean nothing on a shared machine; each benchmark runs Witan and its peers in turn
within one process and prints their ratio.
"""

import gc
import statistics
import time
import tracemalloc
from collections.abc import Callable, Sequence
from dataclasses import dataclass

__all__ = ["Row", "cpu_seconds", "cpu_seconds_in_turn", "peak_bytes", "show"]


@dataclass(frozen=True, slots=True)
class Row:
    """One measured line: a figure, what it must be, and whether it is; None: nothing is asked."""

    what: str
    figure: str
    target: str
    met: bool | None


def cpu_seconds(call: Callable[[], object], *, times: int = 3) -> float:
    """Return the median CPU seconds of `times` calls, collector off, after one warm-up call."""
    call()
    taken = []
    gc.disable()
    try:
        for _ in range(times):
            start = time.process_time()
            call()
            taken.append(time.process_time() - start)
    finally:
        gc.enable()
    return statistics.median(taken)


def cpu_seconds_in_turn(*calls: Callable[[], object], rounds: int = 5) -> list[float]:
    """Return the least CPU seconds of each call, one after the other in every round."""
    taken = [[cpu_seconds(call, times=1) for call in calls] for _ in range(rounds)]
    return [min(of_one) for of_one in zip(*taken, strict=True)]


def peak_bytes(call: Callable[[], object]) -> int:
    """Return the most bytes that were allocated at once during the call, result included."""
    gc.collect()
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def show(title: str, rows: Sequence[Row]) -> None:
    """Print one table to standard output."""
    print(f"\n{title}")
    width = max(len(row.what) for row in rows)
    for row in rows:
        mark = "not judged" if row.met is None else "met" if row.met else "NOT MET"
        print(f"  {row.what:<{width}}  {row.figure:>24}   target {row.target:<16} {mark}")
