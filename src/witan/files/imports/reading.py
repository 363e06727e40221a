"""Sessions from any file: unpack, recognise, read."""

import hashlib
import pickle
import shutil
import sqlite3
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import fields, replace
from datetime import datetime
from heapq import merge
from itertools import groupby
from operator import attrgetter, itemgetter
from pathlib import Path
from typing import IO, Any, cast

from witan.core.ballot import Ballot
from witan.core.ballot_records import Unreadable, session_name
from witan.core.scale import Scale
from witan.deliberation.record import Imported
from witan.errors import BallotFileError, InvalidParameter
from witan.files.ballots.columns import check_columns
from witan.files.ballots.formats import Content, check_format, content_of, refuse_columns
from witan.files.ballots.opening import open_source, unreadable_file
from witan.files.ballots.problems import LineProblem, ProblemReport
from witan.files.ballots.scales import scale_parts
from witan.files.ballots.tables import PairSessions
from witan.files.imports.ballots import Beside, read_ballot_pieces
from witan.files.imports.battles import number_people, preferences_as_battles, read_battles
from witan.files.imports.conversations import read_conversations
from witan.files.imports.evaluations import join_ballots, read_inspect, read_promptfoo
from witan.files.imports.session_lines import read_session_lines

MOST_HELD = 200_000_000
"""Bytes, as far as they can be told, that are held in memory; beyond, all is laid aside on disk."""

_PIECE_BYTES = 1_500
"""What a piece takes without the texts of its answers, about."""

# The values of a dataclass in order: they are packed three times as fast as the dataclass itself.
_OF_PIECE = attrgetter(*(field.name for field in fields(Imported)))
_OF_BALLOT = attrgetter(*(field.name for field in fields(Ballot)))
_BALLOTS = [field.name for field in fields(Imported)].index("ballots")


def gather(pieces: Iterable[Imported], most: int = MOST_HELD) -> Iterator[Imported]:
    """Gather pieces into sessions, in order of first mention.

    Of what can be said once, the first word counts; the earliest time; of two texts of one
    answer the last.
    """
    numbers: dict[str, int] = {}
    buffered: list[tuple[int, Imported]] = []
    size = 0
    with closing(sqlite3.connect("")) as aside:  # without a name, it lives in a temporary file
        aside.execute("CREATE TABLE pieces (number INTEGER, place INTEGER PRIMARY KEY, body BLOB)")
        for piece in pieces:
            buffered.append((numbers.setdefault(piece.session, len(numbers)), piece))
            size += _PIECE_BYTES + sum(map(len, piece.answers.values()))
            if size >= most:
                _lay_aside(aside, buffered)
                buffered, size = [], 0
        buffered.sort(key=itemgetter(0))
        rows = merge(_taken_up(aside), buffered, key=itemgetter(0))
        for _, group in groupby(rows, key=itemgetter(0)):
            yield _whole([piece for _, piece in group])


def _lay_aside(aside: sqlite3.Connection, pieces: list[tuple[int, Imported]]) -> None:
    rows = ((number, pickle.dumps(_pack(piece), -1)) for number, piece in pieces)
    aside.executemany("INSERT INTO pieces (number, body) VALUES (?, ?)", rows)


def _taken_up(aside: sqlite3.Connection) -> Iterator[tuple[int, Imported]]:
    rows: Iterator[Any] = aside.execute("SELECT number, body FROM pieces ORDER BY number, place")
    # They were pickled above, into a file that nobody else can name.
    return ((number, _unpack(pickle.loads(body))) for number, body in rows)  # noqa: S301


def _pack(piece: Imported) -> list[Any]:
    values = list(_OF_PIECE(piece))
    values[_BALLOTS] = [_OF_BALLOT(ballot) for ballot in piece.ballots]
    return values


def _unpack(values: list[Any]) -> Imported:
    values[_BALLOTS] = tuple(Ballot(*fields) for fields in values[_BALLOTS])
    return Imported(*values)


def _whole(pieces: list[Imported]) -> Imported:
    first = pieces[0]
    if len(pieces) == 1:
        return first
    times = [piece.at for piece in pieces if piece.at is not None]
    return replace(
        first,
        at=min(times, default=None),
        question=next((piece.question for piece in pieces if piece.question), ""),
        category=next((p.category for p in pieces if p.category is not None), None),
        ballots=tuple(ballot for piece in pieces for ballot in piece.ballots),
        answers={c: text for piece in pieces for c, text in piece.answers.items()},
        lengths={c: length for piece in pieces for c, length in piece.lengths.items()},
        closing=next((p.closing for p in pieces if p.closing is not None), None),
        simulated=any(piece.simulated for piece in pieces),
    )


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
    on_problem: Callable[[LineProblem], None] | None = None,
    on_note: Callable[[str], None] | None = None,
) -> Iterator[Imported]:
    """Read the sessions of a file, a stream, or ``-`` (standard input).

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
    saying: tuple[Callable[[LineProblem], None] | None, Callable[[str], None] | None],
) -> Iterator[Imported]:
    on_problem, on_note = saying
    extra = Beside()
    for answers in beside[0]:
        extra.answers(answers, on_problem)
    for questions in beside[1]:
        extra.questions(questions, on_problem)
    with open_source(path) as source:
        report = ProblemReport(source.path, on_problem, doubting=True, on_note=on_note)
        source_format, columns, scale = reading
        content = content_of(source, source_format, columns)
        if content is not None:
            for one in read_sessions(content, columns, report, scales=(scale, None)):
                yield finish(extra.joined(one))


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


def read_sessions(
    content: Content,
    columns: Mapping[str, str],
    report: ProblemReport,
    *,
    scales: tuple[Scale | None, Scale | None] = (None, None),
    apart: bool = True,
) -> Iterator[Imported]:
    """The sessions of a file of known format.

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
        return _scale(read_session_lines(content.source, report), report, whole)
    if content.format == "conversations":
        refuse_columns(content, columns)
        return read_conversations(content.source, report)
    if content.format in ("battles", "preferences"):
        stem, rows = content.source.stem, content.records(report)
        if content.format == "preferences":
            rows = preferences_as_battles(rows, columns, stem, report)
        battles = read_battles(rows, columns, report, PairSessions(stem, apart=apart))
        return map(number_people, gather(battles))
    if content.format in ("promptfoo", "inspect"):
        refuse_columns(content, columns)
        pieces = (
            read_promptfoo(content.records(report), content.source.stem, report)
            if content.format == "promptfoo"
            else read_inspect(content.records(report), report)
        )
        return map(join_ballots, gather(_scale(pieces, report, scales)))
    return gather(_scale(read_ballot_pieces(content, columns, report), report, scales))


def _scale(
    pieces: Iterable[Imported], report: ProblemReport, scales: tuple[Scale | None, Scale | None]
) -> Iterator[Imported]:
    parts = ((replace(piece, ballots=()), piece.ballots) for piece in pieces)
    for piece, ballots in scale_parts(parts, report, *scales):
        yield replace(piece, ballots=ballots)


_CHUNK = 1 << 20


def import_files(path: str | Path) -> tuple[str, ...]:
    """The file of a name, or files in a folder of conversations.

    Raises
    ------
    BallotFileError
        If the folder cannot be read, or holds no ``.json`` file.
    """
    folder = Path(path)
    if str(path) == "-" or not folder.is_dir():
        return (str(path),)
    try:
        entries = sorted(folder.iterdir())
    except OSError as error:
        raise unreadable_file("be read", str(path), error) from error
    files = tuple(str(one) for one in entries if one.suffix == ".json")
    if not files:
        problem = "is a folder without a .json file; name the files in it" if entries else (
            "is an empty folder; name a file, or a folder that holds .json files"
        )  # fmt: skip
        raise BallotFileError(str(path), problem)
    return files


@contextmanager
def rereadable_file(path: str | Path) -> Iterator[str | Path | IO[bytes]]:
    """A rereadable file: standard input and pipes are spooled first.

    Raises
    ------
    BallotFileError
        If a pipe cannot be read.
    """
    is_standard = str(path) == "-"
    if not is_standard and not Path(path).is_fifo():
        yield path
        return
    with ExitStack() as stack:
        file = stack.enter_context(tempfile.TemporaryFile())
        try:
            piped: IO[Any] = getattr(sys.stdin, "buffer", sys.stdin)
            if not is_standard:
                piped = stack.enter_context(Path(path).open("rb"))
            shutil.copyfileobj(piped, file)
        except OSError as error:
            raise unreadable_file("be read", str(path), error) from error
        file.seek(0)
        cast("Any", file).raw.name = "stdin" if is_standard else str(path)  # what errors call it
        yield file


def digest_of(sources: Iterable[str | Path | IO[bytes]], **meaning: object) -> str:
    """Checksum of contents in order, and of options affecting their meaning.

    An option that is None, empty or False says nothing. A stream is left at its beginning.

    Raises
    ------
    BallotFileError
        If a file cannot be read.
    """
    whole = hashlib.sha256()
    for source in sources:
        one = hashlib.sha256()
        if isinstance(source, str | Path):
            try:
                with Path(source).open("rb") as file:
                    _take(one, file)
            except OSError as error:
                raise unreadable_file("be read", str(source), error) from error
        else:
            source.seek(0)
            _take(one, source)
            source.seek(0)
        whole.update(one.digest())
    for name, value in sorted(meaning.items()):
        if value not in (None, False, "", (), []):
            whole.update(f"\0{name}={value!r}".encode())
    return whole.hexdigest()


def _take(digest: Any, file: IO[bytes]) -> None:
    while piece := file.read(_CHUNK):
        digest.update(piece)
