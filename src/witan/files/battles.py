"""Battles as in arenas: two answers and a winner per row."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import chain, count
from typing import Any

from witan.core.ballot import KINDS, Ballot, Unreadable, check_years, moment, session_name, weight
from witan.deliberation.record import SessionImport
from witan.errors import BallotFileError, Remedy, Way
from witan.files.ballots.columns import ALIASES, Cell, Header, fold_name
from witan.files.ballots.formats import Records
from witan.files.ballots.problems import ProblemReport, RepeatDetector
from witan.files.ballots.tables import OUTCOMES, PairSessions, groups_of_outcome

BOTH_BAD = "both bad"
"""Note of a tie between answers that are both rated bad."""

NOT_BLIND = "the voter knew whose answers these were"
"""Note of a vote that was not blind and has weight 0."""

_HUMAN, _UNNAMED = "human", ""
"""Name of people without one, and reviewer of a vote without a judge while it is read."""

_SESSIONS = ("session", "question_id", "prompt_id", "id", "index")
_TIMES = ("tstamp", "at", "timestamp")
_PERSON = re.compile(
    r"(?:human|person|user|arena_user|author|expert|annotator|rater|worker|voter|anonymous)"
    r"(?:[_\-. ]?\w+)?|[0-9a-f-]{8,}|\d+",
    re.IGNORECASE,
)
"""Pattern of names for people in arenas: a word, a number or a hash."""

_SCORES = {1: "first", 2: "second", 3: "tie"}
_MILLISECONDS = 1e11


def read_battles(
    records: Records,
    columns: Mapping[str, str],
    report: ProblemReport,
    sessions: PairSessions,
) -> Iterator[SessionImport]:
    """Read one session per battle; `sessions` names those without an id."""
    repeat_detector, battle_names = RepeatDetector("judge"), _BattleNames(columns, report.path)
    for line, record in records:
        try:
            battle = _battle(battle_names(record), sessions, line)
        except Unreadable as flaw:
            report(line, flaw)
            continue
        for ballot in battle.ballots:
            if not _is_unnamed_vote(ballot):
                repeat_detector.see(line, ballot)
        yield battle
    repeat_detector.report_repeats(report)


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
"""Field of a ballot file → field of a battle."""


class _BattleNames:
    """Rename a file's fields to those of battles."""

    def __init__(self, columns: Mapping[str, str], path: str) -> None:
        self._columns, self._path = columns, path
        self._cells: dict[tuple[str, ...], list[tuple[str, Cell]]] = {}

    def __call__(self, record: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the record with the field names of a battle."""
        names = tuple(record)
        cells = self._cells.get(names)
        if cells is None:
            header = Header(names, self._columns, self._path, absent=True)
            missing_fields = [f for f in _FIELDS if f in self._columns or _FIELDS[f] not in record]
            cells = self._cells[names] = [
                (_FIELDS[f], cell) for f, cell in header.getters(missing_fields)
            ]
        if not cells:
            return record
        values = list(record.values())
        return {**record, **{field: cell(values) for field, cell in cells}}


def name_people(one: SessionImport) -> SessionImport:
    """Name a person per vote without a judge: ``human``, ``human-2``.

    A judge ``human`` is one person, unless it judges a pair again.
    """
    if not any(map(_is_unnamed_vote, one.ballots)):
        return one
    reviewers = {ballot.reviewer for ballot in one.ballots}
    names = chain([_HUMAN], (f"{_HUMAN}-{n}" for n in count(2)))
    unused_names = (name for name in names if name not in reviewers)
    pairs, ballots = set[frozenset[str]](), []
    for ballot in one.ballots:
        person = ballot.reviewer
        if _is_unnamed_vote(ballot):
            # Votes on the same pair in two orders are also from two people.
            pair = frozenset(ballot.candidate_names())
            if person == _UNNAMED or pair in pairs:
                person = next(unused_names)
            else:
                pairs.add(pair)
        is_named = person == ballot.reviewer
        ballots.append(ballot if is_named else replace(ballot, reviewer=person))
    return replace(one, ballots=tuple(ballots))


def _is_unnamed_vote(ballot: Ballot) -> bool:
    return ballot.reviewer in (_UNNAMED, _HUMAN) and ballot.kind == "human"


@dataclass(frozen=True, slots=True)
class _Conversation:
    """One model's prompts and answers in a battle."""

    prompts: tuple[str, ...] = ()
    answers: tuple[str, ...] = ()


def _battle(record: Mapping[str, Any], sessions: PairSessions, line: int) -> SessionImport:
    first, second = (
        _model(record, names) for names in (("model_a", "first"), ("model_b", "second"))
    )
    if first == second:
        raise Unreadable(
            "model_b", f"is {second!r}, the same model as the first; expected another one"
        )
    conversations = _conversations(record)
    turn = _turn(record, conversations)
    prompt = "" if record.get("prompt") is None else str(record["prompt"]).strip()
    session = sessions.name(_session(record), prompt, line)
    session += "" if turn is None else f"/turn-{turn}"
    is_code = record.get("is_code") in (True, "True", "true")
    at = _time(record)
    ballot = _ballot(record, first, second)
    prompt_lists = (
        *(conversation.prompts for conversation in conversations),
        _texts(record.get("prompt")),
    )
    question = next((prompts[0] for prompts in prompt_lists if prompts), "")
    texts = [
        None if not conversation.answers else "\n\n".join(conversation.answers[:turn])
        for conversation in conversations
    ]
    return SessionImport(
        session=session,
        at=at,
        question=question,
        category=_text(record, "category") or ("coding" if is_code else None),
        ballots=(replace(ballot, session=session, at=at),),
        answers={
            model: text
            for model, text in zip((first, second), texts, strict=True)
            if text is not None
        },
        simulated=record.get("simulated") in (True, "True", "true"),
    )


def _model(record: Mapping[str, Any], names: tuple[str, ...]) -> str:
    value = next((record[name] for name in names if name in record), None)
    if not isinstance(value, str) or not value.strip():
        raise Unreadable(names[0], "is missing; expected the name of a model")
    return value.strip()


def _session(record: Mapping[str, Any]) -> str:
    for name in _SESSIONS:
        value = record.get(name)
        if isinstance(value, int | str) and not isinstance(value, bool) and str(value).strip():
            return session_name(name, str(value))
    return ""


def _ballot(record: Mapping[str, Any], first: str, second: str) -> Ballot:
    outcome, bad = _outcome(record, first, second)
    judge = _judge(record)
    blind = record.get("anony") not in (False, "False", "false")
    notes = [] if blind else [NOT_BLIND]
    notes += [BOTH_BAD] if bad else []
    notes += [str(record[name]) for name in ("notes", "text") if _has_field(record, name)]
    number = record.get("weight")
    heavy = 1.0 if number is None or number == "" else weight(_number(number))
    is_order_known = record.get("order_known") not in (False, "False", "false")
    return Ballot(
        reviewer=judge,
        groups=groups_of_outcome(outcome, first, second),
        abstained=outcome == "abstain",
        candidates=(first, second) if outcome == "abstain" else None,
        positions={first: 1, second: 2} if is_order_known else None,
        weight=heavy if blind else 0.0,
        category=_text(record, "category"),
        kind="human" if _is_person(record, judge) else "model",
        notes="; ".join(notes) or None,
        paired=True,
    )


def _judge(record: Mapping[str, Any]) -> str:
    """Return the voter: the first judge, or a person without a name."""
    for field in ("judge", "reviewer"):
        value = record.get(field)
        if isinstance(value, list) and value:
            value = value[0]
        if isinstance(value, str | int) and str(value).strip():
            return str(value).strip()
    return _UNNAMED


def _has_field(record: Mapping[str, Any], name: str) -> bool:
    return isinstance(record.get(name), str | int) and str(record[name]).strip() != ""


def _text(record: Mapping[str, Any], name: str) -> str | None:
    value = record.get(name)
    return value.strip() if isinstance(value, str) and value.strip() else None


def _is_person(record: Mapping[str, Any], judge: str) -> bool:
    value = next((record[n] for n in ("judge_kind", "kind") if _has_field(record, n)), None)
    if value is None:
        return judge == _UNNAMED or _PERSON.fullmatch(judge) is not None
    if str(value).casefold() not in KINDS:
        raise Unreadable("judge_kind", f"is {value!r}; expected 'model' or 'human'")
    return KINDS[str(value).casefold()] == "human"


def _outcome(record: Mapping[str, Any], first: str, second: str) -> tuple[str, bool]:
    if "winner_model_a" in record:
        flags = ("winner_model_a", "winner_model_b", "winner_tie")
        winner_flags = [str(record.get(flag)).casefold() in ("1", "1.0", "true") for flag in flags]
        if sum(winner_flags) != 1:
            raise Unreadable(
                "winner_model_a",
                "and the other winner flags are inconsistent; expected exactly one 1",
            )
        return ("first", "second", "tie")[winner_flags.index(True)], False
    value = next((record[n] for n in ("winner", "outcome") if _has_field(record, n)), None)
    if value is None and record.get("score") in _SCORES:
        return _SCORES[record["score"]], False
    text = fold_name(str(value))
    outcome = OUTCOMES.get(text)
    position = {first: "first", second: "second"}.get(str(value).strip())
    if outcome is None and position is None:
        expected = "expected model_a, model_b, tie or tie (bothbad)"
        raise Unreadable("winner", f"is {value!r}; {expected}")
    if outcome and position and outcome != position:
        raise Unreadable(
            "winner", f"is {value!r}, a word for the {outcome} and the name of the {position}"
        )
    return outcome or position or "", "bad" in text and outcome == "tie"


def _time(record: Mapping[str, Any]) -> datetime | None:
    """Parse a time: seconds or milliseconds since 1970, or text; default UTC."""
    value = next((record[n] for n in _TIMES if record.get(n) not in (None, "")), None)
    if value is None:
        return None
    at = value if isinstance(value, datetime) else _parse_time(value)
    return check_years("tstamp", at if at.tzinfo is not None else at.replace(tzinfo=UTC))


def _parse_time(value: object) -> datetime:
    seconds = _number(value)
    if isinstance(seconds, int | float) and not isinstance(seconds, bool):
        try:
            return datetime.fromtimestamp(
                seconds / 1000 if seconds > _MILLISECONDS else seconds, tz=UTC
            )
        except (ValueError, OverflowError, OSError):
            raise Unreadable("tstamp", f"is {value!r}; expected seconds since 1970") from None
    try:
        return datetime.fromisoformat(str(value))
    except ValueError:
        return moment(value)


def _number(value: Any) -> Any:
    try:
        return float(value) if isinstance(value, str) else value
    except ValueError:
        return value


def _conversations(record: Mapping[str, Any]) -> tuple[_Conversation, _Conversation]:
    if "response_a" in record:
        prompts = _texts(record.get("prompt"))
        return (
            _Conversation(prompts, _texts(record["response_a"])),
            _Conversation(prompts, _texts(record.get("response_b"))),
        )
    return _conversation(record.get("conversation_a")), _conversation(record.get("conversation_b"))


def _texts(value: object) -> tuple[str, ...]:
    parsed_value = _parse_json(value)
    if isinstance(parsed_value, list):
        return tuple(text for text in parsed_value if isinstance(text, str))
    return (parsed_value,) if isinstance(parsed_value, str) and parsed_value else ()


def _conversation(value: object) -> _Conversation:
    turns = _parse_json(value)
    if not isinstance(turns, list):
        return _Conversation()
    turns_with_text = [
        (t.get("role"), _content(t.get("content"))) for t in turns if isinstance(t, dict)
    ]
    return _Conversation(
        tuple(text for role, text in turns_with_text if role == "user"),
        tuple(text for role, text in turns_with_text if role == "assistant"),
    )


def _content(value: object) -> str:
    if isinstance(value, list):
        parts = (part.get("text") for part in value if isinstance(part, dict))
        return "\n".join(part for part in parts if isinstance(part, str))
    return value if isinstance(value, str) else ""


def _parse_json(text: object) -> object:
    if isinstance(text, str) and text[:1] in ("[", "{"):
        try:
            value: object = json.loads(text)
        except (ValueError, RecursionError):
            return text
        return value
    return text


def _turn(
    record: Mapping[str, Any], conversations: tuple[_Conversation, _Conversation]
) -> int | None:
    """Return the judged turn, unless it is the last of the conversation."""
    turn = _number(record.get("turn"))
    n_turns = max(len(conversation.prompts) for conversation in conversations)
    if isinstance(turn, int | float) and not isinstance(turn, bool) and 1 <= turn < n_turns:
        return int(turn)
    return None


_SIDES = ("chosen", "rejected")
_NAME_FIELDS = ("model", "model_name", "name", "id", "source", "generator")
_PREFERENCE_SCORES = ("score", "rating", "grade", "reward")

_NAME_CHARS, _NAME_WORDS = 64, 4
"""Limits of a name: a longer text, or one that ends like a sentence, is an answer."""


def preferences_as_battles(
    records: Records, columns: Mapping[str, str], stem: str, report: ProblemReport
) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Convert preference pairs to battles, in unknown display order.

    A prompt without an id is identified by its text.
    """
    first, numbers = True, dict[str, int]()
    session_names = (*ALIASES["session"], "id")
    for line, record in records:
        try:
            battle = _as_battle(record, columns)
            prompt = battle.get("prompt")
            names = {fold_name(name) for name, value in record.items() if value not in (None, "")}
            has_session = "session" in columns or not names.isdisjoint(session_names)
            if prompt is not None and not has_session:
                number = numbers.setdefault(str(prompt), len(numbers) + 1)
                battle["session"] = f"{stem}/{number}"
            yield line, battle
        except Unreadable as flaw:
            if first:
                problem = (
                    flaw.problem if flaw.field is None else f"field {flaw.field!r} {flaw.problem}"
                )
                raise BallotFileError(report.path, problem, line, flaw.remedy) from None
            report(line, flaw)
        first = False


def _as_battle(record: Mapping[str, Any], columns: Mapping[str, str]) -> dict[str, Any]:
    fields = {fold_name(name): value for name, value in record.items()}
    sides = [columns.get(side) for side in ("first", "second")]
    names = [
        _name(side, fields, None if column is None else record.get(column))
        for side, column in zip(_SIDES, sides, strict=True)
    ]
    texts = [_answer_text(fields.get(side)) for side in _SIDES]
    prompt = fields.get("prompt") or _question(fields.get("chosen"))
    battle = {
        **record,
        "model_a": names[0],
        "model_b": names[1],
        "winner": "model_a",
        "order_known": False,
    }
    battle["prompt"] = prompt
    if texts != names and all(texts):
        battle |= {"response_a": texts[0], "response_b": texts[1]}
    scores = [_score(side, fields) for side in _SIDES]
    if all(score is not None for score in scores):
        battle["notes"] = f"scores {scores[0]} and {scores[1]}"
    return {name: value for name, value in battle.items() if value is not None}


def _name(side: str, fields: Mapping[str, Any], value: object) -> str:
    """Return an answer's author: a model's field, or the answer itself."""
    for name in (f"{side}_{name}" for name in _NAME_FIELDS):
        value = fields.get(name) if value is None else value
    for name in (f"{name}_{side}" for name in _NAME_FIELDS):
        value = fields.get(name) if value is None else value
    value = fields.get(side) if value is None else value
    if isinstance(value, str) and _is_name(value.strip()):
        return value.strip()
    raise Unreadable(
        side,
        "is an answer, and no field names its author",
        remedy=Remedy(
            "add chosen_model and rejected_model",
            Way(
                "name the fields with the author: ",
                {"columns": {"first": "FIELD", "second": "FIELD"}},
            ),
        ),
    )


def _is_name(text: str) -> bool:
    is_short = 0 < len(text) <= _NAME_CHARS and len(text.split()) <= _NAME_WORDS
    return is_short and "\n" not in text and text[-1] not in ".?!"


def _answer_text(value: object) -> str | None:
    """Return an answer: a text, or the last message of a conversation."""
    if isinstance(value, list) and value and isinstance(value[-1], dict):
        value = value[-1].get("content")
    return value if isinstance(value, str) else None


def _question(value: object) -> str | None:
    """Return the user's first message in a conversation."""
    if not isinstance(value, list):
        return None
    contents = (turn.get("content") for turn in value if isinstance(turn, dict))
    return next((text for text in contents if isinstance(text, str)), None)


def _score(side: str, fields: Mapping[str, Any]) -> object:
    names = [
        *(f"{side}_{name}" for name in _PREFERENCE_SCORES),
        *(f"{name}_{side}" for name in _PREFERENCE_SCORES),
    ]
    return next((fields[name] for name in names if fields.get(name) not in (None, "")), None)
