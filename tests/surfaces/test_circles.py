"""Programs as members that ask the council again: found in real processes."""

import json
import shlex
import sys
import textwrap
from pathlib import Path

import pytest

from openai_clients import ASKED, client_of
from processes import run_witan
from served import free_port, served
from services import councils, write_config
from witan.history import History

SECONDS = 60
"""Whatever asks itself for ever is ended then."""


def write_circle(folder, *program):
    """Seat ada, bob, and a program in place of cyd that records its runs."""
    folder.mkdir(exist_ok=True)
    write_config(folder)
    ran = folder / "ran.txt"
    shell = f"echo >> {shlex.quote(str(ran))}; exec {shlex.join(map(str, program))}"
    scripts = [f"script:{folder / name}.toml" for name in ("ada", "bob")]
    seats = [*scripts, f"self=cmd:{shlex.join(['sh', '-c', shell])}"]
    text = f"members = {json.dumps(seats)}\nchairman = {json.dumps(scripts[0])}\n"
    (folder / "circle.toml").write_text(text, encoding="utf-8")
    return ran


def witan(*arguments, environment=None):
    """Run the command; return its JSON output."""
    done = run_witan(*arguments, timeout=SECONDS, env=environment)
    assert done.stdout, done.stderr
    return json.loads(done.stdout)


def unanswered(record):
    """Map each seat without an answer to its reason."""
    return {e["seat"]: e["reason"] for e in record["events"] if e["event"] == "answer_failed"}


@pytest.mark.slow
def test_a_program_that_asks_its_own_council_is_refused(tmp_path):
    """Once, before others are retried; they continue without it."""
    folder = tmp_path / "own"
    file = folder / "circle.toml"
    again = [sys.executable, "-m", "witan", "ask", "--config", file, "--no-history", "-"]
    ran = write_circle(folder, *again)

    record = witan("ask", "Is it so?", "--config", file, "--no-history", "--json")

    assert "a member of itself" in unanswered(record)["self"]
    assert record["status"] == "degraded"
    assert ran.read_text(encoding="utf-8").count("\n") == 1


@pytest.mark.slow
def test_programs_that_ask_each_others_councils_are_refused(tmp_path):
    """The second does not ask the first again."""
    one, two = tmp_path / "one", tmp_path / "two"

    def asking(folder):
        file = folder / "circle.toml"
        return [sys.executable, "-m", "witan", "ask", "--config", file, "--no-history", "-"]

    ran_one, ran_two = write_circle(one, *asking(two)), write_circle(two, *asking(one))

    record = witan("ask", "Is it so?", "--config", one / "circle.toml", "--no-history", "--json")

    assert not unanswered(record)
    # Its answer and its review are each a council of two, whose program is run, and refuses.
    assert ran_one.read_text(encoding="utf-8").count("\n") <= 3
    assert ran_two.read_text(encoding="utf-8").count("\n") <= 6


@pytest.mark.slow
def test_a_program_that_asks_its_own_server_is_refused(tmp_path):
    """The program passes the circle on, and the server knows its own identity."""
    port, folder = free_port(), tmp_path / "served"
    seat = f"http://127.0.0.1:{port}/v1#witan"
    members = ["--member", f"one={seat}", "--member", f"two={seat}"]
    ran = write_circle(folder, sys.executable, "-m", "witan", "ask", "--no-history", *members, "-")
    with (
        History.open(tmp_path / "history.sqlite") as history,
        served(councils(folder / "circle.toml", history), port=port) as server,
        client_of(server) as client,
    ):
        reply = client.with_options(timeout=SECONDS).chat.completions.create(**ASKED)
        session = server.service.registry.get(reply.witan["session"]).session
        held = len(history.find(simulated=None))

    assert "a member of itself" in session.unanswered["self"]
    assert held == 1
    assert ran.read_text(encoding="utf-8").count("\n") == 1


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="it is told by /proc")
def test_an_agent_that_starts_its_own_council_as_a_tool_is_refused(tmp_path):
    """Over MCP, whose clients pass no variables of ours; the demonstration is allowed."""
    folder = tmp_path / "agent"
    agent = tmp_path / "agent.py"
    agent.write_text(
        textwrap.dedent(
            f"""
            import sys
            import anyio
            from mcp import Client, StdioServerParameters

            async def main():
                server = StdioServerParameters(
                    command=sys.executable,
                    args=["-m", "witan", "mcp", "--config", {str(folder / "circle.toml")!r},
                          "--no-history"],
                )
                async with Client(server) as client:
                    result = await client.call_tool("ask", {{"question": sys.stdin.read()}})
                sys.exit(result.content[0].text if result.is_error else 0)

            anyio.run(main)
            """
        ),
        encoding="utf-8",
    )
    ran = write_circle(folder, sys.executable, agent)

    record = witan("ask", "Is it so?", "--config", folder / "circle.toml", "--no-history", "--json")

    assert "a member of itself" in unanswered(record)["self"]
    assert ran.read_text(encoding="utf-8").count("\n") == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    "unset",
    ["${WITAN_VIA}", "$WITAN_VIA", "${env:WITAN_VIA}", ""],
)
def test_an_unexpanded_variable_of_a_client_is_ignored(tmp_path, unset, monkeypatch):
    """Such a council is no member of another and works as usual."""
    monkeypatch.setenv("WITAN_VIA", unset)

    record = witan("ask", "Is it so?", "--config", write_config(tmp_path), "--no-history", "--json")

    assert record["status"] == "complete"
