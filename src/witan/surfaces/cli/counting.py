"""Options of commands that count ballots, and the parameters that they stand for."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from witan.service.ballots import SECTION, BallotParameters
from witan.service.counting import COUNTING
from witan.surfaces.cli.generated import named_options, parameter_options, take_parameters
from witan.surfaces.cli.history_options import config_option, history_option
from witan.surfaces.cli.options import sources_argument, strict_option
from witan.surfaces.cli.reading import Body
from witan.surfaces.cli.stacking import Decorator, section, stacked

P = TypeVar("P", bound=BallotParameters)

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


def ballot_options(declared: type[BallotParameters]) -> Decorator[Any]:
    """Files and sessions of the history, how they are read, and how they are counted."""
    return stacked(
        sources_argument,
        parameter_options(declared, without=["ballots"]),
        section(SECTION, strict_option),
        weights_option,
        config_option,
        history_option,
    )


def run_counting(
    declared: type[P], options: dict[str, Any], count: Callable[[P, Body], int]
) -> int:
    """Count the ballots of files as the options say; return the exit status."""
    body = Body.of(options)
    given = take_settings(declared, {**options, "ballots": body})
    with named_options(declared):
        return count(given, body)


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
