"""``witan rubrics``."""

import click

from witan.core.rubric import find_rubric
from witan.files.rubric_toml import rubric_to_toml
from witan.service.operations.rubrics import RubricList, rubrics
from witan.surfaces.cli.generated import value_command
from witan.surfaces.text.rubrics import rubrics_text

EXAMPLES = """\b
Examples:
  witan rubrics
  witan rubrics coding
  witan rubrics general --toml > mine.toml
"""


def _toml(found: RubricList) -> str:
    if len(found.rubrics) != 1:
        raise click.UsageError("--toml prints one rubric: name it.")
    return rubric_to_toml(find_rubric(found.rubrics[0].name)).removesuffix("\n")


command = value_command(
    rubrics,
    text=rubrics_text,
    formats={"--toml": ("Print NAME as TOML, to start your own from.", _toml)},
    examples=EXAMPLES,
)
