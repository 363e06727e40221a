"""Limits that processes on many machines share through PostgreSQL.

    token_buckets            provider → when its next call may start, by the server's clock
    ceilings ── reservations the money and calls of a batch, and each session's share of them

Only a batch on Spark needs these tables, so the first one creates them.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import anyio

from witan.deliberation.money import NOTHING, Amount
from witan.errors import HistoryError
from witan.history.database import LockWait, lock_schema, own_process
from witan.history.engines import PostgresDatabase
from witan.history.history import History

_TABLES = (
    # A crash of the server empties it, which costs no more than a second's calls.
    """
    CREATE UNLOGGED TABLE IF NOT EXISTS token_buckets (
        provider TEXT PRIMARY KEY,
        next_start DOUBLE PRECISION NOT NULL
    )
    """,
    """
    CREATE TABLE IF NOT EXISTS ceilings (
        batch TEXT PRIMARY KEY,
        max_usd DOUBLE PRECISION NOT NULL,
        max_calls DOUBLE PRECISION NOT NULL,
        usd DOUBLE PRECISION NOT NULL,
        calls DOUBLE PRECISION NOT NULL
    )
    """,
    """
    CREATE TABLE IF NOT EXISTS reservations (
        batch TEXT NOT NULL,
        session TEXT NOT NULL,
        process TEXT NOT NULL,
        reserved_usd DOUBLE PRECISION NOT NULL,
        reserved_calls DOUBLE PRECISION NOT NULL,
        spent_usd DOUBLE PRECISION NOT NULL,
        spent_calls DOUBLE PRECISION NOT NULL,
        PRIMARY KEY (batch, session)
    )
    """,
)

_NOW = "EXTRACT(EPOCH FROM clock_timestamp())::double precision"

_TAKE_SQL = f"""
INSERT INTO token_buckets AS bucket (provider, next_start)
VALUES (:provider, {_NOW} + :pause + :seconds)
ON CONFLICT (provider) DO UPDATE
    SET next_start = GREATEST(bucket.next_start, {_NOW} + :pause) + :seconds
RETURNING next_start - :seconds - {_NOW}
"""  # noqa: S608 - our own words

_COLUMNS = ("reserved_usd", "reserved_calls", "spent_usd", "spent_calls")

_RESERVE_SQL = f"""
WITH before AS (
    SELECT reserved_usd + spent_usd AS usd, reserved_calls + spent_calls AS calls
    FROM reservations WHERE batch = :batch AND session = :session
), own AS (
    INSERT INTO reservations (batch, session, process, {", ".join(_COLUMNS)})
    VALUES (:batch, :session, :process, {", ".join(f":{name}" for name in _COLUMNS)})
    ON CONFLICT (batch, session) DO UPDATE
        SET process = :process, {", ".join(f"{name} = :{name}" for name in _COLUMNS)}
)
UPDATE ceilings
SET usd = usd + :reserved_usd + :spent_usd - COALESCE((SELECT usd FROM before), 0),
    calls = calls + :reserved_calls + :spent_calls - COALESCE((SELECT calls FROM before), 0)
WHERE batch = :batch
"""  # noqa: S608 - our own columns

_SUM_SQL = """
UPDATE ceilings SET (usd, calls) = (
    SELECT COALESCE(SUM(reserved_usd + spent_usd), 0),
        COALESCE(SUM(reserved_calls + spent_calls), 0)
    FROM reservations WHERE batch = :batch
) WHERE batch = :batch
"""

_HOLDERS_SQL = """
SELECT process, session FROM reservations
WHERE batch = :batch AND reserved_calls > 0 ORDER BY session
"""


def require_server(history: History) -> PostgresDatabase:
    """Return a history's server, with the tables of shared limits.

    Raises `HistoryError` if the history is a file, which other machines cannot open.
    """
    database = history.database
    if not isinstance(database, PostgresDatabase):
        problem = "is a file, and Spark's workers share a history through a server"
        remedy = "name a PostgreSQL database: --history postgresql://user@host/database"
        raise HistoryError(database.location, problem, remedy)
    with database.transaction():
        lock_schema(database)
        for statement in _TABLES:
            database.execute(statement)
    return database


class TokenBucket:
    """Calls per minute of each provider, for all processes together.

    Calls get evenly spaced start times, whichever process makes them.
    """

    def __init__(self, database: PostgresDatabase) -> None:
        self._database = database

    async def take(self, provider: str, interval: float, n: int = 1, pause: float = 0.0) -> float:
        """Take tokens in one statement; return the seconds until the first."""
        values = {"provider": provider, "seconds": n * interval, "pause": pause}
        return await anyio.to_thread.run_sync(self._take, values)

    def _take(self, values: Mapping[str, Any]) -> float:
        # If the server restarts, the call waits for it.
        [(wait,)] = LockWait().run(
            self._database.location, lambda _: self._database.rows(_TAKE_SQL, values)
        )
        return max(0.0, float(wait))


class BatchCeiling:
    """Money and calls of a batch, for all its processes.

    A reservation counts until its session is settled. One whose process is gone counts as much as
    its session spent according to the history. A session's cost is the sum of all attempts at it.
    """

    def __init__(self, history: History, batch: str) -> None:
        self._history = history
        self._database = require_server(history)
        self._batch = batch

    def open(self, most: Amount, spent: Mapping[str, Amount]) -> None:
        """Set the ceiling, and the spending of earlier runs' sessions.

        The history is read again for sessions that continued after `spent` was read.
        """
        batch = {"batch": self._batch}
        with self._database.transaction():
            self._database.execute(
                "INSERT INTO ceilings (batch, max_usd, max_calls, usd, calls)"
                " VALUES (:batch, :usd, :calls, 0, 0)"
                " ON CONFLICT (batch) DO UPDATE SET max_usd = :usd, max_calls = :calls",
                {**batch, **most._asdict()},
            )
            self._lock()
            # Workers of a killed driver may still run for a moment.
            alive = [session for session, is_alive in self._holders() if is_alive]
            sql = (
                "DELETE FROM reservations WHERE batch = :batch AND session <> ALL(:alive)"
                " RETURNING session, reserved_calls, spent_usd, spent_calls"
            )
            costs = {**spent}
            stored = self._database.rows(sql, {**batch, "alive": alive})
            for session, reserved_calls, *last in stored:
                known = spent.get(session, NOTHING)
                went_on = reserved_calls or known != known.at_least(Amount(*last))
                if went_on and self._history.has_record(session):
                    costs[session] = self._history.session(session).cost.most
            rows = [(self._batch, session, "", 0.0, 0.0, *cost) for session, cost in costs.items()]
            columns = ("batch", "session", "process", *_COLUMNS)
            self._database.insert("reservations", columns, rows, ignore_existing=True)
            self._database.execute(_SUM_SQL, batch)

    def close(self) -> None:
        """Delete the ceiling: the batch has no rows left to run."""
        with self._database.transaction():
            for table in ("ceilings", "reservations"):
                sql = f"DELETE FROM {table} WHERE batch = :batch"  # noqa: S608 - our own tables
                self._database.execute(sql, {"batch": self._batch})

    def reserve(self, session: str, most: Amount, least_calls: float) -> tuple[float | None, bool]:
        """Reserve a session's worst cost; the last session takes the rest.

        Return the calls granted, or None; and whether another session may still release some.
        """
        self._database.beat()  # before others can see its reservation
        with self._database.transaction():
            left = self._lock()
            process, reserved, spent = self._read(session)
            if reserved.calls:
                if self._is_elsewhere(process):
                    return None, True  # another attempt at this session
                spent = self._free(session)
                left = self._lock()
            if most.usd <= left.usd and most.calls <= left.calls:
                self._write(session, own_process(), most, spent)
                return most.calls, True
            holders = [*self._holders()]
            calls = min(most.calls, max(left.calls, least_calls))
            if not holders and most.usd <= left.usd and calls <= left.calls:
                self._write(session, own_process(), Amount(most.usd, calls), spent)
                return calls, True
            for name in [name for name, is_alive in holders if not is_alive]:
                self._free(name)
        return None, bool(holders)

    def settle(self, session: str, cost: Amount) -> None:
        """Replace a session's reservation by its whole cost.

        It counts once, however often it is settled. The reservation of another running process
        stays unchanged.
        """
        with self._database.transaction():
            self._lock()
            process, reserved, spent = self._read(session)
            if not (reserved.calls and self._is_elsewhere(process)):
                process, reserved = own_process(), NOTHING
            self._write(session, process, reserved, spent.at_least(cost))

    def _free(self, session: str) -> Amount:
        """Replace a session's reservation by its cost in the history."""
        process, _, spent = self._read(session)
        if self._history.has_record(session):
            spent = spent.at_least(self._history.session(session).cost.most)
        self._write(session, process, NOTHING, spent)
        return spent

    def _is_elsewhere(self, process: str) -> bool:
        return self._database.find_process(f"@{process}") is not None

    def _lock(self) -> Amount:
        """Lock the ceiling for the transaction; return the remaining amount."""
        sql = (
            "SELECT max_usd - usd, max_calls - calls FROM ceilings WHERE batch = :batch FOR UPDATE"
        )
        rows = self._database.rows(sql, {"batch": self._batch})
        if not rows:
            problem = f"has no ceiling of the batch {self._batch}"
            raise HistoryError(self._database.location, problem, "run the command again")
        return Amount(*rows[0])

    def _read(self, session: str) -> tuple[str, Amount, Amount]:
        """Return a session's process, and the amounts reserved and spent."""
        sql = (
            f"SELECT process, {', '.join(_COLUMNS)} FROM reservations"  # noqa: S608 - our own
            " WHERE batch = :batch AND session = :session"
        )
        rows = self._database.rows(sql, {"batch": self._batch, "session": session})
        [(process, usd, calls, spent_usd, spent_calls)] = rows or [("", 0.0, 0.0, 0.0, 0.0)]
        return process, Amount(usd, calls), Amount(spent_usd, spent_calls)

    def _write(self, session: str, process: str, reservation: Amount, spent: Amount) -> None:
        """Replace a session's amounts, and add the difference to the ceiling."""
        own = {"batch": self._batch, "session": session, "process": process}
        values = dict(zip(_COLUMNS, (*reservation, *spent), strict=True))
        self._database.execute(_RESERVE_SQL, {**own, **values})

    def _holders(self) -> Iterator[tuple[str, bool]]:
        """Yield the sessions with a reservation, and whether their process is running."""
        living: dict[str, bool] = {own_process(): True}
        rows = self._database.rows(_HOLDERS_SQL, {"batch": self._batch})
        for process, name in rows:
            if process not in living:
                living[process] = self._is_elsewhere(process)
            yield name, living[process]
