"""Options of commands that count ballots, and the parameters that they stand for."""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from witan.service.ballots import SECTION, BallotParameters
from witan.service.catalogue import Operation
from witan.service.settings import COUNTING
from witan.surfaces.cli.generated import (
    named_options,
    parameter_options,
    take_parameters,
    with_options,
)
from witan.surfaces.cli.history_options import config_option, history_option
from witan.surfaces.cli.options import json_option, strict_option
from witan.surfaces.cli.reading import Body
from witan.surfaces.cli.stacking import Decorator, SectionedCommand, section, stacked

P = TypeVar("P", bound=BallotParameters)

NOTES = """Several files are one body of ballots; - is standard input. All that `witan import` reads
is recognised by its content, packed or not. An ID is a session of the history, as `witan show`
takes it; `last` is the latest.
"""

sources_argument = click.argument(
    "ballots", nargs=-1, required=True, metavar="FILE|ID...", type=click.Path(allow_dash=True)
)

weights_option = section(
    COUNTING,
    click.option(
        "--weights",
        "weights_file",
        type=click.Path(exists=True, dir_okay=False),
        metavar="FILE.json",
        help="Read reviewers' weights from a JSON object.",
    ),
)


def ballot_command(
    operation: Operation[P, Any],
    count: Callable[[P, Body, Mapping[str, Any]], int],
    *,
    options: Sequence[Decorator[Any]],
    examples: str,
) -> click.Command:
    """Make the command of an operation that counts ballots: of files, and of stored sessions.

    Parameters
    ----------
    count
        Counts and prints; returns the exit status.
    options
        Options of this command alone, which `count` reads.
    """

    def run(**given: Any) -> int:
        body = Body.of({**given, "files": given["ballots"]})
        with named_options(operation.parameters):
            parameters = take_settings(operation.parameters, {**given, "ballots": body})
            return count(parameters, body, given)

    decorated = stacked(
        sources_argument,
        parameter_options(operation.parameters, without=["ballots"]),
        section(SECTION, strict_option),
        weights_option,
        config_option,
        history_option,
        json_option,
        *options,
    )(run)
    return click.command(
        operation.name,
        cls=SectionedCommand,
        short_help=operation.summary,
        help=f"{with_options(operation.description, operation.parameters)}\n\n{NOTES}",
        epilog=examples,
    )(decorated)


def take_settings(declared: type[Any], options: dict[str, Any]) -> Any:
    """Make parameters of which some weights may stand in a file."""
    if path := options.pop("weights_file"):
        options["weights"] = {**_weights_in(path), **(options["weights"] or {})}
    return take_parameters(declared, options)


def _weights_in(path: str) -> dict[str, float]:
    try:
        read = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise click.BadParameter(
            f"{path} is no JSON file: {error}", param_hint="--weights"
        ) from None
    if not isinstance(read, dict) or not all(
        isinstance(weight, int | float) and not isinstance(weight, bool) for weight in read.values()
    ):
        raise click.BadParameter(
            f'{path} must hold one object such as {{"reviewer": 2}}', param_hint="--weights"
        )
    return {name: float(weight) for name, weight in read.items()}
