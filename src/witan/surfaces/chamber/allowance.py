"""What the sessions of an asker may still cost, and how many more it may begin."""

import logging
from collections import defaultdict, deque
from math import ceil

import anyio

from witan.deliberation.ports import Clock
from witan.deliberation.session import Session
from witan.errors import Busy, HistoryError
from witan.surfaces.chamber.asked import Asker
from witan.surfaces.chamber.ledger import Ledger, Reserved
from witan.surfaces.text import counted

__all__ = ["Allowance"]

MINUTE_SECONDS = 60.0

TOMORROW_SECONDS = 3600.0
"""When to ask again where a day's money is spent: it comes back bit by bit."""

_log = logging.getLogger("witan.chamber")


class Allowance:
    """The limits of every asker: on money, kept in a ledger, and on what it begins in a minute."""

    def __init__(self, ledger: Ledger, clock: Clock) -> None:
        self._ledger = ledger
        self._clock = clock
        self._begun: dict[str, deque[float]] = defaultdict(deque)

    def begin(self, asker: Asker) -> None:
        """Count a session that is about to begin.

        Raises
        ------
        Busy
            If the asker has begun as many within a minute as it may.
        """
        if asker.per_minute is None:
            return
        now, begun = self._clock.seconds(), self._begun[asker.name]
        while begun and begun[0] <= now - MINUTE_SECONDS:
            begun.popleft()
        if len(begun) >= asker.per_minute:
            wait = begun[0] + MINUTE_SECONDS - now
            most = counted(ceil(asker.per_minute), "session")
            problem = f"{asker.name} may begin {most} in a minute"
            raise Busy(problem, f"ask again in {ceil(wait)} s", wait)
        begun.append(now)

    def ceiling(self, asker: Asker) -> float | None:
        """The most that a session of this asker may cost; None: as much as it likes.

        Raises
        ------
        Busy
            If it has spent what it may.
        """
        if asker.daily_usd is None:
            return asker.max_cost_usd
        left = asker.daily_usd - self._ledger.spent(asker.name)
        if left <= 0:
            problem = f"{asker.name} has spent the ${asker.daily_usd:g} of its last 24 hours"
            raise Busy(problem, "ask again tomorrow, or have its limit raised", TOMORROW_SECONDS)
        return left if asker.max_cost_usd is None else min(left, asker.max_cost_usd)

    def most(self, asker: Asker, *bounds: float | None) -> float | None:
        """What is to be held back: the least of what a session may cost; None: nothing is.

        A session is to have it for its ceiling: what retries cost beyond it would be nobody's.
        """
        if asker.daily_usd is None:
            return None
        return min((bound for bound in bounds if bound is not None), default=None)

    async def hold_back(self, asker: Asker, usd: float | None) -> Reserved | None:
        """Hold back what a session may cost, such that it outlives the process; None: nothing.

        It counts at once: two who ask at the same moment do not both get what is left.

        Raises
        ------
        HistoryError
            If that cannot be written down; nothing is held back then.
        """
        if usd is None:
            return None
        reserved = self._ledger.reserve(asker.name, usd)
        try:
            await self._kept()
        except HistoryError:
            self._ledger.drop(reserved)
            raise
        except BaseException:  # cancelled: it may be written down already
            self._ledger.settle(reserved, 0.0)
            raise
        return reserved

    async def settle(
        self, reserved: Reserved | None, session: Session | None, before_usd: float = 0.0
    ) -> None:
        """Put what a session cost in place of what was held back for it.

        What is unknown counts for all that it may have been: nothing is called at an unknown price
        where there is a ceiling, and there is one where anything is held back.

        Parameters
        ----------
        before_usd
            What it had cost, on whoever's account, before it was taken up.
        """
        if reserved is None:
            return
        usd = 0.0 if session is None else max(0.0, session.cost.committed_usd - before_usd)
        self._ledger.settle(reserved, usd)
        try:
            await self._kept()
        except HistoryError as error:
            _log.error("%s", error)

    async def _kept(self) -> None:
        # Whoever is cancelled meanwhile is so afterwards: what is written then is known.
        with anyio.CancelScope(shield=True):
            await self._ledger.kept()
