"""The options that commands share."""

from typing import TYPE_CHECKING, Any

import click

from witan.errors import InvalidParameter
from witan.surfaces.cli.stacking import Decorator, section

if TYPE_CHECKING:
    from witan.core.scale import Scale


def _pairs(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    """Read ``name=value`` as often as given."""
    found = {}
    for value in values:
        name, equals, given = value.partition("=")
        if not equals or not name:
            raise click.BadParameter(f"{value!r} is not of the form name=value", ctx, param)
        found[name.strip()] = given.strip()
    return found


def _scale(ctx: click.Context, param: click.Parameter, value: str | None) -> "Scale | None":
    from witan.core.scale import Scale

    try:
        return None if value is None else Scale.parse(value)
    except InvalidParameter as error:
        raise click.BadParameter(f"{value!r} is not {error.expected}", ctx, param) from None


files_argument = click.argument(
    "files",
    nargs=-1,
    required=True,
    metavar="FILE...",
    type=click.Path(allow_dash=True),
)

sources_argument = click.argument(
    "files",
    nargs=-1,
    required=True,
    metavar="FILE|ID...",
    type=click.Path(allow_dash=True),
)

json_option = section(
    "Output",
    click.option(
        "--json", "as_json", is_flag=True, help="Print one JSON object, numbers unrounded."
    ),
)


def chart_option(name: str, words: str) -> Decorator[Any]:
    """An option for the file of a chart."""
    kind = click.Path(dir_okay=False, writable=True)
    return section("Output", click.option(name, type=kind, metavar="OUT.svg", help=words))


def level_option(words: str) -> Decorator[Any]:
    """The level of intervals over sessions."""
    return click.option(
        "--level",
        type=click.FloatRange(0, 1, min_open=True, max_open=True),
        metavar="NUMBER",
        default=0.95,
        show_default=True,
        help=words,
    )


def limit_option(default: int, words: str) -> Decorator[Any]:
    """The number of sessions to show in full."""
    return section(
        "Output",
        click.option(
            "--limit",
            type=click.IntRange(min=0),
            metavar="NUMBER",
            default=default,
            show_default=True,
            help=words,
        ),
    )


column_option = click.option(
    "--column",
    "columns",
    multiple=True,
    callback=_pairs,
    metavar="FIELD=HEADER",
    help="Name the column that holds a field, such as reviewer=judge.",
)

format_option = click.option(
    "--format", metavar="NAME", help="Read FILE as this format instead of recognising it."
)

scale_option = click.option(
    "--scale",
    callback=_scale,
    metavar="LOW-HIGH",
    help="Read grades on this scale, such as 0-1, pass-fail or 1-10,style=1-5; recognised unless "
    "given.",
)

strict_option = click.option(
    "--strict",
    is_flag=True,
    help="Take none of the ballots, and exit 1, if any line cannot be read.",
)

format_options = section("Ballots", format_option, column_option, scale_option, strict_option)
