"""Tables of pairs: one row per comparison of two candidates, in the order shown."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any

from witan.core.ballot import Ballot, Groups
from witan.core.ballot_records import Unreadable, name
from witan.errors import BallotFileError
from witan.files.ballots.cells import BALLOT_CELLS, Rows, read_cell
from witan.files.ballots.columns import Header, folded
from witan.files.ballots.csv_long import told
from witan.files.ballots.doubts import Again
from witan.files.ballots.problems import Report

__all__ = ["OUTCOMES", "PAIR_COLUMNS", "PairSessions", "pair_row", "read_pairs"]

PAIR_COLUMNS = (
    *("session", "reviewer", "first", "second", "outcome"),
    *(field for field in BALLOT_CELLS if field not in ("abstained", "candidates", "scale")),
)
"""The columns of a table of pairs in the order in which they are written."""

OUTCOMES: Mapping[str, str] = {
    **dict.fromkeys(("first", "a", "model_a", "left"), "first"),
    **dict.fromkeys(("second", "b", "model_b", "right"), "second"),
    **dict.fromkeys(("tie", "draw", "both", "neither", "equal", "same"), "tie"),
    **dict.fromkeys(("bothbad", "both_bad", "tie_bothbad", "tie_both_bad"), "tie"),
    **dict.fromkeys(("abstain", "invalid", "skip", "skipped"), "abstain"),
}
"""Words for the outcome of a comparison, as `folded` gives them."""


class PairSessions:
    """Names the session of a row of pairs: by its id, else by its question.

    Questions are known by the line on which they first stand. A row with neither is a comparison of
    its own: with `apart` in a session of its own, else in the one that has no name, where all
    comparisons count.
    """

    def __init__(self, stem: str, *, apart: bool) -> None:
        self._stem, self._apart = stem, apart
        self._lines: dict[str, int] = {}

    def name(self, session: str, question: str, line: int) -> str:
        """Name the session of the row on this line."""
        if session:
            return session
        if question:
            return f"{self._stem}/{self._lines.setdefault(question, line)}"
        return f"{self._stem}/{line}" if self._apart else ""


def read_pairs(
    rows: Rows, columns: Mapping[str, str], report: Report, sessions: PairSessions
) -> Iterator[Ballot]:
    """Read one ballot a row.

    People are often all called ``human``: one who judges the same pair in the same order again is
    another person, here ``human-2``, ``human-3`` and so on, so that nobody's vote is lost.
    """
    numbered = iter(rows)
    _, names = next(numbered, (0, []))
    header = Header(names, columns, report.path)
    header.require("reviewer", "first", "second", "outcome")
    reader, again = _PairReader(header, sessions), Again("reviewer")
    for line, row in numbered:
        try:
            ballot = reader.read(row, line)
        except Unreadable as flaw:
            report(line, flaw)
            continue
        if report.doubting:
            again.see(line, ballot)
        yield ballot
    again.tell(report)


class _PairReader:
    """Reads rows of one table of pairs."""

    def __init__(self, header: Header, sessions: PairSessions) -> None:
        self._sessions = sessions
        self._session, self._reviewer = header.cell("session"), header.cell("reviewer")
        self._question = header.cell("question")
        if "session" in header:
            self._question = lambda _row: ""
        elif (place := header.place("id", "index")) is not None:
            self._session = itemgetter(place)
        self._first, self._second = header.cell("first"), header.cell("second")
        self._outcome = header.cell("outcome")
        fields = (field for field in PAIR_COLUMNS[5:] if field in header)
        self._optional = header.given(fields)
        self._people: Counter[tuple[str, str, str]] = Counter()

    def read(self, row: Sequence[str], line: int) -> Ballot:
        """The ballot of one row."""
        reviewer = name("reviewer", self._reviewer(row))
        first, second = name("first", self._first(row)), name("second", self._second(row))
        if first == second:
            raise Unreadable("second", f"is {second!r} like the first; expected another candidate")
        asked = self._question(row).strip()
        session = self._sessions.name(self._session(row).strip(), asked, line)
        outcome = _outcome(self._outcome(row).strip(), first, second)
        said: dict[str, Any] = {
            field: read_cell(field, text)
            for field, cell in self._optional
            if (text := cell(row)) and not text.isspace()
        }
        if reviewer == "human" and said.get("kind") == "human":
            self._people[session, first, second] += 1
            times = self._people[session, first, second]
            reviewer = "human" if times == 1 else f"human-{times}"
        return Ballot(
            reviewer=reviewer,
            groups=_groups(outcome, first, second),
            grades={},
            session=session,
            abstained=outcome == "abstain",
            candidates=(first, second) if outcome == "abstain" else None,
            positions={first: 1, second: 2},
            paired=True,
            **said,
        )


def _outcome(text: str, first: str, second: str) -> str:
    """The outcome in our words; the winner may also be named."""
    meant = OUTCOMES.get(folded(text))
    named = {first: "first", second: "second"}.get(text)
    if meant and named and meant != named:
        raise Unreadable(
            "outcome", f"is {text!r}, a word for the {meant} and the name of the {named} candidate"
        )
    if meant or named:
        return meant or named or ""
    raise Unreadable(
        "outcome", f"is {text!r}; expected first, second, tie or abstain, or the winner's name"
    )


def _groups(outcome: str, first: str, second: str) -> Groups:
    if outcome == "tie":
        return ((first, second),)
    if outcome == "abstain":
        return ()
    return ((first,), (second,)) if outcome == "first" else ((second,), (first,))


def pair_row(ballot: Ballot, path: str) -> dict[str, Any]:
    """The row of one comparison, refused where a row cannot hold the ballot."""
    first, second = _shown(ballot, path)
    outcome = next(
        (
            word
            for word in ("first", "second", "tie", "abstain")
            if [set(g) for g in ballot.groups] == [set(g) for g in _groups(word, first, second)]
            and ballot.abstained == (word == "abstain")
        ),
        None,
    )
    if outcome is None:
        raise _unfit(ballot, path, "it is neither a vote on its two candidates nor an abstention")
    row = {
        "session": ballot.session,
        "reviewer": ballot.reviewer,
        "first": first,
        "second": second,
        "outcome": outcome,
    }
    return row | {field: cell for field, cell in told(ballot).items() if field in PAIR_COLUMNS}


def _shown(ballot: Ballot, path: str) -> tuple[str, str]:
    """The two candidates in the order shown."""
    if not ballot.paired:
        raise _unfit(ballot, path, "it is no comparison of a pair", "jsonl or parquet")
    if ballot.grades or ballot.authors:
        raise _unfit(ballot, path, "it has grades or authors")
    places = {place: candidate for candidate, place in (ballot.positions or {}).items()}
    if sorted(places) != [1, 2] or len(ballot.positions or ()) != 2:
        raise _unfit(ballot, path, "it does not say which of two was shown first")
    return places[1], places[2]


def _unfit(ballot: Ballot, path: str, why: str, instead: str = "jsonl") -> BallotFileError:
    problem = f"a table of pairs cannot hold the ballot of {ballot.reviewer}: {why}"
    return BallotFileError(path, f"{problem}; write {instead}")
