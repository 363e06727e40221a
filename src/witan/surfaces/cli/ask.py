"""``witan ask``: put a question to the council."""

from functools import partial
from typing import TYPE_CHECKING, Any

import click

from witan.surfaces.cli.council_options import (
    council_options,
    say_separation,
    seated_by,
    session_options,
)
from witan.surfaces.cli.history_options import recorded_by
from witan.surfaces.cli.session import Say, hold
from witan.surfaces.cli.session_options import (
    Telling,
    read_conversation,
    read_earlier,
    read_files,
    read_question,
)
from witan.surfaces.cli.stacking import SectionedCommand

if TYPE_CHECKING:
    from witan.deliberation.recorder import Listener
    from witan.deliberation.session import Session
    from witan.service.history_access import RecordingPlace
    from witan.surfaces.cli.live_session import Hold

__all__ = ["command"]


EXAMPLES = """\b
Examples:
  witan ask "Is a hash map always faster than a sorted array?"
  git diff | witan ask "Is this change safe?" -f - --mode verdict
  witan ask "Which?" --member openai:gpt-5 --member ollama:qwen3 --save session.json
"""


@click.command(
    "ask", cls=SectionedCommand, short_help="Put a question to the council.", epilog=EXAMPLES
)
@council_options
@session_options
def command(**options: Any) -> int:
    """Put QUESTION to the council; print the final answer, and how far to trust it.

    Without QUESTION, or with -, the question is read from standard input. Ctrl-C keeps what came
    in, and says how to go on. Exit status: 0 answered, 1 not approved (--mode verdict), 2 misuse,
    3 no quorum, 4 over budget, 5 tied under --require-winner, 6 not kept by the history,
    7 not written to standard output, 130 interrupted, 141 the reader of standard output has left.
    """
    telling = Telling.of(options)
    earlier = options["parent"]
    inputs = (*options["files"], earlier, options["conversation"])
    question = read_question(options["question"], inputs)
    files = read_files(options["files"])

    def seat(say: Say, place: "RecordingPlace | None") -> "Hold":
        before = read_earlier(earlier, options["config"], options["history"])
        conversation = read_conversation(options["conversation"], before)
        council = seated_by(options, say, place)
        if not telling.quiet:
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

    return hold(telling, seat, partial(recorded_by, options))
