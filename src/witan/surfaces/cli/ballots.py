"""Ballots of files and stored sessions, as commands take them."""

import json
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from witan.errors import NothingToCount, UnknownName
from witan.service.ballots import SECTION, Unread
from witan.service.settings import COUNTING
from witan.service.text import clean, count_noun, list_text
from witan.surfaces.cli.commands import take_parameters, word_problem
from witan.surfaces.cli.options import (
    PROBLEMS_SHOWN,
    Decorator,
    Status,
    config_option,
    history_option,
    section,
    stack_options,
    strict_option,
)
from witan.surfaces.terminal import console, echo, is_terminal, say, style_line

if TYPE_CHECKING:
    from witan.core.ballot import Ballot, BallotTable
    from witan.core.rubric import Rubric
    from witan.core.scale import Scale
    from witan.core.settings import Settings
    from witan.deliberation.record import SessionImport
    from witan.files.ballots import LineProblem


PATIENCE_SECONDS = 1.0
"""Seconds of reading before progress is shown."""

BETWEEN_LOOKS = 512
"""Ballots read between two checks of the clock."""


class Body:
    """Ballots from files and stored sessions, readable once.

    A name is that of an existing file, otherwise of a session. It counts what it reads.
    """

    def __init__(self, options: Mapping[str, Any]) -> None:
        if list(options["files"]).count("-") > 1:
            raise click.UsageError("Standard input, -, can be read only once.")
        if options["config"] is not None:
            from witan.service.history_access import load_history_config

            load_history_config(options["config"])  # report a broken file even if nothing needs it
        self.files: Sequence[str] = options["files"]
        self.format: str | None = options["format"]
        self.columns: Mapping[str, str] | None = options["columns"] or None
        self.scale: Scale | None = options["scale"]
        self.strict, self.history, self.config = (
            options[name] for name in ("strict", "history", "config")
        )
        self.rubric: Rubric | None = None
        self.scales: dict[Scale, None] = {}
        self.n_ballots = 0
        self.problems: Counter[str] = Counter()
        self.odd: Counter[str] = Counter()
        self.sessions: dict[str, None] = {}
        self.reviewers: dict[str, None] = {}
        self.simulated: set[str] = set()
        self.unread_lines: list[Unread] = []

    def read(self, parameters: object, settings: "Settings") -> Sequence["Ballot"]:  # noqa: ARG002
        """Read the ballots; report settings without effect."""
        from witan.core.ballot import Ballot

        self.rubric = settings.counting.rubric
        parts = list(self._read_files())
        self.match(settings)
        if len(parts) == 1 and not isinstance(parts[0], Ballot):
            return parts[0]
        ballots: Iterator[Ballot] = chain.from_iterable(
            (part,) if isinstance(part, Ballot) else part for part in parts
        )
        if len(self.files) == 1:
            return list(ballots)
        from witan.files.evaluations import merge_graded

        # Evaluation logs have one candidate per file; merge each reviewer's grades into one ballot.
        merged = merge_graded(ballots)
        left = {ballot.scale for ballot in merged}
        for scale in (each for each in self.scales if each not in left):
            say(f"note: {scale.sentence_with('--scale ')}")
        return merged

    def check_wanted(self) -> None:
        """Do nothing: Ctrl-C cancels a command."""

    def _read_files(self) -> Iterator["Ballot | BallotTable"]:
        from witan.core.ballot import Ballot, is_simulated

        with ExitStack() as stack:
            watch = _Watch(stack)
            for path in self.files:
                watch.file = path
                for part in self._read_file(path):
                    if isinstance(part, Ballot):
                        self.n_ballots += 1
                        self.sessions[part.session] = None
                        self.reviewers[part.reviewer] = None
                        if part.notes is not None and is_simulated(part):
                            self.simulated.add(part.session)
                        if self.n_ballots % BETWEEN_LOOKS == 0:
                            watch.look(self.n_ballots)
                    else:
                        self.n_ballots += len(part)
                        self.sessions |= dict.fromkeys(part.sessions)
                        self.reviewers |= dict.fromkeys(part.reviewers)
                    self._note_scale(part)
                    yield part
        self._close()

    def read_imports(self) -> Iterator["SessionImport"]:
        """Return whole sessions instead of their ballots."""
        from witan.files.evaluations import join_ballots
        from witan.files.imports import collect_sessions

        whole = collect_sessions(self._gather_imports())
        return whole if len(self.files) == 1 else map(join_ballots, whole)

    def _gather_imports(self) -> Iterator["SessionImport"]:
        with ExitStack() as stack:
            watch = _Watch(stack)
            for path in self.files:
                watch.file = path
                for one in self._sessions(path):
                    self.n_ballots += len(one.ballots)
                    for ballot in one.ballots:
                        self._note_scale(ballot)
                    watch.look(self.n_ballots)
                    yield one
        self._close()
        for scale in self.scales:
            say(f"note: {scale.sentence_with('--scale ')}")

    def _sessions(self, path: str) -> Iterable["SessionImport"]:
        if not self._is_file(path):
            return [self._read_stored(path)]
        from witan.files.imports import read_imports

        return read_imports(
            path,
            format=self.format,
            columns=self.columns,
            scale=self.scale,
            on_problem=self._note,
            on_note=say,
        )

    def _note_scale(self, ballot: "Ballot | BallotTable") -> None:
        if ballot.scale is not None and not ballot.scale.is_plain:
            self.scales[ballot.scale] = None

    @property
    def name(self) -> str:
        """Name the files."""
        return list_text(["standard input" if path == "-" else path for path in self.files])

    def match(self, settings: "Settings") -> None:
        """Report options with unknown, perhaps misspelt, names."""
        for option, kind, names, known in (
            ("--weight", "reviewer", settings.weights, self.reviewers),
            ("--reliability", "reviewer", settings.reliability or {}, self.reviewers),
            ("--answers", "session", settings.gates, self.sessions),
        ):
            for name in names:
                if name not in known:
                    message = clean(str(UnknownName(kind, name, known)))
                    echo(f"{option} has no effect: {message}", err=True)

    def _read_file(self, path: str) -> Iterable["Ballot | BallotTable"]:
        if not self._is_file(path):
            from witan.core.ballot import mark_simulated
            from witan.core.scale_recognition import rescale

            one = self._read_stored(path)
            ballots = [replace(b, question=b.question or one.question or None) for b in one.ballots]
            cast = ballots if self.scale is None else rescale(ballots, self.scale)
            return map(mark_simulated, cast) if one.simulated else cast
        from witan.files.ballots import ProblemReport, read_parts

        return read_parts(
            path,
            (self.format, self.columns or {}),
            partial(ProblemReport, on_problem=self._note, reports_doubts=True, on_note=say),
            (self.scale, None if self.rubric is None else self.rubric.scale),
        )

    def _is_file(self, name: str) -> bool:
        # The configuration is slow to load and is needed only for names of sessions.
        if name == "-" or Path(name).exists():
            return True
        from witan.surfaces.cli.stored_sessions import is_file

        return is_file(name, self.config, self.history)

    def _read_stored(self, name: str) -> "SessionImport":
        """Read a session of the history; say that people's ballots count here."""
        from witan.service.session_records import votes_beside
        from witan.surfaces.cli.stored_sessions import stored_session

        one = stored_session(name, self.config, self.history)
        if votes := votes_beside(one.ballots):
            votes_by_people = count_noun(len(votes), "ballot") + " by people"
            echo(
                f"{clean(one.session)}: {votes_by_people} counted as well; "
                "its own outcome is that of the models",
                err=True,
            )
        return one

    def _note(self, problem: "LineProblem") -> None:
        if (self.problems + self.odd).total() < PROBLEMS_SHOWN:
            say(word_problem(problem))
        if not problem.is_read:
            self.unread_lines.append(Unread(problem.line, word_problem(problem)))
        (self.odd if problem.is_read else self.problems)[problem.path] += 1

    def _close(self) -> None:
        """Report unreadable lines; stop without ballots, or under --strict."""
        unread, odd = (
            list_text([f"{count_noun(n, 'line')} of {clean(path)}" for path, n in problems.items()])
            for problems in (self.problems, self.odd)
        )
        if unread and self.strict:
            echo(f"{unread} could not be read; nothing is counted under --strict", err=True)
            raise click.exceptions.Exit(Status.FAILED)
        if unread:
            echo(
                f"{unread} could not be read; {count_noun(self.n_ballots, 'ballot')} counted",
                err=True,
            )
        if odd and self.strict:
            names = list_text([clean(path) for path in self.odd])
            echo(f"{names}: nothing is counted under --strict", err=True)
            raise click.exceptions.Exit(Status.FAILED)
        if (self.problems + self.odd).total() > PROBLEMS_SHOWN and odd:
            echo(f"{odd} had values that were dropped or changed", err=True)
        if not self.n_ballots:
            raise NothingToCount(f"there is no ballot to count in {self.name}")


class _Watch:
    """Shows that a long read is under way, on a terminal only."""

    def __init__(self, stack: ExitStack) -> None:
        self.stack = stack
        self.file = ""
        self.wanted = is_terminal(err=True)
        self.start = time.monotonic()
        self.status: Any = None

    def look(self, n_ballots: int) -> None:
        """Update the line, or show it after a delay."""
        if not self.wanted or time.monotonic() - self.start < PATIENCE_SECONDS:
            return
        if self.status is None:
            self.status = self.stack.enter_context(console().status("reading"))
        self.status.update(style_line(f"reading {self.file}: {count_noun(n_ballots, 'ballot')}"))


NOTES = """Several files are counted together; - is standard input. All formats of `witan import`
are recognised by content, compressed or not. An ID is a session of the history, as for `witan
show`; `last` is the latest.
"""

weights_option = section(
    COUNTING,
    click.option(
        "--weights",
        "weights_file",
        type=click.Path(exists=True, dir_okay=False),
        metavar="FILE.json",
        help="Read reviewers' weights from a JSON object, or from `witan calibrate --json`.",
    ),
)


def ballot_options(*, required: bool) -> Decorator[Any]:
    """Return the options of ballots, by default the history's unless required."""
    return stack_options(
        click.argument(
            "ballots",
            nargs=-1,
            required=required,
            metavar="FILE|ID..." if required else "[FILE|ID]...",
            type=click.Path(allow_dash=True),
        ),
        section(SECTION, strict_option),
        config_option,
        history_option,
    )


def take_ballots(declaration: type[Any], options: dict[str, Any]) -> Any:
    """Make parameters with ballots of files and sessions, by default the whole history's.

    Some weights may come from a file.
    """
    if "ballots" in options:
        files = options["ballots"]
        options["ballots"] = Body({**options, "files": files}) if files else None
    if path := options.pop("weights_file", None):
        options["weights"] = {**_weights_in(path), **(options["weights"] or {})}
    return take_parameters(declaration, options)


def _weights_in(path: str) -> dict[str, float]:
    try:
        document = json.loads(Path(path).read_text(encoding="utf-8-sig"))
    except RecursionError:
        raise click.BadParameter(f"{path} is nested too deeply", param_hint="--weights") from None
    except (OSError, ValueError) as error:
        raise click.BadParameter(f"{path} is not JSON: {error}", param_hint="--weights") from None
    if isinstance(document, dict) and isinstance(document.get("weights"), dict):
        document = document["weights"]
        if not document:
            raise click.BadParameter(
                f"{path} has no weights: calibrate against people who decided 50 pairs or more",
                param_hint="--weights",
            )
    if not isinstance(document, dict) or not all(
        isinstance(weight, int | float) and not isinstance(weight, bool)
        for weight in document.values()
    ):
        raise click.BadParameter(
            f'{path} must contain one object such as {{"reviewer": 2}}', param_hint="--weights"
        )
    return {name: float(weight) for name, weight in document.items()}
