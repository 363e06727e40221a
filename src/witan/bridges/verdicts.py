"""Juries of evaluation tools."""

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
