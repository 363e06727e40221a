"""Sessions as files: read whole, replaced atomically."""

import os
import sys
from pathlib import Path

from witan.deliberation.record import session_from_json, session_to_json
from witan.deliberation.session import Session
from witan.errors import SessionFileError


def read_session(path: str | Path) -> Session:
    """Read the session in a file, or on standard input for ``-``."""
    name = "standard input" if str(path) == "-" else str(path)
    try:
        content = sys.stdin.buffer.read() if str(path) == "-" else Path(path).read_bytes()
    except OSError as error:
        raise SessionFileError(name, f"cannot be read: {_words(error)}") from error
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise SessionFileError(name, "is not UTF-8 text, so it contains no session") from error
    return session_from_json(text, name)


def write_session(session: Session, path: str | Path, *, private: bool = False) -> None:
    """Write a session to a file atomically.

    If `private`, only its owner can read it.
    """
    write_whole(session_to_json(session).encode() + b"\n", path, private=private)


def write_whole(content: bytes, path: str | Path, *, private: bool = False) -> None:
    """Write text about a session to a file atomically."""
    target = Path(path).resolve()
    try:
        if target.exists() and not target.is_file():
            target.write_bytes(content)  # a device or a pipe cannot be replaced
            return
        part = target.with_name(f".{target.name}.{os.getpid()}.part")
        try:
            part.touch(mode=0o600 if private or target.exists() else 0o666)
            with part.open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            if target.exists() and not private:
                part.chmod(target.stat().st_mode)
            part.replace(target)
        finally:
            part.unlink(missing_ok=True)
    except OSError as error:
        raise SessionFileError(str(path), f"cannot be written: {_words(error)}") from error


def _words(error: OSError) -> str:
    return error.strerror or str(error)
