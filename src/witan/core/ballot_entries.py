"""Ballots as rows: what each says of each candidate on it, for an audit to sum."""

from collections.abc import Mapping, Sequence
from math import isnan

from witan.core.ballot import Ballot
from witan.core.casts import Cast, Named
from witan.core.entries import BallotEntry
from witan.core.interpretation import Vote
from witan.core.readings import Reading, closed_up
from witan.core.scale import HOLISTIC, Scale, read_grade

__all__ = ["ballot_entries"]

NOBODY: frozenset[int] = frozenset()

PLAIN = {int, float, str, type(None)}
"""What a grade is that is no mapping from criteria."""


def ballot_entries(
    cast: Cast, reading: Reading, lengths: Mapping[str, int], named: Named
) -> list[BallotEntry]:
    """One row per ballot of one kind, in the order given.

    A ballot that says nothing has a row without candidates and abstains. So has one that a later
    ballot of its reviewer replaces or that weighs nothing, except that it does not abstain: it
    does not count. Pairs judged in both orders stand on the first row of their reviewer that
    counts. A candidate is on a ballot if it stood on its sheet: where no places on the sheet are
    known, if it stood on the ballot's roster, one's own only if it was ranked or graded.
    """
    table, carried = _Table(reading, named), _kept(cast, reading)
    entries = []
    for ballot, vote, late in zip(reading.ballots, reading.votes, reading.superseded, strict=True):
        model = ballot.kind == "model"
        own = reading.own.get(ballot.reviewer, NOBODY)
        seats = () if vote is None else table.on(ballot, vote, own)
        names = [table.names[seat] for seat in seats]
        aside = late or ballot.weight == 0
        kept, compared = (0, 0) if aside else carried.pop(ballot.reviewer, (0, 0))
        criteria, criterion_grades = _criteria(ballot, names)
        entries.append(
            BallotEntry(
                reviewer=named.reviewer(ballot.reviewer) if model else ballot.reviewer,
                kind=ballot.kind,
                models=tuple([table.models[seat] for seat in seats]),
                own=tuple([seat in own for seat in seats]),
                shares=() if vote is None else _shares(vote.places, own, seats),
                grades=() if vote is None else _known(vote, seats),
                positions=_positions(ballot, names),
                chars=tuple([lengths.get(name) for name in names]),
                paired=ballot.paired,
                abstained=vote is None and not aside,
                repaired=model and ballot.reviewer in cast.repaired,
                kept=kept,
                compared=compared,
                weight=float(ballot.weight),
                criteria=criteria,
                criterion_grades=criterion_grades,
            )
        )
    return entries


def _kept(cast: Cast, reading: Reading) -> dict[str, tuple[int, int]]:
    """Per reviewer, pairs judged alike and pairs seen in both orders."""
    kept = dict(reading.counted.order_kept)
    for ballot in reading.ballots:
        if ballot.kind == "model" and ballot.reviewer in cast.kept:
            alike, twice = reading.counted.order_kept.get(ballot.reviewer, (0, 0))
            more_alike, more = cast.kept[ballot.reviewer]
            kept[ballot.reviewer] = (alike + more_alike, twice + more)
    return kept


class _Table:
    """The candidates of a session, and which of them a ballot has."""

    def __init__(self, reading: Reading, named: Named) -> None:
        self.names = reading.counted.candidates
        self.models = [named.candidate(name) for name in self.names]
        self.seats = {name: seat for seat, name in enumerate(self.names)}

    def on(self, ballot: Ballot, vote: Vote, own: frozenset[int]) -> Sequence[int]:
        """The seats of the candidates on a ballot."""
        sheet: Sequence[int] = range(len(self.names))
        if ballot.paired or ballot.candidates not in (None, self.names):
            named = (self.seats[name] for name in ballot.mentioned() if name in self.seats)
            sheet = sorted(named)
        positions = ballot.positions
        if not (positions or own):
            return sheet
        return [
            seat
            for seat in sheet
            if vote.places[seat]
            or not isnan(vote.grades[seat])
            or (self.names[seat] in positions if positions else seat not in own)
        ]


def _shares(
    places: Sequence[int], own: frozenset[int], seats: Sequence[int]
) -> tuple[float | None, ...]:
    """Share of its rivals that each candidate is placed above.

    With p twice its rank among n ranked candidates, it is (2n − p) / (2n − 2).
    """
    others = closed_up(places, own) if own else places
    n, n_others = (len(held) - held.count(0) for held in (places, others))
    shares: list[float | None] = []
    for seat in seats:
        place, ranked = (places[seat], n) if seat in own else (others[seat], n_others)
        shares.append((2 * ranked - place) / (2 * ranked - 2) if place and ranked > 1 else None)
    return tuple(shares)


def _known(vote: Vote, seats: Sequence[int]) -> tuple[float | None, ...]:
    """The grades that were given: the lowest for what was left out is none of them."""
    grades, omitted = vote.grades, vote.omitted
    return tuple(
        [None if isnan(grades[seat]) or seat in omitted else grades[seat] for seat in seats]
    )


def _positions(ballot: Ballot, names: Sequence[str]) -> tuple[int, ...]:
    """Places on the sheet; copies of an answer have none, and those behind them stand farther back.

    Candidates with one place are one answer, which was read and judged once: the first of them has
    the place. So the first place and the last, of as many as there are candidates, count once.
    """
    if not ballot.positions:
        return (0,) * len(names)
    places = [ballot.positions.get(name, 0) for name in names]
    copies = [place for at, place in enumerate(places) if place and place in places[:at]]
    if not copies or ballot.paired:
        return tuple(places)
    last, found = max(places), []
    for at, place in enumerate(places):
        ahead = sum(copy < place or copy == place == last != 1 for copy in copies)
        found.append(0 if not place or place in places[:at] else place + ahead)
    return tuple(found)


def _criteria(
    ballot: Ballot, names: Sequence[str]
) -> tuple[tuple[str, ...], tuple[tuple[float | None, ...], ...]]:
    """The criteria that are graded, in the order of first mention, and the grades on each.

    The reviewer's own overall grade is none of them.
    """
    given = [ballot.grades.get(name) for name in names]
    if {type(held) for held in given} <= PLAIN:
        return (), ()
    scale = Scale() if ballot.scale is None else ballot.scale
    read = [
        {criterion: read_grade(value, scale.of(criterion)) for criterion, value in held.items()}
        if isinstance(held, Mapping)
        else {}
        for held in given
    ]
    found = dict.fromkeys(c for held in read for c, grade in held.items() if grade is not None)
    criteria = tuple(criterion for criterion in found if criterion != HOLISTIC)
    return criteria, tuple(tuple(held.get(c) for held in read) for c in criteria)
