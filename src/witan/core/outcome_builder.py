"""Outcomes built from the arrays of counted sessions."""

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import compress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from witan.core.ballot import is_unnamed
from witan.core.counting import Counted
from witan.core.inference import Inference
from witan.core.interpretation import Electorate, Vote
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
from witan.core.rules import RULES, Rule
from witan.core.stats.agreement import kendall_taus, kendall_w, kendall_ws
from witan.core.stats.distributions import t_quantile
from witan.core.stats.uncertainty import tiers

Flags = NDArray[np.bool_]

LEVEL = 1e-9
"""Degrees of freedom this little below one are one."""

BANDS = ((8.0, "excellent"), (6.0, "good"), (4.0, "fair"))


def condorcet_winners(margins: NDArray[Any], standing: Flags) -> NDArray[np.intp]:
    """Find the candidate with a strict majority over every rival, shape (S,); −1: nobody.

    Parameters
    ----------
    margins : array, shape (C, C, S)
        Ballots for i over j minus the reverse.
    standing : bool array, shape (C, S)
        Who stands: the candidates with votes. One that stands alone has beaten nobody.
    """
    if not len(standing):
        return np.full(standing.shape[1], -1)
    itself = np.eye(len(standing), dtype=np.bool_)[:, :, np.newaxis]
    wins = standing & ((margins > 0) | itself | ~standing).all(axis=1)
    return np.where(wins.any(axis=0) & (standing.sum(axis=0) > 1), wins.argmax(axis=0), -1)


def mutual_reach(margins: NDArray[Any]) -> Flags:
    """Pairs that reach each other through strict majorities, shape (C, C, …) as given."""
    reach: Flags = margins > 0
    for middle in range(len(reach)):
        reach = reach | (reach[:, middle : middle + 1] & reach[middle])
    return reach & reach.swapaxes(0, 1)


def majority_cycles(mutual: Flags) -> tuple[tuple[int, ...], ...]:
    """Groups of candidates in a cycle of majorities, in seat order.

    These are the strongly connected components of the strict majority relation.

    Parameters
    ----------
    mutual : bool array, shape (C, C)
        `mutual_reach` of one session.
    """
    cycles: list[tuple[int, ...]] = []
    visited: set[int] = set()
    for candidate in range(len(mutual)):
        ring: Sequence[int] = np.flatnonzero(mutual[candidate]).tolist()
        if candidate not in visited and len(ring) > 2:
            cycles.append(tuple(ring))
            visited.update(ring)
    return tuple(cycles)


def pooled_errors(errors: Floats, n_votes: NDArray[Any]) -> tuple[Floats, Floats]:
    """Errors of mean scores from the pooled variance of a vote.

    A candidate's own few votes know their variance badly: intervals from it cover 86 % instead of
    95 % at the ends of a bounded scale. Pooled, with n[c] votes and error e[c] of candidate c,

        v = Σ (n[c] − 1)·n[c]·e[c]² / Σ (n[c] − 1),    error[c] = √(v / n[c]),

    on Σ (n[c] − 1)·(C − 1)/C degrees of freedom, since the scores of a ballot hang together. Of
    votes that weigh unequally, n is the number of equal ones that they are worth.

    Parameters
    ----------
    errors : float array, shape (C, S)
        Sample standard deviation of the votes over √votes; NaN: none.
    n_votes : int or float array, shape (C, S)

    Returns
    -------
    errors : float array, shape (C, S)
        NaN where there was none.
    df : float array, shape (S,)
        0 where nothing is known.
    """
    known = ~np.isnan(errors) & (n_votes > 1)
    freedom = np.where(known, n_votes - 1, 0)
    total = freedom.sum(axis=0)
    own = np.where(known, errors, 0.0)
    variance = (freedom * n_votes * own**2).sum(axis=0) / np.where(total > 0, total, 1)
    pooled = np.where(known, np.sqrt(variance / np.maximum(n_votes, 1)), np.nan)
    n_known = known.sum(axis=0)
    return pooled, total * np.maximum(n_known - 1, 1) / np.maximum(n_known, 1)


def per_session(values: NDArray[Any]) -> list[Any]:
    """Arrays with sessions last as one list per session, None for NaN."""
    moved = np.moveaxis(values, -1, 0)
    if values.dtype.kind != "f":
        return moved.tolist()  # type: ignore[no-any-return]
    unknown = np.isnan(moved)
    if not unknown.any():
        return moved.tolist()  # type: ignore[no-any-return]
    plain = moved.astype(object)
    plain[unknown] = None
    return plain.tolist()  # type: ignore[no-any-return]


def to_double(values: NDArray[Any]) -> Floats:
    """Double precision; a single-precision number has the digits it is written with."""
    if values.dtype != np.float32:
        return np.asarray(values, dtype=np.float64)
    return np.array([float(str(value)) for value in values.ravel()]).reshape(values.shape)


def _integers_where_whole(values: NDArray[Any]) -> NDArray[Any]:
    """Whole numbers as integers, the others as they are."""
    if values.dtype.kind != "f":
        return values
    if np.all(values == np.rint(values)):
        return values.astype(np.int64)
    plain = values.astype(object)
    whole = values == np.rint(values)
    plain[whole] = values[whole].astype(np.int64)
    return plain


class Outcomes:
    """The outcomes of a batch: blocks over all sessions, from which each is built when asked for.

    Blocks of shape (C, S) and (C, C, S) are in the order of each session's standings.
    """

    def __init__(self, counted: Counted, inference: Inference, why: str) -> None:
        self.counted, self.inference, self.why = counted, inference, why
        self.rule, self.settings = counted.rule, counted.settings
        self.seats = np.argsort(counted.placing.ranks, axis=0, kind="stable")
        self.fitted = np.array([unit is not None for unit in inference.units], dtype=np.bool_)

    def __len__(self) -> int:
        return len(self.counted.electorates)

    def _line(self, values: NDArray[Any]) -> NDArray[Any]:
        """Reorder (C, S) as the standings."""
        return np.take_along_axis(values, self.seats, axis=0)

    def _pair(self, values: NDArray[Any]) -> NDArray[Any]:
        """Reorder (C, C, S) as the standings."""
        ordered: NDArray[Any] = values[self.seats[:, np.newaxis], self.seats, np.arange(len(self))]
        return ordered

    @cached_property
    def fell_back(self) -> Flags:
        """Sessions that the rule could not score, and which show `borda`."""
        fell = self.counted.scores.fell_back
        return np.zeros(len(self), dtype=np.bool_) if fell is None else fell

    @cached_property
    def votes(self) -> NDArray[np.integer[Any]]:
        """Votes of each line."""
        return self._line(self.counted.votes)

    @cached_property
    def score(self) -> Floats:
        """Score of each line."""
        return self._line(self.counted.scores.score)

    @cached_property
    def std_error(self) -> Floats:
        """Standard errors of the rule, including borrowed or shared ones if fitted."""
        errors = self.counted.scores.std_error
        if errors is None:
            return np.full(self.seats.shape, np.nan)
        if self.rule.error == "fit":
            fitted = np.where(np.isnan(errors), np.nan, self.inference.std_errors)
            errors = np.where(self.fitted, fitted, errors)
        return self._line(errors)

    @cached_property
    def barred(self) -> Flags:
        """Candidates that failed the safety gate."""
        rows = [[name in e.failed for name in e.candidates] for e in self.counted.electorates]
        return self._line(np.array(rows, dtype=np.bool_).reshape(self.seats.shape[::-1]).T)

    @cached_property
    def separated(self) -> Flags:
        """Pairs with line i above line j beyond noise."""
        if self.settings.ties == "intervals":
            reach = self.settings.threshold * np.nan_to_num(self.std_error)
            low, high = self.score - reach, self.score + reach
            if self.rule.lower_is_better:
                low, high = -high, -low
            with np.errstate(invalid="ignore"):
                apart = low[:, np.newaxis] >= high
            unknown = np.isnan(self.std_error)
            apart &= ~(unknown[:, np.newaxis] | unknown)
        else:
            apart = self._pair(self.inference.separated)
        ranks = self._line(self.counted.placing.ranks)
        # A dead heat is tied.
        return np.asarray(apart & (ranks[:, np.newaxis] != ranks))

    @cached_property
    def above(self) -> Flags:
        """Lines above each other beyond noise.

        Candidates that may not win, or that have fewer votes than it takes, are apart from the
        others without any statistics.
        """
        level = np.where(self.barred, -1, vote_levels(self.votes))
        return np.where(level[:, np.newaxis] == level, self.separated, level[:, np.newaxis] > level)

    @cached_property
    def against(self) -> Flags:
        """Pairs of lines in opposite order by the fit, beyond noise."""
        upper = np.triu(np.ones(self.above.shape[:2], dtype=np.bool_), k=1)
        return self.above.swapaxes(0, 1) & upper[:, :, np.newaxis]

    @cached_property
    def effective(self) -> Flags:
        """Ballots informing the rule, shape (R, S); all under a rule over time."""
        if self.rule.needs == "history":
            return np.ones((len(self.counted.electorates[0].votes), 1), dtype=np.bool_)
        return effective_ballots(self.counted.profile, self.rule)

    @cached_property
    def lines(self) -> list[list[tuple[Any, ...]]]:
        """Numbers of each session's lines, in the order that `_standings` reads."""
        best = self._line(self.inference.p_best)
        barred = self.barred & np.isfinite(best).any(axis=0)
        intervals = self._intervals()
        offered = np.array([e.offered for e in self.counted.electorates], dtype=np.int64)
        offered = self._line(offered.reshape(self.seats.shape[::-1]).T)
        coverage = np.where(offered > 0, np.minimum(1.0, self.votes / np.maximum(offered, 1)), 0.0)
        following = np.zeros(self.votes.shape, dtype=np.bool_)
        if len(following):
            lines = np.arange(len(following) - 1)
            following[:-1] = ~self.above[lines, lines + 1]
            following[:-1] &= (self.votes[:-1] > 0) & (self.votes[1:] > 0)
        columns = (
            self._line(self.counted.placing.ranks),
            to_double(self.score),
            to_double(self.std_error),
            intervals,
            self.votes,
            self._line(self.counted.wins),
            coverage,
            following,
            np.where(barred, 0.0, best),
            self._line(self.inference.effects),
            tiers(self.above),
            self._line(self._mean_grades()),
        )
        return [
            list(zip(*rows, strict=True)) for rows in zip(*map(per_session, columns), strict=True)
        ]

    def _intervals(self) -> NDArray[Any]:
        """Intervals of the scores, objects of shape (C, S)."""
        low, high = np.full((2, *self.score.shape), np.nan)
        for rule, sessions in ((self.rule, ~self.fell_back), (RULES["borda"], self.fell_back)):
            if sessions.any():
                low[:, sessions], high[:, sessions] = self._interval_ends(rule, sessions)
        intervals = np.full(low.shape, None, dtype=object)
        level = self.settings.level
        for place in zip(*np.nonzero(~np.isnan(low)), strict=True):
            intervals[place] = Interval(float(low[place]), float(high[place]), level)
        return intervals

    def _interval_ends(self, rule: Rule, sessions: Flags) -> tuple[Floats, Floats]:
        """Scores by Student's t, or the normal where the error is asymptotic."""
        score, errors = self.score[:, sessions], self.std_error[:, sessions]
        df = np.full(score.shape[1], math.inf)
        if rule.error == "fit":
            df = np.where(self.fitted, self.inference.df, np.nan)[sessions]
        elif rule.error != "asymptotic":
            n = self._line(self.counted.worth)[:, sessions]
            if rule.error == "population":
                room = np.where(n > 1, n - 1, np.nan)
                errors = errors * np.sqrt(self.votes[:, sessions] / room)
            errors, df = pooled_errors(errors, n)
            # Less than one degree says nothing; only unequal weights leave so little.
            df = np.where(df > 1 - LEVEL, df, np.nan)
        reach = np.full(df.shape, np.nan)
        for freedom in set(df[df > 0].tolist()):
            reach[df == freedom] = t_quantile(1 - (1 - self.settings.level) / 2, freedom)
        half = reach * errors
        half = np.where(half > 0, half, np.nan)
        least, most = rule.bounds
        low = np.maximum(score - half, np.minimum(least, score))
        return low, np.minimum(score + half, np.maximum(most, score))

    def _mean_grades(self) -> Floats:
        profile = self.counted.profile
        if profile.grades is None or profile.n_sessions != len(self):
            return np.full(self.seats.shape, np.nan)
        graded = profile.graded
        mass: NDArray[Any] = graded
        if profile.weights is not None:
            heaviest = profile.weights.max(axis=0, initial=np.finfo(np.float64).tiny)
            mass = graded * (profile.weights / heaviest)[:, np.newaxis]
        total = (mass * np.where(graded, profile.grades, 0.0)).sum(axis=0)
        whole = mass.sum(axis=0)
        return np.where(whole > 0, total / np.where(whole > 0, whole, 1.0), np.nan)

    @cached_property
    def rule_numbers(self) -> tuple[dict[str, list[Any]], dict[str, list[Any]]]:
        """The rule's numbers of each line, and of each session."""
        lines, sessions = {}, {}
        for name, value in self.counted.scores.details.items():
            if value.ndim == 2 and len(value) == len(self.seats):
                lines[name] = per_session(self._line(value))
            elif value.ndim == 3:
                sessions[name] = per_session(self._pair(value))
            elif value.ndim == 1:
                sessions[name] = per_session(value)
        return lines, sessions

    @cached_property
    def unresolved(self) -> list[list[tuple[int, int]]]:
        """Pairs of lines with votes, too close to call."""
        apart = self.separated | self.separated.swapaxes(0, 1)
        apart |= self.barred[:, np.newaxis] != self.barred
        voted = self.votes > 0
        close = ~apart & voted[:, np.newaxis] & voted
        close &= np.triu(np.ones(close.shape[:2], dtype=np.bool_), k=1)[:, :, np.newaxis]
        pairs: list[list[tuple[int, int]]] = [[] for _ in range(len(self))]
        for s, i, j in np.argwhere(np.moveaxis(close, -1, 0)).tolist():
            pairs[s].append((i, j))
        return pairs

    @cached_property
    def agreement(self) -> list[float | None]:
        """Kendall's W of the whole ballots, over the candidates with votes."""
        profile, electorates = self.counted.profile, self.counted.electorates
        if not any(vote.paired for vote in electorates[0].votes):
            voted: Flags = self.counted.votes > 0
            if np.array_equal(profile.ranked.any(axis=0), voted):
                return kendall_ws(profile)
        return [self._own_agreement(column) for column in range(len(self))]

    def _own_agreement(self, column: int) -> float | None:
        whole = [not vote.paired for vote in self.counted.electorates[column].votes]
        ranks = self.counted.profile.ranks[:, :, column][np.array(whole, dtype=np.bool_)]
        return kendall_w(ranks[:, self.counted.votes[:, column] > 0])

    @cached_property
    def taus(self) -> list[list[float | None]]:
        """Kendall's τ-b between each ballot and the outcome."""
        ranks = self.counted.placing.ranks.astype(np.float64)
        return per_session(kendall_taus(self.counted.profile.ranks, ranks))

    @cached_property
    def condorcet(self) -> list[int]:
        """Seat of the Condorcet winner; −1: nobody."""
        winners: list[int] = condorcet_winners(
            self.counted.margins, self.counted.votes > 0
        ).tolist()
        return winners

    @cached_property
    def mutual(self) -> Flags:
        """Pairs of seats that reach each other through strict majorities."""
        return mutual_reach(self.counted.margins)

    @cached_property
    def numbers(self) -> dict[str, list[Any]]:
        """Other values of each session, by name."""
        inference, counted = self.inference, self.counted
        return {
            "p_beats": per_session(self._pair(inference.p_beats)),
            "margins": per_session(self._pair(_integers_where_whole(counted.margins))),
            "rho": per_session(inference.rho),
            "df": per_session(np.where(self.fitted, inference.df, np.nan)),
            "n_ballots": per_session(self.effective.sum(axis=0)),
            "against": np.any(self.against, axis=(0, 1)).tolist(),
            "cyclic": np.any(self.mutual, axis=(0, 1)).tolist(),
            "ineffective": (~np.all(self.effective, axis=0)).tolist(),
        }

    def __getitem__(self, column: int) -> Outcome:
        numbers = {name: values[column] for name, values in self.numbers.items()}
        electorate = self.counted.electorates[column]
        names = [electorate.candidates[seat] for seat in self.seats[:, column].tolist()]
        lines = _standings(self, column, names)
        unresolved = tuple((names[i], names[j]) for i, j in self.unresolved[column])
        against = self.against[:, :, column] if numbers["against"] else None
        disputed_by = () if against is None else tuple(compress(names, against[0].tolist()))
        winner, unit = self.condorcet[column], self.inference.units[column]
        flips, exact = _flips(self, column, lines), self.counted.flips_exact
        ineffective = _ineffective_reviewers(self, column) if numbers["ineffective"] else ()
        tie_broken_by = _tie_broken_by(self, column)
        given = self.settings.rho
        rho = given if isinstance(given, float | int) else numbers["rho"]
        own = self.settings.parameters if self.settings.rule == self.rule.name else {}
        fell_back = bool(self.fell_back[column])
        return Outcome(
            session=electorate.session,
            rule=self.rule.name,
            parameters={**self.rule.parameters, **own},
            why=f"{self.why}; every ballot is flat, so borda scores are shown"
            if fell_back
            else self.why,
            interpretation=interpretation(
                lines,
                can_tell=_can_tell(self, column),
                unresolved=unresolved,
                disputed_by=disputed_by,
            ),
            standings=lines,
            p_beats=tuple(map(tuple, numbers["p_beats"])),
            unresolved=unresolved,
            disputed_by=disputed_by,
            condorcet_winner=None if winner < 0 else electorate.candidates[winner],
            cycles=_cycles(self, column) if numbers["cyclic"] else (),
            kendall_w=self.agreement[column],
            n_ballots=numbers["n_ballots"],
            n_abstentions=len(electorate.abstentions),
            effective_votes=None if unit is None else _effective_votes(self, column, rho or 0.0),
            rho=rho,
            rho_is_assumed=given == "public" and rho is not None,
            ballots_to_flip=flips,
            flip_is_exact=bool(exact[column]) if exact is not None and flips is not None else None,
            tie_broken_by=tie_broken_by,
            ties=self.settings.ties,
            level=self.settings.level,
            fit=unit,
            df=numbers["df"],
            prior=self.inference.priors[column],
            recusal=self.settings.counting.recusal,
            unranked=self.settings.counting.unranked,
            ballots=_ballot_notes(electorate, self.taus[column]),
            abstentions=dict(electorate.abstentions),
            order_kept=dict(electorate.order_kept),
            margins=tuple(map(tuple, numbers["margins"])),
            fell_back_to="borda" if fell_back else None,
            details=_details(self, column),
            warnings=(
                *electorate.warnings,
                *_warnings(self, column, ineffective, tie_broken_by),
                *(() if against is None else _disputed_pairs(self.rule, names, against)),
            ),
            without_effect=ineffective,
            scales=electorate.scales,
        )


def _standings(batch: Outcomes, column: int, names: Sequence[str]) -> tuple[Standing, ...]:
    """The lines of one session, best first."""
    electorate = batch.counted.electorates[column]
    alone = len(electorate.reviewers) < 2
    per_line, _ = batch.rule_numbers
    details = {name: values[column] for name, values in per_line.items()}
    lines = []
    for line, (name, numbers) in enumerate(zip(names, batch.lines[column], strict=True)):
        rank, score, error, interval, votes, wins, coverage, tied, best, effect, tier, grade = (
            numbers
        )
        lines.append(
            Standing(
                candidate=name,
                rank=rank,
                score=score,
                std_error=error,
                interval=interval,
                votes=votes,
                wins=wins,
                coverage=coverage,
                confidence=_confidence(coverage, alone=alone),
                tied_with_next=tied,
                p_best=best,
                effect=effect,
                tier=tier,
                mean_grade=grade,
                band=_band(grade),
                failed=electorate.failed.get(name, ()),
                details=_line_details(batch.rule, details, line, score, len(names)),
            )
        )
    return tuple(lines)


def _line_details(
    rule: Rule, details: Mapping[str, Sequence[Any]], line: int, score: float | None, n: int
) -> dict[str, Any]:
    numbers = {name: values[line] for name, values in details.items()}
    if score is not None:
        numbers |= {name: restate(score, n) for name, restate in rule.restated.items()}
    return numbers


def _confidence(coverage: float, *, alone: bool) -> Confidence:
    if alone or coverage < 0.5:
        return "low"
    return "high" if coverage >= 0.8 else "medium"


def _band(grade: float | None) -> str | None:
    if grade is None:
        return None
    return next((name for least, name in BANDS if grade >= least), "poor")


def _informing_ballots(batch: Outcomes, column: int) -> list[Vote]:
    """The ballots that inform the rule."""
    votes = batch.counted.electorates[column].votes
    return list(compress(votes, batch.effective[:, column].tolist()))


def _details(batch: Outcomes, column: int) -> dict[str, Any]:
    """The rule's numbers of the session, and how many reviewers are people."""
    electorate = batch.counted.electorates[column]
    details = {name: values[column] for name, values in batch.rule_numbers[1].items()}
    if any(vote.kind == "human" for vote in electorate.votes):
        cast = [vote for vote in _informing_ballots(batch, column) if vote.kind == "human"]
        if people := {vote.reviewer for vote in cast}:
            details["people"] = len(people)
        if unnamed := {vote.reviewer for vote in cast if vote.paired and is_unnamed(vote.reviewer)}:
            details["unnamed_votes"] = len(unnamed)
    if batch.rule.trace and electorate.votes:
        profile = batch.counted.profile.take(slice(column, column + 1))
        names = electorate.candidates
        details |= {name: tell(profile, names) for name, tell in batch.rule.trace.items()}
    return details


def _cycles(batch: Outcomes, column: int) -> tuple[tuple[str, ...], ...]:
    names = batch.counted.electorates[column].candidates
    rings = majority_cycles(batch.mutual[:, :, column])
    return tuple(tuple(names[seat] for seat in ring) for ring in rings)


def _can_tell(batch: Outcomes, column: int) -> bool | None:
    """True with enough ballots to separate any pair; None: not applicable."""
    if batch.rule.needs == "history":
        return None
    if batch.settings.ties == "intervals":
        return True
    return bool(batch.inference.can_tell[column])


def _ballot_notes(electorate: Electorate, taus: Sequence[float | None]) -> tuple[BallotNote, ...]:
    return tuple(
        BallotNote(
            reviewer=vote.reviewer,
            tau=tau,
            weight=vote.weight,
            mismatch=vote.mismatch,
            ranking=vote.groups,
        )
        for vote, tau in zip(electorate.votes, taus, strict=True)
    )


def _effective_votes(batch: Outcomes, column: int, rho: float) -> float:
    """Equal and independent reviewers that the reviewers are worth.

    With weights w of sum 1, of which the models have the share m, it is

        1 / (Σ w² + ρ·(m² − Σ w² of the models)),

    what one reviewer's variance has over that of the weighted mean; of equal models R / (1 +
    (R − 1)·ρ). Source: the design effects of Kish, Survey Sampling, 1965, sections 8.2 and 11.7.
    """
    weights: dict[str, tuple[str, float]] = {}
    for vote in _informing_ballots(batch, column):
        _, known = weights.get(vote.reviewer, ("", 0.0))
        weights[vote.reviewer] = (vote.kind, max(vote.weight, known))
    heaviest = max((weight for _, weight in weights.values()), default=1.0)
    shares = [(kind, weight / heaviest) for kind, weight in weights.values()]
    total = sum(weight for _, weight in shares)
    of_models = [weight for kind, weight in shares if kind == "model"]
    together = sum(of_models) ** 2 - sum(weight * weight for weight in of_models)
    variance = sum(weight * weight for _, weight in shares) + rho * together
    return total * total / variance if variance else 0.0


def _ineffective_reviewers(batch: Outcomes, column: int) -> tuple[str, ...]:
    """Reviewers with ballots, none of them informing the rule."""
    effective = {vote.reviewer for vote in _informing_ballots(batch, column)}
    votes = batch.counted.electorates[column].votes
    cast = dict.fromkeys(vote.reviewer for vote in votes if vote.weight > 0)
    return tuple(reviewer for reviewer in cast if reviewer not in effective)


def _flips(batch: Outcomes, column: int, lines: Sequence[Standing]) -> int | None:
    # Where nobody stands against the leader, there is nobody to flip to.
    if batch.counted.flips is None or sum(line.votes > 0 for line in lines) < 2:
        return None
    flips = int(batch.counted.flips[column])
    return flips if flips >= 0 else None


def _tie_broken_by(batch: Outcomes, column: int) -> str | None:
    scores = batch.counted.scores
    if scores.seat_order_decided is not None and scores.seat_order_decided[column]:
        return "seat order"
    if batch.counted.placing.broken[column]:
        return batch.settings.tie_break or batch.rule.tie_break
    by_borda = scores.details.get("decided_by_borda")
    return "borda" if by_borda is not None and by_borda[column] else None


def _disputed_pairs(rule: Rule, names: Sequence[str], against: Flags) -> Iterator[str]:
    """Pairs of lines in opposite order by the fit, beyond noise."""
    for line in np.flatnonzero(against.any(axis=1)).tolist():
        below = join_names(list(compress(names, against[line].tolist())))
        yield (
            f"{rule.name} places {names[line]} above {below}; the fit of the same ballots says the "
            "reverse, beyond noise"
        )


def _warnings(
    batch: Outcomes, column: int, ineffective: Sequence[str], tie_broken_by: str | None
) -> Iterator[str]:
    """Warnings to read before believing the standings."""
    electorate = batch.counted.electorates[column]
    if not batch.inference.connected[column]:
        yield (
            "some candidates were never compared, not even through others; their order says nothing"
        )
    if batch.rule.needs == "grades" and ineffective:
        yield (
            f"no grades by {join_names(ineffective)}: their ballots do not count by "
            f"{batch.rule.name}"
        )
    if mismatched := [vote.reviewer for vote in electorate.votes if vote.mismatch]:
        where = f"on the ballot of {join_names(mismatched)}"
        yield f"ranking and grades contradict each other {where}"
    ungraded = batch.counted.scores.details.get("ungraded")
    if ungraded is not None and ungraded[:, column].any():
        bare = join_names(list(compress(electorate.candidates, ungraded[:, column].tolist())))
        yield f"no grade for {bare}: {batch.rule.name} goes by rankings alone there"
    if tie_broken_by == "seat order":
        yield "ties were too many to follow them all: seat order decided, not the ballots"
    for name, flags in electorate.failed.items():
        yield f"{name} failed the safety gate ({', '.join(flags)}) and cannot win"
