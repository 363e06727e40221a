"""The rows of sessions as plain votes, and sums of them by key: what a hand count is made of."""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from witan.core.ballot import Kind
from witan.core.session_ballots import BallotEntry, Entries
from witan.core.stats.sums import Names
from witan.history.schema import bucket_of, code_of

KINDS: tuple[Kind, ...] = ("model", "human")


@dataclass
class Sheet:
    """Sums by key; a key that is never added to is in no row."""

    rows: dict[tuple[int, ...], defaultdict[str, float]] = field(default_factory=dict)

    def add(self, key: tuple[int, ...], **amounts: float) -> None:
        row = self.rows.setdefault(key, defaultdict(float))
        for name, amount in amounts.items():
            row[name] += amount

    def table(self, kind: Any, n_keys: int) -> Any:
        """The rows as a table of columns, of which the first so many are the key."""
        keys = sorted(self.rows)
        columns = {}
        for at, column in enumerate(fields(kind)):
            values = [
                key[at] if at < n_keys else self.rows[key].get(column.name, 0.0) for key in keys
            ]
            real = column.name in TOTALS
            columns[column.name] = np.array(values, dtype=np.float64 if real else np.int64)
        return kind(**columns)


TOTALS = {
    *("total", "squares", "z_total", "wins", "losses", "ties", "cost_usd", "seconds", "spread"),
    *("grades", "x", "y", "xx", "yy", "xy", "share_x", "share_y", "share_xx", "share_yy"),
    *("share_xy", "excess", "ll", "lx", "xx", "grade_ll", "grade_lx", "grade_xx", "within"),
    *(
        "variance",
        "confidence",
        "kendall_w",
        "agreement",
        "own_total",
        "own_excess",
        "first_excess",
    ),
    *("last_excess", "lxx", "rr", "rx", "rxx"),
}
"""Columns that hold sums of real numbers; every other one is a count or a code."""


@dataclass(frozen=True)
class Vote:
    """One candidate on one ballot."""

    ballot: int
    reviewer: str
    model: str
    own: bool
    share: float | None
    grade: float | None
    position: int
    shown: int
    chars: int | None


def names_of(entries: Iterable[Entries]) -> Names:
    """Every name that stands in these rows, under its code."""
    found: set[str] = set()
    for one in entries:
        found.update(line.model for line in one.standings)
        found.update(answer.model for answer in one.answers)
        for ballot in one.ballots:
            found.update((ballot.reviewer, *ballot.models, *ballot.criteria))
    return Names({code_of(name): name for name in sorted(found)})


def counted(entries: Iterable[Entries]) -> Iterator[tuple[int, Entries]]:
    """Sessions that nobody simulated, each with its bucket."""
    for one in entries:
        if not one.session.simulated:
            yield bucket_of(one.session.session), one


def ballots_of(one: Entries, kind: Kind) -> list[BallotEntry]:
    return [ballot for ballot in one.ballots if ballot.kind == kind]


def votes_of(one: Entries, kind: Kind) -> list[Vote]:
    """Every candidate of every ballot of one kind in one session."""
    return [
        Vote(at, b.reviewer, b.models[i], b.own[i], b.shares[i], b.grades[i], b.positions[i],
             len(b.models), b.chars[i])
        for at, b in enumerate(ballots_of(one, kind))
        for i in range(len(b.models))
    ]  # fmt: skip


def centred(votes: Iterable[Vote], what: str) -> list[tuple[float, float]]:
    """Log length and vote of each candidate on one ballot, less their means; own ones left out."""
    held = [
        (math.log(vote.chars), value)
        for vote in votes
        if not vote.own and vote.chars and (value := getattr(vote, what)) is not None
    ]
    if len(held) < 2:
        return []
    lengths, values = np.mean(held, axis=0)
    return [(length - lengths, value - values) for length, value in held]


def by_ballot(votes: Iterable[Vote]) -> list[list[Vote]]:
    sheets: defaultdict[int, list[Vote]] = defaultdict(list)
    for vote in votes:
        sheets[vote.ballot].append(vote)
    return list(sheets.values())
