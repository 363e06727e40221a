"""``witan recount``: a stored session under another rule, or without some reviewers."""

from collections.abc import Iterator

import click

from witan.service.operations.recount import Recount, recount
from witan.service.text import Page
from witan.surfaces.cli.counting import take_settings, weights_option
from witan.surfaces.cli.exit_statuses import Status
from witan.surfaces.cli.generated import value_command
from witan.surfaces.cli.history_options import config_option, history_option
from witan.surfaces.cli.stacking import section
from witan.surfaces.cli.stored_sessions import open_named_sessions
from witan.surfaces.text.outcome import outcome_text

EXAMPLES = """\b
Examples:
  witan recount last --rule schulze
  witan recount session.json --without gpt-5
"""


def _text(page: Page, result: Recount) -> Iterator[str]:
    return outcome_text(
        page, result.outcome, simulated=bool(result.outcome.details.get("simulated"))
    )


command = value_command(
    recount,
    open_named_sessions,
    text=_text,
    options=[
        click.argument("session", metavar="ID|FILE"),
        weights_option,
        section("History", config_option, history_option),
    ],
    without=["session"],
    take=take_settings,
    status=lambda result: Status.ANSWERED if result.outcome.leaders else Status.NO_QUORUM,
    examples=EXAMPLES,
    notes="An ID is the name of a session in the history, or a beginning of it that no other has; "
    "`last` is the latest. A FILE exists, ends in .json or has a path.",
)
