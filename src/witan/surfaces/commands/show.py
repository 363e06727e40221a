"""``witan show``: a stored session."""

import sys
from pathlib import Path

import click

from witan.surfaces.commands.council_options import record_options
from witan.surfaces.text import Page

__all__ = ["command"]


EXAMPLES = """\b
Examples:
  witan show session.json
  witan show session.json --events
"""


@click.command("show", short_help="Show a stored session.", epilog=EXAMPLES)
@click.argument("file", type=click.Path(allow_dash=True, path_type=Path))
@record_options
def command(file: Path, as_json: bool, events: bool) -> None:
    """Show the session in FILE: question, answers, ballots, standings, closing text.

    With --events, everything that happened in it, in order; - is standard input.
    """
    if as_json and events:
        raise click.UsageError("choose --json or --events, not both")
    from witan.adapters.session_files import read_session
    from witan.deliberation.record import event_to_json, session_to_json

    session = read_session(file)
    if as_json:
        click.echo(session_to_json(session))
    elif events:
        for event in session.events:
            click.echo(event_to_json(event, simulated=session.simulated))
    else:
        from witan.surfaces.session_text import session_text

        click.echo("\n".join(session_text(Page.of(sys.stdout), session)))
