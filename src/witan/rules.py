"""Voting rules: the registry, and what a rule of your own needs."""

from witan.core.rules import RULES, Axiom, Rule, Scores, rule

__all__ = ["RULES", "Axiom", "Rule", "Scores", "rule"]
