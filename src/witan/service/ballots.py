"""Ballots of a caller: read once, counted, never stored."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from io import BytesIO
from typing import TYPE_CHECKING, Annotated, Literal, Protocol

from witan.core.scale import EXPECTED, Scale
from witan.errors import NothingToCount, TooLarge
from witan.service.parameters import Constraint, Doc, Parameter, Parameters, Parser, parameters_of

if TYPE_CHECKING:
    from witan.core.ballot import Ballot
    from witan.core.settings import Settings
    from witan.files.ballots import LineProblem

MOST_BALLOTS = 100_000
"""Most ballots; larger files need the command line."""

MOST_PLACED = 1_000_000
"""Most candidates on all ballots together."""

MOST_UNREAD = 10_000
"""Most unreadable lines, each of which is reported."""

MOST_BYTES = 64 * 1024 * 1024
"""Most bytes, as sent or unpacked."""

MOST_LINES = 1_000_000

LINE_BYTES = 4 * 1024 * 1024
"""Most bytes of a line."""

SECTION = "Ballots"


@dataclass(frozen=True, slots=True)
class Unread:
    """An unreadable line of the ballots, and the reason."""

    line: Annotated[int, Doc("Its number, from 1.")]
    problem: Annotated[str, Doc("Why it could not be read.")]


class Ballots(Protocol):
    """Ballots from files, a request or a form, to be read once."""

    @property
    def sessions(self) -> Mapping[str, None]:
        """Sessions of the ballots, after reading."""
        ...

    @property
    def unread_lines(self) -> Sequence[Unread]:
        """Unreadable lines, after reading."""
        ...

    def read(self, parameters: "BallotFormat", settings: "Settings") -> "Iterable[Ballot]":
        """Read the ballots by these parameters."""
        ...

    def check_wanted(self) -> None:
        """Raise if the count was cancelled."""
        ...


Grade = float | str


@dataclass(frozen=True, slots=True)
class BallotObject:
    """A ballot as an object, with the fields of JSON Lines.

    Parameters
    ----------
    reviewer
        Who cast it.
    session
        The question that it belongs to.
    ranking
        Candidates, best first; a list within the list is tied.
    grades
        Grade, or grades by criterion, by candidate.
    abstained, reason
        A seat without a ballot, and why.
    candidates
        All candidates, in seat order.
    authors
        Author by candidate, if different from the candidate's name.
    positions
        Place on the sheet by candidate, from 1.
    weight
        0 or more, by default 1.
    paired
        Whether it is one of many comparisons of two candidates.
    scale
        The scale of its grades, such as 0-1.
    at
        When it was cast (RFC 3339).
    kind
        Whether a model or a person cast it; by default a model.
    category, question
        The category, and the text, of its question.
    notes
        Remarks on it.
    """

    __pydantic_config__ = {"extra": "forbid", "allow_inf_nan": False}  # noqa: RUF012

    reviewer: str
    session: str | None = None
    ranking: tuple[str | tuple[str, ...], ...] | None = None
    grades: Mapping[str, Grade | Mapping[str, Grade]] | None = None
    abstained: bool | None = None
    reason: str | None = None
    candidates: tuple[str, ...] | None = None
    authors: Mapping[str, str] | None = None
    positions: Mapping[str, int] | None = None
    weight: Annotated[float, Constraint(ge=0)] | None = None
    kind: Literal["model", "human"] | None = None
    paired: bool | None = None
    scale: str | Mapping[str, str] | None = None
    at: str | None = None
    category: str | None = None
    question: str | None = None
    notes: str | None = None


@dataclass(slots=True)
class SentBallots:
    """Ballots as a client sent them, in any format, within bounds."""

    content: bytes
    sessions: dict[str, None] = field(default_factory=dict)
    problems: "list[LineProblem]" = field(default_factory=list)

    @classmethod
    def of(cls, ballots: "str | Sequence[BallotObject]") -> "SentBallots":
        """Take the text of a ballot file, or ballots as objects."""
        if isinstance(ballots, str):
            return cls(ballots.encode())
        records = ({k: v for k, v in asdict(each).items() if v is not None} for each in ballots)
        return cls("\n".join(map(json.dumps, records)).encode())

    @property
    def unread_lines(self) -> Sequence[Unread]:
        """Unreadable lines."""
        return tuple(Unread(each.line, each.sentence) for each in self.problems)

    def check_wanted(self) -> None:
        """Raise if the count was cancelled."""
        from witan.service.worker_pool import check_wanted

        check_wanted()

    def read(self, parameters: "BallotFormat", settings: "Settings") -> "Iterator[Ballot]":
        """Read them, within bounds."""
        from witan.files.ballots import Bounds, read_ballots

        stream = BytesIO(self.content)
        stream.name = "the text"
        n_bytes = len(self.content)
        bounds = Bounds(
            max(MOST_BYTES, n_bytes), MOST_LINES, max(LINE_BYTES, n_bytes), self.check_wanted
        )
        ballots = read_ballots(
            stream,
            format=parameters.format,
            columns=parameters.columns,
            scale=parameters.scale,
            rubric=settings.counting.rubric,
            on_problem=self._note,
            bounds=bounds,
        )
        n_candidates = 0
        for number, ballot in enumerate(ballots, start=1):
            self.check_wanted()
            n_candidates += max(sum(map(len, ballot.groups)), len(ballot.grades))
            if number > MOST_BALLOTS:
                raise TooLarge("posted ballots", number, MOST_BALLOTS)
            if n_candidates > MOST_PLACED:
                raise TooLarge("candidates on posted ballots", n_candidates, MOST_PLACED)
            self.sessions.setdefault(ballot.session)
            yield ballot
        if not self.sessions:
            reason = f" could be read: {self.problems[0]}" if self.problems else " was sent"
            raise NothingToCount(f"no ballot{reason}")

    def _note(self, problem: "LineProblem") -> None:
        self.check_wanted()
        if len(self.problems) == MOST_UNREAD:
            raise TooLarge("lines that cannot be read", MOST_UNREAD + 1, MOST_UNREAD)
        self.problems.append(problem)


BALLOTS = Parser(SentBallots.of, "ballots", data=tuple[BallotObject, ...], content=SentBallots)

SCALE = Parser(Scale.parse, EXPECTED)


@dataclass(frozen=True)
class BallotFormat(Parameters):
    """Format of ballot files, instead of detection."""

    format: Annotated[
        str | None,
        Doc("Format of the ballots; detected by default.", SECTION, label="Format of the ballots"),
    ] = None
    columns: Annotated[
        Mapping[str, str] | None,
        Doc(
            "Column that holds a field, such as reviewer=judge.",
            SECTION,
            "FIELD=HEADER",
            option="column",
            label="Names of columns",
        ),
    ] = None
    scale: Annotated[
        Scale | None,
        SCALE,
        Doc(
            "Scale of the grades, such as 0-1, pass-fail or 1-10,style=1-5; detected by default.",
            SECTION,
            "LOW-HIGH",
            label="Scale of grades",
        ),
    ] = None


@dataclass(frozen=True)
class _Ballots(Parameters):
    ballots: Annotated[
        Ballots,
        BALLOTS,
        Doc(
            "The text of a ballot file in any format that `witan import` reads; or ballots as "
            "objects with session, reviewer, ranking or grades.",
            SECTION,
            "FILE|ID...",
            positional="words",
            brief="Text of a ballot file, or objects",
        ),
    ]


@dataclass(frozen=True)
class BallotParameters(BallotFormat, _Ballots):
    """Ballots and their format."""


def find_ballots(declaration: type[Parameters]) -> Parameter | None:
    """Find the parameter that takes ballots, if any."""
    parameters = parameters_of(declaration)
    return next((each for each in parameters if each.content is SentBallots), None)
