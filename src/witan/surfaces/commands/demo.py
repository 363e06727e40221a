"""``witan demo``: a council that needs no key, because scripts sit in it."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from witan.surfaces.asking import Telling
from witan.surfaces.commands.council_options import telling_options
from witan.surfaces.commands.history_options import recorded_by, recording_options
from witan.surfaces.holding import hold

if TYPE_CHECKING:
    from witan.adapters.script import Line, Script
    from witan.deliberation.ports import Member
    from witan.deliberation.recorder import Listener
    from witan.deliberation.session import Session
    from witan.surfaces.following import Hold

__all__ = ["command"]


EXAMPLES = """\b
Examples:
  witan demo
  witan demo --save demo.json && witan show demo.json
"""

SCRIPTS = Path(__file__).parents[1] / "demo"

MEMBERS = ("aster", "birch", "cedar", "dogwood", "elder")

CHAIRMAN = "hazel"

SEED = 20_261_121
"""The demonstration shows the same session to everybody."""

MARK = "simulated | "


@click.command("demo", short_help="Watch a session of scripted members.", epilog=EXAMPLES)
@click.option("--fast", is_flag=True, help="Play the scripts without their pauses.")
@telling_options
@recording_options
def command(fast: bool, **options: Any) -> int:
    """Watch a council deliberate; its members are scripts, so no key is needed.

    Everything else is real: sheets, ballots, the repair of one that could not be read, counting,
    and what is said of a seat that never cast one. No model is asked, and every line says so. The
    session is kept in the history, marked as simulated.
    """
    telling = Telling.of(options, mark=MARK)
    return hold(telling, lambda *_: _seat(fast=fast), lambda say: recorded_by(options, say))


def _seat(*, fast: bool) -> "Hold":
    from witan.adapters.system_clock import SystemClock
    from witan.deliberation.council import Council

    question = (SCRIPTS / "question.txt").read_text(encoding="utf-8").strip()
    members = [_member(name, fast=fast) for name in MEMBERS]
    council = Council(members, [_member(CHAIRMAN, fast=fast)], clock=SystemClock())

    async def held(listener: "Listener") -> "Session":
        async with council:
            return await council.ask(question, seed=SEED, listener=listener)

    return held


def _member(name: str, *, fast: bool) -> "Member":
    from witan.adapters.script import read_script
    from witan.adapters.scripted import Scripted
    from witan.deliberation.ports import Member, Price

    path = SCRIPTS / f"{name}.toml"
    script = read_script(path)
    model = Scripted.of(_hurried(script) if fast else script, name)
    return Member(name, model, f"script:{path}", "script", price=Price(0.0, 0.0), simulated=True)


def _hurried(script: "Script") -> "Script":
    """The same script without its pauses."""

    def hurry(lines: "tuple[Line, ...]") -> "tuple[Line, ...]":
        return tuple(replace(line, seconds=0.0, tokens_per_second=None) for line in lines)

    return replace(
        script,
        answer=hurry(script.answer),
        review=hurry(script.review),
        repair=hurry(script.repair),
        synthesis=hurry(script.synthesis),
    )
