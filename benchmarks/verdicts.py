"""Verdicts on single texts with and without the severity that a history knows.

A jury is drawn from a pool, whose other sessions teach how severe each juror is. The truth is what
jurors like these would give on average: simulated, or the mean of LLMJudge's 33 judges (``--grades
llmjudge_relevance/pointwise.csv.gz``), taught by the other queries.
"""

import argparse
import csv
import gzip
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from witan.core.ballot import Ballot
from witan.core.profile import Floats
from witan.core.scale import Scale
from witan.core.settings import Settings
from witan.core.stats.learning import learn_severity
from witan.core.stats.priors import Severity
from witan.core.tally import tally_sessions
from witan.core.verdict import judge_texts

PASS_MARK = 6.0
NOISE, SHARED = 1.1, 0.2
POOL, HISTORY = 8, 60
GIVEN = Settings(flips=False)


@dataclass(frozen=True, slots=True)
class Case:
    """A text's grades by juror, what is true of it, and what a history knows."""

    grades: Mapping[str, float]
    truth: float
    severity: Severity | None


def simulated(n_jurors: int, spread: float, n_cases: int) -> Iterator[Case]:
    """Draw pools whose jurors' severity varies so; a fifth of the noise is shared."""
    rng = np.random.default_rng(n_jurors)
    for _ in range(n_cases):
        severity = rng.normal(0, np.sqrt(spread), POOL)

        def grade(
            quality: float, jury: NDArray[np.int64], severity: Floats = severity
        ) -> dict[str, float]:
            level = quality + rng.normal(0, np.sqrt(NOISE * SHARED))
            noise = rng.normal(0, np.sqrt(NOISE * (1 - SHARED)), len(jury))
            grades = np.clip(np.rint(level + severity[jury] + noise), 1, 10).tolist()
            return {f"juror {juror}": each for juror, each in zip(jury, grades, strict=True)}

        sessions = []
        for _ in range(HISTORY):
            jury = rng.choice(POOL, n_jurors, replace=False)
            sessions.append([grade(quality, jury) for quality in rng.normal(6, 1.5, 2)])
        truth = rng.uniform(4, 8)
        jury = rng.choice(POOL, n_jurors, replace=False)
        yield Case(grade(truth, jury), truth, learn_severity(sessions))


def judged(path: Path, n_jurors: int, n_cases: int) -> Iterator[Case]:
    """Draw a text of a query and some of its judges; all of them say what is true."""
    scores: dict[str, dict[str, dict[str, float]]] = defaultdict(lambda: defaultdict(dict))
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for row in csv.DictReader(lines):
            if 0 <= (score := float(row["score"])) <= 3:
                scores[row["prompt_id"]][row["candidate"]][row["judge"]] = 1 + 3 * score
    rng = np.random.default_rng(n_jurors)
    queries = sorted(scores)
    learned = {
        query: learn_severity(
            [[grades] for other in queries if other != query for grades in scores[other].values()]
        )
        for query in queries
    }
    for number in range(n_cases):
        query = queries[number % len(queries)]
        texts = scores[query]
        grades = texts[str(rng.choice(sorted(texts)))]
        jury = [str(each) for each in rng.choice(sorted(grades), n_jurors, replace=False)]
        truth = float(np.mean([*grades.values()]))
        yield Case({juror: grades[juror] for juror in jury}, truth, learned[query])


def measure(cases: Sequence[Case], *, corrected: bool) -> str:
    """Write coverage, mean width, error and decisions of the verdicts, in a row's cells."""
    covered = wrong = decided = 0
    widths, errors = [], []
    for case in cases:
        ballots = [
            Ballot(juror, session="s", grades={"text": grade}, candidates=("text",), scale=Scale())
            for juror, grade in case.grades.items()
        ]
        settings = replace(GIVEN, prior="learn", severity=case.severity) if corrected else GIVEN
        [outcome] = tally_sessions(ballots, settings)
        verdict = judge_texts(ballots, outcome, settings, pass_mark=PASS_MARK)
        grade = verdict.texts[0].overall
        if grade is None or grade.interval is None:
            continue
        covered += grade.interval.low <= case.truth <= grade.interval.high
        widths.append(grade.interval.high - grade.interval.low)
        errors.append((grade.mean - case.truth) ** 2)
        if verdict.decision in ("passed", "failed"):
            decided += 1
            wrong += (verdict.decision == "passed") != (case.truth >= PASS_MARK)
    n = len(widths)
    shares = f"{covered / n:.3f}, {np.mean(widths):.2f} | {np.sqrt(np.mean(errors)):.2f}"
    return f"{shares} | {100 * decided / n:.0f}, {100 * wrong / n:.1f}"


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--grades", type=Path, help="LLMJudge's pointwise.csv.gz")
    parser.add_argument("--cases", type=int, default=1_000)
    options = parser.parse_args()
    print("| jury | coverage, width | error | decided, wrong, % |")
    print("| --- | --- | --- | --- |")
    kinds = [
        (f"{n} of {POOL}, severity varies by {spread:g}", [*simulated(n, spread, options.cases)])
        for n, spread in ((3, 0.7), (5, 0.7), (5, 0.1), (5, 1.5))
    ]
    if options.grades is not None and options.grades.exists():
        kinds += [
            (f"{n} judges of LLMJudge", [*judged(options.grades, n, options.cases)])
            for n in (3, 5, 9)
        ]
    for title, cases in kinds:
        for name, corrected in (("as given", False), ("corrected", True)):
            print(f"| {title}: {name} | {measure(cases, corrected=corrected)} |")
    if options.grades is None or not options.grades.exists():
        print("skipped: real judges, for want of --grades with LLMJudge's pointwise.csv.gz")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
