"""A million councils of five at once, against per-session Python as the sources describe it.

Five members answer, and each ranks and grades the other four. The peers follow the descriptions
in ADR-007, ADR-010, the article on majority vote and the proposal for tournaments of the council
surveyed. They are handed ready-made dicts, run on a sample, and are compared per session; that
they agree with Witan on the sample is checked first. The floors are the same scores and errors in
plain NumPy, block by block, without dead heats to the last bit, fallbacks or least errors.
"""

import statistics
import sys
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations, pairwise
from typing import TypedDict

import numpy as np
from harness import Row, cpu_seconds, cpu_seconds_in_turn, peak_bytes, show
from numpy.typing import NDArray

from witan.core.profile import Profile
from witan.core.rules.graded import normalized_scores
from witan.core.rules.kemeny import kemeny
from witan.core.rules.pairwise import ranked_pairs, schulze, tournament
from witan.core.rules.positional import borda, mean_rank
from witan.core.rules.registry import Scores
from witan.core.stats.additive import fit_grades
from witan.core.stats.distributions import t_quantile

MEMBERS = ("a", "b", "c", "d", "e")
SESSIONS = 1_000_000
SAMPLE = 2_000
MOST_BYTES = 100
FLOOR_RATIO = 1.3
FLOOR_SESSIONS = 10_000
"""Sessions of a block, whose arrays then stay in the processor's cache."""

Grades = Mapping[str, Mapping[str, float]]
"""One session: reviewer → candidate → grade."""

AUTHORS = {f"Response {name.upper()}": name for name in MEMBERS}


class Parsed(TypedDict, total=False):
    """What was read from a reply: labels, best first, or an abstention."""

    ranking: list[str]
    abstained: bool


class Review(TypedDict):
    """One reviewer's reply."""

    model: str
    parsed: Parsed


Reviews = Sequence[Review]
"""One session."""


@dataclass
class PeerLine:
    """One line of the outcome as ADR-010 has it."""

    name: str
    score: float
    error: float
    tied_with_next: bool = False


@dataclass
class PeerStanding:
    """One line of the leaderboard as ADR-007 has it."""

    name: str
    score: float
    votes: int
    wins: int
    rank: int = 0


def councils(n_sessions: int, rng: np.random.Generator) -> Profile:
    """Draw candidates of different quality, seen with noise by every member but their own."""
    n = len(MEMBERS)
    places = np.zeros((n, n, n_sessions), dtype=np.uint8)
    grades = np.zeros_like(places)
    quality = rng.normal(6.0, 1.5, (n, n_sessions))
    for reviewer in range(n):
        others = [candidate for candidate in range(n) if candidate != reviewer]
        seen = quality[others] + rng.standard_normal((n - 1, n_sessions))
        grades[reviewer, others] = np.clip(np.rint(seen), 1, 10)
        places[reviewer, others] = 2 * ((-seen).argsort(axis=0).argsort(axis=0) + 1)
    return Profile(places, grades=grades)


def as_dicts(profile: Profile) -> tuple[list[Grades], list[Reviews]]:
    """Write the sessions as the peers read them."""
    assert profile.grades is not None
    graded: list[Grades] = []
    ranked: list[Reviews] = []
    for session in range(profile.n_sessions):
        grades: dict[str, dict[str, float]] = {}
        reviews: list[Review] = []
        for row, reviewer in enumerate(MEMBERS):
            place = dict(zip(AUTHORS, profile.places[row, :, session].tolist(), strict=True))
            given = dict(zip(MEMBERS, profile.grades[row, :, session].tolist(), strict=True))
            grades[reviewer] = {name: float(grade) for name, grade in given.items() if grade}
            order = sorted((label for label in AUTHORS if place[label]), key=place.__getitem__)
            reviews.append(Review(model=reviewer, parsed=Parsed(ranking=order)))
        graded.append(grades)
        ranked.append(reviews)
    return graded, ranked


def peer_normalized_scores(session: Grades) -> dict[str, float]:
    """Follow ADR-010: z-scores per reviewer, mean and error per candidate, neighbours' overlap."""
    collected: defaultdict[str, list[float]] = defaultdict(list)
    for reviewer, given in session.items():
        judged = {name: grade for name, grade in given.items() if name != reviewer}
        if not judged:
            continue
        centre, scale = np.mean(list(judged.values())), np.std(list(judged.values()))
        for name, grade in judged.items():
            collected[name].append(0.0 if scale < 0.001 else float((grade - centre) / scale))
    lines = []
    for name, values in collected.items():
        error = np.std(values) / np.sqrt(len(values)) if len(values) > 1 else 0.0
        lines.append(PeerLine(name, round(float(np.mean(values)), 3), round(float(error), 3)))
    lines.sort(key=lambda line: line.score, reverse=True)
    for line, following in pairwise(lines):
        low, high = line.score - 1.96 * line.error, following.score + 1.96 * following.error
        line.tied_with_next = low < high
    return {line.name: line.score for line in lines}


def peer_borda(reviews: Reviews) -> dict[str, float]:
    """Follow ADR-007: points for each place, their mean, first places, order and shared ranks."""
    points: defaultdict[str, list[int]] = defaultdict(list)
    firsts: defaultdict[str, int] = defaultdict(int)
    for review in reviews:
        reviewer, parsed = review["model"], review["parsed"]
        if parsed.get("abstained"):
            continue
        for above, label in enumerate(parsed.get("ranking", [])):
            if label not in AUTHORS:
                continue
            author = AUTHORS[label]
            if author == reviewer:
                continue
            points[author].append(len(AUTHORS) - 1 - above)
            if above == 0:
                firsts[author] += 1
    standings = {
        author: PeerStanding(author, sum(given) / len(given), len(given), firsts[author])
        for author, given in points.items()
    }
    lines = sorted(standings.values(), key=lambda line: (-line.score, -line.wins, line.name))
    for seat, line in enumerate(lines):
        level = seat > 0 and lines[seat - 1].score == line.score
        line.rank = lines[seat - 1].rank if level else seat + 1
    return {line.name: line.score for line in lines}


def peer_mean_rank(reviews: Reviews) -> dict[str, float]:
    """Follow the article: positions, their mean, first places, order and ranks."""
    positions: defaultdict[str, list[int]] = defaultdict(list)
    firsts: defaultdict[str, int] = defaultdict(int)
    for review in reviews:
        reviewer, parsed = review["model"], review["parsed"]
        if parsed.get("abstained"):
            continue
        for above, label in enumerate(parsed.get("ranking", [])):
            if label not in AUTHORS:
                continue
            author = AUTHORS[label]
            if author == reviewer:
                continue
            positions[author].append(above + 1)
            if above == 0:
                firsts[author] += 1
    standings = {
        author: PeerStanding(author, sum(given) / len(given), len(given), firsts[author])
        for author, given in positions.items()
    }
    lines = sorted(standings.values(), key=lambda line: (line.score, -line.wins, line.name))
    for rank, line in enumerate(lines, 1):
        line.rank = rank
    return {line.name: line.score for line in lines}


def peer_tournament(reviews: Reviews) -> dict[str, float]:
    """Follow the proposal: every pair on every ballot, then every matchup by majority."""
    ahead: defaultdict[tuple[str, str], int] = defaultdict(int)
    for review in reviews:
        position = {
            AUTHORS[label]: above
            for above, label in enumerate(review["parsed"].get("ranking", []))
            if label in AUTHORS
        }
        for one, other in combinations(position, 2):
            if position[one] < position[other]:
                ahead[one, other] += 1
            elif position[other] < position[one]:
                ahead[other, one] += 1
    tallies = {name: [0, 0, 0] for name in AUTHORS.values()}
    for one, other in combinations(tallies, 2):
        for_one, for_other = ahead.get((one, other), 0), ahead.get((other, one), 0)
        if for_one > for_other:
            tallies[one][0] += 1
            tallies[other][2] += 1
        elif for_other > for_one:
            tallies[other][0] += 1
            tallies[one][2] += 1
        elif for_one > 0:
            tallies[one][1] += 1
            tallies[other][1] += 1
    lines = []
    for name, (won, drawn, lost) in tallies.items():
        played = won + drawn + lost
        share = (won + 0.5 * drawn) / played if played else 0.0
        lines.append((round(share, 3), lost, name))
    lines.sort(key=lambda line: (-line[0], line[1]))
    return {name: share for share, _, name in lines}


def calibrated_with_contrasts(profile: Profile) -> tuple[Scores, NDArray[np.bool_]]:
    """Fit every session; return effects, their errors and which pairs are told apart at 5%."""
    n_candidates, n_sessions = profile.n_candidates, profile.n_sessions
    score, error = np.empty((2, n_candidates, n_sessions))
    pairs = list(combinations(range(n_candidates), 2))
    apart = np.empty((len(pairs), n_sessions), dtype=np.bool_)
    for where, block in profile.blocks():
        fit = fit_grades(block)
        factors = fit.variance_factors()
        score[:, where], error[:, where] = fit.effects, fit.std_errors()
        enough = t_quantile(0.975, float(fit.df[0]))  # nobody abstains: one freedom for all
        for line, (i, j) in enumerate(pairs):
            difference = fit.effects[i] - fit.effects[j]
            uncertain = np.sqrt(fit.residual_variance * factors[fit.pattern, i, j])
            np.greater(np.abs(difference), enough * uncertain, out=apart[line, where])
    return Scores(score, error), apart


def floor_normalized_scores(profile: Profile) -> Scores:
    """Standardise grades and average them, in plain NumPy at single precision."""
    assert profile.grades is not None
    score, error = np.empty((2, profile.n_candidates, profile.n_sessions))
    for start in range(0, profile.n_sessions, FLOOR_SESSIONS):
        where = slice(start, start + FLOOR_SESSIONS)
        block = profile.grades[..., where]
        present = block > 0
        size = present.sum(axis=1, keepdims=True, dtype=np.float32)
        z = block.astype(np.float32)
        z -= z.sum(axis=1, keepdims=True) / size
        z *= present
        deviation = np.sqrt((z * z).sum(axis=1, keepdims=True) / size)
        z /= np.where(deviation > 0, deviation, 1)
        votes = present.sum(axis=0, dtype=np.float32)
        mean = z.sum(axis=0) / votes
        score[:, where] = mean
        z -= mean
        z *= present
        z *= z
        error[:, where] = np.sqrt(z.sum(axis=0)) / votes
    return Scores(score, error)


def floor_mean_rank(profile: Profile) -> Scores:
    """Average ranks in plain NumPy, in whole numbers."""
    score, error = np.empty((2, profile.n_candidates, profile.n_sessions))
    for start in range(0, profile.n_sessions, FLOOR_SESSIONS):
        where = slice(start, start + FLOOR_SESSIONS)
        block = profile.places[..., where].astype(np.int16)
        votes = (block > 0).sum(axis=0, dtype=np.int16)
        total = block.sum(axis=0, dtype=np.int16)
        np.divide(total, 2 * votes, out=score[:, where])
        block *= block
        spread = votes * block.sum(axis=0, dtype=np.int16) - total * total
        np.sqrt(spread / (4.0 * votes * votes * (votes - 1)), out=error[:, where])
    return Scores(score, error)


FLOORS = ((normalized_scores, floor_normalized_scores), (mean_rank, floor_mean_rank))


def floor_rows(profile: Profile) -> list[Row]:
    """Measure rules against plain NumPy."""
    rows = []
    for rule, floor in FLOORS:
        ours, least = rule(profile), floor(profile)
        # Where all ballots are flat, Witan falls back to Borda.
        same = np.abs(ours.score - least.score) < 1e-5
        if ours.fell_back is not None:
            same |= ours.fell_back
        assert same.all()
        taken, plain = cpu_seconds_in_turn(partial(rule, profile), partial(floor, profile))
        ratio = taken / plain
        rows.append(
            Row(
                f"{rule} with errors over plain NumPy",
                f"{ratio:.2f}x at {taken:.3f} s",
                f"<= {FLOOR_RATIO}x",
                ratio <= FLOOR_RATIO,
            )
        )
    return rows


def check_agreement(profile: Profile, graded: list[Grades], ranked: list[Reviews]) -> None:
    """Stop if a peer and Witan disagree on the sample: their times would not compare."""
    for ours, theirs, digits in (
        (normalized_scores(profile).score, map(peer_normalized_scores, graded), 5.1e-4),
        (4 * borda(profile, variant="roster").score, map(peer_borda, ranked), 1e-9),
        (mean_rank(profile).score, map(peer_mean_rank, ranked), 1e-9),
        (tournament(profile).score, map(peer_tournament, ranked), 5.1e-4),
    ):
        told = np.array([[session[name] for name in MEMBERS] for session in theirs]).T
        # Where every ballot is flat, Witan falls back to Borda and the peer has nothing but 0.
        same = (np.abs(ours - told) <= digits).all(axis=0) | (told == 0).all(axis=0)
        assert same.all()


def faster(
    name: str, ours: Callable[[], object], theirs: Callable[[], object], least: float
) -> tuple[float, Row]:
    """Time both in turn, five rounds; return our median CPU seconds and the line."""
    rounds = [(cpu_seconds(ours, times=1), cpu_seconds(theirs, times=1)) for _ in range(5)]
    taken = statistics.median(mine for mine, _ in rounds)
    ratio = statistics.median(peer / SAMPLE * SESSIONS / mine for mine, peer in rounds)
    figure = f"{ratio:,.0f}x at {taken:.3f} s"
    return taken, Row(name, figure, f">= {least:,.0f}x", ratio >= least)


def time_rows(profile: Profile, graded: list[Grades], ranked: list[Reviews]) -> list[Row]:
    """Measure every rule against its peer or its limit."""
    against = [
        (normalized_scores, lambda: [peer_normalized_scores(one) for one in graded], 1_000.0),
        (borda, lambda: [peer_borda(one) for one in ranked], 250.0),
        (mean_rank, lambda: [peer_mean_rank(one) for one in ranked], 250.0),
        (tournament, lambda: [peer_tournament(one) for one in ranked], 250.0),
    ]
    measured = [
        faster(f"{rule} against its listing", partial(rule, profile), peer, least)
        for rule, peer, least in against
    ]
    standard = measured[0][0]
    taken = cpu_seconds(partial(calibrated_with_contrasts, profile))
    rows = [row for _, row in measured]
    rows.append(
        Row(
            "calibrated with contrasts against z-scores",
            f"{taken / standard:.1f}x at {taken:.3f} s",
            "<= 5x",
            taken <= 5 * standard,
        )
    )
    for rule in (schulze, kemeny, ranked_pairs):
        taken = cpu_seconds(partial(rule, profile))
        rows.append(Row(f"{rule}, CPU for a million", f"{taken:.3f} s", "<= 1 s", taken <= 1.0))
    return rows


def memory_rows(profile: Profile) -> list[Row]:
    """Measure the most memory each call holds at once, result included, input not."""
    calls: dict[str, Callable[[Profile], object]] = {
        rule.name: rule
        for rule in (normalized_scores, borda, mean_rank, tournament, schulze, kemeny, ranked_pairs)
    }
    calls["calibrated with contrasts"] = calibrated_with_contrasts
    rows = []
    for name, call in calls.items():
        held = peak_bytes(partial(call, profile)) / profile.n_sessions
        rows.append(Row(name, f"{held:.0f} bytes", f"<= {MOST_BYTES} bytes", held <= MOST_BYTES))
    return rows


def main() -> int:
    """Print all tables; return 1 if a target is missed."""
    profile = councils(SESSIONS, np.random.default_rng(2026))
    sample = profile.take(slice(0, SAMPLE))
    graded, ranked = as_dicts(sample)
    check_agreement(sample, graded, ranked)
    times = time_rows(profile, graded, ranked)
    show(f"{SESSIONS:,} councils of five: CPU time", times)
    floors = floor_rows(profile)
    show(f"{SESSIONS:,} councils of five: CPU time over plain NumPy", floors)
    memory = memory_rows(profile)
    show(f"{SESSIONS:,} councils of five: memory per session", memory)
    return 0 if all(row.met for row in times + floors + memory) else 1


if __name__ == "__main__":
    sys.exit(main())
