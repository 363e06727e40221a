"""CPU of `witan tally --json` on 20,000 sessions, beside a bare reading and writing of its JSON.

The floors are processes that read the same lines and write the same results by `json` alone, and
by orjson alone, with nothing counted in between.
"""

import argparse
import json
import random
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

from harness import Row, show

FLOOR = """
import json, sys
for line in open(sys.argv[1]):
    json.loads(line)
with open(sys.argv[2]) as results:
    sys.stdout.write(json.dumps(json.load(results)))
"""

ORJSON_FLOOR = """
import orjson, sys
for line in open(sys.argv[1], "rb"):
    orjson.loads(line)
with open(sys.argv[2], "rb") as results:
    sys.stdout.buffer.write(orjson.dumps(orjson.loads(results.read())))
"""


def write_ballots(path: Path, n_sessions: int) -> None:
    """Write sessions of five reviewers that grade five candidates."""
    rng = random.Random(1)  # noqa: S311
    with path.open("w") as file:
        for session in range(n_sessions):
            quality = {name: rng.gauss(6, 1.5) for name in "abcde"}
            for reviewer in range(5):
                grades = {
                    name: max(1, min(10, round(mean + rng.gauss(0, 1))))
                    for name, mean in quality.items()
                }
                ballot = {"session": f"s{session}", "reviewer": f"r{reviewer}", "grades": grades}
                file.write(f"{json.dumps(ballot)}\n")


def cpu_of(command: list[str], output: Path) -> float:
    """Return the CPU seconds of a process, which must succeed."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with output.open("w") as file:
        subprocess.run(command, stdout=file, check=True)  # noqa: S603
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sessions", type=int, default=20_000)
    parser.add_argument("--times", type=int, default=3)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        ballots, results, copy = (Path(folder, name) for name in ("ballots.jsonl", "out", "copy"))
        write_ballots(ballots, given.sessions)
        tally = [sys.executable, "-m", "witan", "tally", str(ballots), "--json"]
        floors = [
            [sys.executable, "-c", floor, str(ballots), str(results)]
            for floor in (FLOOR, ORJSON_FLOOR)
        ]
        runs = [
            (cpu_of(tally, results), *(cpu_of(floor, copy) for floor in floors))
            for _ in range(given.times)
        ]
    seconds, bare, least = (min(column) for column in zip(*runs, strict=True))
    show(
        f"witan tally --json, {given.sessions:,} sessions of five reviewers and five candidates",
        [
            Row("CPU", f"{seconds:.1f} s", "≤ 2 s of 20,000", seconds <= 2),
            Row("ratio to json alone", f"{seconds / bare:.2f} × ({bare:.1f} s)", "–", None),
            Row("ratio to orjson alone", f"{seconds / least:.1f} × ({least:.2f} s)", "–", None),
        ],
    )


if __name__ == "__main__":
    main()
