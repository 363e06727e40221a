"""``witan rules``."""

from witan.service.operations.rules import rules
from witan.surfaces.cli.generated import value_command
from witan.surfaces.text.rules import rules_text

EXAMPLES = """\b
Examples:
  witan rules
  witan rules schulze
"""

command = value_command(rules, text=rules_text, examples=EXAMPLES)
