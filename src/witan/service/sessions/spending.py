"""Limits of clients: request rates and daily spending."""

import json
import logging
import os
import secrets
import sys
from collections import defaultdict, deque
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from fractions import Fraction
from heapq import heappop, heappush
from math import ceil, isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Self

import anyio

from witan.core.display import dollars
from witan.deliberation.money import ROUNDING_USD
from witan.deliberation.ports import Clock
from witan.deliberation.session import Session
from witan.errors import Busy, HistoryError, WitanError
from witan.history.database import lock_file
from witan.service.text import count_noun

if TYPE_CHECKING:
    from witan.history import History


DAY = timedelta(hours=24)

MOST_STALE = 1_000
"""Outdated lines in the file, beyond which it is rewritten if they outnumber the others."""


@dataclass(frozen=True, slots=True)
class ReservedAmount:
    """Dollars reserved for a session until its cost is known.

    Parameters
    ----------
    session
        The session whose record states the actual cost; None before any call.
    before_usd
        Cost of that session before it was resumed, on any account.
    """

    number: str
    client: str
    usd: float
    session: str | None = None
    before_usd: float = 0.0


@dataclass(frozen=True, slots=True)
class _Line:
    """A counted amount; until it is final, the reservation behind it."""

    client: str
    at: datetime
    usd: float
    reservation: ReservedAmount | None = None


class Ledger:
    """Dollars by client, in the last 24 hours.

    A line is appended when a session begins, with its highest cost; another before its first call,
    with its name; and one when it ends, with its cost. After a crash, open sessions count in full
    until they are settled. A line counts at once, and is durable once `flush` has returned.

    A file belongs to one open ledger, as two would each let a client spend its whole limit.

    `path`: the file; None: in memory only.
    `reservations_left`: reservations of a server that was killed.
    """

    def __init__(self, clock: Clock, path: Path | None = None) -> None:
        self._clock = clock
        self._path = path
        self._lines: dict[str, _Line] = {}
        self._times: list[tuple[datetime, str]] = []  # a heap, as a clock may be set back
        self._usd_by_client: defaultdict[str, Fraction] = defaultdict(Fraction)
        self._under_way: set[str] = set()
        self._unwritten_lines: dict[str, _Line] = {}
        self._n_written = 0
        self._is_torn = False
        self._write_lock = anyio.Lock()
        self._file_lock = ExitStack()
        if path is not None:
            try:
                self._open(path)
            except (OSError, ValueError) as error:
                self._file_lock.close()
                raise _unusable(path, error) from error
        amounts = (line.reservation for line in self._lines.values())
        self.reservations_left = tuple(reserved for reserved in amounts if reserved is not None)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        self.close()

    def close(self) -> None:
        """Release the file."""
        self._file_lock.close()

    def spent_usd(self, client: str) -> float:
        """Dollars of the last 24 hours, reservations included."""
        self._forget()
        return float(self._usd_by_client[client])

    def reserved_usd(self, client: str) -> tuple[float, int]:
        """Return the dollars reserved for running sessions, and their number."""
        self._forget()
        numbers = self._under_way & self._lines.keys()
        reservations = [
            self._lines[number].usd for number in numbers if self._lines[number].client == client
        ]
        return sum(reservations), len(reservations)

    def reserve(self, client: str, usd: float) -> ReservedAmount:
        """Reserve dollars for a client."""
        reservation = ReservedAmount(secrets.token_hex(8), client, usd)
        self._under_way.add(reservation.number)
        self._write_line(reservation, usd, reservation)
        return reservation

    def name(self, reservation: ReservedAmount, session: str | None, before_usd: float) -> None:
        """Name the session with the actual cost, before any call.

        `before_usd`: cost of that session before it was resumed.
        """
        reservation_of_session = replace(reservation, session=session, before_usd=before_usd)
        self._write_line(
            reservation, reservation.usd, None if session is None else reservation_of_session
        )

    def settle(self, reservation: ReservedAmount, usd: float, at: datetime | None = None) -> None:
        """Settle a reservation at its cost, by default as of now."""
        self._under_way.discard(reservation.number)
        self._write_line(reservation, usd, at=at)

    def drop(self, reservation: ReservedAmount) -> None:
        """Drop a reservation without a cost."""
        self._under_way.discard(reservation.number)
        self._remove(reservation.number)
        self._unwritten_lines.pop(reservation.number, None)

    async def flush(self, reservation: ReservedAmount | None = None) -> None:
        """Wait until all lines, or those of a reservation, are on disk.

        Concurrent callers share one write. A caller without unwritten lines neither waits nor
        gets an error. Cancelling one takes effect after its write, which still counts.
        """
        if self._path is None or not self._waits(reservation):
            return
        with anyio.CancelScope(shield=True):
            async with self._write_lock:
                if self._waits(reservation):
                    await self._write(self._path, dict(self._unwritten_lines))

    def _waits(self, reservation: ReservedAmount | None) -> bool:
        return (
            bool(self._unwritten_lines)
            if reservation is None
            else reservation.number in self._unwritten_lines
        )

    async def _write(self, path: Path, lines: Mapping[str, _Line]) -> None:
        self._forget()
        stale = self._n_written + len(lines) - len(self._lines)
        rewrites_file = stale > max(MOST_STALE, len(self._lines))
        lines_to_write = self._lines if rewrites_file else lines
        text = (
            _text(lines_to_write)
            if rewrites_file or not self._is_torn
            else "\n" + _text(lines_to_write)
        )
        try:
            await anyio.to_thread.run_sync(_replace if rewrites_file else _append, path, text)
        except OSError as error:
            self._is_torn = True
            raise _unusable(path, error) from error
        self._is_torn = False
        self._n_written = len(lines_to_write) if rewrites_file else self._n_written + len(lines)
        # Lines changed meanwhile are not on the disk yet.
        unwritten_lines = self._unwritten_lines.items()
        self._unwritten_lines = {n: line for n, line in unwritten_lines if line is not lines.get(n)}

    def _write_line(
        self,
        reservation: ReservedAmount,
        usd: float,
        open_reservation: ReservedAmount | None = None,
        at: datetime | None = None,
    ) -> None:
        line = _Line(
            reservation.client, self._clock.now() if at is None else at, usd, open_reservation
        )
        self._add(reservation.number, line)
        if self._path is not None:
            self._unwritten_lines[reservation.number] = line

    def _add(self, number: str, line: _Line) -> None:
        """Add or replace a line; its sum is exact, so removing it leaves no remainder."""
        self._remove(number)
        self._lines[number] = line
        heappush(self._times, (line.at, number))
        self._usd_by_client[line.client] += Fraction(line.usd)

    def _remove(self, number: str) -> None:
        line = self._lines.pop(number, None)
        if line is not None:
            self._usd_by_client[line.client] -= Fraction(line.usd)

    def _forget(self) -> None:
        """Remove the lines that are a day old, without looking at the others."""
        since = self._clock.now() - DAY
        while self._times and self._times[0][0] <= since:
            at, number = heappop(self._times)
            line = self._lines.get(number)
            if line is not None and line.at == at:  # not replaced by a later one
                self._remove(number)

    def _open(self, path: Path) -> None:
        """Read the file, and rewrite it without outdated lines."""
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not self._file_lock.enter_context(lock_file(path.with_name(f"{path.name}.lock"), 0)):
            self._file_lock.close()
            raise HistoryError(
                str(path),
                "another running server records its spending there",
                "stop that server, or set XDG_STATE_HOME to another folder for this one",
            )
        if path.exists():
            for number, line in dict(_lines(path.read_text(encoding="utf-8"))).items():
                self._add(number, line)
        self._forget()
        _replace(path, _text(self._lines))
        self._n_written = len(self._lines)


def _append(path: Path, text: str) -> None:
    """Add to the file, and wait until the disk has it."""
    with path.open("a", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


def _replace(path: Path, text: str) -> None:
    """Replace the file atomically, even if the machine stops."""
    anew = path.with_name(f"{path.name}.new")
    with anew.open("w", encoding="utf-8") as file:
        anew.chmod(0o600)
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    anew.replace(path)
    if sys.platform != "win32":  # Windows cannot open a folder
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def _text(lines: Mapping[str, _Line]) -> str:
    return "".join(json.dumps(_object(number, line)) + "\n" for number, line in lines.items())


def _object(number: str, line: _Line) -> dict[str, object]:
    amounts: dict[str, object] = {}
    if line.reservation is not None:
        amounts = {
            "held": True,
            "session": line.reservation.session,
            "before_usd": line.reservation.before_usd,
        }
    at = line.at.isoformat()
    return {"number": number, "asker": line.client, "at": at, "usd": line.usd, **amounts}


def _lines(text: str) -> Iterator[tuple[str, _Line]]:
    """Yield the complete lines.

    The last one may be incomplete after a crash.

    A line is valid if its time has a zone and its dollars are a number.
    """
    for line in text.splitlines():
        try:
            record = json.loads(line)
            at, usd = datetime.fromisoformat(record["at"]), float(record["usd"])
            if at.tzinfo is not None and isfinite(usd):
                number, client = str(record["number"]), str(record["asker"])
                yield number, _Line(client, at, usd, _read_reservation(number, client, usd, record))
        except (ValueError, KeyError, TypeError):
            continue


def _read_reservation(
    number: str, client: str, usd: float, line: Mapping[str, object]
) -> ReservedAmount | None:
    """Read the reservation of a line; None if its amount is final."""
    session, before_usd = line.get("session"), line.get("before_usd")
    if line.get("held") is not True or not isinstance(before_usd, int | float):
        return None
    if not (session is None or isinstance(session, str)):
        return None
    return ReservedAmount(number, client, usd, session, before_usd)


def _unusable(path: Path, error: Exception) -> HistoryError:
    problem = f"spending cannot be recorded: {error}"
    return HistoryError(str(path), problem, "let this user write the file")


@dataclass(frozen=True, slots=True)
class Client:
    """A client of the server, and its limits.

    `name`: name of its token, or ``local``.
    `per_minute`: sessions it may start per minute, or None without a limit.
    `max_cost_usd`: ceiling of each of its sessions, by default the configured one.
    `daily_usd`: cost limit of its sessions in any 24 hours, or None.
    `by_token`: whether it has a token; otherwise its name is only a claim.
    """

    name: str
    per_minute: float | None = None
    max_cost_usd: float | None = None
    daily_usd: float | None = None
    by_token: bool = False


LOCAL = Client("local")
"""Every client of a local server without tokens."""


_log = logging.getLogger("witan.service")


class SessionReservation:
    """The reservation of a session.

    `reservation`: None reserves nothing.
    `before_usd`: cost of the session before it is resumed, on any account.
    """

    def __init__(self, ledger: Ledger, reservation: ReservedAmount | None) -> None:
        self._ledger = ledger
        self._reservation = reservation
        self._told_by: str | None = None
        self._has_called = False
        self.before_usd = 0.0

    async def await_record(self, session: str, *, is_recorded: bool) -> None:
        """Wait until the reservation, its calls and its session are durable.

        `is_recorded`: whether the history has the whole session so far; if not, the full
        reservation counts after a crash.
        """
        if self._reservation is None:
            return
        told_by = session if is_recorded else None
        if not self._has_called or (told_by is None and self._told_by is not None):
            self._ledger.name(self._reservation, told_by, self.before_usd)
            self._has_called, self._told_by = True, told_by
        await self._ledger.flush(self._reservation)

    async def settle(self, session: Session | None) -> None:
        """Settle the reservation at the session's cost, else at 0.

        An unknown cost counts at its highest. That is known, because a reservation means a ceiling,
        and under a ceiling no call has an unknown price.
        """
        if self._reservation is None:
            return
        usd = 0.0 if session is None else session.cost.committed_usd - self.before_usd
        self._ledger.settle(self._reservation, max(0.0, usd))
        try:
            await self._ledger.flush(self._reservation)
        except HistoryError as error:
            _log.error("%s", error)


MINUTE_SECONDS = 60.0

TOMORROW_SECONDS = 3600.0
"""Seconds until the next attempt once a day's money is spent."""

RETRY_SECONDS = 5.0
"""Seconds until the next attempt once all places, or the day's remaining money, are reserved."""


class ClientLimits:
    """Limits of every client on money and on sessions per minute."""

    def __init__(self, ledger: Ledger, clock: Clock) -> None:
        self._ledger = ledger
        self._clock = clock
        self._begin_times: dict[str, deque[float]] = defaultdict(deque)

    def begin(self, client: Client) -> None:
        """Count the start of a session; refuse too many per minute."""
        if client.per_minute is None:
            return
        now, begin_times = self._clock.seconds(), self._begin_times[client.name]
        while begin_times and begin_times[0] <= now - MINUTE_SECONDS:
            begin_times.popleft()
        if len(begin_times) >= client.per_minute:
            wait = begin_times[0] + MINUTE_SECONDS - now
            most = count_noun(ceil(client.per_minute), "session")
            problem = f"{client.name} may start {most} per minute"
            raise Busy(problem, f"ask again in {ceil(wait)} s", wait)
        begin_times.append(now)

    def session_ceiling(self, client: Client) -> float | None:
        """Return the client's ceiling for a session; None without a limit.

        Raises `Busy` if its limit is spent, or the rest is reserved.
        """
        if client.daily_usd is None:
            return client.max_cost_usd
        left_usd = client.daily_usd - self._ledger.spent_usd(client.name)
        if left_usd <= 0:
            raise self._refusal(client, client.daily_usd)
        return left_usd if client.max_cost_usd is None else min(left_usd, client.max_cost_usd)

    def check(self, client: Client, least_usd: float) -> None:
        """Refuse a session whose first call exceeds the remaining budget.

        `least_usd`: highest cost of its cheapest call.
        """
        if client.daily_usd is None:
            return
        left_usd = client.daily_usd - self._ledger.spent_usd(client.name)
        if left_usd + ROUNDING_USD < least_usd:
            raise self._refusal(client, client.daily_usd, least_usd)

    def _refusal(self, client: Client, daily_usd: float, least_usd: float | None = None) -> Busy:
        """Return the refusal: sums spent and reserved, and when to retry."""
        reserved, n_held = self._ledger.reserved_usd(client.name)
        spent_usd = self._ledger.spent_usd(client.name) - reserved
        spent = f"{dollars(spent_usd)} of the {dollars(daily_usd)}"
        problem = f"{client.name} has spent {spent} of its last 24 hours"
        if n_held:
            under_way = count_noun(n_held, "session")
            problem += f", and {dollars(reserved)} is reserved for {under_way} in progress"
        if least_usd is not None:
            problem += f"; this one needs at least {dollars(least_usd, up=True)}"
        if (
            n_held
            and daily_usd - spent_usd > 0
            and daily_usd - spent_usd + ROUNDING_USD >= (least_usd or 0)
        ):
            end_text = "it has ended" if n_held == 1 else "one of them has ended"
            return Busy(problem, f"ask again when {end_text}", RETRY_SECONDS)
        return Busy(problem, "ask again tomorrow, or ask for a higher limit", TOMORROW_SECONDS)

    async def hold_back(self, client: Client, usd: float | None) -> SessionReservation:
        """Reserve a session's highest cost durably; None reserves nothing.

        It counts at once, so two concurrent requests cannot both get the rest. It is also the
        session's ceiling, so retries cannot exceed it.
        """
        if usd is None or client.daily_usd is None:
            return SessionReservation(self._ledger, None)
        reserved = self._ledger.reserve(client.name, usd)
        with ExitStack() as undo:
            # If the caller is cancelled meanwhile, the line may already be written.
            undo.callback(self._ledger.settle, reserved, 0.0)
            try:
                await self._ledger.flush(reserved)
            except HistoryError:
                undo.pop_all()
                self._ledger.drop(reserved)
                raise
            undo.pop_all()
        return SessionReservation(self._ledger, reserved)

    async def reconcile(self, history: "History | None") -> None:
        """Settle the reservations of a killed server at their sessions' costs.

        A reservation without a session made no call. One whose session is not in the history counts
        in full.
        """
        for reservation in self._ledger.reservations_left:
            if reservation.session is None:
                self._ledger.settle(reservation, 0.0)
                continue
            session = await _recorded_session(history, reservation.session)
            if session is None:
                continue
            usd = max(0.0, session.cost.committed_usd - reservation.before_usd)
            self._ledger.settle(reservation, min(reservation.usd, usd), session.events[-1].at)
        await self._ledger.flush()


async def _recorded_session(history: "History | None", name: str) -> Session | None:
    """Return a session from a history, or None."""
    if history is None:
        return None
    try:
        session = await anyio.to_thread.run_sync(history.session, name)
    except WitanError as error:
        _log.warning("the cost of %s is unknown; the reserved amount counts: %s", name, error)
        return None
    return session if session.id == name else None
