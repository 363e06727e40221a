"""CPU of counting one session alone: its outcome, its rows for leaderboards, a text's verdict.

Run `python benchmarks/one_session.py`. Reviewers grade five criteria; of five or twenty candidates
each reviewer grades all but its own. The cheapest of several rounds counts, as other load only adds
to one.
"""

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
from harness import Row, show

from witan.core.ballot import Ballot
from witan.core.entry_builder import entries_of
from witan.core.rubric import RUBRICS
from witan.core.scale import Scale
from witan.core.session_ballots import SessionBallots
from witan.core.settings import Settings
from witan.core.tally import tally_sessions
from witan.core.verdict import judge_texts

AT = datetime(2026, 11, 1, tzinfo=UTC)
ROUNDS, TIMES, SESSIONS = 9, 40, 20


def cast(n_reviewers: int, n_candidates: int, rng: np.random.Generator) -> tuple[Ballot, ...]:
    """Ballots of one session."""
    criteria = [criterion.name for criterion in RUBRICS["general"].criteria]
    candidates = tuple(f"m{seat}" for seat in range(n_candidates))
    reviewers = candidates if n_candidates > 1 else [f"juror {n}" for n in range(n_reviewers)]
    return tuple(
        Ballot(
            reviewer,
            grades={
                name: {c: int(rng.integers(3, 10)) for c in criteria}
                for name in candidates
                if name != reviewer
            },
            session="s",
            candidates=candidates,
            scale=Scale(),
        )
        for reviewer in reviewers
    )


def milliseconds(
    call: Callable[[tuple[Ballot, ...]], object], of: Sequence[tuple[Ballot, ...]]
) -> float:
    """Least CPU of one call over the rounds."""
    seconds = []
    for _ in range(ROUNDS):
        before = time.process_time()
        for number in range(TIMES):
            call(of[number % len(of)])
        seconds.append((time.process_time() - before) / TIMES)
    return 1e3 * min(seconds)


def rows(n_reviewers: int, n_candidates: int) -> list[Row]:
    """Measure sessions of one shape."""
    rng = np.random.default_rng(2026)
    sessions = [cast(n_reviewers, n_candidates, rng) for _ in range(SESSIONS)]
    settings = replace(Settings(), flips=n_candidates > 1)
    outcomes = {id(ballots): next(tally_sessions(ballots, settings)) for ballots in sessions}
    calls: dict[str, Callable[[tuple[Ballot, ...]], object]] = {
        "outcome": lambda ballots: next(tally_sessions(ballots, settings)),
        "rows": lambda ballots: entries_of(
            SessionBallots("s", AT, ballots, outcome=outcomes[id(ballots)]), settings=settings
        ),
    }
    if n_candidates == 1:
        calls["verdict"] = lambda ballots: judge_texts(
            ballots, outcomes[id(ballots)], settings, pass_mark=6.0
        )
    shape = f"{n_reviewers} reviewers, {n_candidates} candidate{'s' if n_candidates > 1 else ''}"
    return [
        Row(f"{name}, {shape}", f"{milliseconds(call, sessions):.2f} ms", "–", None)
        for name, call in calls.items()
    ]


def main() -> int:
    """Print the figures."""
    show("One session counted alone, CPU", [*rows(3, 1), *rows(5, 5), *rows(20, 20)])
    return 0


if __name__ == "__main__":
    sys.exit(main())
