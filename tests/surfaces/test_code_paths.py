"""Processors and numeric libraries: the same ballots print the same figures on all of them."""

import json
import os
import platform
import random
from pathlib import Path

import pytest

from processes import run_python
from witan.core.rules import RULES

pytestmark = pytest.mark.slow

AVX512 = "AVX512F,AVX512CD,AVX512_SKX,AVX512_CLX,AVX512_CNL,AVX512_ICL"
OLDER = {
    "with AVX2 alone": {"OPENBLAS_CORETYPE": "Haswell", "NPY_DISABLE_CPU_FEATURES": AVX512},
    "with SSE alone": {
        "OPENBLAS_CORETYPE": "Nehalem",
        "NPY_DISABLE_CPU_FEATURES": f"{AVX512},AVX2,FMA3,F16C,AVX",
    },
}
"""Variables by which OpenBLAS and NumPy calculate as on older processors."""

RUN = """
import json, sys, warnings
warnings.filterwarnings("ignore", "During parsing environment variable", ImportWarning)
from witan.surfaces.cli.app import main
for line in json.loads(sys.argv[1]):
    print("$", *line)
    main(line)
    sys.stdout.flush()
"""


def ballots(draw: random.Random, session: str) -> list[dict[str, object]]:
    """One session's ballots: graded, ranked, partial, or cyclic and full of ties."""
    names = [f"m{number}" for number in range(draw.choice([2, 3, 4, 5, 5, 6, 8]))]
    reviewers = [f"m{number}" for number in range(draw.choice([2, 3, 4, 5, 6, 9]))]
    kind = draw.choice(["grades", "halves", "ranking", "cyclic"])
    skipping = draw.random() < 0.3
    cast: list[dict[str, object]] = []
    for turn, reviewer in enumerate(reviewers):
        judged = [name for name in names if not skipping or draw.random() < 0.9]
        order = sorted(judged, key=lambda _: draw.random())
        says: dict[str, object] = {
            "grades": {name: draw.randint(1, 10) for name in judged},
            "halves": {name: draw.randint(2, 20) / 2 for name in judged},
            "ranking": [order[:2], *([name] for name in order[2:])],
            "cyclic": {name: 1 + (seat + turn) % len(names) for seat, name in enumerate(names)},
        }
        field = "ranking" if kind == "ranking" else "grades"
        cast.append({"session": session, "reviewer": reviewer, field: says[kind]})
    return cast


@pytest.mark.skipif(platform.machine() != "x86_64", reason="names code paths of x86-64")
@pytest.mark.parametrize("n_sessions", [10, pytest.param(80, marks=pytest.mark.slow)])
def test_ballots_print_the_same_figures_under_every_code_path(tmp_path, n_sessions):
    """Standings, comparisons, a leaderboard and an audit agree to the printed digit."""
    draw = random.Random(5)  # noqa: S311 - examples, no secrets
    sessions = [f"s{number}" for number in range(n_sessions)]
    file = tmp_path / "ballots.jsonl"
    lines = [json.dumps(each) for session in sessions for each in ballots(draw, session)]
    file.write_text("\n".join(lines), encoding="utf-8")
    chosen = [part for session in sessions for part in ("--session", session)]
    commands = [
        *(["tally", str(file), "--rule", rule.name] for rule in RULES.values()),
        ["tally", str(file), *chosen, "--limit", str(n_sessions)],
        ["tally", str(file), *chosen, "--limit", str(n_sessions), "--rule", "plackett_luce"],
        *(["compare", str(file), "--session", session] for session in sessions[:3]),
        ["import", str(file)],
        ["leaderboard", "--min-sessions", "1"],
        ["audit"],
    ]

    here = printed(commands, tmp_path / "here.sqlite", {})

    assert here.count("\n") > 300
    for path, variables in OLDER.items():
        assert printed(commands, tmp_path / f"{path}.sqlite", variables) == here, path


def printed(commands: list[list[str]], history: Path, variables: dict[str, str]) -> str:
    """Standard output of the commands, run one after another in one new process."""
    return run_python(
        RUN,
        json.dumps(commands),
        check=True,
        env={**os.environ, **variables, "WITAN_HISTORY": str(history)},
    ).stdout
