"""Limits of a provider: calls in flight, as many as it takes, and calls a minute."""

from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from math import inf, sqrt

import anyio

from witan.deliberation.ports import Clock
from witan.deliberation.procedure import ThrottlePolicy
from witan.errors import ModelError

START = 64
"""Calls in flight at first; a provider that only grows slow is never given fewer."""

MOST = 512
"""Calls in flight unless configured: each has a connection, of a thousand files of a process."""

REFUSALS = (429, 503, 529)
"""Statuses of a provider that takes no more calls now."""

FAST, CAREFUL = 2.0, 1.25
"""Growth of the limit at a time, before the first setback and after it."""

SLOWED = 2.0
"""A rate that falls by this factor shows that the provider takes fewer calls than before."""

TICK_SECONDS = 1e-3
"""Replies without any time between them are no faster than this."""

FEWEST_REPLIES = 16
"""Replies between two looks at a clock; below, one long reply decides."""

LONGEST_HOLD = 16
"""Looks until a limit is tried again that was of no use before."""


class AdaptiveLimit:
    """Calls that a provider takes at once, found by trying.

    While calls wait for a place, it grows as long as that brings more replies a second. What a
    single reply takes says nothing, as it depends on its length; the rate of many at a given limit
    does. A rate counts once a whole generation of calls has gone by since the limit was changed. A
    refusal lowers the limit to what is in flight without it, at most by half in one generation.

    Parameters
    ----------
    most
        Never exceeded.

    Attributes
    ----------
    value
        The limit now.
    number
        Of the limits so far, this one; a refusal counts in full under the limit it began under.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self.value = min(START, most)
        self.number = 0
        self._settled, self._rate = self.value, 0.0
        self._least = self.value
        self._step = FAST
        self._hold, self._patience = 0, 1
        self._replies, self._since = 0, 0.0

    def note_reply(self, now: float, *, full: bool) -> None:
        """Note a reply at a time, and whether all places are in use."""
        self._replies += 1
        if not full:
            self._replies = 0
        elif self._replies == max(self.value, FEWEST_REPLIES):
            self._since = now
        elif self._replies == 2 * max(self.value, FEWEST_REPLIES):
            self._judge(self._replies / 2 / max(now - self._since, TICK_SECONDS))

    def note_refusal(self, number: int, others: int) -> None:
        """Note a refused call that began under a limit, beside so many others in flight."""
        if number == self.number:
            # Not by half of what is in flight: a council of five would go on one by one.
            self._least = max(1, self.value // 2)
            self._set_back()
        self._settled = max(self._least, min(self.value, others))
        self._move(self._settled)

    def _judge(self, rate: float) -> None:
        """Leave, keep or change a limit that brings so many replies a second."""
        growth = self.value / self._settled
        has_grown, has_shrunk = growth > 1, growth < 1
        if rate < self._rate * sqrt(growth) and (has_shrunk or (has_grown and self.value > START)):
            self._set_back()
            self._move(self._settled)
            return
        is_slower = rate < self._rate / SLOWED and not has_grown
        self._settled, self._rate = self.value, rate
        if (is_slower or has_shrunk) and self.value > START:
            self._set_back()
            self._move(max(START, self.value // 2))
            return
        self._patience = 1 if has_grown else self._patience
        self._hold -= 1
        wider = min(self._most, max(self.value + 1, int(self.value * self._step)))
        self._move(wider if self._hold < 0 else self.value)

    def _set_back(self) -> None:
        self._step = CAREFUL
        self._hold, self._patience = self._patience, min(2 * self._patience, LONGEST_HOLD)

    def _move(self, value: int) -> None:
        self.number += value != self.value
        self.value, self._replies = value, 0


BURST_SECONDS = 1.0
"""Calls in a full bucket: those of one second, and at least one.

Enough for a council that begins all at once, too little to bring a minute's calls together.
"""


class Throttle:
    """Rate limits of one provider: calls in flight, calls per minute."""

    def __init__(self, throttling: ThrottlePolicy, clock: Clock) -> None:
        self._clock = clock
        # Fast: where nobody waits, taking it does not cost a turn of the event loop.
        self._turn = anyio.Lock(fast_acquire=True)
        most = throttling.concurrency
        self._limit = AdaptiveLimit(MOST if most is None else most)
        self._in_flight = 0
        self._free = anyio.Event()
        rate = throttling.per_minute
        self._interval = 0.0 if rate is None else 60.0 / rate
        self._ahead = max(0.0, BURST_SECONDS - self._interval)
        self._due = -inf
        self._paused_until = -inf

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[None]:
        """Hold a slot for one call, first come, first served."""
        await self._take_slot()
        number = self._limit.number
        try:
            yield
            self._note_reply()
        except ModelError as error:
            self._note_failure(error, number)
            raise
        finally:
            self._release()

    async def _take_slot(self) -> None:
        async with self._turn:
            while self._in_flight >= self._limit.value:
                self._free = anyio.Event()
                await self._free.wait()
            self._in_flight += 1
            is_due = False
            try:
                await self.until_due()
                is_due = True
            finally:
                if not is_due:
                    self._release()

    @contextmanager
    def spare_slot(self) -> Iterator[bool]:
        """Hold a slot if one is free now; yield True if so."""
        if self._in_flight >= self._limit.value:
            yield False
            return
        self._in_flight += 1
        try:
            yield True
        finally:
            self._release()

    def pause(self, seconds: float) -> None:
        """Begin no call for this long, as the provider asks."""
        self._paused_until = max(self._paused_until, self._clock.seconds() + seconds)

    async def until_due(self) -> None:
        """Wait for a token and for the end of every pause.

        The bucket is kept as the time at which it will be full again: one number, that gathers no
        rounding errors as a count of fractional tokens does.
        """
        while (wait := self._begins() - self._clock.seconds()) > 0:  # noqa: ASYNC110 - time passes
            await anyio.sleep(wait)
        self._due = max(self._due, self._clock.seconds()) + self._interval

    def _begins(self) -> float:
        return max(self._due - self._ahead, self._paused_until)

    def _release(self) -> None:
        self._in_flight -= 1
        if self._in_flight < self._limit.value:
            self._free.set()

    def _note_reply(self) -> None:
        full = self._in_flight >= self._limit.value or self._turn.statistics().tasks_waiting > 0
        self._limit.note_reply(self._clock.seconds(), full=full)

    def _note_failure(self, error: ModelError, number: int) -> None:
        if error.status in REFUSALS:
            self._limit.note_refusal(number, self._in_flight - 1)
        elif error.status is None and not error.transient:  # a timeout, or a reply of no use
            self._note_reply()


class Throttles:
    """The throttle of every provider, made when its first call is.

    Attributes
    ----------
    closes_alone
        Model, by provider, source and address → whether it ended reasoning with a closing tag
        alone; what did once is taken to do so again.
    """

    def __init__(self, providers: Mapping[str, ThrottlePolicy], clock: Clock) -> None:
        self._providers = providers
        self._clock = clock
        self._throttles: dict[str, Throttle] = {}
        self.closes_alone: dict[str, bool] = {}

    def __getitem__(self, provider: str) -> Throttle:
        """The throttle shared by all calls to this provider."""
        if provider not in self._throttles:
            throttling = self._providers.get(provider, ThrottlePolicy())
            self._throttles[provider] = Throttle(throttling, self._clock)
        return self._throttles[provider]
