"""``witan import``: sessions from files into the history."""

import sys
from collections import Counter
from contextlib import nullcontext
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from witan.errors import (
    BallotFileError,
    HistoryError,
    MissingExtra,
    NothingToCount,
    UnknownName,
    WitanError,
)
from witan.service.ballots import SECTION, BallotFormat
from witan.service.parameters import MOMENT
from witan.service.text import clean, count_noun, list_text
from witan.surfaces.cli.commands import command, parameter_options, word_problem, write_remedy
from witan.surfaces.cli.options import (
    PROBLEMS_SHOWN,
    ParsedType,
    Status,
    config_option,
    history_option,
    json_option,
    section,
    status_of,
)
from witan.surfaces.terminal import console, echo, say, style_line

if TYPE_CHECKING:
    from witan.core.scale import Scale
    from witan.files.ballots import LineProblem
    from witan.history import History
    from witan.service.operations.imports import FileImport, FileOptions


LARGE = 2_000_000
"""Bytes from which a file takes long enough for a terminal to show that it is being read."""

beside_type = click.Path(exists=True, dir_okay=False)


@command(
    "import",
    "import votes.csv --category coding",
    "import battles.jsonl.gz conversations/",
    "import ballots.jsonl --answers answers.jsonl --questions questions.jsonl",
    "witan export --history old.sqlite | witan import -",
)
@click.argument(
    "files", nargs=-1, required=True, metavar="FILE...", type=click.Path(allow_dash=True)
)
@section(
    SECTION,
    parameter_options(BallotFormat),
    click.option(
        "--answers",
        multiple=True,
        type=beside_type,
        metavar="FILE.jsonl",
        help="File with answer texts (session, candidate, text); repeatable.",
    ),
    click.option(
        "--questions",
        multiple=True,
        type=beside_type,
        metavar="FILE.jsonl",
        help="File with question texts (session, text, category); repeatable.",
    ),
    click.option("--strict", is_flag=True, help="Reject a file with unreadable lines; exit 1."),
)
@section(
    "Sessions",
    click.option("--category", metavar="NAME", help="Category for sessions without one."),
    click.option(
        "--at",
        type=ParsedType(MOMENT),
        metavar="TIME",
        help="Time for sessions without one; by default the time of the import.",
    ),
    click.option("--prefix", default="", metavar="TEXT", help="Prefix for session names."),
)
@config_option
@history_option
@section("Output", json_option)
def import_command(files: tuple[str, ...], config: Path | None, **options: Any) -> None:
    """Take the sessions of FILE... into the history; - is standard input.

    Ballots in every format, battles, saved conversations and whole sessions are recognised by their
    content, packed or not; a folder stands for the .json and .eval files in it. Of each file all
    comes in or nothing, and the same file again changes nothing.
    """
    if files.count("-") > 1:
        raise click.UsageError("standard input, -, can be read only once")
    from witan.service.history_access import forget_expired, load_history_config
    from witan.service.operations.imports import FileOptions
    from witan.surfaces.cli.stored_sessions import open_history

    at: datetime | None = options["at"]
    meaning = FileOptions(
        format=options["format"],
        columns=tuple((options["columns"] or {}).items()),
        scale=options["scale"],
        answers=options["answers"],
        questions=options["questions"],
        category=options["category"],
        at=at,
        session_prefix=options["prefix"],
    )
    with open_history(load_history_config(config, options["history"])) as history:
        importer = _Importer(history, meaning, strict=options["strict"], quiet=options["as_json"])
        try:
            for file in files:
                importer.take(file)
        except KeyboardInterrupt:
            echo(importer.broken_off(), err=True)
            raise click.exceptions.Exit(Status.INTERRUPTED) from None
        forget_expired(history)
        location = history.url
    if options["as_json"]:
        from witan.service.json_output import to_json

        echo(to_json({"history": location, "files": [tally.plain() for tally in importer.done]}))
    importer.close()


@dataclass(slots=True)
class _Tally:
    """Counts of a file, or of the files of a folder."""

    name: str
    files: int = 0
    sessions: int = 0
    already: int = 0
    ballots: int = 0
    by_people: int = 0
    before: int = 0
    refused: int = 0
    refusals: list[BallotFileError] = field(default_factory=list)
    problems: list["LineProblem"] = field(default_factory=list)
    scales: dict["Scale", None] = field(default_factory=dict)

    def add(self, result: "FileImport") -> None:
        self.files += 1
        self.before += result.before
        self.problems += result.problems
        self.scales |= dict.fromkeys(result.scales)
        if result.added is None:
            self.refused += 1
            return
        self.sessions += result.added.sessions
        self.already += result.added.already
        self.ballots += result.added.ballots
        self.by_people += result.added.by_people

    def sentence(self) -> str:
        """Say what is new, and what is not."""
        if not self.sessions + self.already + self.ballots:
            return f"{self.name}: nothing imported"
        if not self.sessions + self.ballots:
            return f"{self.name}: nothing new; {self._count_known()}"
        parts = [count_noun(self.sessions, "session"), _ballots(self.ballots, self.by_people)]
        if self.already:
            parts.append(f"{count_noun(self.already, 'session')} already stored")
        return f"{self.name}: {' · '.join(parts)}"

    def _count_known(self) -> str:
        n = count_noun(self.already, "session")
        if self.before == self.files:
            return f"imported before, with {n}"
        return f"{n} already stored"

    def plain(self) -> dict[str, Any]:
        """Return the same for a program."""
        problems: list[BallotFileError | LineProblem] = [*self.refusals, *self.problems]
        return {
            "file": self.name,
            "sessions": self.sessions,
            "already": self.already,
            "ballots_by_models": self.ballots - self.by_people,
            "ballots_by_people": self.by_people,
            "refused": self.refused,
            "scales": [scale.sentence_with("--scale ") for scale in self.scales],
            "problems": [
                {
                    "file": each.path,
                    "line": each.line,
                    "field": getattr(each, "field", None),
                    "problem": "; ".join(filter(None, (each.problem, write_remedy(each.remedy)))),
                }
                for each in problems
            ],
        }


def _ballots(n: int, by_people: int) -> str:
    if by_people == n and n:
        return f"{count_noun(n, 'ballot')} by people"
    return count_noun(n, "ballot") + (f", {by_people:,} by people" if by_people else "")


class _Importer:
    """Takes in files one after another, and tells of each."""

    def __init__(
        self, history: "History", options: "FileOptions", *, strict: bool, quiet: bool
    ) -> None:
        self.history, self.options, self.strict, self.quiet = history, options, strict, quiet
        self.done: list[_Tally] = []
        self.status = Status.ANSWERED
        self._n_shown = 0
        self._at = ""
        self._n_files = 0

    def take(self, name: str) -> None:
        """Import a file or folder; continue after an unreadable one."""
        from witan.files.imports import import_files
        from witan.service.operations.imports import join_logs

        tally = _Tally("standard input" if name == "-" else name)
        self._at = tally.name
        found = self._call_and_report(tally, lambda: import_files(name)) or ()
        for paths in join_logs(found):
            self._take(tally, paths)
        self.done.append(tally)
        if tally.files and not self.quiet:
            echo(clean(tally.sentence()))
        for scale in () if self.quiet else tally.scales:
            say(f"{tally.name}: {scale.sentence_with('--scale ')}")
        self._say_unread(tally)

    def broken_off(self) -> str:
        """Say which files came in before the interruption."""
        words = ["interrupted"]
        if self._n_files:
            words.append(f"{count_noun(self._n_files, 'file')} imported")
        if self._at:
            words.append(f"{clean(self._at)} is imported completely or not at all")
        return "; ".join([*words, "run the same command again for the rest"])

    def _take(self, tally: _Tally, paths: tuple[str, ...]) -> None:
        from witan.service.operations.imports import import_file

        self._at = tally.name if len(paths) > 1 or paths[0] == "-" else paths[0]
        with _spinner(paths[0]):
            report = self._call_and_report(
                tally,
                lambda: import_file(
                    self.history,
                    paths,
                    self.options,
                    strict=self.strict,
                    on_problem=self._note,
                    on_note=say,
                ),
            )
        if report is not None:
            tally.add(report)
        self._at = ""
        self._n_files += len(paths)

    def _call_and_report(self, tally: _Tally, call: Any) -> Any:
        """Call, and report file errors; history errors end the import."""
        try:
            return call()
        except (HistoryError, MissingExtra, UnknownName):
            raise
        except WitanError as error:
            echo(f"witan: {clean(word_problem(error))}", err=True)
            tally.refused += 1
            if isinstance(error, BallotFileError):
                tally.refusals.append(error)
            self.status = status_of(error)
            return None

    def _note(self, problem: "LineProblem") -> None:
        self._n_shown += 1
        if self._n_shown <= PROBLEMS_SHOWN:
            say(word_problem(problem))

    def _say_unread(self, tally: _Tally) -> None:
        """Report the number of unreadable lines and the consequence."""
        came = tally.sessions + tally.already + tally.ballots
        others = "; the others are imported" if came else ", and there are no others"
        nothing_text = "nothing is imported under --strict"
        outcome = f"; {nothing_text}" if self.strict else others
        beside = {*self.options.answers, *self.options.questions}
        # Those of a folder are counted together; a file beside them is another.
        left_out = [problem for problem in tally.problems if not problem.is_read]
        files = Counter(p.path if p.path in beside else tally.name for p in left_out)
        for name, n in files.items():
            unread_text = f"{count_noun(n, 'line')} of {clean(name)} could not be read"
            echo(f"{unread_text}{outcome}", err=True)
        n_odd = len(tally.problems) - len(left_out)
        if n_odd and self._n_shown > PROBLEMS_SHOWN and not self.strict:
            of = f"{count_noun(n_odd, 'line')} of {clean(tally.name)}"
            echo(f"{of} came with values that were ignored", err=True)
        if tally.problems and self.strict:
            if not files:
                echo(f"{clean(tally.name)}: {nothing_text}", err=True)
            self.status = self.status or Status.FAILED

    def close(self) -> None:
        """Report the sum of all files; set the exit status."""
        if len(self.done) > 1 and not self.quiet:
            counted = ("files", "before", "sessions", "already", "ballots", "by_people")
            sums = {name: sum(getattr(tally, name) for tally in self.done) for name in counted}
            echo(_Tally("in all", **sums).sentence())
        if self.status:
            raise click.exceptions.Exit(self.status)
        if not any(tally.sessions + tally.already for tally in self.done):
            names = [tally.name for tally in self.done]
            raise NothingToCount(f"there is no session in {list_text(names)}")


def _spinner(path: str) -> Any:
    """Something that moves while a large file is read, on a terminal."""
    if not sys.stderr.isatty() or not _is_large(path):
        return nullcontext()
    return console().status(style_line(f"importing {Path(path).name}"))


def _is_large(path: str) -> bool:
    try:
        return path == "-" or Path(path).stat().st_size >= LARGE
    except OSError:
        return False
