"""Reading of ballot files, and writing them atomically."""

import errno
import gzip
import io
import os
import secrets
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import chain
from json import dumps, loads
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

from witan.core.ballot import Ballot, BallotTable, mark_simulated
from witan.core.scale import Scale
from witan.errors import BallotFileError, InvalidParameter, MissingExtra
from witan.files.ballots.columns import check_columns, write_rows
from witan.files.ballots.formats import FORMATS, PLAIN, check_format, content_of, scaled_ballots
from witan.files.ballots.opening import Bounds, open_source, unreadable_file
from witan.files.ballots.problems import LineProblem, ProblemReport
from witan.files.ballots.records import write_jsonl, write_parquet
from witan.files.ballots.tables import LongRows

if TYPE_CHECKING:
    from witan.core.rubric import Rubric

__all__ = [
    "FORMATS",
    "Bounds",
    "LineProblem",
    "ProblemReport",
    "read_ballots",
    "read_parts",
    "write_ballots",
]


def read_ballots(  # noqa: PLR0913 - all but the path by name
    path: str | Path | IO[Any],
    *,
    format: str | None = None,  # noqa: A002  the word users know from the command line
    columns: Mapping[str, str] | None = None,
    on_problem: Callable[[LineProblem], None] | None = None,
    reports_doubts: bool = False,
    bounds: Bounds | None = None,
    on_note: Callable[[str], None] | None = None,
    scale: Scale | str | None = None,
    rubric: "Rubric | None" = None,
) -> Iterator[Ballot]:
    """Stream the ballots of a file, a stream, or ``-`` (standard input).

    Plain, gzip or Zstandard, in one of `FORMATS`, each detected from the content. An unreadable
    line is passed to `on_problem` and skipped; without `on_problem` the first one raises
    `BallotFileError`, as an unreadable file always does. With `reports_doubts`, `on_problem` also
    gets doubts about lines that were read. `columns` gives the column of a field, such as
    ``{"session": "task", "reviewer": "judge+version"}``. Content beyond `bounds` raises `TooLarge`;
    without them a file may have any size. `on_note` gets a note on how a file is read, if its
    columns do not make that obvious.

    `scale`, such as ``"0-1"``, is the scale of all grades. By default it is the scale of the
    ballot, else of the `rubric`, else the one that fits all grades of the file; if two fit,
    `BallotFileError` names both.
    """
    if format is not None:
        check_format(format)
    check_columns(columns or {})
    make_report = partial(
        ProblemReport, on_problem=on_problem, reports_doubts=reports_doubts, on_note=on_note
    )
    stated_scale = Scale.parse(scale) if isinstance(scale, str) else scale
    scales = stated_scale, None if rubric is None else rubric.scale
    parts = read_parts(path, (format, columns or {}), make_report, scales, bounds)
    tables = ((part,) if isinstance(part, Ballot) else part for part in parts)
    return chain.from_iterable(tables)


def read_parts(
    path: str | Path | IO[Any],
    reading: tuple[str | None, Mapping[str, str]],
    make_report: Callable[[str], ProblemReport],
    scales: tuple[Scale | None, Scale | None],
    bounds: Bounds | None = None,
) -> Iterator[Ballot | BallotTable]:
    """Stream ballots like `read_ballots`, or one table if a file only grades.

    `scales`: scale of all grades, and default scale of ballots without one.
    """
    if reading[0] is not None:
        check_format(reading[0])
    check_columns(reading[1])
    with open_source(path, bounds) as source:
        report = make_report(source.path)
        content = content_of(source, *reading)
        if content is None:
            return
        if content.format in PLAIN:
            yield from scaled_ballots(content, reading[1], report, scales)
            return
        # Importing sessions is slow, so only files with sessions do it.
        from witan.files.imports import ballots_with_question, read_sessions

        for one in read_sessions(content, reading[1], report, scales=scales, by_session=False):
            ballots = ballots_with_question(one)
            yield from map(mark_simulated, ballots) if one.simulated else ballots


_PACKINGS = (".gz", ".zst")
_NO_ROOM = (errno.ENOSPC, errno.EFBIG, errno.EIO)
_SUFFIXES = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".csv": "csv",
    ".parquet": "parquet",
}


def write_ballots(
    ballots: Iterable[Ballot],
    path: str | Path,
    *,
    format: str | None = None,  # noqa: A002  the word users know from the command line
) -> int:
    """Write ballots to a file or ``-`` (standard output); return their number.

    By default the file's suffix decides the `format` (jsonl, csv or parquet). `.gz` and `.zst` are
    compressed. The file is replaced atomically: if the format cannot represent a ballot, an error
    is raised and the existing file stays.
    """
    name = str(path)
    bare = Path(name).with_suffix("") if Path(name).suffix in _PACKINGS else Path(name)
    kind = _kind(name, bare.suffix, format)
    try:
        with whole_file(name) as raw, pack(raw, Path(name).suffix) as out:
            source = _check_zones(ballots, name)
            if kind == "jsonl":
                return write_jsonl(source, out)
            return (
                write_parquet(source, out) if kind == "parquet" else _write_long(source, out, name)
            )
    except UnicodeEncodeError as error:
        raise BallotFileError(
            name, f"cannot contain {error.object!r}, which is not text"
        ) from error


def _kind(name: str, suffix: str, stated_format: str | None) -> str:
    if stated_format is not None:
        check_format(stated_format)
    kind = stated_format or ("jsonl" if name == "-" else _SUFFIXES.get(suffix))
    if kind is None:
        suffixes = ", ".join(_SUFFIXES)
        raise BallotFileError(name, f"has no known suffix; use {suffixes}, or give the format")
    if kind not in _SUFFIXES.values():
        expected = ", ".join(dict.fromkeys(_SUFFIXES.values()))
        raise InvalidParameter("the format to write", kind, expected)
    return kind


def _check_zones(ballots: Iterable[Ballot], name: str) -> Iterator[Ballot]:
    for ballot in ballots:
        if ballot.at is not None and ballot.at.tzinfo is None:
            raise BallotFileError(
                name, f"cannot contain the ballot of {ballot.reviewer}: its time has no zone"
            )
        yield ballot


def _write_long(ballots: Iterable[Ballot], out: IO[bytes], name: str) -> int:
    """Write rows to a temporary file first: the last ballot decides columns."""
    table = LongRows(name)
    n_written = 0
    with tempfile.TemporaryFile("w+", encoding="utf-8") as temporary_file:
        for ballot in ballots:
            temporary_file.writelines(dumps(row) + "\n" for row in table.rows(ballot))
            n_written += 1
        temporary_file.seek(0)
        with _text(out) as text:
            write_rows((loads(line) for line in temporary_file), table.column_order(), text)
    return n_written


@contextmanager
def _text(out: IO[bytes]) -> Iterator[IO[str]]:
    """Yield a text stream to `out`, which stays open."""
    text = io.TextIOWrapper(cast("io.BufferedWriter", out), encoding="utf-8", newline="")
    try:
        yield text
        text.flush()
    finally:
        text.detach()


@contextmanager
def pack(raw: IO[bytes], suffix: str) -> Iterator[IO[bytes]]:
    """Compress output as the file's suffix requires."""
    if suffix == ".gz":
        with gzip.GzipFile(filename="", fileobj=raw, mode="wb", mtime=0) as out:
            yield cast("IO[bytes]", out)
    elif suffix == ".zst":
        try:
            import zstandard
        except ImportError:
            raise MissingExtra("writing a file compressed by Zstandard", "zstd") from None
        with zstandard.ZstdCompressor().stream_writer(raw, closefd=False) as out:
            yield out
    else:
        yield raw


@contextmanager
def whole_file(name: str) -> Iterator[IO[bytes]]:
    """Yield a stream to a file, replaced when the block ends."""
    if name == "-":
        stdout = sys.stdout  # noqa: TID251 - the output is a file
        yield cast("IO[bytes]", getattr(stdout, "buffer", stdout))
        stdout.flush()
        return
    target = Path(name).resolve()
    with ExitStack() as stack:
        try:
            if target.is_dir():
                raise IsADirectoryError
            if target.exists() and not target.is_file():
                yield stack.enter_context(target.open("wb"))  # a device or a pipe
                return
            part = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
            out = stack.enter_context(part.open("xb"))
        except OSError as error:
            raise unreadable_file("be written", name, error) from error
        try:
            yield out
            _finish(out, part, target)
        except OSError as error:
            if error.errno not in _NO_ROOM:
                raise  # the error is from the source of the ballots, not from this file
            raise unreadable_file("be written", name, error) from error
        finally:
            part.unlink(missing_ok=True)


def _finish(out: IO[bytes], part: Path, target: Path) -> None:
    out.flush()
    os.fsync(out.fileno())
    out.close()
    if target.exists():
        part.chmod(target.stat().st_mode & 0o7777)
    part.replace(target)
