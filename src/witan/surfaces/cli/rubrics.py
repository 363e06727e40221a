"""``witan rubrics``: what answers are graded by."""

import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import click

from witan.service.text import Page
from witan.surfaces.cli.options import json_option
from witan.surfaces.terminal import echo

if TYPE_CHECKING:
    from witan.core.rubric import Rubric

__all__ = ["command"]


EXAMPLES = """\b
Examples:
  witan rubrics
  witan rubrics coding
  witan rubrics general --toml > mine.toml
"""


@click.command("rubrics", short_help="List the rubrics, or show one.", epilog=EXAMPLES)
@click.argument("name", required=False)
@json_option
@click.option("--toml", "as_toml", is_flag=True, help="Print NAME as TOML, to start your own from.")
def command(name: str | None, as_json: bool, as_toml: bool) -> None:
    """List the rubrics, or show the criteria, weights and anchors of NAME."""
    from witan.core.rubrics import RUBRICS, find_rubric

    if as_toml and name is None:
        raise click.UsageError("--toml prints one rubric: name it.")
    if as_toml and as_json:
        raise click.UsageError("Choose --toml or --json, not both.")
    chosen = list(RUBRICS.values()) if name is None else [find_rubric(name)]
    page = Page.of(sys.stdout)
    if as_toml:
        from witan.files.rubric_toml import rubric_to_toml

        echo(rubric_to_toml(chosen[0]), nl=False)
    elif as_json:
        from witan.service.json_output import to_json
        from witan.service.operations import catalogues

        echo(to_json(catalogues.rubrics(name)))
    elif name is None:
        echo("\n".join(_list(page, chosen)))
    else:
        echo("\n".join(_one(page, chosen[0])))


def _list(page: Page, rubrics: Sequence["Rubric"]) -> Iterator[str]:
    width = max(len(rubric.name) for rubric in rubrics) + 2
    for rubric in rubrics:
        weights = ", ".join(f"{c.name} {c.weight:.2f}" for c in rubric.criteria)
        yield page.sentence(f"{rubric.name:{width}}{weights}", hang=width)


def _one(page: Page, rubric: "Rubric") -> Iterator[str]:
    yield page.sentence(rubric.name, "bold")
    for criterion in rubric.criteria:
        yield ""
        yield page.sentence(f"{criterion.name}, weight {criterion.weight:.2f}", "bold")
        yield page.sentence(criterion.description)
        for anchor in criterion.anchors:
            yield page.sentence(f"  {f'{anchor.low}–{anchor.high}':5} {anchor.text}", hang=8)
    if rubric.ceilings:
        yield ""
    for ceiling in rubric.ceilings:
        yield page.sentence(
            f"With {ceiling.criterion} under {ceiling.below:g}, "
            f"the overall grade is at most {ceiling.at_most:g}."
        )
