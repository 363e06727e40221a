"""Sessions imported from a file."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from witan.core.ballot import Ballot
from witan.core.entries import AnswerEntry, Entries
from witan.deliberation.session import Session


@dataclass(frozen=True, slots=True)
class Imported:
    """One session of a file.

    Parameters
    ----------
    session
        Its name; unique in a history.
    at
        Time of the question; None: the file does not say, and the time of the import stands for it.
    answers, lengths
        Candidate to its text, and to the number of its characters where only that is known.
    session_record
        A whole council session with its events; ballots and answers are then read off it.
    simulated
        Some seat plays a script.
    closing
        The text that the council closed with.
    question, category
        What was asked, and its kind, as far as the file says.
    ballots
        The ballots of models and people.
    models
        Candidate to the model behind it.
    kept
        Reviewer to pairs judged alike in both orders, and pairs judged in both.
    repaired
        Reviewers whose reviews needed a repair.
    took
        Cost and time of answers.
    entries
        The rows that it leaves, where they are counted already; else they are counted here.
    """

    session: str
    at: datetime | None = None
    question: str = ""
    category: str | None = None
    ballots: tuple[Ballot, ...] = ()
    answers: Mapping[str, str] = field(default_factory=dict)
    lengths: Mapping[str, int] = field(default_factory=dict)
    session_record: Session | None = None
    simulated: bool = False
    closing: str | None = None
    models: Mapping[str, str] = field(default_factory=dict)
    kept: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    repaired: Collection[str] = ()
    took: tuple[AnswerEntry, ...] = ()
    entries: Entries | None = None


ImportRedactor = Callable[[Imported], tuple[Imported, Mapping[str, str]]]
"""Redacts an import for a reader; also maps names that are not shown whole to what is shown."""


@dataclass(frozen=True, slots=True)
class ImportCounts:
    """Counts of what an import added.

    Parameters
    ----------
    sessions
        Those that are new.
    already
        Those that were there; votes on them may still be new.
    ballots, by_people
        New ballots, and how many of them people cast.
    """

    sessions: int
    already: int
    ballots: int
    by_people: int = 0
