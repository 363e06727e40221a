"""Files as one body of ballots: what could not be read is said, what was read is counted."""

import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import click

from witan.errors import NothingToCount, UnknownName
from witan.surfaces.exits import Status
from witan.surfaces.terminal import console, echo, styled
from witan.surfaces.text import clean, counted, listed

if TYPE_CHECKING:
    from witan.adapters.ballots import Problem
    from witan.core.ballot import Ballot
    from witan.core.settings import Settings

__all__ = ["Body"]

PROBLEMS_SHOWN = 20
"""Lines with a problem beyond this many are only counted."""

PATIENCE_SECONDS = 1.0
"""Reading that is over within this time shows no progress."""

BETWEEN_LOOKS = 512
"""Ballots read between two looks at the clock."""


class Body:
    """The ballots of one or several files, to be read once; it keeps count of what it saw."""

    def __init__(
        self,
        files: Sequence[str],
        *,
        format: str | None = None,  # noqa: A002 - the option's name
        columns: Mapping[str, str] | None = None,
        strict: bool = False,
        done: str = "counted",
    ) -> None:
        self.files, self.format, self.columns, self.strict = files, format, columns, strict
        self.done = done
        self.n_ballots = 0
        self.problems: Counter[str] = Counter()
        self.odd: Counter[str] = Counter()
        self.sessions: dict[str, None] = {}
        self.reviewers: dict[str, None] = {}

    @classmethod
    def of(cls, options: Mapping[str, Any], done: str = "counted") -> "Body":
        """The body that the options ask for; `done` says what becomes of its ballots."""
        if list(options["files"]).count("-") > 1:
            raise click.UsageError("Standard input, -, can be read only once.")
        return cls(
            options["files"],
            format=options["format"],
            columns=options["columns"] or None,
            strict=options["strict"],
            done=done,
        )

    def __iter__(self) -> Iterator["Ballot"]:
        with ExitStack() as stack:
            watch = _Watch(stack)
            for path in self.files:
                watch.file = path
                for ballot in self._read(path):
                    self.n_ballots += 1
                    self.sessions[ballot.session] = None
                    self.reviewers[ballot.reviewer] = None
                    if self.n_ballots % BETWEEN_LOOKS == 0:
                        watch.look(self.n_ballots)
                    yield ballot
        self._close()

    def require(self, sessions: Sequence[str]) -> None:
        """Refuse a session that no ballot belongs to."""
        for name in sessions:
            if name not in self.sessions:
                raise UnknownName("session", name, self.sessions)

    def match(self, settings: "Settings") -> None:
        """Say which weights and answers belong to nobody: a misspelt name must not pass unseen."""
        for kind, given, known in (
            ("reviewer", settings.weights, self.reviewers),
            ("session", settings.gates, self.sessions),
        ):
            option = "--weight" if kind == "reviewer" else "--answers"
            for name in given:
                if name not in known:
                    told = clean(str(UnknownName(kind, name, known)))
                    echo(f"{option} has no effect: {told}", err=True)

    def _read(self, path: str) -> Iterator["Ballot"]:
        from witan.adapters.ballots import read_ballots

        return read_ballots(
            path,
            format=self.format,
            columns=self.columns,
            on_problem=self._note,
            doubting=True,
        )

    def _note(self, problem: "Problem") -> None:
        if (self.problems + self.odd).total() < PROBLEMS_SHOWN:
            echo(clean(str(problem)), err=True)
        (self.odd if problem.read else self.problems)[problem.path] += 1

    def _close(self) -> None:
        """Say what could not be read; stop if there is nothing to count, or not under --strict."""
        unread, odd = (
            listed([f"{counted(n, 'line')} of {clean(path)}" for path, n in problems.items()])
            for problems in (self.problems, self.odd)
        )
        if unread and self.strict:
            echo(f"{unread} could not be read; nothing is {self.done} under --strict", err=True)
            raise click.exceptions.Exit(Status.FAILED)
        if unread:
            echo(
                f"{unread} could not be read; {counted(self.n_ballots, 'ballot')} {self.done}",
                err=True,
            )
        if odd and self.strict:
            names = listed([clean(path) for path in self.odd])
            echo(f"{names}: nothing is {self.done} under --strict", err=True)
            raise click.exceptions.Exit(Status.FAILED)
        if (self.problems + self.odd).total() > PROBLEMS_SHOWN and odd:
            echo(f"{odd} came with what does not count", err=True)
        if not self.n_ballots:
            names = listed(["standard input" if path == "-" else path for path in self.files])
            raise NothingToCount(f"there is no ballot to count in {names}")


class _Watch:
    """Shows that a long read is under way, on a terminal only."""

    def __init__(self, stack: ExitStack) -> None:
        self.stack = stack
        self.file = ""
        self.wanted = sys.stderr.isatty()
        self.start = time.monotonic()
        self.status: Any = None

    def look(self, n_ballots: int) -> None:
        """Update the line, or open it once patience is over."""
        if not self.wanted or time.monotonic() - self.start < PATIENCE_SECONDS:
            return
        if self.status is None:
            self.status = self.stack.enter_context(console().status("reading"))
        self.status.update(styled(f"reading {self.file}: {counted(n_ballots, 'ballot')}"))
