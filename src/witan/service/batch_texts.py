"""The jury's grades of each text, over the rows of a batch."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from witan.core.estimation import number_questions
from witan.core.outcome import Interval
from witan.core.scale import NATIVE
from witan.core.stats.prediction_powered import MIN_CLUSTERS, estimate_powered_means
from witan.core.verdict import Verdict


@dataclass(frozen=True, slots=True)
class TextSummary:
    """The jury's judgments of one text, over all rows that have it.

    Parameters
    ----------
    text
        Its name.
    rows
        Rows in which it was judged.
    leads
        Rows in which it clearly leads the others.
    grade
        Its mean overall grade, by the jury alone; None: no row has grades.
    interval
        Of that mean; None: too few rows, or all have the same grade. For more texts of the same
        questions if these are fewer than five, otherwise for rows like these.
    questions
        Number of questions of the rows with grades; each unknown one counts as different.
    """

    text: str
    rows: int
    leads: int
    grade: float | None
    interval: Interval | None
    questions: int = 0


class TextJudgment(NamedTuple):
    """The jury's judgment of one text of a row."""

    row: int
    text: str
    grade: float | None
    leads: bool


def read_judgments(row: int, verdict: Verdict | None) -> list[TextJudgment]:
    """Read the judgment of each text from a row's verdict."""
    if verdict is None:
        return []
    return [
        TextJudgment(
            row,
            each.text,
            None if each.overall is None else each.overall.mean,
            each.text == verdict.leader,
        )
        for each in verdict.texts
    ]


def mean_grades(
    judgments: Sequence[TextJudgment], names: Mapping[int, str]
) -> dict[str, dict[str, float]]:
    """Return the jury's mean grade of each text by session, {} for sessions without grades.

    Parameters
    ----------
    names
        Sessions of the rows with texts, by the rows' numbers.
    """
    grades: dict[str, dict[str, float]] = {name: {} for name in names.values()}
    for each in judgments:
        if each.grade is not None and each.row in names:
            grades[names[each.row]][each.text] = each.grade
    return grades


def summarize_texts(
    judgments: Sequence[TextJudgment], questions: Mapping[int, str], level: float
) -> tuple[TextSummary, ...]:
    """Summarize the judgments by text, the best mean grade first.

    Parameters
    ----------
    questions
        Of each row, by its number; rows of one question are a cluster.
    """
    by_text: dict[str, list[TextJudgment]] = {}
    for each in sorted(judgments):  # rows end in any order
        by_text.setdefault(each.text, []).append(each)
    summaries = [_summarize(text, every, questions, level) for text, every in by_text.items()]
    return tuple(sorted(summaries, key=lambda each: (each.grade is None, -(each.grade or 0.0))))


def _summarize(
    text: str, judgments: Sequence[TextJudgment], questions: Mapping[int, str], level: float
) -> TextSummary:
    graded = {each.row: each.grade for each in judgments if each.grade is not None}
    n_leads = sum(each.leads for each in judgments)
    if not graded:
        return TextSummary(text, len(judgments), n_leads, None, None)
    numbers = number_questions([questions[row] for row in graded])
    clusters = numbers if numbers.max() >= MIN_CLUSTERS - 1 else None
    jury = np.array([*graded.values()], dtype=np.float64)[:, np.newaxis]
    people = np.full(jury.shape, np.nan)
    mean, low, high = (
        float(each[0])
        for each in estimate_powered_means(people, jury, clusters, level=level).jury[:3]
    )
    ends = None if np.isnan(low) else Interval(max(low, NATIVE.low), min(high, NATIVE.high), level)
    n_questions = int(numbers.max()) + 1
    return TextSummary(text, len(judgments), n_leads, mean, ends, n_questions)
