"""Bytes from a path, a stream or standard input, unpacked where they are packed."""

import codecs
import gzip
import io
import shutil
import sys
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import chain
from pathlib import Path
from typing import IO, Any, BinaryIO, cast

from witan.errors import BallotFileError, MissingExtra
from witan.files.ballots.bounds import Bounds

__all__ = ["Source", "cannot", "open_source"]

_GZIP, _ZSTD, _PARQUET = b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"PAR1"
_SQLITE = b"SQLite format 3\0"
_ZIP = b"PK\x03\x04"
_UTF16 = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}
_CHUNK = 1 << 18

_ZSTD_PIECE = 512
"""Bytes that are unpacked at a time: four of them may stand for a block of 128 KiB."""


class Source:
    """An opened ballot file: its name, its bytes, and its lines as text."""

    def __init__(
        self, path: str, stem: str, stream: BinaryIO, bounds: Bounds | None = None
    ) -> None:
        self.path, self.stream, self.bounds = path, stream, bounds
        # Sessions may be called like the file, whose name need not be text.
        self.stem = stem.encode(errors="replace").decode()
        self.head: list[bytes] = []
        self.closing = ExitStack()
        """Closed with the file."""

    @property
    def is_empty(self) -> bool:
        """Whether there is no byte in it."""
        return not self._peek()

    @property
    def is_parquet(self) -> bool:
        """Whether the first bytes are those of a Parquet file."""
        return self._peek().startswith(_PARQUET)

    @property
    def is_sqlite(self) -> bool:
        """Whether the first bytes are those of a SQLite database, such as a history."""
        return self._peek().startswith(_SQLITE)

    @property
    def is_zip(self) -> bool:
        """Whether the first bytes are those of a ZIP archive."""
        return self._peek().startswith(_ZIP)

    def first_line(self) -> str | None:
        """The first line that is not blank, still to be read; None if there is none.

        A byte order mark is passed over.
        """
        return next(iter(self.glimpse(1)), None)

    def glimpse(self, size: int) -> list[str]:
        """The first lines that are not blank, at most `size`, all of them still to be read."""
        if not self.head:
            self._pass_mark()
        found = []
        for number, raw in enumerate(chain(self.head, self._kept()), 1):
            if line := self._decoded(raw, number).strip():
                found.append(line)
            if len(found) == size:
                break
        return found

    def seekable(self) -> BinaryIO:
        """A stream one can jump about in: a file as it is, anything else laid on disk first."""
        stream = self.stream
        is_file = isinstance(stream, io.BufferedReader) and isinstance(stream.raw, io.FileIO)
        if not (is_file and stream.seekable() and stream.tell() == 0):
            spooled = self.closing.enter_context(tempfile.TemporaryFile())  # noqa: SIM115
            shutil.copyfileobj(stream, spooled)
            spooled.seek(0)
            self.stream = cast("BinaryIO", spooled)
        return self.stream

    def _kept(self) -> Iterator[bytes]:
        """Lines below the head, which join it."""
        for raw in self._raw():
            self.head.append(raw)
            yield raw

    def _pass_mark(self) -> None:
        if self._peek().startswith(codecs.BOM_UTF8):
            self.stream.read(len(codecs.BOM_UTF8))

    def lines(self) -> Iterator[str]:
        """Every line with its end, decoded as UTF-8."""
        head, self.head = self.head, []
        number = 0
        try:
            for raw in chain(head, self._raw()):
                number += 1
                yield raw.decode()
        except UnicodeDecodeError:
            raise _not_utf8(self.path, number) from None

    def _decoded(self, raw: bytes, number: int) -> str:
        try:
            return raw.decode()
        except UnicodeDecodeError:
            raise _not_utf8(self.path, number) from None

    def _peek(self) -> bytes:
        try:
            return cast("io.BufferedReader", self.stream).peek(4)
        except _READ_ERRORS as error:
            raise cannot("be read", self.path, error) from error

    def _raw(self) -> Iterator[bytes]:
        try:
            for raw in self.stream:  # noqa: UP028  `yield from` closes the stream with this
                yield raw
        except _READ_ERRORS as error:
            raise cannot("be read", self.path, error) from error


def _not_utf8(path: str, line: int) -> BallotFileError:
    return BallotFileError(path, "is not UTF-8; save it as UTF-8", line)


@contextmanager
def open_source(path: str | Path | IO[Any], bounds: Bounds | None = None) -> Iterator[Source]:
    """Open a file, ``-`` for standard input, or a stream, and unpack gzip and Zstandard.

    Parameters
    ----------
    bounds
        How much of it is read; None: all of it.
    """
    with ExitStack() as stack:
        if isinstance(path, str | Path):
            name, stem = str(path), _stem(str(path))
            if name == "-":
                name, stem, stream = "<stdin>", "stdin", _binary(sys.stdin)
            else:
                stream = stack.enter_context(_opened(name))
        else:
            name = str(getattr(path, "name", "<stream>"))
            stem, stream = _stem(name), _binary(path)
        try:
            unpacked = _as_utf8(name, _unpacked(name, stream))
        except _READ_ERRORS as error:
            raise cannot("be read", name, error) from error
        if bounds is not None:
            unpacked = _buffered(bounds.within(_pieces(unpacked)))
        source = Source(name, stem, unpacked, bounds)
        with source.closing:
            yield source


def _stem(name: str) -> str:
    """The file's name without its folder and its suffixes for packing and kind."""
    path = Path(name)
    if path.suffix in (".gz", ".zst"):
        path = path.with_suffix("")
    return path.stem


def _opened(name: str) -> BinaryIO:
    try:
        return Path(name).open("rb")
    except OSError as error:
        raise cannot("be read", name, error) from error


def cannot(do: str, path: str, error: BaseException) -> BallotFileError:
    """What the operating system or an unpacker said, with a remedy."""
    if isinstance(error, FileNotFoundError):
        problem = "does not exist; check the path"
    elif isinstance(error, IsADirectoryError):
        problem = "is a folder; name a file in it"
    elif isinstance(error, PermissionError):
        problem = f"may not {do}; check its permissions"
    elif isinstance(error, EOFError):
        problem = "ends before its packing does; it is cut short, so fetch or pack it again"
    elif isinstance(error, gzip.BadGzipFile | zlib.error | _DamagedError):
        problem = f"is damaged ({error}); fetch or pack it again"
    else:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        problem = f"cannot {do}: {reason}"
    return BallotFileError(path, problem)


class _DamagedError(ValueError):
    """A Zstandard frame that cannot be unpacked."""


_READ_ERRORS = (OSError, EOFError, zlib.error, _DamagedError)


class _Chunks(io.RawIOBase):
    """A raw stream over an iterator of bytes."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self.chunks = chunks
        self.rest = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self.rest:
            following = next(self.chunks, None)
            if following is None:
                return 0
            self.rest = memoryview(following)
        size = min(len(buffer), len(self.rest))
        buffer[:size] = self.rest[:size]
        self.rest = self.rest[size:]
        return size


def _buffered(chunks: Iterator[bytes]) -> BinaryIO:
    return cast("BinaryIO", io.BufferedReader(_Chunks(chunks), _CHUNK))


def _binary(stream: IO[Any]) -> BinaryIO:
    """The bytes below a text stream; a text stream without any is encoded."""
    below = getattr(stream, "buffer", stream)
    if isinstance(below, io.TextIOBase):
        return _buffered(text.encode() for text in iter(lambda: below.read(_CHUNK), ""))
    return cast("BinaryIO", below)


def _unpacked(path: str, stream: BinaryIO) -> BinaryIO:
    """The stream itself, or what is packed in it, always able to peek."""
    start = stream.read(4)
    if stream.seekable():
        stream.seek(-len(start), io.SEEK_CUR)
        plain = stream if hasattr(stream, "peek") else _buffered(_pieces(stream))
    else:
        plain = _buffered(chain([start], _pieces(stream)))
    if start.startswith(_GZIP):
        return cast("BinaryIO", io.BufferedReader(gzip.GzipFile(fileobj=plain), _CHUNK))
    if start == _ZSTD:
        return _buffered(_unpack_zstd(path, plain))
    return plain


def _as_utf8(path: str, stream: BinaryIO) -> BinaryIO:
    """The same text as UTF-8, where a byte order mark says that it is UTF-16."""
    encoding = _UTF16.get(cast("io.BufferedReader", stream).peek(2)[:2])
    if encoding is None:
        return stream
    stream.read(2)
    return _buffered(_encoded(path, stream, encoding))


def _encoded(path: str, stream: BinaryIO, encoding: str) -> Iterator[bytes]:
    decoder = codecs.getincrementaldecoder(encoding)()
    try:
        for piece in chain(_pieces(stream), [b""]):
            yield decoder.decode(piece, final=not piece).encode()
    except UnicodeError:
        problem = "begins as UTF-16 and is none; save it as UTF-8"
        raise BallotFileError(path, problem) from None


def _pieces(stream: BinaryIO, size: int = _CHUNK) -> Iterator[bytes]:
    read = getattr(stream, "read1", stream.read)
    return iter(lambda: read(size), b"")


def _unpack_zstd(path: str, stream: BinaryIO) -> Iterator[bytes]:
    """Unpack frame after frame; the end of the file inside a frame is an error."""
    try:
        import zstandard
    except ImportError:
        raise MissingExtra(f"reading {path}, which is packed by Zstandard,", "zstd") from None
    frame = None
    for piece in _pieces(stream, _ZSTD_PIECE):
        data = piece
        while data:
            if frame is None or frame.eof:
                frame = zstandard.ZstdDecompressor().decompressobj()
            try:
                yield frame.decompress(data)
            except zstandard.ZstdError as error:
                raise _DamagedError(str(error)) from error
            data = frame.unused_data
    if frame is not None and not frame.eof:
        raise EOFError
