"""Results as JSON: numbers unrounded, unknown as null, one session a line."""

import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import datetime
from math import isfinite
from typing import TYPE_CHECKING, Any

from witan.core.escaping import escape_json
from witan.core.outcome import Outcome, Standing
from witan.version import __version__

if TYPE_CHECKING:
    from witan.core.comparison import Comparison
    from witan.core.explanation import Explanation
    from witan.core.scale import Scale

__all__ = ["comparison_object", "explanation_object", "session_object", "sessions_json", "to_json"]


def to_json(value: object) -> str:
    """One line of JSON; ASCII alone where standard output could not carry more."""
    encoding = (sys.stdout.encoding or "ascii").lower()
    encode = json.JSONEncoder(
        ensure_ascii="utf" not in encoding, allow_nan=False, default=_known_to_json
    ).encode
    try:
        return escape_json(encode(value))
    except ValueError:
        # Rare enough not to look for NaN in every number of every session.
        return escape_json(encode(_without_nan(value)))


def sessions_json(
    outcomes: Iterable[Outcome], not_counted: Sequence[Mapping[str, str | None]]
) -> Iterator[str]:
    """The object of ``tally --json``, a line per session, never held as a whole.

    `not_counted` is read at the end, when it is known.
    """
    opened = False
    for outcome in outcomes:
        yield (",\n" if opened else _opening()) + to_json(session_object(outcome))
        opened = True
    ending = "\n]" if opened else f"{_opening()}]"
    yield f'{ending}, "not_counted": {to_json(not_counted)}}}\n'


def _opening() -> str:
    return f'{{"witan": {to_json(__version__)}, "sessions": [\n'


def session_object(outcome: Outcome) -> dict[str, Any]:
    """One session as the design names its fields, with what else is known beside them."""
    return {
        **outcome.details,
        "session": outcome.session,
        "rule": outcome.rule,
        "parameters": outcome.parameters,
        "why": outcome.why,
        "interpretation": outcome.interpretation,
        "standings": [_standing(line) for line in outcome.standings],
        "leaders": outcome.leaders,
        "tied_for_best": outcome.tied_for_best,
        "clear_leader": outcome.clear_leader,
        "disputed_by": outcome.disputed_by,
        "condorcet_winner": outcome.condorcet_winner,
        "cycles": outcome.cycles,
        "kendall_w": outcome.kendall_w,
        "n_ballots": outcome.n_ballots,
        "n_abstentions": outcome.n_abstentions,
        "without_effect": outcome.without_effect,
        "effective_votes": outcome.effective_votes,
        "rho": outcome.rho,
        "ballots_to_flip": outcome.ballots_to_flip,
        "flip_is_exact": outcome.flip_is_exact,
        "tie_broken_by": outcome.tie_broken_by,
        "fell_back_to": outcome.fell_back_to,
        "ties": outcome.ties,
        "level": outcome.level,
        "fit": outcome.fit,
        "df": outcome.df,
        "prior": outcome.prior,
        "recusal": outcome.recusal,
        "unranked": outcome.unranked,
        "p_beats": outcome.p_beats,
        "unresolved": outcome.unresolved,
        "margins": outcome.margins,
        "safety": {"failed": {s.candidate: s.failed for s in outcome.standings if s.failed}},
        "ballots": outcome.ballots,
        "abstentions": outcome.abstentions,
        "order_kept": outcome.order_kept,
        "warnings": outcome.warnings,
        "scales": [_scale(scale) for scale in outcome.scales],
    }


def _scale(scale: "Scale") -> dict[str, Any]:
    return {
        "scale": scale.record(),
        "recognised": scale.recognised,
        "instead": scale.instead,
    }


def _standing(line: Standing) -> dict[str, Any]:
    return {
        **line.details,
        "candidate": line.candidate,
        "rank": line.rank,
        "score": line.score,
        "std_error": line.std_error,
        "interval": line.interval,
        "votes": line.votes,
        "wins": line.wins,
        "coverage": line.coverage,
        "confidence": line.confidence,
        "tied_with_next": line.tied_with_next,
        "p_best": line.p_best,
        "effect": line.effect,
        "tier": line.tier,
        "mean_grade": line.mean_grade,
        "band": line.band,
        "failed": line.failed,
    }


def comparison_object(comparison: "Comparison") -> dict[str, Any]:
    """A comparison of rules, with the outcome of every session under each."""
    return {
        "witan": __version__,
        "rules": comparison.rules,
        "skipped": comparison.skipped,
        "tau": comparison.tau,
        "leader_differs": comparison.leader_differs,
        "stability": comparison.stability,
        "n_sessions": len(comparison.sessions),
        "sessions": [
            {
                "session": session,
                "outcomes": {
                    rule: session_object(outcome)
                    for rule, outcome in comparison.outcomes[session].items()
                },
            }
            for session in comparison.sessions
        ],
    }


def explanation_object(explanation: "Explanation") -> dict[str, Any]:
    """An explanation: the outcome, and its steps as tables."""
    return {
        "witan": __version__,
        "outcome": session_object(explanation.outcome),
        "steps": explanation.steps,
    }


def _known_to_json(value: Any) -> Any:
    """Our mappings and dataclasses, and numpy's numbers, as what json knows."""
    if isinstance(value, Mapping):
        return dict(value)
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    if isinstance(value, Iterable):
        return list(value)
    if isinstance(value, datetime):
        return value.isoformat()
    return value.item() if hasattr(value, "item") else str(value)


def _without_nan(value: Any) -> Any:
    """The same with null for what is no number."""
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        return value if isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: _without_nan(held) for key, held in value.items()}
    if isinstance(value, Sequence):
        return [_without_nan(held) for held in value]
    return _without_nan(_known_to_json(value))
