"""Export of sessions to files: whole, as ballots, or as battles."""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, replace
from datetime import UTC
from itertools import combinations
from pathlib import Path
from typing import Any

from witan.core.ballot import Ballot
from witan.core.ballot_records import mark_simulated, to_record
from witan.core.escaping import escape_json
from witan.deliberation.learning import model_of
from witan.deliberation.record import SessionImport, session_to_json
from witan.deliberation.session import Session
from witan.errors import BallotFileError
from witan.files.ballots import write_ballots
from witan.files.ballots.writing import pack, whole_file
from witan.files.battles import BOTH_BAD
from witan.files.imports import IMPORT_KEY, VERSION, VOTES


class ExportNames:
    """Names of a session's candidates and reviewers in a file of ballots.

    A seat is named by its model, as in a leaderboard. If a model has several seats, each is named
    by model and seat, and ballots record the author of its answer.
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
        """Return the ballot with the names used in exports."""
        if not self._model_by_seat:
            return ballot
        candidates = self._candidates
        authors = {candidates.get(c, c): author for c, author in (ballot.authors or {}).items()}
        authors |= {
            candidates[c]: self._model_by_seat[c]
            for c in ballot.candidate_names()
            if c in self._model_by_seat and candidates[c] != self._model_by_seat[c]
        }
        return replace(
            ballot,
            reviewer=self.reviewer(ballot),
            groups=tuple(tuple(candidates.get(c, c) for c in group) for group in ballot.groups),
            grades={candidates.get(c, c): grade for c, grade in ballot.grades.items()},
            candidates=None
            if ballot.candidates is None
            else tuple(candidates.get(c, c) for c in ballot.candidates),
            authors=authors or None,
            positions=None
            if ballot.positions is None
            else {candidates.get(c, c): place for c, place in ballot.positions.items()},
        )

    def reviewer(self, ballot: Ballot) -> str:
        """Return the exported name of a ballot's reviewer; a person's is unchanged."""
        if ballot.kind == "human":
            return ballot.reviewer
        return self._reviewers.get(ballot.reviewer, ballot.reviewer)

    def model(self, candidate: str, ballot: Ballot) -> str:
        """Return the model of a candidate."""
        author = candidate if candidate in self._model_by_seat else None
        author = (ballot.authors or {}).get(candidate, candidate) if author is None else author
        return self._model_by_seat.get(author, author)


def _models_by_seat(one: SessionImport) -> Mapping[str, str]:
    """Map seats to models, for seats of another name."""
    models = one.models
    if one.session_record is not None:
        opening = one.session_record.opening
        models = {seat.name: model_of(seat) for seat in (*opening.jury, *opening.seats)}
    return {seat: model for seat, model in models.items() if seat != model}


def _unique_names(names: Iterable[str], model_by_seat: Mapping[str, str]) -> dict[str, str]:
    """Map names in the session to unique names in the export."""
    used_names = dict.fromkeys(names)
    models = Counter(model_by_seat.get(name, name) for name in used_names)
    return {
        name: model_by_seat[name]
        if models[model_by_seat[name]] == 1
        else f"{model_by_seat[name]} ({name})"
        for name in used_names
        if name in model_by_seat
    }


NO_BALLOT = "no ballot"

OnSkip = Callable[[SessionImport, str], None]
"""Called with a skipped session, and a description of its content."""


def write_sessions(sessions: Iterable[SessionImport], path: str | Path) -> int:
    """Write one whole session per line; return their number.

    `.gz` and `.zst` are compressed; ``-`` is standard output. The file is replaced atomically. An
    import gives the same sessions, and another export the same bytes.
    """
    return write_lines((session_line(one) for one in sessions), path)


def session_line(one: SessionImport) -> str:
    """Return one whole session as a JSON line, with any events."""
    if one.session_record is None:
        return dumps(imported_object(one))
    return record_with_votes(one.session_record, one.ballots)


def imported_object(one: SessionImport) -> dict[str, Any]:
    """Return the JSON object of a session without events."""
    record: dict[str, Any] = {
        IMPORT_KEY: VERSION,
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
        "took": [
            {name: value for name, value in asdict(answer).items() if value not in (None, False)}
            for answer in one.took
        ]
        or None,
    }
    return {field: value for field, value in record.items() if value is not None}


def write_session_ballots(
    sessions: Iterable[SessionImport],
    path: str | Path,
    *,
    format: str | None = None,  # noqa: A002  the word users know from the command line
    on_skip: OnSkip | None = None,
) -> int:
    """Write sessions' ballots in a format of `write_ballots`; return their number.

    A ballot without time or category has those of its session. A ballot of a simulated session is
    marked in its notes. Seats are named by their models, as in leaderboards; if a model has
    several, also by the seat.
    """
    return write_ballots(_ballots(sessions, on_skip), path, format=format)


def write_battles(
    sessions: Iterable[SessionImport], path: str | Path, *, on_skip: OnSkip | None = None
) -> int:
    """Write one battle per line, as arenas do; return their number.

    A ranking becomes all pairs that it ranks, including a reviewer's own answer if its ballot has
    one; an abstention becomes none. In a pair ``model_a`` is the model shown first; if the order is
    unknown, it is the first by name, and ``order_known`` is false. Two answers of one model are not
    a battle.
    """
    return write_lines(map(dumps, _all_battles(sessions, on_skip)), path)


def record_with_votes(session: Session, ballots: Iterable[Ballot]) -> str:
    """Return the record of a council session, followed by people's votes."""
    line = session_to_json(session)
    votes = [ballot_fields(ballot) for ballot in ballots if ballot.kind == "human"]
    return line if not votes else f'{line[:-1]}, "{VOTES}": {dumps(votes)}}}'


def ballot_fields(ballot: Ballot) -> dict[str, Any]:
    """Return a ballot's fields without the session, named by the line."""
    return {field: value for field, value in to_record(ballot).items() if field != "session"}


def _ballots(sessions: Iterable[SessionImport], on_skip: OnSkip | None) -> Iterator[Ballot]:
    for one in sessions:
        names = ExportNames(one)
        if on_skip is not None and not one.ballots:
            on_skip(one, NO_BALLOT)
        for ballot in one.ballots:
            renamed_ballot = names.ballot(_place_pair(one, ballot))
            yield mark_simulated(renamed_ballot) if one.simulated else renamed_ballot


def _place_pair(one: SessionImport, ballot: Ballot) -> Ballot:
    """Return the ballot with its session's name, and default time and category."""
    return replace(
        ballot,
        session=one.session,
        at=one.at if ballot.at is None else ballot.at,
        category=one.category if ballot.category is None else ballot.category,
    )


def _all_battles(
    sessions: Iterable[SessionImport], on_skip: OnSkip | None
) -> Iterator[dict[str, Any]]:
    for one in sessions:
        is_skipped = True
        for battle in _battles(one):
            is_skipped = False
            yield battle
        if is_skipped and on_skip is not None:
            on_skip(one, _describe_unsuitable(one))


def _describe_unsuitable(one: SessionImport) -> str:
    """Describe the content of a session without a battle."""
    if any(sum(map(len, ballot.groups)) > 1 for ballot in one.ballots):
        return "answers of one model"
    if any(ballot.groups for ballot in one.ballots):
        return "one answer"
    if any(ballot.grades for ballot in one.ballots):
        return "grades without a ranking"
    return "abstentions" if one.ballots else NO_BALLOT


def _battles(one: SessionImport) -> Iterator[dict[str, Any]]:
    names = ExportNames(one)
    for stored_ballot in one.ballots:
        ballot = _place_pair(one, stored_ballot)
        places = {c: place for place, group in enumerate(ballot.groups) for c in group}
        positions = ballot.positions or {}
        for pair in combinations(sorted(places), 2):
            is_known = all(candidate in positions for candidate in pair)
            first, second = sorted(pair, key=lambda c: positions[c]) if is_known else pair
            models = [names.model(candidate, ballot) for candidate in (first, second)]
            if models[0] != models[1]:
                battle = _battle(one, ballot, (first, second), places)
                sides = {"model_a": models[0], "model_b": models[1]}
                judge = {"judge": names.reviewer(ballot)}
                yield battle | sides | judge | ({} if is_known else {"order_known": False})


def _battle(
    one: SessionImport, ballot: Ballot, pair: tuple[str, str], places: Mapping[str, int]
) -> dict[str, Any]:
    lead = places[pair[1]] - places[pair[0]]
    winner = "model_a" if lead > 0 else "model_b" if lead < 0 else "tie"
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
        "conversation_a": _conversation(one, pair[0]),
        "conversation_b": _conversation(one, pair[1]),
        "simulated": one.simulated or None,
    }
    return {field: value for field, value in record.items() if value is not None}


def _conversation(one: SessionImport, candidate: str) -> list[dict[str, str]] | None:
    if candidate not in one.answers:
        return None
    turns = [{"role": "user", "content": one.question}] if one.question else []
    return [*turns, {"role": "assistant", "content": one.answers[candidate]}]


def dumps(value: object) -> str:
    """Write a value as a line of JSON, safe in a terminal."""
    try:
        line = json.dumps(value, ensure_ascii=False, allow_nan=False)
    except ValueError as error:
        raise BallotFileError("the export", f"cannot contain a number: {error}") from error
    return escape_json(line)


def write_lines(lines: Iterable[str], path: str | Path) -> int:
    """Replace a file by lines, packed by its ending; return their number."""
    name, n_written = str(path), 0
    with whole_file(name) as raw, pack(raw, Path(name).suffix) as out:
        for line in lines:
            out.write(line.encode() + b"\n")
            n_written += 1
    return n_written
