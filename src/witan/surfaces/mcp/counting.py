"""Tools that count: ballots that somebody brings along, and those of a session again."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from witan.service.error_wording import as_request
from witan.service.operations.ballots import (
    BallotUpload,
    columns_given,
    comparison_of,
    comparison_reply,
    explanation_of,
    explanation_reply,
    tally_object,
    tally_of,
)
from witan.service.operations.recount import Recount, recount, settings_given
from witan.service.operations.results import OutcomeSummary, summarize_outcome
from witan.service.text import Page, clean, counted
from witan.service.worker_pool import run_counting
from witan.surfaces.mcp.arguments import (
    BallotsArguments,
    CompareArguments,
    ExplainArguments,
    TallyArguments,
)
from witan.surfaces.mcp.calls import Call, Reply, Tool
from witan.surfaces.mcp.generated import value_tool
from witan.surfaces.text.comparison import comparison_text
from witan.surfaces.text.explanation import explanation_text
from witan.surfaces.text.outcome import outcome_text
from witan.surfaces.text.outcomes import Digest, summary_text

SHOWN = 10
"""Sessions that are shown in full; more of them have a line each."""

PAGE = Page()


async def tally(call: Call, body: TallyArguments) -> Reply:  # noqa: ARG001 - as every tool
    """Count ballots."""
    posted = _posted(body)
    settings = settings_given(body.rule, body.settings)
    found = await run_counting(lambda: tally_of(posted, settings, body.sessions), "brought")
    outcomes = found.outcomes
    if len(outcomes) > SHOWN:
        text = "\n".join(summary_text(PAGE, [Digest.of(outcome) for outcome in outcomes]))
    else:
        text = "\n\n".join("\n".join(outcome_text(PAGE, outcome)) for outcome in outcomes)
    unable = [f"not counted: {clean(as_request(str(each)))}" for each in found.not_counted[:SHOWN]]
    said = "\n".join([text or "no session could be counted", *unable, *_unread(posted)])
    return Reply(said, tally_object(posted, found), failed=not outcomes)


async def compare(call: Call, body: CompareArguments) -> Reply:  # noqa: ARG001 - as every tool
    """Count ballots under every rule."""
    posted = _posted(body)
    settings = settings_given(None, body.settings)
    found = await run_counting(
        lambda: comparison_of(posted, settings, body.rules, body.sessions), "brought"
    )
    shown = found.sessions if len(found.sessions) <= SHOWN else ()
    text = "\n".join([*comparison_text(PAGE, found, shown), *_unread(posted)])
    return Reply(text, comparison_reply(posted, found))


async def explain(call: Call, body: ExplainArguments) -> Reply:  # noqa: ARG001 - as every tool
    """Show how ballots make an outcome."""
    posted = _posted(body)
    settings = settings_given(body.rule, body.settings)
    found = await run_counting(lambda: explanation_of(posted, settings, body.session), "brought")
    text = "\n".join([*explanation_text(PAGE, found), *_unread(posted)])
    return Reply(text, explanation_reply(posted, found))


@dataclass(frozen=True, slots=True)
class _Counted:
    """The outcome of a session in short."""

    session: str
    outcome: OutcomeSummary


def _recount_text(page: Page, result: Recount) -> Iterator[str]:
    return outcome_text(
        page, result.outcome, simulated=bool(result.outcome.details.get("simulated"))
    )


def _summarize(result: Recount) -> _Counted:
    return _Counted(result.outcome.session, summarize_outcome(result.outcome))


def _posted(body: BallotsArguments) -> BallotUpload:
    return BallotUpload(body.ballots.encode(), body.format, columns_given(body.column), body.scale)


def _unread(posted: BallotUpload) -> list[str]:
    """The first lines that could not be read, and how many more there are."""
    said = [clean(as_request(f"not read: {each}")) for each in posted.problems[:SHOWN]]
    if more := len(posted.problems) - len(said):
        said.append(f"… and {counted(more, 'more line')} could not be read")
    return said


COUNTING: tuple[Tool[Any], ...] = (
    Tool(
        "tally",
        "Count ballots",
        "Count ballots that you have, and say who leads and how sure that is: standings with "
        "intervals, ties, how many ballots could end the lead. Keeps nothing and calls no model.",
        TallyArguments,
        tally,
        reads=True,
    ),
    Tool(
        "compare",
        "Count ballots under every rule",
        "Count ballots that you have under every rule, side by side: where the rules differ, and "
        "how often the result survives the loss of one ballot.",
        CompareArguments,
        compare,
        reads=True,
    ),
    Tool(
        "explain",
        "Explain how ballots were counted",
        "Show step by step how the ballots of one session make its outcome.",
        ExplainArguments,
        explain,
        reads=True,
    ),
    value_tool(recount, _recount_text, summary=_summarize),
)
