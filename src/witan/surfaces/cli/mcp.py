"""``witan mcp``: the council as tools for clients of the Model Context Protocol."""

import sys
from typing import TYPE_CHECKING, Any

import click

from witan.surfaces.cli.commands import command
from witan.surfaces.cli.council_options import fast_demo_option
from witan.surfaces.cli.options import config_option, open_record, recording_options
from witan.surfaces.terminal import echo

if TYPE_CHECKING:
    from witan.service.config.configuration import Config
    from witan.service.history_access import RecordingPlace
    from witan.surfaces.mcp.clients import Launch, ServerEndpoint


@command(
    "mcp",
    "mcp --print-config claude-code",
    "mcp --print-config codex --http",
    "mcp",
)
@click.option(
    "--print-config",
    "client",
    metavar="CLIENT",
    help="Print what this client wants in its configuration, such as claude-desktop, and end.",
)
@click.option(
    "--http", is_flag=True, help="Print how it reaches `witan serve` instead of starting us."
)
@fast_demo_option
@config_option
@recording_options
def mcp_command(client: str | None, http: bool, **options: Any) -> int:
    """Serve the council on standard input and output, to the client that starts this.

    It ends with its input, or by a signal; sessions under way are then left to be resumed. A server
    that is reached over HTTP is `witan serve`, at /mcp. Exit status: 0 ended, 2 misuse.
    """
    from witan.service.history_access import configured

    if http and client is None:
        raise click.UsageError("--http says what to print: choose a client with --print-config")
    config = configured(options["config"], options["history"])
    if client is not None:
        _print_config(client, config, options, http=http)
        return 0
    return _serve(config, options)


def _serve(config: "Config", options: dict[str, Any]) -> int:
    from witan.errors import MissingExtra

    try:
        import mcp  # noqa: F401
    except ImportError:
        raise MissingExtra("the server of the Model Context Protocol", "mcp") from None
    import anyio

    place = open_record(options, _say)
    try:
        if sys.stdin.isatty():
            _say(
                "witan mcp reads the Model Context Protocol here; a client starts it (Ctrl-C ends)"
            )
        anyio.run(_served, config, place, options["fast_demo"])
    finally:
        if place is not None:
            place.history.close()
    return 0


async def _served(config: "Config", place: "RecordingPlace | None", fast_demo: bool) -> None:
    from witan.service.session_service import councils_of, open_service
    from witan.surfaces.mcp.stdio import serve_stdio

    history = None if place is None else place.history
    councils = councils_of(config, history, fast_demo=fast_demo)
    async with open_service(councils, config.serve) as service:
        council = service.profiles[""]
        if council.problem is not None:
            _say(f"only the demonstration can be asked: {council.failure}")
        await serve_stdio(service)


def _say(text: str) -> None:
    from witan.service.text import clean

    echo(clean(text), err=True)


def _print_config(name: str, config: "Config", options: dict[str, Any], *, http: bool) -> None:
    """Print what a client wants written; where it goes is said on standard error."""
    from witan.surfaces.mcp.clients import find_client

    client = find_client(name)
    shown = client.http(_endpoint(config)) if http else client.stdio(_launch(config, options))
    echo(shown)
    _say(f"for {client.file}")
    if client.note:
        _say(client.note)
    if not client.reads_variables and "<" in shown:
        _say("put the values themselves in place of what stands in <>: it reads no variables")


def _launch(config: "Config", options: dict[str, Any]) -> "Launch":
    """Return the command that starts this server from any directory."""
    import shutil
    from pathlib import Path

    from witan.surfaces.mcp.clients import Launch

    script = shutil.which("witan", path=str(Path(sys.executable).parent)) or shutil.which("witan")
    arguments = ["mcp"] if script else ["-m", "witan", "mcp"]
    if options["config"] is not None:
        arguments += ["--config", str(options["config"].resolve())]
    if options["no_history"]:
        arguments.append("--no-history")
    elif (history := options["history"]) is not None:
        arguments += ["--history", history if "://" in history else str(Path(history).resolve())]
    if options["fast_demo"]:
        arguments.append("--fast-demo")
    return Launch(script or sys.executable, arguments, _keys(config))


def _keys(config: "Config") -> list[str]:
    """Return the variables of keys and addresses of who may sit: most clients hand on no others.

    Where a seat looks in several places, it is the one that is set, or the first; where nobody is
    configured, those are that are set.
    """
    import os

    from witan.models.providers import PROVIDERS
    from witan.models.seats import key_variables
    from witan.service.config.configuration import profile_config

    councils = [profile_config(config, name, {}) for name in ("", *config.profiles)]
    seats = [
        seat
        for council in councils
        for seat in (*council.members, *council.jury, *council.chairmen)
    ]
    looked = [key_variables(seat) for seat in seats]
    chosen = [next((v for v in held if os.environ.get(v)), held[0]) for held in looked if held]
    if not seats:
        known = (name for provider in PROVIDERS.values() for name in provider.variables)
        chosen = [name for name in known if os.environ.get(name)]
    called = {seat.provider for seat in seats if seat.url is None} if seats else PROVIDERS.keys()
    moving = (v for p in PROVIDERS.values() if p.name in called for v in p.url_variables)
    # Without its gateway the key would go to the provider's public address.
    chosen += [name for name in (*moving, "OLLAMA_HOST") if os.environ.get(name)]
    return [*dict.fromkeys(chosen)]


def _endpoint(config: "Config") -> "ServerEndpoint":
    from witan.surfaces.mcp.clients import ServerEndpoint

    settings = config.serve
    url = (settings.public_url or settings.url).rstrip("/")
    named = [token.key for token in settings.tokens.values() if token.key is not None]
    # A token of which only the digest is known is in a variable of the client's own.
    token = next(iter(named), "WITAN_TOKEN") if settings.tokens else None
    return ServerEndpoint(f"{url}/mcp", token)
