"""Standings and matchups of sessions of one shape, as rows named by model."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import fsum, nan

import numpy as np
from numpy.typing import NDArray

from witan.core.ballot import Kind
from witan.core.counted import score
from witan.core.entries import MatchupEntry, StandingEntry
from witan.core.interpretation import Electorate
from witan.core.outcome import Outcome
from witan.core.placing import first_places, votes
from witan.core.profile import Floats, Matchups, Profile, matchups
from witan.core.rules import RULES, Rule
from witan.core.rules.registry import Rivals
from witan.core.settings import Settings
from witan.core.view import known_rows
from witan.errors import UnsuitableBallots

__all__ = ["Block"]

ModelOf = Callable[[str], str]

Number = float | None


class Block:
    """Electorates of one shape as arrays, and the rows of each of them."""

    def __init__(
        self, electorates: Sequence[Electorate], profile: Profile, settings: Settings
    ) -> None:
        self.electorates, self.profile, self.settings = electorates, profile, settings
        self._wins = first_places(profile).T.tolist()
        met = matchups(profile)
        self._met = _met_a_rival(profile, met)
        self._z = self._standardised()
        self._over = met.over.astype(np.float64).transpose(2, 0, 1)
        self._level = met.level.astype(np.float64).transpose(2, 0, 1)
        self._scores: dict[str, list[list[Number] | None]] = {}
        self._votes: dict[str, list[list[int]]] = {}

    def standings(
        self, column: int, kind: Kind, model_of: ModelOf, rule: str, outcome: Outcome | None
    ) -> list[StandingEntry]:
        """One row per model under one rule; none where the rule cannot count the session."""
        held = self.electorates[column]
        if outcome is not None and outcome.rule == rule:
            by_name = {line.candidate: line.score for line in outcome.standings}
            scores: list[Number] | None = [by_name.get(name) for name in held.candidates]
        else:
            scores = self._scored(rule)[column]
        if scores is None:
            return []
        if rule not in self._votes:
            self._votes[rule] = votes(self.profile, RULES[rule]).T.tolist()
        seats: dict[str, list[int]] = {}
        for seat, name in enumerate(held.candidates):
            seats.setdefault(model_of(name), []).append(seat)
        z, wins, n = self._z[column], self._wins[column], self._votes[rule][column]
        met = self._met[RULES[rule].rivals][column]
        contested = any(self._met["session"][column])
        return [
            StandingEntry(
                kind=kind,
                rule=rule,
                model=model,
                # Who has no vote or no rival may get 0 from a rule: that is no score to average.
                score=_mean([scores[seat] if n[seat] and met[seat] else None for seat in mine]),
                z=_mean([z[seat] for seat in mine]),
                votes=sum([n[seat] for seat in mine]),
                offered=sum([held.offered[seat] for seat in mine]),
                wins=sum([wins[seat] for seat in mine]) if contested else 0,
            )
            for model, mine in seats.items()
        ]

    def matchup(
        self, column: int, kind: Kind, model_of: ModelOf, outcome: Outcome | None
    ) -> MatchupEntry | None:
        """How the models met; None where there are not two, or no vote."""
        held = self.electorates[column]
        named = [model_of(name) for name in held.candidates]
        models = sorted(set(named))
        if len(models) < 2 or not held.votes:
            return None
        order = sorted(range(len(named)), key=named.__getitem__)
        over, level = self._over[column].tolist(), self._level[column].tolist()
        pairs: dict[tuple[str, str], list[tuple[int, int]]] = {}
        for i, j in combinations(order, 2):
            if named[i] != named[j]:
                pairs.setdefault((named[i], named[j]), []).append((i, j))
        met = [pairs[pair] for pair in combinations(models, 2)]
        return MatchupEntry(
            kind=kind,
            models=tuple(models),
            wins=tuple([sum([over[i][j] for i, j in seats]) for seats in met]),
            losses=tuple([sum([over[j][i] for i, j in seats]) for seats in met]),
            ties=tuple([sum([level[i][j] for i, j in seats]) for seats in met]),
            p_beats=(None,) * len(met) if outcome is None else _beats(outcome, held, met),
        )

    def _standardised(self) -> list[list[Number]]:
        """Mean standardised grade per session and candidate; 0 where every ballot is flat."""
        if self.profile.grades is None:
            return [[None] * self.profile.n_candidates] * self.profile.n_sessions
        rule = RULES["normalized_scores"]
        scores = rule(self.profile)
        flat = np.zeros(1, dtype=bool) if scores.fell_back is None else scores.fell_back
        z = np.where(flat, scores.score.dtype.type(0), scores.score)
        counts = (votes(self.profile, rule) > 0) & np.array(self._met[rule.rivals]).T
        return known_rows(np.where(counts, z, z.dtype.type(nan)).T)

    def _scored(self, rule: str) -> list[list[Number] | None]:
        """The scores of every session under a rule, worked out where an outcome lacks them."""
        if rule not in self._scores:
            self._scores[rule] = self._counted(RULES[rule])
        return self._scores[rule]

    def _counted(self, rule: Rule) -> list[list[Number] | None]:
        """Scores per session, None where the rule cannot count it."""
        scores: list[list[Number] | None] = [None] * self.profile.n_sessions
        if rule.needs == "history":
            return scores
        if self.profile.n_reviewers == 0:
            return [[None] * self.profile.n_candidates for _ in scores]
        chosen = np.arange(self.profile.n_sessions)
        if rule.needs == "grades":
            chosen = np.flatnonzero(self.profile.graded.any(axis=(0, 1)))
        for part in self._countable(rule, chosen):
            for column, row in zip(part.columns, known_rows(part.score.T), strict=True):
                scores[int(column)] = row
        return scores

    def _countable(self, rule: Rule, columns: NDArray[np.intp]) -> Iterator["_Part"]:
        """Score all at once; if one of them cannot be, each alone, so that it spares the others."""
        settings = self.settings
        parameters = settings.parameters if settings.rule == rule.name else {}
        if not len(columns):
            return
        try:
            scored = score(rule, self.profile.take(columns), **parameters)
            yield _Part(columns, scored.score)
        except UnsuitableBallots:
            if len(columns) > 1:
                for column in columns:
                    yield from self._countable(rule, np.array([column]))


def _met_a_rival(profile: Profile, met: Matchups) -> dict[Rivals, list[list[bool]]]:
    """Which candidates met a rival, per session, in each sense that a rule may ask for."""
    ranked = profile.ranked
    if profile.weights is not None:
        ranked = ranked & (profile.weights > 0)[:, np.newaxis]
    voted = ranked.any(axis=0)
    on_a_ballot = (met.over + met.over.swapaxes(0, 1) + met.level).sum(axis=1) > 0
    in_the_session = voted & (voted.sum(axis=0) > 1)
    return {
        "ballot": on_a_ballot.T.tolist(),
        "session": in_the_session.T.tolist(),
        "none": np.ones_like(voted).T.tolist(),
    }


@dataclass(frozen=True, slots=True)
class _Part:
    """Scores, shape (C, S), of some columns of a block."""

    columns: NDArray[np.intp]
    score: Floats


def _beats(
    outcome: Outcome, electorate: Electorate, pairs: Sequence[Sequence[tuple[int, int]]]
) -> tuple[Number, ...]:
    """Per pair of models, the mean of P(first above second) over their candidates."""
    line = {standing.candidate: at for at, standing in enumerate(outcome.standings)}
    lines = [line.get(name) for name in electorate.candidates]

    def beats(i: int, j: int) -> Number:
        first, second = lines[i], lines[j]
        return None if first is None or second is None else outcome.p_beats[first][second]

    return tuple([_mean([beats(i, j) for i, j in seats]) for seats in pairs])


def _mean(values: Sequence[Number]) -> Number:
    """The mean of those that are known; None where none is."""
    if len(values) == 1:  # nearly every model holds one seat
        return values[0]
    known = [value for value in values if value is not None]
    return fsum(known) / len(known) if known else None
