"""How often a council of models agrees with people, and what asking twice gains.

Run it on a folder with ``pairwise.csv``, in which models and people compared the answers
to many questions in pairs: ``python examples/study_of_a_council.py FOLDER``. The file is one of
pairs, with the columns ``prompt_id, judge, judge_kind, first, second, outcome``. The output is
explained in ``docs/study.md``.
"""

import argparse
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from witan import Ballot, Settings, WitanError, read_ballots, tally_sessions
from witan.core.stats.learning import learn_consistency
from witan.errors import NothingToCount

Floats = NDArray[np.float64]

SEED = 2023
N_RESAMPLES = 4000
N_DRAWS = 200
LEVEL = 0.95


@dataclass(frozen=True, slots=True)
class Council:
    """All votes on all pairs; 1 for the first name of the pair, −1 for the second, 0 for neither.

    Parameters
    ----------
    votes
        ``[question, pair, reviewer, order]``; order 0 shows the first name first.
    people
        ``[question, pair]``: the side of the majority of people, 0 where there is none.
    order_kept
        Per question, reviewer → pairs judged alike in both orders, of those seen in both.
    ballots
        Per question, the ballots of models.
    """

    questions: tuple[str, ...]
    candidates: tuple[str, ...]
    reviewers: tuple[str, ...]
    votes: Floats
    people: Floats
    order_kept: tuple[Mapping[str, tuple[int, int]], ...]
    ballots: tuple[tuple[Ballot, ...], ...]

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """All pairs of candidates, by name."""
        return list(combinations(self.candidates, 2))

    @property
    def design(self) -> Floats:
        """``[pair, candidate]``: 1 for the first of the pair, −1 for the second."""
        return np.array(
            [[(c == a) - (c == b) for c in self.candidates] for a, b in self.pairs], dtype=float
        )

    @property
    def own(self) -> NDArray[np.bool_]:
        """``[pair, reviewer]``: whether the reviewer wrote one of the two."""
        return np.array([[r in pair for r in self.reviewers] for pair in self.pairs])


@dataclass(frozen=True, slots=True)
class Line:
    """A way to decide pairs: its name, reviews per pair, right answers per pair."""

    name: str
    reviews: float
    right: Floats


def read_council(path: Path) -> Council:
    """Read every comparison; a missing vote counts for neither candidate."""
    ballots = [ballot for ballot in read_ballots(path) if ballot.paired]
    models = [ballot for ballot in ballots if ballot.kind == "model"]
    if not models or len(models) == len(ballots):
        raise NothingToCount(f"{path}: the study needs comparisons by models and by people")
    questions = tuple(dict.fromkeys(ballot.session for ballot in models))
    reviewers = tuple(sorted({ballot.reviewer for ballot in models}))
    candidates = tuple(sorted({name for ballot in models for name in ballot.candidate_names()}))
    pairs = {pair: number for number, pair in enumerate(combinations(candidates, 2))}
    votes = np.zeros((len(questions), len(pairs), len(reviewers), 2))
    people = np.zeros(votes.shape[:2])
    for ballot in ballots:
        pair, order, side = _read(ballot)
        if ballot.session not in questions or pair not in pairs:
            continue
        at = questions.index(ballot.session), pairs[pair]
        if ballot.kind == "human":
            people[at] += side
        else:
            votes[(*at, reviewers.index(ballot.reviewer), order)] = side
    by_question = tuple(tuple(b for b in models if b.session == q) for q in questions)
    counted = tally_sessions(models, Settings.of("borda", flips=False))
    kept = {outcome.session: outcome.order_kept for outcome in counted}
    order_kept = tuple(kept[question] for question in questions)
    council = Council(
        questions, candidates, reviewers, votes, np.sign(people), order_kept, by_question
    )
    _check(council, path)
    return council


def _check(council: Council, path: Path) -> None:
    """Refuse a council that is too small for the study."""
    if len(council.questions) < 3 or len(council.candidates) < 3:
        raise NothingToCount(
            f"{path}: the study needs three questions and three candidates at least"
        )
    if not council.people.any():
        raise NothingToCount(f"{path}: there is no pair that a majority of people decided")
    twice = (~np.isnan(consistency(council))).sum(axis=0)
    for name, times in zip(council.reviewers, twice, strict=True):
        if times < 2:
            raise NothingToCount(
                f"{path}: {name} saw pairs in both orders in {times} questions; need 2"
            )


def _read(ballot: Ballot) -> tuple[tuple[str, str], int, int]:
    """The pair by name, the order in which it was shown, and the side taken."""
    places = ballot.positions
    assert places is not None
    first, second = sorted(places)
    if ballot.abstained or len(ballot.groups) < 2:
        side = 0
    else:
        side = 1 if ballot.groups[0] == (first,) else -1
    return (first, second), int(places[first] > places[second]), side


def agreement(council: Council, margins: Floats) -> Floats:
    """1 where a margin takes the side of people, ½ where it takes none; NaN: people did not."""
    # Weights are sums of fractions: margins equal up to rounding are ties.
    side = np.where(np.abs(margins) < 1e-9, 0.0, np.sign(margins))
    return np.where(council.people != 0, (1 + side * council.people) / 2, np.nan)


def weighed(council: Council, weights: Floats) -> Floats:
    """Weighted mean of votes, both orders alike, `weights` [question, pair or 1, reviewer]."""
    both = council.votes.mean(axis=3)
    weights = np.broadcast_to(weights, both.shape)
    return np.asarray((both * weights).sum(axis=2) / weights.sum(axis=2))


def balanced_draw(council: Council, rng: np.random.Generator) -> Floats:
    """Each reviewer sees each pair in one order, half of them, give or take one, in either."""
    shape = council.votes.shape[:3]
    place = rng.random(shape).argsort(axis=2)
    n_first = shape[2] // 2 + rng.integers(0, 1 + shape[2] % 2, (*shape[:2], 1))
    seen = (place < n_first).astype(int)[..., None]
    return np.asarray(np.take_along_axis(council.votes, seen, axis=3)[..., 0].sum(axis=2))


def learned_weights(council: Council) -> Floats:
    """[question, 1, reviewer]: shrunk weights by order-consistency in all other questions."""
    learned = learn_consistency(council.order_kept)
    return np.array([[[held[name] for name in council.reviewers]] for held in learned])


def consistency(council: Council) -> Floats:
    """[question, reviewer]: share of pairs judged alike in both orders; NaN: none seen twice."""
    counts = [[kept.get(name, (0, 0)) for name in council.reviewers] for kept in council.order_kept]
    kept, compared = np.moveaxis(np.array(counts, dtype=float), 2, 0)
    return np.where(compared > 0, kept / np.maximum(compared, 1), np.nan)


def with_history(council: Council, margins: Floats) -> Floats:
    """Margins of qualities that explain all pairs of a question, shrunk toward other questions.

    Qualities u[c] with margin[i, j] = u[i] − u[j] + noise are fitted by least squares, and drawn
    toward their mean over the other questions by τ²/(τ² + σ²/C), both variances by moments.
    """
    design, n_candidates = council.design, len(council.candidates)
    quality = margins @ design / n_candidates
    rest = ((margins - quality @ design.T) ** 2).sum(axis=1)
    df = len(design) - (n_candidates - 1)
    pooled = np.empty_like(margins)
    for number in range(len(margins)):
        others = np.arange(len(margins)) != number
        mean = quality[others].mean(axis=0)
        noise = rest[others].mean() / df / n_candidates
        spread = ((quality[others] - mean) ** 2).sum() / (others.sum() - 1) / (n_candidates - 1)
        drawn = max(0.0, 1 - noise / spread) if spread > 0 else 0.0
        pooled[number] = (mean + drawn * (quality[number] - mean)) @ design.T
    return pooled


def by_rank(council: Council, weights: Floats | None, recusal: str) -> Floats:
    """The pairs as decided by Witan's own ranking of each session."""
    margins = np.zeros(council.people.shape)
    for number, ballots in enumerate(council.ballots):
        given: dict[str, Any] = {"recusal": recusal, "flips": False}
        rule = "borda"
        if weights is not None:
            rule = "weighted_borda"
            given["reliability"] = dict(
                zip(council.reviewers, weights[number, 0].tolist(), strict=True)
            )
        outcome = next(tally_sessions(ballots, Settings.of(rule, **given)))
        rank = {standing.candidate: standing.rank for standing in outcome.standings}
        margins[number] = [rank[second] - rank[first] for first, second in council.pairs]
    return margins


def judged(council: Council) -> Iterator[Line]:
    """Every way to decide a pair, except those by the ranking of a session."""
    votes, n = council.votes, len(council.reviewers)
    equal = np.ones((1, 1, n))
    others = np.where(council.own, 0.0, 1.0)[None]
    alone = [agreement(council, votes[:, :, r].sum(axis=2)) for r in range(n)]
    best = int(np.argmax([np.nanmean(right) for right in alone]))
    yield Line(f"best single reviewer ({council.reviewers[best]}), both orders", 2, alone[best])
    for order, shown in enumerate(("earlier", "later")):
        name = f"one order for all: {shown} name first"
        yield Line(name, n, agreement(council, votes[..., order].sum(axis=2)))
    rng = np.random.default_rng(SEED)
    draws = [agreement(council, balanced_draw(council, rng)) for _ in range(N_DRAWS)]
    yield Line(f"balanced order, mean of {N_DRAWS} draws", n, np.mean(draws, axis=0))
    yield Line("both orders", 2 * n, agreement(council, weighed(council, equal)))
    without = agreement(council, weighed(council, others))
    yield Line("both orders, without own votes", 2 * float(others.sum(axis=2).mean()), without)
    share = np.nanmean(consistency(council), axis=0)
    yield Line("weighted by consistency here", 2 * n, agreement(council, weighed(council, share)))
    learned = weighed(council, learned_weights(council))
    yield Line("weighted by consistency elsewhere", 2 * n, agreement(council, learned))
    history = agreement(council, with_history(council, learned))
    yield Line("the same, pooled with history", 2 * n, history)


def ranked(council: Council) -> Iterator[Line]:
    """The rankings by Witan's own count, with equal and with learned weights."""
    n = len(council.reviewers)
    learned = learned_weights(council)
    n_others = 2 * float((~council.own).sum(axis=1).mean())
    for said, recusal, reviews in (
        ("own votes counted", "off", 2.0 * n),
        ("own votes recused", "before", n_others),
    ):
        for rule, weights in (("borda", None), ("weighted_borda", learned)):
            right = agreement(council, by_rank(council, weights, recusal))
            yield Line(f"ranking by {rule}, {said}", reviews, right)


def interval(right: Floats) -> tuple[float, float, float]:
    """Mean over pairs, and its percentile interval over questions drawn with replacement."""
    rng = np.random.default_rng(SEED)
    total, number = np.nansum(right, axis=1), (~np.isnan(right)).sum(axis=1)
    drawn = rng.integers(0, len(right), (N_RESAMPLES, len(right)))
    means = total[drawn].sum(axis=1) / np.maximum(number[drawn].sum(axis=1), 1)
    low, high = np.quantile(means, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(np.nanmean(right)), float(low), float(high)


def expected(gain: Floats) -> tuple[float, float]:
    """Normal interval of the mean gain on as many new questions of the same kind."""
    mean, low, high = interval(gain)
    # Both means vary, the observed and the future one: √2 times the width of one.
    half = (high - low) / 2 * 2**0.5
    return mean - half, mean + half


def print_lines(lines: Sequence[Line], base: Line) -> None:
    """One line each: reviews per pair, agreement, and the paired difference to `base`."""
    print(f"{'':<46}reviews  agreement           difference to both orders")
    for line in lines:
        mean, low, high = interval(line.right)
        told = f"{line.name:<46}{line.reviews:>5g}    {mean:.3f} [{low:.3f}, {high:.3f}]"
        if line is not base:
            mean, low, high = interval(line.right - base.right)
            told += f"  {mean:+.3f} [{low:+.3f}, {high:+.3f}]"
        print(told)


def print_reviewers(council: Council) -> None:
    """Per reviewer, the data behind its weight, and its accuracy alone."""
    print(f"\n{'reviewer':<14}kept / compared   weight   alone   where it keeps its opinion")
    weights = learned_weights(council).mean(axis=(0, 1))
    for r, name in enumerate(council.reviewers):
        kept, compared = np.sum([held.get(name, (0, 0)) for held in council.order_kept], axis=0)
        votes = council.votes[:, :, r]
        alone = agreement(council, votes.sum(axis=2))
        steady = (votes[..., 0] == votes[..., 1]) & (votes[..., 0] != 0)
        told = (
            f"{name:<14}{kept:>4} / {compared} = {kept / max(compared, 1):.2f}   {weights[r]:.2f}"
        )
        right = alone[steady & (council.people != 0)]
        where = f"{right.mean():.3f}" if right.size else "never"
        print(f"{told:<40}{np.nanmean(alone):.3f}   {where}")


def print_where(line: Line, base: Line) -> None:
    """Where a gain comes from, ties of `base` or others, and what it may be elsewhere."""
    tied = base.right == 0.5
    decided = ~np.isnan(base.right) & ~tied
    gain = line.right - base.right
    low, high = expected(gain)
    print(
        f"\n{line.name}:\n{gain[tied].sum():+.1f} pairs on the {tied.sum()} that both orders leave "
        f"tied, {gain[decided].sum():+.1f} on the {decided.sum()} others;\n"
        f"on {len(gain)} new questions like these, {LEVEL:.0%} of gains are expected "
        f"in [{low:+.3f}, {high:+.3f}]"
    )


def print_spread(council: Council) -> None:
    """The data behind the prior of the weights; it does not use people's votes."""
    shares = consistency(council)
    mean = np.nanmean(shares, axis=0)
    within = float(np.nanvar(shares, axis=0, ddof=1).mean())
    independent = float((mean * (1 - mean)).mean()) / len(council.pairs)
    spread = float(np.var(mean, ddof=1)) - within / len(shares)
    if spread <= 0 or independent == 0:
        print("\norder-consistency: no spread between reviewers beyond chance")
        return
    k = float(mean.mean() * (1 - mean.mean())) / spread - 1
    excess = within / independent
    print(
        f"\norder-consistency: standard deviation {spread**0.5:.2f} between reviewers, as a prior "
        f"worth {k:.0f} independent pairs;\npairs of one question vary {excess:.1f} times as much "
        f"as independent ones, which makes {k * excess:.0f} pairs of it"
    )


def main(folder: Path) -> None:
    council = read_council(folder / "pairwise.csv")
    n_decided = int((council.people != 0).sum())
    print(
        f"{len(council.questions)} questions, {len(council.reviewers)} reviewers, "
        f"{n_decided} pairs that people decided\n"
        f"intervals: {LEVEL:.0%}, bootstrap over questions, {N_RESAMPLES} resamples\n"
    )
    lines = [*judged(council), *ranked(council)]
    named = {line.name: line for line in lines}
    base = named["both orders"]
    print_lines(lines, base)
    print_reviewers(council)
    for name in ("weighted by consistency elsewhere", "the same, pooled with history"):
        print_where(named[name], base)
    print_spread(council)


def folder_given() -> Path:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="it holds pairwise.csv")
    return parser.parse_args().folder


if __name__ == "__main__":
    try:
        main(folder_given())
        sys.stdout.flush()
    except WitanError as error:
        sys.exit(str(error))
    except BrokenPipeError:
        # The reader closed the pipe; discard what is buffered, so that the exit is silent.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(141)
