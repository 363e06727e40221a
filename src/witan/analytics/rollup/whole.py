"""Sums over all of a history that are kept as they are, until something in it changes.

What an audit sums is too much to be kept day by day. It is kept as a whole, under the generation of
the history: a random word that every roll-up draws anew in the transaction that deletes marks. A
reader takes what is kept if it is of the generation that it sees, and if it sees no mark; so the
sums of a session that was written later are never missing, whoever wrote it.
"""

import io
import json
import zipfile
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import fields
from functools import cache
from importlib.resources import files
from secrets import token_hex
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np

from witan.analytics import engines
from witan.analytics.engines.reductions import Found
from witan.analytics.engines.sql_views import with_views
from witan.analytics.engines.texts import texts_of
from witan.core.window import Window
from witan.errors import HistoryError
from witan.history.database import Database
from witan.history.locks import lock_sums
from witan.version import __version__

__all__ = ["Summed", "keep_whole", "kept_whole", "new_generation", "summed"]

WAIT_SECONDS = 1.0
"""How long one waits for whoever writes; what cannot be kept is summed again another time."""

MOST = 16
"""Categories that are kept at most; one more, and it takes the place of all."""

Kinds = Sequence[type[Any]]


class Summed(NamedTuple):
    """Sums of a window that may be kept: what was asked, of which generation, and their bytes."""

    asked: str
    generation: str
    version: int
    body: bytes


def new_generation(database: Database) -> None:
    """Have nothing that is kept hold any more, within the caller's transaction."""
    database.execute("DELETE FROM wholes")
    database.insert("wholes", _COLUMNS, [("", token_hex(8), 0, b"")])


def kept_whole(database: Database, window: Window, kinds: Kinds) -> Found | None:
    """The tables that are kept of a window; None: there are none, or they hold no more."""
    if not _is_whole(window) or _is_changed(database):
        return None
    rows = database.rows(
        "SELECT body FROM wholes WHERE asked = :asked AND version = :version"
        " AND generation = :generation",
        {
            "asked": _asked(window, kinds),
            "version": _version(database, kinds),
            "generation": _generation(database),
        },
    )
    with suppress(ValueError, KeyError, OSError, zipfile.BadZipFile):
        for (body,) in rows:
            return _unpacked(body, kinds)
    return None


def summed(database: Database, window: Window, kinds: Kinds, found: Found) -> Summed | None:
    """What may be kept of tables that were summed in the snapshot under way; None: nothing.

    Nothing is kept of what has no rows: anybody may ask for categories that no session has.
    """
    if not kinds or not _is_whole(window) or _is_changed(database):
        return None
    if not any(len(found[kind].bucket) for kind in kinds):
        return None
    version, body = _version(database, kinds), _packed(found[kind] for kind in kinds)
    return Summed(_asked(window, kinds), _generation(database), version, body)


def keep_whole(database: Database, fresh: Iterable[Summed]) -> None:
    """Keep sums for whoever reads next; what cannot be written is left, or holds no more.

    A session that was forgotten since has left a mark, or its mark went with the generation: so
    nothing of it is written back.
    """
    with suppress(HistoryError):
        for one in fresh:
            with database.transaction(wait=WAIT_SECONDS):
                lock_sums(database)
                if _is_changed(database) or _generation(database) != one.generation:
                    continue
                database.execute("DELETE FROM wholes WHERE asked = :asked", {"asked": one.asked})
                of_all = {"of_all": _OF_ALL}
                sql = "FROM wholes WHERE asked <> '' AND asked NOT LIKE :of_all"
                [(n,)] = database.rows(f"SELECT COUNT(*) {sql}", of_all)
                if n >= MOST:
                    database.execute(f"DELETE {sql}", of_all)
                database.insert("wholes", _COLUMNS, [one])


_OF_ALL = "[null,%"
"""How `_asked` begins where it is of every category."""

_COLUMNS = ("asked", "generation", "version", "body")


def _is_whole(window: Window) -> bool:
    """Whether a window is of all time: another one would hardly be asked for again."""
    return window.since is None and window.until is None


def _is_changed(database: Database) -> bool:
    return bool(database.rows("SELECT 1 FROM changes LIMIT 1"))


def _generation(database: Database) -> str:
    rows = database.rows("SELECT generation FROM wholes WHERE asked = ''")
    return str(rows[0][0]) if rows else ""


def _asked(window: Window, kinds: Kinds) -> str:
    return json.dumps([window.category, *(kind.__name__ for kind in kinds)])


def _version(database: Database, kinds: Kinds) -> int:
    """A number that is another once anything is summed otherwise: by queries, or by our Python."""
    version = _sources()
    for text in texts_of(kinds):
        version = crc32(with_views(text.sql, database.dialect).encode(), version)
    names = [f"{kind.__name__}.{column.name}" for kind in kinds for column in fields(kind)]
    return crc32(" ".join(names).encode(), version) & 0x7FFFFFFF


@cache
def _sources() -> int:
    """A checksum of Witan's version, and of the sources that ask queries and fill tables."""
    version = crc32(__version__.encode())
    for file in sorted(files(engines).iterdir(), key=lambda file: file.name):
        if file.name.endswith(".py"):
            version = crc32(file.read_bytes(), version)
    return version


def _packed(tables: Iterable[Any]) -> bytes:
    held = io.BytesIO()
    columns = {
        f"{type(table).__name__}.{column.name}": getattr(table, column.name)
        for table in tables
        for column in fields(table)
    }
    np.savez_compressed(held, **columns)
    return held.getvalue()


def _unpacked(body: bytes, kinds: Kinds) -> Found:
    with np.load(io.BytesIO(body), allow_pickle=False) as held:
        return Found(
            kind(**{column.name: held[f"{kind.__name__}.{column.name}"] for column in fields(kind)})
            for kind in kinds
        )
