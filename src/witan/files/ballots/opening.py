"""Opening of ballot files: plain, compressed, or in archives, within bounds."""

import codecs
import gzip
import io
import json
import shutil
import struct
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import IO, Any, BinaryIO, cast

from witan.errors import BallotFileError, MissingExtra, TooLarge

REMEDY = "count a file of this size with witan tally"


@dataclass(frozen=True, slots=True)
class Bounds:
    """Limits on ballots, enforced while unpacking.

    `n_bytes`, `n_lines`, `line_bytes`: maximum number of unpacked bytes, of lines, and of bytes per
    line.
    `check_wanted`: called for every chunk; an exception ends the reading.
    """

    n_bytes: int
    n_lines: int
    line_bytes: int
    check_wanted: Callable[[], None]

    def limit_pieces(self, pieces: Iterator[bytes]) -> Iterator[bytes]:
        """Yield chunks up to the limits."""
        length = lines = line = 0
        for piece in pieces:
            self.check_wanted()
            length += len(piece)
            lines += piece.count(b"\n")
            first = piece.find(b"\n")
            longest = line + (len(piece) if first < 0 else first)
            line = longest if first < 0 else len(piece) - piece.rfind(b"\n") - 1
            self._check("bytes of unpacked ballots", length, self.n_bytes)
            self._check("lines of ballots", lines, self.n_lines)
            self._check("bytes of one line", longest, self.line_bytes)
            yield piece

    def check_table(self, n_rows: int, n_bytes: int) -> None:
        """Refuse a table whose metadata exceed the limits."""
        self._check("rows of ballots", n_rows, self.n_lines)
        self._check("bytes of unpacked ballots", n_bytes, self.n_bytes)

    def _check(self, quantity: str, size: int, most: int) -> None:
        if size > most:
            # The total size is unknown without unpacking the rest.
            raise TooLarge(quantity, most + 1, most, REMEDY)


_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
PARQUET, SQLITE, ZIP = b"PAR1", b"SQLite format 3\0", b"PK\x03\x04"
_UTF16 = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}
_CHUNK = 1 << 18

_ZSTD_PIECE = 512
"""Compressed bytes per step: four of them can expand to a block of 128 KiB."""


class OpenedFile:
    """An open ballot file: name, bytes, and lines of text."""

    def __init__(
        self, path: str, stem: str, stream: BinaryIO, bounds: Bounds | None = None
    ) -> None:
        self.path, self.stream, self.bounds = path, stream, bounds
        # Sessions may be named after the file, whose name may not be valid text.
        self.stem = stem.encode(errors="replace").decode()
        self.head: list[bytes] = []
        self.closing = ExitStack()
        """Resources to close with the file."""

    @property
    def is_empty(self) -> bool:
        """True if it has no bytes."""
        return not self._peek()

    def begins_with(self, mark: bytes) -> bool:
        """True if its first bytes are the mark of a format."""
        return self._peek().startswith(mark)

    def first_line(self) -> str | None:
        """Peek at the first non-blank line, if any.

        A byte order mark is skipped.
        """
        return next(iter(self.peek_lines(1)), None)

    def peek_lines(self, size: int) -> list[str]:
        """Peek at the first non-blank lines, at most `size`."""
        if not self.head and self._peek().startswith(codecs.BOM_UTF8):
            self.stream.read(len(codecs.BOM_UTF8))
        lines = []
        for number, raw in enumerate(chain(self.head, self._further_lines()), 1):
            if line := self._decode(raw, number).strip():
                lines.append(line)
            if len(lines) == size:
                break
        return lines

    def seekable(self) -> BinaryIO:
        """Return a seekable stream: the file, or a copy on disk."""
        stream = self.stream
        is_file = isinstance(stream, io.BufferedReader) and isinstance(stream.raw, io.FileIO)
        if not (is_file and stream.seekable() and stream.tell() == 0):
            buffer_file = self.closing.enter_context(tempfile.TemporaryFile())  # noqa: SIM115
            shutil.copyfileobj(stream, buffer_file)
            buffer_file.seek(0)
            self.stream = cast("BinaryIO", buffer_file)
        return self.stream

    def _further_lines(self) -> Iterator[bytes]:
        for raw in self._raw():
            self.head.append(raw)
            yield raw

    def lines(self) -> Iterator[str]:
        """Yield every line with its end, decoded as UTF-8."""
        head, self.head = self.head, []
        for number, raw in enumerate(chain(head, self._raw()), 1):
            yield self._decode(raw, number)

    def read_lines(self, max_bytes: int) -> list[bytes] | None:
        """Read all lines; None, reading nothing, if they exceed `max_bytes`."""
        lines, size = [], 0
        for raw in chain(self.head, self._raw()):
            lines.append(raw)
            size += len(raw)
            if size > max_bytes:
                self.head = lines
                return None
        self.head = []
        return lines

    def _decode(self, raw: bytes, number: int) -> str:
        try:
            return raw.decode()
        except UnicodeDecodeError:
            raise BallotFileError(self.path, "is not UTF-8; save it as UTF-8", number) from None

    def _peek(self) -> bytes:
        try:
            return cast("io.BufferedReader", self.stream).peek(4)
        except _READ_ERRORS as error:
            raise unreadable_file("be read", self.path, error) from error

    def _raw(self) -> Iterator[bytes]:
        try:
            for raw in self.stream:  # noqa: UP028  `yield from` closes the stream with this
                yield raw
        except _READ_ERRORS as error:
            raise unreadable_file("be read", self.path, error) from error


@contextmanager
def open_source(path: str | Path | IO[Any], bounds: Bounds | None = None) -> Iterator[OpenedFile]:
    """Open a file, ``-`` or a stream; unpack gzip and Zstandard.

    `bounds`: limits on its content; by default none.
    """
    with ExitStack() as stack:
        name = str(path) if isinstance(path, str | Path) else str(getattr(path, "name", "<stream>"))
        stem = _stem(name)
        try:
            if not isinstance(path, str | Path):
                stream = _binary(path)
            elif name == "-":
                name, stem, stream = "standard input", "stdin", _binary(sys.stdin)
            else:
                stream = stack.enter_context(Path(name).open("rb"))
            unpacked_stream = _to_utf8(name, _unpack(name, stream))
        except _READ_ERRORS as error:
            raise unreadable_file("be read", name, error) from error
        if bounds is not None:
            unpacked_stream = _buffer(bounds.limit_pieces(_pieces(unpacked_stream)))
        source = OpenedFile(name, stem, unpacked_stream, bounds)
        with source.closing:
            yield source


def _stem(name: str) -> str:
    """Return the file name without folder and suffixes."""
    path = Path(name)
    if path.suffix in (".gz", ".zst"):
        path = path.with_suffix("")
    return path.stem


def unreadable_file(do: str, path: str, error: BaseException) -> BallotFileError:
    """Describe an operating system's or unpacker's error, with a remedy."""
    if isinstance(error, FileNotFoundError):
        problem = "does not exist; check the path"
    elif isinstance(error, IsADirectoryError):
        problem = "is a folder; name a file in it"
    elif isinstance(error, PermissionError):
        problem = f"cannot {do}: permission denied; check its permissions"
    elif isinstance(error, EOFError):
        problem = "is truncated; download or compress it again"
    elif isinstance(error, gzip.BadGzipFile | zlib.error | _DamagedError):
        problem = f"is damaged ({error}); download or compress it again"
    else:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        problem = f"cannot {do}: {reason}"
    return BallotFileError(path, problem)


class _DamagedError(ValueError):
    """A damaged Zstandard frame."""


_READ_ERRORS = (OSError, EOFError, zlib.error, _DamagedError)


class _Chunks(io.RawIOBase):
    """A raw stream over an iterator of bytes."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self.chunks = chunks
        self.leftover = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self.leftover:
            following = next(self.chunks, None)
            if following is None:
                return 0
            self.leftover = memoryview(following)
        size = min(len(buffer), len(self.leftover))
        buffer[:size] = self.leftover[:size]
        self.leftover = self.leftover[size:]
        return size


def _buffer(chunks: Iterator[bytes]) -> BinaryIO:
    return cast("BinaryIO", io.BufferedReader(_Chunks(chunks), _CHUNK))


def _binary(stream: IO[Any]) -> BinaryIO:
    below = getattr(stream, "buffer", stream)
    if isinstance(below, io.TextIOBase):
        return _buffer(text.encode() for text in iter(lambda: below.read(_CHUNK), ""))
    return cast("BinaryIO", below)


def _unpack(path: str, stream: BinaryIO) -> BinaryIO:
    """Return the stream or its unpacked content, always with `peek`."""
    start = stream.read(4)
    if stream.seekable():
        stream.seek(-len(start), io.SEEK_CUR)
        plain = stream if hasattr(stream, "peek") else _buffer(_pieces(stream))
    else:
        plain = _buffer(chain([start], _pieces(stream)))
    if start.startswith(_GZIP):
        return cast("BinaryIO", io.BufferedReader(gzip.GzipFile(fileobj=plain), _CHUNK))
    if start == _ZSTD:
        return _buffer(_unpack_zstd(path, plain))
    return plain


def _to_utf8(path: str, stream: BinaryIO) -> BinaryIO:
    encoding = _UTF16.get(cast("io.BufferedReader", stream).peek(2)[:2])
    if encoding is None:
        return stream
    stream.read(2)
    return _buffer(_encode(path, stream, encoding))


def _encode(path: str, stream: BinaryIO, encoding: str) -> Iterator[bytes]:
    decoder = codecs.getincrementaldecoder(encoding)()
    try:
        for piece in chain(_pieces(stream), [b""]):
            yield decoder.decode(piece, final=not piece).encode()
    except UnicodeError:
        problem = "looks like UTF-16 but is not; save it as UTF-8"
        raise BallotFileError(path, problem) from None


def _pieces(stream: BinaryIO, size: int = _CHUNK) -> Iterator[bytes]:
    read_chunk = getattr(stream, "read1", stream.read)
    return iter(lambda: read_chunk(size), b"")


def _unpack_zstd(path: str, stream: BinaryIO) -> Iterator[bytes]:
    """Unpack frame by frame; refuse a truncated frame."""
    try:
        import zstandard
    except ImportError:
        raise MissingExtra(f"reading {path}, which is compressed by Zstandard,", "zstd") from None
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


_DECODE = json.JSONDecoder().raw_decode
_JSON_SEPARATORS = " \t\r\n,[]"
"""Characters between and around the objects of an array."""

_TEXT_CHUNK = 1 << 18


class Lines(OpenedFile):
    """Lines with the name of their file."""

    def __init__(self, source: OpenedFile, lines: Iterable[str]) -> None:
        super().__init__(source.path, source.stem, cast("BinaryIO", io.BytesIO()))
        self._lines = lines

    def peek_lines(self, size: int) -> list[str]:
        """Peek at the first lines, at most `size`."""
        lines = iter(self._lines)
        first = list(islice(lines, size))
        self._lines = chain(first, lines)
        return [line.strip() for line in first]

    def lines(self) -> Iterator[str]:
        """Yield every line."""
        yield from self._lines

    def read_lines(self, max_bytes: int) -> list[bytes] | None:  # noqa: ARG002
        """Return None, because these lines are already text."""
        return None


def is_array(source: OpenedFile) -> bool:
    """Detect a JSON array by its first bytes."""
    start = cast("io.BufferedReader", source.stream).peek(16)[:64]
    return start.removeprefix(codecs.BOM_UTF8).lstrip().startswith(b"[")


def is_spread(first: str, source: OpenedFile) -> bool:
    """True for an object spread over lines, False for a damaged line.

    The next line decides: a complete object, or the beginning of one in an invalid place, is the
    next line of JSON Lines, unless the line before opened an array.
    """
    if not first.startswith("{"):
        return False
    try:
        _DECODE(first)
    except json.JSONDecodeError as error:
        is_open = error.pos >= len(first) or error.msg.startswith("Unterminated")
    except (RecursionError, ValueError):
        return False
    else:
        return False
    if first == "{":
        return True
    next_lines = source.peek_lines(2)[1:] if is_open else []
    if not next_lines:
        return False
    is_new_object = next_lines[0].startswith("{") and not first.endswith((":", ","))
    return first.endswith("[") or not (is_new_object or json_object(next_lines[0]) is not None)


def json_object(line: str) -> dict[str, Any] | None:
    """Return the JSON object on a line, if it is one."""
    try:
        record = json.loads(line)
    except (RecursionError, ValueError):
        return None
    return record if isinstance(record, dict) else None


def unfold_objects(source: OpenedFile) -> OpenedFile:
    """Convert a JSON array or multi-line objects to one object per line.

    The n-th object is line n. An array is streamed, never read whole.
    """
    return Lines(source, (json.dumps(value) + "\n" for value in _values(source)))


def tap_objects(source: OpenedFile, on_object: Callable[[dict[str, Any]], None]) -> OpenedFile:
    """Pass lines through, after calling a listener with each JSON object."""
    return Lines(source, _tap(source, on_object))


def _tap(source: OpenedFile, on_object: Callable[[dict[str, Any]], None]) -> Iterator[str]:
    for line in source.lines():
        record = json_object(line)
        if record is not None:  # otherwise the reader of the line reports the problem
            on_object(record)
        yield line


def _values(source: OpenedFile) -> Iterator[object]:
    parts: list[str] = []
    size, n_open, n_passed = 0, 0, 0
    for part in _text_pieces(source):
        parts.append(part)
        size += len(part)
        if size < n_open:
            continue
        text = "".join(parts)
        end = 0
        for value, end in _complete(text):  # noqa: B007 - where the last one ends is needed below
            yield value
        n_passed += text.count("\n", 0, end)
        parts, size = [text[end:]], len(text) - end
        # An incomplete value is parsed again when the text has doubled, so total time stays linear.
        n_open = 2 * size
    yield from _parse_rest("".join(parts), source.path, n_passed)


def _text_pieces(source: OpenedFile) -> Iterator[str]:
    """Yield chunks of text, because an array may be one line."""
    if source.head:
        yield from source.lines()
        return
    decoder = codecs.getincrementaldecoder("utf-8-sig")()
    n_lines, data = 1, b" "
    try:
        while data:
            data = source.stream.read(_TEXT_CHUNK)
            yield decoder.decode(data, final=not data)
            n_lines += data.count(b"\n")
    except UnicodeDecodeError:
        raise BallotFileError(source.path, "is not UTF-8; save it as UTF-8", n_lines) from None
    except (OSError, EOFError, zlib.error) as error:
        raise unreadable_file("be read", source.path, error) from error


def _parse_rest(text: str, path: str, n_lines: int) -> Iterator[object]:
    """Yield the values of the last chunk, which is complete."""
    end = 0
    for value, end in _complete(text):  # noqa: B007 - where the last one ends is needed below
        yield value
    start = _skip(text, end)
    if start == len(text):
        return
    try:
        _DECODE(text, start)
    except json.JSONDecodeError as error:
        line = n_lines + text.count("\n", 0, error.pos) + 1
        cut = not text[error.pos :].strip() or error.msg.startswith("Unterminated")
        reason = "it ends there, as a truncated file does" if cut else error.msg
        raise BallotFileError(path, f"is not JSON: {reason}", line) from error
    except (RecursionError, ValueError) as error:
        problem = "is not readable JSON: too deeply nested, or a number too long"
        raise BallotFileError(path, problem, n_lines + text.count("\n", 0, start) + 1) from error
    problem = "is not an array of JSON objects"
    raise BallotFileError(path, problem, n_lines + text.count("\n", 0, start) + 1)


def _complete(text: str) -> Iterator[tuple[object, int]]:
    start = _skip(text, 0)
    while start < len(text) and text[start] == "{":
        try:
            value, end = _DECODE(text, start)
        except (ValueError, RecursionError):
            return
        yield value, end
        start = _skip(text, end)


def _skip(text: str, start: int) -> int:
    while start < len(text) and text[start] in _JSON_SEPARATORS:
        start += 1
    return start


_HEADERS = ("header.json", "_journal/start.json", "start.json")
_REMEDY = "write it as JSON: inspect log convert --to json"


def inspect_samples(source: OpenedFile) -> OpenedFile:
    """Return a log's samples, one per line, with the evaluation's header."""
    archive = source.closing.enter_context(_open_archive(source))
    members = archive.infolist()
    names = [member.filename for member in members]
    if "[Content_Types].xml" in names:
        raise BallotFileError(source.path, "is a spreadsheet or a document; save it as CSV")
    header = next((name for name in _HEADERS if name in names), None)
    if header is None:
        problem = "is a ZIP archive but not a log of Inspect; unpack it and give the files in it"
        raise BallotFileError(source.path, problem)
    if source.bounds is not None:
        source.bounds.check_table(len(members), sum(member.file_size for member in members))
    about = _json(archive, header, source.path)
    head = about.get("eval") if isinstance(about, dict) else None
    return Lines(source, _lines(archive, names, head, source.path))


def _open_archive(source: OpenedFile) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(source.seekable())
    except zipfile.BadZipFile as error:
        raise BallotFileError(source.path, f"is a damaged ZIP archive ({error})") from error


def _lines(archive: zipfile.ZipFile, names: list[str], header: Any, path: str) -> Iterator[str]:
    for name in names:
        if name.startswith("samples/") and name.endswith(".json"):
            yield json.dumps({"eval": header, "samples": [_json(archive, name, path)]}) + "\n"


_DAMAGES = (zipfile.BadZipFile, struct.error, *_READ_ERRORS)
"""Errors of a damaged member of an archive."""

_ZSTANDARD = 93
"""Number of Zstandard in ZIP archives; `zipfile` supports it from Python 3.14."""


def _member(archive: zipfile.ZipFile, name: str, path: str) -> bytes:
    """Unpack a member, including the Zstandard members of Inspect's newer logs."""
    member, file = archive.getinfo(name), archive.fp
    if member.compress_type != _ZSTANDARD or file is None:
        return archive.read(name)
    file.seek(member.header_offset + 26)  # the lengths of its copies of name and extra field
    file.seek(sum(struct.unpack("<HH", file.read(4))), io.SEEK_CUR)
    packed = io.BytesIO(file.read(member.compress_size))
    content = bytearray()
    for piece in _unpack_zstd(path, cast("BinaryIO", packed)):
        content += piece
        if len(content) > member.file_size:
            break
    if len(content) != member.file_size or zlib.crc32(content) != member.CRC:
        raise zipfile.BadZipFile("its content does not match the archive's list")
    return bytes(content)


def _json(archive: zipfile.ZipFile, name: str, path: str) -> Any:
    try:
        return json.loads(_member(archive, name, path))
    except (NotImplementedError, RuntimeError) as error:
        problem = f"cannot be unpacked ({error}); {_REMEDY}"
        raise BallotFileError(path, problem) from error
    except _DAMAGES as error:
        raise BallotFileError(path, f"is damaged at {name} ({error})") from error
    except (ValueError, RecursionError) as error:
        raise BallotFileError(path, f"contains invalid JSON at {name} ({error})") from error
