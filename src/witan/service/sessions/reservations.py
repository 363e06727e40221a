"""What is held back for one session, until it is known what that cost."""

import logging

import anyio

from witan.deliberation.session import Session
from witan.errors import HistoryError
from witan.service.sessions.spending import Ledger, ReservedAmount

__all__ = ["SessionReservation", "written"]

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

        Raises
        ------
        HistoryError
            If that cannot be written down: then nothing may be called.
        """
        if self._reserved is None:
            return
        told_by = session if recorded else None
        if not self._called or (told_by is None and self._told_by is not None):
            self._ledger.name(self._reserved, told_by, self.before_usd)
            self._called, self._told_by = True, told_by
        await written(self._ledger, self._reserved)

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
            await written(self._ledger, self._reserved)
        except HistoryError as error:
            _log.error("%s", error)


async def written(ledger: Ledger, reserved: ReservedAmount | None = None) -> None:
    """Wait as a ledger's `kept` does; who is cancelled is so afterwards.

    Raises
    ------
    HistoryError
        If it cannot be written.
    """
    # What is written of somebody who is cancelled meanwhile is known, too.
    with anyio.CancelScope(shield=True):
        await ledger.kept(reserved)
