"""Define the shared options, exit statuses and help sections."""

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from enum import IntEnum
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakKeyDictionary

import click

from witan.errors import (
    BallotFileError,
    HistoryError,
    InvalidParameter,
    InvalidRubric,
    MissingExtra,
    NothingToCount,
    OverBudget,
    WitanError,
)
from witan.service.parameters import Parser

if TYPE_CHECKING:
    from witan.service.history_access import RecordingPlace

    ParamType = click.ParamType[Any]
else:
    ParamType = click.ParamType  # generic from click 8.4 on


class Status(IntEnum):
    """One meaning per number, the same for every command."""

    ANSWERED = 0
    FAILED = 1
    MISUSED = 2
    NO_QUORUM = 3
    OVER_BUDGET = 4
    TIED = 5
    NOT_KEPT = 6
    UNWRITTEN = 7
    INTERRUPTED = 130
    PIPE_CLOSED = 141


def status_of(error: WitanError) -> Status:
    """Return the exit status of an error of ours."""
    if isinstance(error, OverBudget):
        return Status.OVER_BUDGET
    return Status.NO_QUORUM if isinstance(error, NothingToCount) else Status.MISUSED


F = TypeVar("F", bound=Callable[..., Any])

Decorator = Callable[[F], F]

_HEADINGS: WeakKeyDictionary[click.Parameter, str] = WeakKeyDictionary()
"""The heading of each option that has one."""


PROBLEMS_SHOWN = 20
"""Most problems of one command to print; others are only counted."""

FEW_OPTIONS = 12
"""Most options of a command without headings."""


def stack_options(*decorators: Decorator[Any]) -> Decorator[Any]:
    """Apply decorators, listing their options in this order in help."""

    def apply(command: F) -> F:
        for decorate in reversed(decorators):
            command = decorate(command)
        return command

    return apply


def section(heading: str, *decorators: Decorator[Any]) -> Decorator[Any]:
    """Stack options under a heading, which replaces headings that they already have."""

    def apply(command: F) -> F:
        before = len(_parameters_of(command))
        command = stack_options(*decorators)(command)
        for parameter in _parameters_of(command)[before:]:
            _HEADINGS[parameter] = heading
        return command

    return apply


def _parameters_of(command: Callable[..., Any]) -> list[click.Parameter]:
    result: list[click.Parameter] = getattr(command, "__click_params__", [])
    return result


class SectionedCommand(click.Command):
    """A command with options under headings in its long help."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write each section in order of its first option."""
        if sum(isinstance(each, click.Option) for each in self.get_params(ctx)) <= FEW_OPTIONS:
            super().format_options(ctx, formatter)
            return
        sections: dict[str, list[tuple[str, str]]] = {}
        others: list[tuple[str, str]] = []
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None and isinstance(parameter, click.Option):
                heading = _HEADINGS.get(parameter)
                (others if heading is None else sections.setdefault(heading, [])).append(record)
        for heading, records in (*sections.items(), ("Other", others)):
            if records:
                with formatter.section(heading):
                    formatter.write_dl(records)


class WholeNumber(click.IntRange):
    """A whole number within bounds."""

    name = "whole number"


class Number(click.FloatRange):
    """A finite number within bounds."""

    name = "number"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Read the number, or refuse it; bounds do not exclude nan."""
        try:
            number: float = super().convert(value, param, ctx)
        except click.BadParameter:
            if self.max == 1 and (share := _percent(value)) is not None:
                self.fail(f"{value} is not from 0 to 1; write it as {share:g}.", param, ctx)
            raise
        if not isfinite(number):
            self.fail(f"{value} is not a finite number.", param, ctx)
        return number


def _percent(value: object) -> float | None:
    """Read a value that is meant in percent, such as ``95`` or ``95%``."""
    with suppress(ValueError):
        percent = float(str(value).removesuffix("%"))
        if 0 < percent < 100 and (percent >= 50 or str(value).endswith("%")):
            return percent / 100
    return None


class ParsedType(ParamType):
    """A value that the parameter's own parser reads from text."""

    name = "text"

    def __init__(self, parser: Parser) -> None:
        self.parser = parser

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Read the text, or refuse it in the parser's words."""
        if not isinstance(value, str):
            return value
        try:
            return self.parser.read_argument(value)
        except InvalidParameter as error:
            expected = error.expected
        except (BallotFileError, InvalidRubric):
            raise
        except ValueError:
            expected = self.parser.expected
        return self.fail(f"{value.strip()!r} cannot be read; expected {expected}.", param, ctx)


json_option = section(
    "Output",
    click.option(
        "--json", "as_json", is_flag=True, help="Print one JSON object, numbers unrounded."
    ),
)


record_options = stack_options(
    click.option("--json", "as_json", is_flag=True, help="Print the record as one JSON object."),
    click.option(
        "--events", is_flag=True, help="Print every event as a line of JSON, as it happens."
    ),
)

fast_demo_option = click.option(
    "--fast-demo", is_flag=True, help="Skip the pauses of the demonstration."
)


def chart_option(name: str, words: str) -> Decorator[Any]:
    """Return an option for the file of a chart."""

    def check(ctx: click.Context, _: click.Parameter, path: str | None) -> str | None:
        if path is not None:
            from witan.surfaces.report.chart_files import check_chart

            check_chart(path, name)
            paths: dict[str, str] = ctx.meta.setdefault("witan.charts", {})
            other = paths.setdefault(os.path.realpath(path), name)
            if other != name:
                raise click.UsageError(f"{other} and {name} need different files, not both {path}")
        return path

    kind = click.Path(dir_okay=False, writable=True)
    option = click.option(name, type=kind, callback=check, metavar="OUT.svg", help=words)
    return section("Output", option)


def limit_option(default: int, words: str) -> Decorator[Any]:
    """Return the number of sessions to show in full."""
    return section(
        "Output",
        click.option(
            "--limit",
            type=WholeNumber(min=0),
            metavar="NUMBER",
            default=default,
            show_default=True,
            help=words,
        ),
    )


strict_option = click.option(
    "--strict",
    is_flag=True,
    help="Reject all ballots if any line cannot be read; exit 1.",
)


config_option = section(
    "History",
    click.option(
        "--config",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        metavar="FILE.toml",
        help="Read this configuration instead of the project's witan.toml.",
    ),
)

history_option = section(
    "History",
    click.option(
        "--history",
        metavar="URL",
        help="Use the history in this file, or at postgresql://user@host/database.",
    ),
)

recording_options = section(
    "History",
    history_option,
    click.option("--no-history", is_flag=True, help="Do not record the session in the history."),
)
"""Options of the history that records a session."""


def open_record(options: Mapping[str, Any], say: Callable[[str], None]) -> "RecordingPlace | None":
    """Open the history to record in, or None."""
    from witan.service.history_access import load_history_config, open_recording

    if options["no_history"] and options["history"] is not None:
        raise click.UsageError("choose --history or --no-history, not both")
    if options["no_history"]:
        return None
    file: Path | None = options.get("config")
    try:
        config = load_history_config(file, options["history"])
        return open_recording(config, file, say)
    except HistoryError as error:
        remedy = f"{error.remedy}, or use --no-history"
        raise HistoryError(error.location, error.problem, remedy) from None
    except MissingExtra as error:
        raise HistoryError("the history", str(error), "or use --no-history") from None
