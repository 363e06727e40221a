"""Count one session and draw its standings: dots with intervals, tiers boxed.

Run it from anywhere: ``python examples/plot_standings.py [chart.svg | chart.png]``.
"""

import sys
from pathlib import Path

from witan import read_ballots, tally
from witan.surfaces.report.chart_files import save_chart
from witan.surfaces.report.standings import standings_chart

HERE = Path(__file__).resolve().parent

SESSION = "cold-start"  # its leader is ahead, but too close to call


def main(target: Path) -> None:
    ballots = read_ballots(HERE / "ballots.jsonl")
    outcome = tally(ballot for ballot in ballots if ballot.session == SESSION)
    print(outcome.interpretation)
    print(save_chart(standings_chart(outcome), target))


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "standings.svg"))
