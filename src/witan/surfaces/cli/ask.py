"""Put a question or stored answers to a council: ``witan ask``, ``rejudge`` and ``plan``."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from witan.service.text import clean
from witan.surfaces.cli.council_options import (
    council_options,
    jury_options,
    overrides,
    say_separation,
    seat_council_of,
    seat_jury_of,
    session_options,
)
from witan.surfaces.cli.options import SectionedCommand, history_option, json_option, open_record
from witan.surfaces.cli.session import (
    Say,
    SessionOutput,
    check_planned,
    hold,
    plan_option,
    print_plan,
    read_conversation,
    read_earlier,
    read_files,
    read_question,
    say_aside,
)
from witan.surfaces.terminal import echo

if TYPE_CHECKING:
    from witan.deliberation.recorder import Listener
    from witan.deliberation.session import Session
    from witan.service.history_access import RecordingPlace
    from witan.surfaces.cli.live_session import SessionRunner


ASK_EXAMPLES = """\b
Examples:
  witan ask "Is a hash map always faster than a sorted array?"
  git diff | witan ask "Is this change safe?" -f - --mode verdict
  witan ask "Which?" --member openai:gpt-5 --member ollama:qwen3 --save session.json
"""


@click.command(
    "ask", cls=SectionedCommand, short_help="Put a question to the council.", epilog=ASK_EXAMPLES
)
@council_options
@session_options
def ask_command(**options: Any) -> int:
    """Put QUESTION to the council; print the final answer, and how far to trust it.

    Without QUESTION, or with -, the question is read from standard input. Ctrl-C keeps what came
    in, and says how to go on. Exit status: 0 answered, 1 not approved (--mode verdict), 2 misuse,
    3 no quorum, 4 over budget, 5 tied under --require-winner, 6 not kept by the history,
    7 not written to standard output, 130 interrupted, 141 the reader of standard output has left.
    """
    output = SessionOutput.of(options)
    earlier = options["parent"]
    inputs = (*options["files"], earlier, options["conversation"])
    question = read_question(options["question"], inputs)
    files = read_files(options["files"])

    def seat(say: Say, place: "RecordingPlace | None") -> "SessionRunner":
        before = read_earlier(earlier, options["config"], options["history"])
        conversation = read_conversation(options["conversation"], before)
        council = seat_council_of(options, say, place)
        if not output.quiet:
            say_separation(council, say, place)

        async def held(listener: "Listener") -> "Session":
            async with council:
                return await council.ask(
                    question,
                    conversation=conversation,
                    files=files,
                    seed=options["seed"],
                    category=options["category"],
                    parent=None if before is None else before.id,
                    listener=listener,
                )

        return held

    return hold(output, seat, partial(open_record, options))


REJUDGE_EXAMPLES = """\b
Examples:
  witan rejudge last --member openai:gpt-5 --member anthropic:claude-opus-4
  witan rejudge session.json --rubric coding --mirrored --save again.json
  witan rejudge last --rubric coding --plan
"""


@click.command(
    "rejudge",
    cls=SectionedCommand,
    short_help="Put a session's answers before another jury.",
    epilog=REJUDGE_EXAMPLES,
)
@click.argument("session", metavar="ID|FILE")
@jury_options
@plan_option
@session_options
def rejudge_command(session: str, plan: bool, **options: Any) -> int:
    """Have the council review the stored answers of a session; it answers nothing itself.

    Who is seated is the jury; no juror sees what its own model wrote. What comes of it is a new
    session, which names the other as its parent; that one stays as it was. Exit status: as for
    witan ask.
    """
    output = SessionOutput.of(options)
    if plan:
        check_planned(output)
        parent = _judged_session(session, options["config"], options["history"])
        council = seat_jury_of(options, say_aside, None)
        ceiling = council.procedure.limits.max_cost_usd
        return print_plan(council.plan_rejudge(parent), ceiling, as_json=output.as_json)

    def seat(say: Say, place: "RecordingPlace | None") -> "SessionRunner":
        parent = _judged_session(session, options["config"], options["history"])
        council = seat_jury_of(options, say, place)

        async def held(listener: "Listener") -> "Session":
            async with council:
                return await council.rejudge(parent, seed=options["seed"], listener=listener)

        return held

    return hold(output, seat, partial(open_record, options))


def _judged_session(name: str, config: "Path | None", history: str | None) -> "Session":
    """The session whose answers are judged."""
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
    earlier = options["parent"]
    inputs = (*options["files"], earlier, options["conversation"])
    question = read_question(options["question"], inputs)
    files = read_files(options["files"])
    before = read_earlier(earlier, options["config"], options["history"])
    import os

    from witan.service.config.configuration import load_config
    from witan.service.council import plan_configured
    from witan.service.history_access import configured
    from witan.surfaces.cli.stored_sessions import earlier_lengths

    given, profile = overrides(options), options["profile"]
    config = load_config(os.environ, Path.cwd(), options["config"], given, profile=profile)
    planned = plan_configured(
        config,
        os.environ,
        question,
        conversation=read_conversation(options["conversation"], before),
        files=files,
        lengths=earlier_lengths(configured(options["config"], options["history"])),
    )
    for note in planned.notes:
        echo(clean(note), err=True)
    print_plan(planned.plan, planned.max_cost_usd, as_json=as_json)
