"""Spending adaptively beside asking everybody: decisions, mistakes, and reviews.

Juries of nine judge on one sheet, or one text against a pass mark: simulated ones, and nine drawn
from the 33 judges of LLMJudge (``--grades llmjudge_relevance/pointwise.csv.gz``), whom the others
hold to account. Each session is counted by its nine ballots, by the first of them as many as are
needed, and by a jury of a fixed size that costs about as much. "By history" is the same jury in the
order that a history of other questions teaches: by how jurors agree with the others, and on pairs
(``--pairs llmbar/pairwise.csv.gz``) by how often they keep their choice in the other order.
"""

import argparse
import csv
import gzip
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from witan.core.ballot import Ballot
from witan.core.outcome import Outcome
from witan.core.scale import Scale
from witan.core.sequential import FEWEST_VOTES, plan_looks
from witan.core.settings import Settings
from witan.core.stats.learning import consistency_weights, learn_reliability
from witan.core.tally import prepare, tally_sessions
from witan.core.verdict import judge_texts
from witan.deliberation.events import Judging
from witan.deliberation.planner import look_at, order_reviewers
from witan.deliberation.ports import Seat

JURORS, SHARED, LEVEL_SPREAD = 9, 0.2, 1.0
SPREADS = (0.5, 1.0, 2.0, 4.0)
UNEQUAL = (0.5, 1.0, 2.0)
"""Noise of jurors who differ: three each."""

HISTORY = 50
"""Simulated sessions to learn from."""

PASS_MARK = 6.0
TWO = ("output_1", "output_2")


@dataclass(frozen=True, slots=True)
class Case:
    """The ballots of a session in the order in which they are asked for, and what is true.

    Parameters
    ----------
    truth
        The best candidate; of one text, whether it passes.
    judging
        Terms of a judgment; None: candidates are compared.
    reliability
        Juror to weight, learned from other questions; empty: nothing was.
    """

    ballots: tuple[Ballot, ...]
    truth: str | bool
    judging: Judging | None = None
    reliability: Mapping[str, float] = field(default_factory=dict)

    def by_history(self) -> "Case":
        """The same ballots in the order that a history teaches."""
        cast = {ballot.reviewer: ballot for ballot in self.ballots}
        seats = [Seat(name, "", "script") for name in cast]
        ordered = order_reviewers(seats, Settings(reliability=self.reliability))
        return replace(self, ballots=tuple(cast[seat.name] for seat in ordered))


@dataclass(frozen=True, slots=True)
class Result:
    """What some ballots of a case say: decided or not, whom they prefer, and how many they are."""

    is_decided: bool
    choice: str | bool
    n_ballots: int


def simulated(n_texts: int, sessions: int, noises: Sequence[float] = (1.0,)) -> Iterator[Case]:
    """Draw sessions of a mix of spreads: noise 1, a fifth of it shared, levels that differ.

    With several noises jurors have them in turn, their order is drawn by session, and a history of
    as many sessions as there are to learn from teaches whose ballots are better.
    """
    cases = [*_simulate(n_texts, sessions, noises)]
    if len(noises) == 1:
        yield from cases
        return
    history = [case.ballots for case in _simulate(max(n_texts, 3), HISTORY, noises, seed=1)]
    learned = learn_reliability(prepare([b for each in history for b in each], Settings())[0])[0]
    rng = np.random.default_rng(n_texts)
    for case in cases:
        order = rng.permutation(JURORS)
        ballots = tuple(case.ballots[at] for at in order)
        yield replace(case, ballots=ballots, reliability=learned)


def _simulate(
    n_texts: int, sessions: int, noises: Sequence[float], seed: int = 0
) -> Iterator[Case]:
    rng = np.random.default_rng([n_texts, seed] if seed else n_texts)
    names = [f"text {n}" for n in range(n_texts)]
    for session in range(sessions):
        quality = rng.normal(0, SPREADS[session % len(SPREADS)], n_texts)
        common = np.sqrt(SHARED) * rng.normal(size=n_texts)
        ballots = []
        for juror in range(JURORS):
            level = LEVEL_SPREAD * rng.normal() if n_texts > 1 else 0.0
            noise = np.sqrt(1 - SHARED) * rng.normal(size=n_texts) * noises[juror % len(noises)]
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
    learned = {query: _learn_elsewhere(scores, query) for query in queries}
    for draw in range(draws):
        query = queries[draw % len(queries)]
        texts, reliability = scores[query], learned[query]
        chosen = [str(each) for each in rng.choice(sorted(texts), n_texts, replace=False)]
        judges = sorted(set.intersection(*({*texts[each]} for each in chosen)))
        panel = [str(each) for each in rng.permutation(judges)]
        jury, others = panel[:JURORS], panel[JURORS:]
        means = {c: float(np.mean([texts[c][judge] for judge in others])) for c in chosen}
        ballots = tuple(make_ballot(j, f"d{draw}", {c: texts[c][j] for c in chosen}) for j in jury)
        if n_texts == 1:
            passes = means[chosen[0]] >= PASS_MARK
            yield Case(ballots, passes, Judging(PASS_MARK), reliability)
        elif sorted(means.values())[-2] < max(means.values()):
            yield Case(ballots, max(means, key=means.__getitem__), reliability=reliability)


def _learn_elsewhere(
    scores: Mapping[str, Mapping[str, Mapping[str, float]]], query: str
) -> Mapping[str, float]:
    """Learn how reliable judges are from sessions of five texts of the other queries."""
    rng = np.random.default_rng(0)
    ballots = []
    for other in sorted({*scores} - {query}):
        for _ in range(5):
            chosen = [str(each) for each in rng.choice(sorted(scores[other]), 5, replace=False)]
            judges = sorted(set.intersection(*({*scores[other][each]} for each in chosen)))
            for judge in judges:
                grades = {c: scores[other][c][judge] for c in chosen}
                ballots.append(make_ballot(judge, f"{other} {chosen}", grades))
    return learn_reliability(prepare(ballots, Settings())[0])[0]


def pairs(path: Path) -> Iterator[Case]:
    """Read pairs with a better text, each judge's first order drawn; its history is the other half.

    Of a pair every judge also saw the other order, by which the history knows its consistency.
    """
    votes: dict[str, dict[str, dict[str, str]]] = defaultdict(lambda: defaultdict(dict))
    better = {}
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for row in csv.DictReader(lines):
            if row["outcome"] in ("first", "second") and row["gold"]:
                votes[row["prompt_id"]][row["judge"]][row["first"]] = row[row["outcome"]]
                better[row["prompt_id"]] = row["gold"]
    prompts = sorted(votes)
    rng = np.random.default_rng(0)
    halves = [prompts[::2], prompts[1::2]]
    for half, others in zip(halves, halves[::-1], strict=True):
        kept: dict[str, list[bool]] = defaultdict(list)
        for prompt in others:
            for judge, choices in votes[prompt].items():
                if len(choices) == 2:
                    kept[judge].append(len({*choices.values()}) == 1)
        reliability = consistency_weights({j: (sum(k), len(k)) for j, k in kept.items()})
        for prompt in half:
            ballots = []
            for judge in rng.permutation(sorted(votes[prompt])).tolist():
                choices = votes[prompt][judge]
                best = choices[rng.choice(sorted(choices))]
                groups = tuple((each,) for each in sorted(TWO, key=best.__ne__))
                ballots.append(Ballot(judge, groups, session=prompt, candidates=TWO))
            yield Case(tuple(ballots), better[prompt], reliability=reliability)


def show_pairs(cases: Sequence[Case]) -> None:
    """Print how often the leader of the first ballots is the better text; a tie counts half."""
    most = min(len(case.ballots) for case in cases)
    print(f"| LLMBar, right % after ballots | {' | '.join(map(str, range(1, most + 1)))} |")
    print(f"| --- |{' --- |' * most}")
    for title, ordered in (
        ("any order", cases),
        ("by history", [case.by_history() for case in cases]),
    ):
        shares = []
        for n_ballots in range(1, most + 1):
            leaders = [count(case, n_ballots, ()).leaders for case in ordered]
            hits = [
                (c.truth in names) / len(names) for c, names in zip(ordered, leaders, strict=True)
            ]
            shares.append(f"{100 * sum(hits) / len(hits):.0f}")
        print(f"| {title} | {' | '.join(shares)} |")


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
    looks = plan_looks(FEWEST_VOTES, len(case.ballots))
    settings = Settings(flips=False, looks=looks)
    for n_ballots in looks:
        outcome = count(case, n_ballots, looks)
        growth = len(case.ballots) / n_ballots
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
    if cases[0].reliability:
        ordered = [case.by_history() for case in cases]
        print(row(f"{title}: adaptive, by history", cases, [*map(spend_adaptively, ordered)]))
    print(row(f"{title}: always {few}", cases, [conclude(case, few) for case in cases]))


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--grades", type=Path, help="LLMJudge's pointwise.csv.gz")
    parser.add_argument("--pairs", type=Path, help="LLMBar's pairwise.csv.gz")
    parser.add_argument("--sessions", type=int, default=2_000)
    options = parser.parse_args()
    print("| jury | decided, % | wrong of these, % | right on the first, % | reviews |")
    print("| --- | --- | --- | --- | --- |")
    for n_texts in (2, 5, 1):
        title = f"simulated, {n_texts} texts" if n_texts > 1 else "simulated, a pass mark"
        show(title, [*simulated(n_texts, options.sessions)])
    for n_texts in (2, 5, 1):
        title = f"unequal, {n_texts} texts" if n_texts > 1 else "unequal, a pass mark"
        show(title, [*simulated(n_texts, options.sessions, UNEQUAL)])
    if options.grades is None or not options.grades.exists():
        print("skipped: real judges, for want of --grades with LLMJudge's pointwise.csv.gz")
    else:
        for n_texts in (2, 5, 1):
            title = f"LLMJudge, {n_texts} texts" if n_texts > 1 else "LLMJudge, a pass mark"
            show(title, [*judged(options.grades, n_texts, options.sessions)])
    if options.pairs is None or not options.pairs.exists():
        print("skipped: real pairs, for want of --pairs with LLMBar's pairwise.csv.gz")
    else:
        show_pairs([*pairs(options.pairs)])
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
