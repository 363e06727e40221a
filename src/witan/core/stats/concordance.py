"""Concordance of ballots, majorities, shared error and agreement with people."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, islice
from math import isnan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from witan.core.profile import BLOCK_CELLS, Electorate, Floats, Profile, Vote, closure, pair_indices

MOST_PAIRS = 5_000
"""Most pairs of incomplete ballots whose correlation is averaged."""

MIN_DECIDED = 50
"""Fewest comparisons decided by people to learn ρ from."""


def kendall_tau(first: Floats, second: Floats) -> float | None:
    """Kendall's τ-b between two rankings of the same candidates.

        τ_b = (concordant − discordant) / √((n₀ − n₁)(n₀ − n₂))

    with n₀ pairs in all and n₁, n₂ pairs tied in either ranking.

    Parameters
    ----------
    first, second : float array, shape (C,)
        Ranks, or scores with the same direction; candidates with NaN in either are left out.

    Returns
    -------
    float or None
        −1 to 1; None if either ranking ties all remaining candidates.

    References
    ----------
    Kendall, "The treatment of ties in ranking problems", Biometrika 33 (1945) 239–251.
    """
    tau = kendall_taus(first[np.newaxis, :, np.newaxis], second[:, np.newaxis])[0, 0]
    return None if isnan(tau) else float(tau)


def kendall_taus(ballots: Floats, ranking: Floats) -> Floats:
    """Compute `kendall_tau` of ballots with sessions' rankings, (R, S); NaN: undefined.

    Parameters
    ----------
    ballots : float array, shape (R, C, S)
    ranking : float array, shape (C, S)
    """
    n_ballots, n_candidates, n_sessions = ballots.shape
    taus = np.full((n_ballots, n_sessions), np.nan)
    if n_candidates < 2:
        return taus
    rows = max(1, BLOCK_CELLS // max(1, n_candidates**2))
    columns = max(1, rows // max(1, n_ballots))
    for left in range(0, n_sessions, columns):
        session = slice(left, left + columns)
        placed = ranking[:, session]
        b = np.sign(placed[:, np.newaxis] - placed)
        for top in range(0, n_ballots, rows):
            block = ballots[top : top + rows, :, session]
            a = np.sign(block[:, :, np.newaxis] - block[:, np.newaxis])
            known = np.isfinite(a + b)
            a, others = np.where(known, a, 0.0), np.where(known, b, 0.0)
            room = np.sqrt((a * a).sum(axis=(1, 2)) * (others * others).sum(axis=(1, 2)))
            with np.errstate(invalid="ignore"):
                taus[top : top + rows, session] = (a * others).sum(axis=(1, 2)) / room
    return taus


def kendall_w(ranks: Floats) -> float | None:
    """Kendall's coefficient of concordance W of m ballots.

    For complete ballots of n candidates, with R[c] rank sums and T[r] = Σ (t³ − t) over the tied
    groups of ballot r,

        W = 12 Σ (R[c] − R̄)² / (m² (n³ − n) − m Σ T[r]).

    A ballot with one candidate compares nobody and does not count. For incomplete ballots, through
    the identity W = (1 + (m − 1) ρ̄) / m with ρ̄ the mean Spearman correlation over pairs of ballots,
    each on the candidates that both rank (two at least).

    Parameters
    ----------
    ranks : float array, shape (R, C)
        NaN where a ballot does not rank a candidate.

    Returns
    -------
    float or None
        0 to 1, clipped at 0; None with fewer than two ballots or only flat ones.

    References
    ----------
    Kendall and Babington Smith, Annals of Mathematical Statistics 10 (1939) 275–287; Kendall,
    Rank Correlation Methods, 1948, chapter 6.
    """
    ranks = ranks[(~np.isnan(ranks)).sum(axis=1) >= 2]
    ranks = ranks[:, ~np.isnan(ranks).all(axis=0)]
    n_ballots, n_candidates = ranks.shape
    if n_ballots < 2 or n_candidates < 2:
        return None
    if np.isnan(ranks).any():
        correlation = _mean_spearman(ranks)
        if correlation is None:
            return None
        return float(max(0.0, (1 + (n_ballots - 1) * correlation) / n_ballots))
    sums = ranks.sum(axis=0)
    tied = sum(
        float((counts**3 - counts).sum())
        for counts in (np.unique(row, return_counts=True)[1] for row in ranks)
    )
    room = n_ballots**2 * (n_candidates**3 - n_candidates) - n_ballots * tied
    return float(12 * ((sums - sums.mean()) ** 2).sum() / room) if room > 0 else None


def _mean_spearman(ranks: Floats) -> float | None:
    """Mean correlation of ranks over pairs of ballots, recounted among shared candidates.

    With more than `MOST_PAIRS` pairs, that many are taken at even steps.
    """
    n_ballots, n_candidates = ranks.shape
    n_pairs = n_ballots * (n_ballots - 1) // 2
    every = combinations(range(n_ballots), 2)
    pairs = np.array(list(islice(every, 0, None, max(1, n_pairs // MOST_PAIRS))))
    rhos = []
    step = max(1, BLOCK_CELLS // n_candidates**2)
    for start in range(0, len(pairs), step):
        two = ranks[pairs[start : start + step].T]
        a, b = _recount(two, ~np.isnan(two[0] + two[1]))
        spread = np.sqrt((a * a).sum(axis=1) * (b * b).sum(axis=1))
        varied = spread > 0
        rhos.append((a * b).sum(axis=1)[varied] / spread[varied])
    correlations = np.concatenate(rhos)
    return float(correlations.mean()) if correlations.size else None


def _recount(ranks: Floats, among: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Twice the ranks among some candidates, centred on 0, (2, P, C).

    The value is the number of candidates below minus the number above, a whole number with exact
    sums; 0 for the candidates that are left out.
    """
    present = np.where(among, ranks, np.nan)
    ahead = np.sign(present[..., np.newaxis] - present[..., np.newaxis, :])
    counted: NDArray[np.float64] = np.where(np.isnan(ahead), 0.0, ahead).sum(axis=-1)
    return counted


def effective_votes(n_reviewers: float, rho: float) -> float:
    """Convert R correlated reviewers to independent ones.

    The formula is R / (1 + (R − 1)·ρ).

    Source: the design effect of Kish, Survey Sampling, 1965, section 8.2.
    """
    return n_reviewers / (1 + (n_reviewers - 1) * rho)


def shared_error(correct: Floats) -> float | None:
    """Share of error variance common to reviewers, ρ.

    The mean over pairs of reviewers of the correlation between *being right* on the items that both
    judged, clipped to [0, 1). A correlation of the votes themselves would count the truth as a
    shared error. Easy items also make reviewers right together, so this overestimates the shared
    error, which is cautious.

    Parameters
    ----------
    correct : float array, shape (R, N)
        Agreement with the reference per reviewer and item: 1 agrees, −1 contradicts, 0 tie, NaN not
        judged.

    Returns
    -------
    float or None
        None unless some pair of reviewers shares two items on which both vary.
    """
    known = ~np.isnan(correct)
    shares = []
    for i in range(len(correct)):
        for j in range(i + 1, len(correct)):
            both = known[i] & known[j]
            if both.sum() < 2:
                continue
            a, b = correct[i, both], correct[j, both]
            a, b = a - a.mean(), b - b.mean()
            spread = float(np.sqrt((a @ a) * (b @ b)))
            if spread > 0:
                shares.append(float(a @ b) / spread)
    if not shares:
        return None
    return float(np.clip(np.mean(shares), 0.0, 1 - 1e-9))


def kendall_ws(profile: Profile) -> list[float | None]:
    """`kendall_w` of each session in a batch, over ranked candidates.

    Parameters
    ----------
    profile : Profile
        Of whole ballots; weights do not matter.

    Returns
    -------
    list of float or None
        As `kendall_w` returns them, except for the last digits of a mean.
    """
    n_ballots, n_candidates = profile.n_reviewers, profile.n_candidates
    if n_ballots < 2 or n_candidates < 2:
        return [None] * profile.n_sessions
    if n_ballots * (n_ballots - 1) // 2 > MOST_PAIRS:
        return [kendall_w(profile.ranks[:, :, column]) for column in range(profile.n_sessions)]
    ws: list[float | None] = []
    step = max(1, BLOCK_CELLS // (n_ballots * n_candidates**2))
    for start in range(0, profile.n_sessions, step):
        places = profile.places[:, :, start : start + step].astype(np.int32)
        ws += [None if isnan(w) else w for w in _w_of_block(places).tolist()]
    return ws


def _w_of_block(places: NDArray[np.int32]) -> Floats:
    """W of sessions, (R, C, S) → (S,); NaN if undefined."""
    ranked = places > 0
    comparing = ranked.sum(axis=1, keepdims=True) >= 2
    ranked &= comparing
    present = np.logical_or.reduce(ranked, axis=0)
    complete = ((ranked == present) | ~comparing).all(axis=(0, 1))
    w = np.full(complete.shape, np.nan)
    for compute, of_kind in ((_w_of_complete, complete), (_w_of_incomplete, ~complete)):
        sessions = of_kind.nonzero()[0]
        if len(sessions):
            w[sessions] = compute(places[:, :, sessions], ranked[:, :, sessions])
    return np.where(comparing.sum(axis=(0, 1)) >= 2, w, np.nan)


def _w_of_complete(places: NDArray[np.int32], ranked: NDArray[np.bool_]) -> Floats:
    """W from rank sums corrected for ties; meaningless for incomplete sessions.

    A candidate tied with t − 1 others contributes t² − 1 to the t³ − t of its group.
    """
    present = np.logical_or.reduce(ranked, axis=0)
    m, n = np.logical_or.reduce(ranked, axis=1).sum(axis=0), present.sum(axis=0)
    sums = (places * ranked).sum(axis=0) / 2
    away = np.where(present, sums - sums.sum(axis=0) / np.maximum(n, 1), 0.0)
    alike = (places[:, :, np.newaxis] == places[:, np.newaxis]) & present
    tied = np.where(ranked, alike.sum(axis=2) ** 2 - 1, 0).sum(axis=(0, 1))
    room = m**2 * (n**3 - n) - m * tied
    with np.errstate(divide="ignore", invalid="ignore"):
        w: Floats = np.where(room > 0, 12 * (away**2).sum(axis=0) / room, np.nan)
    return w


def _w_of_incomplete(places: NDArray[np.int32], ranked: NDArray[np.bool_]) -> Floats:
    """W from mean correlations of ballot pairs over their common candidates."""
    n_ballots, n_candidates, n_sessions = places.shape
    m = np.logical_or.reduce(ranked, axis=1).sum(axis=0)
    ahead = np.sign(places[:, :, np.newaxis] - places[:, np.newaxis])
    total, times = np.zeros(n_sessions), np.zeros(n_sessions)
    every_first, every_second = pair_indices(n_ballots)
    step = max(1, BLOCK_CELLS // (n_candidates**2 * n_sessions))
    for start in range(0, len(every_first), step):
        first, second = every_first[start : start + step], every_second[start : start + step]
        both = ranked[first] & ranked[second]
        sides = ahead[np.array([first, second])]
        sides = np.einsum("pkijs,kjs->pkis", sides, both, dtype=np.int32) * both
        squares = (sides * sides).sum(axis=2)
        spread = np.sqrt(squares[0] * squares[1])
        shares = (sides[0] * sides[1]).sum(axis=1) / np.where(spread > 0, spread, 1.0)
        # Added in order: pairwise summation would differ between one session and many.
        shares[0] += total
        total = np.add.accumulate(shares)[-1]
        times += (spread > 0).sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = total / times
    w: Floats = np.maximum(0.0, (1 + (m - 1) * mean) / m)
    return w


def learn_rho(electorates: Sequence[Electorate]) -> float | None:
    """Learn ρ from human majorities on pairs; None with under fifty.

    A model's opinion on such a pair is right (1), wrong (−1) or undecided (0); ρ is the mean
    correlation of being right between models, `witan.core.stats.concordance.shared_error`.
    """
    rights: dict[str, dict[int, float]] = {}
    n_decided = 0
    for _, sides in sides_with_people(electorates):
        for reviewer, side in sides.items():
            rights.setdefault(reviewer, {})[n_decided] = side
        n_decided += 1
    if n_decided < MIN_DECIDED or len(rights) < 2:
        return None
    correct = np.full((len(rights), n_decided), np.nan)
    for row, tally in enumerate(rights.values()):
        correct[row, list(tally)] = list(tally.values())
    return shared_error(correct)


def sides_with_people(
    electorates: Sequence[Electorate],
) -> Iterator[tuple[int, Mapping[str, int]]]:
    """Compare models with people, pair by pair decided by a human majority.

    Yields
    ------
    int
        The number of the session.
    mapping
        Reviewer → 1 if its `opinion` on the pair agrees with people, −1 if it contradicts them, 0
        neither.
    """
    for number, electorate in enumerate(electorates):
        if "human" not in electorate.kinds:
            continue
        people = [vote for vote in electorate.votes if vote.kind == "human"]
        models = [vote for vote in electorate.votes if vote.kind == "model"]
        if not models:
            continue
        for i, j in combinations(range(len(electorate.candidates)), 2):
            balance = sum(_opinions(people, i, j).values())
            if balance:
                truth = 1 if balance > 0 else -1
                yield (
                    number,
                    {name: side * truth for name, side in _opinions(models, i, j).items()},
                )


def _opinions(votes: Sequence[Vote], i: int, j: int) -> dict[str, int]:
    """Each reviewer's `opinion` on a pair; 1 prefers i."""
    sides: dict[str, list[int]] = {}
    for vote in votes:
        a, b = vote.places[i], vote.places[j]
        if a and b:
            sides.setdefault(vote.reviewer, []).append((a < b) - (a > b))
    return {reviewer: opinion(mine) for reviewer, mine in sides.items()}


def opinion(sides: Sequence[int]) -> int:
    """A reviewer's view of a pair: the side of most of its ballots, else a tie.

    That is 1 or −1 if more than half of `sides` are, else 0. A preference in one of two orders is
    therefore a tie.
    """
    return next((side for side in (1, -1) if 2 * sides.count(side) > len(sides)), 0)


def condorcet_winners(margins: NDArray[Any], standing: NDArray[np.bool_]) -> NDArray[np.intp]:
    """Find the strict majority winner over every rival, (S,); −1: none.

    Parameters
    ----------
    margins : array, shape (C, C, S)
        Ballots for i over j minus the reverse.
    standing : bool array, shape (C, S)
        Candidates with votes. A single one has beaten no rival.
    """
    if not len(standing):
        return np.full(standing.shape[1], -1)
    n_rivals = standing.sum(axis=0) - 1
    wins = standing & (((margins > 0) & standing).sum(axis=1) == n_rivals)
    return np.where(wins.any(axis=0) & (n_rivals > 0), wins.argmax(axis=0), -1)


def mutual_reach(margins: NDArray[Any]) -> NDArray[np.bool_]:
    """Find pairs with mutual paths of strict majorities, (C, C, …)."""
    reach = closure(margins > 0)
    return reach & reach.swapaxes(0, 1)


def majority_cycles(mutual: NDArray[np.bool_]) -> tuple[tuple[int, ...], ...]:
    """Groups of candidates in a cycle of majorities, in seat order.

    These are the strongly connected components of the strict majority relation.

    Parameters
    ----------
    mutual : bool array, shape (C, C)
        `mutual_reach` of one session.
    """
    cycles: list[tuple[int, ...]] = []
    visited: set[int] = set()
    for candidate in range(len(mutual)):
        ring: Sequence[int] = np.flatnonzero(mutual[candidate]).tolist()
        if candidate not in visited and len(ring) > 2:
            cycles.append(tuple(ring))
            visited.update(ring)
    return tuple(cycles)
