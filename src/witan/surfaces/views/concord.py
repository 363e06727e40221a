"""What the ballots agree on, and what they do not."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from witan.core.outcome import Outcome
from witan.service.text import counted, listed, number
from witan.service.trust import p_best_text
from witan.surfaces.views.naming import Naming

__all__ = ["Concord", "concord"]

DISSENTS = PAIRS = 8
"""Reviewers and pairs that are told of one by one; of more, only how many."""


@dataclass(frozen=True, slots=True)
class Pair:
    """Two candidates that are too close to call.

    Parameters
    ----------
    chance
        How likely another draw of such reviewers would place the first above; empty: unknown.
    """

    first: str
    second: str
    chance: str


@dataclass(frozen=True, slots=True)
class Concord:
    """Sentences on what is agreed and what is contested, and the pairs that are open.

    `more` pairs are open beside those that are listed.
    """

    said: str
    agreed: tuple[str, ...]
    contested: tuple[str, ...]
    pairs: tuple[Pair, ...]
    more: int


def concord(outcome: Outcome, naming: Naming) -> Concord:
    """What could be told apart by these ballots, what could not, and who dissents."""
    outcome = naming.in_order(outcome)
    return Concord(
        said=naming.said(outcome.interpretation),
        agreed=tuple(_agreed(outcome, naming)),
        contested=tuple(_contested(outcome, naming)),
        pairs=tuple(_pairs(outcome, naming))[:PAIRS],
        more=max(len(outcome.unresolved) - PAIRS, 0),
    )


def _agreed(outcome: Outcome, naming: Naming) -> Iterator[str]:
    yield from _told_apart(outcome, naming)
    firsts = {note.ranking[0] for note in outcome.ballots if note.ranking}
    if len(outcome.ballots) > 1 and len(firsts) == 1 and len(group := firsts.pop()) == 1:
        yield f"Every ballot places {naming.name(group[0])} first."
    winner = outcome.condorcet_winner
    if winner is not None:
        yield f"{naming.name(winner)} beats every rival head to head."
    if outcome.kendall_w is not None:
        yield f"Kendall's W of the ballots is {number(outcome.kendall_w)} (0 no agreement, 1 full)."


def _told_apart(outcome: Outcome, naming: Naming) -> Iterator[str]:
    """Who stands above whom, pair by pair: of two tiers not every pair need be told apart."""
    placed = [line for line in outcome.standings if line.votes > 0 and not line.failed]
    if len({line.tier for line in placed}) < 2:
        return
    unresolved = {frozenset(pair) for pair in outcome.unresolved}
    above: dict[tuple[str, ...], list[str]] = {}
    for at, line in enumerate(placed):
        lower = [each.candidate for each in placed[at + 1 :] if each.tier != line.tier]
        surely = [each for each in lower if frozenset((line.candidate, each)) not in unresolved]
        if surely:
            above.setdefault(tuple(surely), []).append(line.candidate)
    for below, names in above.items():
        stands = "stands" if len(names) == 1 else "stand"
        upper, under = (listed([*map(naming.name, held)]) for held in (names, below))
        yield f"{upper} {stands} above {under}, beyond noise at {_level(outcome)}."


def _contested(outcome: Outcome, naming: Naming) -> Iterator[str]:
    if outcome.disputed_by:
        above, below = (listed([*map(naming.name, who)]) for who in _disputed(outcome))
        yield f"The fit of the same ballots places {above} above {below}, beyond noise."
    for ring in outcome.cycles:
        names = listed([*map(naming.name, ring)])
        yield f"{names} form a preference cycle: no order agrees with every majority."
    if outcome.tie_broken_by is not None:
        yield f"Equal scores were separated by {outcome.tie_broken_by}."
    dissents = [*_dissents(outcome, naming)]
    yield from dissents[:DISSENTS]
    if len(dissents) > DISSENTS:
        yield f"And {counted(len(dissents) - DISSENTS, 'more reviewer')} rank others above."


def _disputed(outcome: Outcome) -> tuple[Sequence[str], Sequence[str]]:
    return outcome.disputed_by, outcome.leaders


def _dissents(outcome: Outcome, naming: Naming) -> Iterator[str]:
    """Which reviewers place whom above the leader."""
    if len(outcome.leaders) != 1:
        return
    leader = outcome.leaders[0]
    for note in outcome.ballots:
        above: list[str] = []
        for group in note.ranking:
            if leader in group:
                break
            above += group
        else:
            continue  # it did not rank the leader: its own answer, mostly
        if above:
            names = listed([*map(naming.name, above)])
            who = naming.name(note.reviewer)
            yield f"Reviewer {who} ranks {names} above {naming.name(leader)}."


def _pairs(outcome: Outcome, naming: Naming) -> Iterator[Pair]:
    rows = {line.candidate: at for at, line in enumerate(outcome.standings)}
    for first, second in outcome.unresolved:
        chance = None
        if first in rows and second in rows and outcome.p_beats:
            chance = outcome.p_beats[rows[first]][rows[second]]
        shown = "" if chance is None else p_best_text(chance)
        yield Pair(naming.name(first), naming.name(second), shown)


def _level(outcome: Outcome) -> str:
    return f"{outcome.level * 100:g}%"
