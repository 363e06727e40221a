"""The demonstration's council: scripts, which need no key."""

from dataclasses import dataclass, replace
from pathlib import Path

from witan.deliberation.ports import Member, Price
from witan.models.scripted import Line, Script, ScriptedModel, read_script

SCRIPTS = Path(__file__).parent / "demo"

MEMBERS = ("aster", "birch", "cedar", "dogwood", "elder")

ABSTAINER = "dogwood"
"""The seat without a ballot in the degraded demonstration."""

CHAIRMAN = "hazel"

SEED = 20_261_121
"""The demonstration shows the same session to everybody."""


@dataclass(frozen=True, slots=True)
class Demonstration:
    """Seats and question of the demonstration."""

    question: str
    members: tuple[Member, ...]
    chairman: Member
    seed: int


def demonstration(*, fast: bool, degraded: bool = False) -> Demonstration:
    """Seat the scripts of the demonstration.

    Parameters
    ----------
    fast
        Play the scripts without their pauses.
    degraded
        Seat a reviewer that never casts a ballot, so that the session ends degraded.
    """
    name_of_degraded = {ABSTAINER: f"{ABSTAINER}-degraded"} if degraded else {}
    return Demonstration(
        (SCRIPTS / "question.txt").read_text(encoding="utf-8").strip(),
        tuple(_member(name, name_of_degraded.get(name, name), fast=fast) for name in MEMBERS),
        _member(CHAIRMAN, CHAIRMAN, fast=fast),
        SEED,
    )


def _member(name: str, script_name: str, *, fast: bool) -> Member:
    path = SCRIPTS / f"{script_name}.toml"
    script = read_script(path)
    model = ScriptedModel.of(_remove_pauses(script) if fast else script, name)
    return Member(name, model, f"script:{path}", "script", price=Price(0.0, 0.0), simulated=True)


def _remove_pauses(script: Script) -> Script:
    """Return the same script without its pauses."""

    def hurry(lines: tuple[Line, ...]) -> tuple[Line, ...]:
        return tuple(replace(line, seconds=0.0, tokens_per_second=None) for line in lines)

    return replace(
        script,
        answer=hurry(script.answer),
        review=hurry(script.review),
        repair=hurry(script.repair),
        synthesis=hurry(script.synthesis),
    )
