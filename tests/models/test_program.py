"""Programs as members: real processes, their replies and failures, and no process left behind."""

import os
import re
import shlex
import sys
import time
from pathlib import Path

import anyio
import pytest

from witan.deliberation.call_headers import HOPS, TraceContext, within_trace
from witan.deliberation.ports import Call, Message, ignore_text
from witan.errors import InvalidParameter, ModelError
from witan.models.program import Program

pytestmark = pytest.mark.anyio


def call(*messages: Message) -> Call:
    return Call("answer", messages or (Message("user", "How deep?"),), max_tokens=100)


def python(code: str) -> Program:
    """A program that runs this code."""
    return Program("p", shlex.join([sys.executable, "-S", "-c", code]))


async def failure(program: Program) -> ModelError:
    with pytest.raises(ModelError) as caught:
        await program.complete(call(), ignore_text)
    return caught.value


async def test_prompt_goes_in_and_answer_comes_out():
    """A single message goes to standard input unchanged; no shell reads the command."""
    reply = await Program("p", "tr a-z A-Z").complete(
        call(Message("user", "how $HOME é")), ignore_text
    )

    assert reply.text == "HOW $HOME é"


async def test_conversation_has_the_role_of_each_message():
    """Several messages are headed by their roles."""
    messages = (Message("system", "Be brief."), Message("user", "Why?"))

    reply = await Program("p", "cat").complete(call(*messages), ignore_text)

    assert reply.text == "System:\nBe brief.\n\nUser:\nWhy?\n"


async def test_text_is_streamed_as_it_is_written():
    """Pieces arrive before the program ends, and a split character arrives whole."""
    pieces: list[str] = []
    code = (
        "import sys, time; w = sys.stdout.buffer\n"
        "for part in (b'caf\\xc3', b'\\xa9 ', b'noir'):\n"
        "    w.write(part); w.flush(); time.sleep(0.05)"
    )

    reply = await python(code).complete(call(), pieces.append)

    assert reply.text == "".join(pieces) == "café noir"
    assert len(pieces) > 1


async def test_program_may_leave_the_prompt_unread():
    """A program may close its input at once, however long the prompt is."""
    long = Message("user", "x" * 1_000_000)

    reply = await python("import os; os.close(0); print('done')").complete(call(long), ignore_text)

    assert reply.text == "done\n"


async def test_lone_surrogate_in_the_prompt_is_replaced():
    """Half a character becomes a question mark, and the rest arrives."""
    reply = await Program("p", "cat").complete(call(Message("user", "a \ud83d b")), ignore_text)

    assert reply.text == "a ? b"


async def test_exit_status_is_an_error_with_the_last_line():
    """The last line of standard error is the reason; a retry would not help."""
    error = await failure(
        python("import sys; print('first\\nno \\x1b[31mweights', file=sys.stderr); sys.exit(3)")
    )

    assert str(error).endswith("exited with status 3: no [31mweights")
    assert not error.transient


async def test_signal_is_named():
    """The error names the signal that killed the program."""
    error = await failure(python("import os, signal; os.kill(os.getpid(), signal.SIGKILL)"))

    assert "was ended by signal 9" in str(error)


@pytest.mark.parametrize("command", ["/nowhere/at-all --x", "/etc/hostname"])
async def test_program_that_cannot_start_is_named(command):
    """A missing or invalid program is named with the reason."""
    error = await failure(Program("p", command))

    assert f"'{command.split()[0]}' cannot be started" in str(error)
    assert not error.transient


async def test_empty_output_is_an_error():
    """White space on standard output is not an answer."""
    error = await failure(python("print()"))

    assert str(error) == "p: said nothing"
    assert error.transient


async def test_endless_output_is_stopped():
    """A program that never stops writing is killed at a stated size."""
    error = await failure(Program("p", "yes"))

    assert "printed more than 8,000,000 bytes" in str(error)


async def test_cancelling_kills_the_program_and_its_children(tmp_path):
    """Grandchildren are killed as well."""
    pids = tmp_path / "pids"

    async with anyio.create_task_group() as group:
        group.start_soon(python(parent_program(pids)).complete, call(), ignore_text)
        with anyio.fail_after(60):
            while not is_written(pids):  # noqa: ASYNC110 - a process of another sets no event
                await anyio.sleep(0.01)
        group.cancel_scope.cancel()

    for pid in map(int, pids.read_text().split()[:2]):
        await wait_until_ended(pid)


async def test_cancelling_during_the_start_kills_the_children(tmp_path):
    """A program may have children before the event loop learns that it started."""
    pids = tmp_path / "pids"

    async with anyio.create_task_group() as group:
        group.start_soon(python(parent_program(pids)).complete, call(), ignore_text)
        with anyio.fail_after(60):
            while not is_written(pids):
                await anyio.lowlevel.checkpoint()
                time.sleep(0.5)  # noqa: ASYNC251 - so the event loop learns of the start last
        group.cancel_scope.cancel()

    for pid in map(int, pids.read_text().split()[:2]):
        await wait_until_ended(pid)


def parent_program(pids):
    """Return a program that starts a child and writes both process ids."""
    return (
        "import os, subprocess, time\n"
        "child = subprocess.Popen(['sleep', '600'])\n"
        f"open({str(pids)!r}, 'w').write(f'{{os.getpid()}} {{child.pid}} .')\n"
        "time.sleep(600)"
    )


def is_written(pids):
    """Tell whether the program wrote both process ids."""
    return pids.exists() and pids.read_text().endswith(".")


async def test_background_child_does_not_delay_the_reply(tmp_path):
    """Children still running when the program ends are killed."""
    pids = tmp_path / "pid"

    with anyio.fail_after(60):
        reply = await Program("p", f"sh -c 'sleep 600 & echo $! > {pids}; echo said'").complete(
            call(), ignore_text
        )

    assert reply.text == "said\n"
    await wait_until_ended(int(pids.read_text()))


async def wait_until_ended(pid: int) -> None:
    """Wait until no such process runs; a zombie counts as ended."""
    with anyio.fail_after(60):
        while running(pid):  # noqa: ASYNC110 - a process of another sets no event
            await anyio.sleep(0.01)


def running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (ProcessLookupError, FileNotFoundError):
        return False
    return stat.rsplit(")", 1)[1].split()[0] != "Z"


@pytest.mark.parametrize(
    ("command", "problem"), [("say 'so", "quotes closed"), ("  ", "expected a command")]
)
async def test_invalid_command_is_refused(command, problem):
    """An open quote, or no words at all, is refused before anything runs."""
    with pytest.raises(InvalidParameter, match=problem):
        Program("p", command)


class TestCircles:
    """A program may run a council, but not the one that it belongs to."""

    async def test_program_gets_the_chain_of_callers(self):
        """It names the calling servers and the program, without showing its command."""
        token = HOPS.set(("one", "two"))
        reply = await python("import os; print(os.environ['WITAN_VIA'])").complete(
            call(), ignore_text
        )
        HOPS.reset(token)
        one, two, own = reply.text.strip().split(", ")

        assert (one, two) == ("one", "two")
        assert re.fullmatch(r"program-[0-9a-f]{32}", own)

    async def test_program_gets_its_trace_context(self):
        """It is in the variables of OpenTelemetry."""
        with within_trace(TraceContext(f"00-{'a' * 32}-{'b' * 16}-01", "x=1")):
            reply = await python(
                "import os; print(os.environ['TRACEPARENT'], os.environ['TRACESTATE'])"
            ).complete(call(), ignore_text)

        assert re.fullmatch(rf"00-{'a' * 32}-(?!b{{16}})[0-9a-f]{{16}}-01 x=1\n", reply.text)

    async def test_program_that_runs_this_council_is_refused(self, monkeypatch):
        """However its path is written; another program runs."""
        code = "import os; print(os.environ['WITAN_VIA'])"
        monkeypatch.setenv(
            "WITAN_VIA", (await python(code).complete(call(), ignore_text)).text.strip()
        )
        link = shlex.join(
            [
                str(Path(sys.executable).parent / ".." / "bin" / Path(sys.executable).name),
                "-S",
                "-c",
                code,
            ]
        )

        for same in (python(code), Program("p", link)):
            assert "a member of itself" in str(await failure(same))
        assert (await Program("p", "echo well").complete(call(), ignore_text)).text == "well\n"

    async def test_nested_programs_are_limited_in_depth(self, monkeypatch):
        """Programs that differ each time would otherwise multiply without end."""
        monkeypatch.setenv("WITAN_VIA", "program-a, program-b, program-c, elsewhere")
        assert (await Program("p", "echo well").complete(call(), ignore_text)).text == "well\n"
        monkeypatch.setenv("WITAN_VIA", "program-a, program-b, program-c, program-d")

        assert "councils are already nested 4 deep" in str(await failure(Program("p", "echo well")))
