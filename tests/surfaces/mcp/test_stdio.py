"""``witan mcp``: a server on standard input and output, started by its client."""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress

import anyio
import pytest
from mcp import Client

from mcp_clients import ProgressLog, command, text_of
from services import write_config
from witan.history import History

pytestmark = pytest.mark.anyio

SLOW = [{"prefers": ["Ada says"], "seconds": 60}]

QUESTION = {"question": "Is it so?"}

HANDSHAKE = [
    {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"},
        },
    },
    {"jsonrpc": "2.0", "method": "notifications/initialized"},
]


def calling(tool, arguments, number=2):
    params = {"name": tool, "arguments": arguments}
    return {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}


class Process:
    """The command as a process, driven line by line."""

    def __init__(self, file, *more):
        started = command(file, *more)
        self.history = file.parent / "history.sqlite"
        self.process = subprocess.Popen(  # noqa: S603 - this Python, and arguments of ours
            [started.command, *started.args],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            with suppress(BrokenPipeError):
                pipe.close()

    def say(self, *messages):
        for message in messages:
            self.process.stdin.write(json.dumps(message) + "\n")
        self.process.stdin.flush()

    def hear(self):
        return json.loads(self.process.stdout.readline())

    def statuses(self):
        with History.open(self.history) as history:
            return [found.status for found in history.find(simulated=None)]

    def wait_for(self, *statuses):
        deadline = time.monotonic() + 60
        while not self.history.exists() or self.statuses() != [*statuses]:
            assert time.monotonic() < deadline, "nothing of the session is in the history"
            time.sleep(0.05)


@pytest.fixture
def slow(tmp_path):
    """A server with slow reviewers that was asked a question."""
    with Process(write_config(tmp_path, review=SLOW)) as process:
        process.say(*HANDSHAKE, calling("ask", QUESTION))
        process.wait_for("running")
        yield process


class TestAsking:
    """The protocol's own client asks a question and receives progress."""

    @pytest.mark.parametrize("mode", ["auto", pytest.param("legacy", marks=pytest.mark.slow)])
    async def test_a_question_is_answered_with_progress(self, tmp_path, mode):
        """The numbers grow to their total; messages say who votes and leads."""
        heard = ProgressLog()
        async with Client(command(write_config(tmp_path)), mode=mode) as client:
            result = await client.call_tool("ask", QUESTION, progress_callback=heard)

        numbers = [done for done, _, _ in heard.received]
        said = "\n".join(message for _, _, message in heard.received)
        assert not result.is_error
        assert text_of(result).startswith("simulated\n\nAll told")
        assert result.structured_content["trust"] in text_of(result)
        assert numbers == sorted(set(numbers))
        assert {total for _, total, _ in heard.received} == {8.0}
        assert numbers[-1] == 8
        assert "ada answers" in said
        assert "bob has voted" in said
        assert "ada leads" in said

    @pytest.mark.slow
    async def test_the_session_is_in_the_shared_history(self, tmp_path):
        """Other commands of this user find it there."""
        async with Client(command(write_config(tmp_path))) as client:
            told = (await client.call_tool("ask", QUESTION)).structured_content

        with History.open(tmp_path / "history.sqlite") as history:
            assert history.session(told["session"]).text == told["text"]

    @pytest.mark.slow
    async def test_without_a_history_sessions_end_with_the_process(self, tmp_path):
        """They can be read until then."""
        file = write_config(tmp_path)
        started = command(file)
        started.args[-2:] = ["--no-history"]
        async with Client(started) as client:
            told = (await client.call_tool("ask", QUESTION)).structured_content
            found = await client.call_tool("result", {"session": told["session"]})
            kept = await client.call_tool("sessions", {})

        assert found.structured_content["text"] == told["text"]
        assert kept.is_error
        assert "keeps no history" in text_of(kept)
        assert not (tmp_path / "history.sqlite").exists()


class TestInterruptions:
    """A client that leaves or cancels leaves sessions that can be resumed."""

    @pytest.mark.slow
    def test_end_of_input_stops_the_server_and_interrupts_its_session(self, slow):
        """The exit status is 0, and the replies so far are stored."""
        slow.process.stdin.close()

        assert slow.process.wait(30) == 0
        assert slow.statuses() == ["interrupted"]

    @pytest.mark.slow
    @pytest.mark.skipif(sys.platform == "win32", reason="there are no such signals")
    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
    def test_a_signal_stops_the_server_despite_open_input(self, slow, number):
        """Without another line of input."""
        os.kill(slow.process.pid, number)

        assert slow.process.wait(30) == 0
        assert slow.statuses() == ["interrupted"]

    @pytest.mark.slow
    def test_a_client_that_stops_reading_stops_the_server(self, slow):
        """A message without a reader is the last one."""
        slow.process.stdout.close()
        slow.say({"jsonrpc": "2.0", "id": 9, "method": "tools/list"})

        assert slow.process.wait(30) == 0
        assert slow.statuses() == ["interrupted"]

    @pytest.mark.slow
    def test_a_cancelled_call_cancels_its_session(self, slow):
        """The server continues, and the session can be resumed."""
        params = {"requestId": 2, "reason": "the user has thought better of it"}
        slow.say(
            {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params},
            calling("result", {"session": "last", "wait": 10}, 3),
        )
        _, told = slow.hear(), slow.hear()

        assert told["id"] == 3
        assert told["result"]["structuredContent"]["status"] == "interrupted"

    @pytest.mark.slow
    async def test_an_interrupted_session_is_resumed(self, tmp_path):
        """In another process, after the last finished seat."""
        file = write_config(tmp_path, review=SLOW)
        async with Client(command(file)) as client:
            started = await client.call_tool("ask", {**QUESTION, "wait": 0})
            name = started.structured_content["session"]
            cancelled = await client.call_tool("cancel", {"session": name})
        write_config(tmp_path)
        async with Client(command(file)) as client:
            resumed = await client.call_tool("resume", {"session": name})

        assert cancelled.structured_content["status"] == "interrupted"
        assert resumed.structured_content["session"] == name
        assert resumed.structured_content["status"] == "complete"


class TestTheWire:
    """Standard output contains only messages of the protocol."""

    @pytest.mark.slow
    def test_every_line_is_a_message(self, tmp_path):
        """Every request gets a response, including invalid ones."""
        with Process(write_config(tmp_path)) as process:
            process.say(*HANDSHAKE)
            process.process.stdin.write("this is no message\n")
            process.say(calling("ask", QUESTION), calling("fly", {}, 3))
            heard = [process.hear() for _ in range(3)]
            process.process.stdin.close()
            rest = process.process.stdout.read()

        answers = {message["id"]: message for message in heard}
        assert rest == ""
        assert answers[1]["result"]["serverInfo"]["name"] == "witan"
        assert "All told" in answers[2]["result"]["content"][0]["text"]
        assert "unknown tool 'fly'" in answers[3]["error"]["message"]

    @pytest.mark.slow
    def test_a_member_s_output_does_not_mix_with_messages(self, tmp_path):
        """A program in a seat has its own standard output."""
        file = write_config(tmp_path)
        text = file.read_text(encoding="utf-8")
        loud = f"cmd:{sys.executable} -c \"print('Ada says so, loudly')\""
        file.write_text(text.replace('members = ["', f'members = [{json.dumps(loud)}, "'))
        with Process(file) as process:
            process.say(*HANDSHAKE, calling("ask", QUESTION))
            heard = [process.hear() for _ in range(2)]

        assert {message["id"] for message in heard} == {1, 2}

    @pytest.mark.slow
    def test_an_empty_input_stops_the_server(self, tmp_path):
        """Without output."""
        with Process(write_config(tmp_path)) as process:
            process.process.stdin.close()

            assert process.process.wait(30) == 0
            assert process.process.stdout.read() == ""

    @pytest.mark.slow
    async def test_other_requests_are_answered_during_a_question(self, tmp_path):
        """A long call does not block others."""
        file = write_config(tmp_path, review=SLOW)
        async with Client(command(file)) as client, anyio.create_task_group() as group:
            group.start_soon(client.call_tool, "ask", QUESTION)
            with anyio.fail_after(40):
                rules = await client.call_tool("rules", {})
            group.cancel_scope.cancel()

        assert "schulze" in text_of(rules)
