"""Start-up of libraries and clients: no part of an import, nor of the time that calls take."""

import json
import os
from importlib.util import find_spec

import anyio
import pytest

import witan
from councils import council, member
from misbehaving import MisbehavingServer
from processes import run_python
from witan.deliberation.ports import Call, Hear, Member, Reply
from witan.service.council import Council

ASK = """
import asyncio, json, sys
from witan import Council

async def main(members, options):
    async with Council(members, **{"environment": {}, **options}) as council:
        session = await council.ask("Which?")
    took = {e.seat: e.spent.seconds for e in session.events if hasattr(e, "spent") and
            e.kind in ("answer_done", "answer_failed")}
    print(json.dumps({"status": session.status, "missing": session.missing, "took": took}))

asyncio.run(main(json.loads(sys.argv[1]), json.loads(sys.argv[2])))
"""


def fresh(members: list[str], **options: object) -> dict:
    """What comes of a question that a process of its own asks, first of all it does."""
    given = [json.dumps(members), json.dumps(options)]
    done = run_python(ASK, *given, check=True)
    return json.loads(done.stdout)


@pytest.mark.slow
@pytest.mark.alone
def test_a_brief_time_for_calls_is_enough_for_brief_calls():
    """Members that answer at once do so in 0.3 s, though the process has only just begun."""
    with MisbehavingServer() as server:
        seats = [f"{name}={server.url}#{name}" for name in ("ada", "bob", "cyd")]
        for _ in range(5):  # the machine is shared
            told = fresh(seats, call_seconds=0.3)
            if told["status"] == "complete":
                break

    assert (told["status"], told["missing"]) == ("complete", [])
    assert max(told["took"].values()) < 0.3


@pytest.mark.slow
@pytest.mark.alone
@pytest.mark.skipif(find_spec("anthropic") is None, reason="needs the package of the provider")
def test_libraries_of_providers_are_imported_before_the_clock_starts():
    """A refused key takes no longer to hear of than the request, however long the import."""
    seconds = []
    with MisbehavingServer() as server:
        server.fault(None, "401")
        while not seconds or (min(seconds) >= 1.5 and len(seconds) < 5):  # the machine is shared
            told = fresh(
                [f"{name}=anthropic:claude" for name in ("ada", "bob")],
                attempts=1,
                call_seconds=30.0,
                environment={"ANTHROPIC_API_KEY": "k", "ANTHROPIC_BASE_URL": server.url},
            )
            seconds.append(max(told["took"].values()))

    assert told["status"] == "failed"
    assert min(seconds) < 1.5


@pytest.mark.parametrize("module", ["witan", "witan.bridges.pytest_plugin"])
def test_importing_the_package_loads_nothing_heavy(module):
    """Nor does its plugin, which pytest imports wherever Witan is installed."""
    code = (
        f"import sys, {module}; print([m for m in ('numpy', 'scipy', 'pydantic', 'rich',"
        " 'click', 'anyio', 'httpx2', 'aiohttp', 'pydantic_ai') if m in sys.modules])"
    )

    run = run_python(code, check=True, env={**os.environ, "PYTHONWARNINGS": "error"})

    assert run.stdout.strip() == "[]"


def test_an_unknown_name_is_an_attribute_error():
    """A misspelt name fails as it would in any module."""
    with pytest.raises(AttributeError, match="tallly"):
        _ = witan.tallly


CALL_SECONDS = 1.0
"""More than a call takes on a busy machine, and less than the start."""


class Starting:
    """A model that has to start up, and tells of it."""

    def __init__(self, problem: Exception | None = None) -> None:
        self.prepared = 0
        self.problem = problem

    async def prepare(self) -> None:
        self.prepared += 1
        await anyio.sleep(CALL_SECONDS + 0.1)
        if self.problem is not None:
            raise self.problem

    async def complete(self, call: Call, hear: Hear) -> Reply:
        assert self.prepared, call
        hear("So.")
        return Reply("So.")


@pytest.mark.anyio
class TestPreparing:
    """A model of one's own may start up, too."""

    async def test_it_is_prepared_once_and_not_timed(self):
        """All start up at the same time, before the first answer is begun, and once."""
        models = [Starting(), Starting()]
        seats = [Member(f"m{n}", model, f"test:{n}") for n, model in enumerate(models)]
        async with council([*seats, member("a")], call_seconds=CALL_SECONDS) as held:
            with anyio.fail_after(60):
                sessions = [await held.ask("Which?") for _ in range(2)]

        assert [model.prepared for model in models] == [1, 1]
        assert len(sessions[0].answers) == 3
        assert max(answer.spent.seconds for answer in sessions[0].answers.values()) < CALL_SECONDS

    async def test_a_model_that_fails_to_start_is_still_called(self):
        """The call reports the problem, if it persists."""
        seat = Member("m", Starting(RuntimeError("no luck")), "test:m")
        async with council([seat, member("a"), member("b")]) as held:
            session = await held.ask("Which?")

        assert session.answers["m"].text == "So."

    async def test_it_counts_for_objects_in_the_council_of_seats(self):
        """The council that is written as seats prepares objects likewise."""
        model = Starting()
        async with Council([model, Starting()], environment={}, call_seconds=CALL_SECONDS) as held:
            session = await held.ask("Which?")

        assert (model.prepared, len(session.answers)) == (1, 2)


def test_every_command_starts_with_the_oldest_click():
    """Click 8.3, which DeepEval requires: its parameter types are not generic."""
    program = (
        "import click, importlib, pkgutil\n"
        "click.ParamType.__class_getitem__ = None\n"
        "import witan.surfaces.cli as cli\n"
        "for each in pkgutil.iter_modules(cli.__path__, f'{cli.__name__}.'):\n"
        "    importlib.import_module(each.name)"
    )
    done = run_python(program)

    assert done.stderr == ""
