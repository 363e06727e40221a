"""Plan a question, a retry or another jury: ``witan plan`` and ``--plan``."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from witan.service.requests import QuestionRequest, RejudgeRequest, RetryRequest
from witan.service.text import Page, clean
from witan.surfaces.cli.council_options import council_options, overrides, seat_jury_of
from witan.surfaces.cli.options import SectionedCommand, history_option, json_option, section
from witan.surfaces.cli.session import (
    SessionOutput,
    join_conversation,
    read_earlier,
    read_files,
    read_question,
    read_turns,
)
from witan.surfaces.terminal import echo

if TYPE_CHECKING:
    from witan.deliberation.session import Session
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


@dataclass(frozen=True, slots=True)
class LocalPlanner:
    """The configured council, and the sessions of its history or of files.

    Parameters
    ----------
    options
        Options of the command: the configuration, the history, and who is seated.
    """

    options: Mapping[str, Any]

    async def plan(self, question: QuestionRequest) -> "PlanSummary":
        """Plan a question; no key is needed."""
        import os

        from witan.service.config.configuration import load_config
        from witan.service.council import plan_configured
        from witan.service.history_access import configured
        from witan.service.operations.plan import summarize_plan
        from witan.surfaces.cli.stored_sessions import earlier_lengths

        file, history = self.options["config"], self.options["history"]
        earlier = read_earlier(question.parent, file, history)
        config = load_config(
            os.environ, Path.cwd(), file, overrides(self.options), profile=question.profile
        )
        planned = plan_configured(
            config,
            os.environ,
            question.question,
            conversation=join_conversation(question.conversation, earlier),
            files=question.files,
            lengths=earlier_lengths(configured(file, history)),
        )
        for note in planned.notes:
            _say(note)
        return summarize_plan(planned.plan, planned.max_cost_usd)

    async def plan_retry(self, request: RetryRequest) -> "PlanSummary":
        """Plan a retry of seats; nobody is seated for it."""
        from witan.deliberation.procedure import with_ceiling
        from witan.deliberation.retries import plan_retry
        from witan.service.operations.plan import summarize_plan

        file, history = self.options["config"], self.options["history"]
        parent, _ = retried_session(request.session, file, history)
        limits = with_ceiling(parent.opened.procedure, request.max_cost_usd).limits
        planned = plan_retry(parent, request.seats or None, limits)
        return summarize_plan(planned, limits.max_cost_usd)

    async def plan_rejudge(self, request: RejudgeRequest) -> "PlanSummary":
        """Plan another jury."""
        from witan.service.operations.plan import summarize_plan

        parent = judged_session(request.session, self.options["config"], self.options["history"])
        council = seat_jury_of(self.options, _say, None)
        ceiling = council.procedure.limits.max_cost_usd
        return summarize_plan(council.plan_rejudge(parent), ceiling)


def _say(note: str) -> None:
    echo(clean(note), err=True)


def print_plan(
    operation: Literal["plan", "plan_retry", "plan_rejudge"],
    options: Mapping[str, Any],
    request: QuestionRequest | RetryRequest | RejudgeRequest,
    *,
    as_json: bool,
) -> int:
    """Do the operation of that name and print its plan; return the exit status."""
    import anyio

    from witan.service.catalogue import find_operation
    from witan.surfaces.cli.generated import render_report

    handler = find_operation(operation).handler
    summary: PlanSummary = anyio.run(handler, LocalPlanner(options), request)
    if as_json:
        from witan.service.json_output import to_json

        echo(to_json(summary))
    else:
        echo("\n".join(render_report(Page.of(sys.stdout), summary)))
    return 0


def retried_session(name: str, config: Path | None, history: str | None) -> "tuple[Session, bool]":
    """Find the session to retry, and whether the user's own configuration seated it."""
    from witan.errors import SessionFileError
    from witan.service.history_access import configured
    from witan.surfaces.cli.stored_sessions import session_called

    with session_called(name, config, history) as (session, place):
        if isinstance(session, str):
            raise SessionFileError(name, "came in as ballots: no council can be asked again")
        own = place is not None and configured(config, history).history.own
        trusted = own and place is not None and not place.summary(session.id).imported
    return session, trusted


def judged_session(name: str, config: Path | None, history: str | None) -> "Session":
    """Find the session whose answers are judged."""
    from witan.errors import SessionFileError
    from witan.surfaces.cli.stored_sessions import session_called

    with session_called(name, config, history) as (session, _):
        if isinstance(session, str):
            raise SessionFileError(name, "came in as ballots: no council gave its answers")
    return session


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
    request = QuestionRequest(
        question=read_question(options["question"], inputs),
        profile=options["profile"],
        conversation=read_turns(options),
        files=read_files(options["files"]),
        parent=options["parent"],
    )
    print_plan("plan", options, request, as_json=as_json)
