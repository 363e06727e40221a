"""``witan mcp --print-config``: an entry to paste into a client's configuration."""

import json
import sys
import tomllib
from pathlib import Path

import pytest

from witan.surfaces.cli.serve import CLIENTS

TABLES = {"codex": "mcp_servers", "vscode": "servers", "zed": "context_servers"}

ADDRESSES = {"gemini": "httpUrl", "windsurf": "serverUrl"}


def entry(name, text):
    """The entry of this server as a client reads it."""
    document = tomllib.loads(text) if name == "codex" else json.loads(text)
    return document[TABLES.get(name, "mcpServers")]["witan"]


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A project whose council has a key, and a server with a token."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    monkeypatch.setenv("WITAN_TOKEN", "a-token-that-is-secret")
    file = tmp_path / "council.toml"
    file.write_text('members = ["openai:gpt-5", "openai:gpt-5-mini"]\n', encoding="utf-8")
    return file


@pytest.mark.parametrize("name", CLIENTS)
class TestEveryClient:
    """Each client has its own format."""

    def test_the_entry_starts_our_command(self, witan, place, name):
        """By an absolute path, with the names of the keys' variables, never a key."""
        said = witan("mcp", "--print-config", name, "--config", place.name)
        held = entry(name, said.out)

        assert said.status == 0
        assert Path(held["command"]).is_absolute()
        assert held["args"][-3:] == ["mcp", "--config", str(place)]
        assert "OPENAI_API_KEY" in said.out
        assert "secret" not in said.out + said.err
        assert "for " in said.err

    def test_the_entry_has_the_address_of_a_server(self, witan, place, name):
        """With the variable of the token, never the token."""
        said = witan("mcp", "--print-config", name, "--config", place, "--http")
        held = entry(name, said.out)
        address = "http://127.0.0.1:8717/mcp"

        assert address in held.get("args", [held.get(ADDRESSES.get(name, "url"))])
        assert "WITAN_TOKEN" in said.out
        assert "secret" not in said.out + said.err

    def test_a_server_without_tokens_needs_no_header(self, witan, place, name, monkeypatch):
        """It serves only this machine."""
        monkeypatch.delenv("WITAN_TOKEN")
        said = witan("mcp", "--print-config", name, "--config", place, "--http")

        assert "uthorization" not in said.out
        assert "token" not in said.out.lower()


@pytest.mark.parametrize("name", ["claude-code", "codex", "gemini"])
class TestAgents:
    """Clients that are programs, and may be members of a council themselves."""

    def test_the_agent_passes_on_the_chain_of_councils(self, witan, place, name):
        """By the variable that tells programs which councils called them."""
        held = entry(name, witan("mcp", "--print-config", name, "--config", place).out)

        assert "WITAN_VIA" in held.get("env_vars", held.get("env", ()))

    def test_the_agent_sends_the_chain_of_councils(self, witan, place, name):
        """By the header."""
        held = entry(name, witan("mcp", "--print-config", name, "--config", place, "--http").out)

        assert "WITAN_VIA" in held.get("env_http_headers", held.get("headers"))["Witan-Via"]

    def test_the_agent_waits_as_long_as_a_session(self, witan, place, name):
        """Some stop after a minute by default; units are seconds or milliseconds."""
        held = entry(name, witan("mcp", "--print-config", name, "--config", place).out)

        assert held.get("timeout", held.get("tool_timeout_sec", 0) * 1000) == 600_000


def test_the_printed_command_exists(witan, place):
    """What is printed can be started."""
    said = witan("mcp", "--print-config", "cursor", "--config", place)
    held = entry("cursor", said.out)

    assert Path(held["command"]).exists()
    assert held["command"] in (sys.executable, str(Path(sys.executable).parent / "witan"))


def test_no_placeholder_is_printed_without_a_key(witan, place):
    """Seats without keys have no variables to replace."""
    place.write_text('members = ["script:a.toml", "script:b.toml"]', encoding="utf-8")
    bare = witan("mcp", "--print-config", "zed", "--config", place)

    assert "<" not in bare.out
    assert "in place of" not in bare.err


def test_an_unknown_client_is_refused_with_the_known_ones(witan):
    """The nearest, or all of them."""
    assert "did you mean 'cursor'" in witan("mcp", "--print-config", "curser").err
    said = witan("mcp", "--print-config", "xyzzy")
    assert said.status == 2
    assert "claude-code, claude-desktop, codex" in said.err
    assert said.out == ""


def test_the_http_option_needs_print_config(witan):
    """Serving over HTTP is another command."""
    said = witan("mcp", "--http")

    assert said.status == 2
    assert "--print-config" in said.err
