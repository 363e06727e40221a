"""Outcomes in plain sentences."""

from collections.abc import Sequence

from witan.core.outcome import Standing

__all__ = ["interpretation", "listed"]


def listed(names: Sequence[str]) -> str:
    """``a``; ``a and b``; ``a, b and c``."""
    if len(names) < 2:
        return "".join(names)
    return f"{', '.join(names[:-1])} and {names[-1]}"


def interpretation(
    standings: Sequence[Standing], *, can_tell: bool | None, disputed_by: Sequence[str] = ()
) -> str:
    """What the standings say, in one sentence that claims no more than the ballots do.

    `can_tell`: whether there are ballots enough to tell anyone apart; None: the rule does not ask.
    `disputed_by`: whom the fit places above the first line beyond noise, against the rule.
    """
    placed = [line for line in standings if line.votes > 0]
    if not placed:
        return "No ballot counts, so nobody is ranked."
    # Not rank 1: above those with votes may stand one without, if all of these failed the gate.
    leaders = [line.candidate for line in placed if line.rank == placed[0].rank]
    if len(placed) == 1:
        return f"{leaders[0]} is the only candidate with votes."
    if not can_tell:
        reason = (
            "this rule says nothing of chance"
            if can_tell is None
            else "there are too few ballots to tell anyone apart"
        )
        start = f"{listed(leaders)} {'lead' if len(leaders) > 1 else 'leads'}"
        if len(leaders) > 1:
            start = f"{listed(leaders)} are in a dead heat"
        return f"{start}; {reason}."
    if disputed_by:
        reverse = f"the fit of the same ballots places {listed(disputed_by)} above, beyond noise"
        return (
            f"{listed(leaders)} {'lead' if len(leaders) > 1 else 'leads'} by this rule; {reverse}."
        )
    return "; ".join(_tier_clauses(placed)) + "."


def _tier_clauses(placed: Sequence[Standing]) -> list[str]:
    groups: dict[int, list[str]] = {}
    for line in placed:
        groups.setdefault(line.tier, []).append(line.candidate)
    clauses = []
    for number, names in groups.items():
        if number == min(groups):
            clauses.append(_first_clause(names, placed, alone=len(groups) == 1))
        elif len(names) > 1:
            clauses.append(f"{listed(names)} are too close to call")
    return clauses


def _first_clause(names: Sequence[str], placed: Sequence[Standing], *, alone: bool) -> str:
    if len(names) == 1:
        return f"{names[0]} leads clearly"
    shared = [line.candidate for line in placed if line.rank == 1]
    lead = f"{listed(shared)} are in a dead heat" if len(shared) > 1 else f"{shared[0]} is ahead"
    if len(shared) == len(names):
        return f"{lead} for first place"
    if alone:
        return f"{lead}, but all candidates are too close to call"
    others = [name for name in names if name not in shared]
    return f"{lead}, but too close to call against {listed(others)}"
