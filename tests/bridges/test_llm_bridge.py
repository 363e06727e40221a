"""Councils as models, by the command `llm` in a process of its own."""

import json
import os
import subprocess
import sys
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path

import pytest

from processes import run_program
from scripts import write_script
from witan import History

pytestmark = [
    pytest.mark.slow,  # `llm` itself takes two seconds to start
    pytest.mark.skipif(
        find_spec("llm") is None or not entry_points(group="llm", name="witan"),
        reason="llm is not installed, or Witan was installed before it had this plugin",
    ),
]

LLM = Path(sys.executable).with_name("llm")


@pytest.fixture
def run(tmp_path):
    """Run a command where a council is configured; return what it did."""
    seats = []
    for name in ("ada", "bob", "cyd"):
        answers = [
            {"contains": "Be brief", "text": f"{name}: briefly."},
            {"contains": "All told: so.", "text": f"{name} goes on."},
            {"contains": "mute", "error": "refused"},
            {"text": f"{name} says so."},
        ]
        stages = {"answer": answers, "review": [{"prefers": ["ada", "bob", "cyd"]}]}
        seats.append(f"script:{write_script(tmp_path / f'{name}.toml', **stages)}")
    synthesis = [
        {"contains": "goes on", "text": "All told: on."},
        {"contains": "briefly", "text": "Brief."},
        {"contains": '"sure"', "text": '{"sure": true}'},
        {"text": "All told: so."},
    ]
    chair = write_script(tmp_path / "chair.toml", synthesis=synthesis)
    configured = f"""
members = {json.dumps(seats)}
chairman = "script:{chair}"
[profiles.quick]
about = "The best answer, as it is"
mode = "best"
"""
    (tmp_path / "witan.toml").write_text(configured, encoding="utf-8")

    own = {"LLM_USER_PATH": str(tmp_path / "llm"), "NO_COLOR": "1"}
    own["WITAN_HISTORY"] = str(tmp_path / "history.sqlite")

    def run_process(*command, status=0):
        done = run_program(
            *command, cwd=tmp_path, env={**os.environ, **own}, stdin=subprocess.DEVNULL
        )
        assert done.returncode == status, done.stdout + done.stderr
        return done

    return run_process


def test_a_council_answers_and_the_conversation_continues(run, tmp_path):
    """The answer is on standard output, progress on standard error; a follow-up has a parent."""
    first = run(LLM, "-m", "witan", "Is it so?", "-u")
    second = run(LLM, "-c", "And then?", "-R")
    logged = json.loads(run(LLM, "logs", "-n", "2", "--json").stdout)

    assert first.stdout.startswith("All told: so.\n\n[simulated")
    assert "ada has voted" in first.stderr
    assert "Token usage:" in first.stderr
    assert second.stdout.startswith("All told: on.")
    assert "has voted" not in second.stderr
    assert logged[0]["conversation_id"] == logged[1]["conversation_id"]
    with History.open(str(tmp_path / "history.sqlite"), reading=True) as history:
        late, early = (history.session(each.session) for each in history.find())
    assert early.question == "Is it so?"
    assert late.opening.parent == early.id
    assert [turn.role for turn in late.opening.conversation] == ["user", "assistant"]
    assert logged[-1]["input_tokens"] == late.usage.input_tokens


def test_profiles_are_models_and_settings_are_options(run):
    """A profile, a setting, a system prompt and a schema reach the council."""
    listed = run(LLM, "models", "list", "--options", "-m", "witan/quick").stdout
    best = run(LLM, "-m", "witan/quick", "Is it so?", "-R", "-o", "legend", "1", "-o", "seed", "1")
    brief = run(LLM, "-m", "witan", "Is it so?", "-s", "Be brief.", "-R", "--no-stream")
    schema = run(LLM, "-m", "witan", "Is it so?", "--schema", "sure bool", "-R")

    assert "max_cost_usd: float" in listed
    assert "US dollars" in listed
    assert best.stdout.startswith("[A]\n")  # all three are too close to call
    assert "ada says so." in best.stdout
    assert "\n\n[A] " in best.stdout  # the legend
    assert brief.stdout.startswith("Brief.")
    assert json.loads(schema.stdout) == {"sure": True}


def test_an_error_is_one_line(run, tmp_path):
    """There is no traceback."""
    option = run(LLM, "-m", "witan", "Is it so?", "-o", "mode", "worst", status=1)
    mute = run(LLM, "-m", "witan", "Are you mute?", status=1)
    empty = run(LLM, "-m", "witan", "", status=1)
    (tmp_path / "witan.toml").write_text("members = 3")
    listed = run(LLM, "models").stdout
    broken = run(LLM, "-m", "witan", "Is it so?", status=1)

    assert "'consensus', 'best' or 'verdict'" in option.stderr
    assert "Error: no final answer: " in mute.stderr
    assert empty.stderr == "Error: question is empty; expected something to ask\n"
    assert "WitanModel: witan" in listed
    assert "witan.toml: members" in broken.stderr
    assert "Traceback" not in option.stderr + mute.stderr + broken.stderr


PROGRAM = """
import asyncio, llm

async def main():
    model = llm.get_async_model("witan")
    reply = model.prompt("Is it so?")
    assert (await reply.text()).startswith("All told: so.")
    assert (await reply.usage()).output > 0
    async for _ in model.prompt("Is it so?"):
        break

asyncio.run(main())
for piece in llm.get_model("witan").prompt("Is it so?"):
    break
print(piece)
"""


def test_a_program_may_abandon_a_reply(run):
    """The process ends, with and without an event loop."""
    done = run(sys.executable, "-c", PROGRAM)

    assert done.stdout.startswith("All told")
    assert done.stderr == ""
