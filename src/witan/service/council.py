"""The Python council: seats as strings, members, or your own models."""

import inspect
import os
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, Self, TypeAlias, TypeVar, Unpack

import anyio.from_thread

from witan.core.display import LiveView, open_live_view
from witan.core.rules import RULES
from witan.core.stats.learning import Lessons
from witan.deliberation.calls import SessionContext
from witan.deliberation.council import NO_SLOT, BaseCouncil, Slot
from witan.deliberation.events import Event, Listener, SessionOpened
from witan.deliberation.openings import Texts, plan_rejudgment
from witan.deliberation.plan import TYPICAL, Lengths, Plan
from witan.deliberation.planner import NO_FILES
from witan.deliberation.ports import REFERENCE, Member, Message, Model, Price, SystemClock, Teacher
from witan.deliberation.procedure import Procedure, ThrottlePolicy
from witan.deliberation.retries import plan_retry
from witan.deliberation.session import Session
from witan.deliberation.throttle import Throttles
from witan.errors import ConfigError, InvalidParameter, NoCouncil, UnknownName, UnknownOption
from witan.models.providers import find_key
from witan.models.scripted import ScriptedModel
from witan.models.seats import (
    Rate,
    SeatSpec,
    find_price,
    key_variables,
    name_seats,
    names_of,
    parse_seat,
    seat,
    unknown_seat_problem,
)
from witan.service.history_access import history_place
from witan.service.procedure_options import (
    CouncilOptions,
    build_procedure,
    locate_error,
    procedure_of,
)
from witan.service.text import list_text
from witan.service.trust import shared_votes

if TYPE_CHECKING:
    from witan.history import History
    from witan.models.connections import Connections
    from witan.models.pydantic_ai_model import Providers
    from witan.service.config.configuration import Config
    from witan.service.council_discovery import DiscoveredCouncil
    from witan.service.session_recording import SessionRecorder

    HistoryPlace: TypeAlias = SessionRecorder | History | str | Path | Literal[False] | None

Seatable = str | SeatSpec | Member | Model
"""A seat as it is written or taken apart, a member, or anything that can complete a call."""

PYTHON = "python"
"""The provider of models given as objects."""


class MemberFactory:
    """Makes members from seats, models and objects, each with a name."""

    def __init__(
        self,
        environment: Mapping[str, str],
        prices: Mapping[str, Rate],
    ) -> None:
        self._prices = prices
        self._environment = environment
        self._clients: tuple[Connections, Providers] | None = None
        self._named: dict[str, None] = {}
        self._seated: list[tuple[SeatSpec, Member]] = []
        self.closing: list[Callable[[], Awaitable[None]]] = []

    def seat_all(self, seats: Sequence[Seatable], key: str) -> list[Member]:
        """Make members, or after them jurors, in order."""
        if isinstance(seats, str):  # would be a list of letters
            raise InvalidParameter("the seats", seats, "a list of seats")
        names = [member.name for _, member in self._seated]
        unnamed = [_spec(each, f"{key}[{n}]") for n, each in enumerate(seats, start=1)]
        specs = name_seats(unnamed, names=names)
        members = [self._make_member(each, spec) for each, spec in zip(seats, specs, strict=True)]
        self._seated += zip(specs, members, strict=True)
        return members

    def chairmen(self, seats: Sequence[Seatable]) -> list[Member]:
        """Make the chairmen, in order; one may be another seat."""
        result = []
        names = [member.name for _, member in self._seated]
        for number, each in enumerate(seats, start=1):
            member = self._seated_member(each)
            if member is None:
                key = f"chairmen[{number}]"
                if isinstance(each, str) and ":" not in each and self._seated:
                    raise ConfigError("the council", key, unknown_seat_problem(each, names))
                [spec] = name_seats([_spec(each, key)], names)
                names.append(spec.name)
                member = self._make_member(each, spec)
            result.append(member)
        return result

    def _seated_member(self, each: Seatable) -> Member | None:
        """Find the member or juror in a chairman's seat, if any."""
        is_text_seat = isinstance(each, SeatSpec) or (isinstance(each, str) and ":" in each)
        spec = _spec(each, "chairman") if is_text_seat else None
        for seated_spec, member in self._seated:
            if each in (member, member.name) or each is member.model:
                return member
            is_same = spec is not None and replace(seated_spec, name=spec.name) == spec
            if spec is not None and is_same and spec.name in ("", seated_spec.name):
                return member
        return None

    def check_prices(self) -> None:
        """Refuse a price for an unknown seat."""
        for name in self._prices:
            if name not in self._named:
                raise UnknownName("seat of a price", name, self._named)

    def _make_member(self, each: Seatable, spec: SeatSpec) -> Member:
        self._named |= dict.fromkeys(names_of(spec))
        price = find_price(spec, self._prices)
        member = self._member_without_price(each, spec)
        return member if price is None else replace(member, price=price)

    def _member_without_price(self, each: Seatable, spec: SeatSpec) -> Member:
        if isinstance(each, Member):
            return each
        if not isinstance(each, str | SeatSpec):
            is_scripted = isinstance(each, ScriptedModel)
            price = Price(0, 0) if is_scripted else None
            return Member(spec.name, each, provider=PYTHON, price=price, simulated=is_scripted)
        member = seat(spec, self._environment, *self._shared_clients())
        close = getattr(member.model, "aclose", None)
        if close is not None:
            self.closing.append(close)
        return member

    def _shared_clients(self) -> "tuple[Connections, Providers]":
        if self._clients is None:
            from witan.models.connections import Connections
            from witan.models.pydantic_ai_model import Providers

            connections, providers = self._clients = Connections(), Providers()
            self.closing[:0] = [connections.aclose, providers.aclose]
        return self._clients


def _spec(each: Seatable, key: str) -> SeatSpec:
    """Return a seat as a user names it."""
    if isinstance(each, SeatSpec):
        return each
    if isinstance(each, str):
        return parse_seat(each, key=key, base=Path.cwd())
    model = each.model if isinstance(each, Member) else each
    if isinstance(model, type) or not callable(getattr(model, "complete", None)):
        expected = "a seat such as 'openai:MODEL', a Member, or an object with a method complete"
        raise InvalidParameter(key, model, expected)
    if isinstance(each, Member):
        return SeatSpec(each.source, each.provider, each.name, name=each.name)
    name = getattr(each, "name", None)
    return SeatSpec("", PYTHON, name if isinstance(name, str) and name else type(each).__name__)


NO_PRICES: Mapping[str, Rate] = MappingProxyType({})
NO_ALIASES: Mapping[str, str] = MappingProxyType({})

T = TypeVar("T")


class ConfigOptions(CouncilOptions, total=False):
    """Keywords that override a configuration: seats, prices, council settings."""

    members: Sequence[str]
    chairmen: Sequence[str]
    price: Mapping[str, Rate]


class AskOptions(CouncilOptions, total=False):
    """Keywords of `ask`: council settings, seats and recording."""

    path: str | Path | None
    profile: str
    environment: Mapping[str, str] | None
    procedure: Procedure | None
    history: "HistoryPlace"
    price: Mapping[str, Rate]
    progress: bool


class JudgeOptions(AskOptions, total=False):
    """Keywords of `judge`, besides the jury and the pass mark."""

    question: str | None
    reference: str | None
    expected: str | None
    files: Mapping[str, str]
    seed: int | None
    category: str | None
    name: str | None
    listener: Listener | None


class Council(BaseCouncil):
    """Members, chairmen, and their procedure.

    Parameters
    ----------
    members
        Seats as they are written (``openai:gpt-5``), members, or models of your own.
    chairman
        Who writes the final answer: likewise, or a member's name; a list is tried in order. None:
        the best-ranked member.
    jury
        Jurors, who only review, in place of the members; likewise. None: members review each other.
    environment
        Variables with keys, by default this process's environment.
    procedure
        The whole procedure, instead of options.
    notes
        What to know about how the council was seated, a sentence each.
    history
        Where every session is recorded, and what the council learns from before it counts: an open
        `History`, or a path or URL of one, which is opened with the council's block; or a recorder.
        None, False: nowhere.
    aliases
        Old name → new name of a model, which learning counts as one reviewer. For a `history` that
        is opened with the block; an open one has its own `aliases`.
    teacher
        Source of lessons for a council that does not record; earlier lessons always apply.
    throttles
        As in the base class.
    price
        Seat, by its name or as it is written → US dollars per million tokens read and written.
    progress
        Show running sessions in a notebook, except those with their own listener.
    **options
        Settings of the council, as the configuration has them, and parameters of the rule.

    Raises
    ------
    NoCouncil
        With fewer than two members, or one juror.
    ConfigError, MissingKey
        If a seat is malformed, or its key is missing.
    UnknownName, InvalidParameter, InvalidRubric
        If an option does not exist, or has a value it does not accept.
    """

    def __init__(  # noqa: PLR0913 - all but two by name
        self,
        members: Sequence[Seatable],
        chairman: Seatable | Sequence[Seatable] | None = None,
        *,
        jury: Sequence[Seatable] | None = None,
        environment: Mapping[str, str] | None = None,
        procedure: Procedure | None = None,
        notes: Sequence[str] = (),
        history: "HistoryPlace" = None,
        aliases: Mapping[str, str] = NO_ALIASES,
        teacher: Teacher | Lessons | None = None,
        throttles: Throttles | None = None,
        price: Mapping[str, Rate] = NO_PRICES,
        progress: bool = True,
        **options: Unpack[CouncilOptions],
    ) -> None:
        if procedure is not None and options:
            raise _conflict_error(options)
        arranged = build_procedure(options) if procedure is None else procedure
        # As a default value, the environment and its keys would be printed with the signature.
        known = os.environ if environment is None else environment
        seating = MemberFactory(known, price)
        seated = seating.seat_all(members, "members")
        jurors = seating.seat_all(jury or (), "jury")
        chairmen = seating.chairmen(_as_list(chairman))
        seating.check_prices()
        self._recorder = _make_recorder(history, aliases)
        self.progress, self._views = progress, dict[str, LiveView]()
        learns = self._recorder is not None and self._recorder.teaches
        super().__init__(
            seated,
            chairmen,
            arranged,
            jury=jurors,
            clock=SystemClock(),
            closing=tuple(seating.closing),
            notes=(*notes, *(note for note in shared_votes(jurors or seated) if note not in notes)),
            teacher=self._recorder if learns and not isinstance(teacher, Lessons) else teacher,
            throttles=throttles,
        )

    def vary(
        self,
        procedure: Procedure,
        members: Sequence[Member],
        chairmen: Sequence[Member],
        history: "HistoryPlace" = None,
        jury: Sequence[Member] = (),
        *,
        teacher: Teacher | Lessons | None = None,
    ) -> "Council":
        """Return a council of some members under another procedure.

        They share the members' connections and the limits of their providers, so it must be used
        within this one's block.
        """
        return Council(
            members,
            list(chairmen),
            jury=jury,
            procedure=procedure,
            history=history,
            teacher=teacher,
            throttles=self._shared_throttles or self._throttles,
            progress=False,
        )

    def plan(
        self,
        question: str,
        *,
        conversation: Sequence[Message] = (),
        files: Mapping[str, str] = NO_FILES,
        lengths: Lengths | None = None,
    ) -> Plan:
        """Plan the calls and cost of a question, without a call.

        Parameters
        ----------
        lengths
            Expected length of replies; by default as in the history, else as published.
        """
        if lengths is None:
            lengths = TYPICAL if self._recorder is None else self._recorder.lengths()
        return super().plan(question, conversation=conversation, files=files, lengths=lengths)

    def plan_retry(self, session: Session, seats: Sequence[str] | None = None) -> Plan:
        """Plan the calls and highest cost of `retry`, with its errors."""
        self._check_stored_session(session)
        return plan_retry(session, seats, self.procedure.limits)

    def plan_rejudge(self, session: Session) -> Plan:
        """Plan the calls and highest cost of `rejudge`, with its errors."""
        return plan_rejudgment(session, self.reviewers, self.chairmen, self.procedure)

    async def __aenter__(self) -> Self:
        if self._recorder is not None:
            await self._recorder.open()
        return await super().__aenter__()

    async def __aexit__(self, *failure: object) -> None:
        try:
            await super().__aexit__(*failure)
        finally:
            if self._recorder is not None:
                await self._recorder.close()

    async def begin(self, opening: SessionOpened) -> Session:
        """Store an opening before any call; `resume` runs its session.

        Raises
        ------
        HistoryError
            If it is not stored, or a session has its name.
        """
        if self._recorder is not None:
            await self._recorder.begin(opening)
        return Session.of((opening,))

    async def resume(
        self,
        session: Session,
        *,
        listener: Listener | None = None,
        slot: Slot = NO_SLOT,
        max_calls: int | None = None,
    ) -> Session:
        """Resume an interrupted session after its last finished seat.

        A closed session is returned unchanged.

        Like the base class, but with later events of the session from the history. Without a new
        answer, ballot or final answer, it stays interrupted in the history.
        """
        with ExitStack() as stack:
            if self._recorder is not None and session.status == "interrupted":
                await self._recorder.claim(session)
                stack.callback(self._recorder.end_session, session.id)
            return await super().resume(session, listener=listener, slot=slot, max_calls=max_calls)

    def _make_context(
        self,
        opened: SessionOpened,
        earlier: tuple[Event, ...],
        listener: Listener | None,
        max_calls: int | None = None,
    ) -> SessionContext:
        if self._recorder is not None:
            self._recorder.check_file()
        if self.progress and listener is None and (view := open_live_view("session")) is not None:
            self._views[opened.session] = view
            listener = view.show
        if self._recorder is not None:
            listener = self._recorder.open_journal(opened.session, listener)
        return super()._make_context(opened, earlier, listener, max_calls)

    async def _run(self, context: SessionContext, slot: Slot = NO_SLOT) -> Session:
        name = context.opening.session
        with ExitStack() as stack:
            if (view := self._views.pop(name, None)) is not None:
                stack.callback(view.close)
                self._group.start_soon(view.refresh)
            if self._recorder is None:
                return await super()._run(context, slot)
            stack.callback(self._recorder.end_session, name)
            await self._recorder.create_history()
            return await self._recorder.settle(await super()._run(context, slot))

    @classmethod
    def from_config(  # noqa: PLR0913 - all but one by name
        cls,
        path: str | Path | None = None,
        *,
        jury: Sequence[Seatable] | None = None,
        chairman: Seatable | Sequence[Seatable] | None = None,
        environment: Mapping[str, str] | None = None,
        procedure: Procedure | None = None,
        history: "HistoryPlace" = None,
        profile: str = "",
        progress: bool = True,
        only_judges: bool = False,
        **overrides: Unpack[ConfigOptions],
    ) -> "Council":
        """Seat the configured council, or a discovered one, like ``witan ask``.

        Parameters
        ----------
        path
            A configuration file in place of the project's ``witan.toml``.
        jury
            Jurors instead of the configured ones; as for `Council`. Empty: members review each
            other.
        chairman
            Chairman instead of the configured one; as for `Council`.
        procedure
            The whole procedure, instead of the configured one.
        history
            History that records every session, as for `Council`. None: the place in ``[history]``
            or ``WITAN_HISTORY``, if any; False: none.
        profile
            The name of a configured council.
        progress
            As for `Council`.
        only_judges
            Whether it only judges texts; a configured jury then needs no members.
        **overrides
            Settings by the last word of their key, parameters of the rule, and `providers`;
            stronger than files and variables.
        """
        arranged = {k: v for k, v in overrides.items() if k not in ("members", "chairmen")}
        if procedure is not None and arranged:
            raise _conflict_error(arranged)
        known = os.environ if environment is None else environment
        chairmen = _as_list(chairman)
        settings = _config_overrides(overrides)
        if chairman is not None:
            settings["chairmen"] = [each for each in chairmen if isinstance(each, str)]
        if jury is not None:
            settings["jury"] = [each for each in jury if isinstance(each, str)]
        from witan.service.config.configuration import load_config

        config = load_config(known, Path.cwd(), path, settings, origin="an option", profile=profile)
        config = config.without_answers() if only_judges else config
        chairs = _insert_objects(config.chairmen, chairmen)
        jurors = _insert_objects(config.jury, jury or ())
        if history is None and config.history.is_explicit:
            history = history_place(config)
        return seat_council(
            config, known, chairs, procedure, jury=jurors, history=history, progress=progress
        )


def seat_council(
    config: "Config",
    environment: Mapping[str, str],
    chairmen: Sequence[Seatable] | None = None,
    procedure: Procedure | None = None,
    *,
    jury: Sequence[Seatable] | None = None,
    history: "HistoryPlace" = None,
    teacher: Teacher | None = None,
    progress: bool = False,
) -> Council:
    """Seat the configured council, or else a discovered one.

    It also works inside a running event loop.

    `chairmen`, `procedure`, `jury`: instead of the configured ones.
    `history`, `teacher`, `progress`: as for `Council`.

    Raises `NoCouncil` if too few are configured, or none and nothing is found; `ConfigError` or
    `MissingKey` if a setting is not accepted, or a seat's key is missing.
    """
    arranged = procedure_of(config) if procedure is None else procedure
    config_seats = config
    config = with_list_prices(config, environment)
    discovery = find_seats(config, environment)
    unseated = (
        f"the configured chairman {name} has no seat among these members, and is not asked"
        for name in config.empty_seats
    )
    with locate_error(config) if procedure is None else nullcontext():
        council = Council(
            discovery.seats,
            _reprice(chairmen, config_seats.chairmen, config.chairmen),
            jury=_reprice(jury, config_seats.jury, config.jury),
            environment=environment,
            procedure=arranged,
            notes=(*discovery.notes, *unseated),
            history=history,
            aliases=config.aliases,
            teacher=teacher,
            progress=progress,
        )
    if (recorder := council._recorder) is not None:  # noqa: SLF001 - of this module
        recorder.keep_days = config.history.keep_days
    return council


def _reprice(
    seats: Sequence[Seatable] | None, unpriced: Sequence[SeatSpec], priced: Sequence[SeatSpec]
) -> Sequence[Seatable]:
    if seats is None:
        return priced
    prices = dict(zip(unpriced, priced, strict=True))
    return [prices.get(each, each) if isinstance(each, SeatSpec) else each for each in seats]


def with_list_prices(config: "Config", environment: Mapping[str, str]) -> "Config":
    """Add list prices as `price_config` does, even inside a running event loop."""
    from witan.service.council_discovery import price_config

    return _run(partial(price_config, config, environment))


def find_seats(config: "Config", environment: Mapping[str, str]) -> "DiscoveredCouncil":
    """Return the configured seats, or else those of `find_council`.

    Raises `NoCouncil` if only one member or juror is configured, or none and nothing is found.
    """
    from witan.service.council_discovery import DiscoveredCouncil, find_council

    if len(config.members) == 1:
        source = config.origins["members"]
        raise NoCouncil(
            f"a council or jury needs at least two members, and {source} names one",
            "add another there; the same model may hold several seats",
        )
    if len(config.jury) == 1:
        raise NoCouncil(
            f"a jury needs at least two jurors, and {config.origins['jury']} names one",
            "add another there, or none: then the members review each other",
        )
    if config.members:
        discovered = DiscoveredCouncil(config.members, shared_votes(config.jury or config.members))
    else:
        find = partial(find_council, environment, reaches=config.reach_by_provider)
        discovered = _run(partial(find, jury_origin=config.jury_origin))
        names = [juror.name for juror in config.jury]
        seats = name_seats([replace(seat, name="") for seat in discovered.seats], names)
        discovered = replace(discovered, seats=config.price_seats(seats, is_found=True))
    config.check_prices((*discovered.seats, *config.jury, *config.chairmen))
    return discovered


def without_keys(
    config: "Config", environment: Mapping[str, str]
) -> tuple[Mapping[str, str], str | None]:
    """Fill in keys, which a plan does not need; note missing ones."""
    environment_with_keys, missing = {**environment}, dict[str, None]()
    for variables in map(key_variables, (*config.members, *config.jury, *config.chairmen)):
        if variables and find_key(variables, environment) is None:
            missing[" or ".join(variables)] = None
            environment_with_keys[variables[0]] = "a plan calls nobody"
    if not missing:
        return environment, None
    names = list_text([*missing], most=len(missing))
    return environment_with_keys, f"no key is needed for the plan; to ask, set {names}"


def ask(  # noqa: PLR0913 - all but three by name
    question: str,
    members: Sequence[Seatable] | None = None,
    chairman: Seatable | Sequence[Seatable] | None = None,
    *,
    jury: Sequence[Seatable] | None = None,
    conversation: Sequence[Message] = (),
    files: Mapping[str, str] = NO_FILES,
    seed: int | None = None,
    category: str | None = None,
    parent: str | None = None,
    name: str | None = None,
    listener: Listener | None = None,
    **options: Unpack[AskOptions],
) -> Session:
    """Ask a council a question and wait for the session.

    Works in scripts and in notebooks: if an event loop already runs in this thread, the council
    deliberates in another thread. Without `members` the configured council answers; for the rest
    see `Council.ask`.
    """
    values: dict[str, Any] = {**options}  # a profile beside members is refused by name
    with _suggest_options_of(ask):
        if members is None:
            council = Council.from_config(jury=jury, chairman=chairman, **values)
        else:
            council = Council(members, chairman, jury=jury, **values)

    async def put() -> Session:
        async with council:
            return await council.ask(
                question,
                conversation=conversation,
                files=files,
                seed=seed,
                category=category,
                parent=parent,
                name=name,
                listener=listener,
            )

    return _run(put)


def judge(  # noqa: PLR0913 - all but two by name
    texts: Texts,
    jury: Sequence[Seatable] | None = None,
    *,
    question: str | None = None,
    reference: str | None = None,
    pass_mark: float | None = None,
    expected: str | None = None,
    files: Mapping[str, str] = NO_FILES,
    seed: int | None = None,
    category: str | None = None,
    name: str | None = None,
    listener: Listener | None = None,
    **options: Unpack[AskOptions],
) -> Session:
    """Have a jury judge given texts, and wait for its verdict.

    The verdict is the `verdict` of the session. Without `jury` the configured reviewers judge.
    Works in scripts and notebooks, like `ask`.

    Parameters
    ----------
    texts
        One text, a list of them, or text by name.
    reference
        A reference answer to judge by.
    question, pass_mark, expected, files, seed, category, name, listener
        As for `Council.judge`.
    **options
        As for `ask`.
    """
    values: dict[str, Any] = {**options}
    with _suggest_options_of(judge):
        council = seat_jury(jury, **values)
    sources = files if reference is None else {**files, REFERENCE: reference}

    async def put() -> Session:
        async with council:
            return await council.judge(
                texts,
                question,
                pass_mark=pass_mark,
                expected=expected,
                files=sources,
                seed=seed,
                category=category,
                name=name,
                listener=listener,
            )

    return _run(put)


def seat_jury(jury: Sequence[Seatable] | None, **options: Unpack[AskOptions]) -> "Council":
    """Seat a jury that judges texts; None: the configured reviewers.

    Parameters
    ----------
    **options
        As for `Council`; for the configured reviewers, as for `Council.from_config`.
    """
    values: dict[str, Any] = {**options}
    if jury is None:
        return Council.from_config(only_judges=True, **values)
    if not isinstance(jury, str):
        for n, juror in enumerate(jury, start=1):
            _spec(juror, f"jury[{n}]")  # in a council without members, jurors sit in their seats
    return Council(jury, **values)


@contextmanager
def _suggest_options_of(function: Callable[..., object]) -> Iterator[None]:
    """Suggest the keywords of a function for an unknown option."""
    try:
        yield
    except UnknownOption as error:
        parameters = inspect.signature(function).parameters.values()
        option_names = (each.name for each in parameters if each.kind is each.KEYWORD_ONLY)
        raise UnknownOption(error.name, sorted({*option_names, *error.known_names})) from None


def _run(work: Callable[[], Awaitable[T]]) -> T:
    """Run a coroutine; inside a running event loop, in a thread."""
    in_loop = False
    with suppress(anyio.NoEventLoopError):
        in_loop = bool(anyio.get_cancelled_exc_class())
    if not in_loop:  # outside the handler: its error would be the context of others
        return anyio.run(work)
    with anyio.from_thread.start_blocking_portal() as portal:
        return portal.call(work)


def _conflict_error(options: Mapping[str, object]) -> InvalidParameter:
    return InvalidParameter(min(options), options[min(options)], "either it or a procedure")


def _config_overrides(overrides: Mapping[str, Any]) -> dict[str, Any]:
    """Return overrides shaped like the configuration: rule parameters in a table."""
    from witan.service.config.tables import fixed_keys
    from witan.service.settings import OPEN_TABLES

    settings = {key[-1] for key in (*fixed_keys(), *OPEN_TABLES)}
    parameters = {name for rule in RULES.values() for name in rule.parameters} - settings
    config_overrides = {name: value for name, value in overrides.items() if name not in parameters}
    own = {name: value for name, value in overrides.items() if name in parameters}
    table = overrides.get("rule_parameters", {})
    if own and isinstance(table, Mapping):
        config_overrides["rule_parameters"] = {**table, **own}
    if isinstance(overrides.get("providers"), Mapping):
        config_overrides["providers"] = {
            name: asdict(each) if isinstance(each, ThrottlePolicy) else each
            for name, each in overrides["providers"].items()
        }
    return config_overrides


def _insert_objects(
    configured_seats: Sequence[Seatable], seats: Sequence[Seatable]
) -> Sequence[Seatable]:
    """Insert seats given as objects at their places among configured ones."""
    named_seats = [*configured_seats]
    for place, each in enumerate(seats):
        if not isinstance(each, str):
            named_seats.insert(place, each)
    return named_seats


def _as_list(chairman: Seatable | Sequence[Seatable] | None) -> Sequence[Seatable]:
    chairmen = () if chairman is None else chairman
    return chairmen if isinstance(chairmen, list | tuple) else (chairmen,)


def _make_recorder(history: "HistoryPlace", aliases: Mapping[str, str]) -> "SessionRecorder | None":
    if history is None or history is False:
        return None
    from witan.service.session_recording import SessionRecorder  # only councils that record need it

    return history if isinstance(history, SessionRecorder) else SessionRecorder(history, aliases)
