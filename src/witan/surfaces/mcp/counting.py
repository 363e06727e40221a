"""Tools that count: ballots that somebody brings along, and those of a session again."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from witan.core.outcome import Outcome
from witan.service.ballots import Unread
from witan.service.operations.compare import RuleComparison, compare
from witan.service.operations.explain import Explained, explain
from witan.service.operations.recount import Recount, recount
from witan.service.operations.results import OutcomeSummary, summarize_outcome
from witan.service.operations.tally import Tally, Uncounted, tally
from witan.service.text import Page
from witan.surfaces.mcp.calls import Tool
from witan.surfaces.mcp.generated import value_tool
from witan.surfaces.text.comparison import compared_text
from witan.surfaces.text.explanation import explained_text
from witan.surfaces.text.outcome import outcome_text
from witan.surfaces.text.outcomes import tally_text

PAGE = Page()


@dataclass(frozen=True, slots=True)
class _Counted:
    """The outcome of a session in short."""

    session: str
    outcome: OutcomeSummary


@dataclass(frozen=True, slots=True)
class _Tally:
    """The outcomes of sessions in short."""

    sessions: tuple[_Counted, ...]
    not_counted: tuple[Uncounted, ...]
    not_read: tuple[Unread, ...]


@dataclass(frozen=True, slots=True)
class _Comparison:
    """Who leads under each rule, by session and rule."""

    rules: tuple[str, ...]
    skipped: Mapping[str, str]
    leaders: Mapping[str, Mapping[str, tuple[str, ...]]]
    stability: Mapping[str, float | None]


def _shorten(outcome: Outcome) -> _Counted:
    return _Counted(outcome.session, summarize_outcome(outcome))


def _summarize_tally(result: Tally) -> _Tally:
    return _Tally(tuple(map(_shorten, result.sessions)), result.not_counted, result.not_read)


def _summarize_comparison(result: RuleComparison) -> _Comparison:
    leaders = {
        each.session: {rule: outcome.leaders for rule, outcome in each.outcomes.items()}
        for each in result.sessions
    }
    return _Comparison(result.rules, result.skipped, leaders, result.stability)


def _summarize_explanation(result: Explained) -> _Counted:
    return _shorten(result.outcome)


def _recount_text(page: Page, result: Recount) -> Iterator[str]:
    return outcome_text(
        page, result.outcome, simulated=bool(result.outcome.details.get("simulated"))
    )


def _summarize(result: Recount) -> _Counted:
    return _shorten(result.outcome)


COUNTING: tuple[Tool[Any], ...] = (
    value_tool(tally, tally_text, summary=_summarize_tally),
    value_tool(compare, compared_text, summary=_summarize_comparison),
    value_tool(explain, explained_text, summary=_summarize_explanation),
    value_tool(recount, _recount_text, summary=_summarize),
)
