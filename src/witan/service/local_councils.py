"""Councils of a command, from the configuration or a session's record."""

from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import asdict
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from witan.errors import NoCouncil
from witan.service.operations.ask import CouncilRequest, JuryRequest

if TYPE_CHECKING:
    from witan.deliberation.ports import Seat
    from witan.deliberation.procedure import Procedure
    from witan.deliberation.session import Session
    from witan.history import History
    from witan.models.scripted import Demonstration
    from witan.service.config.configuration import Config
    from witan.service.council import Council
    from witan.service.session_recording import SessionRecorder
    from witan.service.sessions.councils import CouncilProfile

COMMAND_LINE, RECORD = "the command line", "the record"


def ignore_note(_: str) -> None:
    """Ignore the notes."""


class LocalCouncils:
    """The council of one command, seated on first use.

    Parameters
    ----------
    file
        The named configuration file, by default the project's.
    prices
        Seat to US dollars per million tokens read and written, in place of those configured.
    recorder
        Records its sessions; None records nothing.
    history
        What it learns from.
    say
        Called with each note on how the council is seated.
    demo
        The demonstration, in place of what is configured.
    for_plan
        Whether only to plan: missing keys are then only noted.
    """

    profiles: "Mapping[str, CouncilProfile]" = MappingProxyType({})

    def __init__(
        self,
        file: Path | None,
        prices: Mapping[str, Any] = MappingProxyType({}),
        *,
        recorder: "SessionRecorder | None" = None,
        history: "History | None" = None,
        say: Callable[[str], None] = ignore_note,
        demo: "Demonstration | None" = None,
        for_plan: bool = False,
    ) -> None:
        self.history = history
        self._file, self._prices, self._say = file, dict(prices), say
        self._recorder, self._demo, self._for_plan = recorder, demo, for_plan
        self._council: Council | None = None
        self._notes: tuple[str, ...] = ()

    @property
    def config(self) -> "Config":
        """The configuration apart from any profile."""
        return self._configure({})

    async def open(self, stack: AsyncExitStack) -> None:
        """Seat nobody yet: the members depend on the request."""

    def council(self, request: CouncilRequest, ceiling: float | None = None) -> "Council":
        """Seat the council of a request."""
        del ceiling  # whoever runs a command has no other than the configured one
        if self._demo is not None:
            return self._seat_once(self._seat_demo)
        return self._seat_request(configured_settings(request), request)

    def council_of_jurors(self, request: JuryRequest, ceiling: float | None = None) -> "Council":
        """Seat the chosen jurors, or the configured reviewers."""
        del ceiling
        settings = configured_settings(request)
        if jurors := request.jury or request.members:
            settings |= {"members": jurors, "jury": ()}
        if not isinstance(request, CouncilRequest):  # nobody writes a final answer
            settings |= {"chairmen": ()}
        return self._seat_request(settings, request)

    def council_of(
        self,
        session: "Session",
        ceiling: float | None = None,
        max_cost_usd: float | None = None,
        max_calls: int | None = None,
    ) -> "Council":
        """Seat a session's council from its record, with today's keys."""
        from witan.deliberation.procedure import with_ceiling

        del ceiling
        opening = session.opening
        seats: dict[str, Any] = {
            "members": [_seat_settings(seat) for seat in opening.members or opening.reviewers],
            "jury": [_seat_settings(seat) for seat in opening.jury] if opening.members else [],
            "chairmen": [_seat_settings(seat) for seat in opening.chairmen],
        }
        procedure = with_ceiling(opening.procedure, max_cost_usd, max_calls)
        return self._seat_once(lambda: self._seat(seats, procedure, giver=RECORD))

    def _seat_once(self, seat: "Callable[[], Council]") -> "Council":
        if self._council is None:
            self._council = seat()
            for note in self._notes:
                self._say(note)
        return self._council

    def _seat_request(self, overrides: Mapping[str, Any], request: JuryRequest) -> "Council":
        from witan.service.sessions.councils import check_weights

        council = self._seat_once(lambda: self._seat(overrides, profile=request.profile))
        check_weights(request, council)
        return council

    def _seat(
        self,
        overrides: Mapping[str, Any],
        procedure: "Procedure | None" = None,
        *,
        giver: str = COMMAND_LINE,
        profile: str = "",
    ) -> "Council":
        import os

        from witan.service.council import seat_council, without_keys

        config = self._configure(overrides, giver=giver, profile=profile)
        environment: Mapping[str, str] = os.environ
        missing = None
        if self._for_plan:
            environment, missing = without_keys(config, os.environ)
        council = seat_council(
            config,
            environment,
            procedure=procedure,
            history=self._recorder,
            teacher=self.history,
        )
        self._notes = council.notes if missing is None else (*council.notes, missing)
        return council

    def _configure(
        self, overrides: Mapping[str, Any], *, giver: str = COMMAND_LINE, profile: str = ""
    ) -> "Config":
        import os

        from witan.service.config.configuration import load_config

        settings = (
            {**overrides, "price": self._prices or None} if giver is COMMAND_LINE else overrides
        )
        directory = Path.cwd()
        return load_config(
            os.environ, directory, self._file, settings, origin=giver, profile=profile
        )

    def _seat_demo(self) -> "Council":
        from witan.service.council import Council

        assert self._demo is not None  # noqa: S101 - asked before
        if self._recorder is not None:
            self._recorder.teaches = False  # everybody is to see the same
        return Council(self._demo.members, [self._demo.chairman], history=self._recorder)


def configured_settings(request: JuryRequest) -> dict[str, Any]:
    """Return a request's seats and settings for the configuration."""
    seats = {"members": request.members, "jury": request.jury, "chairmen": request.chairman}
    return {name: seat for name, seat in seats.items() if seat} | request.options.collect_values()


def _seat_settings(seat: "Seat") -> dict[str, Any]:
    """Return a seat of a record as the configuration takes it."""
    if not seat.source:
        raise NoCouncil(f"{seat.name} is a model of your own", "resume the session from Python")
    options = {name: value for name, value in asdict(seat.options).items() if value is not None}
    table = {"seat": seat.source, "name": seat.name, **options}
    table |= {"url": seat.url} if seat.url is not None else {}
    table |= {"key": seat.key_variable} if seat.key_variable is not None else {}
    if seat.price is not None:
        table["price"] = [seat.price.input_usd, seat.price.output_usd]
    return table
