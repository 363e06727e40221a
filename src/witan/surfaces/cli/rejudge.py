"""``witan rejudge``: the answers of a session before another jury."""

from functools import partial
from typing import TYPE_CHECKING, Any

import click

from witan.surfaces.cli.council_options import (
    jury_options,
    jury_seated_by,
    session_options,
)
from witan.surfaces.cli.history_options import recorded_by
from witan.surfaces.cli.planning import (
    check_planned,
    plan_option,
    print_plan,
    say_aside,
)
from witan.surfaces.cli.session import Say, hold
from witan.surfaces.cli.session_options import Telling
from witan.surfaces.cli.stacking import SectionedCommand

if TYPE_CHECKING:
    from pathlib import Path

    from witan.deliberation.recorder import Listener
    from witan.deliberation.session import Session
    from witan.service.history_access import RecordingPlace
    from witan.surfaces.cli.live_session import Hold

__all__ = ["command"]


EXAMPLES = """\b
Examples:
  witan rejudge last --member openai:gpt-5 --member anthropic:claude-opus-4
  witan rejudge session.json --rubric coding --mirrored --save again.json
  witan rejudge last --rubric coding --plan
"""


@click.command(
    "rejudge",
    cls=SectionedCommand,
    short_help="Put a session's answers before another jury.",
    epilog=EXAMPLES,
)
@click.argument("session", metavar="ID|FILE")
@jury_options
@plan_option
@session_options
def command(session: str, plan: bool, **options: Any) -> int:
    """Have the council review the stored answers of a session; it answers nothing itself.

    Who is seated is the jury; no juror sees what its own model wrote. What comes of it is a new
    session, which names the other as its parent; that one stays as it was. Exit status: as for
    witan ask.
    """
    telling = Telling.of(options)
    if plan:
        check_planned(telling)
        parent = _parent(session, options["config"], options["history"])
        council = jury_seated_by(options, say_aside, None)
        ceiling = council.procedure.limits.max_cost_usd
        return print_plan(council.plan_rejudge(parent), ceiling, as_json=telling.as_json)

    def seat(say: Say, place: "RecordingPlace | None") -> "Hold":
        parent = _parent(session, options["config"], options["history"])
        council = jury_seated_by(options, say, place)

        async def held(listener: "Listener") -> "Session":
            async with council:
                return await council.rejudge(parent, seed=options["seed"], listener=listener)

        return held

    return hold(telling, seat, partial(recorded_by, options))


def _parent(name: str, config: "Path | None", history: str | None) -> "Session":
    """The session whose answers are judged."""
    from witan.errors import SessionFileError
    from witan.surfaces.cli.stored_sessions import session_called

    with session_called(name, config, history) as (session, _):
        if isinstance(session, str):
            raise SessionFileError(name, "came in as ballots: no council gave its answers")
    return session
