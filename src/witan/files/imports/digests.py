"""Files before they are read: which they are, and what tells one content from another."""

import hashlib
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Any, cast

from witan.errors import BallotFileError
from witan.files.ballots.opening import cannot

__all__ = ["digest_of", "held", "import_files"]

_CHUNK = 1 << 20


def import_files(path: str | Path) -> tuple[str, ...]:
    """The files that a name stands for: itself, or those of a folder of saved conversations.

    Raises
    ------
    BallotFileError
        If the folder cannot be read, or holds no ``.json`` file.
    """
    folder = Path(path)
    if str(path) == "-" or not folder.is_dir():
        return (str(path),)
    try:
        held = sorted(folder.iterdir())
    except OSError as error:
        raise cannot("be read", str(path), error) from error
    found = tuple(str(one) for one in held if one.suffix == ".json")
    if not found:
        problem = "is a folder without a .json file; name the files in it" if held else (
            "is an empty folder; name a file, or a folder that holds .json files"
        )  # fmt: skip
        raise BallotFileError(str(path), problem)
    return found


@contextmanager
def held(path: str | Path) -> Iterator[str | Path | IO[bytes]]:
    """The file, such that it can be read twice: standard input, or a pipe, is laid aside first.

    Raises
    ------
    BallotFileError
        If a pipe cannot be read.
    """
    is_standard = str(path) == "-"
    if not is_standard and not Path(path).is_fifo():
        yield path
        return
    with ExitStack() as stack:
        file = stack.enter_context(tempfile.TemporaryFile())
        try:
            piped: IO[Any] = getattr(sys.stdin, "buffer", sys.stdin)
            if not is_standard:
                piped = stack.enter_context(Path(path).open("rb"))
            shutil.copyfileobj(piped, file)
        except OSError as error:
            raise cannot("be read", str(path), error) from error
        file.seek(0)
        cast("Any", file).raw.name = "stdin" if is_standard else str(path)  # what errors call it
        yield file


def digest_of(sources: Iterable[str | Path | IO[bytes]], **meaning: object) -> str:
    """Checksum of the contents in their order, and of the options that change what they mean.

    An option that is None, empty or False says nothing. A stream is left at its beginning.

    Raises
    ------
    BallotFileError
        If a file cannot be read.
    """
    whole = hashlib.sha256()
    for source in sources:
        one = hashlib.sha256()
        if isinstance(source, str | Path):
            try:
                with Path(source).open("rb") as file:
                    _take(one, file)
            except OSError as error:
                raise cannot("be read", str(source), error) from error
        else:
            source.seek(0)
            _take(one, source)
            source.seek(0)
        whole.update(one.digest())
    for name, value in sorted(meaning.items()):
        if value not in (None, False, "", (), []):
            whole.update(f"\0{name}={value!r}".encode())
    return whole.hexdigest()


def _take(digest: Any, file: IO[bytes]) -> None:
    while piece := file.read(_CHUNK):
        digest.update(piece)
