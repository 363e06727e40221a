"""Put a question or stored answers to a council: ``witan ask`` and ``rejudge``."""

from functools import partial
from typing import TYPE_CHECKING, Any

import click

from witan.service.requests import RejudgeRequest
from witan.surfaces.cli.council_options import (
    council_options,
    jury_options,
    say_separation,
    seat_council_of,
    seat_jury_of,
    session_options,
)
from witan.surfaces.cli.options import SectionedCommand, open_record
from witan.surfaces.cli.plan import check_planned, judged_session, plan_option, print_plan
from witan.surfaces.cli.session import (
    Say,
    SessionOutput,
    hold,
    join_conversation,
    read_earlier,
    read_files,
    read_question,
    read_turns,
)

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
    files, turns = read_files(options["files"]), read_turns(options)

    def seat(say: Say, place: "RecordingPlace | None") -> "SessionRunner":
        before = read_earlier(earlier, options["config"], options["history"])
        council = seat_council_of(options, say, place)
        if not output.quiet:
            say_separation(council, say, place)

        async def held(listener: "Listener") -> "Session":
            async with council:
                return await council.ask(
                    question,
                    conversation=join_conversation(turns, before),
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
        request = RejudgeRequest(session=session)
        return print_plan("plan_rejudge", options, request, as_json=output.as_json)

    def seat(say: Say, place: "RecordingPlace | None") -> "SessionRunner":
        parent = judged_session(session, options["config"], options["history"])
        council = seat_jury_of(options, say, place)

        async def held(listener: "Listener") -> "Session":
            async with council:
                return await council.rejudge(parent, seed=options["seed"], listener=listener)

        return held

    return hold(output, seat, partial(open_record, options))
