"""Models to seat by themselves: current, of several makers, at a price within a bound."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from math import inf

from witan.deliberation.ports import Price
from witan.models.model_lists import Listed
from witan.models.prices import price_of
from witan.service.text import counted, listed

__all__ = ["DEAREST", "Choice", "choose"]

DEAREST = Price(10.0, 30.0)
"""US dollars per million tokens read and written, above which no model is seated by itself."""

MAKERS = (
    "anthropic", "openai", "google", "x-ai", "deepseek", "mistralai", "qwen", "moonshotai", "z-ai",
    "meta-llama", "cohere", "nvidia", "microsoft", "amazon", "minimax",
)  # fmt: skip
"""Makers whose models are seated first where a provider lists those of many."""

_MINOR = re.compile(
    r"preview|beta|alpha|exp|experimental|free|nano|tiny|lite|mini|small|micro|extended|latest|"
    r"instruct|base|guard|safety|online|auto|router|thinking|\d{3,4}b|\d{1,2}b"
)
"""Words in the ids of models that stand behind a plainer one of the same maker."""

_DATED = re.compile(r"[-@]\d{4}(-\d{2}-\d{2}|\d{4})?$")
"""The end of an id that is a fixed edition of a model that is listed without it, too."""


@dataclass(slots=True)
class Choice:
    """Models of one provider, the one to seat first first, and what was passed over."""

    models: list[tuple[str, Price | None]] = field(default_factory=list)
    unpriced: list[str] = field(default_factory=list)
    dear: list[str] = field(default_factory=list)

    def notes(self, provider: str) -> list[str]:
        """Say what was passed over, and how to seat it all the same."""
        told = []
        if self.unpriced:
            told.append(f"{counted(len(self.unpriced), 'model')} whose price is unknown")
        if self.dear:
            bound = f"${DEAREST.input_usd:g} in or ${DEAREST.output_usd:g} out per million tokens"
            told.append(f"{counted(len(self.dear), 'model')} above {bound} ({listed(self.dear)})")
        if not told:
            return []
        passed = " and ".join(told)
        return [f"{provider}: not seated by themselves: {passed}; --member seats any by name"]


def choose(provider: str, models: Sequence[Listed], *, free: bool = False) -> Choice:
    """Order the chat models of a list: plain and new ones first, makers in turn.

    Parameters
    ----------
    free
        The provider is a local server on this machine: what has no price costs nothing.
    """
    found = Choice()
    makers: dict[str, list[Listed]] = {}
    prices: dict[str, Price | None] = {}
    for model in models:
        name = model.id.strip()
        if not model.chats or not name:
            continue
        price = model.price or price_of(provider, name)
        if price is None and not free:
            found.unpriced.append(name)
        elif price is not None and _is_dear(price):
            found.dear.append(name)
        else:
            prices[name] = model.price
            makers.setdefault(name.rpartition("/")[0].partition("/")[0], []).append(model)
    for group in makers.values():
        group.sort(key=_rank)
    in_order = sorted(makers, key=lambda maker: (_place(maker), _rank(makers[maker][0])))
    for turn in zip_longest(*(makers[maker] for maker in in_order)):
        found.models += [(m.id.strip(), prices[m.id.strip()]) for m in turn if m is not None]
    return found


def _is_dear(price: Price) -> bool:
    return price.input_usd > DEAREST.input_usd or price.output_usd > DEAREST.output_usd


def _place(maker: str) -> int:
    return MAKERS.index(maker) if maker in MAKERS else len(MAKERS)


def _rank(model: Listed) -> tuple[bool, float]:
    """Plain models first, then the newest; what tells no age comes last, in the list's order."""
    words = re.split(r"[^a-z0-9]+", model.id.rpartition("/")[2].lower())
    minor = any(_MINOR.fullmatch(word) for word in words) or _DATED.search(model.id) is not None
    return minor, inf if model.created is None else -model.created
