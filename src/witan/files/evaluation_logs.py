"""Judged sessions as logs of Inspect and as results of promptfoo."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import blake2s
from pathlib import Path
from typing import Any
from urllib.parse import quote

from witan.core.verdict import TextGrades, Verdict
from witan.deliberation.ports import REFERENCE
from witan.deliberation.record import SessionImport
from witan.deliberation.session import Session
from witan.errors import NothingToCount
from witan.files.evaluations import JUROR_GRADES, SIMULATED
from witan.files.exports import OnSkip, dumps, write_lines

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

    Parameters
    ----------
    text
        Whose grades; by default those of the best text.
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

    Parameters
    ----------
    value
        Mean grades, 1 to 10, by name; of a text that was only ranked, `BEATEN`.
    scores
        The same from 0 to 1.
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
    time. A sample is a session; its score has the mean grades, 1 to 10, and each juror's own; of
    texts that were only ranked, the share of their rivals below them.

    Raises
    ------
    NothingToCount
        If no session has a verdict.
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
    cost that is unknown is left out, of a provider too.

    Raises
    ------
    NothingToCount
        If no session has a verdict.
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
    """Describe a column of promptfoo's table."""
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
