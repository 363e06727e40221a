"""Sessions under way: wait for the end of one, or cancel it."""

from dataclasses import dataclass
from typing import Annotated

import anyio

from witan.service.catalogue import operation
from witan.service.dispatch import ServedSessions
from witan.service.operations.ask import ClientService
from witan.service.operations.imported_sessions import ImportedSession
from witan.service.operations.show import ShowParameters, show
from witan.service.parameters import Constraint, Doc
from witan.service.requests import SessionRequest
from witan.service.session_records import CouncilSession


@dataclass(frozen=True, slots=True)
class ResultParameters(SessionRequest):
    """Session to wait for, and for how long."""

    wait: Annotated[float, Constraint(ge=0, le=600), Doc("Seconds to wait for its end.")] = 45


@operation("result", get="/sessions/{session}/result", tag="sessions")
async def result(
    service: ClientService, parameters: ResultParameters
) -> CouncilSession | ImportedSession:
    """Wait for the end of a session, then show it.

    Where it is still under way after `wait` seconds, it is shown as far as it came: ask again.
    """
    whole = await service.service.named(parameters.session)
    running = service.service.running(whole)
    if running is not None:
        with anyio.move_on_after(parameters.wait):
            await running.over()
        if not running.under_way:
            await running.ended()  # raises what ended it badly
    return await _show(service, whole)


@operation("cancel", post="/sessions/{session}/cancel", tag="sessions", changes=True)
async def cancel(
    service: ClientService, request: SessionRequest
) -> CouncilSession | ImportedSession:
    """Cancel every call of a session under way.

    What came in is kept, and `resume` takes it up. A session that is over stays as it is.
    """
    whole = await service.service.named(request.session)
    running = service.service.running(whole)
    if running is not None:
        running.cancel()
        await running.ended()
    return await _show(service, whole)


async def _show(service: ClientService, session: str) -> CouncilSession | ImportedSession:
    store = ServedSessions(service.service, service.client)
    return await anyio.to_thread.run_sync(show.handler, store, ShowParameters(session))
