"""What the seats of a session are called outside it: by the models that hold them."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace

from witan.core.ballot import Ballot
from witan.deliberation.imported_session import Imported
from witan.deliberation.learning import model_of

__all__ = ["Called"]


class Called:
    """The names that candidates and reviewers of one session go by in a file of ballots.

    A seat is called as its model is across sessions. Of a model that holds several seats each is
    called by the model and the seat, and ballots say who wrote its answer.
    """

    def __init__(self, one: Imported) -> None:
        self._behind = _behind(one)
        candidates = [*one.answers, *(c for ballot in one.ballots for c in ballot.mentioned())]
        reviewers = [ballot.reviewer for ballot in one.ballots if ballot.kind == "model"]
        self._candidates = _written(candidates, self._behind)
        self._reviewers = _written(reviewers, self._behind)

    def ballot(self, ballot: Ballot) -> Ballot:
        """The ballot, all names in it as they are outside."""
        if not self._behind:
            return ballot
        called = self._candidates
        authors = {called.get(c, c): author for c, author in (ballot.authors or {}).items()}
        authors |= {
            called[c]: self._behind[c]
            for c in ballot.mentioned()
            if c in self._behind and called[c] != self._behind[c]
        }
        return replace(
            ballot,
            reviewer=self.reviewer(ballot),
            groups=tuple(tuple(called.get(c, c) for c in group) for group in ballot.groups),
            grades={called.get(c, c): grade for c, grade in ballot.grades.items()},
            candidates=None
            if ballot.candidates is None
            else tuple(called.get(c, c) for c in ballot.candidates),
            authors=authors or None,
            positions=None
            if ballot.positions is None
            else {called.get(c, c): place for c, place in ballot.positions.items()},
        )

    def reviewer(self, ballot: Ballot) -> str:
        """Who cast a ballot; a person keeps the name."""
        if ballot.kind == "human":
            return ballot.reviewer
        return self._reviewers.get(ballot.reviewer, ballot.reviewer)

    def model(self, candidate: str, ballot: Ballot) -> str:
        """Who wrote what stands on a ballot."""
        author = candidate if candidate in self._behind else None
        author = (ballot.authors or {}).get(candidate, candidate) if author is None else author
        return self._behind.get(author, author)


def _behind(one: Imported) -> Mapping[str, str]:
    """Seat to model, of those that are not called by it."""
    models = one.models
    if one.session_record is not None:
        opened = one.session_record.opened
        models = {seat.name: model_of(seat) for seat in (*opened.jury, *opened.seats)}
    return {seat: model for seat, model in models.items() if seat != model}


def _written(names: Iterable[str], behind: Mapping[str, str]) -> dict[str, str]:
    """Name to the one that it has outside; no two have the same."""
    there = dict.fromkeys(names)
    models = Counter(behind.get(name, name) for name in there)
    return {
        name: behind[name] if models[behind[name]] == 1 else f"{behind[name]} ({name})"
        for name in there
        if name in behind
    }
