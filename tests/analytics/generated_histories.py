"""Random histories with every kind of row, and comparison of tables of sums."""

import random
from collections.abc import Iterable, Sequence
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from witan.core.ballot import Ballot
from witan.core.session_ballots import (
    AnswerEntry,
    BallotEntry,
    Entries,
    MatchupEntry,
    SessionEntry,
    StandingEntry,
)
from witan.core.stats.leaderboard import Window
from witan.history.database import Database
from witan.history.rows import Rows, SessionRow, insert_sessions

START = datetime(2026, 3, 1, 21, tzinfo=UTC)
MODELS = tuple(f"vendor:model-{letter}" for letter in "abcdef")
PEOPLE = ("ada", "björn")
CRITERIA = ("accuracy", "conciseness", "clarity")
SHARES = (None, 0.0, 1 / 3, 0.5, 0.5, 2 / 3, 1.0)
GRADES = (None, 1.0, 4.0, 7.35, 7.35, 9.0)
CHARS = (None, 0, 80, 400, 400, 2500)
P_BEATS = (None, 0.0, 0.13, 0.5, 0.55, 0.8, 0.95, 1.0)

RUNNING = Entries(
    SessionEntry("running", START),
    (StandingEntry("model", "borda", MODELS[0], 1.0, 1.0, 1, 1, 1.0),),
    (MatchupEntry("model", MODELS[:2], (1.0,), (0.0,), (0.0,), (0.9,)),),
    (BallotEntry(MODELS[0], "model", MODELS[1:3], (False, False), (1.0, 0.0), (9.0, 4.0),
                 (1, 2), (400, 80)),),
    (AnswerEntry("seat 0", MODELS[0], 400, 1.0, 0.5),),
)  # fmt: skip
"""Rows of a running session, which no sum may include."""

KEYS = {
    "StandingSums": 2,
    "MatchupSums": 3,
    "AnswerSums": 2,
    "BallotSums": 3,
    "VoteSums": 5,
    "ReviewerSums": 3,
    "PositionSums": 5,
    "LengthSums": 3,
    "UnitSums": 3,
    "CriterionSums": 2,
    "GradingSums": 4,
    "HumanSums": 3,
    "CalibrationSums": 2,
    "PanelSums": 1,
}
"""How many of a table's first columns are its key."""


def history(seed: int, n_sessions: int) -> list[Entries]:
    """Sessions with ties, partial ballots, abstentions, own votes, two seats of a model, people."""
    rng = random.Random(seed)  # noqa: S311
    return [session(rng, number) for number in range(n_sessions)]


def session(rng: random.Random, number: int) -> Entries:
    name = f"session {number}"
    seats = rng.choices(MODELS, k=rng.randint(2, 5))
    chars = [rng.choice(CHARS) for _ in seats]
    kinds = ["model", "human"] if rng.random() < 0.6 else ["model"]
    ballots = [
        random_ballot(rng, reviewer, "model", seats, chars) for reviewer in dict.fromkeys(seats)
    ]
    if rng.random() < 0.3:
        ballots += [
            random_comparison(rng, rng.choice(seats), "model", seats, chars) for _ in range(3)
        ]
    if rng.random() < 0.3:
        # A ballot that a later one replaces, or of weight zero: it is not counted.
        ballots.insert(0, BallotEntry(seats[0], "model", repaired=True, weight=0.0))
    if "human" in kinds:
        ballots += [random_ballot(rng, person, "human", seats, chars) for person in PEOPLE]
        ballots += [random_comparison(rng, PEOPLE[0], "human", seats, chars) for _ in range(2)]
    models = tuple(sorted(set(seats)))
    return Entries(
        SessionEntry(
            name,
            START + timedelta(hours=7 * number, microseconds=number),
            category=rng.choice([None, "coding", "creative writing"]),
            simulated=rng.random() < 0.15,
            kendall_w=rng.choice([None, 0.25, 0.9]),
            agreement=rng.choice([None, 0.5, 0.99]),
        ),
        tuple(
            standing(rng, kind, rule, model)
            for kind in kinds
            for rule in ("borda", "mean_rank")
            for model in models
        ),
        tuple(matchup(rng, kind, models) for kind in kinds),
        tuple(ballots),
        tuple(
            AnswerEntry(f"seat {at}", model, chars[at], rng.choice([None, 0.5, 3.25]),
                        rng.choice([None, 0.0, 0.0125]), failed=rng.random() < 0.2)
            for at, model in enumerate(seats)
        ),
    )  # fmt: skip


def standing(rng: random.Random, kind: Any, rule: str, model: str) -> StandingEntry:
    score = rng.choice([None, rng.random(), 0.5])
    z = rng.choice([None, rng.gauss(0, 1)])
    offered = rng.randint(1, 6)
    return StandingEntry(kind, rule, model, score, z, rng.randint(0, offered), offered, 1 / 3)


def matchup(rng: random.Random, kind: Any, models: Sequence[str]) -> MatchupEntry:
    pairs = list(combinations(models, 2))

    def weights() -> tuple[float, ...]:
        return tuple(rng.choice([0.0, 1.0, 2.0, 0.25]) for _ in pairs)

    p_beats = tuple(rng.choice(P_BEATS) for _ in pairs)
    return MatchupEntry(kind, tuple(models), weights(), weights(), weights(), p_beats)


def random_ballot(
    rng: random.Random, reviewer: str, kind: Any, seats: Sequence[str], chars: Sequence[int | None]
) -> BallotEntry:
    """One whole ballot: perhaps an abstention, perhaps with the reviewer's own candidates on it."""
    seats_shown = [at for at in range(len(seats)) if seats[at] != reviewer or rng.random() < 0.4]
    if rng.random() < 0.1 or not seats_shown:
        return BallotEntry(reviewer, kind, abstained=True)
    places = rng.sample(range(1, len(seats_shown) + 1), len(seats_shown))
    criteria = rng.choice([(), CRITERIA, CRITERIA[:1], CRITERIA[::-1]])
    compared = rng.randint(0, 3)
    return BallotEntry(
        reviewer,
        kind,
        models=tuple(seats[at] for at in seats_shown),
        own=tuple(seats[at] == reviewer for at in seats_shown),
        shares=tuple(rng.choice(SHARES) for _ in seats_shown),
        grades=tuple(rng.choice(GRADES) for _ in seats_shown),
        positions=tuple(place if rng.random() < 0.9 else 0 for place in places),
        chars=tuple(chars[at] for at in seats_shown),
        repaired=rng.random() < 0.2,
        kept=rng.randint(0, compared),
        compared=compared,
        weight=rng.choice([1.0, 0.5]),
        criteria=criteria,
        criterion_grades=tuple(tuple(rng.choice(GRADES) for _ in seats_shown) for _ in criteria),
    )


def random_comparison(
    rng: random.Random, reviewer: str, kind: Any, seats: Sequence[str], chars: Sequence[int | None]
) -> BallotEntry:
    """One comparison of two candidates."""
    at = rng.sample(range(len(seats)), 2)
    return BallotEntry(
        reviewer,
        kind,
        models=tuple(seats[i] for i in at),
        own=tuple(seats[i] == reviewer for i in at),
        shares=rng.choice([(1.0, 0.0), (0.0, 1.0), (0.5, 0.5)]),
        grades=(None, None),
        positions=(1, 2),
        chars=tuple(chars[i] for i in at),
        paired=True,
    )


def store(database: Database, entries: Iterable[Entries]) -> None:
    """Write rows into a history as counting its sessions does."""
    rows, sessions = Rows(), []
    for one in entries:
        entry = one.session
        ballots = [
            Ballot(ballot.reviewer, session=entry.session, abstained=True) for ballot in one.ballots
        ]
        rows.add(entry.session, one, ballots, {})
        sessions.append(
            SessionRow(entry.session, entry.at, entry.category, entry.simulated, "test", "complete",
                       "?", entry=entry)
        )  # fmt: skip
    # A running session: it is in no sum, whatever rows it has.
    running = SessionRow("running", START, None, False, "test", "running", "?", holder="somebody")
    rows.add("running", RUNNING, [Ballot("vendor:model-a", session="running", abstained=True)], {})
    with database.transaction():
        insert_sessions(database, [*sessions, running])
        rows.write(database)


def merge(lake: Path, folder: Path) -> None:
    """Rewrite a lake with one file per table, the last day first."""
    import pyarrow
    import pyarrow.parquet

    for table in lake.iterdir():
        paths = sorted(table.rglob("*.parquet"), reverse=True)
        if not paths:
            continue
        rows = pyarrow.concat_tables([pyarrow.parquet.ParquetFile(path).read() for path in paths])
        target = folder / table.name / ("" if table.name == "names" else "day=2026-01-01")
        target.mkdir(parents=True)
        pyarrow.parquet.write_table(rows, target / "all.parquet", row_group_size=50)


def sessions_within(entries: Iterable[Entries], window: Window) -> list[Entries]:
    """The sessions of a window, by the definition of its dataclass."""
    return [
        one
        for one in entries
        if (window.since is None or one.session.at >= window.since)
        and (window.until is None or one.session.at < window.until)
        and (window.category is None or one.session.category == window.category)
    ]


def sum_by_key(table: Any) -> dict[tuple[int, ...], dict[str, float]]:
    """Sum the rows of each key; drop rows of zeros."""
    names = [column.name for column in fields(table)]
    n_keys = KEYS[type(table).__name__]
    sums_of_key: dict[tuple[int, ...], dict[str, float]] = {}
    for row in zip(*(getattr(table, name).tolist() for name in names), strict=True):
        sums = sums_of_key.setdefault(row[:n_keys], dict.fromkeys(names[n_keys:], 0))
        for name, value in zip(names[n_keys:], row[n_keys:], strict=True):
            sums[name] += value
    return {key: sums for key, sums in sums_of_key.items() if any(sums.values())}


def assert_same(actual: Any, expected: Any) -> None:
    """Assert that counts are identical and sums agree to 1e-9 of the largest in their column."""
    assert type(actual) is type(expected)
    here, there = sum_by_key(actual), sum_by_key(expected)
    assert sorted(here) == sorted(there)
    for column in fields(actual)[KEYS[type(actual).__name__] :]:
        a = np.array([here[key][column.name] for key in sorted(here)])
        b = np.array([there[key][column.name] for key in sorted(here)])
        if getattr(actual, column.name).dtype == np.int64:
            np.testing.assert_array_equal(a, b, err_msg=column.name)
        else:
            largest = max(np.abs(b).max(initial=0.0), 1e-3)
            np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12 * largest, err_msg=column.name)
