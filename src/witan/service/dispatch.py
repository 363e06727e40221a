"""Dispatch operations for the clients of a server: subject, queue, and redaction."""

from collections.abc import Callable, Mapping
from inspect import iscoroutinefunction
from types import MappingProxyType
from typing import Any, TypeVar

import anyio

from witan.service.catalogue import Operation, redact
from witan.service.operations.plan import Planner, ServedPlanner
from witan.service.operations.profiles import ProfileService
from witan.service.parameters import Parameters
from witan.service.reports import ReportService
from witan.service.served_sessions import ServedSessions
from witan.service.sessions import Client, Service
from witan.service.stored_sessions import SessionStore
from witan.service.worker_pool import run_counting

T = TypeVar("T")

SUBJECTS: Mapping[Any, Callable[[Service, Client], Any]] = MappingProxyType(
    {
        object: lambda _, __: None,
        Planner: ServedPlanner,
        ReportService: lambda service, _: service.reports,
        SessionStore: ServedSessions,
        ProfileService: lambda service, _: service,
    }
)
"""Provides what an operation works on, by the type that its handler asks for."""


def perform(
    operation: Operation[Any, Any], service: Service, client: Client, given: Parameters
) -> Any:
    """Do an operation whose handler is no coroutine for a client, and redact its result.

    Raises
    ------
    WitanError
        If it cannot be done.
    """
    subject = SUBJECTS[operation.needs](service, client)
    return redact(operation.handler(subject, given))


async def dispatch(
    operation: Operation[Any, Any],
    service: Service,
    client: Client,
    given: Parameters,
    render: Callable[[Any], T],
) -> T:
    """Do an operation for a client; redact its result, then render it.

    A handler that is no coroutine runs in a thread, and so does `render`: a long result does not
    hold up the event loop.

    Raises
    ------
    WitanError
        If it cannot be done.
    """
    if iscoroutinefunction(operation.handler):
        subject = SUBJECTS[operation.needs](service, client)
        result = await operation.handler(subject, given)
        return await anyio.to_thread.run_sync(lambda: render(redact(result)))

    def work() -> T:
        return render(perform(operation, service, client, given))

    if operation.pool is None:
        return await anyio.to_thread.run_sync(work)
    return await run_counting(work, operation.pool)
