"""Configuration of the usual clients of the protocol."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from witan.core.escaping import escape_json
from witan.deliberation.call_headers import VIA_HEADER, VIA_VARIABLE
from witan.errors import UnknownName

NAME = "witan"

TOOL_SECONDS = 600
"""Longest call, for clients that take a limit."""

Entry = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Launch:
    """Command by which a client starts the server.

    Parameters
    ----------
    keys
        Variables that the seats read their keys and addresses from.
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
    """A client, and how its configuration is written.

    Parameters
    ----------
    file
        The file that it reads.
    stdio, http
        Write the configuration of a server that it starts, or reaches.
    note
        What else to know; empty: nothing.
    reads_variables
        It reads variables; else ``<>`` stands for their values.
    """

    name: str
    file: str
    stdio: Callable[[Launch], str]
    http: Callable[[ServerEndpoint], str]
    note: str = ""
    reads_variables: bool = True


def find_client(name: str) -> AgentProgram:
    """Find the client of that name."""
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
    """Describe a server to start; `variable` formats the name of one."""
    entry: Entry = {"command": launch.command, "args": [*launch.arguments]}
    if launch.keys:
        entry["env"] = {key: variable.format(key) for key in launch.keys}
    return entry


def _launch_member(launch: Launch, variable: str, hops: str) -> Entry:
    """Describe a server to start, which learns on whose behalf."""
    entry = _launch(launch, variable)
    return {**entry, "env": {**entry.get("env", {}), VIA_VARIABLE: hops}}


def _headers(server: ServerEndpoint, variable: str, **more: str) -> Entry:
    token = server.token
    auth_headers = {} if token is None else {"Authorization": f"Bearer {variable.format(token)}"}
    headers = {**auth_headers, **more}
    return {"headers": headers} if headers else {}


def _bridge(server: ServerEndpoint) -> Entry:
    """Describe a bridge, for clients that can only start servers."""
    arguments = ["-y", "mcp-remote", server.url]
    if server.url.startswith("http:"):
        arguments.append("--allow-http")
    if server.token is None:
        return {"command": "npx", "args": arguments}
    # Without a blank: some systems split arguments there.
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
    lines = [f"{key} = {_value(value)}" for key, value in settings.items()]
    return "\n".join([f"[mcp_servers.{NAME}]", *lines])


def _codex_stdio(launch: Launch) -> str:
    table = {"command": launch.command, "args": [*launch.arguments]}
    variables = {"env_vars": [*launch.keys, VIA_VARIABLE]}
    return _toml({**table, **variables, "tool_timeout_sec": TOOL_SECONDS})


def _codex_http(server: ServerEndpoint) -> str:
    token = {} if server.token is None else {"bearer_token_env_var": server.token}
    table = _toml({"url": server.url, **token, "tool_timeout_sec": TOOL_SECONDS})
    return f'{table}\nenv_http_headers = {{ "{VIA_HEADER}" = "{VIA_VARIABLE}" }}'


_CLIENTS = (
    AgentProgram(
        "claude-code",
        ".mcp.json in the project; for yourself: claude mcp add-json witan 'the inner object'",
        lambda server: _servers(
            {
                "type": "stdio",
                **_launch_member(server, "${{{}}}", f"${{{VIA_VARIABLE}:-}}"),
                "timeout": TOOL_SECONDS * 1000,
            }
        ),
        lambda server: _servers(
            {
                "type": "http",
                "url": server.url,
                **_headers(server, "${{{}}}", **{VIA_HEADER: f"${{{VIA_VARIABLE}:-}}"}),
                "timeout": TOOL_SECONDS * 1000,
            }
        ),
    ),
    AgentProgram(
        "claude-desktop",
        "claude_desktop_config.json: Settings → Developer → Edit Config",
        lambda server: _servers(_launch(server, "<{}>")),
        lambda server: _servers(_bridge(server)),
        "over HTTP it needs npx",
        reads_variables=False,
    ),
    AgentProgram("codex", "~/.codex/config.toml", _codex_stdio, _codex_http),
    AgentProgram(
        "cursor",
        ".cursor/mcp.json in the project, or ~/.cursor/mcp.json",
        lambda server: _servers({"type": "stdio", **_launch(server, "${{env:{}}}")}),
        lambda server: _servers({"url": server.url, **_headers(server, "${{env:{}}}")}),
    ),
    AgentProgram(
        "gemini",
        ".gemini/settings.json in the project, or ~/.gemini/settings.json",
        lambda server: _servers(
            {**_launch_member(server, "${}", f"${VIA_VARIABLE}"), "timeout": TOOL_SECONDS * 1000}
        ),
        lambda server: _servers(
            {
                "httpUrl": server.url,
                **_headers(server, "${}", **{VIA_HEADER: f"${VIA_VARIABLE}"}),
                "timeout": TOOL_SECONDS * 1000,
            }
        ),
    ),
    AgentProgram(
        "vscode",
        ".vscode/mcp.json in the project, or that of your profile",
        lambda server: _vscode({"type": "stdio", **_launch(server, "${{input:{}}}")}, server.keys),
        lambda server: _vscode(
            {"type": "http", "url": server.url, **_headers(server, "${{input:{}}}")},
            [] if server.token is None else [server.token],
        ),
    ),
    AgentProgram(
        "windsurf",
        "~/.codeium/windsurf/mcp_config.json (also of Devin Desktop, its new name)",
        lambda server: _servers(_launch(server, "${{env:{}}}")),
        lambda server: _servers({"serverUrl": server.url, **_headers(server, "${{env:{}}}")}),
    ),
    AgentProgram(
        "zed",
        "its settings: zed: open settings file",
        lambda server: _json({"context_servers": {NAME: _launch(server, "<{}>")}}),
        lambda server: _json(
            {"context_servers": {NAME: {"url": server.url, **_headers(server, "<{}>")}}}
        ),
        reads_variables=False,
    ),
)

CLIENTS: Mapping[str, AgentProgram] = MappingProxyType({client.name: client for client in _CLIENTS})
"""Clients by name."""
