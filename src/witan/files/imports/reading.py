"""Sessions from any file that holds some: unpack it, recognise its format, and read it."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import IO, Any

from witan.core.ballot_records import Unreadable, session_name
from witan.core.scale import Scale
from witan.deliberation.imported_session import Imported
from witan.errors import InvalidParameter
from witan.files.ballots.columns import check_columns
from witan.files.ballots.contents import Content, content_of
from witan.files.ballots.csv_pairs import PairSessions
from witan.files.ballots.formats import check_format
from witan.files.ballots.opening import open_source
from witan.files.ballots.plain import refuse_columns
from witan.files.ballots.problems import Problem, Report
from witan.files.ballots.scales import scaled_parts
from witan.files.imports.answers import Beside
from witan.files.imports.ballots import read_ballot_pieces
from witan.files.imports.battles import people_apart, read_battles
from witan.files.imports.conversations import read_conversations
from witan.files.imports.evaluations import joined_ballots, read_inspect, read_promptfoo
from witan.files.imports.gathering import gathered
from witan.files.imports.preferences import preferences_as_battles
from witan.files.imports.session_lines import read_session_lines

__all__ = ["read_imports", "sessions_of"]

File = str | Path | IO[Any]


def read_imports(  # noqa: PLR0913 - all but the path by name
    path: File,
    *,
    format: str | None = None,  # noqa: A002 - the word users know from the command line
    answers: Iterable[File] = (),
    questions: Iterable[File] = (),
    columns: Mapping[str, str] | None = None,
    scale: Scale | str | None = None,
    category: str | None = None,
    at: datetime | None = None,
    session_prefix: str = "",
    on_problem: Callable[[Problem], None] | None = None,
    on_note: Callable[[str], None] | None = None,
) -> Iterator[Imported]:
    """Read the sessions of a file, a stream, or ``-`` for standard input.

    All that a file says of a session is one `Imported`, wherever in it it stands.

    Parameters
    ----------
    format
        One of `FORMATS`; None: it is recognised from the content.
    answers, questions
        Files beside it, as JSON Lines. Sessions that it does not hold are passed over in them.
    columns
        Which column holds a field, as `read_ballots` takes it.
    scale
        On which all grades are given, as `read_ballots` takes it.
    category, at
        Of sessions of which the file does not say it.
    session_prefix
        Stands before the name of every session but whole council sessions, which keep theirs.
    on_problem
        Gets each line that cannot be read, which is left out, and what is odd about others, which
        come in: a ballot that says nothing, a grade off the scale, a pair judged again. None: the
        first that cannot be read raises.
    on_note
        Is told how the file is read, where that is not plain from its columns.

    Raises
    ------
    BallotFileError
        If the file cannot be read at all.
    UnknownName
        If there is no such format.
    InvalidParameter
        If no name can begin with the prefix.
    """
    if format is not None:
        check_format(format)
    check_columns(columns or {})
    _check_prefix(session_prefix)
    finish = _Finish(category, at, session_prefix)
    declared = Scale.parse(scale) if isinstance(scale, str) else scale
    reading = format, columns or {}, declared
    return _read(path, reading, (answers, questions), finish, (on_problem, on_note))


def _check_prefix(prefix: str) -> None:
    try:
        session_name("session_prefix", prefix)
    except Unreadable as flaw:
        raise InvalidParameter("session_prefix", prefix, "text that a name can hold") from flaw


def _read(
    path: File,
    reading: tuple[str | None, Mapping[str, str], Scale | None],
    beside: tuple[Iterable[File], Iterable[File]],
    finish: "_Finish",
    saying: tuple[Callable[[Problem], None] | None, Callable[[str], None] | None],
) -> Iterator[Imported]:
    on_problem, on_note = saying
    told = Beside()
    for answers in beside[0]:
        told.answers(answers, on_problem)
    for questions in beside[1]:
        told.questions(questions, on_problem)
    with open_source(path) as source:
        report = Report(source.path, on_problem, doubting=True, on_note=on_note)
        given, columns, scale = reading
        content = content_of(source, given, columns)
        if content is not None:
            for one in sessions_of(content, columns, report, scales=(scale, None)):
                yield finish(told.joined(one))


class _Finish:
    """Fills in what the file does not say, and names the session."""

    def __init__(self, category: str | None, at: datetime | None, prefix: str) -> None:
        self.category, self.at, self.prefix = category, at, prefix

    def __call__(self, one: Imported) -> Imported:
        """The session as the caller wants it."""
        whole = replace(
            one,
            at=self.at if one.at is None else one.at,
            category=self.category if one.category is None else one.category,
        )
        if not self.prefix or one.session_record is not None:
            return whole
        session = self.prefix + one.session
        ballots = tuple(replace(ballot, session=session) for ballot in one.ballots)
        return replace(whole, session=session, ballots=ballots)


def sessions_of(
    content: Content,
    columns: Mapping[str, str],
    report: Report,
    *,
    scales: tuple[Scale | None, Scale | None] = (None, None),
    apart: bool = True,
) -> Iterator[Imported]:
    """The sessions of a file whose format is known.

    Parameters
    ----------
    scales
        On which all grades are given, and on which those are whose ballot declares none.
    apart
        A battle without an id is a session of its own; else all of them are one without a name.
    """
    if content.format == "sessions":
        refuse_columns(content, columns)
        whole = scales[0], Scale()  # who wrote them named every scale but 1-10
        return _scaled(read_session_lines(content.source, report), report, whole)
    if content.format == "conversations":
        refuse_columns(content, columns)
        return read_conversations(content.source, report)
    if content.format in ("battles", "preferences"):
        stem, rows = content.source.stem, content.records(report)
        if content.format == "preferences":
            rows = preferences_as_battles(rows, columns, stem, report)
        battles = read_battles(rows, columns, report, PairSessions(stem, apart=apart))
        return map(people_apart, gathered(battles))
    if content.format in ("promptfoo", "inspect"):
        refuse_columns(content, columns)
        pieces = (
            read_promptfoo(content.records(report), content.source.stem, report)
            if content.format == "promptfoo"
            else read_inspect(content.records(report), report)
        )
        return map(joined_ballots, gathered(_scaled(pieces, report, scales)))
    return gathered(_scaled(read_ballot_pieces(content, columns, report), report, scales))


def _scaled(
    pieces: Iterable[Imported], report: Report, scales: tuple[Scale | None, Scale | None]
) -> Iterator[Imported]:
    parts = ((replace(piece, ballots=()), piece.ballots) for piece in pieces)
    for piece, ballots in scaled_parts(parts, report, *scales):
        yield replace(piece, ballots=ballots)
