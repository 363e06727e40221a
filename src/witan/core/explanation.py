"""Explanation of an outcome, step by step, by hand."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isnan
from typing import Any

import numpy as np

from witan.core.ballot import Ballot
from witan.core.counting import Counted, count, stack
from witan.core.display import Displayed
from witan.core.interpretation import Electorate
from witan.core.outcome import Outcome
from witan.core.rubric import Rubric, overall
from witan.core.rule_tables import hand_count, ranking_text
from witan.core.rules import RULES
from witan.core.scale import Scale, read_grade
from witan.core.settings import AUTO, Settings
from witan.core.stats.distributions import t_cdf
from witan.core.stats.learning import learn_weights
from witan.core.steps import Cell, Step
from witan.core.tally import on_scale, prepare, tally_electorates
from witan.errors import MissingParameter, NothingToCount, UnknownName, UnsuitableBallots


@dataclass(frozen=True, slots=True)
class Explanation(Displayed):
    """An outcome and the steps to it.

    Parameters
    ----------
    steps
        Ballots as cast, what was changed, what the rule read, its arithmetic for the first two
        lines, and what the difference between them is worth.
    """

    outcome: Outcome
    steps: tuple[Step, ...]

    def __repr__(self) -> str:
        return f"<Explanation of {self.outcome!r} in {len(self.steps)} steps>"


def explain(
    ballots: Iterable[Ballot], settings: Settings | None = None, session: str | None = None
) -> Explanation:
    """Lay open how the outcome of one session comes about.

    Parameters
    ----------
    ballots
        Of any number of sessions: what is learned across them is learned from all.
    settings
        As `tally_sessions` takes them; None: the defaults.
    session
        Which session; None where the ballots are of one.

    Raises
    ------
    NothingToCount
        Without a ballot.
    UnknownName
        If no ballot belongs to the session.
    UnsuitableBallots
        If the rule cannot count the session, or counts a history instead of one.
    """
    chosen = Settings() if settings is None else settings
    cast = on_scale(ballots, chosen)
    name = _session(cast, session)
    if chosen.rule != AUTO and RULES[chosen.rule].needs == "history":
        raise UnsuitableBallots(
            chosen.rule, "it rates candidates over a history, not one session", "explain another"
        )
    electorate, chosen = _prepared(cast, chosen, name)
    outcome = next(tally_electorates([electorate], chosen))
    counted = _recounted(electorate, chosen, outcome)
    mine = [ballot for ballot in cast if ballot.session == name]
    return Explanation(outcome, tuple(_steps(mine, counted, outcome)))


def _session(cast: Sequence[Ballot], session: str | None) -> str:
    known = list(dict.fromkeys(ballot.session for ballot in cast))
    if not known:
        raise NothingToCount("there is no ballot to count")
    if session is None and len(known) > 1:
        expected = f"one of {len(known):,} sessions, such as {known[0]!r}"
        raise MissingParameter("the session to explain", None, expected)
    if session is not None and session not in known:
        raise UnknownName("session", session, known)
    return known[0] if session is None else session


def _prepared(cast: Sequence[Ballot], settings: Settings, name: str) -> tuple[Electorate, Settings]:
    """The electorate of the session, and settings with all learned values."""
    everyone, settings = prepare(cast, settings)
    at = next(
        (place for place, electorate in enumerate(everyone) if electorate.session == name), None
    )
    if at is None:
        raise NothingToCount(f"session {name!r} has no ballot of the kind {settings.kind!r}")
    if settings.rule == "weighted_borda" and settings.reliability is None:
        settings = replace(settings, reliability=learn_weights(everyone)[at])
    return everyone[at], settings


def _recounted(electorate: Electorate, settings: Settings, outcome: Outcome) -> Counted:
    """The same count once more, with its arrays kept."""
    reliability = None if settings.reliability is None else [settings.reliability]
    profile = stack([electorate], reliability=reliability)
    return count(outcome.rule, profile, [electorate], replace(settings, flips=False))


def _steps(cast: Sequence[Ballot], counted: Counted, outcome: Outcome) -> Iterator[Step]:
    electorate = counted.electorates[0]
    yield _as_cast(cast)
    yield _as_counted(cast, electorate, counted.settings)
    if not outcome.leaders:
        return
    seats = {name: seat for seat, name in enumerate(electorate.candidates)}
    top = [seats[line.candidate] for line in outcome.standings[:2]]
    yield _as_read(counted, outcome)
    yield from hand_count(counted, top)
    yield _standings(outcome)
    if len(top) == 2:
        yield _difference(counted, outcome, top)
    yield Step("What the lead depends on", (_flips(outcome),))


def _as_cast(cast: Sequence[Ballot]) -> Step:
    """Every ballot as it came."""
    graded = any(ballot.grades for ballot in cast)
    rows: list[tuple[Cell, ...]] = []
    for ballot in cast:
        ranking = ranking_text(ballot.groups)
        if ballot.abstained:
            ranking = f"abstained: {ballot.reason}" if ballot.reason else "abstained"
        row: tuple[Cell, ...] = (ballot.reviewer, ranking)
        rows.append((*row, _grades_text(ballot.grades)) if graded else row)
    header = ("reviewer", "ranking", "grades") if graded else ("reviewer", "ranking")
    return Step("The ballots as cast", (), header, tuple(rows))


def _grades_text(grades: Mapping[str, Any]) -> str:
    parts = []
    for name, cell in grades.items():
        if isinstance(cell, Mapping):
            inner = ", ".join(f"{criterion} {grade}" for criterion, grade in cell.items())
            parts.append(f"{name} ({inner})")
        else:
            parts.append(f"{name} {cell}")
    return ", ".join(parts)


def _as_counted(cast: Sequence[Ballot], electorate: Electorate, settings: Settings) -> Step:
    """The counted rankings, and all changes on the way to them."""
    weights = settings.weights
    rows = tuple(
        (vote.reviewer, ranking_text(vote.groups), vote.weight * weights.get(vote.reviewer, 1.0))
        for vote in electorate.votes
    )
    changes = [
        *_recusals(cast, settings.counting.recusal),
        *_ceilings(cast, settings.counting.rubric),
        *(f"{name} abstains: {why}." for name, why in electorate.abstentions.items()),
        *(f"{name} failed the safety gate and goes last." for name in electorate.failed),
        *electorate.warnings,
    ]
    if settings.kind != "all":
        changes.append(f"Only ballots of kind {settings.kind!r} count.")
    title = "The ballots as counted"
    return Step(title, tuple(changes), ("reviewer", "ranking", "weight"), rows)


def _recusals(cast: Sequence[Ballot], recusal: str) -> Iterator[str]:
    """Candidates removed from each ballot as the reviewer's own."""
    when = {"before": "before places are counted", "after": "after places are counted"}
    pairs = set()
    for ballot in cast:
        authors = ballot.authors or {}
        for name in ballot.mentioned():
            own = authors.get(name, name) == ballot.reviewer
            if own and recusal in when and (ballot.reviewer, name) not in pairs:
                pairs.add((ballot.reviewer, name))
                yield f"{ballot.reviewer} has no say on its own {name}: recused {when[recusal]}."


def _ceilings(cast: Sequence[Ballot], rubric: Rubric) -> Iterator[str]:
    """Grades lowered by a ceiling of the rubric."""
    criteria = {criterion.name for criterion in rubric.criteria}
    bare = replace(rubric, ceilings=())
    for ballot in cast:
        for name, cell in ballot.grades.items():
            if not isinstance(cell, Mapping):
                continue
            scale = Scale() if ballot.scale is None else ballot.scale
            read = {k: read_grade(v, scale.of(k)) for k, v in cell.items() if k in criteria}
            known = {k: grade for k, grade in read.items() if grade is not None}
            total = overall(rubric, known)
            if total.capped_by is not None:
                before = overall(bare, known).value
                yield (
                    f"{ballot.reviewer}'s grade of {name} is {total.value:g} instead of "
                    f"{before:.4g}: {total.capped_by.criterion} is under {total.capped_by.below:g}."
                )


def _as_read(counted: Counted, outcome: Outcome) -> Step:
    """The rule's input table: ranks, or grades if it reads them."""
    electorate, profile = counted.electorates[0], counted.profile
    header = ("reviewer", *electorate.candidates)
    if RULES[outcome.rule].needs == "grades":
        cells = [vote.grades for vote in electorate.votes]
        words = "Overall grades after rubric, ceiling and recusal; nothing stands for no grade."
    else:
        cells = [tuple(row) for row in profile.ranks[:, :, 0].tolist()]
        words = "Ranks, 1 is best; tied candidates share their mean; nothing stands for no vote."
    rows = tuple(
        (vote.reviewer, *(None if isnan(cell) else cell for cell in row))
        for vote, row in zip(electorate.votes, cells, strict=True)
    )
    return Step(f"What {outcome.rule} reads", (words,), header, rows)


def _standings(outcome: Outcome) -> Step:
    rows = tuple((line.rank, line.candidate, line.score) for line in outcome.standings)
    words = (
        ()
        if outcome.tie_broken_by is None
        else (f"Equal scores were separated by {outcome.tie_broken_by}.",)
    )
    return Step("Hence the order", words, ("rank", "candidate", "score"), rows)


def _difference(counted: Counted, outcome: Outcome, top: Sequence[int]) -> Step:
    """The contrast between the first two lines, or their intervals."""
    if outcome.ties == "intervals":
        return _intervals(counted, outcome)
    fit = counted.uncertainty(0)
    title = "Is the difference more than noise?"
    if fit is None or not fit[0].can_tell:
        return Step(title, ("There are too few ballots to tell: no residual freedom is left.",))
    uncertainty, unit = fit
    i, j = top
    difference = float(uncertainty.effects[i] - uncertainty.effects[j])
    error = float(uncertainty.contrast_variances()[i, j]) ** 0.5
    if not error > 0:
        return Step(title, ("The two were never compared, not even through others.",))
    t = difference / error
    p = 2 * float(t_cdf(np.array([-abs(t)]), uncertainty.df)[0])
    names = [line.candidate for line in outcome.standings[:2]]
    words = [
        f"Effects fitted on {unit}, with every reviewer's own level taken out; Student's t.",
        _verdict(outcome, names, p, min(int(uncertainty.votes[i]), int(uncertainty.votes[j]))),
    ]
    if outcome.rho is not None:
        words.insert(
            1, f"The error includes what all reviewers get wrong together, ρ = {outcome.rho:g}."
        )
    header = ("first", "second", "difference", "error", "t", "df", "p")
    row = (*names, difference, error, t, float(uncertainty.df), p)
    return Step(title, tuple(words), header, (row,))


def _verdict(outcome: Outcome, names: Sequence[str], p: float, votes: int) -> str:
    pair = f"{names[0]} and {names[1]}"
    if votes < 2:
        return f"{pair} are too close to call: one of them has fewer than two votes."
    limit = 1 - outcome.level
    if p < limit:
        return f"p is under {limit:.2g}: {pair} differ."
    return f"p is not under {limit:.2g}: {pair} are too close to call."


def _intervals(counted: Counted, outcome: Outcome) -> Step:
    threshold = counted.settings.threshold
    rows: list[tuple[Cell, ...]] = []
    for line in outcome.standings[:2]:
        reach = None if line.std_error is None else threshold * line.std_error
        known = line.score is not None and reach is not None
        low = line.score - reach if known and line.score is not None and reach is not None else None
        high = (
            line.score + reach if known and line.score is not None and reach is not None else None
        )
        rows.append((line.candidate, line.score, line.std_error, low, high))
    tied = outcome.standings[0].tied_with_next
    words = f"Score ∓ {threshold:g} errors: the two {'overlap' if tied else 'do not overlap'}."
    return Step(
        "Is the difference more than noise?",
        (words,),
        ("candidate", "score", "error", "low", "high"),
        tuple(rows),
    )


def _flips(outcome: Outcome) -> str:
    n = outcome.ballots_to_flip
    if n is None:
        return "How many ballots would end the lead was not searched."
    if n == 0:
        return "The first place is shared, so there is no lead to end."
    ballots = "1 ballot" if n == 1 else f"{n} ballots"
    most = "" if outcome.flip_is_exact else "At most "
    start = f"{most}{ballots}"
    return f"{start}, removed or reversed, would end the lead of {outcome.leaders[0]}."
