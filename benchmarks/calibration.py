"""A check of stated probabilities: a thousand sessions, a hundred panels of three drawn from each.

Twelve reviewers grade five candidates. The floor is a loop that counts panels one by one, without
asking what the others are expected to find; it counts five hundred of them.
"""

import sys
from collections.abc import Iterator

import numpy as np
from harness import Row, cpu_seconds, show

from witan import Settings, tally
from witan.core.ballot import Ballot
from witan.stats import check_calibration

SESSIONS, REVIEWERS, DRAWS, SIZE = 1_000, 12, 100, 3
ONE_BY_ONE = 500
SECONDS, RATIO = 20.0, 10.0


def graded(rng: np.random.Generator) -> Iterator[Ballot]:
    """Whole grades around a quality that differs between candidates."""
    for session in range(SESSIONS):
        quality = 6 + 1.5 * rng.standard_normal(5)
        for reviewer in range(REVIEWERS):
            grades = np.clip(np.rint(quality + rng.standard_normal(5)), 1, 10).tolist()
            named = dict(zip("abcde", grades, strict=True))
            yield Ballot(f"judge {reviewer}", session=f"q{session}", grades=named)


def main() -> int:
    """Print the table; return 1 if a target is missed."""
    cast = [*graded(np.random.default_rng(0))]
    panels = [cast[start : start + SIZE] for start in range(0, ONE_BY_ONE * REVIEWERS, REVIEWERS)]
    settings = Settings(flips=False)

    def count_one_by_one() -> None:
        for panel in panels:
            _ = tally(panel, "auto", flips=False).standings[0].p_best

    check = cpu_seconds(
        lambda: check_calibration(cast, settings, reviewers=[SIZE], draws=DRAWS), times=1
    )
    each, loop = check / (SESSIONS * DRAWS), cpu_seconds(count_one_by_one) / ONE_BY_ONE
    rows = [
        Row("whole check", f"{check:.1f} s", f"≤ {SECONDS:.0f} s", check <= SECONDS),
        Row(
            f"per panel: {each * 1e6:.0f} µs, counted alone {loop * 1e6:.0f} µs",
            f"{loop / each:.1f} ×",
            f"≥ {RATIO:.0f} ×",
            loop / each >= RATIO,
        ),
    ]
    title = f"{SESSIONS:,} sessions, {DRAWS} panels of {SIZE} from each: CPU time"
    show(title, rows)
    return 0 if all(row.met for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
