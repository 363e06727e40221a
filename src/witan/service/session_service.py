"""The service that a command opens: who sits by the configuration, and who is told of it."""

import os
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
from platformdirs import user_state_path

from witan.deliberation.ports import SystemClock
from witan.history import History
from witan.service.config.configuration import Config, profile_config
from witan.service.config.serve import ServeSettings
from witan.service.sessions import Councils, Ledger, Observer, Service
from witan.service.telemetry import Exporting, Spans, is_configured


def councils_of(config: Config, history: History | None, *, fast_demo: bool = False) -> Councils:
    """Make the councils of a configuration and its profiles."""
    directory = Path.cwd()

    def configure(profile: str, values: Mapping[str, Any]) -> Config:
        return profile_config(
            config, profile, values, directory=directory, overriding="the request"
        )

    about = {name: profile.about for name, profile in config.profiles.items()}
    return Councils(configure, about, os.environ, history, fast=fast_demo)


def spent_path(settings: ServeSettings) -> Path | None:
    """Return the file of clients' spending; None: no client has a limit."""
    spending = any(token.daily_usd is not None for token in settings.tokens.values())
    return user_state_path("witan") / "spent.jsonl" if spending else None


@asynccontextmanager
async def open_service(
    councils: Councils,
    settings: ServeSettings,
    observers: Sequence[Observer] = (),
    *,
    spent: Path | None = None,
) -> AsyncGenerator[Service, None]:
    """Open the service that a server serves; it sends spans where the environment says so.

    Parameters
    ----------
    spent
        Where it is kept what clients have spent; None: nowhere.
    """
    with Ledger(SystemClock(), spent) as ledger:
        exporting = Exporting() if is_configured() else None
        spans = [] if exporting is None else [Spans(exporting.provider)]
        try:
            async with Service.open(
                councils,
                ledger=ledger,
                observers=[*observers, *spans],
                most=settings.max_sessions,
            ) as service:
                yield service
        finally:
            if exporting is not None:
                await anyio.to_thread.run_sync(exporting.close)
