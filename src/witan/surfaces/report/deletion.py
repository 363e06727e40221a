"""The report of a deletion: which sessions, and what still holds their text."""

from collections.abc import Iterator, Mapping

from witan.service.operations.sessions import Deletion
from witan.service.text import counted, listed
from witan.surfaces.report.document import Note, Report

SHOWN = 10
"""Sessions that are named."""


def deletion_report(result: Deletion) -> Report:
    """Write the report of a deletion."""
    names = listed(result.sessions)
    finding = f"{counted(len(result.sessions), 'session')} forgotten."
    return Report("Deletion", (names,) if names else (), finding, tuple(_notes(result)))


def _notes(result: Deletion) -> Iterator[Note]:
    if result.note is not None:
        yield Note(result.note, "warning")
    if result.children:
        alone = len(result.children) == 1
        hold, them = ("holds", "it") if alone else ("hold", "them")
        yield Note(
            f"{_children(result.children)} still {hold} text of what was forgotten: "
            f"forget {them} as well",
            "warning",
        )


def _children(children: Mapping[str, str]) -> str:
    names = [f"{session} ({relation})" for session, relation in children.items()]
    return listed(names, most=SHOWN)
