"""Files into a history: each whole or not at all, and once."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from datetime import datetime
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING

from witan.core.ballot import BallotTable
from witan.core.scale import Scale
from witan.deliberation.record import ImportCounts, SessionImport
from witan.errors import WitanError
from witan.files.ballots.formats import content_of
from witan.files.ballots.opening import open_source
from witan.files.ballots.problems import LineProblem
from witan.files.evaluations import join_ballots
from witan.files.imports import (
    File,
    collect_sessions,
    digest_of,
    read_imports,
    rereadable_file,
)

if TYPE_CHECKING:
    from witan.history import History


READ_AHEAD = 1_000
"""Sessions of a file to read before the first is stored."""


@dataclass(frozen=True, slots=True)
class FileOptions:
    """Parameters of `read_imports`: the meaning of a file beside its content."""

    format: str | None = None
    columns: tuple[tuple[str, str], ...] = ()
    scale: Scale | None = None
    answers: tuple[str, ...] = ()
    questions: tuple[str, ...] = ()
    category: str | None = None
    at: datetime | None = None
    session_prefix: str = ""


@dataclass(frozen=True, slots=True)
class FileImport:
    """Result of the import of one file.

    Parameters
    ----------
    added
        What was added; None: refused, because some of it is unreadable, or it has no session.
    before
        Whether the same file was imported before, and not read again.
    scales
        Scales of its grades, unless clearly 1 to 10.
    """

    added: ImportCounts | None
    problems: tuple[LineProblem, ...] = ()
    before: bool = False
    scales: tuple[Scale, ...] = ()


def join_logs(paths: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Yield Inspect logs together, since each has one model; other files alone."""
    logs = [path for path in paths if len(paths) > 1 and _is_log(path)]
    if logs:
        yield tuple(logs)
    yield from ((path,) for path in paths if path not in logs)


def _is_log(path: str) -> bool:
    with suppress(WitanError), open_source(path) as source:
        content = content_of(source, None, {})
        return content is not None and content.format == "inspect"
    return False


def import_file(
    history: "History",
    path: str | Path | Sequence[str | Path],
    options: FileOptions,
    *,
    strict: bool = False,
    on_problem: Callable[[LineProblem], None] | None = None,
    on_note: Callable[[str], None] | None = None,
) -> FileImport:
    """Take a file, or ``-`` for standard input, into a history.

    `path`: files to import as one; their ballots of a session are joined.
    `strict`: whether an unreadable line refuses the whole file.
    `on_problem`: called at once with each unreadable line.
    `on_note`: called with notes on how the file is read.
    """
    paths = (path,) if isinstance(path, str | Path) else path
    source = "standard input" if str(paths[0]) == "-" else str(paths[0])
    with ExitStack() as stack:
        files = [stack.enter_context(rereadable_file(each)) for each in paths]
        digest = digest_of([*files, *options.answers, *options.questions], **_identify(options))
        before = history.find_import(digest)
        if before is not None:
            return FileImport(ImportCounts(0, before, 0), before=True)
        reading = _LineProblems(strict, on_problem)
        sessions = reading.watch_sessions(_read(files, options, reading, on_note))
        added = None
        with suppress(_Refusal):
            # Most formats read the whole file for its first session. Reading takes no lock, and an
            # unreadable file creates no history.
            first = [*islice(sessions, READ_AHEAD)]
            if strict and len(first) == READ_AHEAD and not history.database.exists:
                deque(sessions, maxlen=0)  # refuses the file at its end if a line is unreadable
                for file in files:
                    if not isinstance(file, str | Path):
                        file.seek(0)
                sessions = reading.watch_sessions(_read(files, options, reading, None))
                first = [*islice(sessions, READ_AHEAD)]
            if first:
                added = history.add(chain(first, sessions), source, digest)
        return FileImport(added, tuple(reading.problems), scales=tuple(reading.scales))


def _read(
    files: Sequence[File],
    options: FileOptions,
    reading: "_LineProblems",
    on_note: Callable[[str], None] | None,
) -> Iterator[SessionImport]:
    """Read the sessions of files, each session whole."""
    sessions = [
        read_imports(
            file,
            format=options.format,
            answers=options.answers,
            questions=options.questions,
            columns=dict(options.columns),
            scale=options.scale,
            category=options.category,
            at=options.at,
            session_prefix=options.session_prefix,
            on_problem=reading.note,
            on_note=on_note,
        )
        for file in files
    ]
    if len(sessions) == 1:
        return sessions[0]
    return map(join_ballots, collect_sessions(chain.from_iterable(sessions)))


def _identify(options: FileOptions) -> dict[str, object]:
    """Return the fields that distinguish imports of a content."""
    return {
        "kind": options.format,
        "columns": sorted(options.columns),
        "scale": None if options.scale is None else str(options.scale),
        "beside": (len(options.answers), len(options.questions))
        if options.answers or options.questions
        else None,
        "category": options.category,
        "at": options.at,
        "prefix": options.session_prefix,
    }


class _Refusal(Exception):
    """Ends an import without storing anything."""


class _LineProblems:
    """Collects unreadable lines of a file, or refuses the file."""

    def __init__(self, strict: bool, on_problem: Callable[[LineProblem], None] | None) -> None:
        self._strict, self._on_problem = strict, on_problem
        self.problems: list[LineProblem] = []
        self.scales: dict[Scale, None] = {}

    def note(self, problem: LineProblem) -> None:
        self.problems.append(problem)
        if self._on_problem is not None:
            self._on_problem(problem)

    def watch_sessions(self, sessions: Iterator[SessionImport]) -> Iterator[SessionImport]:
        """Yield the sessions of the file; at its end refuse unread lines."""
        for one in sessions:
            ballots = one.ballots
            parts = [ballots] if isinstance(ballots, BallotTable) else ballots
            for scale in [part.scale for part in parts]:
                if scale is not None and not scale.is_plain:
                    self.scales[scale] = None
            yield one
        if self._strict and self.problems:
            raise _Refusal
