"""Build outcomes from the arrays of counted sessions."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from functools import lru_cache, partial
from itertools import chain, combinations, compress, repeat
from typing import Any

import numpy as np
from numpy.typing import NDArray

from witan.core.attributes import cached_property
from witan.core.ballot import is_unnamed
from witan.core.counting import BatchCount, failed_candidates
from witan.core.inference import Inference, infer
from witan.core.outcome import (
    ALL_BARRED,
    MIN_VOTES,
    BallotNote,
    Deferral,
    Interval,
    Outcome,
    Standing,
    describe_standings,
    join_names,
)
from witan.core.placing import vote_levels
from witan.core.profile import (
    Floats,
    Vote,
    none_for_nan,
    pair_indices,
    pair_mask,
    per_session,
)
from witan.core.rules import RULES, Rule
from witan.core.sequential import look_level
from witan.core.stats.concordance import (
    condorcet_winners,
    kendall_taus,
    kendall_w,
    kendall_ws,
    majority_cycles,
    mutual_reach,
)
from witan.core.stats.distributions import t_quantile
from witan.core.stats.uncertainty import pooled_errors, tiers

Flags = NDArray[np.bool_]

ROUNDING = 1e-9
"""Tolerance for comparing degrees of freedom with 1."""

BANDS = ((8.0, "excellent"), (6.0, "good"), (4.0, "fair"))


def _integers_where_whole(values: NDArray[Any]) -> NDArray[Any]:
    if values.dtype.kind != "f":
        return values
    whole = (values == np.rint(values)) & (np.abs(values) < 1 << 53)
    if whole.all():
        return values.astype(np.int64)
    plain = values.astype(object)
    plain[whole] = values[whole].astype(np.int64)
    return plain


class Outcomes:
    """The outcomes of a batch as blocks over all sessions.

    An outcome is built when it is read. Blocks of shape (C, S) and (C, C, S) are in the order of
    each session's standings.

    Parameters
    ----------
    infer_from
        Function that computes the inference on first use.
    """

    def __init__(
        self, counted: BatchCount, why: str, infer_from: Callable[[BatchCount], Inference] = infer
    ) -> None:
        self.count, self.why, self._infer_from = counted, why, infer_from
        self.rule, self.settings = counted.rule, counted.settings
        self.seats = counted.placing.ranks.argsort(axis=0, kind="stable")
        self.every = np.arange(len(self))

    def __len__(self) -> int:
        return len(self.count.electorates)

    def _line(self, values: NDArray[Any]) -> NDArray[Any]:
        """Reorder a (C, S) block like the standings."""
        ordered: NDArray[Any] = values[self.seats, self.every]
        return ordered

    def _pair(self, values: NDArray[Any]) -> NDArray[Any]:
        """Reorder a (C, C, S) block like the standings."""
        ordered: NDArray[Any] = values[self.seats[:, np.newaxis], self.seats, self.every]
        return ordered

    @cached_property
    def inference(self) -> Inference:
        """Effects, errors and probabilities."""
        return self._infer_from(self.count)

    @cached_property
    def fit_mask(self) -> Flags:
        """Sessions with a fit."""
        return np.array([unit is not None for unit in self.inference.units], dtype=np.bool_)

    @cached_property
    def fallbacks(self) -> Flags:
        """Sessions that the rule could not score, scored by `borda`."""
        fell = self.count.scores.fell_back
        return np.zeros(len(self), dtype=np.bool_) if fell is None else fell

    @cached_property
    def names(self) -> list[list[str]]:
        """The candidates of each session in the order of its standings."""
        candidates = np.array([each.candidates for each in self.count.electorates], dtype=object)
        ordered = self._line(candidates.reshape(self.seats.shape[::-1]).T)
        return ordered.T.tolist()  # type: ignore[no-any-return]

    @cached_property
    def ranks(self) -> NDArray[np.integer[Any]]:
        """Rank of each line."""
        return self._line(self.count.placing.ranks)

    @cached_property
    def votes(self) -> NDArray[np.integer[Any]]:
        """Votes of each line."""
        return self._line(self.count.votes)

    @cached_property
    def score(self) -> Floats:
        """Score of each line."""
        return self._line(self.count.scores.score)

    @cached_property
    def std_error(self) -> Floats:
        """Standard errors of the rule; if fitted, with prior and shared error."""
        errors = self.count.scores.std_error
        if errors is None:
            return np.full(self.seats.shape, np.nan)
        if self.rule.error == "fit":
            fitted = np.where(np.isnan(errors), np.nan, self.inference.std_errors)
            errors = np.where(self.fit_mask, fitted, errors)
        return self._line(errors)

    @cached_property
    def gate_failures(self) -> Flags:
        """Lines of candidates that failed the safety gate."""
        failed = failed_candidates(self.count.electorates)
        return np.zeros(self.seats.shape, dtype=np.bool_) if failed is None else self._line(failed)

    @cached_property
    def separation_mask(self) -> Flags:
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
            apart = self._pair(self.inference.separation_mask)
        # Lines of equal rank are tied.
        return np.asarray(apart & (self.ranks[:, np.newaxis] != self.ranks))

    @cached_property
    def superiority(self) -> Flags:
        """Pairs of lines separated beyond noise, by the gate or by votes.

        Candidates that failed the gate or have too few votes are separated without statistics.
        """
        level = np.where(self.gate_failures, -1, vote_levels(self.votes))
        return np.where(
            level[:, np.newaxis] == level, self.separation_mask, level[:, np.newaxis] > level
        )

    @cached_property
    def against(self) -> Flags:
        """Pairs of lines that the fit places in opposite order, beyond noise."""
        return self.superiority.swapaxes(0, 1) & pair_mask(len(self.seats))

    @cached_property
    def effective(self) -> Flags:
        """Ballots that affect the scores, (R, S); all for rules over histories."""
        if self.rule.needs == "history":
            return np.ones((len(self.count.electorates[0].votes), 1), dtype=np.bool_)
        return self.count.effective

    @cached_property
    def lines(self) -> list[tuple[Any, ...]]:
        """Fields of `Standing` of all lines by session, with intervals as mappings."""
        best = self._line(self.inference.beliefs.p_best)
        barred = self.gate_failures & np.isfinite(best).any(axis=0)
        offered = np.array([e.offered for e in self.count.electorates], dtype=np.int64)
        offered = self._line(offered.reshape(self.seats.shape[::-1]).T)
        share = np.minimum(1.0, self.votes / np.maximum(offered, 1))
        coverage = np.where(offered > 0, share, 0.0)
        following, voted = np.zeros(self.votes.shape, dtype=np.bool_), self.votes > 0
        following[:-1] = ~self.superiority.diagonal(1).T & voted[:-1] & voted[1:]
        grades = self._line(self._mean_grades())
        numbers = np.array(
            [
                self.score,
                self.std_error,
                self._line(self.count.wins),
                coverage,
                np.where(barred, 0.0, best),
                self._line(self.inference.effects),
                grades,
            ]
        )
        flat = none_for_nan(numbers.swapaxes(1, 2).reshape(len(numbers), -1))
        scores, errors, wins, shares, p_best, effects, means = flat
        confidence, bands = self._confidence(coverage), _bands(grades)
        ranks, votes, words, close, tier, band = (
            column.T.ravel().tolist()
            for column in (self.ranks, self.votes, confidence, following, self.tiers, bands)
        )
        names, intervals = chain.from_iterable(self.names), self._intervals()
        details = self._line_details(scores)
        first = (names, ranks, scores, errors, intervals, votes, wins, shares, words, close)
        rest = (p_best, effects, tier, means, band, self._flags(), details)
        return list(zip(*first, *rest, strict=True))

    def _flags(self) -> Iterable[tuple[str, ...]]:
        if not self.gate_failures.any():
            return repeat((), self.seats.size)
        pairs = zip(self.names, self.count.electorates, strict=True)
        return [electorate.failed.get(name, ()) for names, electorate in pairs for name in names]

    def _line_details(self, scores: Sequence[float | None]) -> Iterable[Mapping[str, Any]]:
        columns = {
            name: chain.from_iterable(values) for name, values in self.rule_numbers[0].items()
        }
        restatements = self.rule.restatements
        if not columns and not restatements:
            return repeat({}, self.seats.size)
        rows: Iterable[tuple[Any, ...]] = zip(*columns.values(), strict=True)
        if not columns:
            rows = repeat((), self.seats.size)
        details = [dict(zip(columns, row, strict=True)) for row in rows]
        for line, score in zip(details, scores, strict=True):
            if score is not None:
                line |= {
                    name: restate(score, len(self.seats)) for name, restate in restatements.items()
                }
        return details

    def _confidence(self, coverage: Floats) -> NDArray[Any]:
        """Describe coverage in words; with only one counted reviewer it is low."""
        voters = (e.voters for e in self.count.electorates)
        counted = map(set, map(compress, voters, self.effective_rows))
        alone = np.array([len(each) < 2 for each in counted], dtype=np.bool_)
        level = np.where(alone, 0, (coverage >= 0.5).astype(np.int64) + (coverage >= 0.8))
        words: NDArray[Any] = _CONFIDENCE[level]
        return words

    def _intervals(self) -> list[dict[str, float] | None]:
        """Compute score intervals as mappings, line by line; None: unknown."""
        if self.fallbacks.any():
            low, high = np.full((2, *self.score.shape), np.nan)
            for rule, chosen in ((self.rule, ~self.fallbacks), (RULES["borda"], self.fallbacks)):
                low[:, chosen], high[:, chosen] = self._interval_ends(rule, chosen)
        else:
            low, high = self._interval_ends(self.rule, slice(None))
        level = self.settings.level
        ends = zip(low.T.ravel().tolist(), high.T.ravel().tolist(), strict=True)
        return [
            None if math.isnan(least) else {"low": least, "high": most, "level": level}
            for least, most in ends
        ]

    def _interval_ends(self, rule: Rule, sessions: Flags | slice) -> tuple[Floats, Floats]:
        """Compute intervals' ends by Student's t, or normal for asymptotic errors."""
        score, errors = self.score[:, sessions], self.std_error[:, sessions]
        if rule.error == "fit":
            df = self.inference.df[sessions]
        elif rule.error == "asymptotic":
            df = np.full(score.shape[1], math.inf)
        else:
            n = self._line(self.count.equivalent_votes)[:, sessions]
            if rule.error == "population":
                room = np.where(n > 1, n - 1, np.nan)
                errors = errors * np.sqrt(self.votes[:, sessions] / room)
            errors, df = pooled_errors(errors, n)
            # Below one degree of freedom, which unequal weights can cause, intervals mean nothing.
            df = np.where(df > 1 - ROUNDING, df, np.nan)
        reach = np.full(df.shape, np.nan)
        level = look_level(self.settings.level, self.settings.looks, 0.0)
        for freedom in set(df[df > 0].tolist()):
            reach[df == freedom] = t_quantile(1 - (1 - level) / 2, freedom)
        half = reach * errors
        half = np.where(half > 0, half, np.nan)
        least, most = rule.bounds
        low = np.maximum(score - half, np.minimum(least, score))
        return low, np.minimum(score + half, np.maximum(most, score))

    def _mean_grades(self) -> Floats:
        profile = self.count.profile
        if profile.grades is None or profile.n_sessions != len(self):
            return np.full(self.seats.shape, np.nan)
        graded = profile.grade_mask
        mass: NDArray[Any] = graded
        if profile.weights is not None:
            heaviest = profile.weights.max(axis=0, initial=np.finfo(np.float64).tiny)
            mass = graded * (profile.weights / heaviest)[:, np.newaxis]
        total = (mass * np.where(graded, profile.grades, 0.0)).sum(axis=0)
        whole = mass.sum(axis=0)
        return np.where(whole > 0, total / np.where(whole > 0, whole, 1.0), np.nan)

    @cached_property
    def rule_numbers(self) -> tuple[dict[str, list[Any]], dict[str, list[Any]]]:
        """The rule's details of each line, and of each session."""
        lines, sessions = {}, {}
        for name, value in self.count.scores.details.items():
            if value.ndim == 2 and len(value) == len(self.seats):
                lines[name] = per_session(self._line(value))
            elif value.ndim == 3:
                sessions[name] = per_session(self._pair(value))
            elif value.ndim == 1:
                sessions[name] = per_session(value)
        return lines, sessions

    @cached_property
    def close_mask(self) -> Flags:
        """Pairs of lines with votes, upper line first, too close to call."""
        apart = self.separation_mask | self.separation_mask.swapaxes(0, 1)
        apart |= self.gate_failures[:, np.newaxis] != self.gate_failures
        voted = self.votes > 0
        close = ~apart & voted[:, np.newaxis] & voted
        return np.asarray(close & pair_mask(len(close)))

    @cached_property
    def leads(self) -> Flags:
        """Seats of `Outcome.leaders`, (C, S)."""
        return np.asarray((self.count.placing.ranks == 1) & (self.count.votes > 0))

    @cached_property
    def tiers(self) -> NDArray[np.integer[Any]]:
        """Tier of each line."""
        return tiers(self.superiority)

    @cached_property
    def first_lines(self) -> Flags:
        """Lines of the best rank with votes."""
        voted, lowest = self.votes > 0, len(self.ranks) + 1
        best = np.where(voted, self.ranks, lowest).min(axis=0, initial=lowest)
        return np.asarray(voted & (self.ranks == best))

    @cached_property
    def tied_lines(self) -> Flags:
        """Lines of `Outcome.tied_for_best`."""
        enough = self.votes >= MIN_VOTES
        close = (self.first_lines[:, np.newaxis] & self.close_mask).any(axis=0)
        several = enough.sum(axis=0) > 1
        return np.asarray(self.first_lines | (close & np.where(several, enough, self.votes > 0)))

    @cached_property
    def clear_leads(self) -> Flags:
        """Sessions with an `Outcome.clear_leader`."""
        by_seat = self.count.scores.seat_order_decided
        decided = ~self.against[:1].any(axis=(0, 1))
        decided &= True if by_seat is None else ~by_seat
        rivals = (self.votes >= MIN_VOTES).sum(axis=0) > 1
        return np.asarray(decided & rivals & (self.tied_lines.sum(axis=0) == 1))

    @cached_property
    def close_pairs(self) -> list[tuple[tuple[str, str], ...]]:
        """Names of the pairs too close to call, session by session."""
        if len(self.seats) < 2:
            return [()] * len(self)
        flags = self.close_mask[pair_indices(len(self.seats))].T.tolist()
        pairs = zip(self.names, flags, strict=True)
        return [tuple(compress(combinations(names, 2), close)) for names, close in pairs]

    @cached_property
    def concordance(self) -> list[float | None]:
        """Kendall's W of the full ballots, over the candidates with votes."""
        profile, electorates = self.count.profile, self.count.electorates
        if not electorates[0].is_paired:
            voted: Flags = self.count.votes > 0
            if (profile.rank_mask.any(axis=0) == voted).all():
                return kendall_ws(profile)
        return [self._own_concordance(column) for column in range(len(self))]

    def _own_concordance(self, column: int) -> float | None:
        whole = [not vote.paired for vote in self.count.electorates[column].votes]
        ranks = self.count.profile.ranks[:, :, column][np.array(whole, dtype=np.bool_)]
        return kendall_w(ranks[:, self.count.votes[:, column] > 0])

    @cached_property
    def taus(self) -> list[list[float | None]]:
        """Kendall's τ-b between each ballot and the outcome."""
        ranks = self.count.placing.ranks.astype(np.float64)
        return per_session(kendall_taus(self.count.profile.ranks, ranks))

    @cached_property
    def condorcet(self) -> list[int]:
        """Seat of the Condorcet winner; −1: there is none."""
        winners: list[int] = condorcet_winners(self.count.margins, self.count.votes > 0).tolist()
        return winners

    @cached_property
    def mutual(self) -> Flags:
        """Pairs of seats with strict-majority paths both ways."""
        return mutual_reach(self.count.margins)

    @cached_property
    def p_beats(self) -> Floats:
        """P(line i above line j), shape (C, C, S)."""
        return self._pair(self.inference.beliefs.p_beats)

    @cached_property
    def margins(self) -> NDArray[Any]:
        """Margins between lines, shape (C, C, S); integers where whole."""
        return self._pair(_integers_where_whole(self.count.margins))

    @cached_property
    def columns(self) -> dict[str, Sequence[Any]]:
        """Fields of `Outcome` by name, session by session.

        The fields built from blocks (standings, `p_beats`, `margins`) are left out; ballots are
        rows.
        """
        inference, electorates = self.inference, self.count.electorates
        rho_setting, n = self.settings.rho, len(self)
        rhos = [rho_setting] * n if isinstance(rho_setting, float | int) else inference.rhos
        flips, exact = self._flips()
        fell = self.fallbacks.tolist()
        flat = f"{self.why}; every ballot is flat, so borda scores are shown"
        return {
            **{name: [value] * n for name, value in self._shared.items()},
            **self._findings(),
            "session": [each.session for each in electorates],
            "why": [flat if one else self.why for one in fell],
            "condorcet_winner": [
                None if winner < 0 else each.candidates[winner]
                for winner, each in zip(self.condorcet, electorates, strict=True)
            ],
            "kendall_w": self.concordance,
            "n_ballots": self.effective.sum(axis=0).tolist(),
            "n_abstentions": [len(each.abstentions) for each in electorates],
            "effective_votes": [
                None if unit is None else _effective_votes(self, column, rho or 0.0)
                for column, (unit, rho) in enumerate(zip(inference.units, rhos, strict=True))
            ],
            "rho": rhos,
            "rho_is_assumed": [isinstance(rho_setting, str) and rho is not None for rho in rhos],
            "ballots_to_flip": flips,
            "flip_is_exact": exact,
            "tie_broken_by": self.tie_breaks,
            "fell_back_to": ["borda" if one else None for one in fell],
            "fit": inference.units,
            "df": per_session(inference.df),
            "prior": inference.priors,
            "ballots": [
                each.notes(taus) for each, taus in zip(electorates, self.taus, strict=True)
            ],
            "abstentions": [dict(each.abstentions) for each in electorates],
            "order_kept": [dict(each.order_kept) for each in electorates],
            "scales": [each.scales for each in electorates],
            "details": [_details(self, column) for column in range(n)],
        }

    def _findings(self) -> dict[str, Sequence[Any]]:
        n, electorates = len(self), self.count.electorates
        disputes: list[tuple[str, ...]] = [()] * n
        cycles: list[tuple[tuple[str, ...], ...]] = [()] * n
        idle: list[tuple[str, ...]] = [()] * n
        warnings = [each.warnings for each in electorates]
        for column, remarks in enumerate(self.remarks):
            if not any(remarks):
                continue
            has_against, has_cycles, has_idle, has_warnings = remarks
            against = self.against[:, :, column] if has_against else None
            if against is not None:
                disputes[column] = tuple(compress(self.names[column], against[0].tolist()))
            if has_cycles:
                cycles[column] = _cycles(self, column)
            if has_idle:
                idle[column] = _idle_reviewers(self, column)
            if has_warnings:
                own = _warnings(self, column, idle[column], against)
                warnings[column] = (*warnings[column], *own)
        lines = zip(self.names, self.votes.T.tolist(), self.tiers.T.tolist(), strict=True)
        sentences = map(
            describe_standings,
            (tuple(zip(*each, strict=True)) for each in lines),
            self.best,
            self.tied_for_best,
            self._can_tell,
            self.close_pairs,
            disputes,
            [decider == "seat order" for decider in self.tie_breaks],
        )
        passed = (~self.gate_failures & (self.votes > 0)).any(axis=0) | (self.votes == 0).all(
            axis=0
        )
        return {
            "interpretation": [
                sentence if winnable else ALL_BARRED
                for sentence, winnable in zip(sentences, passed.tolist(), strict=True)
            ],
            "unresolved": self.close_pairs,
            "disputed_by": disputes,
            "cycles": cycles,
            "without_effect": idle,
            "warnings": warnings,
        }

    def _flips(self) -> tuple[Sequence[int | None], Sequence[bool | None]]:
        """`ballots_to_flip` and `flip_is_exact` of each session."""
        if self.count.flips is None:
            return [None] * len(self), [None] * len(self)
        flips, exact = self.count.flips
        # Without a rival, no other candidate can lead.
        searched = ((flips >= 0) & ((self.votes > 0).sum(axis=0) > 1)).tolist()
        counts = [n if known else None for n, known in zip(flips.tolist(), searched, strict=True)]
        sure = zip(exact.tolist(), searched, strict=True)
        return counts, [is_exact if known else None for is_exact, known in sure]

    @cached_property
    def tie_breaks(self) -> Sequence[str | None]:
        """The tie-break that separated equal scores, for each session."""
        scores, rule = self.count.scores, self.settings.tie_break or self.rule.tie_break
        by_borda, by_seat = scores.details.get("decided_by_borda"), scores.seat_order_decided
        deciders = np.full(len(self), None, dtype=object)
        if by_borda is not None:
            deciders[by_borda.astype(np.bool_)] = "borda"
        deciders[self.count.placing.tie_breaks] = rule
        if by_seat is not None:
            deciders[by_seat] = "seat order"
        return deciders.tolist()

    @cached_property
    def remarks(self) -> list[tuple[bool, bool, bool, bool]]:
        """Flags of sessions for opposite orders, cycles, idle ballots and warnings."""
        against = self.against.any(axis=(0, 1))
        idle = ~self.effective.all(axis=0)
        warned = against | idle | ~self.inference.is_connected
        warned |= [any(e.mismatches) or bool(e.failed) for e in self.count.electorates]
        if (ungraded := self.count.scores.details.get("ungraded")) is not None:
            warned |= np.any(ungraded, axis=0)
        if (by_seat := self.count.scores.seat_order_decided) is not None:
            warned |= by_seat
        columns = (against, self.mutual.any(axis=(0, 1)), idle, warned)
        return list(zip(*[column.tolist() for column in columns], strict=True))

    @cached_property
    def leaders(self) -> list[tuple[str, ...]]:
        """`Outcome.leaders` of each session."""
        return self._chosen((self.ranks == 1) & (self.votes > 0))

    @cached_property
    def tied_for_best(self) -> list[tuple[str, ...]]:
        """`Outcome.tied_for_best` of each session."""
        return self._chosen(self.tied_lines)

    @cached_property
    def clear_leaders(self) -> list[str | None]:
        """`Outcome.clear_leader` of each session."""
        tied = zip(self.clear_leads.tolist(), self.tied_for_best, strict=True)
        return [names[0] if is_clear else None for is_clear, names in tied]

    @cached_property
    def best(self) -> list[tuple[str, ...]]:
        """Candidates of the best rank with votes, for each session."""
        return self._chosen(self.first_lines)

    def _chosen(self, lines: Flags) -> list[tuple[str, ...]]:
        return [tuple(compress(*each)) for each in zip(self.names, lines.T.tolist(), strict=True)]

    @cached_property
    def _shared(self) -> dict[str, Any]:
        settings, rule = self.settings, self.rule
        return {
            "rule": rule.name,
            "parameters": {**rule.parameters, **settings.parameters_of(rule.name)},
            "ties": settings.ties,
            "level": settings.level,
            "recusal": settings.counting.recusal,
            "unranked": settings.counting.unranked,
        }

    @cached_property
    def _can_tell(self) -> Sequence[bool | None]:
        """Flags of sessions with enough ballots to separate a pair; None over histories."""
        if self.rule.needs == "history":
            return [None] * len(self)
        if self.settings.ties == "intervals":
            return [True] * len(self)
        can_tell: list[bool | None] = self.inference.can_tell.tolist()
        return can_tell

    @cached_property
    def effective_rows(self) -> list[tuple[bool, ...]]:
        """`effective`, session by session."""
        return list(map(tuple, self.effective.T.tolist()))

    def __getitem__(self, column: int) -> Outcome:
        fields = {name: values[column] for name, values in self.columns.items()}
        n_lines = len(self.seats)
        lines = self.lines[column * n_lines : (column + 1) * n_lines]
        fields["parameters"] = {**fields["parameters"]}
        fields["standings"] = tuple([_standing(*line) for line in lines])
        fields["ballots"] = tuple([BallotNote(*note) for note in fields["ballots"]])
        p_beats, margins = (tuple(map(tuple, each[column])) for each in self._matrices)
        return Outcome(**fields, p_beats=p_beats, margins=margins)

    def defer(self, column: int) -> Outcome:
        """Create an outcome with places, votes and close pairs; defer the rest."""
        whole = Deferral(self, column)
        electorate = self.count.electorates[column]
        lines = zip(
            self.names[column],
            self.ranks[:, column].tolist(),
            self.votes[:, column].tolist(),
            strict=True,
        )
        notes = electorate.notes([None] * len(electorate.votes))
        effective = self.effective[:, column]
        return Outcome.defer(
            whole,
            session=electorate.session,
            rule=self.rule.name,
            level=self.settings.level,
            standings=tuple(
                Standing.defer(partial(whole.standing, at), candidate=name, rank=rank, votes=votes)
                for at, (name, rank, votes) in enumerate(lines)
            ),
            ballots=tuple(
                BallotNote.defer(
                    partial(whole.note, at),
                    reviewer=reviewer,
                    weight=weight,
                    mismatch=mismatch,
                    ranking=ranking,
                )
                for at, (reviewer, _, weight, mismatch, ranking) in enumerate(notes)
            ),
            unresolved=self.close_pairs[column],
            n_ballots=int(effective.sum()),
            without_effect=() if effective.all() else _idle_reviewers(self, column),
        )

    @cached_property
    def _matrices(self) -> tuple[list[Any], list[Any]]:
        return per_session(self.p_beats), per_session(self.margins)


def _standing(*line: Any) -> Standing:
    interval, details = line[_INTERVAL], dict(line[-1])
    interval_or_none = None if interval is None else Interval(**interval)
    return Standing(*(*line[:_INTERVAL], interval_or_none, *line[_INTERVAL + 1 : -1], details))


_INTERVAL = [each.name for each in fields(Standing)].index("interval")


_CONFIDENCE = np.array(["low", "medium", "high"], dtype=object)


_BANDS = (
    np.array(["poor", *[name for _, name in reversed(BANDS)], None], dtype=object),
    np.array([*[grade for grade, _ in reversed(BANDS)], np.inf]),
)
"""Names of bands, the last for NaN, and the minimum grade of each but the first."""


def _bands(grades: Floats) -> NDArray[Any]:
    """Return the bands of mean grades; None without a grade."""
    names, least = _BANDS
    return names[least.searchsorted(grades, side="right")]  # NaN sorts last


def _effective_ballots(batch: Outcomes, column: int) -> list[Vote]:
    votes = batch.count.electorates[column].votes
    return list(compress(votes, batch.effective_rows[column]))


def _details(batch: Outcomes, column: int) -> dict[str, Any]:
    electorate = batch.count.electorates[column]
    details = {name: values[column] for name, values in batch.rule_numbers[1].items()}
    if "human" in electorate.kinds:
        people_votes = [vote for vote in _effective_ballots(batch, column) if vote.kind == "human"]
        if people := {vote.reviewer for vote in people_votes}:
            details["people"] = len(people)
        if unnamed := {
            vote.reviewer for vote in people_votes if vote.paired and is_unnamed(vote.reviewer)
        }:
            details["unnamed_votes"] = len(unnamed)
    if batch.rule.trace and electorate.votes:
        profile = batch.count.profile.take(slice(column, column + 1))
        names = electorate.candidates
        details |= {name: trace(profile, names) for name, trace in batch.rule.trace.items()}
    return details


def _cycles(batch: Outcomes, column: int) -> tuple[tuple[str, ...], ...]:
    names = batch.count.electorates[column].candidates
    rings = majority_cycles(batch.mutual[:, :, column])
    return tuple(tuple(names[seat] for seat in ring) for ring in rings)


def _effective_votes(batch: Outcomes, column: int, rho: float) -> float:
    """Compute the equivalent number of equal, independent reviewers.

    With weights w of sum 1, of which the models have the share m, it is

        1 / (Σ w² + ρ·(m² − Σ w² of the models)),

    the variance of one reviewer divided by that of the weighted mean. For equal models, it is
    R / (1 + (R − 1)·ρ). Source: design effects (Kish, Survey Sampling, 1965, 8.2 and 11.7).
    """
    electorate = batch.count.electorates[column]
    columns = (
        electorate.voters,
        electorate.kinds,
        electorate.weights,
        batch.effective_rows[column],
    )
    return _count_effective(*map(tuple, columns), rho)


@lru_cache(maxsize=1024)
def _count_effective(
    voters: tuple[str, ...],
    kinds: tuple[str, ...],
    weights: tuple[float, ...],
    effective: tuple[bool, ...],
    rho: float,
) -> float:
    """Compute `_effective_votes`; cached, as sessions often have the same reviewers."""
    reviewers: dict[str, tuple[str, float]] = {}
    votes = zip(voters, kinds, weights, strict=True)
    for reviewer, kind, weight in compress(votes, effective):
        _, known = reviewers.get(reviewer, ("", 0.0))
        reviewers[reviewer] = (kind, max(weight, known))
    heaviest = max((weight for _, weight in reviewers.values()), default=1.0)
    shares = [(kind, weight / heaviest) for kind, weight in reviewers.values()]
    total = sum(weight for _, weight in shares)
    of_models = [weight for kind, weight in shares if kind == "model"]
    together = sum(of_models) ** 2 - sum(weight * weight for weight in of_models)
    variance = sum(weight * weight for _, weight in shares) + rho * together
    return total * total / variance if variance else 0.0


def _idle_reviewers(batch: Outcomes, column: int) -> tuple[str, ...]:
    effective = {vote.reviewer for vote in _effective_ballots(batch, column)}
    votes = batch.count.electorates[column].votes
    reviewers = dict.fromkeys(vote.reviewer for vote in votes if vote.weight > 0)
    return tuple(reviewer for reviewer in reviewers if reviewer not in effective)


def _disputed_pairs(rule: Rule, names: Sequence[str], against: Flags) -> Iterator[str]:
    """Describe the pairs that the fit places in opposite order, beyond noise."""
    for line in np.flatnonzero(against.any(axis=1)).tolist():
        below = join_names(list(compress(names, against[line].tolist())))
        yield (
            f"{rule.name} places {names[line]} above {below}; the fit of the same ballots says the "
            "reverse, beyond noise"
        )


def _warnings(
    batch: Outcomes, column: int, idle: Sequence[str], against: Flags | None
) -> Iterator[str]:
    electorate = batch.count.electorates[column]
    if not batch.inference.is_connected[column]:
        yield (
            "some candidates were never compared, not even through others; their order says nothing"
        )
    if idle:
        what = "ballot does" if len(idle) == 1 else "ballots do"
        why = batch.rule.why_ignored
        yield f"{join_names(idle)} {why}: their {what} not count by {batch.rule.name}"
    if any(electorate.mismatches):
        mismatched = list(compress(electorate.voters, electorate.mismatches))
        where = f"on the ballot of {join_names(mismatched)}"
        yield f"ranking and grades contradict each other {where}"
    ungraded = batch.count.scores.details.get("ungraded")
    if ungraded is not None and ungraded[:, column].any():
        bare = join_names(list(compress(electorate.candidates, ungraded[:, column].tolist())))
        yield f"no grade for {bare}: {batch.rule.name} reads only rankings there"
    if batch.tie_breaks[column] == "seat order":
        yield "ties were too many to follow them all: seat order decided, not the ballots"
    for name, flags in electorate.failed.items():
        yield f"{name} failed the safety gate ({', '.join(flags)}) and cannot win"
    if against is not None:
        yield from _disputed_pairs(batch.rule, batch.names[column], against)
