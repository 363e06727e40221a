"""One process at a time: a lock on a file beside the history, let go of by whoever dies."""

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["locked"]

_PAUSE_SECONDS = 0.01


@contextmanager
def locked(path: Path, seconds: float) -> Iterator[bool]:
    """Hold the lock file at `path`; False: somebody else has kept it for so many seconds."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    deadline = time.monotonic() + seconds
    try:
        while not (held := _taken(descriptor)) and time.monotonic() < deadline:
            time.sleep(_PAUSE_SECONDS)
        yield held
    finally:
        os.close(descriptor)


if sys.platform == "win32":
    import msvcrt

    def _taken(descriptor: int) -> bool:
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

else:
    import fcntl

    def _taken(descriptor: int) -> bool:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        return True
