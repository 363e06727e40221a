"""The council as it is used from Python: seats as strings, members, or models of one's own."""

import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Self, TypeVar

import anyio
from anyio.from_thread import start_blocking_portal

from witan.adapters.connections import Connections
from witan.adapters.pydantic_ai_model import Providers
from witan.adapters.scripted import Scripted
from witan.adapters.system_clock import SystemClock
from witan.core.rules import RULES
from witan.deliberation import council as deliberation
from witan.deliberation.events import Event, SessionOpened
from witan.deliberation.ports import Member, Message, Model, Price, Teacher
from witan.deliberation.procedure import Procedure, Throttling
from witan.deliberation.recorder import Listener
from witan.deliberation.session import Session
from witan.deliberation.sitting import Sitting
from witan.errors import ConfigError, InvalidParameter, NoCouncil
from witan.surfaces.arranging import arrange, procedure_of, traced
from witan.surfaces.config import Config, load_config
from witan.surfaces.config_schema import OPEN_TABLES, fixed_keys
from witan.surfaces.finding import Found, find_council, shared_votes
from witan.surfaces.seating import SeatSpec, name_seats, no_such_seat, parse_seat, seat

if TYPE_CHECKING:
    from witan.adapters.history import History
    from witan.surfaces.kept import Kept

__all__ = ["Council", "Seatable", "ask", "seat_council", "who_sits"]

Seatable = str | SeatSpec | Member | Model
"""A seat as it is written or taken apart, a member, or anything that can complete a call."""

OWN = "python"
"""The provider of models that were handed over as objects."""

NO_FILES: Mapping[str, str] = MappingProxyType({})

T = TypeVar("T")


class Council(deliberation.Council):
    """Members, their chairmen, and how they deliberate.

    Parameters
    ----------
    members
        Seats as they are written (``openai:gpt-5``), members, or models of your own.
    chairman
        Who writes the closing text: likewise, or a member's name; a list is tried in order. None:
        the best-ranked member.
    environment
        Where keys are looked for.
    procedure
        How they deliberate, as a whole, in place of options.
    notes
        What to know about how the council was seated, a sentence each.
    history
        Where every session is recorded, and what the council learns from before it counts: an open
        `History`, or a path or URL of one, which is opened with the council's block. None: nowhere.
    teacher
        What the council learns from where it records nothing itself.
    **options
        Fields of `Procedure`, `Limits` and `Settings` by name, parameters of the rule, and
        `rubric` as a name, a path or a `Rubric`, with `rubric_weights`.

    Raises
    ------
    NoCouncil
        With fewer than two members.
    ConfigError, MissingKey
        If a seat is not written like one, or lacks its key.
    UnknownName, InvalidParameter, InvalidRubric
        If an option does not exist, or has a value it does not accept.
    """

    def __init__(
        self,
        members: Sequence[Seatable],
        chairman: Seatable | Sequence[Seatable] | None = None,
        *,
        environment: Mapping[str, str] = os.environ,
        procedure: Procedure | None = None,
        notes: Sequence[str] = (),
        history: "History | str | Path | None" = None,
        teacher: Teacher | None = None,
        **options: Any,
    ) -> None:
        if procedure is not None and options:
            raise InvalidParameter(min(options), options[min(options)], "either it or a procedure")
        arranged = arrange(options) if procedure is None else procedure
        connections, providers = Connections(), Providers()
        seating = _Seating(environment, connections, providers)
        seated = seating.members(members)
        chairmen = seating.chairmen(_listed(chairman))
        self._kept = None if history is None else _keeping(history)
        super().__init__(
            seated,
            chairmen,
            arranged,
            clock=SystemClock(),
            closing=(connections.aclose, providers.aclose, *seating.closing),
            notes=(*notes, *(note for note in shared_votes(seated) if note not in notes)),
            teacher=teacher if self._kept is None else self._kept,
        )

    async def __aenter__(self) -> Self:
        if self._kept is not None:
            await self._kept.open()
        return await super().__aenter__()

    async def __aexit__(self, *failure: object) -> None:
        try:
            await super().__aexit__(*failure)
        finally:
            if self._kept is not None:
                await self._kept.close()

    async def resume(self, session: Session, *, listener: Listener | None = None) -> Session:
        """Take up an interrupted session at its last finished seat; a closed one is returned.

        As of the base; what the history holds of the session is taken over.
        """
        if self._kept is not None and session.status == "interrupted":
            await self._kept.claim(session.id)
        return await super().resume(session, listener=listener)

    def _sitting(
        self, opened: SessionOpened, earlier: tuple[Event, ...], listener: Listener | None
    ) -> Sitting:
        told = listener if self._kept is None else self._kept.listening(listener)
        return super()._sitting(opened, earlier, told)

    async def _held(self, sitting: Sitting) -> Session:
        session = await super()._held(sitting)
        return session if self._kept is None else await self._kept.settle(session)

    @classmethod
    def from_config(
        cls,
        path: str | Path | None = None,
        *,
        chairman: Seatable | Sequence[Seatable] | None = None,
        environment: Mapping[str, str] = os.environ,
        procedure: Procedure | None = None,
        history: "History | str | Path | None" = None,
        **overrides: Any,
    ) -> "Council":
        """Seat the configured council, or else one of what is found, as ``witan ask`` does.

        Parameters
        ----------
        path
            A configuration file in place of the project's ``witan.toml``.
        chairman
            Who writes the closing text, in place of who is configured; as of `Council`.
        procedure
            How they deliberate, as a whole, in place of what is configured.
        history
            Where every session is recorded; as of `Council`, whatever is configured.
        **overrides
            Settings by the last word of their key, parameters of the rule, and `providers`;
            stronger than files and variables.
        """
        arranged = overrides.keys() - {"members", "chairmen"}
        if procedure is not None and arranged:
            name = min(arranged)
            raise InvalidParameter(name, overrides[name], "either it or a procedure")
        chairmen = _listed(chairman)
        given = _configurable(overrides)
        if chairman is not None:
            given["chairmen"] = [each for each in chairmen if isinstance(each, str)]
        config = load_config(environment, Path.cwd(), path, given, overriding="from_config")
        seated: list[Seatable] = list(config.chairmen)
        for place, each in enumerate(chairmen):
            if not isinstance(each, str):
                seated.insert(place, each)
        return seat_council(config, environment, seated, procedure, history=history)


def seat_council(
    config: Config,
    environment: Mapping[str, str],
    chairmen: Sequence[Seatable] | None = None,
    procedure: Procedure | None = None,
    *,
    history: "History | str | Path | None" = None,
    teacher: Teacher | None = None,
) -> Council:
    """Seat who is configured, or else whom `find_council` finds; a running event loop is no bar.

    Parameters
    ----------
    chairmen, procedure
        In place of those configured.
    history, teacher
        As of `Council`.

    Raises
    ------
    NoCouncil
        If too few are configured, or nobody is and nothing is found.
    ConfigError, MissingKey
        If a setting is not accepted, or a seat lacks its key.
    """
    arranged = procedure_of(config) if procedure is None else procedure
    found = who_sits(config, environment)
    with traced(config) if procedure is None else nullcontext():
        return Council(
            found.seats,
            config.chairmen if chairmen is None else chairmen,
            environment=environment,
            procedure=arranged,
            notes=found.notes,
            history=history,
            teacher=teacher,
        )


def who_sits(config: Config, environment: Mapping[str, str]) -> Found:
    """The seats that are configured, or else those that `find_council` finds; nobody is seated.

    Raises
    ------
    NoCouncil
        If only one is configured, or nobody is and nothing is found.
    """
    if len(config.members) == 1:
        where = config.origins["members"]
        raise NoCouncil(
            f"a council needs at least two members, and {where} names one",
            "add another there; the same model may hold several seats",
        )
    if config.members:
        return Found(config.members, shared_votes(config.members))
    return _blocking(partial(find_council, environment, reached=config.reached))


def ask(
    question: str,
    members: Sequence[Seatable] | None = None,
    chairman: Seatable | Sequence[Seatable] | None = None,
    *,
    conversation: Sequence[Message] = (),
    files: Mapping[str, str] = NO_FILES,
    seed: int | None = None,
    category: str | None = None,
    listener: Listener | None = None,
    **options: Any,
) -> Session:
    """Put a question to a council and wait for everything that comes of it.

    Works in a script and in a notebook alike: where an event loop already runs in this thread, the
    council deliberates in another. Without `members` the configured council sits; for the rest see
    `Council` and its `ask`.
    """
    if members is None:
        council = Council.from_config(chairman=chairman, **options)
    else:
        council = Council(members, chairman, **options)

    async def put() -> Session:
        async with council:
            return await council.ask(
                question,
                conversation=conversation,
                files=files,
                seed=seed,
                category=category,
                listener=listener,
            )

    return _blocking(put)


def _blocking(work: Callable[[], Awaitable[T]]) -> T:
    """Run to the end: here, or in another thread where this one already runs an event loop."""
    try:
        anyio.get_cancelled_exc_class()
    except anyio.NoEventLoopError:
        return anyio.run(work)
    with start_blocking_portal() as portal:
        return portal.call(work)


def _configurable(overrides: Mapping[str, Any]) -> dict[str, Any]:
    """Overrides as the configuration takes them: parameters of a rule stand in their table."""
    settings = {key[-1] for key in (*fixed_keys(), *OPEN_TABLES)}
    parameters = {name for rule in RULES.values() for name in rule.parameters} - settings
    given = {name: value for name, value in overrides.items() if name not in parameters}
    own = {name: value for name, value in overrides.items() if name in parameters}
    table = overrides.get("rule_parameters", {})
    if own and isinstance(table, Mapping):
        given["rule_parameters"] = {**table, **own}
    if isinstance(overrides.get("providers"), Mapping):
        given["providers"] = {
            name: asdict(each) if isinstance(each, Throttling) else each
            for name, each in overrides["providers"].items()
        }
    return given


def _listed(chairman: Seatable | Sequence[Seatable] | None) -> Sequence[Seatable]:
    if chairman is None:
        return ()
    return chairman if isinstance(chairman, list | tuple) else (chairman,)


def _keeping(history: "History | str | Path") -> "Kept":
    # Councils without a history need not load one.
    from witan.surfaces.kept import Kept

    return Kept(history)


class _Seating:
    """Makes members of whatever was handed over, each under a name of its own."""

    def __init__(
        self, environment: Mapping[str, str], connections: Connections, providers: Providers
    ) -> None:
        self._environment = environment
        self._connections, self._providers = connections, providers
        self._seated: list[tuple[SeatSpec, Member]] = []
        self.closing: list[Callable[[], Awaitable[None]]] = []

    def members(self, given: Sequence[Seatable]) -> list[Member]:
        """The members, in order."""
        specs = [_spec(each, f"members[{n}]") for n, each in enumerate(given, start=1)]
        named = name_seats(specs)
        made = [self._made(each, spec) for each, spec in zip(given, named, strict=True)]
        self._seated = list(zip(named, made, strict=True))
        return made

    def chairmen(self, given: Sequence[Seatable]) -> list[Member]:
        """The chairmen, in order; one that is written as a member, or named as one, is that one."""
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
        """The member that a chairman is, if it is one."""
        written = isinstance(each, SeatSpec) or (isinstance(each, str) and ":" in each)
        spec = _spec(each, "chairman") if written else None
        for seated, member in self._seated:
            if each in (member, member.name) or each is member.model:
                return member
            same = spec is not None and replace(seated, name=spec.name) == spec
            if spec is not None and same and spec.name in ("", seated.name):
                return member
        return None

    def _made(self, each: Seatable, spec: SeatSpec) -> Member:
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
