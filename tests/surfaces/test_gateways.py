"""Gateways, black box: with an address in a provider's variable, nothing else is contacted."""

import os
import socketserver
import threading
from collections.abc import Iterator

import pytest

from misbehaving import MisbehavingServer
from model_listing import listing

KEY = "sk-very-secret-0123456789"


class Outside(socketserver.ThreadingTCPServer):
    """A proxy for what leaves this machine: it notes who is asked for, and hangs up."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Refusing)
        self.lines: list[str] = []


class _Refusing(socketserver.StreamRequestHandler):
    server: Outside

    def handle(self) -> None:
        self.server.lines.append(self.rfile.readline().decode(errors="replace"))


@pytest.fixture
def outside(monkeypatch, tmp_path) -> Iterator[Outside]:
    """Whatever is sent off this machine is seen here, and goes no further."""
    for name in [name for name in os.environ if name.startswith("WITAN_") or "API_KEY" in name]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)
    with Outside() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{server.server_address[1]}")
            monkeypatch.setenv(name.lower(), f"http://127.0.0.1:{server.server_address[1]}")
        monkeypatch.setenv("NO_PROXY", "127.0.0.1,localhost")
        monkeypatch.setenv("no_proxy", "127.0.0.1,localhost")
        yield server
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("found", [False, True], ids=["members named", "members found"])
def test_a_gateway_receives_every_call_and_nobody_else_does(witan, outside, monkeypatch, found):
    """With OPENAI_BASE_URL set, lists, prompts and the key go there alone."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    members = ("gpt-4o", "gpt-4o-mini", "gpt-4.1", "gpt-4.1-mini")
    with MisbehavingServer(
        dict(zip(members, (9, 8, 6, 4), strict=True)), models=members
    ) as gateway:
        monkeypatch.setenv("OPENAI_BASE_URL", gateway.url)
        named = [word for m in members for word in ("--member", f"openai:{m}")]
        said = witan("ask", "Which?", "--no-history", *([] if found else named))
        received = list(gateway.received)

    assert said.status == 0, said.err
    assert {request.chat_request.model for request in received if request.method == "POST"} <= {
        *members
    }
    assert all(request.headers["authorization"] == f"Bearer {KEY}" for request in received)
    assert len(received) >= 8
    assert outside.lines == []


def test_an_unknown_price_is_not_free_behind_a_gateway_here(witan, outside, monkeypatch):
    """The plan says that the price is unknown, and a ceiling lets no call out."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with MisbehavingServer() as gateway:
        monkeypatch.setenv("OPENAI_BASE_URL", gateway.url)
        members = [word for n in "abcd" for word in ("--member", f"{n}=openai:gpt-99-pro")]
        plan = witan("plan", "Which?", *members, "--json").json
        said = witan("ask", "Which?", "--no-history", *members, "--max-cost", 0.000001)
        calls = gateway.calls()

    assert plan["unpriced"] == ["a", "b", "c", "d"]
    assert plan["worst_usd"] is None
    assert said.status != 0
    assert calls == []


def test_a_list_behind_a_gateway_here_seats_no_unknown_price(witan, outside, monkeypatch):
    """Models without a price, or with one below 0, are passed over and counted."""
    monkeypatch.setenv("OPENROUTER_API_KEY", KEY)
    prices = {"ok": "0.000001", "fine": "0.000001", "neg": "-1"}
    models = [
        {"id": f"x/{n}", "pricing": {"prompt": p, "completion": p}} for n, p in prices.items()
    ]
    with listing(*models, "x/noprice") as server:
        monkeypatch.setenv("OPENROUTER_BASE_URL", server.url)
        said = witan("plan", "Which?", "--json")

    assert {line["seat"] for line in said.json["lines"]} == {"x/ok", "x/fine"}
    assert all(fact in said.err for fact in ("openrouter", "2 models", "price is unknown"))


def test_four_within_the_bound_are_seated_of_a_list(witan, outside, monkeypatch):
    """What is dear, has no price or depends is not among them, whatever stands first and newest."""
    monkeypatch.setenv("OPENROUTER_API_KEY", KEY)
    prices = {
        "openai/o9-pro": ("0.00015", "0.0006"), "openrouter/auto": ("-1", "-1"),
        "z-ai/odd": ("NaN", "0.1"), "z-ai/null": (None, None), "z-ai/half": ("0.000001", None),
        "anthropic/dear-out": ("0.000005", "0.000031"), "anthropic/ok": ("0.000003", "0.000015"),
        "openai/ok": ("0.00001", "0.00003"), "google/ok": ("0.000002", "0.00001"),
        "qwen/ok": ("0", "0"), "mistralai/ok": ("0.000001", "0.000003"),
    }  # fmt: skip
    models = [
        {"id": name, "created": 2_000 - at, "pricing": {"prompt": read, "completion": written}}
        for at, (name, (read, written)) in enumerate(prices.items())
    ]
    with listing(*models) as server:
        monkeypatch.setenv("OPENROUTER_BASE_URL", server.url)
        plan = witan("plan", "Which?", "--json").json

    seated = {line["seat"] for line in plan["lines"]}
    assert len(seated) >= 4
    assert all(name.endswith("/ok") for name in seated)
    assert plan["unpriced"] == []


def test_without_a_gateway_the_public_address_is_asked_for(witan, outside, monkeypatch):
    """The proxy of these tests does see what leaves the machine."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)

    witan("ask", "Which?", "--no-history", "--member", "openai:m", "--member", "openai:n",
          "--attempts", 1)  # fmt: skip

    assert any("api.openai.com" in line for line in outside.lines)


@pytest.mark.parametrize("command", ["ask", "plan"])
def test_a_malformed_address_is_one_line(witan, outside, monkeypatch, command):
    """The variable is named, nothing is sent, and the exit status is 2."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_BASE_URL", "gateway.example.org/v1")

    said = witan(command, "Which?", "--member", "openai:m", "--member", "openai:n")

    assert said.status == 2
    assert all(fact in said.err for fact in ("OPENAI_BASE_URL", "http:// or https://"))
    assert "Traceback" not in said.err
    assert outside.lines == []
