"""What a council learns from its history before it counts, put into the opening of a session."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

import anyio

from witan.core.learned import Learned
from witan.core.settings import Settings
from witan.deliberation.events import Seat, SessionOpened
from witan.deliberation.ports import Teacher
from witan.deliberation.session import Session

__all__ = ["model_of", "taught", "weights_for_recount"]

WEIGHTED = "weighted_borda"
"""The rule that asks for the reliability of reviewers."""


def model_of(seat: Seat) -> str:
    """What the model of a seat is called across sessions: as the seat is written, else its name."""
    return seat.source or seat.name


async def taught(opened: SessionOpened, teacher: Teacher | None) -> SessionOpened:
    """The opening with all that is to be learned in it, so that every recount counts alike.

    Nothing is learned from the session that this one came of, nor from others that judge the
    same answers.

    Raises
    ------
    HistoryError
        If the history cannot be read.
    """
    if teacher is None:
        return opened
    asked = _asks_for_reliability(opened.procedure.counting)
    models = [model_of(seat) for seat in opened.reviewers] if asked else []
    ask = partial(teacher.learned, list(dict.fromkeys(models)), without=opened.parent)
    learned = await anyio.to_thread.run_sync(ask)
    counting = _counting(opened, learned)
    known = learned.calibration if learned.calibration.pairs else None
    procedure = replace(opened.procedure, counting=counting)
    return replace(opened, procedure=procedure, calibration=known)


def weights_for_recount(
    session: Session, rule: str | None, teacher: Teacher
) -> Mapping[str, float] | None:
    """Seat to reliability, for a recount by a rule that asks for it where the session's did not.

    Learned from sessions with other answers; None: nothing is known, or nothing is asked for.
    """
    if rule != WEIGHTED or session.settings.rule == WEIGHTED:
        return None
    seats = session.opened.reviewers
    models = list(dict.fromkeys(map(model_of, seats)))
    return _by_seat(teacher.learned(models, without=session.id), seats)


def _by_seat(learned: Learned, seats: tuple[Seat, ...]) -> Mapping[str, float] | None:
    """Seat to the reliability of its model; None where none is known."""
    found = {
        seat.name: learned.reliability[model_of(seat)]
        for seat in seats
        if model_of(seat) in learned.reliability
    }
    return found or None


def _asks_for_reliability(counting: Settings) -> bool:
    return counting.rule == WEIGHTED and counting.reliability is None


def _counting(opened: SessionOpened, learned: Learned) -> Settings:
    """How ballots are counted, with ``learn`` replaced by what was learned, if anything was."""
    counting = opened.procedure.counting
    prior = learned.prior("grades" if opened.procedure.graded else "ranks")
    if counting.prior == "learn" and prior is not None:
        counting = replace(counting, prior=prior)
    if counting.rho == "learn" and learned.rho is not None:
        counting = replace(counting, rho=learned.rho)
    if _asks_for_reliability(counting):
        counting = replace(counting, reliability=_by_seat(learned, opened.reviewers))
    return counting
