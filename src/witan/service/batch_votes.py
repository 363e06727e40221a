"""People's votes on rows of a data set: read, stored and counted."""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from witan.core.ballot import Ballot
from witan.core.estimation import Estimates, estimate
from witan.core.scale import FAILED, NATIVE, PASS_FAIL, PASSED, Scale
from witan.core.settings import Settings
from witan.deliberation.ports import SystemClock
from witan.errors import BallotFileError, InvalidParameter, NothingToCount
from witan.history import History

if TYPE_CHECKING:
    from witan.service.batch import BatchRow

TIE = "tie"
"""A vote for no candidate more than another."""

NOTE = "from a column of the data set"
"""The note of a ballot that came with a row."""

GRADES = "a grade from 1 to 10, pass or fail"

PersonVote = float | bool | str
"""A grade, whether a text passes, or the winner."""


@dataclass(frozen=True, slots=True)
class PeopleEstimate:
    """What people's votes say of all rows, beside the jury.

    Parameters
    ----------
    rows
        Rows whose votes are stored.
    left_out
        Votes for an answer that its session lacks.
    estimates
        Means of all rows, corrected by the votes; None: `why` says so.
    why
        Why there is no estimate.
    """

    rows: int
    left_out: int
    estimates: Estimates | None
    why: str | None = None


def read_votes(value: object, texts: Collection[str], place: tuple[str, str, int]) -> "Votes":
    """Read a row's votes: one, a list, or a mapping by person.

    In CSV they are written ``ann=8; bob=pass``.

    Parameters
    ----------
    place
        File, column and line, for errors.

    Raises
    ------
    BallotFileError
        If a vote on one text is no grade, or one on several names none of them.
    """
    if value is None:
        return {}
    if isinstance(value, str):
        value = _split(value)
    if isinstance(value, Mapping):
        named = {str(person): vote for person, vote in value.items() if vote is not None}
    else:
        several = value if isinstance(value, list | tuple) else [value]
        named = {f"person {n}": vote for n, vote in enumerate(several, start=1)}
    votes: dict[str, PersonVote] = {}
    for person, vote in named.items():
        read = _read_grade(vote) if len(texts) == 1 else _read_winner(vote, texts)
        if read is None or person in texts:
            path, column, line = place
            expected = GRADES if len(texts) == 1 else _winners(texts)
            problem = f"field {column!r} has the vote {vote!r}; expected {expected}"
            if person in texts:
                problem = f"field {column!r} has a vote by {person}, which is a text"
            raise BallotFileError(path, problem, line)
        votes[person] = read
    return votes


Votes = dict[str, PersonVote]


def _split(cell: str) -> object:
    """Take the votes of a cell apart."""
    if cell.lstrip()[:1] in ("[", "{"):
        try:
            return json.loads(cell)
        except ValueError:
            return cell
    named: dict[str, str] = {}
    for number, part in enumerate(filter(None, map(str.strip, cell.split(";"))), start=1):
        person, equals, vote = part.rpartition("=")
        named[person.strip() if equals else f"person {number}"] = vote.strip()
    return named


def _read_grade(vote: object) -> PersonVote | None:
    if isinstance(vote, bool):
        return vote
    word = str(vote).strip().casefold()
    if word in PASSED | FAILED:
        return word in PASSED
    try:
        grade = float(word)
    except ValueError:
        return None
    return grade if NATIVE.low <= grade <= NATIVE.high else None


def _read_winner(vote: object, texts: Collection[str]) -> str | None:
    winner = str(vote).strip()
    return winner if winner and (not texts or winner in texts or winner == TIE) else None


def _winners(names: Collection[str]) -> str:
    return f"{', '.join(names)} or {TIE}" if names else "the name of a member, or tie"


def check_votes(
    tasks: Sequence["BatchRow"], members: Collection[str], pass_mark: float | None
) -> None:
    """Refuse votes that no session of these rows can take.

    Raises
    ------
    InvalidParameter
        If a vote names no member, a person has the name of one, or a vote passes or fails and there
        is no pass mark.
    """
    for task in tasks:
        for person, vote in task.votes.items():
            name = f"the vote of {person} on row {task.number}"
            if isinstance(vote, bool) and pass_mark is None:
                expected = "a grade from 1 to 10, or a pass mark besides"
                raise InvalidParameter(name, "pass" if vote else "fail", expected)
            if not task.texts and vote not in (*members, TIE):
                raise InvalidParameter(name, vote, _winners(members))
            if not task.texts and person in members:
                raise InvalidParameter(name, vote, f"another name of the person: {person} answers")


def count_votes(
    history: History,
    tasks: Sequence["BatchRow"],
    names: Sequence[str],
    settings: Settings,
    pass_mark: float | None,
) -> PeopleEstimate:
    """Store all closed rows' votes; correct the jury's means by them.

    Parameters
    ----------
    names
        Of the rows' sessions.
    """
    statuses = history.statuses([*names])
    ballots: list[Ballot] = []
    n_rows = n_left_out = 0
    for task, name in zip(tasks, names, strict=True):
        if statuses.get(name, "interrupted") == "interrupted":
            continue
        stored = history.ballots(name)
        if task.votes:
            answers = history.answers(name)
            votes = [_ballot(name, person, vote, answers) for person, vote in task.votes.items()]
            new = [vote for vote in votes if vote is not None]
            n_left_out += len(votes) - len(new)
            if not _holds(stored, new):
                history.vote(name, new, replace_earlier=True)
                stored = history.ballots(name)
            n_rows += bool(new)
        ballots += stored
    if not n_rows:
        return PeopleEstimate(0, n_left_out, None, "no row with votes is complete")
    passes = any(isinstance(vote, bool) for task in tasks for vote in task.votes.values())
    try:
        return PeopleEstimate(n_rows, n_left_out, _estimate(ballots, settings, pass_mark, passes))
    except NothingToCount as error:
        return PeopleEstimate(n_rows, n_left_out, None, str(error))


def _ballot(
    session: str, person: str, vote: PersonVote, answers: Mapping[str, Any]
) -> Ballot | None:
    """Write a vote as a ballot; None: its winner gave no answer."""
    texts, at = tuple(answers), SystemClock().now()
    if isinstance(vote, str):
        if vote != TIE and vote not in texts:
            return None
        rest = tuple(text for text in texts if text != vote)
        groups = ((vote,), rest) if vote != TIE and rest else (texts,)
        grades: dict[str, float] = {}
        scale = None
    else:
        groups, grades = (texts,), dict.fromkeys(texts, float(vote))
        scale = Scale(PASS_FAIL) if isinstance(vote, bool) else Scale()
    return Ballot(
        person, groups, grades, session, candidates=texts, at=at, kind="human", notes=NOTE,
        scale=scale,
    )  # fmt: skip


def _holds(stored: Sequence[Ballot], votes: Sequence[Ballot]) -> bool:
    """True if all votes are stored already."""
    earlier = {each.reviewer: each for each in stored if each.kind == "human" and not each.paired}
    for vote in votes:
        was = earlier.get(vote.reviewer)
        if was is None or (was.groups, was.grades) != (vote.groups, vote.grades):
            return False
    return True


def _estimate(
    ballots: Sequence[Ballot], settings: Settings, pass_mark: float | None, passes: bool
) -> Estimates:
    """Estimate means; where people said pass or fail, pass rates alone."""
    estimates = estimate(ballots, settings, pass_mark=pass_mark)
    if not passes:
        return estimates
    return replace(
        estimates,
        systems=tuple(x for x in estimates.systems if x.quantity != "mean grade"),
        differences=tuple(x for x in estimates.differences if x.quantity != "mean grade"),
    )
