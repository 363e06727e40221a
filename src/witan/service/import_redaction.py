"""What came in as ballots as clients see it: files call a seat however it was written there."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TypeVar

from witan.core.ballot import Ballot
from witan.history import Imported
from witan.service.redaction import WordRedactor, public_names

__all__ = ["redact_import"]

V = TypeVar("V")


def redact_import(held: Imported) -> tuple[Imported, Mapping[str, str]]:
    """What came in, and name to what clients see of it, for those of which they do not see all.

    It is the same object where there is nothing to hide.
    """
    names = public_names(_names(held))
    words = WordRedactor(names)
    ballots = tuple(_ballot(ballot, names, words) for ballot in held.ballots)
    if not names:
        same = all(map(_same, ballots, held.ballots))
        return (held if same else replace(held, ballots=ballots)), names
    shown = replace(
        held,
        ballots=ballots,
        answers=_keyed(held.answers, names),
        lengths=_keyed(held.lengths, names),
        models={name: names.get(who, who) for name, who in _keyed(held.models, names).items()},
        kept=_keyed(held.kept, names),
        repaired=_each(held.repaired, names),
        took=tuple(
            replace(
                took, seat=names.get(took.seat, took.seat), model=names.get(took.model, took.model)
            )
            for took in held.took
        ),
    )
    return shown, names


def _names(held: Imported) -> Iterator[str]:
    """Every name in it, of seats and of models."""
    for ballot in held.ballots:
        yield ballot.reviewer
        yield from ballot.mentioned()
        yield from ballot.positions or ()
        for candidate, author in (ballot.authors or {}).items():
            yield from (candidate, author)
    for told in (held.answers, held.lengths, held.models, held.kept, held.repaired):
        yield from told
    yield from held.models.values()
    for took in held.took:
        yield from (took.seat, took.model)


def _ballot(ballot: Ballot, names: Mapping[str, str], words: WordRedactor) -> Ballot:
    """A ballot as clients see it; the same one where there is nothing to hide."""
    reason, notes = (text and words(text) for text in (ballot.reason, ballot.notes))
    if not names and (reason, notes) == (ballot.reason, ballot.notes):
        return ballot
    authors, positions = ballot.authors, ballot.positions
    return replace(
        ballot,
        reviewer=names.get(ballot.reviewer, ballot.reviewer),
        groups=tuple(_each(group, names) for group in ballot.groups),
        grades=_keyed(ballot.grades, names),
        reason=reason,
        candidates=None if ballot.candidates is None else _each(ballot.candidates, names),
        authors=authors and {c: names.get(a, a) for c, a in _keyed(authors, names).items()},
        positions=positions and _keyed(positions, names),
        notes=notes,
    )


def _keyed(told: Mapping[str, V], names: Mapping[str, str]) -> dict[str, V]:
    return {names.get(name, name): value for name, value in told.items()}


def _each(told: Iterable[str], names: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(names.get(name, name) for name in told)


def _same(one: object, other: object) -> bool:
    return one is other
