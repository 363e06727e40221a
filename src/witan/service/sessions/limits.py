"""Limits of clients: sessions in a minute, sessions at once, money."""

import logging
from collections import defaultdict, deque
from contextlib import ExitStack
from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING

import anyio

from witan.deliberation.money import ROUNDING_USD
from witan.deliberation.ports import Clock
from witan.deliberation.session import Session
from witan.errors import Busy, HistoryError, WitanError
from witan.service.sessions.spending import Ledger, ReservedAmount
from witan.service.text import counted

if TYPE_CHECKING:
    from witan.history import History


@dataclass(frozen=True, slots=True)
class Client:
    """A client of the server, and its limits.

    Parameters
    ----------
    name
        Of its token, or ``local``.
    per_minute
        Sessions it may begin in a minute; None: as many as it likes.
    max_cost_usd
        The ceiling of each of its sessions; None: that of the configuration.
    daily_usd
        What its sessions may cost in any 24 hours; None: as much as they like.
    by_token
        It is known by a token; else nobody knows who it is, and it is taken at its word.
    """

    name: str
    per_minute: float | None = None
    max_cost_usd: float | None = None
    daily_usd: float | None = None
    by_token: bool = False


LOCAL = Client("local")
"""Whoever reaches a server that listens on this machine alone, and has no tokens."""


_log = logging.getLogger("witan.service")


class SessionReservation:
    """The dollars that are held back for a session.

    Parameters
    ----------
    reserved
        None: nothing is held back.

    Attributes
    ----------
    before_usd
        What the session had cost, on whoever's account, before it is taken up.
    """

    def __init__(self, ledger: Ledger, reserved: ReservedAmount | None) -> None:
        self._ledger = ledger
        self._reserved = reserved
        self._told_by: str | None = None
        self._called = False
        self.before_usd = 0.0

    async def calling(self, session: str, *, recorded: bool) -> None:
        """Wait until it outlives the process that something is called, and whose record tells what.

        Parameters
        ----------
        recorded
            The history has all of the session so far. Once it has not, what is held back counts
            whole should the process be killed.
        """
        if self._reserved is None:
            return
        told_by = session if recorded else None
        if not self._called or (told_by is None and self._told_by is not None):
            self._ledger.name(self._reserved, told_by, self.before_usd)
            self._called, self._told_by = True, told_by
        await flush_ledger(self._ledger, self._reserved)

    async def settle(self, session: Session | None) -> None:
        """Put what a session cost in place of what was held back for it; None: there was none.

        What is unknown counts for all that it may have been: nothing is called at an unknown price
        where there is a ceiling, and there is one where anything is held back.
        """
        if self._reserved is None:
            return
        usd = 0.0 if session is None else session.cost.committed_usd - self.before_usd
        self._ledger.settle(self._reserved, max(0.0, usd))
        try:
            await flush_ledger(self._ledger, self._reserved)
        except HistoryError as error:
            _log.error("%s", error)


async def flush_ledger(ledger: Ledger, reserved: ReservedAmount | None = None) -> None:
    """Wait as a ledger's `kept` does; who is cancelled is so afterwards."""
    # What is written of somebody who is cancelled meanwhile is known, too.
    with anyio.CancelScope(shield=True):
        await ledger.flush(reserved)


MINUTE_SECONDS = 60.0

TOMORROW_SECONDS = 3600.0
"""Seconds until the next attempt once a day's money is spent."""

RETRY_SECONDS = 5.0
"""Seconds until the next attempt once all places, or the day's remaining money, are reserved."""


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
        """Return the most that a session of this client may cost; None: as much as it likes.

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
        """Sum what is spent and reserved, and say when to try again."""
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
        """
        if usd is None or client.daily_usd is None:
            return SessionReservation(self._ledger, None)
        reserved = self._ledger.reserve(client.name, usd)
        with ExitStack() as undo:
            # Whoever is cancelled meanwhile: it may be written down already.
            undo.callback(self._ledger.settle, reserved, 0.0)
            try:
                await flush_ledger(self._ledger, reserved)
            except HistoryError:
                undo.pop_all()
                self._ledger.drop(reserved)
                raise
            undo.pop_all()
        return SessionReservation(self._ledger, reserved)

    async def reconcile(self, history: "History | None") -> None:
        """Put what sessions of a server that was killed had cost in place of what it held back.

        Nothing was called for what names no session. What names one counts whole where no history
        tells of it.
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
        await flush_ledger(self._ledger)


async def _recorded(history: "History | None", name: str) -> Session | None:
    """Return a session as a history has it; None: it does not."""
    if history is None:
        return None
    try:
        session = await anyio.to_thread.run_sync(history.session, name)
    except WitanError as error:
        _log.warning("what %s cost is not known, and counts as it was held back: %s", name, error)
        return None
    return session if session.id == name else None
