"""Scripts for members, written to files: what a council of them is made of in a test."""

import json
from pathlib import Path
from typing import Any


def write_rows(path: Path, rows: list[dict[str, Any]]) -> Path:
    """Write rows as JSON Lines."""
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return path


def write_script(path: Path, **stages: list[dict[str, Any]]) -> Path:
    """Write a script: for each stage the lines among which the first that fits is played."""
    lines = []
    for stage, tables in stages.items():
        for table in tables:
            lines.append(f"[[{stage}]]")
            lines += [f"{key} = {_toml(value)}" for key, value in table.items()]
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def _toml(value: Any) -> str:
    if not isinstance(value, dict):
        return json.dumps(value)
    return f"{{{', '.join(f'{json.dumps(key)} = {_toml(each)}' for key, each in value.items())}}}"


def write_council(folder: Path, **members: dict[str, list[dict[str, Any]]]) -> list[str]:
    """Write the scripts of ada, bob and cyd and a chairman; return the options that seat them.

    Without more, everyone answers, prefers Ada to Bob to Cyd, and the chairman sums up; the stages
    named for a member replace its own. A member without stages has no seat.
    """
    order = ["Ada says", "Bob says", "Cyd says"]
    options: list[str] = []
    seats = {"ada": {}, "bob": {}, "cyd": {}} | members
    for name, stages in seats.items():
        if stages is None or name == "chair":
            continue
        usual = {"answer": [{"text": f"{name.title()} says so."}], "review": [{"prefers": order}]}
        path = write_script(folder / f"{name}.toml", **{**usual, **stages})
        options += ["--member", f"script:{path}"]
    closing = {"synthesis": [{"text": "All told: so."}]} | (members.get("chair") or {})
    chair = write_script(folder / "chair.toml", **closing)
    return [*options, "--chairman", f"script:{chair}"]


CRITERIA = ("accuracy", "relevance", "completeness", "conciseness", "clarity")


def grade_words(**words: float) -> dict[str, Any]:
    """A review that grades what holds a word, every criterion alike."""
    return {"grades": {word: dict.fromkeys(CRITERIA, grade) for word, grade in words.items()}}


def write_jury(folder: Path) -> list[str]:
    """Write the scripts of three jurors, who like moraines; return their seats."""
    review = [grade_words(moraine=9, glacier=3)]
    names = ("xan", "yma", "zoe")
    return [f"script:{write_script(folder / f'{name}.toml', review=review)}" for name in names]
