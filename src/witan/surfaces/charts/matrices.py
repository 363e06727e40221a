"""Matrices of printed cells: head to head, and rules side by side."""

from collections.abc import Mapping

from witan.core.comparison import Comparison
from witan.core.outcome import Outcome
from witan.errors import NothingToCount, UnknownName
from witan.service.text import UNKNOWN, clean, counted, listed, number
from witan.surfaces.charts.grammar import (
    FAINT,
    Spec,
    cell_side,
    circumstances,
    frame,
    labels,
    matrix,
    name_pixels,
    paint,
    signed,
)

__all__ = ["comparison_chart", "matchup_chart"]


def matchup_chart(outcome: Outcome) -> Spec:
    """Draw who beats whom: ballots for the row over the column, less the reverse."""
    names = [clean(line.candidate) for line in outcome.standings]
    most = max((abs(margin) for row in outcome.margins for margin in row), default=0.0) or 1.0
    cells: list[Spec] = [
        {
            "row": i,
            "column": j,
            "candidate": name,
            "rival": rival,
            "margin": margin,
            "text": "" if i == j else signed(margin),
            "note": "",
            "fill": FAINT if i == j else paint(margin / most),
        }
        for i, (name, row) in enumerate(zip(names, outcome.margins, strict=True))
        for j, (rival, margin) in enumerate(zip(names, row, strict=True))
    ]
    side = cell_side(cell["text"] for cell in cells)
    finding = _head_to_head(outcome)
    return frame(
        title=finding,
        notes=[
            *circumstances(outcome),
            "number: ballots that place the row above the column, less the reverse",
        ],
        description=f"Margins between {len(names)} candidates. {finding}",
        size=(side * len(names), side * len(names)),
        beside=1.7 * name_pixels(names),
        datasets={"cells": cells, "rows": labels(names), "columns": labels(names)},
        layers=matrix({"fontSize": 11}, names, ("candidate", "rival", "margin")),
    )


def _head_to_head(outcome: Outcome) -> str:
    if len(outcome.standings) < 2:
        return "There are no two candidates to compare."
    if outcome.condorcet_winner is not None:
        return f"{outcome.condorcet_winner} beats every rival head to head."
    if outcome.cycles:
        rings = "; ".join(listed(ring) for ring in outcome.cycles)
        return f"Nobody beats every rival: the majorities run in a circle among {rings}."
    return "Nobody beats every rival head to head."


def comparison_chart(comparison: Comparison, session: str | None = None) -> Spec:
    """Draw rules side by side: ranks within one session, or their agreement over several."""
    if not comparison.sessions or not comparison.rules:
        raise NothingToCount("there is nothing to compare: no rule counted any session")
    if session is None and len(comparison.sessions) > 1:
        return _agreement(comparison)
    chosen = comparison.sessions[0] if session is None else session
    if chosen not in comparison.sessions:
        raise UnknownName("session", chosen, comparison.sessions)
    return _ranks(comparison, chosen)


def _ranks(comparison: Comparison, session: str) -> Spec:
    """Rank of each candidate under each rule of one session."""
    outcomes = comparison.outcomes[session]
    rules = [rule for rule in comparison.rules if rule in outcomes]
    ranks = {rule: {s.candidate: s.rank for s in outcomes[rule].standings} for rule in rules}
    order = list(dict.fromkeys(name for rule in rules for name in ranks[rule]))
    order.sort(key=lambda name: sum(ranks[rule].get(name, len(order)) for rule in rules))
    cells = [
        {
            "row": row,
            "column": column,
            "candidate": clean(name),
            "rule": rule,
            **_rank_cell(ranks[rule], name),
        }
        for row, name in enumerate(order)
        for column, rule in enumerate(rules)
    ]
    finding = _who_leads({rule: outcomes[rule].leaders for rule in rules})
    names = [clean(name) for name in order]
    return frame(
        title=finding,
        notes=[
            *([f"session {session}"] if session else []),
            "number: rank under the rule, = a shared rank",
            *_left_out(comparison),
        ],
        description=f"Ranks of {len(names)} candidates under {len(rules)} rules. {finding}",
        size=(40 * len(rules), 26 * len(names)),
        beside=name_pixels(names) + 60,
        datasets={"cells": cells, "rows": labels(names), "columns": labels(rules)},
        layers=matrix({"fontSize": 12}, rules, ("candidate", "rule", "rank")),
    )


def _rank_cell(ranks: Mapping[str, int], name: str) -> Spec:
    """Print a rank, the darker the better; an equals sign marks a shared one."""
    rank = ranks.get(name)
    if rank is None:
        return {"rank": None, "text": UNKNOWN, "note": "", "fill": paint(0.0)}
    shared = "=" if list(ranks.values()).count(rank) > 1 else ""
    share = 1 - (rank - 1) / max(len(ranks) - 1, 1)
    return {"rank": rank, "text": f"{rank}{shared}", "note": "", "fill": paint(share)}


def _who_leads(leaders: Mapping[str, tuple[str, ...]]) -> str:
    """Say in one sentence who leads under which rules."""
    camps: dict[tuple[str, ...], list[str]] = {}
    for rule, first in leaders.items():
        camps.setdefault(tuple(sorted(first)), []).append(rule)
    sides = sorted(camps.items(), key=lambda camp: -len(camp[1]))
    parts = [
        f"{listed(first) or 'nobody'} {'lead' if len(first) > 1 else 'leads'} "
        f"under {listed(rules) if len(rules) < 4 else counted(len(rules), 'rule')}"
        for first, rules in sides
    ]
    if len(parts) > 1:
        return f"The rules disagree: {'; '.join(parts)}."
    return f"{parts[0]}." if parts else "No rule counts this session."


def _left_out(comparison: Comparison) -> list[str]:
    return [f"not counted: {', '.join(comparison.skipped)}"] * bool(comparison.skipped)


def _agreement(comparison: Comparison) -> Spec:
    """Mean τ between rules over sessions, and in how many their leaders differ."""
    rules, total = comparison.rules, len(comparison.sessions)
    if len(rules) < 2:
        raise NothingToCount(f"there is nothing to compare {listed(rules)} with: no other rule")
    known = [tau for i, row in enumerate(comparison.tau) for tau in row[:i] if tau is not None]
    least = min([*known, 0.9])
    cells = []
    for i, rule in enumerate(rules):
        for j, other in enumerate(rules[:i]):
            tau, differ = comparison.tau[i][j], comparison.leader_differs[i][j]
            cells.append(
                {
                    "row": i - 1,
                    "column": j,
                    "rule": rule,
                    "other": other,
                    "tau": tau,
                    "sessions_with_other_leaders": differ,
                    "text": number(tau).replace("-", "−"),
                    "note": str(differ),
                    "fill": paint(0.0 if tau is None else (tau - least) / (1 - least)),
                }
            )
    return frame(
        title=f"How far {len(rules)} rules agree over {counted(total, 'session')}",
        notes=[
            "large: mean Kendall’s τ between two rules’ rankings",
            f"small: sessions of {total:,} in which their leaders differ",
            *_left_out(comparison),
        ],
        description=f"Agreement of {len(rules)} rules over {total} sessions.",
        size=(46 * (len(rules) - 1), 40 * (len(rules) - 1)),
        beside=name_pixels(rules) + 60,
        datasets={"cells": cells, "rows": labels(rules[1:]), "columns": labels(rules[:-1])},
        layers=matrix({"fontSize": 12, "dy": -5}, rules, ("rule", "other", "tau")),
    )
