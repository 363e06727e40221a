"""What a session leaves to be counted: its ballots, and what else is known of it."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from witan.core.ballot import Ballot
from witan.core.entries import AnswerEntry
from witan.core.outcome import Outcome
from witan.core.roster import authors_of

__all__ = ["Cast", "Named"]


@dataclass(frozen=True, slots=True)
class Cast:
    """One session as it was cast.

    Parameters
    ----------
    ballots
        Of models and of people, in any order.
    models
        Candidate or reviewer to the model behind it. Who is not named stands for itself; a
        candidate, for the author that the ballots name.
    lengths
        Candidate to the length of its answer in characters; those of `answers` need not be named.
    answers
        What each answer took. None given: one per candidate of known length.
    kept
        Reviewer to pairs judged alike in both orders and pairs seen in both, where its one ballot
        was made of two.
    repaired
        Reviewers whose ballot was read at the second attempt.
    outcome
        What the council came to by the models' ballots; None: it is counted where it is needed.
    """

    session: str
    at: datetime
    ballots: tuple[Ballot, ...] = ()
    category: str | None = None
    simulated: bool = False
    models: Mapping[str, str] = field(default_factory=dict)
    lengths: Mapping[str, int] = field(default_factory=dict)
    answers: tuple[AnswerEntry, ...] = ()
    kept: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    repaired: Collection[str] = ()
    outcome: Outcome | None = None


class Named:
    """Who is behind the names of one session."""

    def __init__(self, cast: Cast) -> None:
        self._models = cast.models
        self._authors = authors_of(cast.ballots, [])

    def reviewer(self, name: str) -> str:
        """The model behind a reviewer."""
        return self._models.get(name, name)

    def candidate(self, name: str) -> str:
        """The model behind a candidate."""
        author = name if name in self._models else self._authors.get(name, name)
        return self._models.get(author, author)
