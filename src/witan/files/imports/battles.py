"""Battles: two answers and a winner per row, as arenas publish them."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import count
from typing import Any

from witan.core.ballot import Ballot, Groups
from witan.core.ballot_records import KINDS, Unreadable, in_years, moment, session_name, weight
from witan.deliberation.imported_session import Imported
from witan.files.ballots.columns import Cell, Header, folded
from witan.files.ballots.formats import Records
from witan.files.ballots.problems import Again, Report
from witan.files.ballots.tables import OUTCOMES, PairSessions

BOTH_BAD = "both bad"
"""The note of a tie between answers that are both called bad."""

NOT_BLIND = "the voter knew whose answers these were"
"""The note of a vote that was not blind, and weighs nothing."""

_SESSIONS = ("session", "question_id", "prompt_id", "id", "index")
_TIMES = ("tstamp", "at", "timestamp")
_PERSON = re.compile(
    r"(?:human|person|user|arena_user|author|expert|annotator|rater|worker|voter|anonymous)"
    r"(?:[_\-. ]?\w+)?|[0-9a-f-]{8,}|\d+",
    re.IGNORECASE,
)
"""Who is a person by the names that arenas give to people: a word for one, a number or a hash."""

_SCORES = {1: "first", 2: "second", 3: "tie"}
_MILLISECONDS = 1e11


def read_battles(
    records: Records,
    columns: Mapping[str, str],
    report: Report,
    sessions: PairSessions,
) -> Iterator[Imported]:
    """Read one piece per battle; `sessions` names those without id."""
    again, named = Again("judge"), _Named(columns, report.path)
    for line, record in records:
        try:
            battle = _battle(named(record), sessions, line)
        except Unreadable as flaw:
            report(line, flaw)
            continue
        for ballot in battle.ballots:
            if not _is_nobody(ballot):
                again.see(line, ballot)
        yield battle
    again.tell(report)


_FIELDS = {
    "session": "session",
    "reviewer": "judge",
    "first": "model_a",
    "second": "model_b",
    "outcome": "winner",
    "kind": "judge_kind",
    "weight": "weight",
    "category": "category",
    "at": "at",
    "question": "prompt",
    "notes": "notes",
}
"""Fields of a ballot file, and how a battle calls them."""


class _Named:
    """Rename a file's fields to those of battles."""

    def __init__(self, columns: Mapping[str, str], path: str) -> None:
        self._columns, self._path = columns, path
        self._cells: dict[tuple[str, ...], list[tuple[str, Cell]]] = {}

    def __call__(self, record: Mapping[str, Any]) -> Mapping[str, Any]:
        """The record with the names of a battle."""
        names = tuple(record)
        cells = self._cells.get(names)
        if cells is None:
            header = Header(names, self._columns, self._path, absent=True)
            wanted = [f for f in _FIELDS if f in self._columns or _FIELDS[f] not in record]
            cells = self._cells[names] = [(_FIELDS[f], cell) for f, cell in header.given(wanted)]
        if not cells:
            return record
        values = list(record.values())
        return {**record, **{field: cell(values) for field, cell in cells}}


def people_apart(one: Imported) -> Imported:
    """Number several people all called ``human``, so no vote is lost."""
    if len(one.ballots) < 2:
        return one
    taken = {ballot.reviewer for ballot in one.ballots} - {"human"}
    names = (f"human-{n}" for n in count(2) if f"human-{n}" not in taken)
    met, apart = False, []
    for ballot in one.ballots:
        unnamed = _is_nobody(ballot)
        # Two who saw the same pair in two orders are two people all the same.
        apart.append(replace(ballot, reviewer=next(names)) if unnamed and met else ballot)
        met = met or unnamed
    return replace(one, ballots=tuple(apart))


def _is_nobody(ballot: Ballot) -> bool:
    return ballot.reviewer == "human" and ballot.kind == "human"


@dataclass(frozen=True, slots=True)
class _Talk:
    """One model's prompts and answers in a battle."""

    asked: tuple[str, ...] = ()
    said: tuple[str, ...] = ()


def _battle(record: Mapping[str, Any], sessions: PairSessions, line: int) -> Imported:
    first, second = (
        _model(record, names) for names in (("model_a", "first"), ("model_b", "second"))
    )
    if first == second:
        raise Unreadable("model_b", f"is {second!r} like the first; expected another model")
    talks = _talks(record)
    turn = _turn(record, talks)
    prompt = "" if record.get("prompt") is None else str(record["prompt"]).strip()
    session = sessions.name(_session(record), prompt, line)
    session += "" if turn is None else f"/turn-{turn}"
    at = _time(record)
    ballot = _ballot(record, first, second)
    known = (*(talk.asked for talk in talks), _texts(record.get("prompt")))
    question = next((asked[0] for asked in known if asked), "")
    said = [None if not talk.said else "\n\n".join(talk.said[:turn]) for talk in talks]
    return Imported(
        session=session,
        at=at,
        question=question,
        category=_category(record),
        ballots=(replace(ballot, session=session, at=at),),
        answers={
            model: text
            for model, text in zip((first, second), said, strict=True)
            if text is not None
        },
        simulated=record.get("simulated") in (True, "True", "true"),
    )


def _model(record: Mapping[str, Any], names: tuple[str, ...]) -> str:
    given = next((record[name] for name in names if name in record), None)
    if not isinstance(given, str) or not given.strip():
        raise Unreadable(names[0], "is missing; expected the name of a model")
    return given.strip()


def _session(record: Mapping[str, Any]) -> str:
    for name in _SESSIONS:
        given = record.get(name)
        if isinstance(given, int | str) and not isinstance(given, bool) and str(given).strip():
            return session_name(name, str(given))
    return ""


def _ballot(record: Mapping[str, Any], first: str, second: str) -> Ballot:
    outcome, bad = _outcome(record, first, second)
    judge = _judge(record)
    blind = record.get("anony") not in (False, "False", "false")
    notes = [] if blind else [NOT_BLIND]
    notes += [BOTH_BAD] if bad else []
    notes += [str(record[name]) for name in ("notes", "text") if _said(record, name)]
    said = record.get("weight")
    heavy = 1.0 if said is None or said == "" else weight(_number(said))
    known = record.get("order_known") not in (False, "False", "false")
    return Ballot(
        reviewer=judge,
        groups=_groups(outcome, first, second),
        abstained=outcome == "abstain",
        candidates=(first, second) if outcome == "abstain" else None,
        positions={first: 1, second: 2} if known else None,
        weight=heavy if blind else 0.0,
        category=_text(record, "category"),
        kind="human" if _is_person(record, judge) else "model",
        notes="; ".join(notes) or None,
        paired=True,
    )


def _judge(record: Mapping[str, Any]) -> str:
    """The voter: a judge (first of a list), or a person."""
    for field in ("judge", "reviewer"):
        given = record.get(field)
        if isinstance(given, list) and given:
            given = given[0]
        if isinstance(given, str | int) and str(given).strip():
            return str(given).strip()
    return "human"


def _said(record: Mapping[str, Any], name: str) -> bool:
    return isinstance(record.get(name), str | int) and str(record[name]).strip() != ""


def _text(record: Mapping[str, Any], name: str) -> str | None:
    given = record.get(name)
    return given.strip() if isinstance(given, str) and given.strip() else None


def _is_person(record: Mapping[str, Any], judge: str) -> bool:
    given = next((record[n] for n in ("judge_kind", "kind") if _said(record, n)), None)
    if given is None:
        return _PERSON.fullmatch(judge) is not None
    if str(given).casefold() not in KINDS:
        raise Unreadable("judge_kind", f"is {given!r}; expected 'model' or 'human'")
    return KINDS[str(given).casefold()] == "human"


def _outcome(record: Mapping[str, Any], first: str, second: str) -> tuple[str, bool]:
    """The outcome in our words, and whether both answers are called bad."""
    if "winner_model_a" in record:
        flags = ("winner_model_a", "winner_model_b", "winner_tie")
        won = [str(record.get(flag)).casefold() in ("1", "1.0", "true") for flag in flags]
        if sum(won) != 1:
            raise Unreadable("winner_model_a", "and its like name not one outcome; expected one 1")
        return ("first", "second", "tie")[won.index(True)], False
    given = next((record[n] for n in ("winner", "outcome") if _said(record, n)), None)
    if given is None and record.get("score") in _SCORES:
        return _SCORES[record["score"]], False
    said = folded(str(given))
    meant = OUTCOMES.get(said)
    named = {first: "first", second: "second"}.get(str(given).strip())
    if meant is None and named is None:
        expected = "expected model_a, model_b, tie or tie (bothbad)"
        raise Unreadable("winner", f"is {given!r}; {expected}")
    if meant and named and meant != named:
        raise Unreadable(
            "winner", f"is {given!r}, a word for the {meant} and the name of the {named}"
        )
    return meant or named or "", "bad" in said and meant == "tie"


def _groups(outcome: str, first: str, second: str) -> Groups:
    if outcome == "abstain":
        return ()
    if outcome == "tie":
        return ((first, second),)
    return ((first,), (second,)) if outcome == "first" else ((second,), (first,))


def _time(record: Mapping[str, Any]) -> datetime | None:
    """Time as seconds or milliseconds since 1970, or text; default UTC."""
    given = next((record[n] for n in _TIMES if record.get(n) not in (None, "")), None)
    if given is None:
        return None
    at = given if isinstance(given, datetime) else _read(given)
    return in_years("tstamp", at if at.tzinfo is not None else at.replace(tzinfo=UTC))


def _read(given: object) -> datetime:
    seconds = _number(given)
    if isinstance(seconds, int | float) and not isinstance(seconds, bool):
        try:
            return datetime.fromtimestamp(
                seconds / 1000 if seconds > _MILLISECONDS else seconds, tz=UTC
            )
        except (ValueError, OverflowError, OSError):
            raise Unreadable("tstamp", f"is {given!r}; expected seconds since 1970") from None
    try:
        return datetime.fromisoformat(str(given))
    except ValueError:
        return moment(given)


def _number(given: Any) -> Any:
    try:
        return float(given) if isinstance(given, str) else given
    except ValueError:
        return given


def _category(record: Mapping[str, Any]) -> str | None:
    if record.get("is_code") in (True, "True", "true") and _text(record, "category") is None:
        return "coding"
    return _text(record, "category")


def _talks(record: Mapping[str, Any]) -> tuple[_Talk, _Talk]:
    if "response_a" in record:
        asked = _texts(record.get("prompt"))
        return (
            _Talk(asked, _texts(record["response_a"])),
            _Talk(asked, _texts(record.get("response_b"))),
        )
    return _talk(record.get("conversation_a")), _talk(record.get("conversation_b"))


def _texts(given: object) -> tuple[str, ...]:
    """Texts of a list, a JSON list, or one text; blanks dropped."""
    held = _unpacked(given)
    if isinstance(held, list):
        return tuple(text for text in held if isinstance(text, str))
    return (held,) if isinstance(held, str) and held else ()


def _talk(given: object) -> _Talk:
    turns = _unpacked(given)
    if not isinstance(turns, list):
        return _Talk()
    spoken = [(t.get("role"), _content(t.get("content"))) for t in turns if isinstance(t, dict)]
    return _Talk(
        tuple(text for role, text in spoken if role == "user"),
        tuple(text for role, text in spoken if role == "assistant"),
    )


def _content(given: object) -> str:
    if isinstance(given, list):
        parts = (part.get("text") for part in given if isinstance(part, dict))
        return "\n".join(part for part in parts if isinstance(part, str))
    return given if isinstance(given, str) else ""


def _unpacked(given: object) -> object:
    """Tables hold a list as JSON text."""
    if isinstance(given, str) and given[:1] in ("[", "{"):
        try:
            held: object = json.loads(given)
        except (ValueError, RecursionError):
            return given
        return held
    return given


def _turn(record: Mapping[str, Any], talks: tuple[_Talk, _Talk]) -> int | None:
    """The judged turn, if not the last of the conversation."""
    given = _number(record.get("turn"))
    n_turns = max(len(talk.asked) for talk in talks)
    if isinstance(given, int | float) and not isinstance(given, bool) and 1 <= given < n_turns:
        return int(given)
    return None
