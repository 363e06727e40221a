"""Golden files of the output: `pytest tests/golden --write-golden` writes them."""

import json
import math
from itertools import zip_longest
from pathlib import Path
from typing import Any

import click
import pytest

from witan.core.rules import RULES
from witan.surfaces.cli.app import cli, main
from witan.version import __version__

GOLDEN = Path(__file__).parent / "outputs"
EXAMPLES = Path(__file__).parents[2] / "examples"

BALLOTS, PAIRS, TENNESSEE = "ballots.jsonl", "pairs.csv", "tennessee.soc"

JSON = {
    "tally-pairs": ("tally", PAIRS),
    "tally-tennessee": ("tally", TENNESSEE),
    "compare": ("compare", PAIRS),
    "calibrate": ("calibrate", BALLOTS),
    "explain": ("explain", BALLOTS, "--session", "haiku"),
    "leaderboard": ("leaderboard", BALLOTS, "--min-sessions", "1"),
    "audit": ("audit", BALLOTS),
    "rules": ("rules",),
    "rubrics": ("rubrics",),
} | {f"tally-{rule}": ("tally", BALLOTS, "--rule", rule) for rule in ("auto", *RULES)}

TEXT = {
    "tally": ("tally", BALLOTS),
    "tally-pairs": ("tally", PAIRS),
    "tally-tennessee": ("tally", TENNESSEE),
    "compare": ("compare", BALLOTS),
    "calibrate": ("calibrate", BALLOTS),
    "explain": ("explain", BALLOTS, "--session", "haiku"),
    "leaderboard": ("leaderboard", BALLOTS, "--min-sessions", "1"),
    "audit": ("audit", BALLOTS),
    "rules": ("rules",),
    "rubrics": ("rubrics",),
    **{f"help-{name}": (name, "--help") for name in cli.list_commands(click.Context(cli))},
    "help": ("--help",),
}


@pytest.fixture
def run(capsys, monkeypatch):
    """Run a command in the folder of the examples, on a terminal of 80 columns."""
    monkeypatch.chdir(EXAMPLES)
    monkeypatch.setenv("COLUMNS", "80")

    def of(*arguments: str) -> str:
        main(arguments)
        return capsys.readouterr().out

    return of


@pytest.mark.parametrize("name", JSON)
def test_json_is_unchanged(name, run, write_golden):
    """Programs rely on every field of `--json`."""
    found = json.loads(run(*JSON[name], "--json"))
    path = GOLDEN / f"{name}.json"
    found = without_version(found)
    golden = json.loads(path.read_text(encoding="utf-8")) if path.exists() else None
    if write_golden and differences(found, golden):
        golden = with_equal_numbers(found, golden)
        path.write_text(f"{format_json(golden)}\n", encoding="utf-8")

    assert differences(found, golden) == []


@pytest.mark.parametrize("name", TEXT)
def test_text_is_unchanged(name, run, write_golden):
    """A change of the text is reviewed as a change of a file."""
    found = run(*TEXT[name])
    path = GOLDEN / f"{name}.txt"
    if write_golden:
        path.write_text(found, encoding="utf-8")

    assert found == path.read_text(encoding="utf-8")


def test_every_golden_file_is_in_use():
    """It is the output of a command, or the server's own description."""
    written = {f"{name}.json" for name in (*JSON, "openapi")} | {f"{name}.txt" for name in TEXT}

    assert {path.name for path in GOLDEN.iterdir()} == written


def without_version(found: Any) -> Any:
    assert found.pop("witan", __version__) == __version__
    return found


def format_json(value: Any, depth: int = 2, indent: str = "") -> str:
    """Lay JSON out with a line for each field and each item, so that a diff of it can be read."""
    inner = f"{indent} "
    if depth and isinstance(value, dict) and value:
        items = [f"{json.dumps(k)}: {format_json(v, depth - 1, inner)}" for k, v in value.items()]
        return "{\n" + ",\n".join(inner + each for each in items) + f"\n{indent}}}"
    if depth and isinstance(value, list) and value:
        items = [format_json(each, depth - 1, inner) for each in value]
        return "[\n" + ",\n".join(inner + each for each in items) + f"\n{indent}]"
    return json.dumps(value)


def differences(found: Any, golden: Any, place: str = "") -> list[str]:
    """Where two JSON values differ; numbers may by a billionth, as between processors."""
    if isinstance(found, dict) and isinstance(golden, dict):
        names = [f"{place}.{name}" for name in found.keys() ^ golden.keys()]
        return names + [
            line
            for name in found.keys() & golden.keys()
            for line in differences(found[name], golden[name], f"{place}.{name}")
        ]
    if isinstance(found, list) and isinstance(golden, list) and len(found) == len(golden):
        return [
            line
            for at, (one, other) in enumerate(zip(found, golden, strict=True))
            for line in differences(one, other, f"{place}[{at}]")
        ]
    return [] if same(found, golden) else [f"{place}: {found!r} is not {golden!r}"]


def same(found: Any, golden: Any) -> bool:
    if isinstance(found, float) and isinstance(golden, float):
        return math.isclose(found, golden, rel_tol=1e-9, abs_tol=1e-12)
    return type(found) is type(golden) and found == golden


def with_equal_numbers(found: Any, golden: Any) -> Any:
    """The found value, with the golden digits of each number that counts as equal."""
    if isinstance(found, dict) and isinstance(golden, dict):
        return {name: with_equal_numbers(each, golden.get(name)) for name, each in found.items()}
    if isinstance(found, list) and isinstance(golden, list):
        pairs = zip_longest(found, golden[: len(found)])
        return [with_equal_numbers(one, other) for one, other in pairs]
    return golden if same(found, golden) else found


def test_writing_keeps_digits_of_equal_numbers():
    """A new wording or entry changes only its own lines of a file."""
    golden = {"text": "few", "scores": [0.1 + 0.2, 1.5], "lost": 1}
    found = {"text": "many", "scores": [0.3, 1.25, 7.0], "new": None}

    assert repr(with_equal_numbers(found, golden)) == repr(
        {"text": "many", "scores": [0.1 + 0.2, 1.25, 7.0], "new": None}
    )
