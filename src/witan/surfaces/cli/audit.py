"""``witan audit``."""

from witan.service.operations.audit import audit
from witan.surfaces.charts import audit_chart
from witan.surfaces.cli.generated import value_command
from witan.surfaces.cli.source_options import open_reports, source_options
from witan.surfaces.text.audit import audit_text

EXAMPLES = """\b
Examples:
  witan audit --since 90d
  witan audit --reviewer openai:gpt-5
  witan audit --criterion clarity
  witan audit votes.csv --column reviewer=who
  witan audit --lake history.lake --json
"""

command = value_command(
    audit,
    open_reports,
    text=audit_text,
    options=[source_options],
    charts={
        "--plot": (
            "Draw the reviewers to an .svg, .png, .pdf, .html or .json file.",
            audit_chart,
        )
    },
    examples=EXAMPLES,
    notes="With FILE..., count the sessions of these files in place of the history; an ID is a "
    "session of the history. Exit status: 0 answered, 2 misuse, 3 no session to count, 7 output "
    "not written.",
)
