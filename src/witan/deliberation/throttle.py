"""Rate limits of providers, shared by all sessions of a council."""

from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import ExitStack, asynccontextmanager, contextmanager
from math import inf

import anyio

from witan.deliberation.ports import Clock
from witan.deliberation.procedure import Throttling

BURST_SECONDS = 1.0
"""Calls in a full bucket: those of one second, and at least one.

Enough for a council that begins all at once, too little to bring a minute's calls together.
"""


class Throttle:
    """Rate limits of one provider: calls in flight, calls per minute."""

    def __init__(self, throttling: Throttling, clock: Clock) -> None:
        self._clock = clock
        # Fast: where nobody waits, taking either does not cost a turn of the event loop.
        self._turn = anyio.Lock(fast_acquire=True)
        self._free = anyio.Semaphore(throttling.concurrency, fast_acquire=True)
        rate = throttling.per_minute
        self._interval = 0.0 if rate is None else 60.0 / rate
        self._ahead = max(0.0, BURST_SECONDS - self._interval)
        self._due = -inf
        self._paused_until = -inf

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[None]:
        """Hold a slot for one call, first come, first served."""
        with ExitStack() as place:
            async with self._turn:
                await self._free.acquire()
                place.callback(self._free.release)
                await self.until_due()
            yield

    @contextmanager
    def spare_slot(self) -> Iterator[bool]:
        """Hold a slot if one is free now; yield True if so."""
        try:
            self._free.acquire_nowait()
        except anyio.WouldBlock:
            yield False
            return
        try:
            yield True
        finally:
            self._free.release()

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


class Throttles:
    """The throttle of every provider, made when its first call is.

    Attributes
    ----------
    closes_alone
        Model, by provider, source and address → whether it ended reasoning with a closing tag
        alone; what did once is taken to do so again.
    """

    def __init__(self, providers: Mapping[str, Throttling], clock: Clock) -> None:
        self._providers = providers
        self._clock = clock
        self._throttles: dict[str, Throttle] = {}
        self.closes_alone: dict[str, bool] = {}

    def __getitem__(self, provider: str) -> Throttle:
        """The throttle shared by all calls to this provider."""
        if provider not in self._throttles:
            throttling = self._providers.get(provider, Throttling())
            self._throttles[provider] = Throttle(throttling, self._clock)
        return self._throttles[provider]
