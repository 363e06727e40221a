"""Ballots that somebody brings along: counted, compared, explained; nothing of them is kept."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from io import BytesIO
from typing import Any

from witan.core.ballot import Ballot
from witan.core.comparison import Comparison, compare_rules
from witan.core.explanation import Explanation, explain
from witan.core.outcome import Outcome
from witan.core.settings import Settings
from witan.core.tally import tally_sessions
from witan.errors import (
    InvalidParameter,
    MissingParameter,
    NothingToCount,
    TooLarge,
    UnknownName,
    UnsuitableBallots,
    WitanError,
)
from witan.files.ballots import Bounds, Problem, read_ballots
from witan.service.error_wording import as_request
from witan.service.text import listed
from witan.service.worker_pool import check_wanted
from witan.version import __version__

MOST_BALLOTS = 100_000
"""More are a file for the command line."""

MOST_PLACED = 1_000_000
"""Candidates on all ballots together."""

MOST_UNREAD = 10_000
"""Lines that could not be read, each told of."""

MOST_BYTES = 64 * 1024 * 1024
"""Unpacked, or as many as were sent."""

MOST_LINES = 1_000_000

LINE_BYTES = 4 * 1024 * 1024
"""Of one line, or as many as were sent."""


@dataclass(slots=True)
class BallotUpload:
    """Ballots as they were sent: in any format that a ballot file has.

    Parameters
    ----------
    format
        The name of the format; None: recognised from the content.
    columns
        Which column holds a field, where they are called otherwise.
    scale
        On which grades are given, such as ``0-1``; None: recognised unless the ballots say it.

    Attributes
    ----------
    problems
        What could not be read, once it was read.
    sessions
        The sessions that ballots belong to, once they were read.
    """

    content: bytes
    format: str | None = None
    columns: Mapping[str, str] | None = None
    scale: str | None = None
    problems: list[Problem] = field(default_factory=list)
    sessions: dict[str, None] = field(default_factory=dict)

    def __iter__(self) -> Iterator[Ballot]:
        stream = BytesIO(self.content)
        stream.name = "the ballots"
        sent = len(self.content)
        bounds = Bounds(max(MOST_BYTES, sent), MOST_LINES, max(LINE_BYTES, sent), check_wanted)
        read = read_ballots(
            stream,
            format=self.format,
            columns=self.columns,
            scale=self.scale,
            on_problem=self._unreadable,
            bounds=bounds,
        )
        placed = 0
        for number, ballot in enumerate(read, start=1):
            check_wanted()
            placed += max(sum(map(len, ballot.groups)), len(ballot.grades))
            if number > MOST_BALLOTS:
                raise TooLarge("posted ballots", number, MOST_BALLOTS)
            if placed > MOST_PLACED:
                raise TooLarge("candidates on posted ballots", placed, MOST_PLACED)
            self.sessions.setdefault(ballot.session)
            yield ballot
        if not self.sessions:
            why = f" could be read: {self.problems[0]}" if self.problems else " was sent"
            raise NothingToCount(f"no ballot{why}")

    def _unreadable(self, problem: Problem) -> None:
        check_wanted()
        if len(self.problems) == MOST_UNREAD:
            raise TooLarge("lines that cannot be read", MOST_UNREAD + 1, MOST_UNREAD)
        self.problems.append(problem)

    def unread(self) -> list[dict[str, Any]]:
        """The problems of reading, line by line."""
        return [{"line": each.line, "problem": as_request(str(each))} for each in self.problems]


def columns_given(written: Sequence[str]) -> Mapping[str, str] | None:
    """Read which column holds each field, from ``FIELD=HEADER``; None: each its own.

    Raises
    ------
    InvalidParameter
        If that is not how it is written.
    """
    columns = {}
    for each in written:
        field_name, equals, header = each.partition("=")
        if not (field_name.strip() and equals):
            raise InvalidParameter("column", each, "FIELD=HEADER, such as reviewer=judge")
        columns[field_name.strip()] = header.strip()
    return columns or None


@dataclass(frozen=True, slots=True)
class Tally:
    """Outcomes, and the sessions that could not be counted."""

    outcomes: tuple[Outcome, ...]
    not_counted: tuple[UnsuitableBallots, ...]


def tally_of(posted: BallotUpload, settings: Settings, sessions: Sequence[str] = ()) -> Tally:
    """Count posted ballots, or those of some sessions.

    Raises
    ------
    BallotFileError
        If it cannot be read as ballots at all.
    InvalidParameter
        If no ballot belongs to one of the sessions.
    NothingToCount
        If there is none at all.
    WitanError
        If a setting does not suit them.
    """
    not_counted: list[UnsuitableBallots] = []
    counting = tally_sessions(posted, settings, not_counted.append, sessions or None, check_wanted)
    outcomes = tuple(counting)
    for name in sessions:
        if name not in posted.sessions:
            raise InvalidParameter("session", name, f"one of {listed([*posted.sessions])}")
    return Tally(outcomes, tuple(not_counted))


def tally_object(posted: BallotUpload, tally: Tally) -> dict[str, Any]:
    """The object of ``witan tally --json``."""
    return {
        "witan": __version__,
        "sessions": tally.outcomes,
        "not_counted": [
            {"session": e.session, "problem": as_request(str(e))} for e in tally.not_counted
        ],
        "not_read": posted.unread(),
    }


def tallied(
    posted: BallotUpload, settings: Settings, sessions: Sequence[str] = ()
) -> dict[str, Any]:
    """The object of ``witan tally --json``; errors as of `tally_of`."""
    return tally_object(posted, tally_of(posted, settings, sessions))


def comparison_of(
    posted: BallotUpload,
    settings: Settings,
    rules: Sequence[str] = (),
    sessions: Sequence[str] = (),
) -> Comparison:
    """Posted ballots, or those of some sessions, under every rule; errors as of `tally_of`."""
    try:
        return compare_rules(posted, settings, list(rules) or None, check_wanted, sessions or None)
    except UnknownName as error:
        raise _as_parameter(error) from None


def comparison_reply(posted: BallotUpload, comparison: Comparison) -> dict[str, Any]:
    """The object of ``witan compare --json``, with the lines that could not be read."""
    return {
        "witan": __version__,
        "rules": comparison.rules,
        "skipped": comparison.skipped,
        "tau": comparison.tau,
        "leader_differs": comparison.leader_differs,
        "stability": comparison.stability,
        "n_sessions": len(comparison.sessions),
        "sessions": [
            {"session": session, "outcomes": comparison.outcomes[session]}
            for session in comparison.sessions
        ],
        "not_read": posted.unread(),
    }


def _as_parameter(error: UnknownName) -> WitanError:
    """The error for a session's unknown name; any other unknown name as it is."""
    if error.kind != "session":
        return error
    return InvalidParameter("session", error.name, f"one of {listed(error.known)}")


def explanation_of(
    posted: BallotUpload, settings: Settings, session: str | None = None
) -> Explanation:
    """Explain the outcome of a session from its ballots; errors as of `tally_of`.

    Raises
    ------
    InvalidParameter
        If no session is named and the ballots are of several, or none is of the one that is named.
    """
    try:
        return explain(posted, settings, session)
    except MissingParameter as error:
        raise MissingParameter("session", None, error.expected) from None
    except UnknownName as error:
        raise _as_parameter(error) from None


def explained(
    posted: BallotUpload, settings: Settings, session: str | None = None
) -> dict[str, Any]:
    """The object of ``witan explain --json``; errors as of `explanation_of`."""
    return explanation_reply(posted, explanation_of(posted, settings, session))


def explanation_reply(posted: BallotUpload, explanation: Explanation) -> dict[str, Any]:
    """The object of ``witan explain --json``, with the lines that could not be read."""
    return {
        "witan": __version__,
        "outcome": explanation.outcome,
        "steps": explanation.steps,
        "not_read": posted.unread(),
    }
