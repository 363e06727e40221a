"""Providers' prices by the list bundled with genai-prices."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING

from witan.deliberation.ports import Price

if TYPE_CHECKING:
    from genai_prices.types import TieredPrices


HALF_HOURS = 48
"""Of a day: some models cost less at night, and no hour of theirs begins at another minute."""


def list_price(provider: str, model: str, now: datetime | None = None) -> Price | None:
    """A model's maximum price over the next day; None: unlisted.

    Of its hours and of its tiers for long prompts the dearest count, since a ceiling on cost rests
    on this. Nothing is fetched: the list is as old as the package that holds it.
    """
    from genai_prices import Usage, calc_price  # 80 to 200 ms, and no use to whoever states prices

    began = datetime.now(UTC) if now is None else now
    read, written = [], []
    for number in range(HALF_HOURS):
        at = began + timedelta(minutes=30 * number)
        try:
            listed = calc_price(Usage(), model, provider_id=provider, genai_request_timestamp=at)
        except LookupError:
            return None
        rates = listed.model_price
        if rates.input_mtok is None or rates.output_mtok is None:
            return None  # it is paid for by the picture or the second, or writes nothing
        read.append(_dearest(rates.input_mtok))
        written.append(_dearest(rates.output_mtok))
    return Price(float(max(read)), float(max(written)))


def _dearest(rate: "Decimal | TieredPrices") -> Decimal:
    """The dollars of a million tokens, however long the prompt is."""
    if isinstance(rate, Decimal):
        return rate
    return max(rate.base, *(tier.price for tier in rate.tiers))
