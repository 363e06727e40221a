"""ZIP archives: the logs that Inspect writes as ``.eval``."""

import json
import zipfile
import zlib
from collections.abc import Iterator
from typing import Any

from witan.errors import BallotFileError
from witan.files.ballots.lines import Lines
from witan.files.ballots.opening import Source

__all__ = ["inspect_samples"]

_HEADERS = ("header.json", "_journal/start.json", "start.json")
_REMEDY = "write it as JSON: inspect log convert --to json"


def inspect_samples(source: Source) -> Source:
    """The samples of a log, each on a line with what the log says of the evaluation."""
    archive = source.closing.enter_context(_opened(source))
    members = archive.infolist()
    names = [member.filename for member in members]
    if "[Content_Types].xml" in names:
        raise BallotFileError(source.path, "is a spreadsheet or a document; save it as CSV")
    header = next((name for name in _HEADERS if name in names), None)
    if header is None:
        problem = "is a ZIP archive and no log of Inspect; unpack it, and name the files in it"
        raise BallotFileError(source.path, problem)
    if source.bounds is not None:
        source.bounds.check_table(len(members), sum(member.file_size for member in members))
    about = _json(archive, header, source.path)
    held = about.get("eval") if isinstance(about, dict) else None
    return Lines(source, _lines(archive, names, held, source.path))


def _opened(source: Source) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(source.seekable())
    except zipfile.BadZipFile as error:
        raise BallotFileError(source.path, f"is a damaged ZIP archive ({error})") from error


def _lines(archive: zipfile.ZipFile, names: list[str], about: Any, path: str) -> Iterator[str]:
    for name in names:
        if name.startswith("samples/") and name.endswith(".json"):
            yield json.dumps({"eval": about, "samples": [_json(archive, name, path)]}) + "\n"


def _json(archive: zipfile.ZipFile, name: str, path: str) -> Any:
    try:
        return json.loads(archive.read(name))
    except (NotImplementedError, RuntimeError) as error:
        problem = f"cannot be unpacked ({error}); {_REMEDY}"
        raise BallotFileError(path, problem) from error
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError) as error:
        raise BallotFileError(path, f"is damaged at {name} ({error})") from error
    except (ValueError, RecursionError) as error:
        raise BallotFileError(path, f"holds no JSON at {name} ({error})") from error
