"""Rules for ballots without grades: how often each finds the first, simulated and in real votes.

    python benchmarks/rankings.py [--sessions N] [--pairs FILE] [--grades FILE] [--weights FILE]

Each table gives, of 100 sessions, how often the true first leads (a shared lead counts its share),
Kendall's tau to the true order, how often the lead is shared, how often one ballot drawn anew
changes it, and how often it differs from the greatest effect of the fit that p_best rests on. The
first line is `borda`; the others are differences to it, session by session, with 95% intervals
from a bootstrap over sessions, or over the questions of real votes.

Simulated: `WORLDS` of noise, `CANDIDATES` each, authors whose own answer is recused and juries.
``--pairs``: votes of models and people on pairs, as ``examples/study_of_a_council.py`` reads them;
the first by people is the true one. ``--grades``: many judges' grades, as columns ``judge,
prompt_id, candidate, score``, gzipped; they are read as rankings, and the first by the judges that
are not drawn is the true one.
"""

import argparse
import csv
import gzip
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from witan import RULES, Ballot, Settings, read_ballots, tally_sessions
from witan.core.placing import TieBreak, place
from witan.core.profile import Profile
from witan.core.rules import Scores
from witan.core.stats.additive import fit_ranks
from witan.stats import learn_weights_from_people

Floats = NDArray[np.float64]

REVIEWERS = (3, 4, 5, 7, 9, 15)
CANDIDATES = (3, 4, 5, 7, 10)
METHODS: Mapping[str, tuple[str, TieBreak]] = {
    "borda": ("borda", "wins"),
    "effects of the fit": ("fit", "none"),
    "kemeny": ("kemeny", "none"),
    "kemeny, ties by borda": ("kemeny", "borda"),
    "schulze": ("schulze", "none"),
    "schulze, ties by borda": ("schulze", "borda"),
}
MEASURES = ("found", "tau", "shared", "changed", "not by the fit")
SEED, RESAMPLES = 40, 2000
SPLITS, REPEATS = 100, 400


@dataclass(frozen=True, slots=True)
class Sessions:
    """Sessions of one shape.

    Parameters
    ----------
    worth : shape (R + 1, C, S)
        What each ballot thinks of each candidate, NaN: not ranked; the last is the ballot that
        replaces the first.
    truth : shape (C, S)
        True worth; NaN: unknown.
    question : shape (S,)
        Sessions of one number are resampled together.
    """

    worth: Floats
    truth: Floats
    question: NDArray[np.intp]


World = Callable[[np.random.Generator, Floats, int], Floats]
"""From true worth (C, S) and a number of ballots to what each thinks, shape (R, C, S)."""


def normal(rng: np.random.Generator, truth: Floats, n: int) -> Floats:
    """Thurstone: normal noise; reviewers differ in how much (log sd .5)."""
    spread = np.exp(rng.normal(0, 0.5, (n, 1, truth.shape[1])))
    return np.asarray(truth + spread * rng.normal(size=(n, *truth.shape)))


def shared(rng: np.random.Generator, truth: Floats, n: int) -> Floats:
    """The same with .3 of the noise common to all."""
    common = np.sqrt(0.3) * rng.normal(size=truth.shape)
    return np.asarray(common + truth + np.sqrt(0.7) * (normal(rng, truth, n) - truth))


def tied(rng: np.random.Generator, truth: Floats, n: int) -> Floats:
    """Normal noise; a reviewer tells half a standard deviation apart at best."""
    return np.asarray(np.floor(normal(rng, truth, n) + rng.random((n, 1, truth.shape[1]))))


def partial(rng: np.random.Generator, truth: Floats, n: int) -> Floats:
    """Normal noise; a third of the cells is not ranked."""
    worth = normal(rng, truth, n)
    return np.where(rng.random(worth.shape) < 1 / 3, np.nan, worth)


def plackett_luce(rng: np.random.Generator, truth: Floats, n: int) -> Floats:
    """Plackett-Luce: the first is drawn in proportion to exp(worth), then the second, and so on."""
    return np.asarray(truth * np.pi / np.sqrt(6) + rng.gumbel(size=(n, *truth.shape)))


def mallows(rng: np.random.Generator, truth: Floats, n: int) -> Floats:
    """Mallows by repeated insertion: each pair turned costs a factor of .7."""
    n_candidates, n_sessions = truth.shape
    order = np.argsort(-truth, axis=0)
    worth = np.empty((n, n_candidates, n_sessions))
    rows = np.arange(n_sessions)
    for r in range(n):
        place_of = np.zeros((n_candidates, n_sessions), dtype=np.intp)
        for k in range(n_candidates):
            chance = 0.7 ** np.arange(k, -1, -1)
            at = np.searchsorted(np.cumsum(chance / chance.sum()), rng.random(n_sessions))
            at = np.minimum(at, k)
            place_of[:k] += place_of[:k] >= at
            place_of[k] = at
        for k in range(n_candidates):
            worth[r, order[k], rows] = -place_of[k]
    return worth


WORLDS: Mapping[str, World] = {
    "normal": normal,
    "shared error": shared,
    "ties": tied,
    "partial": partial,
    "Plackett-Luce": plackett_luce,
    "Mallows": mallows,
}


def simulate(world: str, n_reviewers: int, n_sessions: int) -> Iterator[Sessions]:
    """Councils of authors, and juries, of every number of candidates."""
    started = 0
    for n_candidates in CANDIDATES:
        for authors in (True, False):
            key = f"{world} {n_reviewers} {n_candidates} {authors}"
            rng = np.random.default_rng([SEED, zlib.crc32(key.encode())])
            truth = rng.normal(size=(n_candidates, n_sessions))
            worth = WORLDS[world](rng, truth, n_reviewers + 1)
            if authors:
                for own in range(min(n_reviewers, n_candidates)):
                    worth[own, own] = np.nan
                worth[-1, 0] = np.nan
            yield Sessions(worth, truth, np.arange(n_sessions) + n_sessions * started)
            started += 1


def profile_of(worth: Floats) -> Profile:
    """Rank what each ballot thinks; equals share their mean rank."""
    above = np.zeros(worth.shape)
    for rival in range(worth.shape[1]):
        other = worth[:, rival : rival + 1]
        above += (other > worth) + 0.5 * (other == worth)
    return Profile.from_ranks(np.where(np.isnan(worth), np.nan, above + 0.5))


def lead(profile: Profile, method: str) -> tuple[NDArray[np.integer], NDArray[np.bool_]]:
    """Ranks and leaders by one method, each of shape (C, S)."""
    name, tie_break = METHODS[method]
    rule = RULES["borda" if name == "fit" else name]
    scores = Scores(fit_ranks(profile).effects) if name == "fit" else rule(profile)
    placing = place(scores, profile, rule, tie_break=tie_break)
    return placing.ranks, placing.leads


def measure(sessions: Sessions, method: str) -> dict[str, Floats]:
    """What `MEASURES` names, per session."""
    rows = np.arange(len(sessions.worth))
    profile = profile_of(sessions.worth[rows[:-1]])
    ranks, leads = lead(profile, method)
    _, after = lead(profile_of(sessions.worth[rows[1:]]), method)
    truth, n_leads = sessions.truth, leads.sum(axis=0)
    best = truth == np.nanmax(truth, axis=0)
    _, likely = lead(profile, "effects of the fit")
    upper = np.triu_indices(len(truth), 1)
    agreed = np.sign(ranks[upper[1]] - ranks[upper[0]]) * np.sign(truth[upper[0]] - truth[upper[1]])
    # Without a single vote nobody leads, and nothing is found.
    share = 1 / np.maximum(n_leads, 1)
    return {
        "found": (leads & best).sum(axis=0) * share,
        "tau": agreed.mean(axis=0),
        "shared": (n_leads > 1).astype(float),
        "changed": (leads != after).any(axis=0).astype(float),
        "not by the fit": 1 - (leads & likely).sum(axis=0) * share,
    }


def in_pairs(path: Path, n_reviewers: int, orders: tuple[bool, ...]) -> Iterator[Sessions]:
    """Every panel of the council: its members' wins in these orders, own answers recused.

    A pair is in order if its first by name is shown first.
    """
    ballots = [b for b in read_ballots(path) if b.paired and len(b.groups) == 2]
    questions = sorted({b.session for b in ballots})
    names = sorted({name for b in ballots for name in b.candidate_names()})
    judges = sorted({b.reviewer for b in ballots if b.kind == "model"})
    wins = np.zeros((len(judges), len(names), len(questions)))
    people = np.zeros((len(names), len(names), len(questions)))
    for b in ballots:
        places = b.positions or {}
        [better], [worse] = b.groups
        i, j, s = names.index(better), names.index(worse), questions.index(b.session)
        if b.kind == "human":
            people[i, j, s] += 1
        elif (places[min(better, worse)] == 1) in orders and b.reviewer not in (better, worse):
            wins[judges.index(b.reviewer), [i, j], s] += (1, -1)
    for number, judge in enumerate(judges):
        if judge in names:
            wins[number, names.index(judge)] = np.nan
    known = np.flatnonzero(people.sum(axis=(0, 1)))
    truth = np.sign(people - people.swapaxes(0, 1)).sum(axis=1)[:, known]
    for panel in combinations(range(len(judges)), n_reviewers):
        spare = next((number for number in range(len(judges)) if number not in panel), panel[0])
        yield Sessions(wins[[*panel, spare]][..., known], truth, known)


def in_grades(path: Path, n_reviewers: int, n_sessions: int) -> Iterator[Sessions]:
    """Panels drawn from the judges, and documents that the other judges do not all grade alike."""
    rng = np.random.default_rng([SEED, n_reviewers])
    table: dict[str, dict[str, dict[str, float]]] = {}
    with gzip.open(path, "rt") as lines:
        for row in csv.DictReader(lines):
            if row["score"]:
                by_judge = table.setdefault(row["prompt_id"], {}).setdefault(row["candidate"], {})
                by_judge[row["judge"]] = float(row["score"])
    judges = sorted({judge for docs in table.values() for by in docs.values() for judge in by})
    grades = {
        prompt: np.array([[by.get(judge, np.nan) for by in docs.values()] for judge in judges])
        for prompt, docs in table.items()
    }
    for n_candidates in CANDIDATES:
        worth = np.empty((n_reviewers + 1, n_candidates, n_sessions))
        truth = np.empty((n_candidates, n_sessions))
        question = rng.integers(0, len(grades), n_sessions)
        prompts = list(grades.values())
        for s, number in enumerate(question):
            order = rng.permutation(len(judges))
            panel, others = order[: n_reviewers + 1], order[n_reviewers + 1 :]
            held_out = np.nanmean(prompts[number][others], axis=0)
            # Most documents are worth nothing: drawn by worth, a session has some that are.
            chance = 0.05 + held_out
            drawn = rng.choice(len(held_out), n_candidates, replace=False, p=chance / chance.sum())
            worth[:, :, s], truth[:, s] = prompts[number][panel][:, drawn], held_out[drawn]
        yield Sessions(worth, truth, question)


def interval(difference: Floats, question: NDArray[np.intp]) -> tuple[float, float, float]:
    """Mean, and its 95% bootstrap interval over questions."""
    rng = np.random.default_rng(SEED)
    total = np.bincount(question, difference)
    size = np.bincount(question)
    total, size = total[size > 0], size[size > 0]
    if len(size) > 10_000:  # the bootstrap of so many is normal
        error = 1.96 * float(np.std(total / size)) / np.sqrt(len(size))
        mean = float(total.sum() / size.sum())
        return mean, mean - error, mean + error
    counts = rng.multinomial(len(size), np.full(len(size), 1 / len(size)), RESAMPLES)
    low, high = np.quantile((counts @ total) / (counts @ size), (0.025, 0.975))
    return float(total.sum() / size.sum()), float(low), float(high)


@dataclass(frozen=True, slots=True)
class Comparison:
    """What each method makes of the same sessions.

    Parameters
    ----------
    values
        By method and measure, in percent, shape (S,).
    question : shape (S,)
        As in `Sessions`.
    """

    values: Mapping[str, Mapping[str, Floats]]
    question: NDArray[np.intp]


def compare(blocks: Iterator[Sessions]) -> Comparison:
    """Measure every method on the same sessions."""
    sessions = list(blocks)
    values = {}
    for method in METHODS:
        parts = [measure(block, method) for block in sessions]
        values[method] = {
            name: 100 * np.concatenate([part[name] for part in parts]) for name in MEASURES
        }
    return Comparison(values, np.concatenate([block.question for block in sessions]))


def pool(comparisons: Sequence[Comparison]) -> Comparison:
    """Join comparisons of different questions."""
    size = 1 + max(int(each.question.max()) for each in comparisons)
    return Comparison(
        {
            method: {
                name: np.concatenate([each.values[method][name] for each in comparisons])
                for name in MEASURES
            }
            for method in METHODS
        },
        np.concatenate([each.question + size * k for k, each in enumerate(comparisons)]),
    )


def show(title: str, comparison: Comparison) -> None:
    """Print one table: `borda` as it is, the others as differences to it."""
    where = comparison.question
    print(f"\n{title}, {len(where):,} sessions\n{'':<30}" + "".join(f"{m:<23}" for m in MEASURES))
    base = comparison.values["borda"]
    for method, values in comparison.values.items():
        cells = [f"{values[name].mean():5.1f}" for name in MEASURES]
        if base is not values:
            differences = [interval(values[name] - base[name], where) for name in MEASURES]
            cells = ["{:+5.1f} [{:+.1f}, {:+.1f}]".format(*one) for one in differences]
        print(f"  {method:<28}" + "".join(f"{cell:<23}" for cell in cells), flush=True)


@dataclass(frozen=True, slots=True)
class Judged:
    """Ballots of models and of people, by question."""

    models: Mapping[str, Sequence[Ballot]]
    people: Mapping[str, Sequence[Ballot]]

    @classmethod
    def read(cls, path: Path) -> "Judged":
        """Read pairs; the column ``gold`` counts as the vote of one person."""
        ballots = [*read_ballots(path), *known_answers(path)]
        people: dict[str, list[Ballot]] = {b.session: [] for b in ballots if b.kind == "human"}
        models: dict[str, list[Ballot]] = {question: [] for question in people}
        for ballot in ballots:
            if ballot.session in people:
                kind = people if ballot.kind == "human" else models
                kind[ballot.session].append(ballot)
        return cls(models, people)

    def learn(self, questions: Sequence[str]) -> Mapping[str, float]:
        """Learn weights; a question that is named twice counts twice."""
        copies = [
            replace(ballot, session=f"{question}, {at}")
            for at, question in enumerate(questions)
            for ballot in (*self.models[question], *self.people[question])
        ]
        return learn_weights_from_people(copies)

    def truth(self, question: str) -> dict[tuple[str, str], int]:
        """Balance of people's votes per pair, in alphabetical order."""
        balance: dict[tuple[str, str], int] = {}
        for ballot in self.people[question]:
            if len(ballot.groups) == 2:
                [better], [worse] = ballot.groups
                pair = (min(better, worse), max(better, worse))
                balance[pair] = balance.get(pair, 0) + (1 if better == pair[0] else -1)
        return {pair: side for pair, side in balance.items() if side}

    def count(self, questions: Sequence[str], weights: Mapping[str, float]) -> dict[str, Floats]:
        """Per question, pairs that the outcome orders as people do, ties half, and pairs."""
        ballots = [ballot for question in questions for ballot in self.models[question]]
        result = {}
        for outcome in tally_sessions(ballots, Settings(weights=weights, flips=False, rho=None)):
            rank = {line.candidate: line.rank for line in outcome.standings}
            truth = self.truth(str(outcome.session))
            right = [
                0.5 + 0.5 * np.sign((rank[pair[1]] - rank[pair[0]]) * side)
                for pair, side in truth.items()
            ]
            result[str(outcome.session)] = np.array([sum(right), len(right)])
        return result


def known_answers(path: Path) -> Iterator[Ballot]:
    """Ballots that place the candidate of the column ``gold`` first."""
    with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as lines:
        named = {
            r["prompt_id"]: (r["gold"], {r["first"], r["second"]}) for r in csv.DictReader(lines)
        }
    for question, (best, pair) in named.items():
        if best:
            [worse] = pair - {best}
            yield Ballot("gold", ((best,), (worse,)), session=question, kind="human")


def weigh(path: Path) -> None:
    """Print agreement by equal weights, by learned ones and by the best reviewer alone."""
    judged = Judged.read(path)
    questions = [question for question in judged.people if judged.truth(question)]
    even = judged.count(questions, {})
    rng = np.random.default_rng(SEED)

    def split(times: Mapping[str, int]) -> Floats:
        """Shares of the second half that each of them orders as people do."""
        order = rng.permutation(sorted(times)).tolist()
        first, second = order[: len(order) // 2], order[len(order) // 2 :]
        weights = judged.learn([question for question in first for _ in range(times[question])])
        best = max(weights, key=weights.__getitem__)
        counts = (
            even,
            judged.count(second, weights),
            judged.count(second, dict.fromkeys(weights, 0.0) | {best: 1.0}),
        )
        sums = [
            np.sum([times[question] * by[question] for question in second], axis=0) for by in counts
        ]
        return np.array([right / pairs for right, pairs in sums])

    once = dict.fromkeys(questions, 1)
    splits = np.array([split(once) for _ in range(SPLITS)])
    draws = (rng.choice(questions, len(questions)).tolist() for _ in range(REPEATS))
    redrawn = np.array([split(Counter(drawn)) for drawn in draws])
    n_pairs = int(sum(pairs for _, pairs in even.values()))
    print(f"\n{path.parent.name}: {len(questions)} questions, {n_pairs} pairs")
    means, spread = splits.mean(axis=0), redrawn - redrawn[:, :1]
    for at, name in enumerate(("equal weights", "learned weights", "best reviewer alone")):
        low, high = np.quantile(spread[:, at], (0.025, 0.975))
        gain = f"  {means[at] - means[0]:+.3f} [{low:+.3f}, {high:+.3f}]" if at else ""
        print(f"  {name:<28}{means[at]:.3f}{gain}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sessions", type=int, default=200)
    parser.add_argument("--pairs", type=Path)
    parser.add_argument("--grades", type=Path)
    parser.add_argument("--weights", type=Path)
    options = parser.parse_args()
    if options.weights:
        weigh(options.weights)
    if options.pairs:
        both = {"both orders": (True, False), "one order": (True,), "the other": (False,)}
        for n, (title, orders) in product((3, 4, 5), both.items()):
            panels = in_pairs(options.pairs, n, orders)
            show(f"pairs in {title}, {n} reviewers", compare(panels))
    if options.grades:
        for n in REVIEWERS:
            panels = in_grades(options.grades, n, options.sessions)
            show(f"grades as rankings, {n} reviewers", compare(panels))
    if not (options.pairs or options.grades or options.weights):
        for n in REVIEWERS:
            worlds = {world: compare(simulate(world, n, options.sessions)) for world in WORLDS}
            for world, comparison in worlds.items():
                show(f"{world}, {n} reviewers", comparison)
            show(f"all of these, {n} reviewers", pool(list(worlds.values())))


if __name__ == "__main__":
    main()
