"""Juries and authorship: reviewers and the authors of candidates.

A juror is recused from whatever its own model wrote, under whichever name that model sat.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from witan.core.ballot import Ballot
from witan.deliberation.events import SessionOpened
from witan.deliberation.ports import Member, Seat, free_name


def is_author(juror: Member | Seat, seat: Member | Seat) -> bool:
    """True if juror and seat are the same model.

    A model that was handed over as an object is known by the name of its seat alone.
    """
    if juror.source or seat.source:
        return juror.source == seat.source
    return juror.name == seat.name


def rename_clashes(council: Sequence[Member], seats: Sequence[Seat]) -> dict[str, Member]:
    """Rename members sharing a seat's name without being its author.

    A juror may share the name of a seat whose answer it wrote; under any other it would pass for
    another model, and be recused in its place.
    """
    seats_by_name = {seat.name: seat for seat in seats}
    used = {*seats_by_name, *(member.name for member in council)}
    renamed = {}
    for member in council:
        if member.name in renamed:
            continue
        name = member.name
        if name in seats_by_name and not is_author(member, seats_by_name[name]):
            name = free_name(name, used)
            used.add(name)
        renamed[member.name] = replace(member, name=name)
    return renamed


def double_roles(
    members: Iterable[Member | Seat],
    jury: Iterable[Member | Seat],
    chairmen: Iterable[Member | Seat],
) -> Iterator[str]:
    """Name chairmen also sitting as members or jurors."""
    answer, judge = ({seat.name for seat in seats} for seats in (members, jury))
    for name in dict.fromkeys(chairman.name for chairman in chairmen):
        if name in answer | judge:
            role = "juror" if name in judge else "member"
            yield f"the chairman {name} is a {role} too"


@dataclass(frozen=True, slots=True)
class Authorship:
    """Candidates by their reviewing author.

    Parameters
    ----------
    own
        Reviewer to the candidates that it wrote, in seat order.
    authors
        Candidate to the reviewer that wrote it, where that one is called otherwise. Of several
        jurors that are one model it names the first, and the others never saw the candidate.
    """

    own: Mapping[str, tuple[str, ...]]
    authors: Mapping[str, str]

    @classmethod
    def of(cls, opened: SessionOpened) -> "Authorship":
        """The authorship of a session as it was opened."""
        if not opened.jury:
            return cls({seat.name: (seat.name,) for seat in opened.seats}, {})
        own = {
            juror.name: tuple(seat.name for seat in opened.seats if is_author(juror, seat))
            for juror in opened.jury
        }
        authors = {
            candidate: juror
            for juror, candidates in reversed(own.items())
            for candidate in candidates
            if candidate not in own
        }
        return cls(own, authors)

    def sign(self, ballot: Ballot) -> Ballot:
        """Sign a ballot, for the same recusal in counting."""
        if not self.authors and self.own.get(ballot.reviewer) == (ballot.reviewer,):
            return ballot
        own = self.own.get(ballot.reviewer, ())
        unsaid = {c for c in own if self.authors.get(c, c) != ballot.reviewer}
        roster = ballot.candidates
        if roster is not None:
            roster = tuple(name for name in roster if name not in unsaid)
        return replace(ballot, candidates=roster, authors=self.authors or None)
