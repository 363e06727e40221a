"""The council for the next question: that of the session, if it is still here."""

from collections.abc import Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING

from witan.deliberation.events import SessionOpened
from witan.deliberation.ports import Seat

if TYPE_CHECKING:
    from witan.service.sessions import CouncilProfile

__all__ = ["council_of"]


def council_of(opened: SessionOpened, councils: Sequence["CouncilProfile"]) -> str:
    """Name the council of a session; empty: the configured one, or none."""
    sat = [*map(_known_by, opened.seats)]
    same = [each for each in councils if [*map(_known_by, each.seats)] == sat]
    jury = [*map(_known_by, opened.jury)] if opened.members else []

    # Of councils with the same seats, the one that judges and deliberates as the session did.
    def unlike(each: "CouncilProfile") -> tuple[bool, bool]:
        return [*map(_known_by, each.jury)] != jury, each.procedure != opened.procedure

    same.sort(key=unlike)
    return same[0].name if same else ""


def _known_by(seat: Seat) -> tuple[str, str]:
    """Name and source; of a script the name of its file, as its folder changes with the machine."""
    kind, _, file = seat.source.partition(":")
    return seat.name, PurePath(file).stem if kind == "script" else seat.source
