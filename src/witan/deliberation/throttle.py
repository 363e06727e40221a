"""Limits of a provider: concurrent calls, and calls per minute."""

from collections import deque
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from math import inf, sqrt
from typing import Protocol

import anyio

from witan.deliberation.ports import Clock
from witan.deliberation.procedure import ThrottlePolicy
from witan.errors import ModelError

START = 64
"""Concurrent calls at first; a provider that only slows down never gets fewer."""

MOST = 512
"""Most concurrent calls unless configured; each has a connection, of a process's 1,024 files."""

REFUSALS = (429, 503, 529)
"""Statuses of a provider that accepts no more calls now."""

FAST_GROWTH, CAREFUL_GROWTH = 2.0, 1.25
"""Factors by which the limit grows, before the first setback and after it."""

SLOWDOWN_FACTOR = 2.0
"""A rate that falls by this factor shows that the provider handles fewer calls than before."""

TICK_SECONDS = 1e-3
"""Shortest time counted between replies, in seconds."""

FEWEST_REPLIES = 16
"""Fewest replies between two measurements; with fewer, one long reply decides."""

LONGEST_HOLD = 16
"""Most measurements until a limit that did not help is tried again."""


class AdaptiveLimit:
    """Number of concurrent calls that a provider handles, found by trial.

    While calls wait for a slot, the limit grows as long as replies per second grow with it. The
    time of a single reply depends on its length, so it says little; the rate of many at a given
    limit does. A rate counts once a whole generation of calls has ended since the last change. A
    refusal lowers the limit to the other calls in flight, at most by half per generation.

    `value`: the limit now.
    `number`: number of the current limit; a refusal counts in full only for the limit it began
    under.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self.value = min(START, most)
        self.number = 0
        self._stable_limit, self._rate = self.value, 0.0
        self._lowest_limit = self.value
        self._step = FAST_GROWTH
        self._replies_to_hold, self._patience = 0, 1
        self._replies, self._window_start = 0, 0.0

    def note_reply(self, now: float, *, full: bool) -> None:
        """Note a reply's time, and whether all slots are in use."""
        self._replies += 1
        if not full:
            self._replies = 0
        elif self._replies == max(self.value, FEWEST_REPLIES):
            self._window_start = now
        elif self._replies == 2 * max(self.value, FEWEST_REPLIES):
            self._judge(self._replies / 2 / max(now - self._window_start, TICK_SECONDS))

    def note_refusal(self, number: int, others: int) -> None:
        """Note a refused call, its limit, and the other calls in flight."""
        if number == self.number:
            # Not by half of the calls in flight: a council of five would continue one by one.
            self._lowest_limit = max(1, self.value // 2)
            self._reduce_limit()
        self._stable_limit = max(self._lowest_limit, min(self.value, others))
        self._move(self._stable_limit)

    def _judge(self, rate: float) -> None:
        """Keep or change the limit by its rate of replies."""
        growth = self.value / self._stable_limit
        has_grown, has_shrunk = growth > 1, growth < 1
        if rate < self._rate * sqrt(growth) and (has_shrunk or (has_grown and self.value > START)):
            self._reduce_limit()
            self._move(self._stable_limit)
            return
        is_slower = rate < self._rate / SLOWDOWN_FACTOR and not has_grown
        self._stable_limit, self._rate = self.value, rate
        if (is_slower or has_shrunk) and self.value > START:
            self._reduce_limit()
            self._move(max(START, self.value // 2))
            return
        self._patience = 1 if has_grown else self._patience
        self._replies_to_hold -= 1
        wider = min(self._most, max(self.value + 1, int(self.value * self._step)))
        self._move(wider if self._replies_to_hold < 0 else self.value)

    def _reduce_limit(self) -> None:
        self._step = CAREFUL_GROWTH
        self._replies_to_hold, self._patience = (
            self._patience,
            min(2 * self._patience, LONGEST_HOLD),
        )

    def _move(self, value: int) -> None:
        self.number += value != self.value
        self.value, self._replies = value, 0


BURST_SECONDS = 1.0
"""Seconds whose calls fill the bucket; it always has room for one.

Enough for a council that starts at once, too little for a minute's calls in a burst.
"""


class Tokens(Protocol):
    """Token buckets shared with other processes."""

    async def take(self, provider: str, interval: float, n: int, pause: float) -> float:
        """Take a provider's tokens; return the seconds until the first is due.

        `interval`: seconds between two calls; the other tokens are due at this interval.
        `pause`: seconds during which no call starts.
        """
        ...


class Throttle:
    """Rate limits of one provider: calls in flight, calls per minute.

    `tokens`: where calls per minute are counted for several processes; None counts them here.
    """

    def __init__(
        self,
        throttling: ThrottlePolicy,
        clock: Clock,
        provider: str = "",
        tokens: Tokens | None = None,
    ) -> None:
        self._clock = clock
        self._provider = provider
        self._due: deque[float] = deque()
        self._taking = anyio.Lock(fast_acquire=True)
        self._turn = anyio.Lock(fast_acquire=True)
        self._n_waiting = 0
        most = throttling.concurrency
        self._limit = AdaptiveLimit(MOST if most is None else most)
        self._in_flight = 0
        self._free = anyio.Event()
        rate = throttling.per_minute
        self._interval = 0.0 if rate is None else 60.0 / rate
        self._shared_tokens = None if rate is None else tokens
        self._burst_allowance = max(0.0, BURST_SECONDS - self._interval)
        self._next_time = -inf
        self._paused_until = -inf

    @asynccontextmanager
    async def slot(self) -> AsyncGenerator[None, None]:
        """Hold a slot for one call, in order of arrival.

        Its reply or error tells what the provider handles.
        """
        if not self._take_free_slot():
            await self._wait_for_slot()
        number = self._limit.number
        try:
            yield
            self._note_reply()
        except ModelError as error:
            if error.status in REFUSALS:
                self._limit.note_refusal(number, self._in_flight - 1)
            elif error.status is None and not error.transient:  # a timeout or an unusable reply
                self._note_reply()
            raise
        finally:
            self._release()

    def _take_free_slot(self) -> bool:
        """Take a free slot unless calls wait for one; return whether taken."""
        if (
            self._n_waiting
            or self._in_flight >= self._limit.value
            or self._shared_tokens is not None
            or self._take_token() > 0
        ):
            return False
        self._in_flight += 1
        return True

    async def _wait_for_slot(self) -> None:
        """Wait in line for a slot."""
        self._n_waiting += 1
        try:
            await self._queue_for_slot()
        finally:
            self._n_waiting -= 1

    async def _queue_for_slot(self) -> None:
        async with self._turn:
            while self._in_flight >= self._limit.value:
                self._free = anyio.Event()
                await self._free.wait()
            self._in_flight += 1
            is_due = False
            try:
                await self.until_deadline()
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
        """Start no call for this long, as the provider requests."""
        self._paused_until = max(self._paused_until, self._clock.seconds() + seconds)

    async def until_deadline(self) -> None:
        """Wait for a token and for the end of every pause.

        The bucket is represented by the time when it will be full again: one number, which unlike a
        count of fractional tokens collects no rounding errors.
        """
        if self._shared_tokens is not None:
            await self._until_shared_deadline(self._shared_tokens)
            return
        while (wait := self._take_token()) > 0:  # noqa: ASYNC110 - time passes
            await anyio.sleep(wait)

    async def _until_shared_deadline(self, tokens: Tokens) -> None:
        """Wait for a token of the shared bucket.

        A token from before a pause is not used.
        """
        while True:
            due = await self._take_shared(tokens)
            while (wait := max(due, self._paused_until) - self._clock.seconds()) > 0:  # noqa: ASYNC110 - time passes
                await anyio.sleep(wait)
            if due + BURST_SECONDS > self._clock.seconds():
                return

    async def _take_shared(self, tokens: Tokens) -> float:
        """Take tokens for this and the waiting calls; return when due."""
        async with self._taking:
            now = self._clock.seconds()
            while self._due and self._due[0] + BURST_SECONDS <= now:
                self._due.popleft()
            if not self._due:
                n = max(1, min(self._n_waiting, int(BURST_SECONDS / self._interval)))
                pause = max(0.0, self._paused_until - now)
                wait = await tokens.take(self._provider, self._interval, n, pause)
                first = self._clock.seconds() + wait
                self._due.extend(first + number * self._interval for number in range(n))
            return self._due.popleft()

    def _take_token(self) -> float:
        """Take a token if due; otherwise return the seconds until then."""
        now = self._clock.seconds()
        wait = max(self._next_time - self._burst_allowance, self._paused_until) - now
        if wait > 0:
            return wait
        self._next_time = max(self._next_time, now) + self._interval
        return 0.0

    def _release(self) -> None:
        self._in_flight -= 1
        if self._n_waiting and self._in_flight < self._limit.value:
            self._free.set()

    def _note_reply(self) -> None:
        full = self._in_flight >= self._limit.value or self._n_waiting > 1
        self._limit.note_reply(self._clock.seconds(), full=full)


class Throttles:
    """Throttles by provider, each made at its first call.

    `closes_alone`: model, by provider, source and address → whether it ended reasoning with a lone
    closing tag; a model that did so once is expected to do so again.
    """

    def __init__(
        self, providers: Mapping[str, ThrottlePolicy], clock: Clock, tokens: Tokens | None = None
    ) -> None:
        self._providers = providers
        self._clock = clock
        self._tokens = tokens
        self._throttles: dict[str, Throttle] = {}
        self.closes_alone: dict[str, bool] = {}

    def __getitem__(self, provider: str) -> Throttle:
        """Return the throttle shared by all calls to this provider."""
        if provider not in self._throttles:
            throttling = self._providers.get(provider, ThrottlePolicy())
            self._throttles[provider] = Throttle(throttling, self._clock, provider, self._tokens)
        return self._throttles[provider]
