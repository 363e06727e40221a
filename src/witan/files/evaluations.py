"""Results of evaluation tools, and saved conversations of a council."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import chain, count
from string import ascii_uppercase
from typing import Any

from witan.core.ballot import Ballot, Grade, Unreadable, check_years, session_name
from witan.core.blinding import Sheet
from witan.core.scale import HOLISTIC, Scale, read_grade
from witan.core.scale_recognition import NATIVE_SCALE
from witan.deliberation.ballots import read_review
from witan.deliberation.record import SessionImport
from witan.errors import InvalidBallot
from witan.files.ballots.formats import Records
from witan.files.ballots.opening import OpenedFile
from witan.files.ballots.problems import ProblemReport
from witan.files.ballots.records import objects


def merge_graded(ballots: Iterable[Ballot]) -> list[Ballot]:
    """Merge a reviewer's ballots of one candidate each.

    Only ballots with grades alone are merged, and only if they grade different candidates.
    Grades on different scales are converted to 1-10; those on an undeclared scale are not merged
    with others.
    """
    merged_ballots: list[Ballot] = []
    places: dict[tuple[str, str, str, float], int] = {}
    for ballot in ballots:
        if ballot.groups or ballot.abstained or ballot.paired or ballot.positions:
            merged_ballots.append(ballot)
            continue
        key = (ballot.session, ballot.reviewer, ballot.kind, ballot.weight)
        place = places.setdefault(key, len(merged_ballots))
        if place == len(merged_ballots):
            merged_ballots.append(ballot)
        elif (merged := _merge(merged_ballots[place], ballot)) is not None:
            merged_ballots[place] = merged
        else:
            merged_ballots.append(ballot)
    return merged_ballots


def _merge(first: Ballot, second: Ballot) -> Ballot | None:
    """Merge two ballots; None: same candidate, or unknown scales."""
    if not first.grades.keys().isdisjoint(second.grades):
        return None
    if first.scale == second.scale:
        return replace(first, grades={**first.grades, **second.grades})
    if first.scale is None or second.scale is None:
        return None
    grades = {**_convert(first.grades, first.scale), **_convert(second.grades, second.scale)}
    return replace(first, grades=grades, scale=NATIVE_SCALE)


def _convert(grades: Mapping[str, Grade | Mapping[str, Grade]], scale: Scale) -> dict[str, Any]:
    """Convert grades to 1-10; other values stay unchanged."""

    def convert(value: Any, criterion: str) -> Grade:
        grade = read_grade(value, scale.of(criterion))
        return value if grade is None else grade

    return {
        candidate: {name: convert(value, name) for name, value in sheet.items()}
        if isinstance(sheet, Mapping)
        else convert(sheet, HOLISTIC)
        for candidate, sheet in grades.items()
    }


Reviews = dict[str, Grade | dict[str, Grade]]
"""Reviewer → grade, or grades by criterion, of one answer."""

JUROR_GRADES = "juror_grades"
"""Metadata of a score by a jury of ours: the grades, 1 to 10, of each juror."""

SIMULATED = "simulated"
"""Metadata of such a score: true where scripts cast its ballots."""

_LETTERS = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}
"""Letters of Inspect's scorers for correct, partial, incorrect and no answer."""


def read_promptfoo(records: Records, stem: str, report: ProblemReport) -> Iterator[SessionImport]:
    """Read results: a test is a session, a provider a candidate.

    A provider's further answer to a test, as with ``--repeat``, is in a separate session. Every
    assertion is a reviewer, named by its metric, by the grading model, or by its type; for a jury
    of ours every juror is one. A result without assertions is graded by ``promptfoo``. A failed
    answer has no grade, nor has an assertion that promptfoo marks as an error of its grader; notes
    list both.
    """
    runs, left_out = Counter[tuple[int, str]](), _LeftOut()
    for line, record in records:
        try:
            results = _results(record)
        except Unreadable as flaw:
            report(line, flaw)
            continue
        repeated_prompts = _find_repeated_prompts(results)
        for number, one in enumerate(results, start=1):
            try:
                if not isinstance(one, dict):
                    raise Unreadable(None, "is not an object; expected a result of promptfoo")
                yield _piece_of_result(one, stem, repeated_prompts, runs, left_out)
            except Unreadable as flaw:
                path_in_file = "results" if len(results) == 1 else f"results[{number - 1}]"
                field = path_in_file if flaw.field is None else f"{path_in_file}.{flaw.field}"
                report(line, Unreadable(field, flaw.problem, remedy=flaw.remedy))
    left_out.note(report)


class _LeftOut:
    """Results and assertions without a grade, because of an error."""

    def __init__(self) -> None:
        self._sessions: dict[str, dict[str, list[str]]] = {}

    def add(self, noun: str, name: str, session: str) -> None:
        self._sessions.setdefault(noun, {}).setdefault(name, []).append(session)

    def note(self, report: ProblemReport) -> None:
        """Report the names, with their first sessions."""
        for noun, sessions_by_name in self._sessions.items():
            n = sum(map(len, sessions_by_name.values()))
            lines = []
            for name, sessions in sessions_by_name.items():
                more = f" and {len(sessions) - 3:,} more" if len(sessions) > 3 else ""
                lines.append(f"{name} in {', '.join(sessions[:3])}{more}")
            subject = f"1 {noun} with an error is" if n == 1 else f"{n:,} {noun}s with an error are"
            report.note(f"{subject} left out: {'; '.join(lines)}")


def _results(record: Mapping[str, Any]) -> list[Any]:
    results = record.get("results", [record])
    if isinstance(results, dict):
        results = results.get("results")
    if not isinstance(results, list):
        raise Unreadable("results", "is not a list; expected the results of promptfoo")
    return results


def _find_repeated_prompts(results: Sequence[Any]) -> set[str]:
    """Return the providers with several prompts in one test."""
    prompts: dict[str, set[str]] = {}
    for one in results:
        with suppress(Unreadable):  # reading the result reports it
            if isinstance(one, dict):
                prompts.setdefault(_provider(one.get("provider")), set()).add(_prompt(one))
    return {provider for provider, texts in prompts.items() if len(texts) > 1}


def _piece_of_result(
    one: Mapping[str, Any],
    stem: str,
    several: Collection[str],
    runs: Counter[tuple[int, str]],
    left_out: _LeftOut,
) -> SessionImport:
    test, candidate = _test(one), _provider(one.get("provider"))
    if candidate in several:
        candidate = f"{candidate} ({_prompt(one)})"
    runs[test, candidate] += 1
    run = runs[test, candidate]
    repeat_suffix = f"/repeat-{run}" if run > 1 else ""
    session = session_name("testIdx", f"{stem}/{test}{repeat_suffix}")
    question = one.get("prompt")
    prompt = question.get("raw") if isinstance(question, dict) else None
    response = one.get("response")
    output = response.get("output") if isinstance(response, dict) else None
    failed = one.get("error") is not None and one.get("failureReason") != 1
    graded, jurors, graders = ({}, {}, []) if failed else _assertions(one)
    if failed:
        left_out.add("result", candidate, session)
    for grader in graders:
        left_out.add("assertion", f"{grader} of {candidate}", session)
    prompt = prompt if isinstance(prompt, str) else ""
    return SessionImport(
        session=session,
        question=prompt,
        ballots=_ballots(session, candidate, graded, jurors),
        answers={candidate: output} if isinstance(output, str) else {},
        simulated=any(map(_is_simulated, _components(one))),
    )


def _test(one: Mapping[str, Any]) -> int:
    number = one.get("testIdx")
    if isinstance(number, bool) or not isinstance(number, int):
        raise Unreadable("testIdx", "is missing; expected the number of the test")
    return number + 1


def _prompt(one: Mapping[str, Any]) -> str:
    number = one.get("promptIdx")
    label = one.get("prompt")
    text = label.get("label") if isinstance(label, dict) else None
    if isinstance(text, str) and 0 < len(text) <= 40 and "\n" not in text:
        return text
    return f"prompt {number + 1}" if isinstance(number, int) else "prompt"


def _provider(value: object) -> str:
    if isinstance(value, dict):
        value = value.get("label") or value.get("id")
    if not isinstance(value, str) or not value.strip():
        raise Unreadable("provider", "is missing; expected the name of a provider")
    return value.strip()


def _assertions(one: Mapping[str, Any]) -> tuple[Reviews, Reviews, list[str]]:
    """Return grades by assertion, 0–1, and by juror, 1–10, and assertions with an error.

    Equal names are numbered.
    """
    graded: Reviews = {}
    jurors: Reviews = {}
    errors: list[str] = []
    for part in _components(one):
        name = _free_name(_assertion(part.get("assertion")), (*graded, *errors))
        if _is_grader_error(part):
            errors.append(name)
        elif of_jurors := _juror_grades(part):
            for juror, grade in of_jurors.items():
                jurors[_free_name(juror, jurors)] = grade
        elif (score := _score(part)) is not None:
            graded[name] = score
    # The score of a result contains the 0 of an error.
    if not graded and not jurors and not errors and (score := _score(one)) is not None:
        graded["promptfoo"] = _named_scores(one, score)
    return graded, jurors, errors


def _components(one: Mapping[str, Any]) -> list[dict[str, Any]]:
    grading = one.get("gradingResult")
    parts = grading.get("componentResults") if isinstance(grading, dict) else None
    return [part for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []


def _is_grader_error(part: Mapping[str, Any]) -> bool:
    """Return whether promptfoo marks an assertion as without a verdict."""
    metadata = part.get("metadata")
    return isinstance(metadata, dict) and metadata.get("graderError") is True


def _free_name(name: str, names: Collection[str]) -> str:
    numbered = (name, *(f"{name}-{number}" for number in range(2, len(names) + 2)))
    return next(each for each in numbered if each not in names)


def _juror_grades(score: object) -> Reviews:
    """Return the grades of each juror behind a score of ours."""
    by_juror = _jury_metadata(score).get(JUROR_GRADES, {})
    grades = {juror: _value({"value": value}) for juror, value in by_juror.items()}
    return {juror: grade for juror, grade in grades.items() if grade is not None}


def _is_simulated(score: object) -> bool:
    return _jury_metadata(score).get(SIMULATED) is True


def _jury_metadata(score: object) -> Mapping[str, Any]:
    """Return the metadata of a score by a jury of ours."""
    metadata = score.get("metadata") if isinstance(score, dict) else None
    by_juror = metadata.get(JUROR_GRADES) if isinstance(metadata, dict) else None
    return metadata if isinstance(metadata, dict) and isinstance(by_juror, dict) else {}


def _named_scores(one: Mapping[str, Any], grade: float) -> Grade | dict[str, Grade]:
    by_metric = one.get("namedScores")
    grade_by_metric = by_metric.items() if isinstance(by_metric, dict) else ()
    scores = {
        name: score
        for name, score in grade_by_metric
        if isinstance(score, int | float) and not isinstance(score, bool)
    }
    return {**scores, "overall": grade} if scores else grade


def _assertion(value: object) -> str:
    if not isinstance(value, dict):
        return "assertion"
    for field in ("metric", "provider", "type"):
        text = value.get(field)
        if isinstance(text, dict):
            text = text.get("id")
        if isinstance(text, str) and text.strip():
            return text.strip()
    return "assertion"


def _score(entry: Mapping[str, Any]) -> float | None:
    score = entry.get("score")
    if isinstance(score, int | float) and not isinstance(score, bool):
        return float(score)
    has_passed = entry.get("pass", entry.get("success"))
    return float(has_passed) if isinstance(has_passed, bool) else None


def read_inspect(records: Records, report: ProblemReport) -> Iterator[SessionImport]:
    """Read samples as sessions, named by task and id.

    The model is a candidate, every scorer a reviewer; for a jury of ours every juror is one. A
    further epoch is a separate session. A note lists the samples that failed without a score.
    """
    left_out = _LeftOut()
    for line, record in records:
        about = record.get("eval")
        try:
            task, model, at = _evaluation(about)
            samples = record.get("samples")
            if not isinstance(samples, list):
                raise Unreadable("samples", "is missing; expected the samples, not only a header")
        except Unreadable as flaw:
            report(line, flaw)
            continue
        for sample in samples:
            try:
                piece = _piece_of_sample(sample, task, model, at)
                if not piece.ballots and sample.get("error") is not None:
                    left_out.add("sample", model, piece.session)
                yield piece
            except Unreadable as flaw:
                report(line, flaw)
    left_out.note(report)


def _evaluation(record: object) -> tuple[str, str, datetime | None]:
    header = record if isinstance(record, dict) else {}
    for field in ("task", "model"):
        if not isinstance(header.get(field), str) or not header[field].strip():
            raise Unreadable(f"eval.{field}", "is missing; expected a name")
    try:
        at = datetime.fromisoformat(str(header.get("created")))
    except ValueError:
        return header["task"].strip(), header["model"].strip(), None
    at = at if at.tzinfo is not None else at.replace(tzinfo=UTC)
    return header["task"].strip(), header["model"].strip(), check_years("eval.created", at)


def _piece_of_sample(sample: object, task: str, model: str, at: datetime | None) -> SessionImport:
    if not isinstance(sample, dict) or not isinstance(sample.get("id"), int | str):
        raise Unreadable("samples", "contains one without an id; expected samples of Inspect")
    epoch = sample.get("epoch", 1)
    epoch_suffix = f"/epoch-{epoch}" if isinstance(epoch, int) and epoch > 1 else ""
    session = session_name("samples.id", f"{task}/{sample['id']}{epoch_suffix}")
    scores = sample.get("scores")
    by_scorer = scores if isinstance(scores, dict) else {}
    graded: Reviews = {}
    jurors: Reviews = {}
    for reviewer, one in by_scorer.items():
        if of_jurors := _juror_grades(one):
            jurors |= {_free_name(juror, jurors): grade for juror, grade in of_jurors.items()}
        elif (grade := _value(one)) is not None:
            graded[reviewer] = grade
    answer = _completion(sample.get("output"))
    return SessionImport(
        session=session,
        at=at,
        question=_input(sample.get("input")),
        ballots=_ballots(session, model, graded, jurors),
        answers={} if answer is None else {model: answer},
        simulated=any(map(_is_simulated, by_scorer.values())),
    )


def _value(score: object) -> Grade | dict[str, Grade] | None:
    """Return a score's value: number, letter, or several by name; else None."""
    value = score.get("value") if isinstance(score, dict) else score
    if isinstance(value, dict):
        several = {name: one for name, part in value.items() if (one := _single(part)) is not None}
        return several or None
    return _single(value)


def _single(value: object) -> Grade | None:
    if isinstance(value, bool):
        return float(value)
    if isinstance(value, str):
        return _LETTERS.get(value, value.strip() or None)
    return value if isinstance(value, int | float) and value == value else None  # noqa: PLR0124 - NaN


def _input(values: object) -> str:
    """Return the question: a text, or the user's first message."""
    if isinstance(values, str):
        return values
    turns = values if isinstance(values, list) else []
    message = (
        _content(turn) for turn in turns if isinstance(turn, dict) and turn.get("role") == "user"
    )
    return next(message, "")


def _completion(output: object) -> str | None:
    values = output if isinstance(output, dict) else {}
    if isinstance(values.get("completion"), str):
        return str(values["completion"])
    choices = values.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else {}
    message = first.get("message") if isinstance(first, dict) else None
    return _content(message) if isinstance(message, dict) else None


def _content(turn: Mapping[str, Any]) -> str:
    content = turn.get("content")
    parts = content if isinstance(content, list) else [content]
    texts = (part.get("text") if isinstance(part, dict) else part for part in parts)
    return "\n".join(text for text in texts if isinstance(text, str))


def _ballots(session: str, candidate: str, grades: Reviews, jurors: Reviews) -> tuple[Ballot, ...]:
    by_others = (
        Ballot(reviewer, grades={candidate: grade}, session=session)
        for reviewer, grade in grades.items()
    )
    by_jurors = (
        Ballot(juror, grades={candidate: grade}, session=session, scale=NATIVE_SCALE)
        for juror, grade in jurors.items()
    )
    return (*by_others, *by_jurors)


def join_ballots(one: SessionImport) -> SessionImport:
    """Merge the session's ballots to one per reviewer."""
    return replace(one, ballots=tuple(merge_graded(one.ballots)))


UNMAPPED_LABELS_NOTE = "the file does not map labels to models; using the order of stage1"
"""Note on ballots of a conversation without ``label_to_model``."""


@dataclass(frozen=True, slots=True)
class _AnswerSet:
    """The answers to one question.

    `answers`: candidate to text.
    `authors`: candidate to model, for candidates not named by their model.
    `labels`: label, such as ``Response A``, to candidate, in the order of the sheet.
    `note`: note about the labels.
    """

    answers: Mapping[str, str]
    authors: Mapping[str, str]
    labels: Mapping[str, str]
    note: str | None


def read_conversations(source: OpenedFile, report: ProblemReport) -> Iterator[SessionImport]:
    """Read one session per question of each conversation."""
    for number, record in objects(source, report):
        try:
            yield from _sessions(record, source.stem, lambda flaw, n=number: report(n, flaw))
        except Unreadable as flaw:
            report(number, flaw)


def _sessions(record: Mapping[str, Any], stem: str, on_problem: Any) -> Iterator[SessionImport]:
    messages = record.get("messages")
    if not isinstance(messages, list):
        raise Unreadable("messages", "is not a list; expected the messages of a conversation")
    if not any(isinstance(one, dict) and "stage1" in one for one in messages):
        raise Unreadable(
            "messages", "contains no message with stage1; expected a council's answers"
        )
    identifier = record.get("id")
    has_identifier = isinstance(identifier, str) and identifier.strip()
    conversation = session_name("id", str(identifier)) if has_identifier else stem
    at = _time(record.get("created_at"))
    question, n_questions = "", 0
    for number, message in enumerate(messages):
        location = f"messages[{number}]"
        if not isinstance(message, dict):
            on_problem(Unreadable(location, "is not an object; expected a message"))
        elif message.get("role") == "user":
            question = message["content"] if isinstance(message.get("content"), str) else ""
        elif "stage1" in message:
            n_questions += 1
            name = conversation if n_questions == 1 else f"{conversation}/{n_questions}"
            try:
                yield _session(SessionImport(name, at, question), message, location)
            except Unreadable as flaw:
                on_problem(flaw)


def _time(value: object) -> datetime | None:
    """Parse the start of a conversation, which the app stores in UTC."""
    if not isinstance(value, str):
        return None
    try:
        at = datetime.fromisoformat(value)
    except ValueError:
        raise Unreadable("created_at", f"is {value!r}; expected a time (ISO 8601)") from None
    return check_years("created_at", at if at.tzinfo is not None else at.replace(tzinfo=UTC))


def _session(session: SessionImport, message: Mapping[str, Any], location: str) -> SessionImport:
    answer_set = _answer_set(message, location)
    if not answer_set.answers:
        raise Unreadable(f"{location}.stage1", "contains no answers, so there is nothing to review")
    reviews = message.get("stage2")
    if reviews is None:
        reviews = []
    if not isinstance(reviews, list):
        raise Unreadable(f"{location}.stage2", "is not a list of reviews")
    closing = message.get("stage3")
    text = closing.get("response") if isinstance(closing, dict) else None
    return SessionImport(
        session=session.session,
        at=session.at,
        question=session.question,
        ballots=tuple(
            _ballot(review, answer_set, session, f"{location}.stage2[{place}]")
            for place, review in enumerate(reviews)
        ),
        answers=answer_set.answers,
        closing=text if isinstance(text, str) and text else None,
    )


def _answer_set(message: Mapping[str, Any], location: str) -> _AnswerSet:
    reviews = message["stage1"]
    if not isinstance(reviews, list):
        raise Unreadable(f"{location}.stage1", "is not a list of answers")
    answers: dict[str, str] = {}
    authors: dict[str, str] = {}
    in_order: list[str] = []
    for place, answer in enumerate(reviews):
        model = answer.get("model") if isinstance(answer, dict) else None
        text = answer.get("response") if isinstance(answer, dict) else None
        if not isinstance(model, str) or not model or not isinstance(text, str):
            expected = "expected an object with model and response"
            raise Unreadable(f"{location}.stage1[{place}]", f"is not an answer; {expected}")
        names = chain([model], (f"{model}#{place}" for place in count(2)))
        candidate = next(name for name in names if name not in answers)
        if candidate != model:
            authors[candidate] = model
        answers[candidate] = text
        in_order.append(candidate)
    metadata = message.get("metadata")
    labels = metadata.get("label_to_model") if isinstance(metadata, dict) else None
    if isinstance(labels, dict) and labels:
        return _AnswerSet(answers, authors, _labels(labels, authors, answers), None)
    labelled_answers = zip(ascii_uppercase, in_order, strict=False)
    return _AnswerSet(
        answers, authors, {f"Response {a}": c for a, c in labelled_answers}, UNMAPPED_LABELS_NOTE
    )


def _labels(
    mapping: Mapping[str, object], authors: Mapping[str, str], answers: Mapping[str, str]
) -> dict[str, str]:
    """Map labels to candidates: a model's n-th label is its n-th answer."""
    answers_by_model: dict[str, list[str]] = {}
    for candidate in answers:
        answers_by_model.setdefault(authors.get(candidate, candidate), []).append(candidate)
    labels: dict[str, str] = {}
    for label, model in mapping.items():
        queued_answers = answers_by_model.get(model) if isinstance(model, str) else None
        if queued_answers:
            labels[label] = queued_answers.pop(0)
    return labels


def _ballot(review: object, answer_set: _AnswerSet, bare: SessionImport, location: str) -> Ballot:
    reviewer = review.get("model") if isinstance(review, dict) else None
    if not isinstance(review, dict) or not isinstance(reviewer, str) or not reviewer:
        raise Unreadable(location, "is not a review; expected an object with model and ranking")
    shared: dict[str, Any] = {
        "session": bare.session,
        "candidates": tuple(answer_set.answers),
        "authors": answer_set.authors or None,
        "notes": answer_set.note,
        "at": bare.at,
    }
    reading = _read_reply(review, reviewer, answer_set)
    if isinstance(reading, str):
        return Ballot(reviewer, abstained=True, reason=reading, **shared)
    places = {
        candidate: place for place, candidate in enumerate(answer_set.labels.values(), start=1)
    }
    return Ballot(reviewer, groups=reading, positions=places, **shared)


def _read_reply(
    review: Mapping[str, Any], reviewer: str, answer_set: _AnswerSet
) -> tuple[tuple[str, ...], ...] | str:
    """Return the ranking of a review, or the reason for none.

    A stored reply is parsed again, because without a ranking at the end the app uses the labels
    that occur anywhere in it.
    """
    reply, parsed = review.get("ranking"), review.get("parsed_ranking")
    if isinstance(reply, str):
        bare = tuple(label.removeprefix("Response ") for label in answer_set.labels)
        sheet = Sheet(reviewer, tuple(answer_set.labels.values()), bare, "")
        try:
            parsed_review = read_review(
                reply, sheet, rubric=None, holistic=False, session="", roster=sheet.candidates
            )
        except InvalidBallot as error:
            return error.problem
        return parsed_review.ballot.groups
    if not isinstance(parsed, list) or not parsed:
        return "the file contains no ranking"
    labels = list(map(str, parsed))
    if unknown_labels := [label for label in labels if label not in answer_set.labels]:
        return f"ranks {unknown_labels[0]}, which is not the label of an answer"
    if repeated := [label for at, label in enumerate(labels) if label in labels[:at]]:
        return f"ranks {repeated[0]} more than once"
    return tuple((answer_set.labels[label],) for label in labels)
