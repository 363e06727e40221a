"""The rules as text: when to take which, and all of one."""

from collections.abc import Iterator, Sequence
from typing import Any

from witan.service.operations.rules import RuleEntry, RuleList
from witan.service.text import Page
from witan.surfaces.report.document import Column
from witan.surfaces.report.text import table
from witan.surfaces.text.rule_guide import SITUATIONS


def rules_text(page: Page, found: RuleList) -> Iterator[str]:
    """List rules, and when to take which; of a single one everything; of none how auto chooses."""
    if not found.rules:
        yield page.sentence("auto", "bold")
        yield from map(page.sentence, found.auto)
    elif len(found.rules) == 1:
        yield from _rule(page, found.rules[0])
    else:
        yield from _list(page, found.rules)


def _list(page: Page, rules: Sequence[RuleEntry]) -> Iterator[str]:
    columns = [Column("rule", "left"), Column("needs", "left"), Column("what it is", "left")]
    rows = [["auto", "ballots", "calibrated where grades can carry it, else borda (the default)."]]
    rows += [[rule.name, rule.needs, rule.summary] for rule in rules]
    if page.width is None:
        yield from table(page, columns, rows)
    else:
        yield from _folded(page, columns, rows)
    yield ""
    yield page.sentence("Which one when", "bold")
    for situation in SITUATIONS:
        yield ""
        yield page.sentence(f"If {situation.when}: {situation.take}.", "bold", hang=2)
        yield page.sentence(f"  for: {situation.speaks_for}", hang=7)
        yield page.sentence(f"  against: {situation.speaks_against}", hang=11)
    yield ""
    yield page.sentence("One rule in full: witan rules NAME.", "dim")


def _folded(page: Page, columns: list[Any], rows: list[list[str]]) -> Iterator[str]:
    """Yield the table with its last column folded: a summary cut in the middle says nothing."""
    first, second = (max(len(row[index]) for row in rows) + 2 for index in (0, 1))
    heads = [column.title for column in columns]
    yield page.paint(f"{heads[0]:{first}}{heads[1]:{second}}{heads[2]}", "dim")
    for name, needs, summary in rows:
        yield page.sentence(f"{name:{first}}{needs:{second}}{summary}", hang=first + second)


def _rule(page: Page, rule: RuleEntry) -> Iterator[str]:
    lower = "low" if rule.lower_is_better else "high"
    yield page.sentence(rule.name, "bold")
    yield page.sentence(rule.summary)
    yield ""
    axioms = ", ".join(rule.satisfies) or "none claimed"
    parameters = ", ".join(f"{key}={value}" for key, value in rule.parameters.items()) or "none"
    for label, text in (
        ("needs", rule.needs),
        ("take it when", rule.use_when),
        ("evidence", rule.evidence),
        ("source", rule.source),
        ("parameters", parameters),
        ("satisfies", axioms),
        ("equal scores", _tie_break(rule)),
        ("scores", f"{lower} is best"),
        ("version", str(rule.version)),
    ):
        yield page.sentence(f"{label:13} {text}", hang=14)


def _tie_break(rule: RuleEntry) -> str:
    if rule.tie_break == "none":
        return "share a rank"
    by = "first places" if rule.tie_break == "wins" else "Borda"
    return f"are separated by {by}; what is still equal shares a rank"
