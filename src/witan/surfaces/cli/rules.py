"""``witan rules``: what there is to count by."""

import sys

import click

from witan.service.text import Page
from witan.surfaces.cli.options import json_option
from witan.surfaces.terminal import echo

__all__ = ["command"]


EXAMPLES = """\b
Examples:
  witan rules
  witan rules schulze
"""


@click.command("rules", short_help="List the rules, and when to take which.", epilog=EXAMPLES)
@click.argument("name", required=False)
@json_option
def command(name: str | None, as_json: bool) -> None:
    """List the rules and when to take which, or say everything of the rule NAME."""
    from witan.core.rules import RULES
    from witan.surfaces.text.rules import auto_text, rule_text, rules_text

    page = Page.of(sys.stdout)
    if as_json:
        from witan.service.json_output import to_json
        from witan.service.operations import catalogues

        echo(to_json(catalogues.rules(None if name == "auto" else name)))
    elif name is None:
        echo("\n".join(rules_text(page, list(RULES.values()))))
    elif name == "auto":
        echo("\n".join(auto_text(page)))
    else:
        echo("\n".join(rule_text(page, RULES[name])))
