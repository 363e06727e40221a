"""A real PostgreSQL for tests: started once, on loopback, with an empty database for each."""

import atexit
import functools
import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

GUARDED = "guarded"
"""A user who needs a password, which is ``right``."""

_NUMBERS = count(1)

_EMPTY: list[str] = []
"""Databases that a test has left, emptied: making one takes longer than clearing it."""

_CONTROL: dict[str, list[object]] = {}
"""The commands that start and stop the server."""


def find_programs() -> Path | None:
    """The folder of initdb, in PATH or where Debian keeps it."""
    found = shutil.which("initdb")
    if found is not None:
        return Path(found).resolve().parent
    return max(Path("/usr/lib/postgresql").glob("*/bin"), default=None)


def as_postgres(*argv: object) -> list[str]:
    """PostgreSQL refuses to run as root: then its own user runs it."""
    as_user = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]
    return [*(as_user if os.geteuid() == 0 else []), *map(str, argv)]


def _run(*argv: object) -> None:
    done = subprocess.run(  # noqa: S603 - PostgreSQL's own programs
        as_postgres(*argv), capture_output=True, text=True, check=False, cwd="/"
    )
    if done.returncode:
        raise RuntimeError(f"{argv[0]}: {done.stdout}\n{done.stderr}")


@functools.cache
def server() -> str | None:
    """The URL of a running server, without a database; None: there is no PostgreSQL here."""
    programs = find_programs()
    if programs is None:
        return None
    folder = Path(tempfile.mkdtemp(prefix="witan-postgresql-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    if os.geteuid() == 0:
        shutil.chown(folder, "postgres", "postgres")
    data = folder / "data"
    _run(programs / "initdb", "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "-N")
    access = data / "pg_hba.conf"
    line = f"host all {GUARDED} 127.0.0.1/32 scram-sha-256\n"
    access.write_text(line + access.read_text(encoding="utf-8"), encoding="utf-8")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    # Clients are killed here, never the server: what it does on a power cut is its own to test.
    quick = "-c fsync=off -c full_page_writes=off -c shared_buffers=32MB -c max_connections=120"
    settings = f"-h 127.0.0.1 -p {port} -k {folder} {quick}"
    control = [programs / "pg_ctl", "-D", data, "-l", folder / "log"]
    start = [*control, "-w", "-o", settings, "start"]
    _run(*start)
    _CONTROL.update(start=start, stop=[*control, "-w", "-m", "fast", "stop"])
    atexit.register(_run, *control, "-m", "immediate", "stop")
    url = f"postgresql://postgres@127.0.0.1:{port}"
    _say(f"{url}/postgres", f"CREATE ROLE {GUARDED} LOGIN PASSWORD 'right'")
    return url


def restart(seconds: float) -> None:
    """Stop the server, which ends every connection, and start it after so many seconds."""
    _run(*_CONTROL["stop"])
    time.sleep(seconds)
    _run(*_CONTROL["start"])


CLEAR = """
DO $$
DECLARE each record;
BEGIN
    PERFORM pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE datname = current_database() AND pid <> pg_backend_pid();
    FOR each IN SELECT nspname FROM pg_namespace
        WHERE nspname <> 'information_schema' AND nspname !~ '^pg_'
    LOOP
        EXECUTE format('DROP SCHEMA %I CASCADE', each.nspname);
    END LOOP;
    CREATE SCHEMA public;
    GRANT USAGE ON SCHEMA public TO PUBLIC;
END $$
"""
"""Ends every connection but its own, and drops whatever a test made."""


def _say(url: str, statement: str) -> None:
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(statement.encode())


def database_of() -> Iterator[str]:
    """Hand out the URL of an empty database, and empty it again for the next test."""
    pytest.importorskip("psycopg", reason="psycopg is not installed")
    base = server()
    if base is None:
        pytest.skip("there is no initdb, in PATH or in /usr/lib/postgresql: no PostgreSQL")
    if not _EMPTY:
        _EMPTY.append(f"witan_{os.getpid()}_{next(_NUMBERS)}")
        _say(f"{base}/postgres", f"CREATE DATABASE {_EMPTY[-1]}")
    name = _EMPTY.pop()
    yield f"{base}/{name}"
    _say(f"{base}/{name}", CLEAR)
    _EMPTY.append(name)


@pytest.fixture
def postgresql_url() -> Iterator[str]:
    """The URL of an empty database of a real PostgreSQL."""
    yield from database_of()
