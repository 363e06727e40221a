"""What to say of a table that has none of the known shapes: the nearest, and the way on."""

import shlex
from collections.abc import Callable, Mapping, Sequence
from difflib import SequenceMatcher

from witan.errors import BallotFileError
from witan.files.ballots.columns import ALIASES, Header, folded
from witan.files.ballots.csv_pairs import OUTCOMES
from witan.files.ballots.wide import is_grade

__all__ = ["no_table", "unrecognised"]

Recogniser = Callable[[Sequence[str], Sequence[Sequence[str]], Mapping[str, str], str], str | None]

_SHAPES: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "csv": ("a reviewer's word on one candidate a row", ("reviewer", "candidate", "grade")),
    "csv-pairs": ("one comparison a row", ("first", "second", "outcome")),
}
"""By format what a row is, and which columns it needs."""

_WIDE = {"csv-judges": "a column per judge", "csv-models": "a column per model"}


def no_table(path: str, first: str) -> BallotFileError:
    """The error for a text whose first line is none of a table."""
    shown = first if len(first) <= 60 else first[:60] + "…"
    expected = "columns such as session, reviewer, candidate and grade"
    problem = (
        f"is not recognised as ballots by its first line, {shown!r}; expected JSON objects, a "
    )
    return BallotFileError(path, f"{problem}PrefLib header, or a table with {expected}")


def unrecognised(
    path: str,
    names: Sequence[str],
    sample: Sequence[Sequence[str]],
    columns: Mapping[str, str],
    recogniser: Recogniser,
) -> BallotFileError:
    """The error for a table that is not recognised, with the nearest shape and a command."""
    shown = ", ".join(name for name in names[:12] if name)
    header = Header(names, columns, path)
    found = {
        shape: [field for field in fields if field in header]
        for shape, (_, fields) in _SHAPES.items()
    }
    nearest = max(found, key=lambda shape: len(found[shape]))
    told, fields = _SHAPES[nearest]
    missing = [field for field in fields if field not in header]
    problem = f"is no table that is recognised; its columns are {shown}"
    if found[nearest]:
        held = " and ".join(f"{field} in {header.column(field)!r}" for field in found[nearest])
        problem += f"; nearest is {nearest}, {told}, with {held}"
    else:
        problem += f"; expected {nearest}, {told}"
    problem += f", but no column for {' and '.join(missing) if missing else 'what it needs'}"
    way_on = _way_on(header, missing, sample, columns, recogniser)
    return BallotFileError(path, f"{problem}; {way_on}")


def _way_on(
    header: Header,
    missing: Sequence[str],
    sample: Sequence[Sequence[str]],
    columns: Mapping[str, str],
    recogniser: Recogniser,
) -> str:
    """The command that would read it, tried before it is said; else how to call the columns."""
    tries = [missing]
    if "candidate" in header:  # who judged need not be said: the file stands for it
        tries.append([field for field in missing if field != "reviewer"])
    for fields in tries:
        guessed = _guess(header, fields, sample)
        given = {**columns, **(guessed or {})}
        if guessed and recogniser(header.names, sample, given, header.path) is not None:
            options = " ".join(f"--column {shlex.quote(f'{f}={c}')}" for f, c in given.items())
            meant = " and ".join(f"{f} is {c!r}" for f, c in guessed.items())
            return f"if {meant}: witan tally {shlex.quote(header.path)} {options}"
    if "candidate" in header and sum(_grades(p, sample) for p in _free(header)) > 1:
        return "if each column of grades is a judge: add --format csv-judges"
    wanted = [f"{field} ({', '.join(ALIASES[field][:3])})" for field in missing]
    return f"add a column for {' and '.join(wanted)}, or name it with --column FIELD=HEADER"


def _free(header: Header) -> list[int]:
    taken = header.places(ALIASES)
    return [place for place, name in enumerate(header.names) if name and place not in taken]


def _guess(
    header: Header, missing: Sequence[str], sample: Sequence[Sequence[str]]
) -> dict[str, str] | None:
    """Which column might hold each field that is missing; None: there are too few."""
    free, guessed = _free(header), {}
    for field in missing:
        fitting = [place for place in free if _fits(header, field, place, sample)]
        if not fitting:
            return None
        place = max(fitting, key=lambda place: _likeness(field, header.names[place]))
        guessed[field] = header.names[place]
        free.remove(place)
    if guessed and free and "session" not in header and "question" not in header:
        guessed["session"] = header.names[free[0]]
    return guessed


def _fits(header: Header, field: str, place: int, sample: Sequence[Sequence[str]]) -> bool:
    """Whether the cells of a column may be those of a field."""
    if field == "outcome":
        sides = [header.cell(side) for side in ("first", "second")]
        return all(
            folded(row[place]) in OUTCOMES or row[place] in [cell(row) for cell in sides]
            for row in sample
        )
    return _grades(place, sample) == (field == "grade")


def _grades(place: int, sample: Sequence[Sequence[str]]) -> bool:
    cells = [row[place].strip() for row in sample if place < len(row) and row[place].strip()]
    return bool(cells) and all(map(is_grade, cells))


def _likeness(field: str, name: str) -> float:
    return max(SequenceMatcher(None, folded(name), alias).ratio() for alias in ALIASES[field])
