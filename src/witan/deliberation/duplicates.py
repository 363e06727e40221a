"""Identical answers: judged once and tied by construction."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from witan.core.ballot import Ballot


def group_duplicates(texts: Mapping[str, str]) -> tuple[tuple[str, ...], ...]:
    """Group candidates with one answer, ignoring trailing and outer white space.

    Indentation counts: it changes what a program does.
    """
    groups: dict[str, list[str]] = {}
    for candidate, text in texts.items():
        lines = "\n".join(line.rstrip() for line in text.splitlines()).strip("\n")
        groups.setdefault(lines, []).append(candidate)
    return tuple(tuple(group) for group in groups.values() if len(group) > 1)


def are_identical(texts: Mapping[str, str]) -> bool:
    """True if all answers are equal and need no review."""
    same = group_duplicates(texts)
    return bool(same) and len(same[0]) == len(texts)


@dataclass(frozen=True, slots=True)
class DuplicateGroups:
    """Groups of identical answers; the first of each stands on sheets."""

    groups: tuple[tuple[str, ...], ...] = ()

    def representatives(self, candidates: Collection[str]) -> list[str]:
        """Candidates on sheets."""
        others = {candidate for group in self.groups for candidate in group[1:]}
        return [candidate for candidate in candidates if candidate not in others]

    def with_duplicates(self, candidates: Collection[str]) -> tuple[str, ...]:
        """Candidates and all their duplicates."""
        same = {c for group in self.groups if not {*group}.isdisjoint(candidates) for c in group}
        return tuple(dict.fromkeys((*candidates, *sorted(same))))

    def expand(self, ballot: Ballot, own: Collection[str]) -> Ballot:
        """Give every duplicate the place and grades of its representative.

        A reviewer that wrote one of a group judged none of it, and need not have.
        """
        if not self.groups:
            return ballot
        others = {group[0]: group[1:] for group in self.groups}
        ranking = tuple(
            tuple(each for name in place for each in (name, *others.get(name, ())))
            for place in ballot.groups
        )
        grades, positions = dict(ballot.grades or {}), dict(ballot.positions or {})
        for first, rest in others.items():
            if first in grades:
                grades |= dict.fromkeys(rest, grades[first])
            if first in positions:
                positions |= dict.fromkeys(rest, positions[first])
        unseen = {*self.with_duplicates(own)} - {*own}
        roster = (
            None
            if ballot.candidates is None
            else tuple(name for name in ballot.candidates if name not in unseen)
        )
        return replace(
            ballot, groups=ranking, grades=grades, positions=positions or None, candidates=roster
        )
