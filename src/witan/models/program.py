"""A program as member: prompt on standard input, answer on standard output."""

import os
import shlex
import shutil
import signal
import subprocess
from codecs import getincrementaldecoder
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from hashlib import sha256
from typing import TypeVar

import anyio
from anyio.abc import ByteReceiveStream, ByteSendStream, Process

from witan.core.escaping import is_blank
from witan.deliberation.call_headers import VIA_VARIABLE, call_trace, hops
from witan.deliberation.ports import Call, Hear, Message, Reply
from witan.errors import InvalidParameter, ModelError
from witan.models.providers import Redaction

LARGEST_REPLY_BYTES = 8_000_000
KEPT_STDERR_BYTES = 8_192

MOST_PROGRAMS = 4
"""Most programs with councils nested in each other, as each of them makes several calls."""

MARK = "program-"
"""Prefix of a program's name in the list of servers behind a call."""

_Stream = TypeVar("_Stream", ByteReceiveStream, ByteSendStream)

_AT_EASE = (anyio.ClosedResourceError, anyio.BrokenResourceError)
"""Errors of a program that does not read all of its input, which is allowed."""


class Program:
    """A program answering calls: one process per call, without a shell.

    `name`: name in messages.
    `command`: the program and its arguments, quoted as for a shell.
    """

    def __init__(self, name: str, command: str) -> None:
        self.name = name
        try:
            self.argv = tuple(shlex.split(command))
        except ValueError as error:
            raise InvalidParameter(
                "a program", command, f"a command with its quotes closed ({error})"
            ) from error
        if not self.argv:
            raise InvalidParameter("a program", command, "a command, such as 'my-model --fast'")
        self._short = Redaction([])
        self._mark = _mark(self.argv)

    def __repr__(self) -> str:
        return f"Program({self.name!r})"

    async def complete(self, call: Call, hear: Hear, /) -> Reply:
        """Run the program for this call; cancelling kills its process group."""
        if (circle := self.circle()) is not None:
            raise ModelError(self.name, circle)
        tail = bytearray()
        prompt = render_messages(call.messages).encode(errors="replace")
        async with self._run_process() as process, anyio.create_task_group() as group:
            group.start_soon(_write_prompt, _pipe(process.stdin), prompt)
            group.start_soon(_read_tail, _pipe(process.stderr), tail)
            group.start_soon(_await_end, process)
            text = await _read_output(_pipe(process.stdout), hear)
            if text is None:
                group.cancel_scope.cancel()
        if text is None:
            problem = f"printed more than {LARGEST_REPLY_BYTES:,} bytes"
            raise ModelError(self.name, problem)
        if process.returncode != 0:
            raise ModelError(self.name, self._failure(process.returncode, tail))
        if is_blank(text):
            raise ModelError(self.name, "said nothing", transient=True)
        return Reply(text)

    def circle(self) -> str | None:
        """Explain why a program is refused because it runs this process."""
        council_hops = [each for each in hops() if each.startswith(MARK)]
        if self._mark in council_hops:
            return (
                f"the program {self.argv[0]!r} runs this council, "
                "which would be a member of itself; seat another model"
            )
        if len(council_hops) >= MOST_PROGRAMS:
            return (
                f"councils are already nested {len(council_hops)} deep; "
                f"the program {self.argv[0]!r} is not run"
            )
        return None

    @asynccontextmanager
    async def _run_process(self) -> AsyncIterator[Process]:
        try:
            # Cancelled between fork and return, it would kill the program without its children.
            with anyio.CancelScope(shield=True):
                process = await anyio.open_process(
                    self.argv,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    env={
                        **os.environ,
                        **{name.upper(): value for name, value in call_trace().items()},
                        VIA_VARIABLE: ", ".join((*hops(), self._mark)),
                    },
                    start_new_session=True,
                )
        except (OSError, ValueError) as error:
            reason = self._short(getattr(error, "strerror", None) or str(error))
            problem = f"the program {self.argv[0]!r} cannot be started: {reason}"
            raise ModelError(self.name, problem) from error
        try:
            yield process
        finally:
            _kill(process)
            with anyio.CancelScope(shield=True):
                await process.aclose()

    def _failure(self, status: int | None, tail: bytearray) -> str:
        outcome = f"exited with status {status}"
        if status is not None and status < 0:
            outcome = f"was ended by signal {-status}"
        lines = tail.decode(errors="replace").split("\n")
        last_line = next((line for line in reversed(lines) if line.strip()), None)
        reason = "" if last_line is None else f": {self._short(last_line)}"
        return f"the program {self.argv[0]!r} {outcome}{reason}"


def _mark(argv: tuple[str, ...]) -> str:
    """Return a hashed name of the program, independent of its folder."""
    program = shutil.which(argv[0])
    path = argv[0] if program is None else os.path.realpath(program)
    command = shlex.join((path, *argv[1:])).encode(errors="replace")
    return MARK + sha256(command).hexdigest()[:32]


def render_messages(messages: tuple[Message, ...]) -> str:
    """Return messages as plain text, several with their speakers as headings."""
    if len(messages) == 1:
        return messages[0].text
    return "\n\n".join(f"{m.role.capitalize()}:\n{m.text}" for m in messages) + "\n"


def _pipe(stream: _Stream | None) -> _Stream:
    assert stream is not None  # noqa: S101 - it was opened as a pipe
    return stream


async def _read_output(stdout: ByteReceiveStream, hear: Hear) -> str | None:
    """Read the program's output to its end; return None beyond the limit."""
    decoder = getincrementaldecoder("utf-8")(errors="replace")
    pieces, size = [], 0
    async for chunk in stdout:
        size += len(chunk)
        if size > LARGEST_REPLY_BYTES:
            return None
        if piece := decoder.decode(chunk):
            pieces.append(piece)
            hear(piece)
    if rest := decoder.decode(b"", final=True):
        pieces.append(rest)
        hear(rest)
    return "".join(pieces)


async def _write_prompt(stdin: ByteSendStream, prompt: bytes) -> None:
    with suppress(*_AT_EASE):
        await stdin.send(prompt)
    with suppress(*_AT_EASE):
        await stdin.aclose()


async def _read_tail(stderr: ByteReceiveStream, tail: bytearray) -> None:
    async for chunk in stderr:
        tail += chunk
        del tail[:-KEPT_STDERR_BYTES]


async def _await_end(process: Process) -> None:
    """Wait for the process, then kill children that keep pipes open."""
    await process.wait()
    _kill(process)


def _kill(process: Process) -> None:
    """Kill the whole group, or the process on systems without groups."""
    with suppress(ProcessLookupError, PermissionError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
