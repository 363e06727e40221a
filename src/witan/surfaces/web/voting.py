"""A person's ranking as the form of the page gives it."""

from collections.abc import Mapping

from witan.core.ballot import Groups
from witan.core.blind_vote import read_ranking
from witan.core.blinding import Sheet
from witan.errors import InvalidBallot

__all__ = ["PLACE", "ranking_of"]

PLACE = "place-"
"""Before a label, the name of the field that holds its place."""


def ranking_of(sheet: Sheet, form: Mapping[str, str]) -> Groups:
    """The ranking that a form gives: for every label its place, 1 the best, equal ones tied.

    Raises
    ------
    InvalidBallot
        If a label has no place, or one that is no whole number.
    """
    places: dict[int, list[str]] = {}
    for label in sheet.labels:
        given = form.get(f"{PLACE}{label}", "").strip()
        if not given:
            raise InvalidBallot(sheet.reviewer, f"gives {label} no place; every answer needs one")
        if not (given.isascii() and given.isdigit() and 1 <= int(given[:6]) <= len(sheet.labels)):
            expected = f"a place is a whole number from 1 to {len(sheet.labels)}"
            raise InvalidBallot(sheet.reviewer, f"gives {label} the place {given!r}; {expected}")
        places.setdefault(int(given), []).append(label)
    return read_ranking(" > ".join(" = ".join(places[p]) for p in sorted(places)), sheet)
