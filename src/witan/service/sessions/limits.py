"""What the sessions of an client may still cost, and how many more it may begin."""

import logging
from collections import defaultdict, deque
from contextlib import ExitStack
from math import ceil

import anyio

from witan.deliberation.money import ROUNDING_USD
from witan.deliberation.ports import Clock
from witan.deliberation.session import Session
from witan.errors import Busy, HistoryError, WitanError
from witan.history import History
from witan.service.sessions.clients import Client
from witan.service.sessions.reservations import SessionReservation, written
from witan.service.sessions.spending import Ledger
from witan.service.text import counted

__all__ = ["RETRY_SECONDS", "ClientLimits"]

MINUTE_SECONDS = 60.0

TOMORROW_SECONDS = 3600.0
"""When to ask again where a day's money is spent: it comes back bit by bit."""

RETRY_SECONDS = 5.0
"""When to ask again where all places are taken, or what is left of a day's money is."""

_log = logging.getLogger("witan.service")


class ClientLimits:
    """The limits of every client: on money, kept in a ledger, and on what it begins in a minute."""

    def __init__(self, ledger: Ledger, clock: Clock) -> None:
        self._ledger = ledger
        self._clock = clock
        self._begun: dict[str, deque[float]] = defaultdict(deque)

    def begin(self, client: Client) -> None:
        """Count a session that is about to begin.

        Raises
        ------
        Busy
            If the client has begun as many within a minute as it may.
        """
        if client.per_minute is None:
            return
        now, begun = self._clock.seconds(), self._begun[client.name]
        while begun and begun[0] <= now - MINUTE_SECONDS:
            begun.popleft()
        if len(begun) >= client.per_minute:
            wait = begun[0] + MINUTE_SECONDS - now
            most = counted(ceil(client.per_minute), "session")
            problem = f"{client.name} may begin {most} in a minute"
            raise Busy(problem, f"ask again in {ceil(wait)} s", wait)
        begun.append(now)

    def ceiling(self, client: Client) -> float | None:
        """The most that a session of this client may cost; None: as much as it likes.

        Raises
        ------
        Busy
            If it has spent what it may, or the rest is held back.
        """
        if client.daily_usd is None:
            return client.max_cost_usd
        left = client.daily_usd - self._ledger.spent(client.name)
        if left <= 0:
            raise self._refusal(client, client.daily_usd)
        return left if client.max_cost_usd is None else min(left, client.max_cost_usd)

    def check(self, client: Client, least_usd: float) -> None:
        """Refuse a session of which no call could be made with what its client has left.

        Parameters
        ----------
        least_usd
            What the least of its calls may cost.

        Raises
        ------
        Busy
            If that is more.
        """
        if client.daily_usd is None:
            return
        left = client.daily_usd - self._ledger.spent(client.name)
        if left + ROUNDING_USD < least_usd:
            raise self._refusal(client, client.daily_usd, least_usd)

    def _refusal(self, client: Client, daily_usd: float, least_usd: float | None = None) -> Busy:
        """What is spent, and what is only held back, and when to ask again."""
        held, n_held = self._ledger.held_back(client.name)
        spent = self._ledger.spent(client.name) - held
        problem = f"{client.name} has spent ${spent:.4f} of the ${daily_usd:g} of its last 24 hours"
        if n_held:
            under_way = counted(n_held, "session")
            problem += f", and ${held:.4f} is held back for {under_way} under way"
        if least_usd is not None:
            problem += f"; this one needs at least ${least_usd:.4f}"
        if (
            n_held
            and daily_usd - spent > 0
            and daily_usd - spent + ROUNDING_USD >= (least_usd or 0)
        ):
            over = "it has ended" if n_held == 1 else "one of them has ended"
            return Busy(problem, f"ask again when {over}", RETRY_SECONDS)
        return Busy(problem, "ask again tomorrow, or have its limit raised", TOMORROW_SECONDS)

    async def hold_back(self, client: Client, usd: float | None) -> SessionReservation:
        """Hold back what a session may cost, such that it outlives the process; None: nothing.

        It counts at once: two who ask at the same moment do not both get what is left. A session is
        to have it for its ceiling: what retries cost beyond it would be nobody's.

        Raises
        ------
        HistoryError
            If that cannot be written down; nothing is held back then.
        """
        if usd is None or client.daily_usd is None:
            return SessionReservation(self._ledger, None)
        reserved = self._ledger.reserve(client.name, usd)
        with ExitStack() as undo:
            # Whoever is cancelled meanwhile: it may be written down already.
            undo.callback(self._ledger.settle, reserved, 0.0)
            try:
                await written(self._ledger, reserved)
            except HistoryError:
                undo.pop_all()
                self._ledger.drop(reserved)
                raise
            undo.pop_all()
        return SessionReservation(self._ledger, reserved)

    async def reconcile(self, history: History | None) -> None:
        """Put what sessions of a server that was killed had cost in place of what it held back.

        Nothing was called for what names no session. What names one counts whole where no history
        tells of it.

        Raises
        ------
        HistoryError
            If that cannot be written down.
        """
        for left in self._ledger.left:
            if left.session is None:
                self._ledger.settle(left, 0.0)
                continue
            session = await _recorded(history, left.session)
            if session is None:
                continue
            usd = max(0.0, session.cost.committed_usd - left.before_usd)
            self._ledger.settle(left, min(left.usd, usd), session.events[-1].at)
        await written(self._ledger)


async def _recorded(history: History | None, name: str) -> Session | None:
    """A session as a history has it; None: it does not."""
    if history is None:
        return None
    try:
        session = await anyio.to_thread.run_sync(history.session, name)
    except WitanError as error:
        _log.warning("what %s cost is not known, and counts as it was held back: %s", name, error)
        return None
    return session if session.id == name else None
