"""Outcomes as JSON: the fields that an outcome has there, declared once."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Annotated, Any, ClassVar

from witan.core.outcome import BallotNote, Confidence, Interval, Outcome, Prior, TiesRule, Unit
from witan.core.scale import Scale


@dataclass(frozen=True, slots=True)
class StandingRecord:
    """One line of an outcome, with the rule's own numbers of the candidate beside these.

    Parameters
    ----------
    candidate
        Its name.
    rank
        1 is best; equal lines share it (1, 2, 2, 4).
    score, std_error, interval
        The rule's number, its standard error and interval; null where it has none.
    votes, wins
        Counted ballots that say something of it; first places, k tied for first 1/k each.
    coverage, confidence
        Share of the seats that could have voted for it and did; high, medium or low.
    tied_with_next
        The difference to the line below is too close to call.
    p_best
        Probability that another draw of such reviewers would place it best; null: unknown.
    effect
        Candidate effect of the additive fit; null: not estimable.
    tier
        Number of the group that ties cannot separate, 1 the best.
    mean_grade, band
        Its mean grade, and the band of the rubric that it lies in.
    failed
        Flags of the safety gate, empty for a candidate that passed.
    """

    __pydantic_config__: ClassVar[Any] = {"extra": "allow"}

    candidate: str
    rank: int
    score: float | None
    std_error: float | None
    interval: Interval | None
    votes: int
    wins: float
    coverage: float
    confidence: Confidence
    tied_with_next: bool
    p_best: float | None
    effect: float | None
    tier: int
    mean_grade: float | None
    band: str | None
    failed: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ScaleRecord:
    """A scale that grades were given on.

    Parameters
    ----------
    scale
        From the worst to the best grade, such as 0-1; by criterion where these differ.
    recognised
        From the grades themselves; else somebody declared it.
    instead
        Other scales that the same grades fit.
    """

    scale: str | Mapping[str, str]
    recognised: bool
    instead: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Safety:
    """The conclusion of the safety gate.

    Parameters
    ----------
    failed
        Candidate to flags, for those that failed.
    """

    failed: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class OutcomeRecord:
    """One session, counted, with the rule's own numbers beside these fields.

    Parameters
    ----------
    session
        Its name.
    rule, parameters, why
        The rule that counted, its parameters, and why it was taken.
    interpretation
        What the standings say, in one sentence.
    standings
        Best first.
    leaders
        Who shares the first rank; empty where nobody has a vote.
    tied_for_best
        The leader, and whoever is too close to it to call.
    clear_leader
        The leader that stands alone; null: there is none.
    disputed_by
        Whom the fit places above the first line beyond noise, against the order of the rule.
    condorcet_winner, cycles
        Who beats every rival head to head; groups of candidates in a preference cycle.
    kendall_w
        Agreement of the ballots, 0 to 1; null with fewer than two.
    n_ballots, n_abstentions
        Ballots with an effect on the scores, and seats without a ballot.
    without_effect
        Reviewers whose ballots the rule reads nothing from.
    effective_votes, rho, rho_is_assumed
        How many independent reviewers these are worth, given shared errors rho (null: they share
        none); null: nothing is fitted. Whether that rho is the public default.
    ballots_to_flip, flip_is_exact
        The fewest ballots whose removal or reversal ends the lead; null: no leader, or not
        searched. When not exact, a smaller number may suffice.
    tie_broken_by
        What separated equal scores; null: nothing had to.
    fell_back_to
        The rule whose scores are shown where the one chosen had nothing to score by.
    ties, level
        How lines were told apart, and the confidence level.
    fit, df, prior
        What the uncertainty was fitted on, its degrees of freedom, and what was borrowed.
    recusal, unranked
        How ballots became votes.
    p_beats
        ``p_beats[i][j]``: probability that line i would be above line j for other reviewers.
    unresolved
        Pairs of candidates that are too close to call.
    margins
        ``margins[i][j]``: ballots that place line i above line j, less the reverse.
    safety
        What the safety gate concluded.
    ballots, abstentions
        What was counted of each ballot; reviewer to why there is none.
    order_kept
        Reviewer to pairs judged alike in both orders, and pairs judged in both.
    warnings
        What was changed or doubtful, in sentences.
    scales
        On which grades were given, where that is not 1 to 10 beyond doubt.
    """

    __pydantic_config__: ClassVar[Any] = {"extra": "allow"}

    session: str
    rule: str
    parameters: Mapping[str, Any]
    why: str
    interpretation: str
    standings: tuple[StandingRecord, ...]
    leaders: tuple[str, ...]
    tied_for_best: tuple[str, ...]
    clear_leader: str | None
    disputed_by: tuple[str, ...]
    condorcet_winner: str | None
    cycles: tuple[tuple[str, ...], ...]
    kendall_w: float | None
    n_ballots: int
    n_abstentions: int
    without_effect: tuple[str, ...]
    effective_votes: float | None
    rho: float | None
    rho_is_assumed: bool
    ballots_to_flip: int | None
    flip_is_exact: bool | None
    tie_broken_by: str | None
    fell_back_to: str | None
    ties: TiesRule
    level: float
    fit: Unit | None
    df: float | None
    prior: Prior | None
    recusal: str
    unranked: str
    p_beats: tuple[tuple[float | None, ...], ...]
    unresolved: tuple[tuple[str, str], ...]
    margins: tuple[tuple[float, ...], ...]
    safety: Safety
    ballots: tuple[BallotNote, ...]
    abstentions: Mapping[str, str]
    order_kept: Mapping[str, tuple[int, int]]
    warnings: tuple[str, ...]
    scales: tuple[ScaleRecord, ...]


_OUTCOME = tuple(field.name for field in fields(OutcomeRecord))
_STANDING = tuple(field.name for field in fields(StandingRecord))


def outcome_fields(outcome: Outcome) -> dict[str, Any]:
    """Return an outcome by the fields of its JSON; numbers of the rule stand beside them."""
    own = {
        "standings": [
            {**line.details, **{name: getattr(line, name) for name in _STANDING}}
            for line in outcome.standings
        ],
        "safety": {"failed": {s.candidate: s.failed for s in outcome.standings if s.failed}},
        "scales": [_scale(scale) for scale in outcome.scales],
    }
    known = {name: own[name] if name in own else getattr(outcome, name) for name in _OUTCOME}
    return {**outcome.details, **known}


def _scale(scale: Scale) -> ScaleRecord:
    return ScaleRecord(scale.record(), scale.recognised, scale.instead)


class _AsRecord:
    """Has the schema of an outcome say what its JSON has."""

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        return handler.generate_schema(OutcomeRecord)


OutcomeJson = Annotated[Outcome, _AsRecord()]
"""An outcome in a result: as JSON it has the fields of `OutcomeRecord`."""
