"""Ballots exactly as cast, as records, tables of grades and single opinions.

Reading is strict; writing loses nothing.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from itertools import chain, groupby
from math import inf, isfinite, isinf, isnan
from operator import attrgetter, itemgetter
from typing import Any, Literal, overload

from witan.core.bounds import Amount
from witan.core.display import brief, list_names
from witan.core.scale import NUMBER_TYPES, Scale
from witan.errors import InvalidBallot, InvalidParameter, Remedy, UnknownName

Groups = tuple[tuple[str, ...], ...]
"""A weak order over candidates: groups of tied candidates, best first."""

Grade = float | str
"""A grade as written: a number, or text such as ``"8"``, ``"8/10"`` or ``"80%"``."""

Kind = Literal["model", "human"]

PEOPLE = "people"
"""The name of all people as one group; reserved."""


@dataclass(frozen=True, slots=True)
class Ballot:
    """One reviewer's ranking, grades or abstention in one session.

    A ballot is stored as cast, mistakes included: labels may be unknown or repeated, and grades may
    be text or out of range. `witan.core.interpretation` decides what counts and adds warnings.

    Parameters
    ----------
    category
        The category of its session.
    at
        When it was cast.
    kind
        Whether a model or a person cast it.
    question
        Text of the question, if known.
    notes
        Remarks on the ballot.
    reviewer
        Who cast it.
    groups
        The ranking, best group first; candidates in one group are tied. Empty: no ranking.
    grades
        Per candidate either one holistic grade, or a mapping from criterion to grade, in which
        the key ``overall`` is the reviewer's own holistic grade.
    session
        Name of its session.
    abstained, reason
        Whether the reviewer abstained, and why.
    candidates
        All candidates on offer, in seat order; None: unknown.
    authors
        Author by candidate, if different from the candidate's name.
    positions
        Place on the sheet per candidate, 1-based.
    weight
        Non-negative; 1 by default.
    paired
        Whether the ballot compares just two candidates. A reviewer may cast several such ballots
        in a session; both orders of a pair count as one opinion.
    scale
        Scale of the grades; None: recognised from all ballots that are counted together.
    """

    reviewer: str
    groups: Groups = ()
    grades: Mapping[str, Grade | Mapping[str, Grade]] = field(default_factory=dict)
    session: str = ""
    abstained: bool = False
    reason: str | None = None
    candidates: tuple[str, ...] | None = None
    authors: Mapping[str, str] | None = None
    positions: Mapping[str, int] | None = None
    weight: Amount = 1.0
    category: str | None = None
    at: datetime | None = None
    kind: Kind = "model"
    question: str | None = None
    notes: str | None = None
    paired: bool = False
    scale: Scale | None = None

    def __post_init__(self) -> None:
        # A ballot may come from code without type checks.
        reviewer: object = self.reviewer
        grades: object = self.grades
        weight: object = self.weight
        scale: object = self.scale
        plain = type(reviewer) is str and type(grades) is dict and type(weight) is float
        if plain and not self.groups and type(scale) is not str:
            return  # fast path for the usual ballot
        if not isinstance(reviewer, str):
            raise InvalidBallot(repr(reviewer), "names its reviewer by something but text")
        for group in self.groups:
            members: object = group
            # Iterating over a string would make each letter a candidate.
            if isinstance(members, str) or not all(isinstance(name, str) for name in group):
                raise InvalidBallot(reviewer, f"ranks {group!r}, which is not a group of names")
        if isinstance(scale, str):
            object.__setattr__(self, "scale", Scale.parse(scale))
        if not isinstance(grades, Mapping):
            raise InvalidBallot(reviewer, f"grades by {grades!r}, which is not a mapping")
        if not isinstance(weight, int | float):
            raise InvalidBallot(reviewer, f"weighs {weight!r}, which is not a number")

    def __repr__(self) -> str:
        of = f" in {brief(str(self.session))}" if self.session else ""
        if self.abstained:
            vote = "abstains"
        elif self.groups:
            vote = brief(" > ".join(" = ".join(group) for group in self.groups))[1:-1]
        else:
            vote = f"grades {list_names(map(str, self.grades), most=2) or 'nobody'}"
        return f"<Ballot of {brief(self.reviewer)}{of}: {vote}>"

    def with_scale(self, scale: Scale) -> "Ballot":
        """Return the ballot with this scale, three times as fast as `replace`."""
        return Ballot(*(*_BEFORE_SCALE(self), scale))

    def candidate_names(self) -> tuple[str, ...]:
        """Every candidate named on the ballot, in the order of first mention."""
        names = chain(self.candidates or (), chain.from_iterable(self.groups), self.grades)
        return tuple(dict.fromkeys(names))


_BEFORE_SCALE = attrgetter(*[each.name for each in fields(Ballot)][:-1])


def is_unnamed(person: str) -> bool:
    """Recognise the names of unnamed voters: ``human``, ``human-2`` and so on."""
    return re.fullmatch(r"human(-\d+)?", person, re.IGNORECASE) is not None


def one_opinion_each(
    session: str, ballots: Sequence[Ballot], warnings: list[str]
) -> tuple[list[Ballot], dict[str, tuple[int, int]]]:
    """Keep each reviewer's last ballot; merge both orders of a pair.

    If the comparisons are battles (`are_battles`), each of them counts.
    """
    ballots_by_reviewer: dict[str, Ballot] = {}
    battles: list[Ballot] = []
    are_comparisons = are_battles(session, ballots)
    if are_comparisons:
        warnings.append(
            "the comparisons name no session, and some judge a pair again in the same order; each "
            "counts as a battle of its own (a column session or prompt groups them)"
        )
    pairs: dict[tuple[str, frozenset[str]], dict[tuple[str, ...], Ballot]] = {}
    for ballot in ballots:
        if ballot.paired and are_comparisons:
            battles.append(ballot)
        elif ballot.paired:
            pair = shown_pair(ballot)
            opinions = pairs.setdefault((ballot.reviewer, frozenset(pair)), {})
            if pair in opinions:
                warnings.append(
                    f"{ballot.reviewer} judged {pair[0]} against {pair[1]} more than once in the "
                    "same order; the last counts"
                )
            opinions[pair] = ballot
        else:
            if ballot.reviewer in ballots_by_reviewer:
                warnings.append(f"{ballot.reviewer} cast more than one ballot; the last counts")
                del ballots_by_reviewer[ballot.reviewer]
            ballots_by_reviewer[ballot.reviewer] = ballot
    merged = [*ballots_by_reviewer.values(), *battles]
    if not pairs:
        return merged, {}
    order_counts: Counter[str] = Counter()
    n_both_orders: Counter[str] = Counter()
    for (reviewer, _), opinions in pairs.items():
        opinion, order_kept = _merge_orders(list(opinions.values()))
        merged.append(opinion)
        if order_kept is not None:
            n_both_orders[reviewer] += 1
            order_counts[reviewer] += order_kept
    return merged, {
        reviewer: (order_counts[reviewer], n_both_orders[reviewer]) for reviewer in n_both_orders
    }


def are_battles(session: str, ballots: Sequence[Ballot]) -> bool:
    """True if repeated comparisons show that the answers differ each time.

    In a session, a reviewer compares two answers in the same order only once. Repeated comparisons
    without a session are therefore about answers to different questions.
    """
    if session:
        return False
    pairs: set[tuple[str, tuple[str, ...]]] = set()
    for ballot in ballots:
        if ballot.paired:
            opinion = (ballot.reviewer, shown_pair(ballot))
            if opinion in pairs:
                return True
            pairs.add(opinion)
    return False


def shown_pair(ballot: Ballot) -> tuple[str, ...]:
    """Return the two candidates of a comparison in sheet order."""
    names = ballot.candidate_names()
    positions = ballot.positions or {}
    return tuple(sorted(names, key=lambda name: (positions.get(name, 0), name)))


def _merge_orders(opinions: list[Ballot]) -> tuple[Ballot, bool | None]:
    """Merge both orders of a pair; different votes make a tie."""
    voted = [ballot for ballot in opinions if not ballot.abstained]
    if len(voted) != 2:  # more than two orders are of no pair, and dropped later
        return (voted or opinions)[0], None
    first, second = voted
    if [set(group) for group in first.groups] == [set(group) for group in second.groups]:
        return first, True
    level = (tuple(sorted(shown_pair(first))),)
    return replace(first, groups=level), False


class BallotTable(Sequence[Ballot]):
    """Ballots of models that contain only numeric grades.

    Parameters
    ----------
    sessions, reviewers
        Session and reviewer of each ballot.
    grades
        Grade by candidate for each ballot; never empty.
    scale
        Scale of all grades; None: not known yet.
    ends
        The lowest and the highest grade; None: not known yet.
    """

    __slots__ = ("ends", "grades", "reviewers", "scale", "sessions")

    def __init__(
        self,
        sessions: Sequence[str],
        reviewers: Sequence[str],
        grades: Sequence[dict[str, float]],
        scale: Scale | None = None,
        ends: tuple[float, float] | None = None,
    ) -> None:
        self.sessions, self.reviewers, self.grades = sessions, reviewers, grades
        self.scale, self.ends = scale, ends

    def __len__(self) -> int:
        return len(self.sessions)

    def __iter__(self) -> Iterator[Ballot]:
        for session, reviewer, grades in zip(
            self.sessions, self.reviewers, self.grades, strict=True
        ):
            yield Ballot(reviewer, (), grades, session, scale=self.scale)

    @overload
    def __getitem__(self, index: int) -> Ballot: ...
    @overload
    def __getitem__(self, index: slice) -> "BallotTable": ...
    def __getitem__(self, index: int | slice) -> "Ballot | BallotTable":
        if isinstance(index, slice):
            columns = (self.sessions[index], self.reviewers[index], self.grades[index])
            return BallotTable(*columns, self.scale)
        grades, session = self.grades[index], self.sessions[index]
        return Ballot(self.reviewers[index], (), grades, session, scale=self.scale)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and tuple(self) == tuple(other)

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return repr(tuple(self))

    def put_on(self, scale: Scale) -> "BallotTable":
        """The same ballots with this scale."""
        return BallotTable(self.sessions, self.reviewers, self.grades, scale, self.ends)

    def range(self) -> tuple[float, float]:
        """The lowest and the highest grade."""
        if self.ends is not None:
            return self.ends
        numbers = list(chain.from_iterable(map(dict.values, self.grades)))
        return min(numbers), max(numbers)

    def by_session(self) -> dict[str, "BallotTable"]:
        """Ballots by session, in the order of each session's first ballot."""
        rows: dict[str, list[int]] = {}
        for row, session in enumerate(self.sessions):
            rows.setdefault(session, []).append(row)
        return {session: self._take(chosen) for session, chosen in rows.items()}

    def _take(self, rows: Sequence[int]) -> "BallotTable":
        if rows[-1] - rows[0] + 1 == len(rows):
            return self[rows[0] : rows[-1] + 1]
        return BallotTable(
            [self.sessions[row] for row in rows],
            [self.reviewers[row] for row in rows],
            [self.grades[row] for row in rows],
            self.scale,
        )


class Unreadable(ValueError):
    """An unreadable field; the file's reader adds path and line.

    Parameters
    ----------
    is_read
        Whether the field is accepted anyway, with a note.
    """

    def __init__(
        self, field: str | None, problem: str, *, is_read: bool = False, remedy: Remedy | str = ""
    ) -> None:
        self.field, self.problem, self.is_read, self.remedy = field, problem, is_read, remedy
        super().__init__(field, problem)

    def __str__(self) -> str:
        return self.problem if self.field is None else f"{self.field} {self.problem}"


MOST = 2**31 - 1
"""Maximum length, or place on a sheet, that fits every table."""

KINDS = {"model": "model", "llm": "model", "human": "human", "person": "human"}
"""Kind of reviewer by each word that files use for it."""


def kind_of(value: object) -> str:
    """Name a value's JSON type."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return f"the text {value[:40]!r}"
    if isinstance(value, int | float):
        return f"the number {value:.15g}" if isinstance(value, float) else f"the number {value}"
    if isinstance(value, Mapping):
        return "a map"
    return "a list" if isinstance(value, list | tuple) else f"a {type(value).__name__}"


def name(field: str, value: object) -> str:
    """Read a name, without surrounding whitespace."""
    if type(value) is not str:
        raise Unreadable(field, f"is {kind_of(value)}; expected a name as text")
    stripped = value.strip()
    if not stripped:
        raise Unreadable(field, "is an empty name; expected at least one character")
    return stripped


def weight(value: object) -> float:
    """Read a ballot's weight."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Unreadable("weight", f"is {kind_of(value)}; expected a number of 0 or more")
    if isinstance(value, float) and (isnan(value) or isinf(value)):
        raise Unreadable(
            "weight", f"is {value}, not a JSON number; expected a finite number of 0 or more"
        )
    if value < 0:
        raise Unreadable("weight", f"is {value}, below zero; expected a number of 0 or more")
    try:
        return float(value)
    except OverflowError:
        raise Unreadable("weight", "is too large; expected a finite number of 0 or more") from None


def moment(value: object) -> datetime:
    """Read a time with its time zone."""
    expected = "expected a time such as 2025-01-31T09:30:00Z (RFC 3339)"
    value_or_time = value
    if isinstance(value, str):
        try:
            value_or_time = datetime.fromisoformat(value.strip().upper())
        except ValueError:
            raise Unreadable("at", f"is {value[:40]!r}; {expected}") from None
    if not isinstance(value_or_time, datetime):
        raise Unreadable("at", f"is {kind_of(value)}; {expected}")
    if value_or_time.tzinfo is None:
        raise Unreadable("at", f"has no time zone; {expected}")
    return check_years("at", value_or_time)


def check_years(field: str, at: datetime) -> datetime:
    """Check that a time is within years 1–9999 in every time zone."""
    try:
        for day in (-1, 1):
            (at + timedelta(days=day)).astimezone(UTC)
    except (OverflowError, ValueError):
        problem = f"is {at.isoformat()}; expected a time in the years 1 to 9999 of every zone"
        raise Unreadable(field, problem) from None
    return at


def length(field: str, value: object) -> int:
    """Read an answer's length in characters."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MOST:
        raise Unreadable(field, f"is {kind_of(value)}; expected a length from 0 to {MOST:,}")
    return value


def session_name(field: str, value: str) -> str:
    """Strip a session's name; reject one too long for a history."""
    stripped = value.strip()
    if "\0" in stripped or not is_text(stripped):
        problem = f"is {stripped[:40]!r}; expected a name without NUL and broken characters"
        raise Unreadable(field, problem)
    return stripped


def is_text(value: str) -> bool:
    """True without unpaired surrogates, so that UTF-8 can encode it."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def group_by_rank(ranked: Iterable[tuple[str, float]]) -> Groups:
    """Group candidates by rank, smallest first; ties are in file order."""
    ordered = sorted(ranked, key=itemgetter(1))
    return tuple(
        tuple(candidate for candidate, _ in group)
        for _, group in groupby(ordered, key=itemgetter(1))
    )


def _names(field: str, value: object) -> tuple[str, ...]:
    if not isinstance(value, list | tuple):
        raise Unreadable(field, f"is {kind_of(value)}; expected a list of names")
    return tuple([name(field, each) for each in value])


def _session(value: object) -> str:
    if not isinstance(value, int) or isinstance(value, bool):
        return session_name("session", _text("session", value))
    try:
        return str(value)  # ids are often numbers
    except ValueError:
        raise Unreadable("session", "is a number of too many digits; expected a name") from None


def _text(field: str, value: object) -> str:
    if not isinstance(value, str):
        raise Unreadable(field, f"is {kind_of(value)}; expected text")
    return value


def _flag(field: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise Unreadable(field, f"is {kind_of(value)}; expected true or false")
    return value


def _kind(value: object) -> str:
    if isinstance(value, str) and value.strip().casefold() in KINDS:
        return KINDS[value.strip().casefold()]
    raise Unreadable("kind", f"is {kind_of(value)}; expected 'model' or 'human'")


def _read_ranking(value: object) -> Groups:
    if isinstance(value, Mapping):
        return group_by_rank(
            (name("ranking", candidate), rank_of(candidate, rank))
            for candidate, rank in value.items()
            if rank is not None
        )
    if not isinstance(value, list | tuple):
        raise Unreadable(
            "ranking", f"is {kind_of(value)}; expected a list of names, best first, or a map"
        )
    return tuple([_group(place) for place in value])


def _group(place: object) -> tuple[str, ...]:
    if type(place) is str and place:
        stripped = place.strip()
        if stripped:
            return (stripped,)
    if not isinstance(place, list | tuple):
        return (name("ranking", place),)
    if not place:
        raise Unreadable("ranking", "has an empty group; expected the names that are tied")
    return _names("ranking", place)


def rank_of(candidate: str, rank: object) -> float:
    """Read a candidate's rank, a number from 1 up."""
    if isinstance(rank, bool) or not isinstance(rank, int | float):
        raise Unreadable(
            "ranking", f"has {kind_of(rank)} for {candidate!r}; expected a rank from 1 up"
        )
    if not 1 <= rank < inf:
        raise Unreadable("ranking", f"has rank {rank} for {candidate!r}; expected 1 or more")
    return rank


def _grades(value: object) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise Unreadable("grades", f"is {kind_of(value)}; expected a map from candidate to grade")
    if NUMBER_TYPES.issuperset(map(type, value.values())):  # the usual case
        return dict(zip(_grade_names(tuple(value)), value.values(), strict=True))
    grades: dict[str, Any] = {}
    for candidate, grade in value.items():
        if isinstance(grade, Mapping):
            grades[name("grades", candidate)] = {
                name("grades", criterion): _grade(candidate, one, "a grade")
                for criterion, one in grade.items()
            }
        else:
            wanted = "a grade, or a map from criterion to grade"
            grades[name("grades", candidate)] = _grade(candidate, grade, wanted)
    return grades


@lru_cache(maxsize=1024)
def _grade_names(candidates: tuple[object, ...]) -> tuple[str, ...]:
    """Clean names; cached, as a session's ballots name the same candidates."""
    return tuple(name("grades", candidate) for candidate in candidates)


def _grade(candidate: str, grade: Any, number: str) -> Any:
    if grade is None:
        return ""
    if isinstance(grade, int | float | str):  # true and false are grades of pass-fail
        return grade
    raise Unreadable("grades", f"has {kind_of(grade)} for {candidate!r}; expected {number}")


def _positions(value: object) -> dict[str, int]:
    if not isinstance(value, Mapping):
        raise Unreadable("positions", f"is {kind_of(value)}; expected a map to whole numbers")
    return {
        name("positions", c): position(c, place) for c, place in value.items() if place is not None
    }


def position(candidate: str, place: object) -> int:
    """Read a candidate's place on the sheet, 1-based."""
    if isinstance(place, bool) or not isinstance(place, int) or not 1 <= place <= MOST:
        raise Unreadable(
            "positions",
            f"has {kind_of(place)} for {candidate!r}; expected a whole number from 1 up",
        )
    return place


def _authors(value: object) -> dict[str, str]:
    if not isinstance(value, Mapping):
        raise Unreadable("authors", f"is {kind_of(value)}; expected a map from candidate to author")
    return {
        name("authors", candidate): name("authors", author)
        for candidate, author in value.items()
        if author is not None
    }


def scale_of(value: object) -> Scale:
    """Read the scale declared in a field or cell."""
    try:
        return Scale.of_record(value)
    except InvalidParameter as error:
        raise Unreadable("scale", f"is {kind_of(value)}; expected {error.expected}") from None


def scale_record(ballot: Ballot) -> str | dict[str, str] | None:
    """Return the scale to declare with a ballot's grades, if any."""
    return None if ballot.scale is None or not ballot.grades else ballot.scale.record()


_READERS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "reviewer": ("reviewer", lambda value: name("reviewer", value)),
    "ranking": ("groups", _read_ranking),
    "grades": ("grades", _grades),
    "session": ("session", _session),
    "abstained": ("abstained", lambda value: _flag("abstained", value)),
    "reason": ("reason", lambda value: _text("reason", value)),
    "candidates": ("candidates", lambda value: _names("candidates", value)),
    "authors": ("authors", _authors),
    "positions": ("positions", _positions),
    "weight": ("weight", weight),
    "category": ("category", lambda value: _text("category", value)),
    "at": ("at", moment),
    "kind": ("kind", _kind),
    "question": ("question", lambda value: _text("question", value)),
    "notes": ("notes", lambda value: _text("notes", value)),
    "paired": ("paired", lambda value: _flag("paired", value)),
    "scale": ("scale", scale_of),
}

FIELDS = tuple(_READERS)
"""The fields of a record in writing order."""


def read_record(record: Mapping[str, Any]) -> Ballot:
    """Read a record as a ballot; unknown fields and nulls are ignored."""
    values: dict[str, Any] = {"grades": {}}
    for key, value in record.items():
        reader = _READERS.get(key)
        if reader is not None and value is not None:
            values[reader[0]] = reader[1](value)
    if "reviewer" not in values:
        names = ", ".join(list(record)[:8])
        present = f"the record has {names}" if names else "the record is empty"
        raise Unreadable("reviewer", f"is missing; {present}; expected who cast the ballot")
    if "groups" not in values and not values["grades"]:
        _suspect_a_typing_error(record)
    return Ballot(**values)


def _suspect_a_typing_error(record: Mapping[str, Any]) -> None:
    """Reject a voteless ballot if a misspelt field may contain its vote."""
    for key in record:
        if key not in _READERS:
            unknown = UnknownName("field", key, ("ranking", "grades", "abstained"))
            if unknown.nearest is not None:
                raise Unreadable(key, f"is unknown{unknown.suggestion}")


def to_record(ballot: Ballot, *, declares: bool = False) -> dict[str, Any]:
    """Convert a ballot to a record without fields at their defaults.

    With `declares`, the record names the scale of its grades even if it is 1-10, for other readers;
    in a history and in whole sessions, 1-10 is the default.
    """
    unsaid = ballot.scale is not None and ballot.scale.is_native and not declares
    scale = None if unsaid else scale_record(ballot)
    plain: dict[str, Any] = {"session": ballot.session} if ballot.session else {}
    plain["reviewer"] = ballot.reviewer
    if ballot.groups:
        plain["ranking"] = [g[0] if len(g) == 1 else list(g) for g in ballot.groups]
    if ballot.grades:
        plain["grades"] = _writable_grades(ballot.grades)
    if scale is None and _OTHER_FIELDS(ballot) == _DEFAULTS:
        return plain
    plain |= {
        "abstained": ballot.abstained or None,
        "reason": ballot.reason,
        "candidates": None if ballot.candidates is None else list(ballot.candidates),
        "authors": None if ballot.authors is None else dict(ballot.authors),
        "positions": None if ballot.positions is None else dict(ballot.positions),
        "weight": None if ballot.weight == 1.0 else ballot.weight,
        "category": ballot.category,
        "at": None if ballot.at is None else ballot.at.isoformat(),
        "kind": None if ballot.kind == "model" else ballot.kind,
        "question": ballot.question,
        "notes": ballot.notes,
        "paired": ballot.paired or None,
        "scale": scale,
    }
    return {field: value for field, value in plain.items() if value is not None}


_OTHER_FIELDS = attrgetter(
    *("abstained", "reason", "candidates", "authors", "positions", "weight", "category", "at"),
    *("kind", "question", "notes", "paired"),
)
_DEFAULTS = (False, None, None, None, None, 1.0, None, None, "model", None, None, False)


_WRITABLE = frozenset({int, str})


def _writable_grades(grades: Mapping[str, Any]) -> dict[str, Any]:
    if _WRITABLE.issuperset(map(type, grades.values())):
        return grades if type(grades) is dict else dict(grades)
    return {
        c: _writable_grades(g) if type(g) is dict or isinstance(g, Mapping) else _writable(g)
        for c, g in grades.items()
    }


def _writable(grade: Any) -> Any:
    return json.dumps(grade) if isinstance(grade, float) and not isfinite(grade) else grade


_MARK = "simulated"


def mark_simulated(ballot: Ballot) -> Ballot:
    """Mark a ballot in its notes as part of a simulated session."""
    return replace(ballot, notes=_MARK if ballot.notes is None else f"{_MARK}; {ballot.notes}")


def is_simulated(ballot: Ballot) -> bool:
    """True for ballots of simulated sessions."""
    return ballot.notes is not None and (
        ballot.notes == _MARK or ballot.notes.startswith(f"{_MARK}; ")
    )


def unmark_simulated(ballot: Ballot) -> Ballot:
    """Return a ballot of a simulated session without the mark."""
    rest = (ballot.notes or "").removeprefix(_MARK).removeprefix("; ")
    return replace(ballot, notes=rest or None)
