"""List the councils that can be asked."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from witan.deliberation.ports import Seat
from witan.service.catalogue import operation, public
from witan.service.parameters import Parameters
from witan.service.sessions import Profile


class ProfileService(Protocol):
    """Councils by the names of their profiles."""

    @property
    def profiles(self) -> Mapping[str, Profile]:
        """Name to council; empty: what is configured apart from any profile."""
        ...


@dataclass(frozen=True, slots=True)
class ProfilesParameters(Parameters):
    """Nothing: every council is listed."""


@dataclass(frozen=True, slots=True)
class SeatEntry:
    """A seat of a council.

    Parameters
    ----------
    name
        As sessions call it.
    source
        Its model.
    """

    name: str
    source: str


@dataclass(frozen=True, slots=True)
class ProfileEntry:
    """A council that can be asked, or why it cannot.

    Parameters
    ----------
    name
        What `profile` takes; empty: what is configured apart from any profile.
    about
        A sentence of the configuration on what it is for.
    seats
        Who answers, and reviews unless there is a jury.
    jury
        Who reviews in their place.
    chairmen
        Who writes the final answer: the first, or if it fails the next.
    simulated
        Scripts sit in it.
    notes
        What to know about how it is seated.
    problem
        Why it cannot be asked; null: it can.
    """

    name: str
    about: str
    seats: tuple[SeatEntry, ...]
    jury: tuple[SeatEntry, ...]
    chairmen: tuple[SeatEntry, ...]
    simulated: bool
    notes: tuple[str, ...]
    problem: str | None


# The seats of a `Profile` are redacted where its council is seated.
@public
@dataclass(frozen=True, slots=True)
class ProfileList:
    """Councils.

    Parameters
    ----------
    profiles
        What is configured apart from any profile comes first.
    """

    profiles: tuple[ProfileEntry, ...]


@operation("profiles", get="/profiles", tag="sessions")
def profiles(service: ProfileService, given: ProfilesParameters) -> ProfileList:  # noqa: ARG001
    """List the councils that can be asked: who sits in each, and why one cannot be asked."""
    return ProfileList(tuple(map(_entry, service.profiles.values())))


def _entry(profile: Profile) -> ProfileEntry:
    return ProfileEntry(
        profile.name,
        profile.about,
        _seats(profile.seats),
        _seats(profile.jury),
        _seats(profile.chairmen),
        profile.simulated,
        profile.notes,
        profile.problem,
    )


def _seats(seats: Iterable[Seat]) -> tuple[SeatEntry, ...]:
    return tuple(SeatEntry(seat.name, seat.source) for seat in seats)
