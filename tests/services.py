"""Chambers of scripted councils, and the configuration that seats them."""

import json
from pathlib import Path
from typing import Any

from scripts import write_script
from witan.history import History
from witan.service.config.configuration import load_config
from witan.service.sessions.councils import Councils
from witan.service.sessions.running import RunningSession

NAMES = ("ada", "bob", "cyd")


def write_config(folder: Path, more: str = "", **stages: list[dict[str, Any]]) -> Path:
    """Write scripts of ada, bob and cyd, and the configuration that seats them.

    Stages hold for all of them. Without more, everyone answers, prefers Ada to Bob to Cyd, and ada
    sums up.
    """
    order = ["Ada says", "Bob says", "Cyd says"]
    seats = []
    for name in NAMES:
        usual = {
            "answer": [{"text": f"{name.title()} says so."}],
            "review": [{"prefers": order}],
            "synthesis": [{"text": "All told: so, as [A] has it."}],
        }
        path = write_script(folder / f"{name}.toml", **{**usual, **stages})
        seats.append(f"script:{path}")
    file = folder / "council.toml"
    text = f"members = {json.dumps(seats)}\nchairman = {json.dumps(seats[0])}\n{more}"
    file.write_text(text, encoding="utf-8")
    return file


def write_priced(folder: Path, **stages: list[dict[str, Any]]) -> Path:
    """The same where a million tokens of each of them cost a dollar."""
    write_config(folder, **stages)
    file = folder / "priced.toml"
    seats = [f'"script:{folder / name}.toml"' for name in NAMES]
    tables = "".join(f"[[members]]\nseat = {seat}\nprice = [1, 1]\n" for seat in seats)
    file.write_text(f'chairmen = ["ada"]\n{tables}', encoding="utf-8")
    return file


def councils(file: Path, history: History | None = None) -> Councils:
    """Who sits by a configuration file."""
    return Councils(load_config({}, file.parent, file), history, {}, fast=True)


async def until(running: RunningSession, kind: str) -> None:
    """Follow a session until an event of this kind."""
    async for told in running.stream.follow():
        if told.event.kind == kind:
            return
