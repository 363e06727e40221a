"""Define inputs, output and live view of a session."""

import os
import sys
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click

from witan.surfaces import terminal
from witan.surfaces.cli.options import Status
from witan.surfaces.terminal import echo, is_terminal

if TYPE_CHECKING:
    from witan.deliberation.session import Session
    from witan.service.catalogue import Operation
    from witan.service.history_access import RecordingPlace
    from witan.service.operations.ask import Turn
    from witan.service.parameters import Parameters
    from witan.service.sessions.councils import LocalCouncils
    from witan.surfaces.cli.live_session import LiveSession
    from witan.surfaces.cli.panel import Panel


@dataclass(frozen=True, slots=True)
class SessionOutput:
    """The output of a session, as its options say.

    `save` is the file for the record, if any; `mark` is the prefix of every line of the text.
    """

    as_json: bool = False
    events: bool = False
    quiet: bool = False
    legend: bool = False
    save: Path | None = None
    require_winner: bool = False
    mark: str = ""

    @classmethod
    def of(
        cls, options: Mapping[str, Any], save: Path | None = None, mark: str = ""
    ) -> "SessionOutput":
        """Read `output_options`; `save` is the default file."""
        return cls(
            as_json=options["as_json"],
            events=options["events"],
            quiet=options["quiet"],
            legend=options["legend"],
            save=options["save"] or save,
            require_winner=options.get("require_winner", False),
            mark=mark,
        )

    def __post_init__(self) -> None:
        if self.as_json and self.events:
            raise click.UsageError("choose --json or --events, not both")
        if self.legend and (self.as_json or self.events):
            raise click.UsageError("--legend is for the text: --json and --events have its data")
        if self.save is not None:
            if str(self.save) == "-":
                problem = "must name a file; --json prints the record on standard output"
                raise click.BadParameter(problem, param_hint="--save")
            # Check now: after a paid session it would be too late.
            folder = self.save.absolute().parent
            if not folder.is_dir():
                problem = f"{self.save.parent} is not a directory"
                raise click.BadParameter(problem, param_hint="--save")
            if not os.access(folder, os.W_OK):
                problem = f"{self.save.parent} cannot be written to"
                raise click.BadParameter(problem, param_hint="--save")

    def panel(self, stack: ExitStack) -> "Panel | None":
        """Open the live view if there is a terminal."""
        if self.quiet or not is_terminal(err=True) or (self.events and is_terminal()):
            return None
        from witan.surfaces.cli.panel import Panel

        return stack.enter_context(Panel())


def read_question(question: str | None, inputs: tuple[str, ...]) -> str:
    """Return the question, read from standard input if missing or ``-``.

    Only one of the question and `inputs`, the other files, may be standard input.
    """
    if inputs.count("-") + (question in (None, "-")) > 1:
        raise click.UsageError("standard input, -, can be read only once")
    if question is None and sys.stdin.isatty():
        raise click.UsageError("no question: give a QUESTION, or pipe it in")
    text = _decode("-", "QUESTION") if question is None or question == "-" else question
    if not text.strip():
        raise click.UsageError("the question is empty")
    return text


def read_earlier(name: str | None, config: Path | None, history: str | None) -> "Session | None":
    """Return the session to continue, by its name or file, if any."""
    if name is None:
        return None
    from witan.service.stored_sessions import check_continued
    from witan.surfaces.cli.stored_sessions import council_session

    session = council_session(name, config, history, ", and has no final answer to continue from")
    check_continued(name, session)
    return session


def read_turns(options: Mapping[str, Any]) -> "tuple[Turn, ...]":
    """Read the turns before the question from the file of `--conversation`."""
    path = options["conversation"]
    if path is None:
        return ()
    if options["parent"] is not None:
        raise click.UsageError("choose --conversation or --continue, not both")
    from pydantic import TypeAdapter, ValidationError

    from witan.service.operations.ask import Turn

    try:
        return TypeAdapter(tuple[Turn, ...]).validate_json(_decode(path, "--conversation"))
    except ValidationError as error:
        problem = (
            f"{_file_name(path)} is not a list of objects with role and content: "
            f"{error.errors()[0]['msg']}"
        )
        raise click.BadParameter(problem, param_hint="--conversation") from None


STANDARD_INPUT = "standard input"
"""The name of ``-`` as a file to read."""


def read_files(paths: tuple[str, ...], option: str = "--file") -> Mapping[str, str]:
    """Return the text of each file, by its path as given, or as standard input."""
    texts = {_file_name(path): _decode(path, option) for path in paths}
    if not texts.get(STANDARD_INPUT, "text").strip():  # a program before a pipe may have failed
        raise click.BadParameter(f"{STANDARD_INPUT} is empty", param_hint=option)
    return texts


def _file_name(path: str) -> str:
    return STANDARD_INPUT if path == "-" else path


def _decode(path: str, option: str) -> str:
    name = _file_name(path)
    try:
        with click.open_file(path, "rb") as file:
            content: bytes = file.read()
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        problem = f"{name} is not UTF-8 text (byte {error.start:,})"
        raise click.BadParameter(problem, param_hint=option) from None
    except OSError as error:
        problem = f"{name} cannot be read: {error.strerror or error}"
        raise click.BadParameter(problem, param_hint=option) from None


Say = Callable[[str], None]
"""Function that prints a line for the user without disturbing the live view."""


@dataclass(frozen=True, slots=True)
class SessionStart:
    """Start of a session: an operation, its request and the seats.

    `sessions` are those that the request names, a resumed one as it was before; `file` is that of a
    resumed session, if it has one.
    """

    operation: "Operation[Any, Any]"
    request: "Parameters"
    councils: "LocalCouncils"
    sessions: "tuple[Session, ...]" = ()
    file: Path | None = None


def lock(file: IO[Any]) -> bool:
    """Lock an open file until it is closed; return False if another process has locked it.

    Without support by the platform or file system, nothing is locked.
    """
    if sys.platform == "win32":
        return True
    import fcntl

    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        pass
    return True


def run_session(
    output: SessionOutput,
    open_place: "Callable[[Say], RecordingPlace | None]",
    prepare: "Callable[[LiveSession], SessionStart | Session]",
) -> int:
    """Run one session with live output; return the exit status.

    `open_place` opens the history that records it, before any seat or call, and reports delays;
    `prepare` reads the input and seats the council, or finds a session to show.
    """

    def say(text: str) -> None:
        if panel is not None:
            panel.say(text)
        else:
            terminal.say(text)

    with ExitStack() as stack:
        panel = output.panel(stack)
        try:
            # Imported now: the view is already on screen, and redraws itself in its own thread.
            from witan.surfaces.cli.live_session import LiveSession

            place = open_place(say)
            if place is not None:
                stack.callback(place.history.close)
            live = LiveSession(output, panel, place, say)
            return live.run(prepare(live))
        except KeyboardInterrupt:
            if panel is not None:
                panel.close(keep=False)
            echo("interrupted before the session was opened", err=True)
            return Status.INTERRUPTED
