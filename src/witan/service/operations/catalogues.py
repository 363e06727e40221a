"""The rules to count by and the rubrics to grade by, as objects for programs."""

from typing import Any

from witan.core.rubric import Rubric
from witan.core.rubrics import RUBRICS, find_rubric
from witan.core.rules import RULES
from witan.core.rules.registry import Rule

__all__ = ["rubrics", "rules"]


def rules(name: str | None = None) -> dict[str, Any]:
    """The object of ``witan rules --json``, of all rules or of one.

    Raises
    ------
    UnknownName
        If there is no such rule.
    """
    return {"rules": [_rule(r) for r in (RULES.values() if name is None else [RULES[name]])]}


def rubrics(name: str | None = None) -> dict[str, Any]:
    """The object of ``witan rubrics --json``, of all rubrics or of one.

    Raises
    ------
    UnknownName
        If there is no such rubric.
    """
    chosen = RUBRICS.values() if name is None else [find_rubric(name)]
    return {"rubrics": [_rubric(rubric) for rubric in chosen]}


def _rule(rule: Rule) -> dict[str, Any]:
    return {
        "name": rule.name,
        "needs": rule.needs,
        "summary": rule.summary,
        "use_when": rule.use_when,
        "evidence": rule.evidence,
        "source": rule.source,
        "parameters": rule.parameters,
        "satisfies": sorted(axiom.value for axiom in rule.satisfies),
        "tie_break": rule.tie_break,
        "lower_is_better": rule.lower_is_better,
        "version": rule.version,
    }


def _rubric(rubric: Rubric) -> dict[str, Any]:
    return {"name": rubric.name, "criteria": rubric.criteria, "ceilings": rubric.ceilings}
