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

    def hold_back(self, asker: Asker, *most: float | None) -> Reserved | None:
        """Hold back the least of these, which a session can cost at `most`; None: unknown.

        Raises
        ------
        HistoryError
            If that cannot be written down.
        """
        known = [each for each in most if each is not None]
        if asker.daily_usd is None or not known:
            return None
        return self._ledger.reserve(asker.name, min(known))

    def settle(self, reserved: Reserved | None, session: Session | None) -> None:
        """Put what a session cost in place of what was held back for it.

        What is unknown counts for all that it may have been.
        """
        if reserved is None:
            return
        cost = None if session is None else session.cost
        if cost is None:
            usd = 0.0
        else:
            usd = reserved.usd if cost.total_usd is None else cost.committed_usd
        try:
            self._ledger.settle(reserved, usd)
        except HistoryError as error:
            _log.error("%s", error)
