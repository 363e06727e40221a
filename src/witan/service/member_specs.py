"""Seats as they are handed over from Python: written, taken apart, members, models of one's own."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from witan.deliberation.ports import Member, Model, Price
from witan.errors import ConfigError, InvalidParameter, UnknownName
from witan.models.connections import Connections
from witan.models.pydantic_ai_model import Providers
from witan.models.scripted import Scripted
from witan.models.seats import (
    Rate,
    SeatSpec,
    name_seats,
    names_of,
    no_such_seat,
    parse_seat,
    rate_of,
    seat,
)

__all__ = ["MemberFactory", "Seatable"]

Seatable = str | SeatSpec | Member | Model
"""A seat as it is written or taken apart, a member, or anything that can complete a call."""

OWN = "python"
"""The provider of models that were handed over as objects."""


class MemberFactory:
    """Makes members of whatever was handed over, each under a name of its own."""

    def __init__(
        self,
        environment: Mapping[str, str],
        connections: Connections,
        providers: Providers,
        prices: Mapping[str, Rate],
    ) -> None:
        self._prices = prices
        self._environment = environment
        self._connections, self._providers = connections, providers
        self._named: dict[str, None] = {}
        self._seated: list[tuple[SeatSpec, Member]] = []
        self.closing: list[Callable[[], Awaitable[None]]] = []

    def members(self, given: Sequence[Seatable]) -> list[Member]:
        """The members, in order."""
        specs = [_spec(each, f"members[{n}]") for n, each in enumerate(given, start=1)]
        named = name_seats(specs)
        made = [self._made(each, spec) for each, spec in zip(given, named, strict=True)]
        self._seated = list(zip(named, made, strict=True))
        return made

    def jury(self, given: Sequence[Seatable]) -> list[Member]:
        """Make the jurors, in order, after the members."""
        specs = [_spec(each, f"jury[{n}]") for n, each in enumerate(given, start=1)]
        named = name_seats(specs, taken=[member.name for _, member in self._seated])
        made = [self._made(each, spec) for each, spec in zip(given, named, strict=True)]
        self._seated += zip(named, made, strict=True)
        return made

    def chairmen(self, given: Sequence[Seatable]) -> list[Member]:
        """Make the chairmen, in order; one written or named as another seat is that seat."""
        found = []
        taken = [member.name for _, member in self._seated]
        for number, each in enumerate(given, start=1):
            member = self._already(each)
            if member is None:
                key = f"chairmen[{number}]"
                if isinstance(each, str) and ":" not in each and self._seated:
                    raise ConfigError("the council", key, no_such_seat(each, taken))
                [spec] = name_seats([_spec(each, key)], taken)
                taken.append(spec.name)
                member = self._made(each, spec)
            found.append(member)
        return found

    def _already(self, each: Seatable) -> Member | None:
        """Find the member or juror that a chairman is, if it is one."""
        written = isinstance(each, SeatSpec) or (isinstance(each, str) and ":" in each)
        spec = _spec(each, "chairman") if written else None
        for seated, member in self._seated:
            if each in (member, member.name) or each is member.model:
                return member
            same = spec is not None and replace(seated, name=spec.name) == spec
            if spec is not None and same and spec.name in ("", seated.name):
                return member
        return None

    def check_prices(self) -> None:
        """Refuse a price that is of no seat.

        Raises
        ------
        UnknownName
            If there is one.
        """
        for name in self._prices:
            if name not in self._named:
                raise UnknownName("seat of a price", name, self._named)

    def _made(self, each: Seatable, spec: SeatSpec) -> Member:
        self._named |= dict.fromkeys(names_of(spec))
        price = rate_of(spec, self._prices)
        made = self._unpriced(each, spec)
        return made if price is None else replace(made, price=price)

    def _unpriced(self, each: Seatable, spec: SeatSpec) -> Member:
        if isinstance(each, Member):
            return each
        if not isinstance(each, str | SeatSpec):
            scripted = isinstance(each, Scripted)
            price = Price(0, 0) if scripted else None
            return Member(spec.name, each, provider=OWN, price=price, simulated=scripted)
        member = seat(spec, self._environment, self._connections, self._providers)
        close = getattr(member.model, "aclose", None)
        if close is not None:
            self.closing.append(close)
        return member


def _spec(each: Seatable, key: str) -> SeatSpec:
    """What was handed over as a seat that can be named."""
    if isinstance(each, SeatSpec):
        return each
    if isinstance(each, str):
        return parse_seat(each, key=key, base=Path.cwd())
    model = each.model if isinstance(each, Member) else each
    if isinstance(model, type) or not callable(getattr(model, "complete", None)):
        what = "a seat such as 'openai:MODEL', a Member, or an object with a method complete"
        raise InvalidParameter(key, model, what)
    if isinstance(each, Member):
        return SeatSpec(each.source, each.provider, each.name, name=each.name)
    name = getattr(each, "name", None)
    return SeatSpec("", OWN, name if isinstance(name, str) and name else type(each).__name__)
