"""List the available councils."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Protocol

from witan.service.catalogue import operation, redact, redacts
from witan.service.json_output import reduce_to, to_json
from witan.service.parameters import Doc, Parameters, adapter_of
from witan.service.sessions.councils import CouncilProfile


class ProfileService(Protocol):
    """Councils by the names of their profiles."""

    @property
    def profiles(self) -> Mapping[str, CouncilProfile]:
        """Councils by name; the empty name is the council outside any profile."""
        ...


@dataclass(frozen=True, slots=True)
class ProfilesParameters(Parameters):
    """No parameters: every council is listed."""


@dataclass(frozen=True, slots=True)
class SeatEntry:
    """A seat of a council."""

    name: Annotated[str, Doc("Its name in sessions.")]
    source: Annotated[str, Doc("Its model.")]


@dataclass(frozen=True, slots=True)
class ProfileEntry:
    """An available council, or the reason it is unavailable."""

    name: Annotated[str, Doc("Value of `profile`; empty for the council outside any.")]
    about: Annotated[str, Doc("Its purpose.")]
    seats: Annotated[tuple[SeatEntry, ...], Doc("Members, who also review if there is no jury.")]
    jury: Annotated[tuple[SeatEntry, ...], Doc("Seats that review in their place.")]
    chairmen: Annotated[
        tuple[SeatEntry, ...],
        Doc("Seats that write the final answer, in the order in which they are tried."),
    ]
    simulated: Annotated[bool, Doc("Whether its members are scripts.")]
    notes: Annotated[tuple[str, ...], Doc("Notes on its seating.")]
    problem: Annotated[str | None, Doc("Why it is unavailable; null: it is available.")]


@dataclass(frozen=True, slots=True)
class ProfileList:
    """Councils."""

    profiles: Annotated[
        tuple[ProfileEntry, ...], Doc("Councils, first the one outside any profile.")
    ]


@dataclass(frozen=True, slots=True)
class Profiles:
    """Councils; as JSON it has the fields of `ProfileList`."""

    profiles: tuple[CouncilProfile, ...]

    @classmethod
    def __get_pydantic_core_schema__(cls, *_: object) -> Any:
        return adapter_of(ProfileList).core_schema

    def to_json(self) -> str:
        """Write name and model of every seat."""
        return to_json(reduce_to(ProfileList, self))


@redacts(Profiles)
def redact_profiles(profiles: Profiles) -> Profiles:
    """Redact every council."""
    return Profiles(tuple(map(redact, profiles.profiles)))


@operation("GET /profiles", tag="sessions")
def profiles(service: ProfileService, parameters: ProfilesParameters) -> Profiles:  # noqa: ARG001
    """List the available councils: their members, or why one is unavailable."""
    return Profiles(tuple(service.profiles.values()))
