"""Learn priors, reliability and calibration from the history before counting."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import anyio

from witan.core.outcome import Unit
from witan.core.settings import Settings
from witan.core.stats.learning import Lessons
from witan.core.stats.priors import MIN_HISTORY
from witan.deliberation.events import SessionOpened
from witan.deliberation.ports import Clock, Member, Seat, Teacher
from witan.deliberation.procedure import Procedure
from witan.deliberation.session import Session

WEIGHTED = "weighted_borda"
"""The rule that needs the reliability of reviewers."""


def model_of(seat: Seat | Member) -> str:
    """Return a seat's model across sessions: its source, else its name."""
    return seat.source or seat.name


REUSE_SECONDS = 10.0
"""Longest time in seconds for which lessons are used again."""

REUSE_SHARE = 0.1
"""Sessions of a council that end before it learns again, as a share of those learned from."""


Key = tuple[tuple[str, ...], tuple[str, ...]]
"""Models whose reliability, and whose severity, is learned."""


@dataclass(frozen=True, slots=True)
class CachedLessons:
    """Lessons, and when a council learned them.

    `at_seconds`: by the council's clock.
    `n_ended`: sessions of the council that had ended.
    """

    lessons: Lessons
    at_seconds: float
    n_ended: int


class LessonCache:
    """Lessons that a council uses again until its history has grown.

    Lessons without a prior for the counted unit are used again only if nothing else is requested
    until enough sessions have ended to complete one.

    `n_ended`: sessions of the council that have ended.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._entries: dict[Key, CachedLessons] = {}
        self.n_ended = 0

    def get(self, key: Key, unit: Unit) -> Lessons | None:
        """Return lessons that still hold for counts of this unit."""
        entry = self._entries.get(key)
        if entry is None or self._clock.seconds() - entry.at_seconds >= REUSE_SECONDS:
            return None
        lessons, n_new = entry.lessons, self.n_ended - entry.n_ended
        if (prior := lessons.prior(unit)) is not None:
            holds = n_new < REUSE_SHARE * prior.n_sessions
        else:
            n_missing = MIN_HISTORY - lessons.n_sessions.get(unit, MIN_HISTORY)
            holds = not any(key) and n_new < n_missing
        return lessons if holds else None

    def put(self, key: Key, lessons: Lessons, n_ended: int) -> None:
        """Store lessons learned when `n_ended` sessions had ended."""
        self._entries[key] = CachedLessons(lessons, self._clock.seconds(), n_ended)


async def learn_lessons(
    teacher: Teacher,
    procedure: Procedure,
    reviewers: Sequence[Seat | Member],
    *,
    exclude: str | None = None,
    judges: bool = False,
    cache: LessonCache | None = None,
) -> Lessons:
    """Learn, in a thread, the values set to ``learn``.

    `judges`: true if texts are judged, for which the reviewers' severity is needed.
    `cache`: where lessons that exclude no session are looked up first.
    """
    seats = [*dict.fromkeys(map(model_of, reviewers))]
    models = seats if _asks_for_reliability(procedure) else []
    learn = partial(teacher.learn, models, exclude=exclude)
    judging = judges and procedure.asks_grades and procedure.counting.prior == "learn"
    if judging:
        learn = partial(learn, judges=seats)
    if cache is None or exclude is not None:
        return await anyio.to_thread.run_sync(learn)
    key = (tuple(models), tuple(seats) if judging else ())
    if (lessons := cache.get(key, _unit(procedure))) is None:
        n_ended = cache.n_ended  # the lessons may lack sessions that end meanwhile
        lessons = await anyio.to_thread.run_sync(learn)
        cache.put(key, lessons, n_ended)
    return lessons


async def apply_history(
    opening: SessionOpened, teacher: Teacher | Lessons | None, cache: LessonCache | None = None
) -> SessionOpened:
    """Store learned values in the opening, for identical recounts.

    Neither this session's parent nor others that judge the same answers are included.
    """
    if teacher is None:
        return opening
    lessons = teacher
    if not isinstance(lessons, Lessons):
        lessons = await learn_lessons(
            lessons,
            opening.procedure,
            opening.reviewers,
            exclude=opening.parent,
            judges=opening.judging is not None,
            cache=cache,
        )
    counting = _learned_settings(opening, lessons)
    if counting is opening.procedure.counting and lessons.calibration is opening.calibration:
        return opening
    procedure = replace(opening.procedure, counting=counting)
    return replace(opening, procedure=procedure, calibration=lessons.calibration)


def learn_for_recount(
    session: Session, rule: str | None, parameters: Mapping[str, Any], teacher: Teacher
) -> dict[str, Any]:
    """Replace ``learn`` in a recount's settings by values from the history.

    A rule that needs reliability also gets it if the session's rule did not. All values are learned
    from sessions with other answers.
    """
    requested_settings = {
        name: parameters[name] for name in ("prior", "rho") if parameters.get(name) == "learn"
    }
    seats = session.opening.reviewers
    weighed = rule == WEIGHTED != session.settings.rule and "reliability" not in parameters
    if not requested_settings and not weighed:
        return dict(parameters)
    models = list(dict.fromkeys(map(model_of, seats))) if weighed else []
    lessons = teacher.learn(models, exclude=session.id)
    settings = apply_lessons(
        Settings(**requested_settings), lessons, _unit(session.opening.procedure)
    )
    weights = {"reliability": _models_by_seat(lessons, seats)} if weighed else {}
    return {
        **parameters,
        **{name: getattr(settings, name) for name in requested_settings},
        **weights,
    }


def apply_lessons(settings: Settings, lessons: Lessons, unit: Unit) -> Settings:
    """Replace ``learn`` in the settings by learned values, if there are any."""
    prior = lessons.prior(unit)
    if settings.prior == "learn" and prior is not None:
        settings = replace(settings, prior=prior)
    if settings.rho == "learn" and lessons.rho is not None:
        settings = replace(settings, rho=lessons.rho)
    return settings


def describe_unlearned(prior: object, rho: object) -> Iterator[str]:
    """Yield a sentence for each value that could not be learned."""
    if prior == "learn":
        yield (
            f"using the public prior: fewer than {MIN_HISTORY} other "
            "sessions show how noisy such ballots are"
        )
    if rho == "learn":
        yield ("using the public ρ: people decided too few pairs of the other sessions")


def _models_by_seat(lessons: Lessons, seats: tuple[Seat, ...]) -> Mapping[str, float] | None:
    """Return the reliability of each seat's model, if any is known."""
    reliability = {
        seat.name: lessons.reliability[model_of(seat)]
        for seat in seats
        if model_of(seat) in lessons.reliability
    }
    return reliability or None


def _unit(procedure: Procedure) -> Unit:
    return "grades" if procedure.asks_grades else "ranks"


def _asks_for_reliability(procedure: Procedure) -> bool:
    """Return true if count or order of reviewers depends on reliability."""
    settings = procedure.counting
    needs_weights = settings.rule == WEIGHTED or procedure.spend == "adaptive"
    return needs_weights and settings.reliability is None


def _learned_settings(opening: SessionOpened, lessons: Lessons) -> Settings:
    """Return the settings with learned values."""
    requested = opening.procedure.counting
    counting = apply_lessons(requested, lessons, _unit(opening.procedure))
    if opening.judging is not None and requested.prior == "learn" and lessons.severity is not None:
        models = {seat.name: model_of(seat) for seat in opening.reviewers}
        severity = lessons.severity.by_seat(models)
        counting = replace(counting, severity=severity if severity.reviewers else None)
    if _asks_for_reliability(opening.procedure):
        counting = replace(counting, reliability=_models_by_seat(lessons, opening.reviewers))
    return counting
