"""Reports of sessions with hundreds of candidates."""

import csv
from pathlib import Path

import pytest

from processes import run_python

N_CANDIDATES = 250
MEMORY = 1 << 30


@pytest.fixture(scope="module")
def crowded(tmp_path_factory) -> Path:
    """A file of two sessions, each with grades of 250 candidates by two judges."""
    path = tmp_path_factory.mktemp("crowded") / "grades.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("session", "reviewer", "candidate", "score"))
        writer.writerows(
            (session, reviewer, f"model-{number}", 1 + (number * step + len(session)) % 10)
            for session in ("one", "another")
            for reviewer, step in (("ada", 3), ("bo", 7))
            for number in range(N_CANDIDATES)
        )
    return path


@pytest.mark.slow
@pytest.mark.parametrize("command", ["leaderboard", "audit"])
def test_pairs_of_hundreds_of_candidates_fit_memory(command, crowded):
    """With the texts of all, 62,250 pairs would take 50 GB."""
    limit = f"import resource; resource.setrlimit(resource.RLIMIT_AS, ({MEMORY}, {MEMORY}))"
    code = f"{limit}; from witan.surfaces.cli.app import main; raise SystemExit(main())"

    run = run_python(code, command, crowded)

    assert run.returncode == 0, run.stderr
    assert "model-249" in run.stdout or command == "audit"
