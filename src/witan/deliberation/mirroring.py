"""One opinion from two ballots of a reviewer, cast on its sheet and on the sheet in reverse."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, groupby

from witan.core.ballot import Ballot, Grade, Groups
from witan.core.interpretation import Counting, interpret
from witan.core.scale import read_grade

__all__ = ["Merged", "merge"]

Grades = Grade | Mapping[str, Grade]

Given = Grade | Mapping[str, Grade]


@dataclass(frozen=True, slots=True)
class Merged:
    """The ballot that counts, and how often the order of the sheet moved its reviewer.

    Parameters
    ----------
    flipped
        Pairs that the two ballots place strictly in opposite orders.
    compared
        Pairs that both place strictly.
    """

    ballot: Ballot
    flipped: int
    compared: int


def merge(first: Ballot, second: Ballot, counting: Counting | None = None) -> Merged:
    """Average two ballots of one reviewer where they agree, and tie what they flip.

    What counts is the order in which each ballot will be counted: by overall grade where criteria
    are graded. Grades are means, and so are places; neighbours of which some pair is flipped are
    then tied, unless that would tie a pair on which both ballots agree. Tied candidates share their
    grades, so that the tie stands however the ballot is counted.
    """
    how = replace(counting or Counting(), recusal="off")
    orders = (_order(first, how), _order(second, how))
    places = (_places(orders[0]), _places(orders[1]))
    pairs = list(combinations([c for c in places[0] if c in places[1]], 2))
    signs = {pair: (_sign(places[0], *pair), _sign(places[1], *pair)) for pair in pairs}
    strict = {pair: both for pair, both in signs.items() if all(both)}
    agreed = {frozenset(pair) for pair, (one, other) in strict.items() if one == other}
    flipped = {frozenset(pair) for pair in strict} - agreed
    groups = _tied(_by_mean_place(*places), flipped, agreed)
    grades = {c: _mean(first, second, c) for c in {**first.grades, **second.grades}}
    notes = [ballot.notes for ballot in (first, second) if ballot.notes is not None]
    merged = replace(
        first,
        groups=groups if first.groups or second.groups else (),
        grades=_shared(grades, groups, flipped),
        notes="\n\n".join(notes) if notes else None,
    )
    return Merged(merged, len(flipped), len(strict))


def _order(ballot: Ballot, counting: Counting) -> Groups:
    """The order in which a ballot is counted; empty where nothing of it is."""
    votes = interpret(ballot.session, [ballot], counting).votes
    return votes[0].groups if votes else ()


def _shared(
    grades: Mapping[str, Grades], groups: Groups, flipped: set[frozenset[str]]
) -> dict[str, Grades]:
    """The grades, those of candidates that are tied because they were flipped being one."""
    shared = dict(grades)
    for group in groups:
        tied = [c for c in group if any(c in pair and pair <= {*group} for pair in flipped)]
        given = [grades[c] for c in tied if c in grades]
        if len(given) > 1:
            shared |= dict.fromkeys(tied, _mean_of(given))
    return shared


def _places(groups: Groups) -> dict[str, float]:
    """Mean place of each candidate: two that are tied for the first have 1.5 each."""
    places: dict[str, float] = {}
    for group in groups:
        above = len(places)
        places.update(dict.fromkeys(group, above + (len(group) + 1) / 2))
    return places


def _sign(places: Mapping[str, float], one: str, other: str) -> int:
    return (places[one] > places[other]) - (places[one] < places[other])


def _levels(heights: Mapping[str, float]) -> Groups:
    """Candidates from the lowest to the highest; equal ones are tied, in the order given."""
    ordered = sorted(heights, key=heights.__getitem__)
    return tuple(tuple(group) for _, group in groupby(ordered, key=heights.__getitem__))


def _by_mean_place(first: Mapping[str, float], second: Mapping[str, float]) -> Groups:
    """Candidates by the mean of their places; by the one place of those that have only one."""
    held = {c: [p[c] for p in (first, second) if c in p] for c in {**first, **second}}
    return _levels({c: sum(places) / len(places) for c, places in held.items()})


def _tied(groups: Groups, flipped: set[frozenset[str]], agreed: set[frozenset[str]]) -> Groups:
    """The same order, with neighbours tied whose order depends on the sheet's."""
    tied: list[tuple[str, ...]] = []
    for group in groups:
        across = {frozenset((a, b)) for a in (tied[-1] if tied else ()) for b in group}
        if across & flipped and not across & agreed:
            tied[-1] += group
        else:
            tied.append(group)
    return tuple(tied)


def _mean(first: Ballot, second: Ballot, candidate: str) -> Grades:
    return _mean_of([b.grades[candidate] for b in (first, second) if candidate in b.grades])


def _mean_of(given: Sequence[Grades]) -> Grades:
    """The mean by criterion; where some grade by criterion, single grades beside them fall away."""
    maps = [each for each in given if isinstance(each, Mapping)]
    if not maps:
        return _mean_grade([each for each in given if not isinstance(each, Mapping)])
    criteria = dict.fromkeys(criterion for each in maps for criterion in each)
    return {c: _mean_grade([each[c] for each in maps if c in each]) for c in criteria}


def _mean_grade(given: Sequence[Grade]) -> Grade:
    """The mean of what can be read; where all of it is one grade, that grade as given."""
    read = [(grade, value) for value in given if (grade := read_grade(value)) is not None]
    if len({grade for grade, _ in read}) > 1:
        return sum(grade for grade, _ in read) / len(read)
    return read[0][1] if read else given[0]
