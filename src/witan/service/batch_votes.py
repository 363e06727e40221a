"""People's votes on rows of a data set: read, stored and counted."""

import json
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from witan.core.ballot import Ballot
from witan.core.estimation import Estimates, estimate
from witan.core.scale import FAILED, NATIVE, PASS_FAIL, PASSED, Scale
from witan.core.settings import Settings
from witan.core.verdict import TIE
from witan.deliberation.ports import Member, SystemClock
from witan.errors import BallotFileError, HistoryError, InvalidParameter, NothingToCount
from witan.history import History
from witan.history.ballots import reserved_use
from witan.service.text import shorten

if TYPE_CHECKING:
    from witan.service.batch_rows import BatchRow

NOTE = "from a column of the data set"
"""The note on a ballot from a column."""

GRADES = "a grade from 1 to 10, pass or fail"

PersonVote = float | bool | str
"""A grade, whether a text passes, or the winner."""


@dataclass(frozen=True, slots=True)
class PeopleEstimate:
    """Means of all rows by people's votes, beside the jury's.

    Parameters
    ----------
    rows
        Rows whose votes are stored.
    left_out
        Votes for an answer that does not exist.
    own
        Votes that differ from the person's vote on the session itself, which counts.
    earlier
        Votes of earlier runs that the rows no longer have, but which count.
    estimates
        Means of all rows, corrected by the votes; None: see `why`.
    why
        Why there is no estimate.
    damaged
        Rows left out because their stored ballots cannot be read.
    """

    rows: int
    left_out: int
    estimates: Estimates | None
    why: str | None = None
    own: int = 0
    earlier: int = 0
    damaged: int = 0


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
        If a vote on one text is not a grade, a vote on several texts names none of them, or a
        person has no name, a name in use, or two votes.
    """
    if value is None:
        return {}
    path, column, line = place
    named = [(person.strip(), vote) for person, vote in _split(value)]
    n_votes = Counter(person for person, _ in named)
    if named and TIE in texts and len(texts) > 1:
        trouble = f"has votes, in which {TIE} means no winner; rename the text {TIE}"
        raise BallotFileError(path, f"field {column!r} {trouble}", line)
    votes: dict[str, PersonVote] = {}
    for person, vote in named:
        problem = _name_problem(person)
        if n_votes[person] > 1:
            problem = f"is one of {n_votes[person]} votes by {person}; a person votes once"
        elif person in texts:
            problem = f"is by {person}, the name of a text; write the name of the person who voted"
        elif _is_plain(value) and "=" in person.rstrip("="):
            problem = f"is by {person!r}; separate votes by semicolons"
        read = _read_grade(vote) if len(texts) == 1 else _read_winner(vote, texts)
        if problem or read is None:
            expected = GRADES if len(texts) == 1 else _winners(texts)
            problem = f", which {problem}" if problem else f"; expected {expected}"
            vote_text = shorten(repr(vote), 60)
            raise BallotFileError(path, f"field {column!r} has the vote {vote_text}{problem}", line)
        votes[person] = read
    return votes


Votes = dict[str, PersonVote]


def _name_problem(person: str) -> str | None:
    """Explain why nobody can vote under a name."""
    if not person.strip():
        return "is by a person without a name"
    whom = reserved_use(person)
    return whom and f"is by {person}, a name reserved for {whom}"


def _is_plain(value: object) -> bool:
    """True for text that is not JSON."""
    return isinstance(value, str) and value.lstrip()[:1] not in ("[", "{")


def _split(value: object) -> Iterable[tuple[str, object]]:
    """Split the votes of a row, each with its person."""
    if isinstance(value, str) and not _is_plain(value):
        try:
            value = json.loads(value, object_pairs_hook=_Pairs)
        except (ValueError, RecursionError):
            return [("person 1", value)]
    if isinstance(value, _Pairs | Mapping):
        pairs = value if isinstance(value, _Pairs) else value.items()
        return [(str(person), vote) for person, vote in pairs if vote is not None]
    if isinstance(value, str):
        parts = [part.rpartition("=") for part in value.split(";") if part.strip()]
        return [
            (person if equals else f"person {number}", vote.strip())
            for number, (person, equals, vote) in enumerate(parts, start=1)
        ]
    several = value if isinstance(value, list | tuple) else [value]
    return [(f"person {n}", vote) for n, vote in enumerate(several, start=1)]


class _Pairs(list[tuple[str, object]]):
    """The fields of a JSON object, repeated ones included."""


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
    tasks: Sequence["BatchRow"],
    members: Sequence[Member],
    seats: Sequence[Member],
    pass_mark: float | None,
) -> None:
    """Refuse votes that no session of these rows can take.

    Parameters
    ----------
    seats
        All seats, jury and chairmen included.

    Raises
    ------
    InvalidParameter
        If a vote names no member, a person has the name of a seat, or a vote passes or fails
        without a pass mark.
    """
    answering, seated = [one.name for one in members], {one.name for one in seats}
    for task in tasks:
        for person, vote in task.votes.items():
            name = f"the vote of {person} on row {task.number}"
            voter = f"the name of a person who votes on row {task.number}"
            if isinstance(vote, bool) and pass_mark is None:
                expected = "a grade from 1 to 10, as there is no pass mark"
                raise InvalidParameter(name, "pass" if vote else "fail", expected)
            if not task.texts and vote not in (*answering, TIE):
                raise InvalidParameter(name, vote, _winners(answering))
            if person in seated:
                raise InvalidParameter(voter, person, "a name that is not a seat of the council")
            if problem := _name_problem(person):
                raise InvalidParameter(voter, person, f"another name: this vote {problem}")


def count_votes(
    history: History,
    tasks: Mapping[str, "BatchRow"],
    settings: Settings,
    pass_mark: float | None,
    *,
    verdicts: Mapping[str, Mapping[str, float]],
) -> PeopleEstimate:
    """Store all closed rows' votes; correct the jury's means by them and by other votes.

    A vote replaces an earlier one from the data set, never one that the person cast elsewhere.

    Parameters
    ----------
    tasks
        Row by the name of its session.
    verdicts
        By session of texts, the jury's mean grades, as in the rows' verdicts.
    """
    statuses = history.statuses([*tasks])
    ballots: list[Ballot] = []
    n_rows = n_left_out = n_own = n_earlier = n_damaged = 0
    for name, task in tasks.items():
        if statuses.get(name, "interrupted") == "interrupted":
            continue
        try:
            stored = history.ballots(name)
        except HistoryError as error:
            if not error.is_damage:
                raise
            n_damaged += 1
            continue
        current = set[str]()
        if task.votes:
            answers = history.answers(name)
            votes = [_ballot(name, person, vote, answers) for person, vote in task.votes.items()]
            new = [vote for vote in votes if vote is not None]
            n_left_out += len(votes) - len(new)
            current = {vote.reviewer for vote in new}
            earlier = {
                each.reviewer: each for each in stored if each.kind == "human" and not each.paired
            }
            changed = [vote for vote in new if not _is_same(earlier.get(vote.reviewer), vote)]
            own = [vote for vote in changed if _is_own(earlier.get(vote.reviewer))]
            n_own += len(own)
            if missing := [vote for vote in changed if vote not in own]:
                history.vote(name, missing, replace_earlier=True)
                stored = history.ballots(name)
        n_rows += any(each.kind == "human" for each in stored)
        n_earlier += sum(b.notes == NOTE and b.reviewer not in current for b in stored)
        ballots += stored
    passes = any(each.kind == "human" and each.scale == Scale(PASS_FAIL) for each in ballots)
    questions = dict(zip(tasks, name_questions(tasks.values()), strict=True))
    estimates, why = None, "no row with votes is complete"
    if n_rows:
        try:
            estimates = estimate(
                ballots, settings, pass_mark=pass_mark, questions=questions, verdicts=verdicts
            )
        except NothingToCount as error:
            why = str(error)
    return PeopleEstimate(
        n_rows,
        n_left_out,
        _keep_shares(estimates) if estimates and passes else estimates,
        why if estimates is None else None,
        n_own,
        n_earlier,
        n_damaged,
    )


def name_questions(tasks: Iterable["BatchRow"]) -> list[str]:
    """Name each row's question by its text and files."""
    parts = [((task.question or "").strip(), sorted(task.sources.items())) for task in tasks]
    return [json.dumps([text, *files]) if text or files else "" for text, files in parts]


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


def _is_same(earlier: Ballot | None, vote: Ballot) -> bool:
    if earlier is None:
        return False
    return (earlier.groups, earlier.grades, earlier.scale) == (vote.groups, vote.grades, vote.scale)


def _is_own(earlier: Ballot | None) -> bool:
    """True if a person's vote does not come from the data set."""
    return earlier is not None and earlier.notes != NOTE


def _keep_shares(estimates: Estimates) -> Estimates:
    """Leave out mean grades: where people said pass or fail, pass rates alone are estimated."""
    return replace(
        estimates,
        systems=tuple(x for x in estimates.systems if x.quantity != "mean grade"),
        differences=tuple(x for x in estimates.differences if x.quantity != "mean grade"),
    )
