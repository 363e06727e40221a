"""``witan retry``: the seats of a session that failed are asked again."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from witan.service.requests import RetryRequest
from witan.surfaces.cli.council_options import session_options
from witan.surfaces.cli.generated import parameter_options
from witan.surfaces.cli.history_options import config_option, recorded_by
from witan.surfaces.cli.planning import check_planned, plan_option, print_plan
from witan.surfaces.cli.reseating import refuse_untrusted, reseated, trust_option
from witan.surfaces.cli.session import Say, hold
from witan.surfaces.cli.session_options import Telling
from witan.surfaces.cli.stacking import SectionedCommand, section

if TYPE_CHECKING:
    from witan.deliberation.recorder import Listener
    from witan.deliberation.session import Session
    from witan.service.history_access import RecordingPlace
    from witan.surfaces.cli.live_session import Hold

__all__ = ["command"]


EXAMPLES = """\b
Examples:
  witan retry last
  witan retry session.json --seat ada --save again.json
  witan retry last --plan
"""


@click.command(
    "retry", cls=SectionedCommand, short_help="Ask the seats that failed again.", epilog=EXAMPLES
)
@click.argument("session", metavar="ID|FILE")
@parameter_options(RetryRequest, without=("session",))
@section("Session", config_option)
@section("Session", trust_option)
@plan_option
@session_options
def command(
    session: str,
    config: Path | None,
    trust: bool,
    *,
    seats: tuple[str, ...],
    max_cost_usd: float | None,
    plan: bool,
    **options: Any,
) -> int:
    """Ask the seats that failed in a session again; what does not depend on them is kept.

    Without --seat, every seat that failed or abstained. After a review the ballots are counted and
    the final answer is written again; after an answer all reviews are made again as well; after a
    chairman's failure only the final answer. What comes of it is a new session, which names the
    other as its parent; that one stays as it was. Its cost is that of the new calls alone. Exit
    status: as for witan ask.
    """
    telling = Telling.of(options)
    if plan:
        from witan.deliberation.procedure import with_ceiling
        from witan.deliberation.retries import plan_retry

        check_planned(telling)
        parent, _ = _parent(session, config, options["history"])
        limits = with_ceiling(parent.opened.procedure, max_cost_usd).limits
        planned = plan_retry(parent, seats or None, limits)
        return print_plan(planned, limits.max_cost_usd, as_json=telling.as_json)

    def seat(say: Say, _: "RecordingPlace | None") -> "Hold":
        parent, trusted = _parent(session, config, options["history"])
        if not (trust or trusted):
            refuse_untrusted(parent.opened.called)
        council = reseated(parent, config, say, max_cost_usd)

        async def held(listener: "Listener") -> "Session":
            async with council:
                return await council.retry(parent, seats or None, listener=listener)

        return held

    return hold(telling, seat, partial(recorded_by, {**options, "config": config}))


def _parent(name: str, config: Path | None, history: str | None) -> "tuple[Session, bool]":
    """The session to retry, and whether its seats are those that the user himself configured."""
    from witan.errors import SessionFileError
    from witan.service.history_access import configured
    from witan.surfaces.cli.stored_sessions import session_called

    with session_called(name, config, history) as (session, place):
        if isinstance(session, str):
            raise SessionFileError(name, "came in as ballots: no council can be asked again")
        own = place is not None and configured(config, history).history.own
        trusted = own and place is not None and not place.summary(session.id).imported
    return session, trusted
