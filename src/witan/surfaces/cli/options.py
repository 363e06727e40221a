"""The options that commands share, and what they mean as settings."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from witan.errors import InvalidParameter
from witan.service.option_types import scalar_of
from witan.surfaces.cli.history_options import config_option, history_option
from witan.surfaces.cli.stacking import Decorator, section, stacked

if TYPE_CHECKING:
    from witan.core.rubric import Rubric
    from witan.core.scale import Scale
    from witan.core.settings import Settings

__all__ = [
    "chart_option",
    "counting_options",
    "files_argument",
    "json_option",
    "level_option",
    "limit_option",
    "reading_options",
    "settings_of",
]


class _Rho(click.ParamType[Any]):
    """``learn``, ``none`` or a number."""

    name = "learn|none|number"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float | str | None:
        if value in ("learn", "none", None):
            return None if value == "none" else value
        try:
            return float(value)
        except ValueError:
            self.fail(f"{value!r} is not 'learn', 'none' or a number", param, ctx)


def _pairs(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    """Read ``name=value`` as often as given."""
    found = {}
    for value in values:
        name, equals, given = (
            value.rpartition("=") if param.name == "weight" else value.partition("=")
        )
        if not equals or not name:
            raise click.BadParameter(f"{value!r} is not of the form name=value", ctx, param)
        found[name.strip()] = given.strip()
    return found


def _parameters(
    ctx: click.Context, param: click.Parameter, values: tuple[str, ...]
) -> dict[str, Any]:
    """Read a rule's parameters: numbers and true or false as such, anything else as text."""
    return {name: scalar_of(given) for name, given in _pairs(ctx, param, values).items()}


def _weights(
    ctx: click.Context, param: click.Parameter, values: tuple[str, ...]
) -> dict[str, float]:
    found = {}
    for name, given in _pairs(ctx, param, values).items():
        try:
            found[name] = float(given)
        except ValueError:
            raise click.BadParameter(
                f"the weight of {name} is {given!r}, not a number", ctx, param
            ) from None
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

format_options = section(
    "Ballots",
    format_option,
    column_option,
    scale_option,
    click.option(
        "--strict",
        is_flag=True,
        help="Take none of the ballots, and exit 1, if any line cannot be read.",
    ),
)

session_option = section(
    "Ballots",
    click.option(
        "--session",
        "sessions",
        multiple=True,
        metavar="NAME",
        help="Show only this session; the others still inform what is learned.",
    ),
)

rule_options = section(
    "Counting",
    click.option(
        "--rule",
        default="auto",
        show_default=True,
        metavar="NAME",
        help="Count by this rule; `witan rules` lists them.",
    ),
)

parameter_option = section(
    "Counting",
    click.option(
        "--param",
        "parameters",
        multiple=True,
        callback=_parameters,
        metavar="NAME=VALUE",
        help="Set a parameter of the rule, such as variant=roster.",
    ),
)

telling_options = section(
    "Ties and intervals",
    click.option(
        "--ties",
        type=click.Choice(["contrast", "intervals"]),
        default="contrast",
        show_default=True,
        help="Tell lines apart by the fitted contrast, or by whether score intervals overlap.",
    ),
    click.option(
        "--level",
        type=float,
        metavar="NUMBER",
        default=0.95,
        show_default=True,
        help="Confidence level of intervals and of telling lines apart.",
    ),
    click.option(
        "--threshold",
        type=float,
        metavar="NUMBER",
        default=1.96,
        show_default=True,
        help="Standard errors on each side, with --ties intervals.",
    ),
    click.option(
        "--tie-break",
        type=click.Choice(["none", "wins", "borda"]),
        help="Separate equal scores by this instead of by the rule's own way.",
    ),
    click.option(
        "--rho",
        type=_Rho(),
        default="learn",
        show_default=True,
        metavar="learn|none|NUMBER",
        help="Error that all reviewers share, learned where people judged the same.",
    ),
    click.option(
        "--prior",
        type=click.Choice(["none", "learn"]),
        default="none",
        show_default=True,
        help="Borrow strength from the other sessions, if there are at least fifty.",
    ),
)

ballot_options = section(
    "Counting",
    click.option(
        "--recusal",
        type=click.Choice(["before", "after", "off"]),
        default="before",
        show_default=True,
        help="Drop a reviewer's own candidate before or after places are counted, or never.",
    ),
    click.option(
        "--unranked",
        type=click.Choice(["skip", "last"]),
        default="skip",
        show_default=True,
        help="Give candidates that a ballot leaves out no vote, or the places left.",
    ),
    click.option(
        "--rubric",
        default="general",
        show_default=True,
        metavar="NAME|FILE.toml",
        help="Weigh criteria by this rubric.",
    ),
    click.option(
        "--kind",
        type=click.Choice(["all", "model", "human"]),
        default="all",
        show_default=True,
        help="Count only the ballots of models, or of people.",
    ),
    click.option(
        "--weight",
        "weight",
        multiple=True,
        callback=_weights,
        metavar="REVIEWER=NUMBER",
        help="Weigh a reviewer's ballots; 1 unless given.",
    ),
    click.option(
        "--weights",
        "weights_file",
        type=click.Path(exists=True, dir_okay=False),
        metavar="FILE.json",
        help="Read reviewers' weights from a JSON object.",
    ),
    click.option(
        "--answers",
        type=click.Path(exists=True, dir_okay=False, allow_dash=True),
        metavar="FILE.jsonl",
        help="Run the safety gate on these answers (session, candidate, text); "
        "what fails cannot win.",
    ),
)


reading_options = stacked(
    sources_argument, format_options, session_option, config_option, history_option
)
"""Files and sessions of the history, the format of files, and which sessions to show."""


def counting_options(*, with_rule: bool = True) -> Decorator[Any]:
    """Everything that `Settings` holds."""
    first = (rule_options,) if with_rule else ()
    return stacked(*first, parameter_option, ballot_options, telling_options)


def settings_of(options: Mapping[str, Any]) -> "Settings":
    """The settings that the options of `counting_options` stand for."""
    from witan.core.settings import AUTO, Settings
    from witan.surfaces.cli.answer_files import read_answers

    rule = options.get("rule", AUTO)
    if rule == AUTO and "rule" in options and options["parameters"]:
        raise click.UsageError("--param belongs to one rule: name it with --rule.")
    answers = options["answers"]
    return Settings.of(
        rule,
        parameters=options["parameters"],
        ties=options["ties"],
        level=options["level"],
        threshold=options["threshold"],
        tie_break=options["tie_break"],
        recusal=options["recusal"],
        unranked=options["unranked"],
        rubric=_rubric(options["rubric"]),
        kind=options["kind"],
        weights={**_weights_in(options["weights_file"]), **options["weight"]},
        rho=options["rho"],
        prior=None if options["prior"] == "none" else options["prior"],
        gates=read_answers(answers) if answers else {},
    )


def _rubric(given: str) -> "Rubric":
    """A rubric by name, or from a TOML file."""
    from witan.core.rubrics import find_rubric

    if given.endswith(".toml"):
        from witan.files.rubric_toml import load_rubric

        return load_rubric(given)
    return find_rubric(given)


def _weights_in(path: str | None) -> dict[str, float]:
    if path is None:
        return {}
    try:
        held = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise click.BadParameter(
            f"{path} is no JSON file: {error}", param_hint="--weights"
        ) from None
    if not isinstance(held, dict) or not all(
        isinstance(weight, int | float) and not isinstance(weight, bool) for weight in held.values()
    ):
        raise click.BadParameter(
            f'{path} must hold one object such as {{"reviewer": 2}}', param_hint="--weights"
        )
    return {name: float(weight) for name, weight in held.items()}
