"""Plan a question, a retry or another jury: ``witan plan`` and ``--plan``."""

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import click

from witan.service.requests import QuestionRequest, RejudgeRequest, RetryRequest
from witan.service.text import Page, clean
from witan.surfaces.cli.council_options import council_options, take_question
from witan.surfaces.cli.options import SectionedCommand, history_option, json_option, section
from witan.surfaces.cli.session import (
    SessionOutput,
    read_earlier,
    read_files,
    read_question,
    read_turns,
)
from witan.surfaces.terminal import echo

if TYPE_CHECKING:
    from witan.deliberation.session import Session
    from witan.history import History
    from witan.service.local_councils import LocalCouncils
    from witan.service.operations.plan import PlanSummary


plan_option = section(
    "Time and money",
    click.option(
        "--plan", is_flag=True, help="Print the calls and the highest cost; make no call."
    ),
)


def check_planned(output: SessionOutput) -> None:
    """Refuse options of a session where none is held."""
    if output.events or output.save is not None:
        option = "--events" if output.events else "--save"
        raise click.UsageError(f"{option} is of a session; with --plan there is none")


def print_plan(
    operation: Literal["plan", "plan_retry", "plan_rejudge"],
    request: QuestionRequest | RetryRequest | RejudgeRequest,
    councils: "LocalCouncils",
    sessions: "Sequence[Session]" = (),
    *,
    as_json: bool,
) -> int:
    """Do the operation of that name and print its plan; return the exit status.

    Parameters
    ----------
    sessions
        The sessions that the request names.
    """
    import anyio

    from witan.service.catalogue import find_operation
    from witan.service.operations.plan import Planner
    from witan.service.sessions import LOCAL, Service
    from witan.surfaces.cli.generated import render_report

    async def plan() -> "PlanSummary":
        async with Service.open(councils, local=True, sessions=sessions) as service:
            found: PlanSummary = await find_operation(operation).handler(
                Planner(service, LOCAL), request
            )
        return found

    summary = anyio.run(plan)
    if as_json:
        from witan.service.json_output import to_json

        echo(to_json(summary))
    else:
        echo("\n".join(render_report(Page.of(sys.stdout), summary)))
    return 0


def planned_councils(
    options: Mapping[str, Any], history: "History | None" = None
) -> "LocalCouncils":
    """Make the councils that options mean, which need no key as they are not asked."""
    from witan.service.local_councils import LocalCouncils

    return LocalCouncils(
        options["config"],
        dict(options.get("prices", ())),
        history=history,
        say=lambda note: echo(clean(note), err=True),
        planning=True,
    )


PLAN_EXAMPLES = """\b
Examples:
  witan plan "Is this contract fair?" -f contract.txt
  witan plan "Which?" --member openai:gpt-5 --member anthropic:claude-opus-4 --json
"""


@click.command(
    "plan",
    cls=SectionedCommand,
    short_help="Say what a question would cost, without a call.",
    epilog=PLAN_EXAMPLES,
)
@council_options
@history_option
@json_option
def plan_command(as_json: bool, **options: Any) -> None:
    """Say what QUESTION would ask for and cost at most; no call is made, and no key is needed.

    Tokens are upper bounds: every answer is counted as if it filled its limit. The expected cost
    goes by the lengths of earlier sessions, or else by published ones. Repairs of reviews and the
    chairmen that stand in are in the worst cost; retries and hedges are not.
    """
    inputs = (*options["files"], options["parent"], options["conversation"])
    question, turns = read_question(options["question"], inputs), read_turns(options)
    files = read_files(options["files"])
    from witan.service.history_access import configured
    from witan.surfaces.cli.stored_sessions import open_history_if_any

    config, url = options["config"], options["history"]
    before = read_earlier(options["parent"], config, url)
    request = take_question(options, question, turns, files, before)
    with open_history_if_any(configured(config, url)) as history:
        councils = planned_councils(options, history)
        councils.council(request)
        parents = () if before is None else (before,)
        print_plan("plan", request, councils, parents, as_json=as_json)
