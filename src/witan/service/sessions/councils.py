"""Councils of a server by profile and name, and of one command."""

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Unpack

from witan.deliberation.events import SessionOpened
from witan.deliberation.openings import make_seat
from witan.deliberation.ports import Member, Seat
from witan.deliberation.procedure import Procedure, with_ceiling
from witan.deliberation.session import Session
from witan.errors import InvalidParameter, NoCouncil, TooLarge, UnknownName, WitanError
from witan.history import History
from witan.models.scripted import demonstration
from witan.models.seats import SeatSpec
from witan.service.catalogue import redacts
from witan.service.config.configuration import (
    DEMO,
    NO_OVERRIDES,
    Config,
    load_config,
    profile_config,
)
from witan.service.config.layers import COMMAND_LINE
from witan.service.council import Council, seat_council, without_keys
from witan.service.operations.ask import CouncilRequest, JuryRequest
from witan.service.procedure_options import procedure_of
from witan.service.redaction import redact_refusal, redact_seats, redact_words
from witan.service.text import list_text

if TYPE_CHECKING:
    from witan.models.scripted import Demonstration
    from witan.service.procedure_options import CouncilOptions
    from witan.service.session_recording import SessionRecorder


NAME = "witan"

BEST = f"{NAME}/best"
"""The configured council, with its best answer as the final answer."""

MOST_PROCEDURES = 256
"""Combinations of options whose procedure is cached."""

DAY_SECONDS = 86_400

MOST: Mapping[str, float] = MappingProxyType(
    {
        "call_seconds": DAY_SECONDS,
        "stage_seconds": DAY_SECONDS,
        "session_seconds": DAY_SECONDS,
        "grace_seconds": DAY_SECONDS,
        "hedge_seconds": DAY_SECONDS,
        "attempts": 100,
        "max_tokens": 10_000_000,
        "max_cost_usd": 1_000_000,
        "max_calls": 1_000_000,
    }
)
"""The most that a client may choose, as a session occupies a place until it ends."""

MOST_CHARACTERS = 50_000
"""Most characters of all options as JSON, which are cached."""


@dataclass(frozen=True, slots=True)
class CouncilModel:
    """A council under the name of a model.

    `options`: settings implied by the name.
    """

    name: str
    profile: str
    options: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))


def name_councils(profiles: Iterable[str]) -> list[CouncilModel]:
    """Name the configured council, its mode ``best``, and the profiles."""
    return [
        CouncilModel(NAME, ""),
        CouncilModel(BEST, "", MappingProxyType({"mode": "best"})),
        *(CouncilModel(f"{NAME}/{name}", name) for name in profiles if name),
    ]


def council_names() -> list[str]:
    """List councils for `seat_by_name`: ``witan``, ``witan/best``, ``witan/PROFILE``.

    Raises
    ------
    ConfigError
        If the configuration cannot be read.
    """
    return [each.name for each in _read_councils()]


def seat_by_name(name: str, **options: Unpack["CouncilOptions"]) -> "Council":
    """Seat the council of a name.

    Parameters
    ----------
    name
        One of `council_names`.
    **options
        As of `Council.from_config`; they override those of the name.
    """
    councils = {each.name: each for each in _read_councils()}
    if name not in councils:
        raise UnknownName("council", name, councils)
    settings: dict[str, Any] = {**councils[name].options, **options}
    return Council.from_config(**{"profile": councils[name].profile, **settings})


def _read_councils() -> list[CouncilModel]:
    return name_councils([*load_config(os.environ, Path.cwd()).profiles, DEMO])


@dataclass(frozen=True, slots=True)
class CouncilProfile:
    """An available council.

    Parameters
    ----------
    name
        Its name; empty: the council outside any profile.
    about
        A configured sentence on its purpose.
    procedure
        Its procedure, unless a request overrides it.
    notes
        Notes on its seating.
    seats, jury, chairmen
        As configured; `redact` a profile before a client sees it.
    problem
        Why it is unavailable, in words for a client; None if it is available. A jury without
        members can still judge.
    failure
        The same in words for the operator.
    """

    name: str
    about: str = ""
    seats: tuple[Seat, ...] = ()
    chairmen: tuple[Seat, ...] = ()
    procedure: Procedure | None = None
    notes: tuple[str, ...] = ()
    problem: str | None = None
    failure: WitanError | None = None
    jury: tuple[Seat, ...] = ()

    @property
    def simulated(self) -> bool:
        """True if any seat plays a script."""
        return any(seat.simulated for seat in (*self.seats, *self.jury, *self.chairmen))


@redacts(CouncilProfile)
def redact_profile(profile: CouncilProfile) -> CouncilProfile:
    """Redact the seats of a profile, and its notes."""
    seats, jury, chairmen = redact_seats(profile.seats, profile.jury, profile.chairmen)
    notes = tuple(map(redact_words, profile.notes))
    return replace(profile, seats=seats, jury=jury, chairmen=chairmen, notes=notes)


class Councils:
    """The councils of a service."""

    def __init__(
        self,
        config: Config,
        history: History | None,
        environment: Mapping[str, str] | None = None,
        *,
        fast: bool = False,
    ) -> None:
        self._config = config
        self._directory = Path.cwd()
        self._environment = os.environ if environment is None else environment
        self.history = history
        self._plays_fast = fast
        self._councils: dict[str, Council] = {}
        self._juries: dict[str, Council] = {}
        self._procedures: dict[tuple[str, str], Procedure] = {}
        self.profiles: Mapping[str, CouncilProfile] = {}

    @property
    def config(self) -> Config:
        """The configuration apart from any profile."""
        return self._configure("")

    def _configure(self, profile: str, overrides: Mapping[str, Any] = NO_OVERRIDES) -> Config:
        origin, directory = "the request", self._directory
        return profile_config(self._config, profile, overrides, directory=directory, origin=origin)

    async def open(self, stack: AsyncExitStack) -> None:
        """Seat every profile; store the reason for one that fails."""
        profiles = {}
        abouts = {name: profile.about for name, profile in self._config.profiles.items()}
        for name, about in {"": "", **abouts}.items():
            try:
                council = seat_council(self._configure(name), self._environment)
            except WitanError as error:
                problem = redact_refusal(error)
                jury: tuple[Seat, ...] = ()
                with suppress(WitanError):  # the whole profile's problem is reported
                    jury = await self._seat_jury(name, stack)
                profiles[name] = CouncilProfile(
                    name, about, problem=problem, failure=error, jury=jury
                )
                continue
            profiles[name] = await self._seat(name, about, council, stack)
        demo = demonstration(fast=self._plays_fast)
        council = Council(demo.members, [demo.chairman])
        about = "a demonstration: scripts answer, whatever is asked"
        profiles[DEMO] = await self._seat(DEMO, about, council, stack)
        self.profiles = profiles

    async def _seat_jury(self, name: str, stack: AsyncExitStack) -> tuple[Seat, ...]:
        """Seat a jury without members, which can judge but not answer."""
        config = self._configure(name)
        if (only_judges := config.without_answers()) is config:
            return ()
        council = seat_council(only_judges, self._environment)
        self._juries[name] = await stack.enter_async_context(council)
        return tuple(map(make_seat, council.reviewers))

    async def _seat(
        self, name: str, about: str, council: Council, stack: AsyncExitStack
    ) -> CouncilProfile:
        self._councils[name] = await stack.enter_async_context(council)
        return CouncilProfile(
            name,
            about,
            tuple(map(make_seat, council.members)),
            tuple(map(make_seat, council.chairmen)),
            council.procedure,
            council.notes,
            jury=tuple(map(make_seat, council.jury)),
        )

    def council(self, request: CouncilRequest, ceiling: float | None = None) -> Council:
        """Return the requested council, with its cost under the ceiling."""
        base = self._base(request.profile)
        seats = (*base.members, *base.jury)
        jury = _find_members(request.jury, seats) or base.jury
        # Chosen jurors do not answer; chosen members do not judge.
        judges = {juror.name for juror in jury} if request.jury else set()
        others = tuple(each for each in base.members if each.name not in judges)
        members = _find_members(request.members, seats) or others
        if len(members) < 2:
            raise InvalidParameter("members", [m.name for m in members], "at least two seats")
        _check_jury(jury, members)
        return self._vary(base, request, members, jury, ceiling)

    def council_of_jurors(self, request: JuryRequest, ceiling: float | None = None) -> Council:
        """Seat the chosen jurors, or the reviewers."""
        base = self._juries.get(request.profile) or self._base(request.profile)
        if request.jury and request.members:
            expected = "none with a jury: the answers already exist"
            raise InvalidParameter("members", list(request.members), expected)
        seats = request.jury or request.members
        jurors = _find_members(seats, (*base.members, *base.jury)) or base.reviewers
        if len(jurors) < 2:
            name = "jury" if request.jury else "members"
            raise InvalidParameter(name, list(seats), "at least two seats")
        return self._vary(base, request, jurors, (), ceiling)

    def _vary(
        self,
        base: Council,
        request: JuryRequest,
        members: tuple[Member, ...],
        jury: tuple[Member, ...],
        ceiling: float | None,
    ) -> Council:
        """Seat some members of a council, with the requested chairmen and procedure."""
        seats = (*base.members, *base.jury)
        if request.chairman:
            seat_by_name = {each.name: each for each in (*base.chairmen, *seats)}
            _find_members(request.chairman, (*seat_by_name.values(),))
            chairmen = tuple(seat_by_name[name] for name in request.chairman)
        elif request.members or request.jury:
            # A seat that was left out is not a chairman either.
            absent = {each.name for each in seats} - {each.name for each in (*members, *jury)}
            chairmen = tuple(each for each in base.chairmen if each.name not in absent)
        else:
            chairmen = base.chairmen
        procedure = _limit_cost(self._procedure(base, request), ceiling)
        council = base.vary(procedure, members, chairmen, self.history, jury)
        check_weights(request, council)
        return council

    def council_of(
        self,
        session: Session,
        ceiling: float | None = None,
        max_cost_usd: float | None = None,
        max_calls: int | None = None,
    ) -> Council:
        """Return the council of a session, with today's keys.

        `max_cost_usd`, `max_calls`: ceilings that replace the session's own.
        """
        opening = session.opening
        for base in (*self._councils.values(), *self._juries.values()):
            # Reviewers of stored answers may have other names here.
            match_names = not opening.answers
            seats = (*base.members, *base.jury)
            members = _match_members(
                opening.members or opening.reviewers, seats, by_name=match_names
            )
            jury = _match_members(
                opening.jury if opening.members else (), seats, by_name=match_names
            )
            chairmen = _match_members(
                opening.chairmen, (*base.chairmen, *seats), by_name=match_names
            )
            if members is not None and jury is not None and chairmen is not None:
                procedure = with_ceiling(opening.procedure, max_cost_usd, max_calls)
                procedure = _limit_cost(procedure, ceiling)
                return base.vary(procedure, members, chairmen, self.history, jury)
        raise self._not_here(session)

    def _not_here(self, session: Session) -> NoCouncil:
        begun_text = f"the session {session.id} was begun by"
        retry_text = "or ask the question again"
        opened = session.opening
        for council in self.profiles.values():
            if council.problem is not None and not _missing_seats(
                opened, self._seats_of_profile(council.name)
            ):
                council_text = (
                    f"the profile {council.name}" if council.name else "the configured council"
                )
                problem = f"{begun_text} {council_text}, which cannot be used: {council.problem}"
                return NoCouncil(problem, f"fix that, {retry_text}")
        missing_by_profile = {
            name: _missing_seats(opened, (*base.members, *base.jury, *base.chairmen))
            for name, base in self._councils.items()
        }
        nearest, absent = min(missing_by_profile.items(), key=lambda pair: len(pair[1]))
        others = len(absent) < len({*opened.callable_seats})
        profile_text = (
            f" in the profile {nearest}, where the others sit," if nearest and others else ""
        )
        seat_list = list_text([f"{s.name} ({s.source})" if s.source else s.name for s in absent])
        problem = f"{begun_text} seats that are not configured here"
        return NoCouncil(problem, f"configure {seat_list}{profile_text} as they were, {retry_text}")

    def _seats_of_profile(self, profile: str) -> tuple[SeatSpec, ...]:
        try:
            config = self._configure(profile)
        except WitanError:
            return ()
        return (*config.members, *config.jury, *config.chairmen)

    def _base(self, profile: str) -> Council:
        if profile in self._councils:
            return self._councils[profile]
        base = self.profiles.get(profile)
        if base is None:
            raise UnknownName("profile", profile, [name for name in self.profiles if name])
        which = f"the profile {profile}" if profile else "the configured council"
        remedy = "ask another profile; demo can always be asked"
        raise NoCouncil(f"{which} cannot be seated: {base.problem}", remedy)

    def _procedure(self, base: Council, request: JuryRequest) -> Procedure:
        if not (options := request.options.collect_values()):
            return base.procedure
        check_options(options)
        key = (request.profile, json.dumps(options, sort_keys=True, default=str))
        if key not in self._procedures:
            profile = "" if request.profile == DEMO else request.profile
            if len(self._procedures) >= MOST_PROCEDURES:
                self._procedures.pop(next(iter(self._procedures)))
            self._procedures[key] = procedure_of(self._configure(profile, options))
        return self._procedures[key]


def check_weights(request: JuryRequest, council: Council) -> None:
    """Refuse a weight for anyone but a reviewer."""
    reviewers = [member.name for member in council.reviewers]
    for name in request.options.weights or ():
        if name not in reviewers:
            raise UnknownName("reviewer", name, reviewers)


def check_options(options: Mapping[str, Any]) -> None:
    """Refuse settings forbidden to clients of a server."""
    for name, most in MOST.items():
        if (value := options.get(name)) is not None and value > most:
            raise InvalidParameter(name, value, f"at most {most:,}")
    length = len(json.dumps(options, default=str))
    if length > MOST_CHARACTERS:
        raise TooLarge("characters of options", length, MOST_CHARACTERS)
    rubric: str | None = options.get("rubric")
    if rubric is not None and (rubric.endswith(".toml") or {"/", "\\"} & {*rubric}):
        raise InvalidParameter("rubric", rubric, "the name of a rubric")


def _find_members(names: Sequence[str], members: Sequence[Member]) -> tuple[Member, ...]:
    member_by_name = {member.name: member for member in members}
    for name in names:
        if name not in member_by_name:
            raise UnknownName("seat", name, member_by_name)
    return tuple(member for name, member in member_by_name.items() if name in names)


def _check_jury(jury: Sequence[Member], members: Sequence[Member]) -> None:
    """Refuse a single juror, and a juror that is also a member."""
    if len(jury) == 1:
        raise InvalidParameter("jury", [jury[0].name], "at least two seats, or none")
    shared_names = [member.name for member in members if member in jury]
    if shared_names:
        raise InvalidParameter(
            "jury", shared_names, "other seats than the members: jurors only review"
        )


def _match_members(
    seats: Sequence[Seat], members: Sequence[Member], *, by_name: bool
) -> tuple[Member, ...] | None:
    """Return the members in these seats, by name and source, or source.

    None if some are missing.
    """
    seats_by_profile = {
        (member.name if by_name else "", member.source): member for member in reversed(members)
    }
    result = [seats_by_profile.get((seat.name if by_name else "", seat.source)) for seat in seats]
    return tuple(each for each in result if each is not None) if None not in result else None


def _missing_seats(
    opening: SessionOpened, members: Sequence[Member | SeatSpec]
) -> tuple[Seat, ...]:
    """Return seats of a session missing among the members, redacted."""
    match_names = not opening.answers
    seats_here = {(member.name if match_names else "", member.source) for member in members}
    absent = (
        s
        for s in opening.callable_seats
        if (s.name if match_names else "", s.source) not in seats_here
    )
    [redacted_seat] = redact_seats(dict.fromkeys(absent))
    return redacted_seat


def _limit_cost(procedure: Procedure, ceiling: float | None) -> Procedure:
    own = procedure.limits.max_cost_usd
    if ceiling is None or (own is not None and own <= ceiling):
        return procedure
    return with_ceiling(procedure, ceiling)


RECORD = "the record"


class LocalCouncils:
    """The council of one command, seated on first use.

    `file`: the named configuration file, by default the project's.
    `prices`: seat to US dollars per million tokens read and written, overriding the configuration.
    `recorder`: records its sessions; None records nothing.
    `say`: called with each note on how the council is seated.
    `demo`: the demonstration, instead of the configured council.
    `for_plan`: whether only to plan: missing keys are then only noted.
    """

    profiles: Mapping[str, CouncilProfile] = MappingProxyType({})

    def __init__(
        self,
        file: Path | None,
        prices: Mapping[str, Any] = MappingProxyType({}),
        *,
        recorder: "SessionRecorder | None" = None,
        history: History | None = None,
        say: Callable[[str], None] = lambda _: None,
        demo: "Demonstration | None" = None,
        for_plan: bool = False,
    ) -> None:
        self.history = history
        self._file, self._prices, self._say = file, dict(prices), say
        self._recorder, self._demo, self._for_plan = recorder, demo, for_plan
        self._council: Council | None = None
        self._notes: tuple[str, ...] = ()

    @property
    def config(self) -> Config:
        """The configuration apart from any profile."""
        return self._configure({})

    async def open(self, stack: AsyncExitStack) -> None:
        """Seat nobody yet: the members depend on the request."""

    def council(self, request: CouncilRequest, ceiling: float | None = None) -> Council:
        """Seat the council of a request."""
        del ceiling  # a command has only the configured ceiling
        if self._demo is not None:
            return self._seat_once(self._seat_demo)
        return self._seat_request(configured_settings(request), request)

    def council_of_jurors(self, request: JuryRequest, ceiling: float | None = None) -> Council:
        """Seat the chosen jurors, or the configured reviewers."""
        del ceiling
        settings = configured_settings(request)
        if jurors := request.jury or request.members:
            settings |= {"members": jurors, "jury": ()}
        if not isinstance(request, CouncilRequest):  # nobody writes a final answer
            settings |= {"chairmen": ()}
        return self._seat_request(settings, request, only_judges=True)

    def council_of(
        self,
        session: Session,
        ceiling: float | None = None,
        max_cost_usd: float | None = None,
        max_calls: int | None = None,
    ) -> Council:
        """Seat a session's council from its record, with today's keys."""
        del ceiling
        opening = session.opening
        seats: dict[str, Any] = {
            "members": [_seat_settings(seat) for seat in opening.members or opening.reviewers],
            "jury": [_seat_settings(seat) for seat in opening.jury] if opening.members else [],
            "chairmen": [_seat_settings(seat) for seat in opening.chairmen],
        }
        procedure = with_ceiling(opening.procedure, max_cost_usd, max_calls)
        return self._seat_once(lambda: self._seat(seats, procedure, giver=RECORD))

    def _seat_once(self, seat: Callable[[], Council]) -> Council:
        if self._council is None:
            self._council = seat()
            for note in self._notes:
                self._say(note)
        return self._council

    def _seat_request(
        self, overrides: Mapping[str, Any], request: JuryRequest, *, only_judges: bool = False
    ) -> Council:
        council = self._seat_once(
            lambda: self._seat(overrides, profile=request.profile, only_judges=only_judges)
        )
        check_weights(request, council)
        return council

    def _seat(
        self,
        overrides: Mapping[str, Any],
        procedure: Procedure | None = None,
        *,
        giver: str = COMMAND_LINE,
        profile: str = "",
        only_judges: bool = False,
    ) -> Council:
        config = self._configure(overrides, giver=giver, profile=profile)
        if only_judges:
            config = config.without_answers()
        environment: Mapping[str, str] = os.environ
        missing = None
        if self._for_plan:
            environment, missing = without_keys(config, os.environ)
        council = seat_council(
            config, environment, procedure=procedure, history=self._recorder, teacher=self.history
        )
        self._notes = council.notes if missing is None else (*council.notes, missing)
        return council

    def _configure(
        self, overrides: Mapping[str, Any], *, giver: str = COMMAND_LINE, profile: str = ""
    ) -> Config:
        settings = (
            {**overrides, "price": self._prices or None} if giver is COMMAND_LINE else overrides
        )
        directory = Path.cwd()
        return load_config(
            os.environ, directory, self._file, settings, origin=giver, profile=profile
        )

    def _seat_demo(self) -> Council:
        assert self._demo is not None  # noqa: S101 - checked by the caller
        if self._recorder is not None:
            self._recorder.teaches = False  # the demonstration must not depend on the history
        return Council(self._demo.members, [self._demo.chairman], history=self._recorder)


def configured_settings(request: JuryRequest) -> dict[str, Any]:
    """Return a request's seats and settings for the configuration."""
    seats = {"members": request.members, "jury": request.jury, "chairmen": request.chairman}
    return {name: seat for name, seat in seats.items() if seat} | request.options.collect_values()


def _seat_settings(seat: Seat) -> dict[str, Any]:
    if not seat.source:
        raise NoCouncil(f"{seat.name} is a model of your own", "resume the session from Python")
    options = {name: value for name, value in asdict(seat.options).items() if value is not None}
    table = {"seat": seat.source, "name": seat.name, **options}
    table |= {"url": seat.url} if seat.url is not None else {}
    table |= {"key": seat.key_variable} if seat.key_variable is not None else {}
    if seat.price is not None:
        table["price"] = [seat.price.input_usd, seat.price.output_usd]
    return table
