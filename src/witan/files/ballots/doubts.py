"""What is odd about ballots that are read all the same: who takes them in is told."""

from array import array
from collections.abc import Mapping

from witan.core.ballot import Ballot
from witan.core.ballot_records import Unreadable, kind_of
from witan.core.scale import HOLISTIC, Scale, grade_on, is_empty, may_be_typing_error
from witan.files.ballots.problems import Report

__all__ = ["Again", "doubt_of", "off_scale"]


def doubt_of(ballot: Ballot) -> Unreadable | None:
    """Whether it says nothing that can be counted."""
    if not (ballot.groups or ballot.grades or ballot.abstained or ballot.reason):
        what = "is missing, as are grades and abstained; it counts as an abstention"
        return Unreadable("ranking", what, read=True)
    return None


def off_scale(ballot: Ballot) -> Unreadable | None:
    """The grades that are none, and those outside the scale of the ballot."""
    scale = Scale() if ballot.scale is None else ballot.scale
    none, outside = [], []
    for candidate, given in ballot.grades.items():
        held = given if isinstance(given, Mapping) else {HOLISTIC: given}
        for criterion, grade in held.items():
            read = grade_on(scale.of(criterion), grade)
            if read is None and is_empty(grade):
                continue  # counting says who has no grade
            if read is None:
                why = "which is no grade" + " (a typing error?)" * may_be_typing_error(grade)
                none.append((candidate, grade, why, "dropped when counted"))
            elif read[1]:
                where = f"outside the scale {scale.of(criterion)}"
                outside.append((candidate, grade, where, "its nearer end counts"))
    if not (none or outside):
        return None
    [(candidate, grade, why, fate), *others] = none or outside
    more = f", and {len(others):,} more like it" if others else ""
    more += f", and {len(outside):,} outside the scale" if none and outside else ""
    what = f"has {kind_of(grade)} for {candidate!r}, {why}{more}; {fate}"
    return Unreadable("grades", what, read=True)


class Again:
    """Pairs that a reviewer judged before in the same order, of which the last one counts.

    Only in a session that has a name: comparisons without one all count.
    """

    def __init__(self, field: str) -> None:
        self._field = field
        self._keys, self._lines, self._said = array("q"), array("q"), array("b")

    def see(self, line: int, ballot: Ballot) -> None:
        """Note one comparison; one whose order is not known is none that could be repeated."""
        shown = sorted(ballot.positions or {}, key=(ballot.positions or {}).__getitem__)
        if len(shown) != 2 or not ballot.session:
            return
        self._keys.append(hash((ballot.session, ballot.reviewer, *shown)))
        self._lines.append(line)
        won = ballot.groups[0][0] == shown[0] if len(ballot.groups) == 2 else None
        self._said.append(len(ballot.groups) if won is None else 2 + won)

    def tell(self, report: Report) -> None:
        """Say at the end of the file how many there were."""
        if not self._keys:
            return
        # NumPy is heavy: only those who have pairs doubted wait for it.
        import numpy as np

        keys, said = np.array(self._keys), np.array(self._said)
        order = np.argsort(keys, kind="stable")
        repeats = keys[order][1:] == keys[order][:-1]
        if not repeats.any():
            return
        other = int((repeats & (said[order][1:] != said[order][:-1])).sum())
        first = int(np.array(self._lines)[order[1:][repeats]].min())
        n = int(repeats.sum())
        rows = f"{n:,} rows in the file, {other:,} of them with another verdict, this the first"
        what = f"judges a pair in the same order again ({rows}); the last row of each counts"
        report.doubt(first, Unreadable(self._field, what, read=True))
