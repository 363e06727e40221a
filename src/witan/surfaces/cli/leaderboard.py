"""``witan leaderboard``."""

from witan.service.operations.leaderboard import leaderboard
from witan.surfaces.charts import cost_chart, leaderboard_chart, strength_chart
from witan.surfaces.cli.generated import value_command
from witan.surfaces.cli.source_options import open_reports, source_options

EXAMPLES = """\b
Examples:
  witan leaderboard --since 30d --category coding
  witan leaderboard votes.csv --min-sessions 3
  witan leaderboard --order-by rating --plot leaderboard.svg
  witan leaderboard --lake history.lake --engine duckdb --json
"""

command = value_command(
    leaderboard,
    open_reports,
    options=[source_options],
    charts={
        "--plot": (
            "Draw the leaderboard to an .svg, .png, .pdf, .html or .json file.",
            leaderboard_chart,
        ),
        "--matchups": ("Draw how surely one model is stronger than another.", strength_chart),
        "--costs": ("Draw the score beside what an answer costs.", cost_chart),
    },
    examples=EXAMPLES,
    notes="With FILE..., count the sessions of these files in place of the history; an ID is a "
    "session of the history. Exit status: 0 answered, 2 misuse, 3 no session to count, 7 output "
    "not written.",
)
