"""Dispatch operations for the clients of a server: subject, queue and redaction."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from inspect import iscoroutinefunction
from types import MappingProxyType
from typing import Any, TypeVar

import anyio
import anyio.from_thread

from witan.deliberation.record import ImportRedactor
from witan.deliberation.session import Session
from witan.errors import MissingParameter
from witan.history import History
from witan.service.catalogue import Operation, redact
from witan.service.operations.plan import Planner
from witan.service.operations.profiles import ProfileService
from witan.service.operations.reports import ReportService, no_history
from witan.service.parameters import Parameters
from witan.service.redaction import redact_import
from witan.service.session_records import CouncilSession
from witan.service.sessions.manager import Service
from witan.service.sessions.spending import Client
from witan.service.stored_sessions import ClientService, SessionStore, describe_session
from witan.service.worker_pool import count_once, run_counting


@dataclass(frozen=True, slots=True)
class ServedSessions:
    """The sessions of a server for one client; used in worker threads."""

    service: Service
    client: Client
    show_import: ImportRedactor = redact_import

    @property
    def history(self) -> History:
        """The server's history."""
        if self.service.history is None:
            raise no_history()
        return self.service.history

    @property
    def shared_history(self) -> History | None:
        """The server's history, if it keeps one."""
        return self.service.history

    def record(self, session: str) -> Session | None:
        """Return a running or stored record; None for imported ballots."""
        running_session, history = self.service.registry.get(session), self.service.history
        if running_session is None and history is not None and not history.has_record(session):
            return None
        return anyio.from_thread.run(self.service.registry.session, session)

    def describe(self, session: Session) -> CouncilSession:
        """Add votes, descendants, and whether the session is running."""
        running_session = self.service.registry.get(session.id)
        record = describe_session(self.service.history, session)
        if running_session is None:
            return record
        return replace(
            record, under_way=running_session.under_way, record_problem=running_session.problem
        )

    def whole_name(self, name: str) -> str:
        """Complete the name of a session, running or stored."""
        return anyio.from_thread.run(self.service.registry.resolve_session, name)

    def voter(self, person: str | None) -> str:
        """Return a voter's name, prefixed with the token's.

        With the token ``team``, Ines votes as ``team/Ines``, never as another.
        """
        name = "" if person is None else person.strip()
        if not self.client.by_token:
            if not name:
                raise MissingParameter("as", None, "the name of who votes")
            return name
        own = self.client.name
        if name in ("", own) or name.startswith(f"{own}/"):
            return name or own
        return f"{own}/{name}"

    def delete(self, sessions: Sequence[str]) -> str | None:
        """Delete sessions one by one, each while nothing can resume it."""
        notes = [anyio.from_thread.run(self.service.forget, session) for session in sessions]
        return next(filter(None, notes), None)


T = TypeVar("T")

SUBJECTS: Mapping[Any, Callable[[Service, Client], Any]] = MappingProxyType(
    {
        object: lambda _, __: None,
        ClientService: ClientService,
        Planner: Planner,
        ReportService: lambda service, _: service.reports,
        SessionStore: ServedSessions,
        ProfileService: lambda service, _: service,
    }
)
"""Makes the subject of an operation, by the type that its handler needs."""

SAME_FOR_ALL: frozenset[Any] = frozenset({ReportService})
"""Types of `SUBJECTS` whose results are the same for every client."""


def perform(
    operation: Operation[Any, Any], service: Service, client: Client, parameters: Parameters
) -> Any:
    """Run a synchronous operation for a client, and redact its result."""
    subject = SUBJECTS[operation.needs](service, client)
    return redact(operation.handler(subject, parameters))


def keep_typed(result: T) -> T:
    """Return the result itself, for a caller that renders it."""
    return result


async def dispatch(
    operation: Operation[Any, Any],
    service: Service,
    client: Client,
    parameters: Parameters,
    render: Callable[[Any], T],
) -> T:
    """Run an operation for a client; redact its result, then render it.

    A synchronous handler and `render` run in a thread, so as not to block the event loop. Clients
    that wait for the same result share one count.
    """
    if iscoroutinefunction(operation.handler):
        subject = SUBJECTS[operation.needs](service, client)
        result = await operation.handler(subject, parameters)
        return await anyio.to_thread.run_sync(lambda: render(redact(result)))

    def work() -> T:
        return render(perform(operation, service, client, parameters))

    if operation.pool is None:
        return await anyio.to_thread.run_sync(work)
    if operation.needs in SAME_FOR_ALL:
        key = (operation.name, service, parameters)
        result = await count_once(
            key, lambda: perform(operation, service, client, parameters), operation.pool
        )
        return await anyio.to_thread.run_sync(lambda: render(result))
    return await run_counting(work, operation.pool)
