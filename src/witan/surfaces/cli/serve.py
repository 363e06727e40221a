"""Servers for clients: ``witan serve``, ``witan mcp``, and configurations of clients."""

import json
import os
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from witan.core.escaping import escape_json
from witan.deliberation.call_headers import VIA_HEADER, VIA_VARIABLE
from witan.errors import UnknownName
from witan.surfaces.cli.commands import command
from witan.surfaces.cli.options import (
    WholeNumber,
    config_option,
    fast_demo_option,
    open_record,
    recording_options,
)
from witan.surfaces.terminal import echo, say

if TYPE_CHECKING:
    from socket import socket

    from witan.service.config.configuration import Config
    from witan.service.config.serve import ServeSettings
    from witan.service.history_access import RecordingPlace
    from witan.service.sessions.manager import Service
    from witan.surfaces.http.server import Say


@command(
    "serve",
    "serve",
    "serve --port 9000 --config council.toml",
    "WITAN_TOKEN=... witan serve --host 0.0.0.0",
)
@click.option(
    "--host",
    metavar="ADDRESS",
    help="Address to listen on; addresses beyond this machine need a token.",
)
@click.option(
    "--port", type=WholeNumber(0, 65535), metavar="NUMBER", help="Port; 0 picks a free one."
)
@click.option(
    "--max-sessions",
    type=WholeNumber(min=1),
    metavar="NUMBER",
    help="Maximum concurrent sessions.",
)
@click.option(
    "--max-connections",
    type=WholeNumber(min=1),
    metavar="NUMBER",
    help="Maximum open connections.",
)
@fast_demo_option
@config_option
@recording_options
def serve_command(**options: Any) -> int:
    """Serve the page, the API and an OpenAI-compatible model until Ctrl-C.

    The demonstration needs no key. Ctrl-C gives running sessions time to end; a second Ctrl-C
    interrupts them, and they can be resumed. Deadlines for slow clients and other limits are in
    [serve] of the configuration. Exit status: 0 stopped, 2 misuse.
    """
    from witan.errors import MissingExtra

    try:
        import fastapi  # noqa: F401
        import jinja2  # noqa: F401, TID251 - is it installed?
        import uvicorn  # noqa: F401
    except ImportError:
        raise MissingExtra("the server", "serve") from None
    import anyio

    from witan.service.config.serve import token_digests
    from witan.service.history_access import load_history_config
    from witan.surfaces.http.observers import log_message, log_to_stderr
    from witan.surfaces.http.server import bind_socket

    config = _with_options(load_history_config(options["config"], options["history"]), options)
    write_line = log_message if config.serve.log == "json" else say
    token_digests(config.serve, os.environ)  # report an unusable token before serving
    with bind_socket(config.serve) as listening:
        log_to_stderr(config.serve.log)
        place = open_record(options, write_line)
        try:
            anyio.run(_serve_http, config, listening, place, write_line, options["fast_demo"])
        finally:
            if place is not None:
                place.history.close()
    return 0


def _with_options(config: "Config", options: dict[str, Any]) -> "Config":
    from witan.service.config.configuration import profile_config

    names = ("host", "port", "max_sessions", "max_connections")
    values = {f"serve.{name}": options[name] for name in names if options[name] is not None}
    return profile_config(config, "", values)


async def _serve_http(
    config: "Config",
    listener: "socket",
    place: "RecordingPlace | None",
    say: "Say",
    fast_demo: bool,
) -> None:
    from witan.service.sessions.councils import Councils
    from witan.service.sessions.manager import open_service, spent_path
    from witan.surfaces.http.observers import Metrics, SessionLog
    from witan.surfaces.http.server import serve

    settings = config.serve
    metrics = Metrics()
    history = None if place is None else place.history
    councils = Councils(config, history, fast=fast_demo)
    port = listener.getsockname()[1]
    spent = spent_path(settings)
    async with open_service(
        councils, settings, [metrics, SessionLog()], spending_path=spent
    ) as service:
        welcome = partial(_welcome, service, replace(settings, port=port), say)
        option = "" if place is None else place.option
        await serve(service, settings, listener, metrics, say, welcome=welcome, option=option)


def _welcome(service: "Service", settings: "ServeSettings", say: "Say") -> None:
    """Print the addresses, the members, and where sessions are stored."""
    council = service.profiles[""]
    say(f"witan serves at {settings.public_url or settings.url} (Ctrl-C stops it)")
    mcp = f" · MCP {settings.url}/mcp" if find_spec("mcp") is not None else ""
    say(f"  page {settings.url}/ · OpenAI clients {settings.url}/v1{mcp}")
    if council.problem is not None:
        say(f"  only the demonstration is available: {council.failure}")
    else:
        seats = ", ".join(seat.source or seat.name for seat in council.seats)
        jury = ", ".join(seat.source or seat.name for seat in council.jury)
        say(f"  council: {seats}{f', judged by {jury}' if jury else ''}")
    for note in council.notes:
        say(f"  {note}")
    for name, profile in service.profiles.items():
        if name and profile.problem is not None:
            say(f"  the profile {name} is not usable: {profile.failure}")
    storage = "not recorded, and are lost when the server stops"
    if service.history is not None:
        storage = f"stored in {service.history.url}"
    say(f"  sessions are {storage}")


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
    help="Print the configuration for this client, such as claude-desktop, and exit.",
)
@click.option(
    "--http", is_flag=True, help="Print the configuration for reaching `witan serve` over HTTP."
)
@fast_demo_option
@config_option
@recording_options
def mcp_command(client: str | None, http: bool, **options: Any) -> int:
    """Serve the council on standard input and output, to the parent process.

    It ends when its input ends, or on a signal; running sessions are interrupted and can be
    resumed. Over HTTP, `witan serve` offers the same at /mcp. Exit status: 0 ended, 2 misuse.
    """
    from witan.errors import MissingExtra
    from witan.service.history_access import load_history_config

    if http and client is None:
        raise click.UsageError("--http needs --print-config CLIENT")
    config = load_history_config(options["config"], options["history"])
    if client is not None:
        _print_config(client, config, options, http=http)
        return 0
    try:
        import mcp  # noqa: F401
    except ImportError:
        raise MissingExtra("the server of the Model Context Protocol", "mcp") from None
    import anyio

    place = open_record(options, say)
    try:
        if sys.stdin.isatty():
            say("witan mcp reads the Model Context Protocol here; a client starts it (Ctrl-C ends)")
        anyio.run(_serve_client, config, place, options["fast_demo"])
    finally:
        if place is not None:
            place.history.close()
    return 0


async def _serve_client(config: "Config", place: "RecordingPlace | None", fast_demo: bool) -> None:
    from witan.service.sessions.councils import Councils
    from witan.service.sessions.manager import open_service
    from witan.surfaces.mcp.server import serve_stdio

    history = None if place is None else place.history
    councils = Councils(config, history, fast=fast_demo)
    async with open_service(councils, config.serve) as service:
        council = service.profiles[""]
        if council.problem is not None:
            say(f"only the demonstration is available: {council.failure}")
        await serve_stdio(service)


def _print_config(name: str, config: "Config", options: dict[str, Any], *, http: bool) -> None:
    """Print a client's configuration; explain its place on standard error."""
    if name not in CLIENTS:
        raise UnknownName("client", name, CLIENTS)
    client = CLIENTS[name]
    client_config = (
        client.http(_endpoint(config)) if http else client.stdio(_launch_of(config, options))
    )
    echo(client_config)
    say(f"for {client.file}")
    if client.note:
        say(client.note)
    if not client.reads_variables and "<" in client_config:
        say("replace each <...> with its value: this client does not read environment variables")


def _launch_of(config: "Config", options: dict[str, Any]) -> "Launch":
    """Return the command that starts this server from any directory."""
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
    """List the environment variables an MCP client must pass on.

    For a seat with several variables, it is the one that is set, or the first; without a configured
    council, all that are set.
    """
    from witan.models.providers import PROVIDERS
    from witan.models.seats import key_variables
    from witan.service.config.configuration import profile_config

    councils = [profile_config(config, name, {}) for name in ("", *config.profiles)]
    seats = [
        seat
        for council in councils
        for seat in (*council.members, *council.jury, *council.chairmen)
    ]
    chosen = [
        next((v for v in keys if os.environ.get(v)), keys[0])
        for keys in map(key_variables, seats)
        if keys
    ]
    if not seats:
        provider_variables = (v for p in PROVIDERS.values() for v in p.variables)
        chosen = [name for name in provider_variables if os.environ.get(name)]
    called = {seat.provider for seat in seats if seat.url is None} if seats else PROVIDERS.keys()
    moving = (v for p in PROVIDERS.values() if p.name in called for v in p.url_variables)
    # Without the gateway's variable the key would go to the provider's public address.
    chosen += [name for name in (*moving, "OLLAMA_HOST") if os.environ.get(name)]
    return [*dict.fromkeys(chosen)]


def _endpoint(config: "Config") -> "ServerEndpoint":
    settings = config.serve
    url = (settings.public_url or settings.url).rstrip("/")
    token_variables = [token.key for token in settings.tokens.values() if token.key is not None]
    # If only a token's digest is known, the client's own variable has the token.
    token = next(iter(token_variables), "WITAN_TOKEN") if settings.tokens else None
    return ServerEndpoint(f"{url}/mcp", token)


NAME = "witan"

TOOL_SECONDS = 600
"""Timeout of a call, for clients that support one."""

Entry = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Launch:
    """Command by which a client starts the server.

    `keys` are the variables with the keys and addresses of the seats.
    """

    command: str
    arguments: Sequence[str] = ()
    keys: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class ServerEndpoint:
    """Address of a server, and the variable that holds its token."""

    url: str
    token: str | None = None


@dataclass(frozen=True, slots=True)
class AgentProgram:
    """A client, and the form of its configuration.

    `file` is the file that it reads; `stdio` and `http` write the configuration of a server that it
    starts, or connects to. Unless it reads variables, ``<>`` marks their values.
    """

    file: str
    stdio: Callable[[Launch], str]
    http: Callable[[ServerEndpoint], str]
    note: str = ""
    reads_variables: bool = True


def _json(document: Mapping[str, Any]) -> str:
    return escape_json(json.dumps(document, indent=2, ensure_ascii=False))


def _servers(entry: Entry) -> str:
    return _json({"mcpServers": {NAME: entry}})


def _launch(launch: Launch, variable: str, hops: str = "") -> Entry:
    """Describe a server to start.

    `variable` formats the name of a variable, and `hops` that of its caller, if it passes it on.
    """
    variables = {key: variable.format(key) for key in launch.keys}
    if hops:
        variables[VIA_VARIABLE] = hops.format(VIA_VARIABLE)
    entry: Entry = {"command": launch.command, "args": [*launch.arguments]}
    return {**entry, "env": variables} if variables else entry


def _headers(server: ServerEndpoint, variable: str, hops: str = "") -> Entry:
    token = server.token
    headers = {} if token is None else {"Authorization": f"Bearer {variable.format(token)}"}
    if hops:
        headers[VIA_HEADER] = hops.format(VIA_VARIABLE)
    return {"headers": headers} if headers else {}


def _bridge(server: ServerEndpoint) -> Entry:
    """Describe a bridge, for clients that can only start servers."""
    arguments = ["-y", "mcp-remote", server.url]
    if server.url.startswith("http:"):
        arguments.append("--allow-http")
    if server.token is None:
        return {"command": "npx", "args": arguments}
    # No blank after the colon: some systems would split the argument.
    return {
        "command": "npx",
        "args": [*arguments, "--header", "Authorization:${AUTHORIZATION}"],
        "env": {"AUTHORIZATION": f"Bearer <{server.token}>"},
    }


def _vscode(document: Entry, variables: Sequence[str]) -> str:
    """Write the file of VS Code, which asks for secrets."""
    prompts = [
        {"type": "promptString", "id": name, "description": name, "password": True}
        for name in variables
    ]
    inputs = {"inputs": prompts} if prompts else {}
    return _json({**inputs, "servers": {NAME: document}})


def _toml(settings: Mapping[str, Any]) -> str:
    """Write the table of Codex; its values are written as in JSON."""
    lines = [
        f"{key} = {escape_json(json.dumps(value, ensure_ascii=False))}"
        for key, value in settings.items()
    ]
    return "\n".join([f"[mcp_servers.{NAME}]", *lines])


def _codex_stdio(launch: Launch) -> str:
    table = {"command": launch.command, "args": [*launch.arguments]}
    variables = {"env_vars": [*launch.keys, VIA_VARIABLE]}
    return _toml({**table, **variables, "tool_timeout_sec": TOOL_SECONDS})


def _codex_http(server: ServerEndpoint) -> str:
    token = {} if server.token is None else {"bearer_token_env_var": server.token}
    table = _toml({"url": server.url, **token, "tool_timeout_sec": TOOL_SECONDS})
    return f'{table}\nenv_http_headers = {{ "{VIA_HEADER}" = "{VIA_VARIABLE}" }}'


CLIENTS: Mapping[str, AgentProgram] = {
    "claude-code": AgentProgram(
        ".mcp.json in the project; for yourself: claude mcp add-json witan 'the inner object'",
        lambda server: _servers(
            {
                "type": "stdio",
                **_launch(server, "${{{}}}", "${{{}:-}}"),
                "timeout": TOOL_SECONDS * 1000,
            }
        ),
        lambda server: _servers(
            {
                "type": "http",
                "url": server.url,
                **_headers(server, "${{{}}}", "${{{}:-}}"),
                "timeout": TOOL_SECONDS * 1000,
            }
        ),
    ),
    "claude-desktop": AgentProgram(
        "claude_desktop_config.json: Settings → Developer → Edit Config",
        lambda server: _servers(_launch(server, "<{}>")),
        lambda server: _servers(_bridge(server)),
        "over HTTP it needs npx",
        reads_variables=False,
    ),
    "codex": AgentProgram("~/.codex/config.toml", _codex_stdio, _codex_http),
    "cursor": AgentProgram(
        ".cursor/mcp.json in the project, or ~/.cursor/mcp.json",
        lambda server: _servers({"type": "stdio", **_launch(server, "${{env:{}}}")}),
        lambda server: _servers({"url": server.url, **_headers(server, "${{env:{}}}")}),
    ),
    "gemini": AgentProgram(
        ".gemini/settings.json in the project, or ~/.gemini/settings.json",
        lambda server: _servers({**_launch(server, "${}", "${}"), "timeout": TOOL_SECONDS * 1000}),
        lambda server: _servers(
            {
                "httpUrl": server.url,
                **_headers(server, "${}", "${}"),
                "timeout": TOOL_SECONDS * 1000,
            }
        ),
    ),
    "vscode": AgentProgram(
        ".vscode/mcp.json in the project, or that of your profile",
        lambda server: _vscode({"type": "stdio", **_launch(server, "${{input:{}}}")}, server.keys),
        lambda server: _vscode(
            {"type": "http", "url": server.url, **_headers(server, "${{input:{}}}")},
            [] if server.token is None else [server.token],
        ),
    ),
    "windsurf": AgentProgram(
        "~/.codeium/windsurf/mcp_config.json (also of Devin Desktop, its new name)",
        lambda server: _servers(_launch(server, "${{env:{}}}")),
        lambda server: _servers({"serverUrl": server.url, **_headers(server, "${{env:{}}}")}),
    ),
    "zed": AgentProgram(
        "its settings: zed: open settings file",
        lambda server: _json({"context_servers": {NAME: _launch(server, "<{}>")}}),
        lambda server: _json(
            {"context_servers": {NAME: {"url": server.url, **_headers(server, "<{}>")}}}
        ),
        reads_variables=False,
    ),
}
"""Clients by name."""
