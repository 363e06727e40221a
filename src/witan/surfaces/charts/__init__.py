"""Charts of what was concluded, as Vega-Lite specs: plain dictionaries, the same for the same."""

from witan.surfaces.charts.audits import audit_chart
from witan.surfaces.charts.costs import cost_chart
from witan.surfaces.charts.leaderboards import leaderboard_chart, strength_chart
from witan.surfaces.charts.matrices import comparison_chart, matchup_chart
from witan.surfaces.charts.standings import standings_chart

__all__ = [
    "audit_chart",
    "comparison_chart",
    "cost_chart",
    "leaderboard_chart",
    "matchup_chart",
    "standings_chart",
    "strength_chart",
]
