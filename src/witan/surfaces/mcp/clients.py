"""What the usual clients of the protocol want written in their configuration."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from witan.core.escaping import escape_json
from witan.errors import UnknownName
from witan.models.loop_guard import HEADER, VARIABLE

NAME = "witan"

TOOL_SECONDS = 600
"""How long a call may take, where a client can be told."""

Entry = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Launch:
    """How a client starts the server.

    Parameters
    ----------
    keys
        Variables that the seats read their keys and addresses from.
    """

    command: str
    arguments: Sequence[str] = ()
    keys: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Reached:
    """Where a server runs, and the variable that holds the token; None: it asks for none."""

    url: str
    token: str | None = None


@dataclass(frozen=True, slots=True)
class Client:
    """A client, and how it is told of the server.

    Parameters
    ----------
    where
        The file that it reads.
    note
        What else to know; empty: nothing.
    reads_variables
        Else the values themselves are written, where ``<>`` stands in what is printed.
    """

    name: str
    where: str
    launched: Callable[[Launch], str]
    reached: Callable[[Reached], str]
    note: str = ""
    reads_variables: bool = True


def client_of(name: str) -> Client:
    """The client of that name.

    Raises
    ------
    UnknownName
        If it is not known; it names those that are.
    """
    if name not in CLIENTS:
        raise UnknownName("client", name, CLIENTS)
    return CLIENTS[name]


def _json(document: Mapping[str, Any]) -> str:
    return escape_json(json.dumps(document, indent=2, ensure_ascii=False))


def _value(value: object) -> str:
    return escape_json(json.dumps(value, ensure_ascii=False))


def _servers(entry: Entry) -> str:
    return _json({"mcpServers": {NAME: entry}})


def _launch(launch: Launch, variable: str) -> Entry:
    """A server to be started, as most clients write it; `variable` is how they name one."""
    entry: Entry = {"command": launch.command, "args": [*launch.arguments]}
    if launch.keys:
        entry["env"] = {key: variable.format(key) for key in launch.keys}
    return entry


def _launch_via(launch: Launch, variable: str, hops: str) -> Entry:
    """Likewise, by a client that may be a member: the server is told on whose behalf it starts."""
    entry = _launch(launch, variable)
    return {**entry, "env": {**entry.get("env", {}), VARIABLE: hops}}


def _headers(reached: Reached, variable: str, **more: str) -> Entry:
    token = reached.token
    authorized = {} if token is None else {"Authorization": f"Bearer {variable.format(token)}"}
    headers = {**authorized, **more}
    return {"headers": headers} if headers else {}


def _bridge(reached: Reached) -> Entry:
    """A server that is reached through one that is started: for who can do nothing else."""
    arguments = ["-y", "mcp-remote", reached.url]
    if reached.url.startswith("http:"):
        arguments.append("--allow-http")
    if reached.token is None:
        return {"command": "npx", "args": arguments}
    # Without a blank: some systems part arguments there.
    return {
        "command": "npx",
        "args": [*arguments, "--header", "Authorization:${AUTHORIZATION}"],
        "env": {"AUTHORIZATION": f"Bearer <{reached.token}>"},
    }


def _code(document: Entry, variables: Sequence[str]) -> str:
    """The file of VS Code, which asks for what is secret, and keeps it."""
    asked = [
        {"type": "promptString", "id": name, "description": name, "password": True}
        for name in variables
    ]
    inputs = {"inputs": asked} if asked else {}
    return _json({**inputs, "servers": {NAME: document}})


def _toml(settings: Mapping[str, Any]) -> str:
    """A table of Codex; texts, lists of texts and numbers are in TOML as in JSON."""
    lines = [f"{key} = {_value(value)}" for key, value in settings.items()]
    return "\n".join([f"[mcp_servers.{NAME}]", *lines])


def _codex_launched(launch: Launch) -> str:
    table = {"command": launch.command, "args": [*launch.arguments]}
    variables = {"env_vars": [*launch.keys, VARIABLE]}
    return _toml({**table, **variables, "tool_timeout_sec": TOOL_SECONDS})


def _codex_reached(reached: Reached) -> str:
    token = {} if reached.token is None else {"bearer_token_env_var": reached.token}
    table = _toml({"url": reached.url, **token, "tool_timeout_sec": TOOL_SECONDS})
    return f'{table}\nenv_http_headers = {{ "{HEADER}" = "{VARIABLE}" }}'


_KNOWN = (
    Client(
        "claude-code",
        ".mcp.json in the project; for yourself: claude mcp add-json witan 'the inner object'",
        lambda given: _servers(
            {
                "type": "stdio",
                **_launch_via(given, "${{{}}}", f"${{{VARIABLE}:-}}"),
                "timeout": TOOL_SECONDS * 1000,
            }
        ),
        lambda given: _servers(
            {
                "type": "http",
                "url": given.url,
                **_headers(given, "${{{}}}", **{HEADER: f"${{{VARIABLE}:-}}"}),
                "timeout": TOOL_SECONDS * 1000,
            }
        ),
    ),
    Client(
        "claude-desktop",
        "claude_desktop_config.json: Settings → Developer → Edit Config",
        lambda given: _servers(_launch(given, "<{}>")),
        lambda given: _servers(_bridge(given)),
        "over HTTP it needs npx",
        reads_variables=False,
    ),
    Client("codex", "~/.codex/config.toml", _codex_launched, _codex_reached),
    Client(
        "cursor",
        ".cursor/mcp.json in the project, or ~/.cursor/mcp.json",
        lambda given: _servers({"type": "stdio", **_launch(given, "${{env:{}}}")}),
        lambda given: _servers({"url": given.url, **_headers(given, "${{env:{}}}")}),
    ),
    Client(
        "gemini",
        ".gemini/settings.json in the project, or ~/.gemini/settings.json",
        lambda given: _servers(
            {**_launch_via(given, "${}", f"${VARIABLE}"), "timeout": TOOL_SECONDS * 1000}
        ),
        lambda given: _servers(
            {
                "httpUrl": given.url,
                **_headers(given, "${}", **{HEADER: f"${VARIABLE}"}),
                "timeout": TOOL_SECONDS * 1000,
            }
        ),
    ),
    Client(
        "vscode",
        ".vscode/mcp.json in the project, or that of your profile",
        lambda given: _code({"type": "stdio", **_launch(given, "${{input:{}}}")}, given.keys),
        lambda given: _code(
            {"type": "http", "url": given.url, **_headers(given, "${{input:{}}}")},
            [] if given.token is None else [given.token],
        ),
    ),
    Client(
        "windsurf",
        "~/.codeium/windsurf/mcp_config.json, of Devin Desktop, too, as it is called now",
        lambda given: _servers(_launch(given, "${{env:{}}}")),
        lambda given: _servers({"serverUrl": given.url, **_headers(given, "${{env:{}}}")}),
    ),
    Client(
        "zed",
        "its settings: zed: open settings file",
        lambda given: _json({"context_servers": {NAME: _launch(given, "<{}>")}}),
        lambda given: _json(
            {"context_servers": {NAME: {"url": given.url, **_headers(given, "<{}>")}}}
        ),
        reads_variables=False,
    ),
)

CLIENTS: Mapping[str, Client] = MappingProxyType({client.name: client for client in _KNOWN})
"""The clients whose configuration is known."""
