"""What the sessions of an asker may still cost."""

import logging

from witan.deliberation.session import Session
from witan.errors import Busy, HistoryError
from witan.surfaces.chamber.asked import Asker
from witan.surfaces.chamber.ledger import Ledger, Reserved

__all__ = ["Allowance"]

TOMORROW_SECONDS = 3600.0
"""When to ask again where a day's money is spent: it comes back bit by bit."""

_log = logging.getLogger("witan.chamber")


class Allowance:
    """The limits on money of every asker, kept in a ledger."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

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

    def hold_back(self, asker: Asker, usd: float | None) -> Reserved | None:
        """Hold back what a session may cost; None: nothing.

        Raises
        ------
        HistoryError
            If that cannot be written down.
        """
        return None if usd is None else self._ledger.reserve(asker.name, usd)

    def settle(
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
        try:
            self._ledger.settle(reserved, usd)
        except HistoryError as error:
            _log.error("%s", error)
