"""``witan plan``: what a question would cost, before it is asked."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from witan.service.text import clean, listed
from witan.surfaces.cli.council_options import council_options, overrides
from witan.surfaces.cli.history_options import history_option
from witan.surfaces.cli.options import json_option
from witan.surfaces.cli.planning import print_plan
from witan.surfaces.cli.session_options import (
    read_conversation,
    read_earlier,
    read_files,
    read_question,
)
from witan.surfaces.cli.stacking import SectionedCommand
from witan.surfaces.terminal import echo

if TYPE_CHECKING:
    from witan.deliberation.ports import Seat
    from witan.models.seats import SeatSpec

__all__ = ["command"]


EXAMPLES = """\b
Examples:
  witan plan "Is this contract fair?" -f contract.txt
  witan plan "Which?" --member openai:gpt-5 --member anthropic:claude-opus-4 --json
"""


@click.command(
    "plan",
    cls=SectionedCommand,
    short_help="Say what a question would cost, without a call.",
    epilog=EXAMPLES,
)
@council_options
@history_option
@json_option
def command(as_json: bool, **options: Any) -> None:
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

    from witan.deliberation.planner import make_plan
    from witan.deliberation.procedure import check_procedure
    from witan.service.config.configuration import load_config
    from witan.service.council import who_sits, with_list_prices
    from witan.service.history_access import configured
    from witan.service.procedure_options import locate_error, procedure_of
    from witan.surfaces.cli.stored_sessions import earlier_lengths

    given, profile = overrides(options), options["profile"]
    config = load_config(os.environ, Path.cwd(), options["config"], given, profile=profile)
    config = with_list_prices(config, os.environ)
    found = who_sits(config, os.environ)
    procedure = procedure_of(config)
    with locate_error(config):
        check_procedure(procedure, len(found.seats), len(config.jury))
    plan = make_plan(
        [_seat(spec) for spec in found.seats],
        [_seat(spec) for spec in _apart(config.chairmen, (*found.seats, *config.jury))],
        procedure,
        question,
        jury=[_seat(spec) for spec in config.jury],
        conversation=read_conversation(options["conversation"], before),
        files=files,
        lengths=earlier_lengths(configured(options["config"], options["history"])),
    )
    for note in (*found.notes, *_missing_keys((*found.seats, *config.jury, *config.chairmen))):
        echo(clean(note), err=True)
    print_plan(plan, procedure.limits.max_cost_usd, as_json=as_json)


def _seat(spec: "SeatSpec") -> "Seat":
    """A seat as far as a plan needs it: nobody is called, so there is no model and no key."""
    import os

    from witan.deliberation.ports import Seat
    from witan.models.seats import price_of_seat

    price = price_of_seat(spec, os.environ)
    return Seat(spec.name, spec.source, spec.provider, spec.options, price)


def _apart(chairmen: "Sequence[SeatSpec]", members: "Sequence[SeatSpec]") -> "list[SeatSpec]":
    """Replace each chairman that sits as a member or juror by that seat."""
    seated = {replace(member, name=""): member for member in reversed(members)}
    return [seated.get(replace(chairman, name=""), chairman) for chairman in chairmen]


def _missing_keys(specs: "Sequence[SeatSpec]") -> Iterator[str]:
    """What has to be set before the question can be asked."""
    import os

    from witan.models.providers import find_key
    from witan.models.seats import key_variables

    missing: dict[str, None] = {}
    for variables in map(key_variables, specs):
        if variables and find_key(variables, os.environ) is None:
            missing[" or ".join(variables)] = None
    if missing:
        yield f"no key is needed for the plan; to ask, set {listed([*missing], most=len(missing))}"
