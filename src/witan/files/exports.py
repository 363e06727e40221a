"""Sessions to files: whole, as ballots, or as pairwise battles."""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields, replace
from datetime import UTC
from itertools import combinations
from pathlib import Path
from typing import Any

from witan.core.ballot import Ballot
from witan.core.ballot_records import mark_simulated, to_record
from witan.core.entries import AnswerEntry
from witan.core.escaping import escape_json
from witan.deliberation.learning import model_of
from witan.deliberation.record import SessionImport, session_to_json
from witan.deliberation.session import Session
from witan.errors import BallotFileError
from witan.files.ballots import write_ballots
from witan.files.ballots.writing import pack, whole_file
from witan.files.battles import BOTH_BAD
from witan.files.imports import IMPORTED, VERSION, VOTES


class ExportNames:
    """Names of a session's candidates and reviewers in a file of ballots.

    A seat is called as its model is across sessions. Of a model that holds several seats each is
    called by the model and the seat, and ballots say who wrote its answer.
    """

    def __init__(self, one: SessionImport) -> None:
        self._model_by_seat = _models_by_seat(one)
        candidates = [
            *one.answers,
            *(c for ballot in one.ballots for c in ballot.candidate_names()),
        ]
        reviewers = [ballot.reviewer for ballot in one.ballots if ballot.kind == "model"]
        self._candidates = _unique_names(candidates, self._model_by_seat)
        self._reviewers = _unique_names(reviewers, self._model_by_seat)

    def ballot(self, ballot: Ballot) -> Ballot:
        """The ballot, all names in it as they are outside."""
        if not self._model_by_seat:
            return ballot
        called = self._candidates
        authors = {called.get(c, c): author for c, author in (ballot.authors or {}).items()}
        authors |= {
            called[c]: self._model_by_seat[c]
            for c in ballot.candidate_names()
            if c in self._model_by_seat and called[c] != self._model_by_seat[c]
        }
        return replace(
            ballot,
            reviewer=self.reviewer(ballot),
            groups=tuple(tuple(called.get(c, c) for c in group) for group in ballot.groups),
            grades={called.get(c, c): grade for c, grade in ballot.grades.items()},
            candidates=None
            if ballot.candidates is None
            else tuple(called.get(c, c) for c in ballot.candidates),
            authors=authors or None,
            positions=None
            if ballot.positions is None
            else {called.get(c, c): place for c, place in ballot.positions.items()},
        )

    def reviewer(self, ballot: Ballot) -> str:
        """The name of a ballot's reviewer; a person's stays."""
        if ballot.kind == "human":
            return ballot.reviewer
        return self._reviewers.get(ballot.reviewer, ballot.reviewer)

    def model(self, candidate: str, ballot: Ballot) -> str:
        """The model behind a candidate."""
        author = candidate if candidate in self._model_by_seat else None
        author = (ballot.authors or {}).get(candidate, candidate) if author is None else author
        return self._model_by_seat.get(author, author)


def _models_by_seat(one: SessionImport) -> Mapping[str, str]:
    """Seat to model, for seats of another name."""
    models = one.models
    if one.session_record is not None:
        opened = one.session_record.opening
        models = {seat.name: model_of(seat) for seat in (*opened.jury, *opened.seats)}
    return {seat: model for seat, model in models.items() if seat != model}


def _unique_names(names: Iterable[str], behind: Mapping[str, str]) -> dict[str, str]:
    """Unique outside names by inside name."""
    there = dict.fromkeys(names)
    models = Counter(behind.get(name, name) for name in there)
    return {
        name: behind[name] if models[behind[name]] == 1 else f"{behind[name]} ({name})"
        for name in there
        if name in behind
    }


NO_BALLOT = "no ballot"

PassedOver = Callable[[SessionImport, str], None]
"""Is told of a session of which nothing is written, and what there is of it instead."""


def write_sessions(sessions: Iterable[SessionImport], path: str | Path) -> int:
    """Write one whole session a line, and return how many.

    `.gz` and `.zst` are packed; ``-`` is standard output. The file changes as a whole or not at
    all. Imported again it gives the same sessions, and exported again the same bytes.
    """
    return _write_lines((session_line(one) for one in sessions), path)


def session_line(one: SessionImport) -> str:
    """One whole session as a JSON line, with any events."""
    return _dumps(imported_object(one)) if one.session_record is None else _held_line(one)


def imported_object(one: SessionImport) -> dict[str, Any]:
    """The JSON object of a session without events."""
    record: dict[str, Any] = {
        IMPORTED: VERSION,
        "session": one.session,
        "at": None if one.at is None else one.at.isoformat(),
        "category": one.category,
        "simulated": one.simulated or None,
        "question": one.question or None,
        "answers": dict(one.answers) or None,
        "lengths": {c: n for c, n in one.lengths.items() if c not in one.answers} or None,
        "ballots": [ballot_fields(ballot) for ballot in one.ballots],
        "closing": one.closing,
        "models": dict(one.models) or None,
        "kept": {reviewer: list(pair) for reviewer, pair in one.kept.items()} or None,
        "repaired": list(one.repaired) or None,
        "took": [_answer_fields(answer) for answer in one.took] or None,
    }
    return {field: value for field, value in record.items() if value is not None}


def write_session_ballots(
    sessions: Iterable[SessionImport],
    path: str | Path,
    *,
    format: str | None = None,  # noqa: A002  the word users know from the command line
    passed_over: PassedOver | None = None,
) -> int:
    """Write sessions' ballots in a format of `write_ballots`; return their number.

    A ballot that does not say when it was cast, or in which category, says it as its session does.
    One of a simulated session says so in its notes. Seats are called by their models,
    as leaderboards call them; of a model that holds several, also by the seat.
    """
    return write_ballots(_ballots(sessions, passed_over), path, format=format)


def write_battles(
    sessions: Iterable[SessionImport], path: str | Path, *, passed_over: PassedOver | None = None
) -> int:
    """Write battles one a line, as arenas do; return their number.

    A ranking is every pair that it ranks, own answers included where a ballot has them; an
    abstention is none. Of a pair the model that was shown first is ``model_a``; where that is not
    known, the first by name is, and ``order_known`` is false. Two answers of one model are no
    battle.
    """
    return _write_lines(map(_dumps, _all_battles(sessions, passed_over)), path)


def _held_line(one: SessionImport) -> str:
    """A council session, and after it what people voted on it."""
    assert one.session_record is not None  # noqa: S101 - asked before
    return record_with_votes(one.session_record, one.ballots)


def record_with_votes(session: Session, ballots: Iterable[Ballot]) -> str:
    """The record of a council session, followed by people's votes."""
    line = session_to_json(session)
    votes = [ballot_fields(ballot) for ballot in ballots if ballot.kind == "human"]
    return line if not votes else f'{line[:-1]}, "{VOTES}": {_dumps(votes)}}}'


def ballot_fields(ballot: Ballot) -> dict[str, Any]:
    """Return a ballot's fields without the session's, named by the line."""
    return {field: value for field, value in to_record(ballot).items() if field != "session"}


def _answer_fields(answer: AnswerEntry) -> dict[str, Any]:
    values = {field.name: getattr(answer, field.name) for field in fields(answer)}
    return {name: value for name, value in values.items() if value not in (None, False)}


def _ballots(sessions: Iterable[SessionImport], passed_over: PassedOver | None) -> Iterator[Ballot]:
    for one in sessions:
        called = ExportNames(one)
        if passed_over is not None and not one.ballots:
            passed_over(one, NO_BALLOT)
        for ballot in one.ballots:
            cast = called.ballot(_place_pair(one, ballot))
            yield mark_simulated(cast) if one.simulated else cast


def _place_pair(one: SessionImport, ballot: Ballot) -> Ballot:
    """The ballot with what its session says for all of them."""
    return replace(
        ballot,
        session=one.session,
        at=one.at if ballot.at is None else ballot.at,
        category=one.category if ballot.category is None else ballot.category,
    )


def _all_battles(
    sessions: Iterable[SessionImport], passed_over: PassedOver | None
) -> Iterator[dict[str, Any]]:
    for one in sessions:
        is_passed_over = True
        for battle in _battles(one):
            is_passed_over = False
            yield battle
        if is_passed_over and passed_over is not None:
            passed_over(one, _describe_unsuitable(one))


def _describe_unsuitable(one: SessionImport) -> str:
    """Describe a session without a battle."""
    if any(sum(map(len, ballot.groups)) > 1 for ballot in one.ballots):
        return "answers of one model"
    if any(ballot.groups for ballot in one.ballots):
        return "one answer"
    if any(ballot.grades for ballot in one.ballots):
        return "grades without a ranking"
    return "abstentions" if one.ballots else NO_BALLOT


def _battles(one: SessionImport) -> Iterator[dict[str, Any]]:
    called = ExportNames(one)
    for cast in one.ballots:
        ballot = _place_pair(one, cast)
        places = {c: place for place, group in enumerate(ballot.groups) for c in group}
        positions = ballot.positions or {}
        for pair in combinations(sorted(places), 2):
            is_known = all(candidate in positions for candidate in pair)
            first, second = sorted(pair, key=lambda c: positions[c]) if is_known else pair
            models = [called.model(candidate, ballot) for candidate in (first, second)]
            if models[0] != models[1]:
                battle = _battle(one, ballot, (first, second), places)
                sides = {"model_a": models[0], "model_b": models[1]}
                judge = {"judge": called.reviewer(ballot)}
                yield battle | sides | judge | ({} if is_known else {"order_known": False})


def _battle(
    one: SessionImport, ballot: Ballot, pair: tuple[str, str], places: Mapping[str, int]
) -> dict[str, Any]:
    ahead = places[pair[1]] - places[pair[0]]
    winner = "model_a" if ahead > 0 else "model_b" if ahead < 0 else "tie"
    bad = winner == "tie" and ballot.notes == BOTH_BAD
    record: dict[str, Any] = {
        "question_id": one.session,
        "model_a": pair[0],
        "model_b": pair[1],
        "winner": "tie (bothbad)" if bad else winner,
        "judge": ballot.reviewer,
        "judge_kind": ballot.kind,
        "category": ballot.category,
        "tstamp": None if ballot.at is None else ballot.at.astimezone(UTC).timestamp(),
        "weight": None if ballot.weight == 1.0 else ballot.weight,
        "notes": None if bad else ballot.notes,
        "conversation_a": _talk(one, pair[0]),
        "conversation_b": _talk(one, pair[1]),
        "simulated": one.simulated or None,
    }
    return {field: value for field, value in record.items() if value is not None}


def _talk(one: SessionImport, candidate: str) -> list[dict[str, str]] | None:
    if candidate not in one.answers:
        return None
    turns = [{"role": "user", "content": one.question}] if one.question else []
    return [*turns, {"role": "assistant", "content": one.answers[candidate]}]


def _dumps(value: object) -> str:
    try:
        written = json.dumps(value, ensure_ascii=False, allow_nan=False)
    except ValueError as error:
        raise BallotFileError("the export", f"cannot hold a number: {error}") from error
    return escape_json(written)


def _write_lines(lines: Iterable[str], path: str | Path) -> int:
    name, written = str(path), 0
    with whole_file(name) as raw, pack(raw, Path(name).suffix) as out:
        for line in lines:
            out.write(line.encode() + b"\n")
            written += 1
    return written
