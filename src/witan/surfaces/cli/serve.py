"""``witan serve``: the council over HTTP, to OpenAI clients, over MCP, and on a page."""

import os
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from witan.surfaces.cli.commands import command
from witan.surfaces.cli.council_options import fast_demo_option
from witan.surfaces.cli.options import config_option, open_record, recording_options
from witan.surfaces.terminal import echo

if TYPE_CHECKING:
    from socket import socket

    from witan.service.config.configuration import Config
    from witan.service.config.serve import ServeSettings
    from witan.service.history_access import RecordingPlace
    from witan.service.sessions import Service
    from witan.surfaces.http.server import Say


@command(
    "serve",
    "serve",
    "serve --port 9000 --config council.toml",
    "WITAN_TOKEN=... witan serve --host 0.0.0.0",
)
@click.option("--host", metavar="ADDRESS", help="Listen here; beyond this machine with a token.")
@click.option("--port", type=click.IntRange(0, 65535), metavar="NUMBER", help="0: any free one.")
@click.option(
    "--max-sessions", type=click.IntRange(min=1), metavar="NUMBER", help="Sessions at once."
)
@click.option(
    "--max-connections",
    type=click.IntRange(min=1),
    metavar="NUMBER",
    help="Open connections at once.",
)
@fast_demo_option
@config_option
@recording_options
def serve_command(**options: Any) -> int:
    """Serve the council until Ctrl-C: a page to watch it, an API, and a model to OpenAI clients.

    The demonstration is served without a key. Ctrl-C lets sessions under way end; once more breaks
    them off, to be resumed. Deadlines for slow clients and other limits stand in [serve] of the
    configuration. Exit status: 0 stopped, 2 misuse.
    """
    from witan.errors import MissingExtra

    try:
        import fastapi  # noqa: F401
        import jinja2  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError:
        raise MissingExtra("the server", "serve") from None
    import anyio

    from witan.service.config.serve import token_digests
    from witan.service.history_access import configured
    from witan.surfaces.http.logs import log_message, log_to_stderr
    from witan.surfaces.http.server import bind_socket

    config = _with_options(configured(options["config"], options["history"]), options)
    say = log_message if config.serve.log == "json" else _say
    token_digests(config.serve, os.environ)  # one that cannot be used is told before it is served
    with bind_socket(config.serve) as listening:
        log_to_stderr(config.serve.log)
        place = open_record(options, say)
        try:
            anyio.run(
                partial(_served, fast_demo=options["fast_demo"]), config, listening, place, say
            )
        finally:
            if place is not None:
                place.history.close()
    return 0


def _with_options(config: "Config", options: dict[str, Any]) -> "Config":
    from witan.service.config.configuration import profile_config

    names = ("host", "port", "max_sessions", "max_connections")
    values = {f"serve.{name}": options[name] for name in names if options[name] is not None}
    return profile_config(config, "", values)


async def _served(
    config: "Config",
    listening: "socket",
    place: "RecordingPlace | None",
    say: "Say",
    *,
    fast_demo: bool,
) -> None:
    from witan.service.session_service import councils_of, open_service, spent_path
    from witan.surfaces.http.logs import SessionLog
    from witan.surfaces.http.metrics import Metrics
    from witan.surfaces.http.server import serve

    settings = config.serve
    metrics = Metrics()
    history = None if place is None else place.history
    councils = councils_of(config, history, fast_demo=fast_demo)
    port = listening.getsockname()[1]
    spent = spent_path(settings)
    async with open_service(councils, settings, [metrics, SessionLog()], spent=spent) as service:
        welcome = partial(_welcome, service, replace(settings, port=port), say)
        option = "" if place is None else place.option
        await serve(service, settings, listening, metrics, say, welcome=welcome, option=option)


def _say(text: str) -> None:
    from witan.service.text import clean

    echo(clean(text), err=True)


def _welcome(service: "Service", settings: "ServeSettings", say: "Say") -> None:
    """Say where it is served, who sits, and where sessions are kept."""
    council = service.profiles[""]
    say(f"witan serves at {settings.public_url or settings.url} (Ctrl-C stops it)")
    say(f"  page {settings.url}/ · OpenAI clients {settings.url}/v1 · MCP {settings.url}/mcp")
    if council.problem is not None:
        say(f"  only the demonstration can be asked: {council.failure}")
    else:
        seats = ", ".join(seat.source or seat.name for seat in council.seats)
        jury = ", ".join(seat.source or seat.name for seat in council.jury)
        say(f"  council: {seats}{f', judged by {jury}' if jury else ''}")
    for note in council.notes:
        say(f"  {note}")
    for name, profile in service.profiles.items():
        if name and profile.problem is not None:
            say(f"  the profile {name} cannot be asked: {profile.failure}")
    kept = "nowhere, and are gone with the server"
    say(f"  sessions are kept {kept if service.history is None else 'in ' + service.history.url}")
