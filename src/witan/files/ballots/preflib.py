"""PrefLib: rankings of numbered alternatives with counts (.soc .soi .toc .toi)."""

import re
from collections.abc import Iterator

from witan.core.ballot import Ballot, Groups
from witan.core.ballot_records import Unreadable
from witan.errors import BallotFileError
from witan.files.ballots.columns import restore_controls
from witan.files.ballots.opening import OpenedFile
from witan.files.ballots.problems import ProblemReport

MAX_EQUAL_VOTERS = 1_000_000
"""Maximum number of voters per order, each of whom becomes a ballot."""

PREFLIB_KINDS = ("soc", "soi", "toc", "toi")
"""Strict or tied orders, complete or incomplete."""

_HEADER = re.compile(r"#\s*([^:]*?)\s*:\s*(.*?)\s*$")
_NAME = re.compile(r"ALTERNATIVE NAME (\d+)$")
_ORDER = re.compile(r"\{[^{}]*\}|[^,{}]+")


def read_preflib(source: OpenedFile, report: ProblemReport) -> Iterator[Ballot]:
    """Read voters as voter-1 to voter-n; the title names the session."""
    lines = ((k, line.strip()) for k, line in enumerate(source.lines(), start=1))
    numbered_lines = ((k, line) for k, line in lines if line)
    election = _Election(source.path, source.stem)
    yield from election.ballots(numbered_lines, report)


class _Election:
    """Alternatives and voters of one file so far."""

    def __init__(self, path: str, stem: str) -> None:
        self.path, self.session = path, stem
        self.names: dict[str, str] = {}
        self.stated_voters: tuple[int, int] | None = None
        self.n_voters = 0

    def ballots(
        self, numbered_lines: Iterator[tuple[int, str]], report: ProblemReport
    ) -> Iterator[Ballot]:
        """Yield the ballots of all lines; unreadable lines are reported."""
        for line, text in numbered_lines:
            try:
                if text.startswith("#"):
                    self._header(line, text)
                    continue
                if not self.names:
                    self._old_header(line, text, numbered_lines)
                    continue
                count, groups = self._order(text)
            except Unreadable as flaw:
                report(line, flaw)
                continue
            yield from self._repeat_ballot(count, groups)
        if self.stated_voters and self.stated_voters[1] != self.n_voters and not report.n_problems:
            line, voters = self.stated_voters
            report(
                line,
                Unreadable(None, f"declares {voters:,} voters, the file has {self.n_voters:,}"),
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
                self.path, f"contains PrefLib data of type {value!r}; expected one of {kinds}", line
            )
        elif key == "NUMBER VOTERS" and value.isdecimal():
            self.stated_voters = (line, int(value))
        elif number := _NAME.match(key):
            self._add(number[1], value)

    def _old_header(self, line: int, text: str, numbered_lines: Iterator[tuple[int, str]]) -> None:
        """Read an older header: alternatives, their names, voters, sum and orders."""
        if not text.isdecimal():
            raise BallotFileError(self.path, "names no alternatives before its first ranking", line)
        for _ in range(int(text)):
            line, text = next(numbered_lines, (line, ""))
            number, comma, alternative = text.partition(",")
            if not comma or not number.strip().isdecimal():
                raise BallotFileError(
                    self.path, f"has {text[:40]!r} where 'number,name' is expected", line
                )
            self._add(number.strip(), alternative.strip())
        line, text = next(numbered_lines, (line, ""))
        voters = text.split(",")[0].strip()
        if not voters.isdecimal() or len(text.split(",")) != 3:
            raise BallotFileError(
                self.path, f"has {text[:40]!r} where 'voters,sum,orders' is expected", line
            )
        self.stated_voters = (line, int(voters))

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
            raise Unreadable(
                "ranking", f"is {order.strip()[:60]!r}; expected an order such as 1,{{2,3}},4"
            )
        groups = (self._group(place.strip()) for place in places if place.strip())
        if int(count) > MAX_EQUAL_VOTERS:
            problem = f"is {int(count):,}; the maximum is {MAX_EQUAL_VOTERS:,} voters per order"
            raise Unreadable("count", problem)
        return int(count), tuple(group for group in groups if group)

    def _group(self, place: str) -> tuple[str, ...]:
        numbers = [n.strip() for n in place.strip("{}").split(",") if n.strip()]
        for number in numbers:
            if number not in self.names:
                raise Unreadable(
                    "ranking", f"has {number!r}, which is not the number of an alternative"
                )
        return tuple(self.names[number] for number in numbers)

    def _repeat_ballot(self, count: int, groups: Groups) -> Iterator[Ballot]:
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
