"""PrefLib: rankings of numbered alternatives with their counts (.soc .soi .toc .toi)."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import IO

from witan.core.ballot import Ballot, Groups
from witan.core.ballot_records import Unreadable
from witan.errors import BallotFileError
from witan.files.ballots.cells import escape_controls, restore_controls
from witan.files.ballots.opening import OpenedFile
from witan.files.ballots.problems import ProblemReport

MOST_ALIKE = 1_000_000
"""Voters of one order beyond which a count is taken for a mistake: each becomes a ballot."""

PREFLIB_KINDS = ("soc", "soi", "toc", "toi")
"""Strict or tied orders, complete or incomplete."""

_HEADER = re.compile(r"#\s*([^:]*?)\s*:\s*(.*?)\s*$")
_NAME = re.compile(r"ALTERNATIVE NAME (\d+)$")
_ORDER = re.compile(r"\{[^{}]*\}|[^,{}]+")


def read_preflib(source: OpenedFile, report: ProblemReport) -> Iterator[Ballot]:
    """Read voters as voter-1 to voter-n; the title names the session."""
    lines = ((k, line.strip()) for k, line in enumerate(source.lines(), start=1))
    numbered = ((k, line) for k, line in lines if line)
    election = _Election(source.path, source.stem)
    yield from election.ballots(numbered, report)


class _Election:
    """Alternatives and voters of one file so far."""

    def __init__(self, path: str, stem: str) -> None:
        self.path, self.session = path, stem
        self.names: dict[str, str] = {}
        self.said_voters: tuple[int, int] | None = None
        self.n_voters = 0

    def ballots(
        self, numbered: Iterator[tuple[int, str]], report: ProblemReport
    ) -> Iterator[Ballot]:
        """Ballots of all lines; an unreadable line loses only its voters."""
        for line, text in numbered:
            try:
                if text.startswith("#"):
                    self._header(line, text)
                    continue
                if not self.names:
                    self._old_header(line, text, numbered)
                    continue
                count, groups = self._order(text)
            except Unreadable as flaw:
                report(line, flaw)
                continue
            yield from self._cast(count, groups)
        if self.said_voters and self.said_voters[1] != self.n_voters and not report.n_problems:
            line, voters = self.said_voters
            report(
                line, Unreadable(None, f"says {voters:,} voters, the file has {self.n_voters:,}")
            )

    def _header(self, line: int, text: str) -> None:
        match = _HEADER.match(text)
        if match is None:
            return
        key, value = match[1].upper(), restore_controls(match[2])
        if key == "TITLE" and value:
            self.session = value
        elif key == "DATA TYPE" and value.lower() not in PREFLIB_KINDS:
            kinds = ", ".join(PREFLIB_KINDS)
            raise BallotFileError(
                self.path, f"holds PrefLib data of type {value!r}; expected one of {kinds}", line
            )
        elif key == "NUMBER VOTERS" and value.isdecimal():
            self.said_voters = (line, int(value))
        elif number := _NAME.match(key):
            self._add(number[1], value)

    def _old_header(self, line: int, text: str, numbered: Iterator[tuple[int, str]]) -> None:
        """Older header: number of alternatives, names, then voters, sum and orders."""
        if not text.isdecimal():
            raise BallotFileError(self.path, "names no alternatives before its first ranking", line)
        for _ in range(int(text)):
            line, text = next(numbered, (line, ""))
            number, comma, alternative = text.partition(",")
            if not comma or not number.strip().isdecimal():
                raise BallotFileError(
                    self.path, f"has {text[:40]!r} where 'number,name' is expected", line
                )
            self._add(number.strip(), alternative.strip())
        line, text = next(numbered, (line, ""))
        voters = text.split(",")[0].strip()
        if not voters.isdecimal() or len(text.split(",")) != 3:
            raise BallotFileError(
                self.path, f"has {text[:40]!r} where 'voters,sum,orders' is expected", line
            )
        self.said_voters = (line, int(voters))

    def _add(self, number: str, alternative: str) -> None:
        alternative = alternative or f"alternative {number}"
        if alternative in self.names.values():
            raise BallotFileError(self.path, f"gives the name {alternative!r} to two alternatives")
        self.names[str(int(number))] = alternative

    def _order(self, text: str) -> tuple[int, Groups]:
        count, mark, order = text.partition(":")
        if not mark:
            count, _, order = text.partition(",")
        if not count.strip().isdecimal():
            raise Unreadable("count", f"is {count.strip()[:40]!r}; expected a whole number")
        places = _ORDER.findall(order)
        if re.sub(r"[,\s]", "", "".join(places)) != re.sub(r"[,\s]", "", order):
            raise Unreadable("ranking", f"is {order.strip()[:60]!r}; expected such as 1,{{2,3}},4")
        groups = (self._group(place.strip()) for place in places if place.strip())
        if int(count) > MOST_ALIKE:
            problem = f"is {int(count):,}; at most {MOST_ALIKE:,} voters of one order are read"
            raise Unreadable("count", problem)
        return int(count), tuple(group for group in groups if group)

    def _group(self, place: str) -> tuple[str, ...]:
        numbers = [n.strip() for n in place.strip("{}").split(",") if n.strip()]
        for number in numbers:
            if number not in self.names:
                raise Unreadable("ranking", f"has {number!r}, which is no alternative's number")
        return tuple(self.names[number] for number in numbers)

    def _cast(self, count: int, groups: Groups) -> Iterator[Ballot]:
        candidates = tuple(self.names.values())
        for _ in range(count):
            self.n_voters += 1
            yield Ballot(
                reviewer=f"voter-{self.n_voters}",
                groups=groups,
                grades={},
                session=self.session,
                candidates=candidates,
                kind="human",
            )


def write_preflib(ballots: Iterable[Ballot], out: IO[bytes], path: str, kind: str | None) -> int:
    """Write one election, commonest ranking first; `kind` is the suffix.

    Only rankings and the session's name are held: reviewers become voters without a name.
    """
    counts, names, title = _count(ballots, path)
    numbers = {name: number for number, name in enumerate(names, start=1)}
    needed_kind = _kind(counts, len(names))
    if kind is not None and any(needed not in kind for needed in needed_kind if needed in "ti"):
        raise BallotFileError(
            path,
            f"these ballots are {needed_kind!r} (tied or incomplete); name the file .{needed_kind}",
        )
    orders = [(count, _escape(groups, numbers)) for groups, count in counts.items()]
    orders.sort(key=lambda one: (-one[0], one[1]))
    total = sum(counts.values())
    titled = {number: escape_controls(name) for name, number in numbers.items()}
    lines = [
        f"# FILE NAME: {escape_controls(path.rpartition('/')[2])}",
        f"# TITLE: {escape_controls(title)}",
        f"# DATA TYPE: {kind or needed_kind}",
        f"# NUMBER ALTERNATIVES: {len(names)}",
        f"# NUMBER VOTERS: {total}",
        f"# NUMBER UNIQUE ORDERS: {len(orders)}",
        *(f"# ALTERNATIVE NAME {number}: {name}" for number, name in titled.items()),
        *(f"{count}: {order}" for count, order in orders),
    ]
    out.write(("\n".join(lines) + "\n").encode())
    return total


def _count(ballots: Iterable[Ballot], path: str) -> tuple[Counter[Groups], Sequence[str], str]:
    """Counts of each ranking, the alternatives, and the session."""
    counts: Counter[Groups] = Counter()
    roster: dict[str, None] = {}
    mentioned: dict[str, None] = {}
    session: str | None = None
    for ballot in ballots:
        if problem := _unsupported_parts(ballot, session):
            raise BallotFileError(path, f"PrefLib cannot hold {problem}; write jsonl")
        session = ballot.session
        roster.update(dict.fromkeys(ballot.candidates or ()))
        mentioned.update(dict.fromkeys(ballot.mentioned()))
        counts[tuple(tuple(sorted(group)) for group in ballot.groups)] += 1
    names = tuple(roster | mentioned)
    for text in (*names, session or ""):
        if "\n" in text:
            raise BallotFileError(path, f"PrefLib cannot hold a line break, as in {text!r}")
    return counts, names, session or ""


def _unsupported_parts(ballot: Ballot, session: str | None) -> str | None:
    """Parts of a ballot unsupported by PrefLib, if any."""
    if session is not None and ballot.session != session:
        return f"several sessions ({session!r} and {ballot.session!r})"
    placed = [candidate for group in ballot.groups for candidate in group]
    parts = {
        "grades": bool(ballot.grades),
        "abstentions": ballot.abstained or not placed,
        "comparisons of pairs": ballot.paired,
        "weights": ballot.weight != 1.0,
        "a candidate ranked more than once": len(set(placed)) < len(placed),
    }
    problem = next((what for what, is_held in parts.items() if is_held), None)
    return problem and f"{problem} (the ballot of {ballot.reviewer})"


def _kind(counts: Iterable[Groups], n_alternatives: int) -> str:
    orders = list(counts)
    tied = any(len(group) > 1 for groups in orders for group in groups)
    complete = all(sum(map(len, groups)) == n_alternatives for groups in orders)
    return ("to" if tied else "so") + ("c" if complete else "i")


def _escape(groups: Groups, numbers: dict[str, int]) -> str:
    places = []
    for group in groups:
        inside = ",".join(str(number) for number in sorted(numbers[name] for name in group))
        places.append(inside if len(group) == 1 else f"{{{inside}}}")
    return ",".join(places)
