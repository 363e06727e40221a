"""``witan demo``: a council that needs no key, because scripts sit in it."""

from functools import partial
from typing import TYPE_CHECKING, Any

import click

from witan.service.requests import QuestionRequest
from witan.surfaces.cli.council_options import output_options
from witan.surfaces.cli.options import open_record, recording_options
from witan.surfaces.cli.session import SessionOutput, SessionStart, run_session

if TYPE_CHECKING:
    from witan.surfaces.cli.live_session import LiveSession


EXAMPLES = """\b
Examples:
  witan demo
  witan demo --degraded
  witan demo --save demo.json && witan show demo.json
"""

MARK = "simulated | "


@click.command("demo", short_help="Watch a session of scripted members.", epilog=EXAMPLES)
@click.option("--fast", is_flag=True, help="Play the scripts without their pauses.")
@click.option(
    "--degraded", is_flag=True, help="Seat a reviewer that never casts a ballot, to see what then."
)
@output_options
@recording_options
def demo_command(fast: bool, degraded: bool, **options: Any) -> int:
    """Watch a council deliberate; its members are scripts, so no key is needed.

    Everything else is real: the sheets, the ballots, the repair of one that could not be read, and
    the counting. No model is called, and every line says so. With --degraded one ballot never
    comes, and the session says what it lacks. It is kept in the history, marked as simulated.
    """
    output = SessionOutput.of(options, mark=MARK)

    def prepare(live: "LiveSession") -> SessionStart:
        from witan.service.demonstration import demonstration
        from witan.service.operations.ask import ask

        shown = demonstration(fast=fast, degraded=degraded)
        request = QuestionRequest(question=shown.question, seed=shown.seed)
        councils = live.councils(None, demo=shown)
        return SessionStart(ask, request, councils)

    return run_session(output, partial(open_record, options), prepare)
