"""The jury's grades of each text, over the rows of a batch."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from witan.core.estimation import number_questions
from witan.core.outcome import Interval
from witan.core.scale import NATIVE
from witan.core.stats.prediction_powered import MIN_CLUSTERS, MeanKind, estimate_powered_means
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
    lead, lead_interval
        Mean difference of its grades and those of the next text, over the rows that grade both;
        None: there is no next text with grades, or too few rows for an interval.
    """

    text: str
    rows: int
    leads: int
    grade: float | None
    interval: Interval | None
    questions: int = 0
    lead: float | None = None
    lead_interval: Interval | None = None


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
    grades = {
        text: {each.row: each.grade for each in every if each.grade is not None}
        for text, every in by_text.items()
    }
    summaries = []
    for text, every in by_text.items():
        mean, interval, n_questions = _mean(grades[text], "grades", questions, level)
        if interval is not None:
            low, high = max(interval.low, NATIVE.low), min(interval.high, NATIVE.high)
            interval = Interval(low, high, level)
        n_leads = sum(each.leads for each in every)
        summaries.append(TextSummary(text, len(every), n_leads, mean, interval, n_questions))
    summaries.sort(key=lambda each: (each.grade is None, -(each.grade or 0.0)))
    for at, (first, second) in enumerate(pairwise(summaries)):
        others = grades[second.text]
        above = {row: g - others[row] for row, g in grades[first.text].items() if row in others}
        lead, interval, _ = _mean(above, "differences of grades", questions, level)
        summaries[at] = replace(first, lead=lead, lead_interval=interval)
    return tuple(summaries)


def _mean(
    values: Mapping[int, float], kind: MeanKind, questions: Mapping[int, str], level: float
) -> tuple[float | None, Interval | None, int]:
    """Return the mean over rows, clustered by question, its interval, and the questions."""
    if not values:
        return None, None, 0
    numbers = number_questions([questions[row] for row in values])
    clusters = numbers if numbers.max() >= MIN_CLUSTERS - 1 else None
    jury = np.array([*values.values()], dtype=np.float64)[:, np.newaxis]
    people = np.full(jury.shape, np.nan)
    mean, low, high = (
        float(each[0])
        for each in estimate_powered_means(people, jury, clusters, kind=kind, level=level).jury[:3]
    )
    interval = None if np.isnan(low) else Interval(low, high, level)
    return mean, interval, int(numbers.max()) + 1
