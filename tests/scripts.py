"""Scripts for members, written to files: what a council of them is made of in a test."""

import json
from pathlib import Path
from typing import Any


def write_script(path: Path, **stages: list[dict[str, Any]]) -> Path:
    """Write a script: for each stage the lines among which the first that fits is played."""
    lines = []
    for stage, tables in stages.items():
        for table in tables:
            lines.append(f"[[{stage}]]")
            lines += [f"{key} = {json.dumps(value)}" for key, value in table.items()]
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


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
