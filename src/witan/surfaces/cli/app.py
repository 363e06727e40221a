"""Define the command line, with lazy imports and one-line errors."""

import errno
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from importlib import import_module
from types import MappingProxyType, TracebackType
from typing import Any

import click

from witan.errors import UnknownName, WitanError
from witan.service.catalogue import CATALOGUE
from witan.service.text import clean
from witan.surfaces.cli.options import Status, status_of
from witan.surfaces.terminal import (
    discard_output,
    echo,
    flush_output,
    guard_unread_logs,
    open_streams,
    say,
)
from witan.version import __version__

WRITE_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF)
"""Errors of a closed stream or a failing disk."""

BY_HAND: Mapping[str, str] = MappingProxyType(
    {
        "batch": "Run a data set through a council, each row once.",
        "demo": "Watch a session of scripted members.",
        "import": "Import sessions from files into the history.",
        "export": "Write sessions of the history to a file.",
        "init": "Write a configuration, step by step.",
        "doctor": "Check the configuration and whether the council can run.",
        "serve": "Serve the council: page, HTTP, MCP.",
        "mcp": "Serve the council over MCP, on stdin and stdout.",
    }
)
"""Commands that are not operations, and their summaries."""

COMMANDS: Mapping[str, str] = MappingProxyType(
    {**{row.name: row.summary for row in CATALOGUE.values() if row.command == ""}, **BY_HAND}
)
"""Each command and its summary, in the order of help."""

SECTIONS: Mapping[str, Sequence[str]] = MappingProxyType(
    {
        "Ask and judge": ("ask", "plan", "judge", "batch", "demo"),
        "Sessions": ("show", "sessions", "resume", "retry", "rejudge", "recount", "forget"),
        "People": ("vote", "votes"),
        "Models and reviewers": ("leaderboard", "audit", "calibrate", "estimate"),
        "Ballots": ("tally", "compare", "explain", "import", "export"),
        "Setting up": ("init", "doctor", "profiles", "rules", "rubrics", "serve", "mcp"),
    }
)
"""The commands of each section of the help."""

MODULES: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys(("ask", "judge", "rejudge", "plan", "resume", "retry", "demo"), "ask"),
        "tally": "tally",
        **dict.fromkeys(("show", "forget"), "sessions"),
        **dict.fromkeys(("init", "doctor"), "setup"),
        **dict.fromkeys(("export", "import"), "files"),
        "batch": "batch",
        "vote": "vote",
        **dict.fromkeys(("serve", "mcp"), "serve"),
    }
)
"""Sibling module by command; `operations` makes the others."""


EXAMPLES = """\b
Examples:
  witan demo
  witan ask "Is a hash map always faster than a sorted array?"
  witan tally examples/ballots.jsonl
  witan explain examples/ballots.jsonl --session haiku
  witan compare examples/pairs.csv --rules borda,schulze
"""


class _LazyGroup(click.Group):
    """A group whose commands are imported when they are called."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return list(COMMANDS)

    def get_command(
        self,
        ctx: click.Context,  # noqa: ARG002 - click's signature
        cmd_name: str,
    ) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module = import_module(f"witan.surfaces.cli.{MODULES.get(cmd_name, 'operations')}")
        command: click.Command = (
            getattr(module, f"{cmd_name}_command")
            if cmd_name in MODULES
            else module.operation_command(cmd_name)
        )
        return command

    def format_commands(
        self,
        ctx: click.Context,  # noqa: ARG002 - click's signature
        formatter: click.HelpFormatter,
    ) -> None:
        """List the commands in their sections, without loading their modules."""
        width = max(map(len, COMMANDS))
        for title, names in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(width), COMMANDS[name]) for name in names])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in COMMANDS and not args[0].startswith("-"):
            ctx.fail(clean(str(UnknownName("command", args[0], COMMANDS))))
        return super().resolve_command(ctx, args)

    def make_context(self, *args: Any, **extra: Any) -> click.Context:
        with _stopped_by_reader():
            return super().make_context(*args, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        with _stopped_by_reader():
            return super().invoke(ctx)


@contextmanager
def _stopped_by_reader() -> Iterator[None]:
    """End with the status of a closed pipe, not click's 1."""
    try:
        yield
    except BrokenPipeError:
        discard_output()
        raise click.exceptions.Exit(Status.PIPE_CLOSED) from None


@click.group(
    cls=_LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=EXAMPLES,
    invoke_without_command=True,
)
@click.version_option(__version__, message="witan %(version)s")
@click.pass_context
def cli(context: click.Context) -> None:
    """Put a question to a council of models, and count its ballots.

    The answer goes to standard output, everything else to standard error.
    Exit status: 0 answered, 1 not approved or unreadable lines under --strict, 2 misuse,
    3 no quorum or no ballot counts, 4 over budget, 5 tied under --require-winner,
    6 not recorded in the history, 7 not written to standard output, 130 interrupted,
    141 standard output closed by its reader.
    """
    if context.invoked_subcommand is None:
        echo(context.get_help())


def main(args: Sequence[str] | None = None) -> int:
    """Run a command; print expected errors as one line."""
    open_streams()
    sys.excepthook = _show_crash
    guard_unread_logs()
    # BLAS threads do not help with small matrices, and starting them takes a third of a tally's
    # time.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    try:
        status = _run(args)
        flush_output()
    except BrokenPipeError:
        discard_output()
        return Status.PIPE_CLOSED
    except OSError as error:
        return _cannot_write(error)
    return status


def _run(args: Sequence[str] | None) -> int:
    try:
        with _within_own_trace():
            status = cli.main(args=args, prog_name="witan", standalone_mode=False)
    except click.Abort:
        return Status.INTERRUPTED
    except click.ClickException as error:
        if _is_misspelt(error):
            _show_misuse(error)
        else:
            echo(f"witan: {clean(error.format_message())}", err=True)
        return error.exit_code
    except WitanError as error:
        from witan.surfaces.cli.commands import word_problem

        echo(f"witan: {clean(word_problem(error))}", err=True)
        return status_of(error)
    return status if isinstance(status, int) else Status.ANSWERED


def _within_own_trace() -> AbstractContextManager[None]:
    """Work within the trace of the variables TRACEPARENT and TRACESTATE."""
    if "TRACEPARENT" not in os.environ:
        return nullcontext()
    from witan.deliberation.call_headers import read_trace_variables, within_trace

    return within_trace(read_trace_variables(os.environ))


def _show_misuse(error: click.ClickException) -> None:
    """Print usage, help pointer and problem on standard error."""
    context = error.ctx if isinstance(error, click.UsageError) else None
    if context is not None:
        echo(f"{context.get_usage()}\nTry '{context.command_path} --help' for help.\n", err=True)
    echo(f"Error: {clean(error.format_message())}", err=True)


def _show_crash(
    kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> None:
    """Print a traceback, escaping foreign text in it."""
    import traceback

    echo("".join(traceback.format_exception(kind, error, trace)), err=True, nl=False)


def _is_misspelt(error: click.ClickException) -> bool:
    """Check that the error concerns an option, argument or command."""
    kinds = (click.NoSuchOption, click.BadOptionUsage, click.MissingParameter)
    if isinstance(error, click.UsageError) and error.ctx is not None:
        return isinstance(error, kinds) or error.ctx.command is cli
    return False


def _cannot_write(error: OSError) -> int:
    """Report the system's error, and drop unwritten output."""
    is_stream = error.filename is None and error.errno in WRITE_ERRORS
    what = "standard output cannot be written" if is_stream else "the system refused"
    file_text = f" {error.filename}" if error.filename else ""
    say(f"witan: {what}{file_text}: {error.strerror or error}")
    discard_output()
    return Status.UNWRITTEN if is_stream else Status.MISUSED
