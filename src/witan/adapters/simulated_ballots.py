"""The mark of scripts on a ballot: its notes, since a file of ballots has no other place for it."""

from dataclasses import replace

from witan.core.ballot import Ballot

__all__ = ["marked", "unmarked"]

MARK = "simulated"


def marked(ballot: Ballot) -> Ballot:
    """The ballot of a session in which scripts sat."""
    return replace(ballot, notes=MARK if ballot.notes is None else f"{MARK}; {ballot.notes}")


def unmarked(ballot: Ballot) -> tuple[Ballot, bool]:
    """The ballot as it was before, and whether it was marked."""
    notes = ballot.notes or ""
    if notes != MARK and not notes.startswith(f"{MARK}; "):
        return ballot, False
    rest = notes.removeprefix(MARK).removeprefix("; ")
    return replace(ballot, notes=rest or None), True
