"""Verdicts as numbers by name, as evaluation tools store them."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import witan

if TYPE_CHECKING:
    from witan import Council, Session


def seat_jury(jury: Any, options: Mapping[str, Any]) -> "Council":
    """Seat the given jury, or the configured reviewers."""
    if jury is None:
        return witan.Council.from_config(**options)
    return witan.Council(jury, **options)


async def judge_output(
    text: str,
    question: str,
    jury: Any,
    options: Mapping[str, Any],
    *,
    pass_mark: float | None,
    reference: str | None,
) -> "Session":
    """Have a jury judge an output, optionally by a reference answer."""
    sources = {"reference answer": reference} if reference and reference.strip() else {}
    async with seat_jury(jury, options) as council:
        return await council.judge(text, question, pass_mark=pass_mark, files=sources)


def accepts(decision: str | None, *, allow_too_close: bool) -> bool:
    """Check whether a decision passes a text."""
    return decision == "passed" or (allow_too_close and decision == "too close to call")


def mean_grades(session: "Session") -> dict[str, float]:
    """Return the text's mean grades, 1 to 10: ``overall`` and per criterion."""
    if session.verdict is None:
        return {}
    [text] = session.verdict.texts
    overall = {} if text.overall is None else {"overall": text.overall.mean}
    return overall | {name: grade.mean for name, grade in text.criteria.items()}


def share_of_scale(grade: float) -> float:
    """Convert a grade from 1–10 to the scale 0–1."""
    return (grade - 1) / 9


def juror_grades(session: "Session") -> dict[str, Any]:
    """Return each juror's grade of the text, or grades by criterion, 1 to 10."""
    grades = {ballot.reviewer: [*ballot.grades.values()] for ballot in session.ballots}
    return {reviewer: of_texts[0] for reviewer, of_texts in grades.items() if of_texts}


def verdict_facts(session: "Session") -> dict[str, Any]:
    """List the facts of a verdict: certainty, jury, cost and session."""
    facts = {
        "session": session.id,
        "status": session.status,
        "cost_usd": session.cost.total_usd,
        "juror_grades": juror_grades(session),
    }
    if (verdict := session.verdict) is None:
        return facts
    interval = verdict.texts[0].overall and verdict.texts[0].overall.interval
    return facts | {
        "decision": verdict.decision,
        "probability": verdict.probability,
        "interval": interval and [interval.low, interval.high],
        "level": verdict.level,
        "pass_mark": verdict.pass_mark,
        "ballots_to_flip": verdict.ballots_to_flip,
        "reviewers": list(verdict.reviewers),
    }
