"""Ballots of one reviewer that grade different candidates of a session, made one."""

from collections.abc import Iterable
from dataclasses import replace

from witan.core.ballot import Ballot

__all__ = ["merge_graded"]


def merge_graded(ballots: Iterable[Ballot]) -> list[Ballot]:
    """Merge what a reviewer says of one candidate after another, as files per candidate do.

    Only ballots of grades alone are merged, and only where they grade different candidates.
    """
    merged: list[Ballot] = []
    places: dict[tuple[str, str, str, float], int] = {}
    for ballot in ballots:
        if ballot.groups or ballot.abstained or ballot.paired or ballot.positions:
            merged.append(ballot)
            continue
        key = (ballot.session, ballot.reviewer, ballot.kind, ballot.weight)
        place = places.setdefault(key, len(merged))
        if place == len(merged):
            merged.append(ballot)
        elif merged[place].grades.keys().isdisjoint(ballot.grades):
            grades = {**merged[place].grades, **ballot.grades}
            merged[place] = replace(merged[place], grades=grades)
        else:
            merged.append(ballot)
    return merged
