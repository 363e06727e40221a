"""Voting rules: the registry, and the types for writing your own."""

from witan.core.rules import RULES, Axiom, Rule, Scores, rule

__all__ = ["RULES", "Axiom", "Rule", "Scores", "rule"]
