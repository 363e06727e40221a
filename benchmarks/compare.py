"""`witan compare` of many sessions: beside a tally under each of its rules, and written in full.

Whole processes in turn, their start included; the tallies read the ballots once.
"""

import argparse
import tempfile
from pathlib import Path

from harness import Row, show
from startup import cpu_milliseconds, write_ballots

SECONDS = 1.5
RUNS = 4
TALLIES = """
import sys
from witan.core.comparison import compare_rules
from witan.core.settings import Settings
from witan.core.tally import tally_sessions
from witan.files import read_ballots

ballots = list(read_ballots(sys.argv[1]))
for rule in compare_rules(ballots[:5], Settings()).rules:
    for outcome in tally_sessions(ballots, Settings.of(rule)):
        outcome.clear_leader
"""


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sessions", type=int, default=1_000)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="witan-bench-") as folder:
        ballots = Path(folder, "ballots.jsonl")
        write_ballots(ballots, given.sessions)
        compare = ["-m", "witan", "compare", str(ballots)]
        spent, tallies = cpu_milliseconds(compare, ["-c", TALLIES, str(ballots)], RUNS)
        in_full, start = cpu_milliseconds([*compare, "--json"], ["-m", "witan", "--help"], RUNS)
    show(
        f"witan compare of {given.sessions:,} sessions × 5 × 5, CPU time of the whole process",
        [
            Row("all rules", f"{spent / 1000:.2f} s", f"≤ {SECONDS:g} s", spent / 1000 <= SECONDS),
            Row("of that, the start", f"{start / 1000:.2f} s", "—", None),
            Row("a tally under each rule", f"{tallies / 1000:.2f} s", "—", None),
            Row("all rules / tallies", f"{spent / tallies:.2f} ×", "< 1 ×", spent < tallies),
            Row("with every outcome, --json", f"{in_full / 1000:.2f} s", "—", None),
        ],
    )


if __name__ == "__main__":
    main()
