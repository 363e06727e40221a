"""Make commands, options and output from the catalogue."""

import re
import shlex
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from copy import copy
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

import click

from witan.errors import InvalidParameter, NothingToCount, Remedy, Way, WitanError
from witan.service.ballots import SECTION, BallotFormat
from witan.service.catalogue import CATALOGUE, Operation, find_operation
from witan.service.parameters import (
    Parameter,
    Parameters,
    Scalar,
    make_parameters,
    parameters_of,
    scalar_of,
)
from witan.service.text import Page
from witan.surfaces.cli.options import (
    Decorator,
    Number,
    ParsedType,
    SectionedCommand,
    WholeNumber,
    chart_option,
    json_option,
    section,
    stack_options,
    strict_option,
)
from witan.surfaces.terminal import echo, measure_page, say

if TYPE_CHECKING:
    from witan.files.ballots import LineProblem

P = TypeVar("P", bound=Parameters)
R = TypeVar("R")

NO_FORMATS: Mapping[str, Any] = MappingProxyType({})

Open = Callable[[Mapping[str, Any]], AbstractContextManager[Any]]
"""Function that opens the subject of an operation from options other than its parameters."""

Write = Callable[[Page, Any, Any, Mapping[str, Any]], Iterable[str]]
"""Function that writes a result in lines, given the parameters and the other options."""


class _Command(SectionedCommand):
    """A command; for an operation, its help is the operation's description."""

    notes = ""

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the description of the operation, which is not imported before."""
        if self.name in CATALOGUE:
            operation = find_operation(self.name)
            words = with_options(operation.description, operation.parameters)
            self.help = f"{words}\n\n{self.notes}"
        super().format_help_text(ctx, formatter)


def command(name: str, *examples: str, notes: str = "") -> Callable[[Any], click.Command]:
    """Make a command from a function.

    `examples` omit ``witan``; `notes` extend the description: files, exit statuses.
    """

    def make(function: Any) -> click.Command:
        lines = (each if " witan " in f" {each}" else f"witan {each}" for each in examples)
        epilog = "".join(["\b\nExamples:", *(f"\n  {line}" for line in lines)])
        new_command = click.command(name, cls=_Command, epilog=epilog)(function)
        new_command.notes = notes
        if notes and name not in CATALOGUE:
            new_command.help = f"{new_command.help}\n\n{notes}"
        return new_command

    return make


def value_command(  # noqa: PLR0913 - what a command can have beside the declaration
    operation: Operation[Any, R],
    open_service: Open = lambda _: nullcontext(),
    *,
    options: Sequence[Decorator[Any]] = (),
    exclude: Collection[str] = (),
    take: Callable[[type[Any], dict[str, Any]], Any] | None = None,
    status: Callable[[R], int] = lambda _: 0,
    formats: Mapping[str, tuple[str, Callable[[R], str]]] = NO_FORMATS,
    charts: Mapping[str, tuple[str, Callable[[R], Any]]] = NO_FORMATS,
    write: Write | None = None,
    examples: Sequence[str] = (),
    notes: str = "",
) -> click.Command:
    """Make the command of an operation that returns a value.

    `options`: options for the operation's subject, read by `open_service`.
    `exclude`: parameters that `options` covers.
    `take`: makes the parameters from the options; by default as declared.
    `status`: the exit status of a result.
    `formats`: by option, its help and the text that it prints instead.
    `charts`: by option, its help and the function that draws the result.
    `write`: writes the text; None: the report of the result.
    `examples`, `notes`: as in `command`.
    """

    def run(as_json: bool, **values: Any) -> int:
        paths = {
            name: path for name in charts if (path := values.pop(name.lstrip("-"))) is not None
        }
        chosen_formats = [name for name in formats if values.pop(name.lstrip("-"))]
        if len(chosen_formats) + as_json > 1:
            raise click.UsageError(f"Choose {' or '.join([*chosen_formats, '--json'])}, not both.")
        with named_options(operation.parameters):
            parameters = (take or take_parameters)(operation.parameters, values)
            with open_service(values) as service:
                result = operation.handler(service, parameters)
        if chosen_formats:
            echo(formats[chosen_formats[0]][1](result))
        elif write is not None and not as_json:
            echo("\n".join(write(measure_page(), result, parameters, values)))
        else:
            print_result(result, as_json=as_json)
        save_charts(result, {path: charts[name][1] for name, path in paths.items()})
        return status(result)

    options = [
        parameter_options(operation.parameters, exclude=exclude),
        *options,
        json_option,
        *(
            section("Output", click.option(name, is_flag=True, help=formats[name][0]))
            for name in formats
        ),
        *(chart_option(name, words) for name, (words, _) in charts.items()),
    ]
    return command(operation.name, *examples, notes=notes)(stack_options(*options)(run))


def save_charts(result: R, charts: Mapping[str, Callable[[R], Any]]) -> None:
    """Draw a result to files; a chart that cannot be drawn stops no other."""
    problems: list[WitanError] = []
    for path, draw in charts.items():
        from witan.surfaces.report.chart_files import save_chart

        try:
            save_chart(draw(result), path)
        except NothingToCount as error:
            problems.append(NothingToCount(f"{path} is not written: {error}"))
        except WitanError as error:
            problems.append(error)
    for problem in problems[:-1]:
        say(f"witan: {word_problem(problem)}")
    if problems:
        raise problems[-1]


def print_result(result: object, *, as_json: bool, err: bool = False) -> None:
    """Print a result as one line of JSON or as its report."""
    if as_json:
        from witan.service.json_output import to_json

        echo(to_json(result), err=err)
    else:
        page = measure_page(err=err)
        echo("\n".join(render_report(page, result)), err=err)


def render_report(page: Page, result: object) -> Iterator[str]:
    """Render a result as its report."""
    from witan.surfaces.report import report_of
    from witan.surfaces.report.text import report_text

    return report_text(page, report_of(result))


def with_options(text: str, declaration: type[Parameters]) -> str:
    """Replace parameters in backticks by their options in a text."""
    options = {each.name: each.option for each in parameters_of(declaration)}
    return re.sub(r"`(\w+)`", lambda match: options.get(match[1], match[0]), text)


def take_parameters(declaration: type[P], options: dict[str, Any]) -> P:
    """Make the parameters that a dataclass declares from options, and remove those."""
    names = [each.name for each in parameters_of(declaration)]
    return make_parameters(declaration, {name: options.pop(name) for name in names})


def word_problem(problem: "WitanError | LineProblem") -> str:
    """Write a problem with its remedy as options and commands."""
    remedy = getattr(problem, "remedy", None)
    if not isinstance(remedy, Remedy):
        return str(problem)
    worded_problem = copy(problem)
    object.__setattr__(worded_problem, "remedy", write_remedy(remedy))  # `LineProblem` is frozen
    return str(worded_problem)


def write_remedy(remedy: Remedy | str) -> str:
    """Write a remedy as options and commands."""
    return remedy if isinstance(remedy, str) else remedy.write(_write_way)


def _write_way(way: Way) -> str:
    parameters_type: type[Parameters] = BallotFormat
    if way.operation in CATALOGUE:
        parameters_type = find_operation(way.operation).parameters
    elif "max_cost_usd" in way.arguments:  # every operation that starts a session has it
        parameters_type = find_operation("ask").parameters
    options = {each.name: each.option for each in parameters_of(parameters_type)}
    words = [f"witan {way.operation}"] if way.operation else []
    for name, value in way.arguments.items():
        option = options.get(name, f"--{name.replace('_', '-')}")
        if value is True:
            words.append(option)
        elif isinstance(value, Mapping):
            entries = (shlex.quote(f"{key}={entry}") for key, entry in value.items())
            words.extend(f"{option} {entry}" for entry in entries)
        else:
            words.append(f"{option} {shlex.quote(str(value))}")
    return f"{way.words}{' '.join(words)}{way.after}"


@contextmanager
def named_options(declaration: type[Parameters]) -> Iterator[None]:
    """Name the option if a parameter is refused."""
    try:
        yield
    except InvalidParameter as error:
        options = {each.name: each.option for each in parameters_of(declaration)}
        if error.name not in options:
            raise
        expected = with_options(str(error.expected), declaration)
        raise type(error)(options[error.name], error.value, expected) from None


def parameter_options(
    declaration: type[Parameters], *, exclude: Collection[str] = ()
) -> Decorator[Any]:
    """Make an option for each declared parameter outside `exclude`."""
    return stack_options(
        *(
            section(
                each.doc.section or "Options",
                _option(each, with_options(each.doc.text, declaration)),
            )
            for each in parameters_of(declaration)
            if each.name not in exclude
        )
    )


def _option(parameter: Parameter, words: str) -> Decorator[Any]:
    if parameter.doc.positional:
        return _argument(parameter)
    name = parameter.option
    metavar = "NUMBER" if parameter.kind in (int, float) else "NAME"
    if parameter.default_text is not None and parameter.default is None:
        words = f"{words}  [default: {parameter.default_text}]"
    if parameter.kind is bool:
        flag = f"{name}/--no-{name[2:]}" if parameter.nullable or parameter.default else name
        switch = None if "/" in flag else True
        return click.option(
            flag, parameter.name, is_flag=switch, default=parameter.default, help=words
        )
    return click.option(
        name,
        parameter.name,
        required=parameter.required,
        type=str if parameter.many == "mapping" else _type(parameter),
        default=None if parameter.many else parameter.default,
        show_default=parameter.default not in (None, "") and not parameter.many,
        multiple=bool(parameter.many),
        callback=_READERS[parameter.many](parameter) if parameter.many else None,
        metavar=parameter.doc.metavar or (None if parameter.choices else metavar),
        help=words,
    )


def _mapping(parameter: Parameter) -> Callable[..., Any]:
    """Read repeated ``NAME=VALUE``; before a number, names may contain "="."""
    kind = _type(parameter)
    split = str.rpartition if parameter.kind in (int, float) else str.partition

    def read(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> Any:
        result = {}
        for value in values:
            name, equals, text = (each.strip() for each in split(value, "="))
            if not (name and equals and text):
                written = parameter.doc.metavar or "NAME=VALUE"
                raise click.BadParameter(f"{value!r} is not of the form {written}", ctx, param)
            result[name] = kind.convert(text, param, ctx) if kind else scalar_of(text)
        return result or parameter.default

    return read


_READERS: Mapping[str, Callable[[Parameter], Callable[..., Any]]] = {
    "list": lambda parameter: lambda _, __, values: values or parameter.default,
    "mapping": _mapping,
}


def _argument(parameter: Parameter) -> Decorator[Any]:
    words = parameter.doc.positional == "words"
    metavar = parameter.option if parameter.required else f"[{parameter.option}]"
    return click.argument(
        parameter.name,
        nargs=-1 if words else 1,
        required=parameter.required,
        metavar=f"{metavar}..." if words else metavar,
        callback=(lambda _, __, value: " ".join(value) or None) if words else None,
    )


def _type(parameter: Parameter) -> Any:
    """Return the click type of a value, or None for a `Scalar`."""
    if parameter.kind == Scalar:
        return None
    if parameter.parser is not None:
        return ParsedType(parameter.parser)
    if parameter.choices:
        return click.Choice(parameter.choices)
    bounds = parameter.bounds
    if parameter.kind in (int, float) and bounds:
        kind: Any = WholeNumber if parameter.kind is int else Number
        return kind(
            bounds.get("ge", bounds.get("gt")),
            bounds.get("le", bounds.get("lt")),
            min_open="gt" in bounds,
            max_open="lt" in bounds,
        )
    return click.types.convert_type(parameter.kind)


format_options = section(SECTION, parameter_options(BallotFormat), strict_option)
"""Options for reading the ballots of files."""
