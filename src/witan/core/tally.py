"""Count ballots into outcomes: interpretation, rule, placing and uncertainty."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from witan.core.ballot import Ballot, BallotTable
from witan.core.counting import (
    BatchCount,
    CheckWanted,
    CountColumn,
    Fitted,
    count,
    group_by_shape,
    keep_counting,
    stack,
    timeline,
)
from witan.core.inference import Inference, infer
from witan.core.interpretation import interpret
from witan.core.outcome import Deferral, Outcome, join_names
from witan.core.outcome_builder import Outcomes
from witan.core.plain_sessions import interpret_plain_sessions
from witan.core.profile import Electorate, Profile
from witan.core.rules import RULES
from witan.core.scale_recognition import recognise_scales, rescale
from witan.core.settings import AUTO, SettingOptions, Settings, settings_of
from witan.core.stats.learning import borrow, learn_weights
from witan.errors import InvalidParameter, NothingToCount, TooLarge, UnsuitableBallots

SESSIONS_AT_ONCE = 2048
"""Number of sessions whose outcomes are buffered to yield them in order."""

OnUnsuitable = Callable[[UnsuitableBallots], None]

OutcomeColumn = tuple[Outcomes, int]
"""A batch and the column of a session in it."""


def tally(
    ballots: Iterable[Ballot],
    rule: str = AUTO,
    **settings: Unpack[SettingOptions],
) -> Outcome:
    """Count the ballots of one session. A pure function.

    Parameters
    ----------
    ballots
        Ballots of one session, or of any number of sessions for a rule that needs a history.
    rule
        A name in `RULES`, or ``auto``.
    **settings
        Any field of `Settings`, such as ``scale="0-1"``; any field of `Counting` (``recusal``,
        ``unranked``, ``rubric``); any other keyword is a parameter of the rule.

    Raises
    ------
    NothingToCount
        If there are no ballots.
    InvalidParameter
        If the ballots belong to more than one session, or a setting is wrong.
    UnsuitableBallots
        If the rule needs grades and there are none.
    UnclearScale
        If grades fit no scale, or fit two equally well.
    """
    resolved_settings = Settings.of(rule, **settings)
    all_ballots = list(ballots)
    sessions = {ballot.session for ballot in all_ballots}
    if not all_ballots:
        raise NothingToCount("there is no ballot to count")
    if len(sessions) > 1 and not _needs_history(resolved_settings):
        raise InvalidParameter(
            "ballots", f"ballots of {len(sessions)} sessions", "those of one; see tally_sessions"
        )
    return next(tally_sessions(all_ballots, resolved_settings))


def tally_sessions(
    ballots: Iterable[Ballot],
    settings: Settings | str,
    on_unsuitable: OnUnsuitable | None = None,
) -> Iterator[Outcome]:
    """Count every session among the ballots, in order of appearance.

    Settings may also be the name of a rule, with the defaults of all others.
    For a session that the rule cannot count, the error is passed to `on_unsuitable` if given and
    raised otherwise; the session has no outcome.
    """
    columns = tally_columns(ballots, settings_of(settings), on_unsuitable)
    return (batch[column] for batch, column in columns)


def tally_columns(
    ballots: Iterable[Ballot],
    settings: Settings,
    on_unsuitable: OnUnsuitable | None = None,
    only: Collection[str] | None = None,
    check_wanted: CheckWanted = keep_counting,
) -> Iterator[OutcomeColumn]:
    """Count like `tally_sessions`; yield each session's batch and column.

    `only` restricts which sessions are counted, but learning across sessions still uses all.
    `check_wanted` is called before each step; it ends the count by raising an error.
    """
    electorates, settings_with_prior = prepare(ballots, settings, on_unsuitable)
    sessions_to_count = None if only is None else frozenset(only)
    return count_electorates(
        electorates, settings_with_prior, on_unsuitable, sessions_to_count, check_wanted
    )


def find_count(outcome: Outcome) -> CountColumn | None:
    """Return a deferred outcome's batch and column; None once it is built."""
    deferral = Deferral.of(outcome)
    return None if deferral is None else (deferral.outcomes.count, deferral.column)


def put_on_scale(ballots: Iterable[Ballot], settings: Settings) -> Sequence[Ballot]:
    """Put ballots on the settings' scale or on the recognised one.

    Raises
    ------
    UnclearScale
        If grades fit no scale, or fit two equally well.
    """
    if isinstance(ballots, BallotTable) and settings.scale in (None, ballots.scale):
        return ballots  # a table already has its scale
    return recognise_scales(ballots) if settings.scale is None else rescale(ballots, settings.scale)


def prepare(
    ballots: Iterable[Ballot], settings: Settings, on_unsuitable: OnUnsuitable | None = None
) -> tuple[list[Electorate], Settings]:
    """Interpret the counted ballots and learn the settings marked ``learn``.

    Returns
    -------
    electorates
        One per session with ballots of the chosen kind, in the order of first ballots.
    settings
        The settings with learned values in place of ``learn`` where learning was possible.

    Raises
    ------
    NothingToCount
        If there are ballots, but none of the chosen kind.
    UnclearScale
        As `put_on_scale`.
    """
    scaled = put_on_scale(ballots, settings)
    everyone = _electorates(scaled, settings, on_unsuitable)
    return _of_kind(everyone, scaled, settings, on_unsuitable), borrow(everyone, settings)


def interpret_ballots(scaled: Sequence[Ballot], settings: Settings) -> list[Electorate]:
    """Interpret ballots on their scale like `prepare`, without learning."""
    return _of_kind(_electorates(scaled, settings, None), scaled, settings, None)


def _of_kind(
    everyone: list[Electorate],
    scaled: Sequence[Ballot],
    settings: Settings,
    on_unsuitable: OnUnsuitable | None,
) -> list[Electorate]:
    if settings.kind == "all":
        return everyone
    if scaled and all(ballot.kind != settings.kind for ballot in scaled):
        raise NothingToCount(f"no ballot is of the kind {settings.kind!r}")
    # Sessions that cannot be interpreted were reported above.
    session_names = {electorate.session for electorate in everyone}
    of_kind = [b for b in scaled if b.kind == settings.kind and b.session in session_names]
    return _electorates(of_kind, settings, on_unsuitable)


def _electorates(
    ballots: Iterable[Ballot], settings: Settings, on_unsuitable: OnUnsuitable | None
) -> list[Electorate]:
    sessions = _group_by_session(ballots)
    ungated = {name: cast for name, cast in sessions.items() if name not in settings.gates}
    plain = interpret_plain_sessions(ungated, settings.counting)
    everyone = []
    for session, cast in sessions.items():
        try:
            electorate = plain.get(session) or interpret(
                session, cast, settings.counting, settings.gates.get(session)
            )
        except TooLarge as error:
            if on_unsuitable is None:
                raise
            remedy = "leave the session out, or put fewer candidates to one vote"
            on_unsuitable(UnsuitableBallots(settings.rule, str(error), remedy, session))
        else:
            everyone.append(electorate.scale_weights(settings.weights))
    return everyone


def _group_by_session(ballots: Iterable[Ballot]) -> Mapping[str, Sequence[Ballot]]:
    if isinstance(ballots, BallotTable):
        return ballots.by_session()
    sessions: dict[str, list[Ballot]] = {}
    for ballot in ballots:
        sessions.setdefault(ballot.session, []).append(ballot)
    return sessions


def tally_electorates(
    counting: Sequence[Electorate],
    settings: Settings,
    on_unsuitable: OnUnsuitable | None = None,
) -> Iterator[Outcome]:
    """Count the electorates from `prepare`; parameters are as in `tally_sessions`."""
    columns = count_electorates(counting, settings, on_unsuitable)
    return (batch[column] for batch, column in columns)


def count_electorates(
    counting: Sequence[Electorate],
    settings: Settings,
    on_unsuitable: OnUnsuitable | None = None,
    only: AbstractSet[str] | None = None,
    check_wanted: CheckWanted = keep_counting,
) -> Iterator[OutcomeColumn]:
    """Count the electorates from `prepare` like `tally_columns`."""
    if _needs_history(settings):
        yield _over_time(counting, settings), 0
        return
    reliability = reliability_by_session(counting, settings, (settings.rule,))
    if only is not None:
        wanted = [at for at, electorate in enumerate(counting) if electorate.session in only]
        counting = [counting[at] for at in wanted]
        reliability = None if reliability is None else [reliability[at] for at in wanted]
    for start in range(0, len(counting), SESSIONS_AT_ONCE):
        part = slice(start, start + SESSIONS_AT_ONCE)
        weights = None if reliability is None else reliability[part]
        yield from _count_in_order(counting[part], settings, weights, on_unsuitable, check_wanted)


def reliability_by_session(
    electorates: Sequence[Electorate], settings: Settings, rules: Collection[str]
) -> Sequence[Mapping[str, float]] | None:
    """Reviewers' weights per session: from the settings, or learned for weighted rules."""
    if settings.reliability is not None:
        return [settings.reliability] * len(electorates)
    return learn_weights(electorates) if "weighted_borda" in rules else None


def _needs_history(settings: Settings) -> bool:
    return settings.rule != AUTO and RULES[settings.rule].needs == "history"


@dataclass(frozen=True, slots=True)
class Task:
    """Sessions of one shape under one rule."""

    rule: str
    why: str
    numbers: NDArray[np.integer[Any]]
    profile: Profile


def _count_in_order(
    everyone: Sequence[Electorate],
    settings: Settings,
    weights: Sequence[Mapping[str, float]] | None,
    on_unsuitable: OnUnsuitable | None,
    check_wanted: CheckWanted,
) -> Iterator[OutcomeColumn]:
    """Count shape by shape; return outcomes in session order."""
    outcomes: dict[int, OutcomeColumn] = {}
    for task in _tasks(everyone, settings, weights):
        electorates_of_task = [everyone[number] for number in task.numbers]
        for batch, columns in count_task(
            task, electorates_of_task, settings, on_unsuitable, check_wanted
        ):
            for at, column in enumerate(columns):
                check_wanted()
                outcomes[int(task.numbers[column])] = batch, at
    for number in sorted(outcomes):
        yield outcomes[number]


@dataclass(frozen=True, slots=True)
class SharedWork:
    """Fits and inferences shared by all rules that count the same sessions."""

    fits: dict[bytes, list[Fitted]] = field(default_factory=dict)
    inferences: dict[int, tuple[Sequence[Fitted] | None, Inference]] = field(default_factory=dict)

    def infer(self, counted: BatchCount) -> Inference:
        """Compute the inference once per set of fits."""
        fits = counted.fits  # read once: another thread may fit again
        if id(fits) not in self.inferences:  # the fits are stored too, so their id stays unique
            self.inferences[id(fits)] = fits, infer(counted, fits)
        return self.inferences[id(fits)][1]


def count_task(
    task: Task,
    electorates: Sequence[Electorate],
    settings: Settings,
    on_unsuitable: OnUnsuitable | None,
    check_wanted: CheckWanted,
    *,
    shared: SharedWork | None = None,
) -> Iterator[tuple[Outcomes, Sequence[int]]]:
    """Count the sessions of a task that its rule can count.

    `shared` must be for all sessions of the task. It is not used when only some are counted.

    Yields
    ------
    Outcomes
        Outcomes of some sessions.
    sequence of int
        The column of each of these sessions in the task.
    """
    usable = []
    graded = np.logical_or.reduce(task.profile.grade_mask, axis=(0, 1))
    for column, electorate in enumerate(electorates):
        problem = None if graded[column] else _unsuitable(electorate, task.rule)
        if problem is None:
            usable.append(column)
        elif on_unsuitable is None:
            raise problem
        else:
            on_unsuitable(problem)
    if not usable:
        return
    profile = task.profile
    if len(usable) < len(electorates):
        profile = profile.take(np.array(usable))
    if len(usable) < len(electorates) or shared is None:
        shared = SharedWork()
    usable_electorates = [electorates[column] for column in usable]
    counting = partial(count, task.rule, settings=settings, check_wanted=check_wanted)
    for counted, columns in _count(profile, usable_electorates, counting, shared, on_unsuitable):
        yield Outcomes(counted, task.why, shared.infer), [usable[at] for at in columns]


def _count(
    profile: Profile,
    electorates: Sequence[Electorate],
    count_under: Callable[..., BatchCount],
    shared: SharedWork,
    on_unsuitable: OnUnsuitable | None,
) -> Iterator[tuple[BatchCount, Sequence[int]]]:
    try:
        yield count_under(profile, electorates, known_fits=shared.fits), range(len(electorates))
        return
    except UnsuitableBallots:
        if on_unsuitable is None:
            raise
    for column, electorate in enumerate(electorates):
        try:
            one = profile.take(slice(column, column + 1))
            yield count_under(one, [electorate]), [column]
        except UnsuitableBallots as error:
            session_name = electorate.session
            on_unsuitable(UnsuitableBallots(error.rule, error.problem, error.remedy, session_name))


def _tasks(
    everyone: Sequence[Electorate],
    settings: Settings,
    reliability: Sequence[Mapping[str, float]] | None,
) -> Iterator[Task]:
    """Group sessions by shape, in blocks, and choose a rule for each."""
    for numbers in group_by_shape(everyone):
        chosen = [everyone[number] for number in numbers]
        weights = None if reliability is None else [reliability[number] for number in numbers]
        profile = stack(chosen, reliability=weights)
        yield from _group_by_rule(settings, numbers, profile)


def _group_by_rule(
    settings: Settings, numbers: NDArray[np.integer[Any]], profile: Profile
) -> Iterator[Task]:
    if settings.rule != AUTO:
        yield Task(settings.rule, "asked for", numbers, profile)
        return
    enough, _ = profile.gradable
    for rule, why, chosen in (
        ("calibrated", AUTO_GRADES, enough),
        ("borda", AUTO_RANKS, ~enough),
    ):
        at = chosen.nonzero()[0]
        if len(at) == len(numbers):
            yield Task(rule, why, numbers, profile)
        elif len(at):
            yield Task(rule, why, numbers[at], profile.take(at))


AUTO_GRADES = (
    "chosen automatically, as at least two ballots grade at least two candidates, "
    "so each reviewer's own level and spread can be taken out"
)
AUTO_RANKS = (
    "chosen automatically, as too few ballots carry grades that differ, so rankings are counted"
)


def _unsuitable(electorate: Electorate, rule: str) -> UnsuitableBallots | None:
    """Explain why the rule cannot count a session without grades."""
    if RULES[rule].needs != "grades" or not electorate.votes:
        return None
    where = f"in session {electorate.session!r} " if electorate.session else ""
    reviewer_names = join_names(electorate.reviewers[:8])
    return UnsuitableBallots(
        rule,
        f"it needs grades, and {where}no ballot has any ({reviewer_names} only ranked)",
        "take a rule that needs rankings alone, such as 'borda', or 'auto'",
        electorate.session,
    )


def _over_time(everyone: Sequence[Electorate], settings: Settings) -> Outcomes:
    is_timed = all(electorate.at is not None for electorate in everyone)
    if is_timed:
        everyone = sorted(everyone, key=lambda member: member.at or datetime.min)
    whole, profile = timeline(everyone)
    if not whole.votes:
        raise NothingToCount("there is no ballot to count")
    if len(everyone) > 1:
        order = "time order" if is_timed else "the order given, as not all of them have a time"
        note = f"{settings.rule} rates the {len(everyone):,} sessions as one history, in {order}"
        whole = replace(whole, warnings=(note, *whole.warnings))
    counts = count(settings.rule, profile, [whole], settings)
    return Outcomes(counts, "asked for")
