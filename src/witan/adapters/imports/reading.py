"""Sessions from any file that holds some: unpack it, recognise its kind, and read it."""

import shlex
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import IO, Any, BinaryIO, cast

from witan.adapters.ballots.cells import csv_rows
from witan.adapters.ballots.columns import check_columns
from witan.adapters.ballots.jsonl import objects
from witan.adapters.ballots.opening import Source, open_source
from witan.adapters.ballots.problems import Problem, Report, Unreadable
from witan.adapters.ballots.records import session_name
from witan.adapters.history.importing import Imported
from witan.adapters.imports.answers import Beside
from witan.adapters.imports.ballots import read_ballot_pieces
from witan.adapters.imports.battles import Records, people_apart, read_battles
from witan.adapters.imports.conversations import read_conversations
from witan.adapters.imports.gathering import gathered
from witan.adapters.imports.kinds import check_kind, is_battle, kind_of_text
from witan.adapters.imports.lines import begins_an_array, is_spread, unfolded
from witan.adapters.imports.session_lines import read_session_lines
from witan.errors import BallotFileError, InvalidParameter, MissingExtra

__all__ = ["read_imports"]

File = str | Path | IO[Any]

_A_HISTORY = (
    "is a SQLite database, as a history is, and no file of sessions; to take over what a history "
    "holds: witan export --history {} | witan import -"
)


def read_imports(  # noqa: PLR0913 - all but the path by name
    path: File,
    *,
    kind: str | None = None,
    answers: Iterable[File] = (),
    questions: Iterable[File] = (),
    columns: Mapping[str, str] | None = None,
    category: str | None = None,
    at: datetime | None = None,
    session_prefix: str = "",
    on_problem: Callable[[Problem], None] | None = None,
) -> Iterator[Imported]:
    """Read the sessions of a file, a stream, or ``-`` for standard input.

    All that a file says of a session is one `Imported`, wherever in it it stands.

    Parameters
    ----------
    kind
        One of `KINDS`; None: it is recognised from the content.
    answers, questions
        Files beside it, as JSON Lines. Sessions that it does not hold are passed over in them.
    columns
        Which column holds a field, as `read_ballots` takes it.
    category, at
        Of sessions of which the file does not say it.
    session_prefix
        Stands before the name of every session but whole council sessions, which keep theirs.
    on_problem
        Gets each line that cannot be read, which is left out, and what is odd about others, which
        come in: a ballot that says nothing, a grade off the scale, a pair judged again. None: the
        first that cannot be read raises.

    Raises
    ------
    BallotFileError
        If the file cannot be read at all.
    UnknownName
        If there is no such kind.
    InvalidParameter
        If no name can begin with the prefix.
    """
    if kind is not None:
        check_kind(kind)
    check_columns(columns or {})
    _check_prefix(session_prefix)
    finish = _Finish(category, at, session_prefix)
    return _read(path, (kind, columns or {}), (answers, questions), finish, on_problem)


def _check_prefix(prefix: str) -> None:
    try:
        session_name("session_prefix", prefix)
    except Unreadable as flaw:
        raise InvalidParameter("session_prefix", prefix, "text that a name can hold") from flaw


def _read(
    path: File,
    reading: tuple[str | None, Mapping[str, str]],
    beside: tuple[Iterable[File], Iterable[File]],
    finish: "_Finish",
    on_problem: Callable[[Problem], None] | None,
) -> Iterator[Imported]:
    told = Beside()
    for answers in beside[0]:
        told.answers(answers, on_problem)
    for questions in beside[1]:
        told.questions(questions, on_problem)
    with ExitStack() as stack:
        source = stack.enter_context(open_source(path))
        # Sessions may be called like the file, whose name need not be text.
        source.stem = source.stem.encode(errors="replace").decode()
        report = Report(source.path, on_problem, doubting=True)
        if source.is_empty:
            return
        for one in _sessions(source, reading, report, stack):
            yield finish(told.joined(one))


class _Finish:
    """Fills in what the file does not say, and names the session."""

    def __init__(self, category: str | None, at: datetime | None, prefix: str) -> None:
        self.category, self.at, self.prefix = category, at, prefix

    def __call__(self, one: Imported) -> Imported:
        """The session as the caller wants it."""
        whole = replace(
            one,
            at=self.at if one.at is None else one.at,
            category=self.category if one.category is None else one.category,
        )
        if not self.prefix or one.session_record is not None:
            return whole
        session = self.prefix + one.session
        ballots = tuple(replace(ballot, session=session) for ballot in one.ballots)
        return replace(whole, session=session, ballots=ballots)


def _sessions(
    source: Source,
    reading: tuple[str | None, Mapping[str, str]],
    report: Report,
    stack: ExitStack,
) -> Iterator[Imported]:
    kind, columns = reading
    if source.is_sqlite:
        raise BallotFileError(source.path, _A_HISTORY.format(shlex.quote(source.path)))
    if kind == "parquet" or source.is_parquet:
        return _of_parquet(source, reading, report, stack)
    if begins_an_array(source):
        source = unfolded(source)
    first = source.first_line()
    if first is not None and is_spread(first, source):
        source = unfolded(source)
        first = source.first_line()
    if first is None:
        return iter(())
    kind = kind or kind_of_text(source.path, first, columns)
    if kind == "battles":
        rows = objects(source, report) if first.startswith("{") else _cells(source, report)
        return _battles(rows, source, report)
    if kind == "sessions":
        return read_session_lines(source, report)
    if kind == "conversations":
        return read_conversations(source, report)
    return gathered(read_ballot_pieces(kind, source, columns, report))


def _of_parquet(
    source: Source,
    reading: tuple[str | None, Mapping[str, str]],
    report: Report,
    stack: ExitStack,
) -> Iterator[Imported]:
    source.stream = _seekable(source.stream, stack)
    rows = None if reading[0] == "parquet" else _parquet_battles(source)
    if rows is not None:
        return _battles(rows, source, report)
    return gathered(read_ballot_pieces("parquet", source, reading[1], report))


def _battles(rows: Records, source: Source, report: Report) -> Iterator[Imported]:
    return map(people_apart, gathered(read_battles(rows, source.stem, report)))


def _cells(source: Source, report: Report) -> Records:
    """Rows of a CSV file by column; an empty cell says nothing."""
    rows = csv_rows(source, report)
    _, header = next(rows, (0, []))
    names = [name.strip() for name in header]
    for line, row in rows:
        given = zip(names, row, strict=True)
        yield line, {name: cell for name, cell in given if cell.strip()}


def _parquet_battles(source: Source) -> Records | None:
    """The rows of a Parquet file, if they are battles; else it is left as it was."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise MissingExtra(f"reading {source.path}, which is Parquet,", "lake") from None
    try:
        table = pyarrow.parquet.ParquetFile(source.stream)
    except (pyarrow.ArrowException, OSError) as error:
        raise BallotFileError(source.path, f"is no readable Parquet file: {error}") from error
    if not is_battle(set(table.schema_arrow.names)):
        source.stream.seek(0)
        return None
    rows = (row for batch in table.iter_batches(batch_size=1000) for row in batch.to_pylist())
    return enumerate(rows, start=1)


def _seekable(stream: BinaryIO, stack: ExitStack) -> BinaryIO:
    """A stream that can be read twice; what is packed or piped is laid on disk first."""
    if stream.seekable() and stream.tell() == 0:
        return stream
    spooled = stack.enter_context(tempfile.TemporaryFile())  # noqa: SIM115  the caller closes it
    shutil.copyfileobj(stream, spooled)
    spooled.seek(0)
    return cast("BinaryIO", spooled)
