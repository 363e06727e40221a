"""The import of a file of ballots into a new history, beside the least that it could take.

The floor parses every line as JSON, and inserts the rows that the import left into tables of the
same schema, by `executemany` in one transaction. Both are CPU of whole processes, in turn.
"""

import argparse
import json
import os
import resource
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path

from harness import Row, show
from startup import write_ballots

SESSIONS = 20_000
MOST_SECONDS = 4.0
ROUNDS = 3


def floor(ballots: Path, imported: Path, copy: Path) -> float:
    """Parse the lines, and insert the rows of a history into a copy; return CPU seconds."""
    source, target = sqlite3.connect(imported), sqlite3.connect(copy)
    tables = dict(
        source.execute(
            "SELECT name, sql FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%'"
        )
    )
    for sql in tables.values():
        target.execute(sql)
    for (sql,) in source.execute("SELECT sql FROM sqlite_master WHERE type = 'index'").fetchall():
        if sql is not None:
            target.execute(sql)
    target.execute("PRAGMA journal_mode = wal")
    rows = {table: source.execute(f"SELECT * FROM {table}").fetchall() for table in tables}  # noqa: S608
    begin = os.times()
    with ballots.open() as file:
        for line in file:
            json.loads(line)
    with target:
        for table, values in rows.items():
            if values:
                cells = ", ".join("?" * len(values[0]))
                target.executemany(f"INSERT INTO {table} VALUES ({cells})", values)  # noqa: S608
    end = os.times()
    target.close()
    return end.user + end.system - begin.user - begin.system


def run_import(ballots: Path, history: Path) -> float:
    """Import the ballots in a process of its own; return its CPU seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-m", "witan", "import", str(ballots), "--history", str(history)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)  # noqa: S603 - ourselves
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """Print the CPU of an import, and its ratio to the floor."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sessions", type=int, default=SESSIONS)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        ballots = folder / "ballots.jsonl"
        write_ballots(ballots, given.sessions)
        taken = []
        for number in range(ROUNDS):
            history = folder / f"{number}.sqlite"
            spent = run_import(ballots, history)
            taken.append((spent, floor(ballots, history, folder / f"{number}-copy.sqlite")))
        spent, least = map(min, zip(*taken, strict=True))
    most = MOST_SECONDS * given.sessions / SESSIONS
    row = Row(
        "witan import, 5 ballots of 5 grades each",
        f"{spent:.2f} s, {spent / least:.1f} × the floor",
        f"≤ {most:.1f} s",
        spent <= most,
    )
    show(f"import of {given.sessions:,} sessions into a new SQLite history", [row])


if __name__ == "__main__":
    main()
