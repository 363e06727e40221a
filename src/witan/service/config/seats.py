"""The seats that are configured, taken apart and named."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from witan.deliberation.ports import Options, Price
from witan.errors import ConfigError, UnknownName
from witan.models.providers import PROVIDERS
from witan.models.seats import SeatSpec, check_url, name_seats, parse_seat, unknown_seat_problem
from witan.service.config.layers import Setting, dotted
from witan.service.config.schema import Key, MemberTable

NOBODY: Mapping[str, SeatSpec] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class ConfiguredSeats:
    """The named seats of a configuration.

    Parameters
    ----------
    unseated
        Names of chairmen without a seat: a stronger source replaced the members they were.
    """

    members: tuple[SeatSpec, ...]
    jury: tuple[SeatSpec, ...]
    chairmen: tuple[SeatSpec, ...]
    unseated: tuple[str, ...]


def read_seats(settings: Mapping[Key, Setting], *, replaced: bool = False) -> ConfiguredSeats:
    """Read members, jurors and chairmen; a chairman may be another seat, or its name.

    Parameters
    ----------
    replaced
        A stronger source than that of the chairmen names the members.

    Raises
    ------
    ConfigError
        If one is not written like a seat, two have one name, or a juror is a member's name.
    """
    members = name_seats(list(_specs(settings, ("members",))))
    _check_apart(settings, members, ("members",))
    jury = name_seats(list(_specs(settings, ("jury",))), names=[member.name for member in members])
    _check_jurors_apart(settings, members, jury)
    members_and_jury = (*members, *jury)
    names = [seat.name for seat in members_and_jury]
    seated = {seat.name: seat for seat in members_and_jury}
    unseated = _unseated(settings, seated) if replaced else ()
    chairmen = list(_specs(settings, ("chairmen",), seated, unseated))
    apart = iter(name_seats([c for c in chairmen if c not in members_and_jury], names=names))
    named = tuple(c if c in members_and_jury else next(apart) for c in chairmen)
    for number, chairman in enumerate(named, start=1):
        others = (*members_and_jury, *named[: number - 1])
        if any(o.name == chairman.name and o != chairman for o in others):
            setting = settings[("chairmen",)]
            key = f"{setting.written}[{number}]"
            raise ConfigError(
                setting.where, key, f"has the name of another seat, {chairman.name!r}"
            )
    return ConfiguredSeats(members, jury, named, unseated)


def _check_apart(settings: Mapping[Key, Setting], seats: Sequence[SeatSpec], of: Key) -> None:
    """Refuse two seats of a list under one name."""
    names = [seat.name for seat in seats]
    for number, name in enumerate(names, start=1):
        if name in names[: number - 1]:
            setting = settings[of]
            key = f"{setting.written}[{number}]"
            raise ConfigError(setting.where, key, f"has the name of another seat, {name!r}")


def _check_jurors_apart(
    settings: Mapping[Key, Setting], members: Sequence[SeatSpec], jury: Sequence[SeatSpec]
) -> None:
    """Refuse a juror under the name of another, or of a member."""
    _check_apart(settings, jury, ("jury",))
    names = {member.name for member in members}
    for number, juror in enumerate(jury, start=1):
        if juror.name in names:
            setting = settings[("jury",)]
            key = f"{setting.written}[{number}]"
            problem = f"has the name of a member, {juror.name!r}: jurors only review"
            raise ConfigError(setting.where, key, problem)


def _unseated(settings: Mapping[Key, Setting], seated: Mapping[str, SeatSpec]) -> tuple[str, ...]:
    """Return the chairmen who are written as names, and are nobody's here."""
    setting = settings.get(("chairmen",))
    written = [] if setting is None else [entry.seat for entry in setting.value]
    return tuple(name for name in written if ":" not in name and name not in seated)


def _specs(
    settings: Mapping[Key, Setting],
    of: Key,
    seated: Mapping[str, SeatSpec] = NOBODY,
    unseated: Collection[str] = (),
) -> Iterator[SeatSpec]:
    """Yield the seats of one list, as they are written; those of members as these are named."""
    setting = settings.get(of)
    entries: tuple[MemberTable, ...] = () if setting is None else setting.value
    for number, entry in enumerate(entries, start=1):
        assert setting is not None  # noqa: S101 - it has an entry
        key = f"{setting.written}[{number}]"
        if entry.seat in seated:
            yield seated[entry.seat]
            continue
        if entry.seat in unseated:
            continue
        if seated and ":" not in entry.seat:
            raise ConfigError(setting.where, key, unknown_seat_problem(entry.seat, seated))
        spec = _reached(_spec(entry, setting, key), entry, settings, (setting.where, key))
        twins = (m for m in seated.values() if replace(m, name=spec.name) == spec)
        yield next((m for m in twins if spec.name in ("", m.name)), spec)


def _spec(entry: MemberTable, setting: Setting, key: str) -> SeatSpec:
    spec = parse_seat(entry.seat, where=setting.where, key=key, base=setting.base)
    return replace(
        spec,
        name=entry.name or spec.name,
        options=Options(
            temperature=entry.temperature,
            max_tokens=entry.max_tokens,
            reasoning_effort=entry.reasoning_effort,
            system=entry.system,
        ),
        price=None if entry.price is None else Price(*entry.price),
    )


def _reached(
    spec: SeatSpec, entry: MemberTable, settings: Mapping[Key, Setting], place: tuple[str, str]
) -> SeatSpec:
    """Return the seat with its address and key: its own, or else as its provider is configured."""
    where, key = place
    if spec.provider in ("script", "cmd"):
        for field, given in (("url", entry.url), ("key", entry.key)):
            if given is not None:
                raise ConfigError(where, f"{key}.{field}", "is for a model on a server")
        return spec
    if entry.url is not None and (problem := check_url(entry.url)):
        raise ConfigError(where, f"{key}.url", problem)
    urls, keys = (settings.get(("providers", spec.provider, field)) for field in ("url", "key"))
    url = entry.url if urls is None or entry.url is not None else urls.value
    variable = entry.key if keys is None or entry.key is not None else keys.value
    return replace(
        spec,
        url=spec.url if url is None else url.rstrip("/"),
        key_variable=variable,
    )


def check_providers(settings: Mapping[Key, Setting], seats: Sequence[SeatSpec]) -> None:
    """Refuse a provider that does not exist, and a URL that is none.

    Raises
    ------
    ConfigError
        If there is one.
    """
    known = dict.fromkeys([*PROVIDERS, "script", "cmd", *(spec.provider for spec in seats)])
    for key, setting in settings.items():
        if key[0] != "providers":
            continue
        if key[1] not in known:
            unknown = UnknownName("provider", key[1], known)
            raise ConfigError(setting.where, dotted(key[:2]), f"is of an {unknown}")
        if key[2] == "url" and (problem := check_url(setting.value)):
            raise ConfigError(setting.where, dotted(key), problem)
