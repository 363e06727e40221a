"""What it costs to start: whole processes, in turn with one that only imports numpy."""

import json
import os
import resource
import subprocess
import sys
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
from harness import Row, show
from history_writes import session

from witan.history import History

BALLOTS = Path(__file__).parents[1] / "examples" / "ballots.jsonl"
RUNS = 9
SESSIONS = 300
LARGE = 20_000
SEATS = "abcde"


def cpu_milliseconds(
    arguments: list[str], beside: list[str], runs: int = RUNS
) -> tuple[float, float]:
    """Return the least CPU time of a whole process, and of one beside it, in turn."""
    taken = [(_run(arguments), _run(beside)) for _ in range(runs + 1)][1:]
    own, other = map(min, zip(*taken, strict=True))
    return 1000 * own, 1000 * other


def _run(arguments: list[str]) -> float:
    """Run a process; return its CPU seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(  # noqa: S603 - our own interpreter with our own arguments
        [sys.executable, *arguments],
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=_environment(),
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _environment() -> dict[str, str]:
    """Leave out whatever configures a council of this machine."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("WITAN_")}
    return {**own, "XDG_CONFIG_HOME": os.devnull}


def write_ballots(path: Path, sessions: int, days: int = 0) -> None:
    """Write graded ballots of five reviewers on five candidates; spread sessions over days."""
    rng = np.random.default_rng(1)
    grades = rng.normal(6, 1, (sessions, 1, 5)) + rng.normal(0, 1, (sessions, 5, 5))
    whole = np.clip(np.rint(grades), 1, 10).astype(int).tolist()
    now = datetime.now(UTC)
    with path.open("w") as file:
        for number, ballots in enumerate(whole):
            at = now - timedelta(days=days * (1 - number / sessions))
            for reviewer, row in zip(SEATS, ballots, strict=True):
                line = {
                    "session": f"s{number}",
                    "reviewer": reviewer,
                    "grades": dict(zip(SEATS, row, strict=True)),
                    **({"at": at.isoformat()} if days else {}),
                }
                file.write(f"{json.dumps(line)}\n")


def make_history(folder: Path, sessions: int) -> str:
    """Make a history of imported sessions, and one of a council."""
    ballots, history = folder / f"{sessions}.jsonl", folder / f"{sessions}.sqlite"
    write_ballots(ballots, sessions)
    _run(["-m", "witan", "import", str(ballots), "--history", str(history)])
    with History.open(history) as place:
        recording = place.recording()
        for event in session("council"):
            recording(event)
        recording.flush()
    return str(history)


def main() -> None:
    """Print one line per way to start."""
    numpy = ["-c", "import numpy"]
    witan = ["-m", "witan"]
    with tempfile.TemporaryDirectory() as name:
        small, large = (make_history(Path(name), n) for n in (SESSIONS, LARGE))
        rows = []
        for what, arguments, most in (
            ("import witan", ["-c", "import witan"], 60.0),
            ("witan --help", [*witan, "--help"], 120.0),
            ("witan tally, one session", [*witan, "tally", str(BALLOTS)], 400.0),
            ("witan sessions", [*witan, "sessions", "--history", small], 350.0),
            ("witan show", [*witan, "show", "council", "--history", small], 350.0),
            ("witan show, imported", [*witan, "show", "s7", "--history", small], 350.0),
            ("witan leaderboard", [*witan, "leaderboard", "--history", small], 600.0),
            ("witan sessions, of 20,000", [*witan, "sessions", "--history", large], 350.0),
            ("witan leaderboard, of 20,000", [*witan, "leaderboard", "--history", large], 600.0),
            ("witan audit", [*witan, "audit", "--history", small], None),
            ("witan export", [*witan, "export", "council", "--history", small], None),
            ("witan plan", [*witan, "plan", "--profile", "demo", "Why?"], None),
            ("witan profiles", [*witan, "profiles"], None),
            ("witan rules", [*witan, "rules"], None),
        ):
            spent, beside = cpu_milliseconds(arguments, numpy)
            figure = f"{spent:.0f} ms, {spent / beside:.1f} × numpy"
            target = "-" if most is None else f"≤ {most:.0f} ms"
            rows.append(Row(what, figure, target, None if most is None else spent <= most))
    show("start-up, CPU time of the whole process, beside `import numpy` alone", rows)


if __name__ == "__main__":
    main()
