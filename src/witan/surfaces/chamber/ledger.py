"""What the sessions of each asker have cost lately, so that a limit holds over restarts."""

import json
import os
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from witan.deliberation.ports import Clock
from witan.errors import HistoryError

__all__ = ["Ledger", "Reserved"]

DAY = timedelta(hours=24)


@dataclass(frozen=True, slots=True)
class Reserved:
    """Dollars that a session may cost, held back until it is known what it did."""

    number: str
    asker: str
    usd: float


@dataclass(frozen=True, slots=True)
class _Line:
    asker: str
    at: datetime
    usd: float


class Ledger:
    """Dollars by asker, in the last 24 hours.

    A line is appended when a session is begun, with the most that it can cost, and another when it
    has ended, with what it did cost; what a server that was killed had begun counts in full.

    Parameters
    ----------
    path
        Where it is kept; None: in memory, until the process ends.

    Raises
    ------
    HistoryError
        If the file cannot be read or written.
    """

    def __init__(self, clock: Clock, path: Path | None = None) -> None:
        self._clock = clock
        self._path = path
        self._lines: dict[str, _Line] = {}
        if path is not None:
            try:
                path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
                self._read(path)
            except (OSError, ValueError) as error:
                raise _unusable(path, error) from error

    def spent(self, asker: str) -> float:
        """Dollars of the last 24 hours, those held back included."""
        self._forget()
        return sum(line.usd for line in self._lines.values() if line.asker == asker)

    def reserve(self, asker: str, usd: float) -> Reserved:
        """Hold dollars back.

        Raises
        ------
        HistoryError
            If that cannot be written down; nothing is held back then.
        """
        # Drawn, not counted: another server of this user may write to the same file.
        reserved = Reserved(secrets.token_hex(8), asker, usd)
        self._put(reserved.number, _Line(asker, self._clock.now(), usd))
        return reserved

    def settle(self, reserved: Reserved, usd: float) -> None:
        """Put what it cost in place of what was held back.

        Raises
        ------
        HistoryError
            If that cannot be written down; the dollars stay held back then.
        """
        self._put(reserved.number, _Line(reserved.asker, self._clock.now(), usd))

    def _put(self, number: str, line: _Line) -> None:
        if self._path is not None:
            try:
                with self._path.open("a", encoding="utf-8") as file:
                    file.write(_written(number, line))
                    file.flush()
                    os.fsync(file.fileno())
            except OSError as error:
                raise _unusable(self._path, error) from error
        self._lines[number] = line

    def _forget(self) -> None:
        since = self._clock.now() - DAY
        self._lines = {n: line for n, line in self._lines.items() if line.at > since}

    def _read(self, path: Path) -> None:
        """Take up what is there, and write it anew without what is too old."""
        if path.exists():
            self._lines = dict(_lines(path.read_text(encoding="utf-8")))
        self._forget()
        anew = path.with_name(f"{path.name}.{os.getpid()}")
        anew.write_text("".join(_written(*each) for each in self._lines.items()), encoding="utf-8")
        anew.chmod(0o600)
        anew.replace(path)


def _written(number: str, line: _Line) -> str:
    record = {"number": number, "asker": line.asker, "at": line.at.isoformat(), "usd": line.usd}
    return json.dumps(record) + "\n"


def _lines(text: str) -> Iterator[tuple[str, _Line]]:
    """The lines that are whole; the last may have been cut off when the machine stopped."""
    for line in text.splitlines():
        try:
            held = json.loads(line)
            at = datetime.fromisoformat(held["at"])
            yield str(held["number"]), _Line(str(held["asker"]), at, float(held["usd"]))
        except (ValueError, KeyError, TypeError):
            continue


def _unusable(path: Path, error: Exception) -> HistoryError:
    problem = f"what was spent cannot be kept: {error}"
    return HistoryError(str(path), problem, "make the file one that this user may write")
