"""The mark of simulated sessions on a ballot: in its notes."""

from dataclasses import replace

from witan.core.ballot import Ballot

MARK = "simulated"


def marked(ballot: Ballot) -> Ballot:
    """The ballot of a simulated session."""
    return replace(ballot, notes=MARK if ballot.notes is None else f"{MARK}; {ballot.notes}")


def is_marked(ballot: Ballot) -> bool:
    """True for ballots of simulated sessions."""
    notes = ballot.notes or ""
    return notes == MARK or notes.startswith(f"{MARK}; ")


def unmarked(ballot: Ballot) -> tuple[Ballot, bool]:
    """The ballot as it was before, and whether it was marked."""
    if not is_marked(ballot):
        return ballot, False
    rest = (ballot.notes or "").removeprefix(MARK).removeprefix("; ")
    return replace(ballot, notes=rest or None), True
