"""Random histories, and their cached sums beside the sums of all rows."""

import os
import signal
from contextlib import contextmanager
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from math import isclose

from crowd import exit_status, fork

from elections import ballots
from witan.analytics.sums import CachedEngine, WindowSums
from witan.analytics.views import SqlEngine
from witan.core.ballot import Ballot
from witan.core.stats.leaderboard import ALWAYS, Window
from witan.core.stats.sums import AnswerSums, BallotSums, MatchupSums, ReviewerSums, StandingSums
from witan.history import SessionImport

START = datetime(2025, 11, 3, tzinfo=UTC)
MODELS = "abcdef"
CATEGORIES = ("coding", "creative writing", None)
RULES = ("borda", "mean_rank")
KEYS = {StandingSums: 2, MatchupSums: 3, AnswerSums: 2, BallotSums: 3, ReviewerSums: 3}
KINDS = tuple(KEYS)
A_DAY = timedelta(days=1)


def imported(draw, name, at, category=None, *, simulated=False):
    """A session of a few models who rank each other, ties and gaps included."""
    seats = draw.sample(MODELS, draw.randint(2, 4))
    lines = [f"{seat}: {order(draw, [s for s in seats if s != seat])}" for seat in seats]
    cast = tuple(ballots(*lines, session=name))
    return SessionImport(
        name, at, "Which?", category, cast, dict.fromkeys(seats, "text"), simulated=simulated
    )


def order(draw, seats):
    draw.shuffle(seats)
    return "".join(
        seat if k == 0 else draw.choice((" > ", " = ")) + seat for k, seat in enumerate(seats)
    )


def add(history, draw, n, *, days=60, prefix="s"):
    """Add sessions at any times of so many days; return their names."""
    new = [
        imported(
            draw,
            f"{prefix}{draw.getrandbits(60):x}",
            START + timedelta(seconds=draw.randrange(days * 86_400)),
            draw.choice(CATEGORIES),
            simulated=draw.random() < 0.1,
        )
        for _ in range(n)
    ]
    history.add(new, "file", f"{draw.getrandbits(90):x}")
    return [one.session for one in new]


def human(history, draw, session):
    """A person's ballot on a session."""
    seats = list(history.answers(session))
    [told] = ballots(f"x: {order(draw, seats)}")
    return Ballot(f"person {draw.getrandbits(40)}", told.groups, session=session, kind="human")


def tables(sums):
    for kind, rule in enumerate(RULES):
        found = sums.tables(*KINDS, rule=rule, human=kind)
        yield from (found[table] for table in KINDS)


def cached_sums(history, window=ALWAYS):
    """The sums of a window, from the cache where possible; new ones are stored."""
    return WindowSums(CachedEngine(history.database), window)


def stored_sums(history):
    """The stored sums: span and query."""
    return set(history.database.rows("SELECT span, query FROM cached_sums"))


def by_key(table):
    """Sums by key, added up over the rows of a key."""
    names = [column.name for column in fields(table)]
    n, held = KEYS[type(table)], {}
    for row in zip(*(getattr(table, name).tolist() for name in names), strict=True):
        sums = held.setdefault(row[:n], [0] * len(row[n:]))
        held[row[:n]] = [a + b for a, b in zip(sums, row[n:], strict=True)]
    return held


def assert_same(history, *windows):
    """Compare cached sums with those of all rows: counts exactly, sums to 1e-9."""
    for window in windows or (ALWAYS,):
        kept = cached_sums(history, window)
        direct = WindowSums(SqlEngine(history.database), window)
        for kind, rule in enumerate(RULES):
            assert kept.coverage(rule, human=kind) == direct.coverage(rule, human=kind)
        for found, expected in zip(tables(kept), tables(direct), strict=True):
            here, there = by_key(found), by_key(expected)
            assert here.keys() == there.keys(), (window, type(found))
            for key, sums in here.items():
                for a, b in zip(sums, there[key], strict=True):
                    assert a == b or (isinstance(b, float) and isclose(a, b, abs_tol=1e-12))


def windows(draw, n):
    """Windows of any length, at whole days and between them, open at an end or not."""
    for _ in range(n):
        moments = sorted(
            START + timedelta(days=draw.randrange(-5, 65), seconds=draw.choice((0, 41_003)))
            for _ in range(2)
        )
        since, until = (draw.choice((moment, moment, None)) for moment in moments)
        if since is None or until is None or since < until:
            yield Window(since, until, draw.choice((None, None, "coding")))


def standings(history, window=ALWAYS):
    return by_key(cached_sums(history, window).table(StandingSums, rule="borda"))


@contextmanager
def child(work):
    """A process that works until the block ends, and is then killed."""
    process = fork(work)
    try:
        yield process
    finally:
        os.kill(process, signal.SIGKILL)
        exit_status(process)
