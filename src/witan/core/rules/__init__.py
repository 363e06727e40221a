"""The rules and their registry; importing registers all built-in rules."""

# Registration order is display order, so the imports are not sorted.
# isort: off
from witan.core.rules.registry import RULES, Axiom, Registry, Rule, Scores, rule
from witan.core.rules.positional import borda, mean_rank, weighted_borda
from witan.core.rules.graded import hybrid, normalized_scores, range_
from witan.core.rules.graded import calibrated
from witan.core.rules.pairwise import schulze, tournament
from witan.core.rules.pairwise import ranked_pairs
from witan.core.rules.kemeny import kemeny
from witan.core.rules.elimination import irv
from witan.core.rules.luce import bradley_terry, plackett_luce
from witan.core.rules.elo import elo
# isort: on

__all__ = [
    "RULES",
    "Axiom",
    "Registry",
    "Rule",
    "Scores",
    "borda",
    "bradley_terry",
    "calibrated",
    "elo",
    "hybrid",
    "irv",
    "kemeny",
    "mean_rank",
    "normalized_scores",
    "plackett_luce",
    "range_",
    "ranked_pairs",
    "rule",
    "schulze",
    "tournament",
    "weighted_borda",
]
