"""Sources of lines that are made of other lines: JSON unfolded, and lines that are overheard."""

import codecs
import io
import json
import zlib
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice
from typing import Any, BinaryIO, cast

from witan.errors import BallotFileError
from witan.files.ballots.opening import Source, cannot

__all__ = ["Lines", "begins_an_array", "is_spread", "overheard", "unfolded"]

_DECODE = json.JSONDecoder().raw_decode
_BETWEEN = " \t\r\n,[]"
"""What stands between the objects of an array, and around them."""

_CHUNK = 1 << 18


class Lines(Source):
    """Lines under the name of the file that they come from."""

    def __init__(self, source: Source, lines: Iterable[str]) -> None:
        super().__init__(source.path, source.stem, cast("BinaryIO", io.BytesIO()))
        self._lines = lines

    def glimpse(self, size: int) -> list[str]:
        """The first lines, at most `size`, all of them still to be read."""
        lines = iter(self._lines)
        first = list(islice(lines, size))
        self._lines = chain(first, lines)
        return [line.strip() for line in first]

    def lines(self) -> Iterator[str]:
        """Every line."""
        yield from self._lines


def begins_an_array(source: Source) -> bool:
    """Whether the first bytes are those of a JSON array; no line of it is read."""
    start = cast("io.BufferedReader", source.stream).peek(16)[:64]
    return start.removeprefix(codecs.BOM_UTF8).lstrip().startswith(b"[")


def is_spread(first: str, source: Source) -> bool:
    """Whether the first object goes on after the first line, which is not merely damaged.

    What stands below tells: an object of its own, or the beginning of one where none can stand, is
    the next line of JSON Lines, unless the line before opened an array.
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
    below = source.glimpse(2)[1:] if is_open else []
    if not below:
        return False
    begins = below[0].startswith("{") and not first.endswith((":", ","))
    return first.endswith("[") or not (begins or _is_object(below[0]))


def _is_object(line: str) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except (RecursionError, ValueError):
        return False


def unfolded(source: Source) -> Source:
    """One line per object of a JSON array, or of objects spread over lines.

    The n-th object is then line n. An array is read as it comes, never whole.
    """
    return Lines(source, (json.dumps(value) + "\n" for value in _values(source)))


def overheard(source: Source, hear: Callable[[dict[str, Any]], None]) -> Source:
    """The same lines; each that holds a JSON object is heard before it is read."""
    return Lines(source, _heard(source, hear))


def _heard(source: Source, hear: Callable[[dict[str, Any]], None]) -> Iterator[str]:
    for line in source.lines():
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            record = None  # whoever reads the line says what is wrong
        if isinstance(record, dict):
            hear(record)
        yield line


def _values(source: Source) -> Iterator[object]:
    """The values of a document, each as soon as it is complete."""
    parts: list[str] = []
    held, needed, passed = 0, 0, 0
    for part in _pieces(source):
        parts.append(part)
        held += len(part)
        if held < needed:
            continue
        text = "".join(parts)
        end = 0
        for value, end in _complete(text):  # noqa: B007 - where the last one ends is needed below
            yield value
        passed += text.count("\n", 0, end)
        parts, held = [text[end:]], len(text) - end
        # What is not complete is tried again once it has doubled: the whole stays linear.
        needed = 2 * held
    yield from _rest("".join(parts), source.path, passed)


def _pieces(source: Source) -> Iterator[str]:
    """The text a piece at a time: an array may be one line of any length."""
    if source.head:
        yield from source.lines()
        return
    decoder = codecs.getincrementaldecoder("utf-8-sig")()
    passed, data = 1, b" "
    try:
        while data:
            data = source.stream.read(_CHUNK)
            yield decoder.decode(data, final=not data)
            passed += data.count(b"\n")
    except UnicodeDecodeError:
        raise BallotFileError(source.path, "is not UTF-8; save it as UTF-8", passed) from None
    except (OSError, EOFError, zlib.error) as error:
        raise cannot("be read", source.path, error) from error


def _rest(text: str, path: str, passed: int) -> Iterator[object]:
    """The values of the last piece, which has to be complete."""
    end = 0
    for value, end in _complete(text):  # noqa: B007 - where the last one ends is needed below
        yield value
    start = _skip(text, end)
    if start == len(text):
        return
    try:
        _DECODE(text, start)
    except json.JSONDecodeError as error:
        line = passed + text.count("\n", 0, error.pos) + 1
        cut = not text[error.pos :].strip() or error.msg.startswith("Unterminated")
        why = "it breaks off there, as a file does that was cut short" if cut else error.msg
        raise BallotFileError(path, f"is no JSON: {why}", line) from error
    except (RecursionError, ValueError) as error:
        what = "is no JSON that can be read: too deeply nested, or a number too long"
        raise BallotFileError(path, what, passed + text.count("\n", 0, start) + 1) from error
    what = "is no array of JSON objects"
    raise BallotFileError(path, what, passed + text.count("\n", 0, start) + 1)


def _complete(text: str) -> Iterator[tuple[object, int]]:
    """Each complete object or array in a text, and where it ends."""
    start = _skip(text, 0)
    while start < len(text) and text[start] == "{":
        try:
            value, end = _DECODE(text, start)
        except (ValueError, RecursionError):
            return
        yield value, end
        start = _skip(text, end)


def _skip(text: str, start: int) -> int:
    while start < len(text) and text[start] in _BETWEEN:
        start += 1
    return start
