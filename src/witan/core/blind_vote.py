"""A person's vote on a session: a blind sheet, a ranking of its labels, and the panel beside it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import combinations

from witan.core.ballot import Ballot, Groups
from witan.core.blinding import Sheet, label_map
from witan.errors import InvalidBallot

__all__ = ["Accord", "accord", "cast", "read_ranking", "voting_sheet"]

NO_BYTE = 256
"""Stands between two names in a seed, so that they are not merely strung together."""


def voting_sheet(session: str, person: str, candidates: Sequence[str]) -> Sheet:
    """Draw the sheet of a person for a session, in random order.

    It depends on the two names and on the candidates alone, whatever order they are given in, so
    that a ranking can be read by the sheet that was shown earlier.
    """
    spelt = [name.encode(errors="surrogatepass") for name in (session, person)]
    seed = [*spelt[0], NO_BYTE, *spelt[1]]
    return label_map(person, sorted(candidates), seed)


def read_ranking(text: str, sheet: Sheet) -> Groups:
    """Read a ranking such as ``B > A = C`` as groups of candidates, best first.

    Labels may be written in either case. Every one has to be placed: who could leave one out
    would decide how many rivals the others beat.

    Raises
    ------
    InvalidBallot
        If a label is unknown, missing, or there twice, or nothing stands between two signs.
    """
    groups, placed = [], list[str]()
    expected = f"the labels are {', '.join(sheet.labels)}"
    if not text.strip():
        raise InvalidBallot(sheet.reviewer, f"ranks nothing; {expected}")
    for group in text.split(">"):
        labels = [label.strip().upper() for label in group.split("=")]
        if not all(labels):
            raise InvalidBallot(sheet.reviewer, f"has nothing before or after a sign: {text!r}")
        placed += labels
        groups.append(labels)
    for label in placed:
        if label not in sheet.labels:
            raise InvalidBallot(sheet.reviewer, f"ranks {label!r}; {expected}")
        if placed.count(label) > 1:
            raise InvalidBallot(sheet.reviewer, f"ranks {label} more than once")
    missing = [label for label in sheet.labels if label not in placed]
    if missing:
        raise InvalidBallot(sheet.reviewer, f"does not place {', '.join(missing)}; = places equal")
    behind = dict(zip(sheet.labels, sheet.candidates, strict=True))
    return tuple(tuple(behind[label] for label in group) for group in groups)


def cast(sheet: Sheet, groups: Groups, session: str, at: datetime) -> Ballot:
    """The ballot of a person who ranked what stands on a sheet."""
    return Ballot(
        sheet.reviewer,
        groups,
        session=session,
        candidates=tuple(sorted(sheet.candidates)),
        positions=dict(sorted(sheet.positions.items())),
        at=at,
        kind="human",
    )


@dataclass(frozen=True, slots=True)
class Accord:
    """How a person's ranking and a panel's go together.

    Parameters
    ----------
    alike, decided
        Pairs that both place in the same order, of those that neither places equal.
    pairs
        Of the candidates that both rank.
    same_best
        Whether the two have a best candidate in common; None: the panel ranks none of them.
    """

    alike: int
    decided: int
    pairs: int
    same_best: bool | None


def accord(groups: Groups, ranks: Mapping[str, float]) -> Accord:
    """Compare a ranking with ranks, 1 the best, pair by pair."""
    place = {c: at for at, group in enumerate(groups) for c in group if c in ranks}
    alike = decided = pairs = 0
    for first, second in combinations(sorted(place), 2):
        pairs += 1
        product = (place[first] - place[second]) * (ranks[first] - ranks[second])
        decided += product != 0
        alike += product > 0
    best = min(place.values(), default=0)
    top = min((ranks[c] for c in place), default=0)
    same = any(place[c] == best and ranks[c] == top for c in place) if place else None
    return Accord(alike, decided, pairs, same)
