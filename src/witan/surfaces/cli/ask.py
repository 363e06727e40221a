"""Put a question or stored answers to a council: ``witan ask`` and ``rejudge``."""

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from witan.service.requests import RejudgeRequest
from witan.surfaces.cli.council_options import (
    council_options,
    jury_options,
    say_separation,
    session_options,
    take_question,
)
from witan.surfaces.cli.generated import take_parameters
from witan.surfaces.cli.options import SectionedCommand, open_record
from witan.surfaces.cli.plan import (
    check_planned,
    plan_option,
    planned_councils,
    print_plan,
)
from witan.surfaces.cli.session import (
    SessionOutput,
    SessionStart,
    read_earlier,
    read_files,
    read_question,
    read_turns,
    run_session,
)

if TYPE_CHECKING:
    from witan.deliberation.session import Session
    from witan.surfaces.cli.live_session import LiveSession


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

    def prepare(live: "LiveSession") -> SessionStart:
        from witan.service.operations.ask import ask

        before = read_earlier(earlier, options["config"], options["history"])
        request = take_question(options, question, turns, files, before)
        councils = live.councils(options["config"], dict(options["prices"]))
        council = councils.council(request)
        if not output.quiet:
            say_separation(council, live.say, live.place)
        return SessionStart(ask, request, councils, () if before is None else (before,))

    return run_session(output, partial(open_record, options), prepare)


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
    request = take_jury(session, options)
    if plan:
        check_planned(output)
        parent = _find_parent(session, options)
        councils = planned_councils(options)
        councils.council_of_jurors(request)
        request = replace(request, session=parent.id)
        return print_plan("plan_rejudge", request, councils, [parent], as_json=output.as_json)

    def prepare(live: "LiveSession") -> SessionStart:
        from witan.service.operations.ask import rejudge

        parent = _find_parent(session, options)
        councils = live.councils(options["config"], dict(options["prices"]))
        councils.council_of_jurors(request)
        return SessionStart(rejudge, replace(request, session=parent.id), councils, (parent,))

    return run_session(output, partial(open_record, options), prepare)


def take_jury(session: str, options: dict[str, Any]) -> RejudgeRequest:
    """Read the options of a jury, which may be named by either of two."""
    if options["members"] and options["jury"]:
        raise click.UsageError("--member and --jury name the same here; use one of them")
    return take_parameters(RejudgeRequest, {**options, "session": session})


def _find_parent(name: str, options: dict[str, Any]) -> "Session":
    from witan.surfaces.cli.stored_sessions import council_session

    lacks = ": no council gave its answers"
    session, _ = council_session(name, options["config"], options["history"], lacks)
    return session
