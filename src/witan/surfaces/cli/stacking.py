"""Options that go together: written once for all commands, and listed under one heading."""

from collections.abc import Callable
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import click

__all__ = ["Decorator", "SectionedCommand", "section", "stacked"]

F = TypeVar("F", bound=Callable[..., Any])

Decorator = Callable[[F], F]

_HEADINGS: WeakKeyDictionary[click.Parameter, str] = WeakKeyDictionary()
"""The heading of each option that has one."""


def stacked(*decorators: Decorator[Any]) -> Decorator[Any]:
    """Apply decorators so that their options stand in the help in this order."""

    def apply(command: F) -> F:
        for decorate in reversed(decorators):
            command = decorate(command)
        return command

    return apply


def section(heading: str, *decorators: Decorator[Any]) -> Decorator[Any]:
    """Stack options under a heading, which replaces headings that they already have."""

    def apply(command: F) -> F:
        before = len(_parameters_of(command))
        command = stacked(*decorators)(command)
        for parameter in _parameters_of(command)[before:]:
            _HEADINGS[parameter] = heading
        return command

    return apply


def _parameters_of(command: Callable[..., Any]) -> list[click.Parameter]:
    """The parameters that click's decorators have attached to a function so far."""
    found: list[click.Parameter] = getattr(command, "__click_params__", [])
    return found


class SectionedCommand(click.Command):
    """A command whose help lists options under headings; those without one come last."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write each section in the order in which its first option was declared."""
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
