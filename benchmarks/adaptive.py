"""Spending adaptively beside asking everybody: decisions, mistakes, and reviews.

Juries of nine judge on one sheet, or one text against a pass mark: simulated ones, and nine drawn
from the 33 judges of LLMJudge (``--grades llmjudge_relevance/pointwise.csv.gz``), whom the others
hold to account. Each session is counted by its nine ballots, by the first of them as many as are
needed, and by a jury of a fixed size that costs about as much.
"""

import argparse
import csv
import gzip
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from witan.core.ballot import Ballot
from witan.core.outcome import Outcome
from witan.core.scale import Scale
from witan.core.sequential import FEWEST_VOTES, plan_looks
from witan.core.settings import Settings
from witan.core.tally import tally_sessions
from witan.core.verdict import judge_texts
from witan.deliberation.adaptive import look_at
from witan.deliberation.events import Judging

JURORS, SHARED, LEVEL_SPREAD = 9, 0.2, 1.0
SPREADS = (0.5, 1.0, 2.0, 4.0)
PASS_MARK = 6.0


@dataclass(frozen=True, slots=True)
class Case:
    """The ballots of a session in the order in which they are asked for, and what is true.

    Parameters
    ----------
    truth
        The best candidate; of one text, whether it passes.
    judging
        Terms of a judgment; None: candidates are compared.
    """

    ballots: tuple[Ballot, ...]
    truth: str | bool
    judging: Judging | None = None


@dataclass(frozen=True, slots=True)
class Result:
    """What some ballots of a case say: decided or not, whom they prefer, and how many they are."""

    is_decided: bool
    choice: str | bool
    n_ballots: int


def simulated(n_texts: int, sessions: int) -> Iterator[Case]:
    """Draw sessions of a mix of spreads: noise 1, a fifth of it shared, levels that differ."""
    rng = np.random.default_rng(n_texts)
    names = [f"text {n}" for n in range(n_texts)]
    for session in range(sessions):
        quality = rng.normal(0, SPREADS[session % len(SPREADS)], n_texts)
        common = np.sqrt(SHARED) * rng.normal(size=n_texts)
        ballots = []
        for juror in range(JURORS):
            level = LEVEL_SPREAD * rng.normal() if n_texts > 1 else 0.0
            noise = np.sqrt(1 - SHARED) * rng.normal(size=n_texts)
            grades = np.clip(np.rint(PASS_MARK + level + quality + common + noise), 1, 10).tolist()
            named = dict(zip(names, grades, strict=True))
            ballots.append(make_ballot(f"juror {juror}", f"s{session}", named))
        if n_texts == 1:
            yield Case(tuple(ballots), bool(quality[0] >= 0), Judging(PASS_MARK))
        else:
            yield Case(tuple(ballots), names[int(quality.argmax())])


def make_ballot(reviewer: str, session: str, grades: dict[str, float]) -> Ballot:
    """A ballot of overall grades from 1 to 10."""
    return Ballot(reviewer, session=session, grades=grades, candidates=tuple(grades), scale=Scale())


def judged(path: Path, n_texts: int, draws: int) -> Iterator[Case]:
    """Draw texts of a query and nine of its judges; the other judges say what is true."""
    scores: dict[str, dict[str, dict[str, float]]] = defaultdict(lambda: defaultdict(dict))
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for row in csv.DictReader(lines):
            if 0 <= (score := float(row["score"])) <= 3:
                scores[row["prompt_id"]][row["candidate"]][row["judge"]] = 1 + 3 * score
    rng = np.random.default_rng(n_texts)
    queries = sorted(scores)
    for draw in range(draws):
        texts = scores[queries[draw % len(queries)]]
        chosen = [str(each) for each in rng.choice(sorted(texts), n_texts, replace=False)]
        judges = sorted(set.intersection(*({*texts[each]} for each in chosen)))
        panel = [str(each) for each in rng.permutation(judges)]
        jury, others = panel[:JURORS], panel[JURORS:]
        means = {c: float(np.mean([texts[c][judge] for judge in others])) for c in chosen}
        ballots = tuple(make_ballot(j, f"d{draw}", {c: texts[c][j] for c in chosen}) for j in jury)
        if n_texts == 1:
            yield Case(ballots, means[chosen[0]] >= PASS_MARK, Judging(PASS_MARK))
        elif sorted(means.values())[-2] < max(means.values()):
            yield Case(ballots, max(means, key=means.__getitem__))


def count(case: Case, n_ballots: int, looks: tuple[int, ...]) -> Outcome:
    """Count the first ballots of a case."""
    [outcome] = tally_sessions(case.ballots[:n_ballots], Settings(flips=False, looks=looks))
    return outcome


def conclude(case: Case, n_ballots: int, looks: tuple[int, ...] = ()) -> Result:
    """Say what the first ballots of a case decide."""
    outcome = count(case, n_ballots, looks)
    if case.judging is None:
        return Result(outcome.clear_leader is not None, outcome.leaders[0], n_ballots)
    settings = Settings(flips=False, looks=looks)
    ballots, mark = case.ballots[:n_ballots], case.judging.pass_mark
    verdict = judge_texts(ballots, outcome, settings, pass_mark=mark)
    decided = verdict.decision in ("passed", "failed")
    return Result(decided, (verdict.probability or 0.0) >= 0.5, n_ballots)


def spend_adaptively(case: Case) -> Result:
    """Ask for ballots as a council does, one after the other."""
    looks = plan_looks(FEWEST_VOTES, JURORS)
    settings = Settings(flips=False, looks=looks)
    for n_ballots in looks:
        outcome = count(case, n_ballots, looks)
        growth = JURORS / n_ballots
        if look_at(case.ballots[:n_ballots], outcome, settings, case.judging, growth).ends:
            break
    return conclude(case, n_ballots, looks)


def row(name: str, cases: Sequence[Case], results: Sequence[Result]) -> str:
    """Write a row of the table, in percent."""
    n = len(cases)
    right = [result.choice == case.truth for case, result in zip(cases, results, strict=True)]
    decided = [result.is_decided for result in results]
    wrong = sum(d and not r for d, r in zip(decided, right, strict=True))
    reviews = sum(result.n_ballots for result in results) / n
    shares = (100 * sum(decided) / n, 100 * wrong / max(sum(decided), 1), 100 * sum(right) / n)
    return f"| {name} | {shares[0]:.0f} | {shares[1]:.1f} | {shares[2]:.0f} | {reviews:.1f} |"


def show(title: str, cases: Sequence[Case]) -> None:
    """Print the rows of some cases: all jurors, as many as needed, and a fixed few."""
    adaptive = [spend_adaptively(case) for case in cases]
    few = max(2, round(sum(result.n_ballots for result in adaptive) / len(cases)))
    print(row(f"{title}: all nine", cases, [conclude(case, JURORS) for case in cases]))
    print(row(f"{title}: adaptive", cases, adaptive))
    print(row(f"{title}: always {few}", cases, [conclude(case, few) for case in cases]))


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--grades", type=Path, help="LLMJudge's pointwise.csv.gz")
    parser.add_argument("--sessions", type=int, default=2_000)
    options = parser.parse_args()
    print("| jury | decided, % | wrong of these, % | right on the first, % | reviews |")
    print("| --- | --- | --- | --- | --- |")
    for n_texts in (2, 5, 1):
        title = f"simulated, {n_texts} texts" if n_texts > 1 else "simulated, a pass mark"
        show(title, [*simulated(n_texts, options.sessions)])
    if options.grades is None or not options.grades.exists():
        print("skipped: real judges, for want of --grades with LLMJudge's pointwise.csv.gz")
        return 0
    for n_texts in (2, 5, 1):
        title = f"LLMJudge, {n_texts} texts" if n_texts > 1 else "LLMJudge, a pass mark"
        show(title, [*judged(options.grades, n_texts, options.sessions)])
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
