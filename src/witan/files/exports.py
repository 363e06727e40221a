"""Export of sessions: whole, as ballots, battles, or evaluation logs."""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from hashlib import blake2s
from itertools import combinations
from pathlib import Path
from typing import Any
from urllib.parse import quote

from witan.core.ballot import Ballot, mark_simulated, to_record
from witan.core.escaping import escape_json
from witan.core.verdict import TextGrades, Verdict
from witan.deliberation.learning import model_of
from witan.deliberation.ports import REFERENCE
from witan.deliberation.record import SessionImport, session_to_json
from witan.deliberation.session import Session
from witan.errors import BallotFileError, NothingToCount
from witan.files.ballots import pack, whole_file, write_ballots
from witan.files.battles import BOTH_BAD
from witan.files.evaluations import JUROR_GRADES, SIMULATED
from witan.files.imports import IMPORT_KEY, VERSION, VOTES, ballots_with_question


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
    """Map seats to models, if their names differ."""
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
    return write_lines(map(_session_line, sessions), path)


def _session_line(one: SessionImport) -> str:
    """Return one whole session as a JSON line, with any events and people's votes."""
    if one.session_record is None:
        return dumps(imported_object(one))
    line = session_to_json(one.session_record)
    votes = [ballot_fields(ballot) for ballot in one.ballots if ballot.kind == "human"]
    return line if not votes else f'{line[:-1]}, "{VOTES}": {dumps(votes)}}}'


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

    A ballot without time, category or question has those of its session. A ballot of a simulated
    session is marked in its notes. Seats are named by their models, as in leaderboards; if a model
    has several, also by the seat.
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


def ballot_fields(ballot: Ballot) -> dict[str, Any]:
    """Return a ballot's fields without the session, named by the line."""
    return {field: value for field, value in to_record(ballot).items() if field != "session"}


def _ballots(sessions: Iterable[SessionImport], on_skip: OnSkip | None) -> Iterator[Ballot]:
    for one in sessions:
        names = ExportNames(one)
        if on_skip is not None and not one.ballots:
            on_skip(one, NO_BALLOT)
        for ballot in ballots_with_question(one):
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
    """Replace a file by lines, compressed by its suffix; return their number."""
    name, n_written = str(path), 0
    with whole_file(name) as raw, pack(raw, Path(name).suffix) as out:
        for line in lines:
            out.write(line.encode() + b"\n")
            n_written += 1
    return n_written


SCORER = "witan_jury"

NO_VERDICT = "no verdict on a text"

NOTHING = "no session has a verdict on a text; witan judge and batch give them"

BEATEN = "rivals_beaten"
"""The score of a text that was ranked and not graded: the share of its rivals below it."""

Describe = Callable[[Verdict], str]
"""Puts a verdict into a sentence."""


def mean_grades(session: Session, text: str | None = None) -> dict[str, float]:
    """Return mean grades of a text, overall and by criterion, 1–10."""
    grades = _find_text(session, text)
    if grades is None:
        return {}
    overall = {} if grades.overall is None else {"overall": grades.overall.mean}
    return overall | {name: grade.mean for name, grade in grades.criteria.items()}


def share_of_scale(grade: float) -> float:
    """Convert a grade from 1–10 to the scale 0–1."""
    return (grade - 1) / 9


def verdict_facts(session: Session, text: str | None = None) -> dict[str, Any]:
    """List a verdict's facts: certainty, grades by juror, cost and session.

    `text`: the text whose grades are listed; by default the best.
    """
    facts = {"session": session.id, "status": session.status, "cost_usd": session.cost.total_usd}
    if session.is_simulated:
        facts[SIMULATED] = True
    verdict, grades = session.verdict, _find_text(session, text)
    if verdict is None or grades is None:
        return facts
    interval = grades.overall and grades.overall.interval
    return facts | {
        "decision": verdict.decision,
        "probability": verdict.probability,
        "interval": interval and [interval.low, interval.high],
        "level": verdict.level,
        "pass_mark": verdict.pass_mark,
        "ballots_to_flip": verdict.ballots_to_flip,
        "reviewers": list(verdict.reviewers),
        JUROR_GRADES: {
            each.reviewer: each.grades[grades.text]
            for each in session.ballots
            if grades.text in each.grades
        },
    }


def _find_text(session: Session, text: str | None) -> TextGrades | None:
    texts = () if session.verdict is None else session.verdict.texts
    return next((each for each in texts if text in (None, each.text)), None)


@dataclass(frozen=True, slots=True)
class _JudgedText:
    """A text of a judged session, with the facts of its verdict.

    `value`: mean grades, 1 to 10, by name; for a text that was only ranked, `BEATEN`.
    `scores`: the same from 0 to 1.
    """

    session: Session
    verdict: Verdict
    text: str
    answer: str
    value: Mapping[str, float]
    scores: Mapping[str, float]
    facts: Mapping[str, Any]

    @property
    def passes(self) -> bool:
        """True if the verdict passes this text, or decides nothing."""
        decision, about = self.verdict.decision, self.verdict.text
        return about in (None, self.text) and decision in (None, "passed")


def _judged_texts(one: SessionImport) -> Iterator[_JudgedText]:
    session = one.session_record
    verdict = None if session is None else session.verdict
    if session is None or verdict is None:
        return
    value = {each.text: mean_grades(session, each.text) for each in verdict.texts}
    scores = {
        text: {name: share_of_scale(grade) for name, grade in grades.items()}
        for text, grades in value.items()
    }
    if not any(value.values()):
        ranking = session.recount(rule="borda").standings
        scores = value = {
            line.candidate: {BEATEN: line.score} for line in ranking if line.score is not None
        }
    for text in filter(value.get, [each.text for each in verdict.texts]):
        facts = verdict_facts(session, text)
        answer = one.answers.get(text, "")
        yield _JudgedText(session, verdict, text, answer, value[text], scores[text], facts)


def _all_judged_texts(
    sessions: Iterable[SessionImport], on_skip: OnSkip | None
) -> Iterator[tuple[int, _JudgedText]]:
    """Yield every judged text with the number of its session, from 0."""
    number = 0
    for one in sessions:
        texts = list(_judged_texts(one))
        if not texts and on_skip is not None:
            on_skip(one, NO_VERDICT)
        yield from ((number, each) for each in texts)
        number += bool(texts)


def write_inspect_logs(
    sessions: Iterable[SessionImport],
    folder: str | Path,
    describe: Describe,
    *,
    on_skip: OnSkip | None = None,
) -> int:
    """Write judged sessions as logs of Inspect; return the number of samples.

    There is one log per name of a text, as Inspect has one per model, named by its first session's
    time. A sample is a session; its score has the mean grades, 1 to 10, and each juror's own; for
    texts that were only ranked, the share of their rivals below them.

    Raises `NothingToCount` if no session has a verdict.
    """
    samples: dict[str, list[dict[str, Any]]] = {}
    started: dict[str, datetime] = {}
    for _, each in _all_judged_texts(sessions, on_skip):
        samples.setdefault(each.text, []).append(_sample(each, describe))
        started.setdefault(each.text, each.session.opening.at)
    if not samples:
        raise NothingToCount(NOTHING)
    Path(folder).mkdir(parents=True, exist_ok=True)
    for name, of_text in samples.items():
        at = started[name].astimezone(UTC)
        # Inspect lists only logs whose names begin like this.
        file = f"{at:%Y-%m-%dT%H-%M-%S}+00-00_witan_{quote(name, safe='')}.json"
        write_lines([dumps(_log(name, at, of_text))], Path(folder) / file)
    return sum(map(len, samples.values()))


def _sample(one: _JudgedText, describe: Describe) -> dict[str, Any]:
    question = one.session.opening.question
    message = {"role": "assistant", "content": one.answer}
    score = {
        "value": one.value,
        "answer": one.answer,
        "explanation": describe(one.verdict),
        "metadata": one.facts,
    }
    return {
        "id": one.session.id,
        "epoch": 1,
        "input": question,
        "target": one.session.opening.files.get(REFERENCE, ""),
        "messages": [{"role": "user", "content": question}, message],
        "output": {"model": one.text, "choices": [{"message": message, "stop_reason": "stop"}]},
        "scores": {SCORER: score},
    }


def _log(name: str, at: datetime, samples: list[dict[str, Any]]) -> dict[str, Any]:
    names = list(dict.fromkeys(key for each in samples for key in each["scores"][SCORER]["value"]))
    means = []
    for key in names:
        own = [each["scores"][SCORER]["value"] for each in samples]
        values = [value[key] for value in own if key in value]
        mean = {"name": "mean", "value": sum(values) / len(values)}
        means.append({"name": key, "scorer": SCORER, "metrics": {"mean": mean}})
    counts = {"total_samples": len(samples), "completed_samples": len(samples)}
    return {
        "version": 2,
        "status": "success",
        "eval": {
            "eval_id": _digest(name, *(each["id"] for each in samples)),
            "created": at.isoformat(),
            "task": "witan",
            "model": name,
            "dataset": {"name": "witan", "samples": len(samples)},
            "config": {},
        },
        "plan": {},
        "results": {**counts, "scores": means},
        "stats": {},
        "samples": samples,
    }


def _digest(*names: str) -> str:
    return blake2s("\n".join(names).encode(), digest_size=11).hexdigest()


def write_promptfoo_results(
    sessions: Iterable[SessionImport],
    path: str | Path,
    describe: Describe,
    *,
    on_skip: OnSkip | None = None,
) -> int:
    """Write judged sessions as a file for ``promptfoo import``.

    Returns the number of results.

    A session is a test, a text is the output of a provider of its name. Scores are from 0 to 1. A
    cost that is unknown is left out, also for a provider.

    Raises `NothingToCount` if no session has a verdict.
    """
    providers: dict[str, int] = {}
    results = []
    at = datetime.min.replace(tzinfo=UTC)
    for number, each in _all_judged_texts(sessions, on_skip):
        place = providers.setdefault(each.text, len(providers))
        results.append(_result(each, number, place, describe))
        at = max(at, each.session.opening.at)
    if not results:
        raise NothingToCount(NOTHING)
    n_passed = sum(each["success"] for each in results)
    evaluation = {
        "evalId": f"eval-witan-{_digest(*(each['id'] for each in results))}",
        "results": {
            "version": 3,
            "timestamp": at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z"),
            "prompts": [_prompt(name, results) for name in providers],
            "results": results,
            "stats": {
                "successes": n_passed,
                "failures": len(results) - n_passed,
                "errors": 0,
                "tokenUsage": {},
            },
        },
        "config": {"description": "sessions judged by Witan"},
        "shareableUrl": None,
    }
    write_lines([dumps(evaluation)], path)
    return len(results)


def _prompt(provider: str, results: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    own = [each for each in results if each["provider"]["id"] == provider]
    n_passed = sum(each["success"] for each in own)
    costs = [each["cost"] for each in own if "cost" in each]
    return {
        "raw": "{{question}}",
        "label": "question",
        "provider": provider,
        "metrics": {
            "score": sum(each["score"] for each in own),
            "testPassCount": n_passed,
            "testFailCount": len(own) - n_passed,
            "testErrorCount": 0,
            "assertPassCount": n_passed,
            "assertFailCount": len(own) - n_passed,
            "totalLatencyMs": 0,
            "tokenUsage": {},
            "namedScores": {},
            "namedScoresCount": {},
            **({"cost": sum(costs)} if len(costs) == len(own) else {}),
        },
    }


def _result(one: _JudgedText, number: int, place: int, describe: Describe) -> dict[str, Any]:
    scores = dict(one.scores)
    score = scores.pop("overall", None)
    if score is None:
        score = sum(scores.values()) / len(scores)
    verdict = {
        "pass": one.passes,
        "score": score,
        "reason": describe(one.verdict),
        "namedScores": scores,
    }
    assertion = {"type": "python", "metric": SCORER, "value": "file://witan"}
    component = {**verdict, "assertion": assertion, "metadata": one.facts}
    question, cost_usd = one.session.opening.question, one.facts["cost_usd"]
    return {
        "id": f"{one.session.id}/{place}",
        "testIdx": number,
        "promptIdx": place,
        "provider": {"id": one.text, "label": one.text},
        "prompt": {"raw": question, "label": "question"},
        "promptId": one.text,
        "vars": {"question": question, "session": one.session.id},
        "testCase": {"vars": {"question": question, "session": one.session.id}},
        "response": {"output": one.answer},
        "success": one.passes,
        "score": score,
        "namedScores": scores,
        "gradingResult": {**verdict, "componentResults": [component]},
        "failureReason": 0 if one.passes else 1,
        "latencyMs": 0,
        **({} if cost_usd is None else {"cost": cost_usd / len(one.verdict.texts)}),
        "metadata": one.facts,
    }
