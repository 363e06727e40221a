"""Outcomes built from the arrays of counted sessions."""

import math
from collections.abc import Sequence
from itertools import compress
from math import isnan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from witan.core.ballot import is_unnamed
from witan.core.counting import Counted
from witan.core.inference import Inference
from witan.core.interpretation import Vote
from witan.core.outcome import (
    BallotNote,
    Confidence,
    Interval,
    Outcome,
    Standing,
    interpretation,
    join_names,
)
from witan.core.placing import effective_ballots, vote_levels
from witan.core.profile import Floats
from witan.core.rules import RULES
from witan.core.stats.agreement import effective_votes, kendall_taus, kendall_w
from witan.core.stats.distributions import t_quantile
from witan.core.stats.uncertainty import tiers

BANDS = ((8.0, "excellent"), (6.0, "good"), (4.0, "fair"))


def condorcet_winner(margins: NDArray[Any], standing: NDArray[np.bool_]) -> int | None:
    """Find the candidate with a strict majority over every rival.

    Parameters
    ----------
    margins : array, shape (C, C)
        Ballots for i over j minus the reverse.
    standing : bool array, shape (C,)
        Who stands: the candidates with votes. One that stands alone has beaten nobody.
    """
    if standing.sum() < 2:
        return None
    beats = margins > 0
    for candidate in np.flatnonzero(standing):
        rivals = standing.copy()
        rivals[candidate] = False
        if beats[candidate, rivals].all():
            return int(candidate)
    return None


def majority_cycles(margins: NDArray[Any]) -> tuple[tuple[int, ...], ...]:
    """Groups of candidates in a cycle of majorities, in seat order.

    These are the strongly connected components of the strict majority relation.
    """
    reach = margins > 0
    for middle in range(len(reach)):
        reach = reach | (reach[:, middle : middle + 1] & reach[middle])
    mutual = reach & reach.T
    if not mutual.any():
        return ()
    cycles: list[tuple[int, ...]] = []
    visited: set[int] = set()
    for candidate in range(len(reach)):
        ring: Sequence[int] = np.flatnonzero(mutual[candidate]).tolist()
        if candidate not in visited and len(ring) > 2:
            cycles.append(tuple(ring))
            visited.update(ring)
    return tuple(cycles)


class View:
    """The arrays of one session, and values derived from them."""

    def __init__(self, counted: Counted, inference: Inference, column: int) -> None:
        self.counted, self.inference, self.column = counted, inference, column
        self.settings, self.rule = counted.settings, counted.rule
        self.electorate = counted.electorates[column]
        self.names = self.electorate.candidates
        self.profile = counted.profile.take(slice(column, column + 1))
        self.ranks = counted.placing.ranks[:, column]
        seats = np.argsort(self.ranks, kind="stable")
        self.order: list[int] = seats.tolist()
        self._seats = seats
        self.effective = self._effective()
        self.margins = counted.margins[:, :, column]
        self.votes, self.wins = counted.votes[:, column], counted.wins[:, column]
        self.unit = inference.units[column]
        self.beats = inference.p_beats[:, :, column]
        self.df = inference.df[column] if self.unit is not None else math.nan
        self.score = counted.scores.score[:, column]
        self.std_error = self._std_error()
        self.barred = np.array([name in self.electorate.failed for name in self.names], dtype=bool)

    def _effective(self) -> NDArray[np.bool_]:
        """Ballots informing the rule, shape (R,); all under a rule over time."""
        if self.rule.needs == "history":
            return np.ones(len(self.electorate.votes), dtype=np.bool_)
        return effective_ballots(self.profile, self.rule)[:, 0]

    def effective_votes(self) -> list[Vote]:
        """Number of ballots informing the rule."""
        return list(compress(self.electorate.votes, self.effective))

    def _std_error(self) -> Floats:
        """Standard errors of the rule, including borrowed or shared ones if fitted."""
        errors = self.counted.scores.std_error
        if errors is None:
            return np.full(len(self.names), np.nan)
        if self.rule.error != "fit" or self.unit is None:
            return errors[:, self.column]
        fitted = self.inference.std_errors[:, self.column]
        return np.where(np.isnan(errors[:, self.column]), np.nan, fitted)

    def separated(self) -> NDArray[np.bool_]:
        """Pairs with i above j beyond noise, (C, C), in the order of the standings."""
        if self.settings.ties == "intervals":
            low = self.score - self.settings.threshold * np.nan_to_num(self.std_error)
            high = self.score + self.settings.threshold * np.nan_to_num(self.std_error)
            if self.rule.lower_is_better:
                low, high = -high, -low
            with np.errstate(invalid="ignore"):
                apart = low[:, np.newaxis] >= high
            apart &= ~(np.isnan(self.std_error)[:, np.newaxis] | np.isnan(self.std_error))
        else:
            apart = self.inference.separated[:, :, self.column]
        # A dead heat is tied.
        return self.in_order(apart & (self.ranks[:, np.newaxis] != self.ranks))

    def above(self) -> NDArray[np.bool_]:
        """Lines above each other beyond noise, in the order of the standings.

        Candidates that may not win, or that have fewer votes than it takes, are apart from the
        others without any statistics.
        """
        level = np.where(self.barred, -1, vote_levels(self.votes))[self._seats]
        higher = level[:, np.newaxis] > level
        return np.where(level[:, np.newaxis] == level, self.separated(), higher)

    def in_order(self, matrix: NDArray[Any]) -> NDArray[Any]:
        """Reorder a (C, C) matrix as the standings."""
        return matrix.take(self._seats, axis=0).take(self._seats, axis=1)

    def p_best(self) -> Floats:
        """P(best); 0 for a candidate barred by the gate."""
        best = self.inference.p_best[:, self.column]
        return np.where(self.barred & np.isfinite(best).any(), 0.0, best)

    def named(self, lines: NDArray[np.bool_]) -> list[str]:
        """The candidates of the lines chosen, in the order of the standings."""
        return [self.names[self.order[line]] for line in np.flatnonzero(lines)]

    def fell_back(self) -> bool:
        """True if the rule had no input and shows `borda` instead."""
        fell = self.counted.scores.fell_back
        return fell is not None and bool(fell[self.column])

    def details(self, c: int | None) -> dict[str, Any]:
        """Rule-specific numbers of one candidate, or (None) of the session."""
        numbers: dict[str, Any] = {}
        for name, value in self.counted.scores.details.items():
            if c is not None and value.ndim == 2 and value.shape[0] == len(self.names):
                numbers[name] = _plain(value[c, self.column])
            elif c is None and value.ndim == 3:
                numbers[name] = rows_without_nan(self.in_order(value[:, :, self.column]))
            elif c is None and value.ndim == 1:
                numbers[name] = _plain(value[self.column])
        if c is not None and not np.isnan(self.score[c]):
            score, n = float(self.score[c]), len(self.names)
            numbers |= {name: restate(score, n) for name, restate in self.rule.restated.items()}
        return numbers


def known(value: Any) -> float | None:
    """A number as Python has it; None for NaN."""
    # A single-precision number is written with the digits it has.
    number = float(str(value)) if isinstance(value, np.float32) else float(value)
    return None if np.isnan(number) else number


def known_all(values: NDArray[Any]) -> list[float | None]:
    """`known` of each number of a row."""
    if values.dtype != np.float64:
        return [known(value) for value in values]
    return [None if isnan(number) else number for number in values.tolist()]


def rows_without_nan(matrix: NDArray[Any]) -> list[list[float | None]]:
    """`known` of each number of a matrix."""
    return [known_all(row) for row in matrix]


def _plain(value: Any) -> float | int | bool | None:
    item = value.item()
    return None if isinstance(item, float) and np.isnan(item) else item


def standings(view: View, apart: NDArray[np.bool_]) -> tuple[Standing, ...]:
    """The lines, best first."""
    tier = tiers(apart)
    intervals, coverages = _intervals(view), _coverages(view)
    best, grades = known_all(view.p_best()), known_all(_mean_grades(view))
    scores, errors = known_all(view.score), known_all(view.std_error)
    effects = known_all(view.inference.effects[:, view.column])
    votes, wins, ranks = view.votes.tolist(), view.wins.tolist(), view.ranks.tolist()
    alone = len(view.electorate.reviewers) < 2
    lines = []
    for line, c in enumerate(view.order):
        following = line + 1
        tied = following < len(view.order) and not apart[line, following]
        lines.append(
            Standing(
                candidate=view.names[c],
                rank=ranks[c],
                score=scores[c],
                std_error=errors[c],
                interval=intervals[c],
                votes=votes[c],
                wins=wins[c],
                coverage=coverages[c],
                confidence=_confidence(coverages[c], alone=alone),
                tied_with_next=tied and bool(votes[c] and votes[view.order[following]]),
                p_best=best[c],
                effect=effects[c],
                tier=tier[line],
                mean_grade=grades[c],
                band=_band(grades[c]),
                failed=view.electorate.failed.get(view.names[c], ()),
                details=view.details(c),
            )
        )
    return tuple(lines)


def pooled_errors(errors: Floats, n_votes: NDArray[np.integer[Any]]) -> tuple[Floats, float]:
    """Errors of mean scores from the pooled variance of a vote.

    A candidate's own few votes know their variance badly: intervals from it cover 86 % instead of
    95 % at the ends of a bounded scale. Pooled, with n[c] votes and error e[c] of candidate c,

        v = Σ (n[c] − 1)·n[c]·e[c]² / Σ (n[c] − 1),    error[c] = √(v / n[c]),

    on Σ (n[c] − 1)·(C − 1)/C degrees of freedom, since the scores of a ballot hang together.

    Parameters
    ----------
    errors : float array, shape (C,)
        Sample standard deviation of the votes over √votes; NaN: none.
    n_votes : int array, shape (C,)

    Returns
    -------
    errors : float array, shape (C,)
        NaN where there was none.
    df : float
        0 where nothing is known.
    """
    known = ~np.isnan(errors) & (n_votes > 1)
    freedom = np.where(known, n_votes - 1, 0)
    if not freedom.sum():
        return np.full(len(errors), np.nan), 0.0
    own = np.where(known, errors, 0.0)
    variance = (freedom * n_votes * own**2).sum() / freedom.sum()
    pooled = np.sqrt(variance / np.maximum(n_votes, 1))
    share = max(known.sum() - 1, 1) / known.sum()
    return np.where(known, pooled, np.nan), float(freedom.sum() * share)


def _intervals(view: View) -> list[Interval | None]:
    """Scores by Student's t, or the normal where the error is asymptotic."""
    rule = RULES["borda"] if view.fell_back() else view.rule
    errors, df = view.std_error, math.inf
    if rule.error == "fit":
        df = view.df
    elif rule.error != "asymptotic":
        n = view.votes
        sample = np.sqrt(n / np.maximum(n - 1, 1)) if rule.error == "population" else 1.0
        errors, df = pooled_errors(errors * sample, n)
    if not df > 0:
        return [None for _ in view.names]
    level = view.settings.level
    reach = t_quantile(1 - (1 - level) / 2, df) * errors
    least, most = rule.bounds
    intervals: list[Interval | None] = []
    for score, half in zip(view.score, reach, strict=True):
        low, high = max(score - half, min(least, score)), min(score + half, max(most, score))
        known = half > 0 and not np.isnan(score)
        intervals.append(Interval(float(low), float(high), level) if known else None)
    return intervals


def _coverages(view: View) -> list[float]:
    return [
        min(1.0, votes / offered) if offered else 0.0
        for votes, offered in zip(view.votes.tolist(), view.electorate.offered, strict=True)
    ]


def _confidence(coverage: float, *, alone: bool) -> Confidence:
    if alone or coverage < 0.5:
        return "low"
    return "high" if coverage >= 0.8 else "medium"


def _mean_grades(view: View) -> Floats:
    if view.profile.grades is None:
        return np.full(len(view.names), np.nan)
    graded = view.profile.graded[:, :, 0]
    weights = np.array([vote.weight for vote in view.electorate.votes])
    mass = graded * (weights / weights.max(initial=1e-300))[:, np.newaxis]
    total = (mass * np.where(graded, view.profile.grades[:, :, 0], 0.0)).sum(axis=0)
    whole = mass.sum(axis=0)
    return np.where(whole > 0, total / np.where(whole > 0, whole, 1.0), np.nan)


def _band(grade: float | None) -> str | None:
    if grade is None:
        return None
    return next((name for least, name in BANDS if grade >= least), "poor")


def report(counted: Counted, inference: Inference, column: int, why: str) -> Outcome:
    """Build the outcome of one session of a batch."""
    view = View(counted, inference, column)
    settings, electorate, above = view.settings, view.electorate, view.above()
    against = above.T & np.triu(np.ones_like(above), k=1)
    disputed_by = tuple(view.named(against[0])) if len(against) else ()
    lines, unresolved = standings(view, above), _unresolved_pairs(view)
    return Outcome(
        session=electorate.session,
        rule=view.rule.name,
        parameters=_parameters(view),
        why=_why(view, why),
        interpretation=interpretation(
            lines, can_tell=_can_tell(view), unresolved=unresolved, disputed_by=disputed_by
        ),
        standings=lines,
        p_beats=tuple(tuple(row) for row in rows_without_nan(view.in_order(view.beats))),
        unresolved=unresolved,
        disputed_by=disputed_by,
        condorcet_winner=_condorcet_winner(view),
        cycles=_cycles(view),
        kendall_w=kendall_w(_whole_ballots(view)),
        n_ballots=int(view.effective.sum()),
        n_abstentions=len(electorate.abstentions),
        effective_votes=_effective_votes(view),
        rho=_rho(view),
        rho_is_assumed=view.settings.rho == "public" and _rho(view) is not None,
        ballots_to_flip=_flips(view),
        flip_is_exact=_flip_is_exact(view),
        tie_broken_by=_tie_broken_by(view),
        ties=settings.ties,
        level=settings.level,
        fit=view.unit,
        df=known(view.df),
        prior=view.inference.priors[column],
        recusal=settings.counting.recusal,
        unranked=settings.counting.unranked,
        ballots=_ballot_notes(view),
        abstentions=dict(electorate.abstentions),
        order_kept=dict(electorate.order_kept),
        margins=_margins(view),
        fell_back_to="borda" if view.fell_back() else None,
        details=_details(view),
        warnings=electorate.warnings + _own_warnings(view) + _disputed_pairs(view, against),
        without_effect=_ineffective_reviewers(view),
        scales=electorate.scales,
    )


def _flip_is_exact(view: View) -> bool | None:
    exact = view.counted.flips_exact
    return bool(exact[view.column]) if exact is not None and _flips(view) is not None else None


def _rho(view: View) -> float | None:
    """The shared error that was counted with; None: none, as among people."""
    given = view.settings.rho
    return given if isinstance(given, float | int) else known(view.inference.rho[view.column])


def _details(view: View) -> dict[str, Any]:
    """The rule's details, plus counts of cycles, people and fallback."""
    details = view.details(None)
    cast = [vote for vote in view.effective_votes() if vote.kind == "human"]
    if people := {vote.reviewer for vote in cast}:
        details["people"] = len(people)
    if unnamed := {vote.reviewer for vote in cast if vote.paired and is_unnamed(vote.reviewer)}:
        details["unnamed_votes"] = len(unnamed)
    if view.electorate.votes:
        details |= {name: tell(view.profile, view.names) for name, tell in view.rule.trace.items()}
    return details


def _condorcet_winner(view: View) -> str | None:
    winner = condorcet_winner(view.margins, view.votes > 0)
    return None if winner is None else view.names[winner]


def _cycles(view: View) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(view.names[c] for c in ring) for ring in majority_cycles(view.margins))


def _margins(view: View) -> tuple[tuple[float, ...], ...]:
    margins = view.in_order(view.margins).tolist()
    return tuple(tuple(_number(margin) for margin in row) for row in margins)


def _can_tell(view: View) -> bool | None:
    """True with enough ballots to separate any pair; None: not applicable."""
    if view.rule.needs == "history":
        return None
    if view.settings.ties == "intervals":
        return True
    return bool(view.inference.can_tell[view.column])


def _unresolved_pairs(view: View) -> tuple[tuple[str, str], ...]:
    """Pairs with votes, too close to call."""
    apart = view.separated()
    level = np.where(view.barred, -1, 0)[view.order]
    apart = apart | apart.T | (level[:, np.newaxis] != level)
    return tuple(
        (view.names[view.order[i]], view.names[view.order[j]])
        for i in range(len(view.order))
        for j in range(i + 1, len(view.order))
        if not apart[i, j] and view.votes[view.order[i]] and view.votes[view.order[j]]
    )


def _whole_ballots(view: View) -> Floats:
    """Ranks of the full rankings, comparisons left out, shape (R, C)."""
    whole = [not vote.paired for vote in view.electorate.votes]
    ranks = view.profile.ranks[:, :, 0][np.array(whole, dtype=bool)]
    voted: Floats = ranks[:, view.votes > 0]
    return voted


def _ballot_notes(view: View) -> tuple[BallotNote, ...]:
    taus = kendall_taus(view.profile.ranks[:, :, 0], view.ranks.astype(np.float64))
    return tuple(
        BallotNote(
            reviewer=vote.reviewer,
            tau=tau,
            weight=vote.weight,
            mismatch=vote.mismatch,
            ranking=vote.groups,
        )
        for vote, tau in zip(view.electorate.votes, taus, strict=True)
    )


def _effective_votes(view: View) -> float | None:
    """Effective votes: models correlated, people independent; None where nothing is fitted."""
    if view.unit is None:
        return None
    kinds = {vote.reviewer: vote.kind for vote in view.effective_votes()}
    models = sum(1 for kind in kinds.values() if kind == "model")
    people = len(kinds) - models
    return people + (effective_votes(models, _rho(view) or 0.0) if models else 0.0)


def _ineffective_reviewers(view: View) -> tuple[str, ...]:
    """Reviewers with ballots, none of them informing the rule."""
    effective = {vote.reviewer for vote in view.effective_votes()}
    cast = dict.fromkeys(vote.reviewer for vote in view.electorate.votes if vote.weight > 0)
    return tuple(reviewer for reviewer in cast if reviewer not in effective)


def _flips(view: View) -> int | None:
    # Where nobody stands against the leader, there is nobody to flip to.
    if view.counted.flips is None or (view.votes > 0).sum() < 2:
        return None
    flips = int(view.counted.flips[view.column])
    return flips if flips >= 0 else None


def _tie_broken_by(view: View) -> str | None:
    decided = view.counted.scores.seat_order_decided
    if decided is not None and decided[view.column]:
        return "seat order"
    if view.counted.placing.broken[view.column]:
        return view.settings.tie_break or view.rule.tie_break
    by_borda = view.counted.scores.details.get("decided_by_borda")
    return "borda" if by_borda is not None and by_borda[view.column] else None


def _parameters(view: View) -> dict[str, object]:
    parameters = view.settings.parameters if view.settings.rule == view.rule.name else {}
    return {**view.rule.parameters, **parameters}


def _why(view: View, why: str) -> str:
    if view.fell_back():
        return f"{why}; every ballot is flat, so borda scores are shown"
    return why


def _disputed_pairs(view: View, against: NDArray[np.bool_]) -> tuple[str, ...]:
    """Pairs of lines in opposite order by the fit, beyond noise."""
    return tuple(
        f"{view.rule.name} places {view.names[view.order[line]]} above "
        f"{join_names(view.named(against[line]))}; the fit of the same ballots says the reverse, "
        "beyond noise"
        for line in np.flatnonzero(against.any(axis=1))
    )


def _own_warnings(view: View) -> tuple[str, ...]:
    """Warnings to read before believing the standings."""
    warnings = []
    if not view.inference.connected[view.column]:
        warnings.append(
            "some candidates were never compared, not even through others; their order says nothing"
        )
    if view.rule.needs == "grades" and (who := _ineffective_reviewers(view)):
        warnings.append(
            f"no grades by {join_names(who)}: their ballots do not count by {view.rule.name}"
        )
    mismatched = [vote.reviewer for vote in view.electorate.votes if vote.mismatch]
    if mismatched:
        where = f"on the ballot of {join_names(mismatched)}"
        warnings.append(f"ranking and grades contradict each other {where}")
    ungraded = view.counted.scores.details.get("ungraded")
    if ungraded is not None and ungraded[:, view.column].any():
        bare = join_names([view.names[c] for c in np.flatnonzero(ungraded[:, view.column])])
        warnings.append(f"no grade for {bare}: {view.rule.name} goes by rankings alone there")
    if _tie_broken_by(view) == "seat order":
        warnings.append(
            "ties were too many to follow them all: seat order decided, not the ballots"
        )
    for name, flags in view.electorate.failed.items():
        warnings.append(f"{name} failed the safety gate ({', '.join(flags)}) and cannot win")
    return tuple(warnings)


def _number(value: float) -> float:
    whole = int(value)
    return whole if whole == value else value
