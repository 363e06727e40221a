"""What is said of one session in many places of a file, brought together."""

import pickle
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import fields, replace
from heapq import merge
from itertools import groupby
from operator import attrgetter, itemgetter
from typing import Any

from witan.core.ballot import Ballot
from witan.deliberation.imported_session import Imported

__all__ = ["gathered"]

MOST_HELD = 200_000_000
"""Bytes, as far as they can be told, that are held in memory; beyond, all is laid aside on disk."""

_PIECE_BYTES = 1_500
"""What a piece takes without the texts of its answers, about."""

# The values of a dataclass in order: they are packed three times as fast as the dataclass itself.
_OF_PIECE = attrgetter(*(field.name for field in fields(Imported)))
_OF_BALLOT = attrgetter(*(field.name for field in fields(Ballot)))
_BALLOTS = [field.name for field in fields(Imported)].index("ballots")


def gathered(pieces: Iterable[Imported], most: int = MOST_HELD) -> Iterator[Imported]:
    """One session out of all its pieces, in the order in which sessions are first named.

    Of what can be said once, the first word counts; the earliest time; of two texts of one
    answer the last.
    """
    numbers: dict[str, int] = {}
    held: list[tuple[int, Imported]] = []
    size = 0
    with closing(sqlite3.connect("")) as aside:  # without a name, it lives in a temporary file
        aside.execute("CREATE TABLE pieces (number INTEGER, place INTEGER PRIMARY KEY, body BLOB)")
        for piece in pieces:
            held.append((numbers.setdefault(piece.session, len(numbers)), piece))
            size += _PIECE_BYTES + sum(map(len, piece.answers.values()))
            if size >= most:
                _lay_aside(aside, held)
                held, size = [], 0
        held.sort(key=itemgetter(0))
        rows = merge(_taken_up(aside), held, key=itemgetter(0))
        for _, group in groupby(rows, key=itemgetter(0)):
            yield _whole([piece for _, piece in group])


def _lay_aside(aside: sqlite3.Connection, held: list[tuple[int, Imported]]) -> None:
    rows = ((number, pickle.dumps(_packed(piece), -1)) for number, piece in held)
    aside.executemany("INSERT INTO pieces (number, body) VALUES (?, ?)", rows)


def _taken_up(aside: sqlite3.Connection) -> Iterator[tuple[int, Imported]]:
    rows: Iterator[Any] = aside.execute("SELECT number, body FROM pieces ORDER BY number, place")
    # They were pickled above, into a file that nobody else can name.
    return ((number, _unpacked(pickle.loads(body))) for number, body in rows)  # noqa: S301


def _packed(piece: Imported) -> list[Any]:
    values = list(_OF_PIECE(piece))
    values[_BALLOTS] = [_OF_BALLOT(ballot) for ballot in piece.ballots]
    return values


def _unpacked(values: list[Any]) -> Imported:
    values[_BALLOTS] = tuple(Ballot(*held) for held in values[_BALLOTS])
    return Imported(*values)


def _whole(pieces: list[Imported]) -> Imported:
    first = pieces[0]
    if len(pieces) == 1:
        return first
    times = [piece.at for piece in pieces if piece.at is not None]
    return replace(
        first,
        at=min(times, default=None),
        question=next((piece.question for piece in pieces if piece.question), ""),
        category=next((p.category for p in pieces if p.category is not None), None),
        ballots=tuple(ballot for piece in pieces for ballot in piece.ballots),
        answers={c: text for piece in pieces for c, text in piece.answers.items()},
        lengths={c: length for piece in pieces for c, length in piece.lengths.items()},
        closing=next((p.closing for p in pieces if p.closing is not None), None),
        simulated=any(piece.simulated for piece in pieces),
    )
