"""Count sessions, in one block if they end together."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import anyio

from witan.core.ballot import Ballot
from witan.core.outcome import Outcome
from witan.core.settings import AUTO, Settings
from witan.core.stats.priors import MIN_HISTORY
from witan.core.tally import tally_columns
from witan.errors import UnsuitableBallots

GATHER_SECONDS = 0.05
"""Seconds within which sessions that end are counted together."""

MOST_AT_ONCE = MIN_HISTORY - 1
"""Most sessions counted together: too few to learn anything across them."""


class _Count:
    """One session to count, with its outcome or error."""

    def __init__(self, ballots: Sequence[Ballot], settings: Settings) -> None:
        self.ballots, self.settings = ballots, settings
        self.outcome: Outcome | None = None
        self.ready = anyio.Event()


class CountQueue:
    """Counter of a council's sessions.

    A session with one candidate may wait a moment for others: its outcome is the same to the last
    digit, alone or in a block. With several candidates it may differ.
    """

    def __init__(self) -> None:
        self._n_running = 0
        self._queue: list[_Count] = []

    @contextmanager
    def running(self) -> Iterator[None]:
        """Mark a session as running for the block."""
        self._n_running += 1
        try:
            yield
        finally:
            self._n_running -= 1

    async def count(self, ballots: Sequence[Ballot], settings: Settings, *, wait: bool) -> Outcome:
        """Count one session.

        `wait`: true if it may wait a moment for others, having one candidate.

        Raises `UnsuitableBallots` if its rule cannot count it.
        """
        # Undeclared scales are detected over all ballots that are counted together.
        is_declared = all(ballot.scale is not None or not ballot.grades for ballot in ballots)
        if not (wait and is_declared and self._n_running > 1 and settings.rule == AUTO):
            return _count_alone(ballots, settings)
        item = _Count(ballots, settings)
        self._queue.append(item)
        if len(self._queue) > 1:
            await item.ready.wait()
        else:
            try:
                await anyio.sleep(GATHER_SECONDS)
            finally:  # others are counted even if this session is cancelled
                queue, self._queue = self._queue, []
                try:
                    _count_together(queue)
                finally:
                    for each in queue:
                        each.ready.set()
        return item.outcome or _count_alone(ballots, settings)


def _count_alone(ballots: Sequence[Ballot], settings: Settings) -> Outcome:
    [(batch, column)] = tally_columns(ballots, settings)
    return batch.defer(column)


def _count_together(queue: Sequence[_Count]) -> None:
    """Count sessions of equal settings in blocks, as far as possible."""
    blocks: list[tuple[Settings, list[_Count]]] = []
    for each in queue:
        shared_settings = each.settings
        if shared_settings.gates:
            shared_settings = replace(shared_settings, gates={})
        for settings, block in blocks:
            if settings == shared_settings and len(block) < MOST_AT_ONCE:
                block.append(each)
                break
        else:
            blocks.append((shared_settings, [each]))
    for settings, block in blocks:
        gates = {name: gate for each in block for name, gate in each.settings.gates.items()}
        ballots = [ballot for each in block for ballot in each.ballots]
        errors: list[UnsuitableBallots] = []
        gated_settings = replace(settings, gates=gates) if gates else settings
        columns = [*tally_columns(ballots, gated_settings, errors.append)]
        if not errors and len(columns) == len(block):
            for each, (batch, column) in zip(block, columns, strict=True):
                each.outcome = batch.defer(column)
