"""Rows to audit: written by hand, or by councils whose biases are known."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

import numpy as np

import reference_sums as by_hand
from reference_gradings import grading_sums
from reference_rows import names_of
from witan.core.ballot import Kind
from witan.core.session_ballots import BallotEntry, Entries, SessionEntry
from witan.core.stats.audit import Audit, AuditTables, audit
from witan.core.stats.audit_reviewers import ReviewerAudit


def ballot(
    reviewer: str,
    shares: Mapping[str, float | None],
    *,
    grades: Mapping[str, float] | None = None,
    chars: Mapping[str, int] | None = None,
    positions: Sequence[int] | None = None,
    kind: Kind = "model",
    **rest: object,
) -> BallotEntry:
    """A ballot by the shares that it gives; a candidate of the reviewer's name is its own."""
    models = tuple(shares)
    return BallotEntry(
        reviewer=reviewer,
        kind=kind,
        models=models,
        own=tuple(kind == "model" and model == reviewer for model in models),
        shares=tuple(shares.values()),
        grades=tuple((grades or {}).get(model) for model in models),
        positions=tuple(positions) if positions is not None else (0,) * len(models),
        chars=tuple((chars or {}).get(model) for model in models),
        **rest,
    )


def session(name: str, *ballots: BallotEntry, **rest: object) -> Entries:
    """One session of these ballots; what is not given is unknown."""
    matchups = rest.pop("matchups", ())
    standings = rest.pop("standings", ())
    at = datetime(2026, 1, 1, tzinfo=UTC)
    return Entries(
        session=SessionEntry(session=name, at=at, **rest),
        standings=standings,
        matchups=matchups,
        ballots=ballots,
    )


def tables_of(entries: Sequence[Entries], rule: str = "borda") -> AuditTables:
    """Every table of an audit, counted by hand."""
    return AuditTables(
        standings=by_hand.standing_sums(entries, rule),
        ballots=by_hand.ballot_sums(entries),
        votes=by_hand.vote_sums(entries),
        reviewers=by_hand.reviewer_sums(entries),
        positions=by_hand.position_sums(entries),
        lengths=by_hand.length_sums(entries),
        units=by_hand.unit_sums(entries),
        criteria=by_hand.criterion_sums(entries),
        gradings=grading_sums(entries),
        humans=by_hand.human_sums(entries),
        panel=by_hand.panel_sums(entries),
    )


class AuditByName(Audit):
    """An audit whose lines are found by the reviewer's name."""

    def __getitem__(self, reviewer: str) -> ReviewerAudit:
        together = () if self.people is None else (self.people,)
        lines = (*together, *self.reviewers, *self.persons)
        return next(line for line in lines if line.reviewer == reviewer)


def audit_of(
    entries: Sequence[Entries],
    families: Mapping[str, str] | None = None,
    *,
    level: float = 0.95,
) -> AuditByName:
    """The audit of some rows."""
    rng = np.random.default_rng(0)
    made = audit(tables_of(entries), names_of(entries), families or {}, rng, level=level)
    return AuditByName(made.reviewers, made.persons, made.people, made.panel)


@dataclass(frozen=True)
class Biased:
    """A council in which everything is additive, so that each bias is known exactly.

    A reviewer values an answer at its model's quality, plus what the question adds for everybody,
    plus noise of its own, plus its biases; its share is one half plus the mean of what the answer
    is worth more than each rival. Grades are 6 + severity + 2 · value, without rounding.

    `itself` and `relatives` add to a share, `first` is what the first place has over the last,
    `length` the worth of a unit of log length. `people` vote on every answer, and value as models.
    """

    models: Sequence[str]
    quality: Sequence[float]
    own_shown: bool = False
    itself: Mapping[str, float] = field(default_factory=dict)
    relatives: Mapping[str, float] = field(default_factory=dict)
    families: Mapping[str, str] = field(default_factory=dict)
    first: Mapping[str, float] = field(default_factory=dict)
    severity: Mapping[str, float] = field(default_factory=dict)
    length: Mapping[str, float] = field(default_factory=dict)
    people: Sequence[str] = ()
    question: float = 0.15
    noise: float = 0.15


def biased_sessions(council: Biased, n: int, rng: np.random.Generator) -> list[Entries]:
    """Sessions of such a council."""
    return [_biased_session(council, f"session {k} of {rng.integers(1 << 40)}", rng)
            for k in range(n)]  # fmt: skip


def _biased_session(council: Biased, name: str, rng: np.random.Generator) -> Entries:
    n = len(council.models)
    worth = np.asarray(council.quality) + rng.normal(0, council.question, n)
    logs = rng.normal(7, 0.5, n)
    chars = {model: int(np.exp(log)) for model, log in zip(council.models, logs, strict=True)}
    ballots = []
    for reviewer in (*council.models, *council.people):
        value = worth + rng.normal(0, council.noise, n)
        value += council.length.get(reviewer, 0.0) * (logs - 7)
        for at, model in enumerate(council.models):
            value[at] += council.itself.get(reviewer, 0.0) * (model == reviewer)
            related = council.families.get(model) == council.families.get(reviewer, "none")
            value[at] += council.relatives.get(reviewer, 0.0) * (related and model != reviewer)
        ballots.append(_biased_ballot(council, reviewer, value, chars, rng))
    return session(name, *ballots)


def _biased_ballot(
    council: Biased,
    reviewer: str,
    value: np.ndarray,
    chars: Mapping[str, int],
    rng: np.random.Generator,
) -> BallotEntry:
    shown = [at for at, model in enumerate(council.models)
             if council.own_shown or model != reviewer]  # fmt: skip
    places = rng.permutation(len(shown)) + 1
    # A place adds to one share what it takes from the rivals': hence the factor.
    step = council.first.get(reviewer, 0.0) / len(shown)
    for at, place in zip(shown, places, strict=True):
        value[at] += step * ((len(shown) - 1) / 2 - (place - 1))
    shares = {}
    for at in shown:
        own = council.models[at] == reviewer
        rivals = [k for k in shown if k != at and (own or council.models[k] != reviewer)]
        shares[council.models[at]] = float(0.5 + np.mean(value[at] - value[rivals]))
    severity = council.severity.get(reviewer, 0.0)
    return ballot(
        reviewer,
        shares,
        grades={council.models[at]: float(6 + severity + 2 * value[at]) for at in shown},
        chars=chars,
        positions=places.tolist(),
        kind="human" if reviewer in council.people else "model",
    )
