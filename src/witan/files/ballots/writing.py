"""Writing of ballot files, atomically."""

import errno
import gzip
import io
import os
import secrets
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from json import dumps, loads
from pathlib import Path
from typing import IO, cast

from witan.core.ballot import Ballot
from witan.errors import BallotFileError, InvalidParameter, MissingExtra
from witan.files.ballots.columns import write_rows
from witan.files.ballots.formats import check_format
from witan.files.ballots.opening import unreadable_file
from witan.files.ballots.records import write_jsonl, write_parquet
from witan.files.ballots.tables import LongRows

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
        yield cast("IO[bytes]", getattr(sys.stdout, "buffer", sys.stdout))
        sys.stdout.flush()
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
                raise  # it comes from the source of the ballots, not from this file
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
