"""Write to standard output and error, escaping terminal control sequences."""

import os
import re
import sys
from typing import TYPE_CHECKING, TextIO

import click

from witan.service.text import RESET, STYLES, clean, readable

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

__all__ = ["ask", "confirm", "console", "echo", "page_through", "style_line"]

_STYLE_CODES = re.compile(
    "(" + "|".join(map(re.escape, [*filter(None, STYLES.values()), RESET])) + ")"
)


def echo(text: str = "", *, err: bool = False, nl: bool = True) -> None:
    """Write a text to standard output, or to standard error.

    Control characters, bidirectional overrides and the like are escaped, whoever wrote them; only
    our own styles pass, and only to a terminal. A name that stands in the text should have gone
    through `clean` before, so that it stays on its line.
    """
    click.echo(_printable(text, sys.stderr if err else sys.stdout), err=err, nl=nl)


def page_through(text: str, *, has_colour: bool) -> None:
    """Show a text on a terminal through the reader's pager."""
    # Without it less shows escape codes in place of styles.
    os.environ.setdefault("LESS", "-R")
    click.echo_via_pager(_printable(text, sys.stdout), color=has_colour)


def ask(question: str) -> str:
    """Ask for a line on standard error."""
    answer: str = click.prompt(clean(question), err=True)
    return answer


def confirm(question: str, *, default: bool = False) -> bool:
    """Ask for yes or no on standard error."""
    return click.confirm(clean(question), default=default, err=True)


def console(size: tuple[int, int] | None = None) -> "Console":
    """Return a console on standard error, for moving output.

    Parameters
    ----------
    size
        Columns and lines of a picture that is shown elsewhere; None: those of the terminal.
    """
    from rich.console import Console

    width, height = size or (None, None)
    return Console(
        stderr=True, highlight=False, markup=False, emoji=False, width=width, height=height
    )


def style_line(text: str, style: str = "", *, one_line: bool = False) -> "Text":
    """Return a console line, cut to its width under `one_line`."""
    from rich.text import Text

    if one_line:
        return Text(clean(text), style=style, no_wrap=True, overflow="ellipsis")
    return Text(clean(text), style=style)


def _printable(text: str, stream: TextIO) -> str:
    if not stream.isatty():
        return readable(text)
    parts = _STYLE_CODES.split(text)
    return "".join(part if at % 2 else readable(part) for at, part in enumerate(parts))
