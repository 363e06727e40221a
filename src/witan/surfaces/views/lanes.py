"""A lane per seat: what it does, for how long, how much it has written."""

from dataclasses import dataclass
from datetime import datetime

from markupsafe import Markup

from witan.surfaces.live_board import Board, LiveLine
from witan.surfaces.views.naming import Naming

__all__ = ["MARKS", "Lane", "lane", "lanes"]

MARKS = {
    "waiting": "idle",
    "answering": "busy",
    "answered": "done",
    "failed": "bad",
    "reviewing": "busy",
    "voted": "done",
    "abstained": "bad",
    "writing": "busy",
    "written": "done",
    "did not finish": "bad",
}
"""State to the mark drawn before it; the word always stands beside the mark."""

WORDS = {"answering": "writing", "reviewing": "reviewing", "answered": "done", "written": "done"}
"""What is said of a state where the state's own word would be less plain."""


@dataclass(frozen=True, slots=True)
class Lane:
    """One seat.

    Parameters
    ----------
    key
        Its number on the page, in the order of the lanes.
    elapsed
        Seconds since what it does began; None: it does nothing that lasts.
    writes
        It writes an answer; not so where it judges those of others alone.
    text
        The answer once it is whole; None: it is not.
    partial
        What there is of it until then.
    """

    key: int
    name: str
    state: str
    mark: str
    simulated: bool
    seconds: str
    elapsed: float | None
    amount: str
    note: str
    writes: bool = True
    partial: str = ""
    text: Markup | None = None


def lanes(board: Board, naming: Naming, now: datetime | None = None) -> tuple[Lane, ...]:
    """Return every seat of the board; `now` is what running seconds are counted to."""
    lines = {line.name: line for line in board.seats}
    # In the order of the seats, labels would tell who is who; and so would numbers in that order.
    return tuple(
        lane(lines[seat], key, naming, now) for key, seat in enumerate(naming.ordered(lines))
    )


def lane(line: LiveLine, key: int, naming: Naming, now: datetime | None = None) -> Lane:
    """One seat as its lane shows it."""
    # The session may close over a seat that never finished.
    state = "did not finish" if line.running and line.since is None else line.state
    return Lane(
        key=key,
        name=naming.name(line.name),
        state=WORDS.get(state, state),
        mark=MARKS[state],
        simulated=line.simulated,
        seconds="" if line.seconds is None else f"{line.seconds:.1f} s",
        elapsed=_elapsed(line, now),
        amount=line.amount,
        note=naming.said(line.note),
    )


def _elapsed(line: LiveLine, now: datetime | None) -> float | None:
    if line.since is None or now is None:
        return None
    return round(max((now - line.since).total_seconds(), 0.0), 1)
