"""Commands made from the catalogue: an option for each parameter, text or JSON for the result."""

import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, TypeVar

import click

from witan.errors import InvalidParameter
from witan.service.catalogue import Operation
from witan.service.parameters import Parameter, Parser, parameters_of
from witan.service.text import Page
from witan.surfaces.cli.options import chart_option, json_option
from witan.surfaces.cli.stacking import Decorator, SectionedCommand, section
from witan.surfaces.terminal import echo

__all__ = ["parameter_options", "value_command"]

R = TypeVar("R")

Text = Callable[[Page, R], Iterator[str]]
"""Renders a result as lines of text."""

Open = Callable[[Mapping[str, Any]], AbstractContextManager[Any]]
"""Opens what the operation works on, from the options that are no parameters of it."""


def value_command(
    operation: Operation[Any, R],
    open_service: Open,
    text: Text[R],
    *,
    options: Sequence[Decorator[Any]] = (),
    charts: Mapping[str, tuple[str, Callable[[R], Any]]] | None = None,
    examples: str = "",
    notes: str = "",
) -> click.Command:
    """Make the command of an operation that returns a value.

    Parameters
    ----------
    options
        Options that say what the operation works on, which `open_service` reads.
    charts
        Option to its help and to what draws the result.
    notes
        What only the command has: its files, its exit statuses.
    """
    drawn = charts or {}

    def run(as_json: bool, **given: Any) -> int:
        paths = {name: path for name in drawn if (path := given.pop(name.lstrip("-"))) is not None}
        _check_charts(paths.values())
        names = {parameter.name for parameter in parameters_of(operation.parameters)}
        with _options_named(names):
            parameters = operation.parameters(**{name: given.pop(name) for name in names})
            with open_service(given) as service:
                result = operation.handler(service, parameters)
        if as_json:
            from witan.service.json_output import to_json

            echo(to_json(result))
        else:
            echo("\n".join(text(Page.of(sys.stdout), result)))
        _draw({path: drawn[name][1](result) for name, path in paths.items()})
        return 0

    decorated: Any = run
    decorators = [
        parameter_options(operation.parameters),
        *options,
        json_option,
        *(chart_option(name, words) for name, (words, _) in drawn.items()),
    ]
    for decorate in reversed(decorators):
        decorated = decorate(decorated)
    return click.command(
        operation.name,
        cls=SectionedCommand,
        short_help=operation.summary,
        help=f"{_with_options(operation)}\n\n{notes}",
        epilog=examples,
    )(decorated)


def _with_options(operation: Operation[Any, Any]) -> str:
    """Call parameters by their options in the description of an operation."""
    names = "|".join(each.name for each in parameters_of(operation.parameters))
    return re.sub(
        rf"`({names})`", lambda found: f"--{found[1].replace('_', '-')}", operation.description
    )


@contextmanager
def _options_named(parameters: Collection[str]) -> Iterator[None]:
    """Name the option where a parameter is refused."""
    try:
        yield
    except InvalidParameter as error:
        if error.name not in parameters:
            raise
        option = f"--{error.name.replace('_', '-')}"
        raise InvalidParameter(option, error.value, error.expected) from None


def _check_charts(paths: Iterable[str]) -> None:
    for path in paths:
        from witan.surfaces.charts.drawing import check_chart

        check_chart(path)


def _draw(charts: Mapping[str, Any]) -> None:
    for path, chart in charts.items():
        from witan.surfaces.charts.drawing import save_chart

        save_chart(chart, path)


def parameter_options(declared: type) -> Decorator[Any]:
    """Make an option of each parameter that a dataclass declares."""
    made = [
        section(parameter.doc.section or "Options", _option(parameter))
        for parameter in parameters_of(declared)
    ]

    def apply(command: Any) -> Any:
        for decorate in reversed(made):
            command = decorate(command)
        return command

    return apply


def _option(parameter: Parameter) -> Decorator[Any]:
    name = f"--{parameter.name.replace('_', '-')}"
    if parameter.kind is bool:
        flag = f"{name}/--no-{name[2:]}" if parameter.nullable or parameter.default else name
        switch = None if "/" in flag else True
        return click.option(
            flag, is_flag=switch, default=parameter.default, help=parameter.doc.text
        )
    return click.option(
        name,
        type=_type(parameter),
        default=parameter.default,
        show_default=parameter.default is not None and not parameter.many,
        multiple=parameter.many == "list",
        metavar=parameter.doc.metavar or (None if parameter.choices else _metavar(parameter)),
        help=parameter.doc.text,
    )


def _metavar(parameter: Parameter) -> str:
    return "NUMBER" if parameter.kind in (int, float) else "NAME"


def _type(parameter: Parameter) -> Any:
    if parameter.parser is not None:
        return _Parsed(parameter.parser)
    if parameter.choices:
        return click.Choice(parameter.choices)
    bounds = parameter.bounds
    if parameter.kind in (int, float) and bounds:
        kind: Any = click.IntRange if parameter.kind is int else click.FloatRange
        return kind(
            bounds.get("ge", bounds.get("gt")),
            bounds.get("le", bounds.get("lt")),
            min_open="gt" in bounds,
            max_open="lt" in bounds,
        )
    return parameter.kind


class _Parsed(click.ParamType[Any]):
    """A value that the parameter's own parser reads from text."""

    name = "text"

    def __init__(self, parser: Parser) -> None:
        self.parser = parser

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Read the text, or refuse it in the parser's words."""
        if not isinstance(value, str):
            return value
        try:
            return self.parser.parse(value)
        except ValueError:
            self.fail(f"{value.strip()!r} is no time; expected {self.parser.expected}.", param, ctx)
