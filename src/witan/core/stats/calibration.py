"""Calibration of a panel by people's votes: agreement into reliability.

Agreement is the panel's own confidence: the larger of p_beats and 1 − p_beats. Reliability is how
often people agreed; it is unknown without enough votes.

`compare_with_people` follows the SQL definitions of `HumanSums` and `CalibrationSums`. It serves
the few sessions that a council learns from before it counts, where a query to an engine would take
too long.
"""

from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from witan.core.outcome import Outcome, check_level
from witan.core.profile import Floats
from witan.core.stats.concordance import MIN_DECIDED, opinion
from witan.core.stats.measures import Count, Measure, lack_data, per_bucket, rate, undefined_measure
from witan.errors import InvalidParameter

if TYPE_CHECKING:
    from witan.core.stats.sums import CalibrationSums, HumanSums

BANDS = 20
"""Number of equal bands between 0 and 1; a confidence is at least ½, so only half are used."""

MIN_NEAR = 20
"""Fewest decided pairs at, or pooled with, a confidence for its reliability to be known."""

PAIRS = "pairs that people decided"

Pair = tuple[int, int]

EDGES = [k / BANDS for k in range(1, BANDS)]


@dataclass(frozen=True, slots=True)
class ConfidenceBand:
    """Pairs of similar confidence, `low` ≤ confidence < `high`.

    The last band contains 1.

    Parameters
    ----------
    low, high
        Its bounds.
    confidence
        Mean agreement of the panel with itself.
    pairs
        Number of pairs decided by people.
    matched
        Share of pairs that people decided the same way, as counted.
    """

    low: float
    high: float
    confidence: float
    pairs: int
    matched: Measure


@dataclass(frozen=True, slots=True)
class BandBlock:
    """Neighbouring bands with one reliability.

    Parameters
    ----------
    low, high
        Its bounds.
    pairs
        Number of pairs decided by people.
    reliability
        Share of pairs that people decided the same way, fitted to be non-decreasing.
    """

    low: float
    high: float
    pairs: int
    reliability: Measure


@dataclass(frozen=True, slots=True)
class Calibration:
    """Reliability by agreement.

    Parameters
    ----------
    pairs
        Number of all pairs decided by people.
    bands
        As counted, least sure first; none without pairs.
    blocks
        The monotone fit, least sure first.
    """

    pairs: int
    bands: tuple[ConfidenceBand, ...]
    blocks: tuple[BandBlock, ...]

    @property
    def is_known(self) -> bool:
        """True if people decided enough pairs for any reliability."""
        return self.pairs >= MIN_DECIDED

    def reliability(self, confidence: float) -> Measure:
        """Share of matches with people at this confidence, if known.

        It is unknown with fewer than fifty decided pairs in all, or where fewer than twenty are
        pooled with this confidence.

        Parameters
        ----------
        confidence : float
            The panel's agreement on a pair, from ½ to 1.

        Raises
        ------
        InvalidParameter
            If `confidence` is outside this range.
        """
        if not 0.5 <= confidence <= 1:
            raise InvalidParameter("confidence", confidence, "a number from 0.5 to 1")
        if not self.is_known:
            return lack_data(Count(self.pairs, PAIRS, MIN_DECIDED), "share")
        band = sum(confidence >= k / BANDS for k in range(1, BANDS))
        middle = (band + 0.5) / BANDS
        for block in self.blocks:
            if block.low < middle < block.high:
                return block.reliability
        return lack_data(Count(0, f"{PAIRS} near this confidence", MIN_NEAR), "share")


def reliability_of(outcome: Outcome | None, calibration: Calibration | None) -> Measure:
    """Return how often people agreed at the panel's confidence in its top two.

    A calibration concerns pairs, so this uses p_beats of the first two lines, which is at least the
    first one's p_best. It is unknown without an outcome or a calibration, or if the fit does not
    place the first line above the second.
    """
    beats = [] if outcome is None else outcome.p_beats
    sure = beats[0][1] if len(beats) > 1 else None
    if calibration is None:
        return lack_data(Count(0, PAIRS, MIN_DECIDED), "share")
    if sure is None or sure < 0.5:
        of = Count(calibration.pairs, PAIRS, MIN_DECIDED)
        return undefined_measure(
            of, "share", "undefined: the ballots do not place one above another"
        )
    return calibration.reliability(sure)


def calibrate(
    table: "CalibrationSums", *, level: float = 0.95, with_bands: bool = True
) -> Calibration:
    r"""Fit reliability to agreement, never falling as agreement rises.

    With n_k decided pairs in band k, of which the panel matched h_k, the fit minimises
    Σ n_k (h_k/n_k − f_k)² over f that never fall: the pool-adjacent-violators algorithm. A block
    of pooled bands has the reliability Σ h_k / Σ n_k, with the interval of
    `witan.core.stats.measures.rate`, which allows for clustering by session and treats the blocks
    as fixed.

    Parameters
    ----------
    with_bands : bool
        Whether to return the bands, too.

    References
    ----------
    Ayer, Brunk, Ewing, Reid and Silverman, "An empirical distribution function for sampling with
    incomplete information", Annals of Mathematical Statistics 26 (1955) 641–647. Zadrozny and
    Elkan, "Transforming classifier scores into accurate multiclass probability estimates", KDD
    2002.
    """
    check_level(level)
    filled = sorted(set(table.band[table.pairs > 0].tolist()))
    bands = filled if with_bands else []
    pooled = _pool(table, filled)
    return Calibration(
        pairs=int(table.pairs.sum()),
        bands=tuple(_band(table, band, level) for band in bands),
        blocks=tuple(_block(table, block, level) for block in pooled),
    )


def _pool_matches(table: "CalibrationSums", bands: Sequence[int], of: str, level: float) -> Measure:
    rows = np.isin(table.band, bands)
    sums = per_bucket(table.bucket[rows], table.matched[rows], table.pairs[rows])
    return rate(sums, Count(table.pairs[rows].sum(), of, MIN_NEAR), level=level)


def _band(table: "CalibrationSums", band: int, level: float) -> ConfidenceBand:
    rows = table.band == band
    pairs = int(table.pairs[rows].sum())
    return ConfidenceBand(
        low=band / BANDS,
        high=(band + 1) / BANDS,
        confidence=float(table.confidence[rows].sum()) / pairs,
        pairs=pairs,
        matched=_pool_matches(table, [band], PAIRS, level),
    )


def _block(table: "CalibrationSums", bands: Sequence[int], level: float) -> BandBlock:
    matched = _pool_matches(table, bands, f"{PAIRS} near this confidence", level)
    return BandBlock(bands[0] / BANDS, (bands[-1] + 1) / BANDS, matched.n, matched)


def _pool(table: "CalibrationSums", bands: Sequence[int]) -> list[list[int]]:
    """Bands in blocks of rising reliability: pool adjacent violators."""
    blocks: list[tuple[float, float, list[int]]] = []
    for band in bands:
        rows = table.band == band
        hits, pairs = float(table.matched[rows].sum()), float(table.pairs[rows].sum())
        bands_in = [band]
        # Compared by products, so that equal shares of different sizes pool exactly.
        while blocks and blocks[-1][0] * pairs >= hits * blocks[-1][1]:
            before = blocks.pop()
            hits, pairs, bands_in = before[0] + hits, before[1] + pairs, before[2] + bands_in
        blocks.append((hits, pairs, bands_in))
    return [bands_in for _, _, bands_in in blocks]


@dataclass(frozen=True, slots=True)
class StoredBallot:
    """A stored ballot, models and reviewers as codes; see `BallotEntry`."""

    reviewer: int
    human: bool
    models: Sequence[int]
    own: Sequence[bool]
    shares: Sequence[float | None]


@dataclass(frozen=True, slots=True)
class JudgedSession:
    """A session with people's votes.

    Parameters
    ----------
    models, p_beats
        Models of its matchup, and p_beats of their pairs in the order (0, 1), (0, 2), …, (1, 2), …;
        both empty without a matchup.
    """

    bucket: int
    ballots: Sequence[StoredBallot]
    models: Sequence[int] = ()
    p_beats: Sequence[float | None] = ()


@dataclass(frozen=True, slots=True, eq=False)
class BesidePeople:
    """Models' opinions on pairs decided by people.

    Parameters
    ----------
    reviewers
        Codes, one per row of `correct`.
    correct : float array, shape (R, N)
        Per pair: 1 agrees with people, −1 contradicts them, 0 neither; NaN: not judged.
    calibration
        How sure the panels were of those pairs, and how often they matched.
    """

    reviewers: tuple[int, ...]
    correct: Floats
    calibration: "CalibrationSums"

    def of(self, reviewers: Collection[int]) -> "BesidePeople":
        """Select the opinions of these reviewers."""
        mine = [row for row, code in enumerate(self.reviewers) if code in reviewers]
        rows = tuple(self.reviewers[row] for row in mine)
        return replace(self, reviewers=rows, correct=self.correct[mine])

    @property
    def sums(self) -> "HumanSums":
        """Sums of each reviewer paired with itself, all sessions in one bucket."""
        from witan.core.stats.sums import HumanSums

        known = ~np.isnan(self.correct)
        sides = np.where(known, self.correct, 0.0)
        codes = np.array(self.reviewers, dtype=np.int64)
        totals, squares = sides.sum(axis=1), (sides * sides).sum(axis=1)
        return HumanSums(
            bucket=np.zeros_like(codes),
            reviewer=codes,
            other=codes,
            n=known.sum(axis=1).astype(np.int64),
            x=totals,
            y=totals,
            xx=squares,
            yy=squares,
            xy=squares,
        )


def compare_with_people(sessions: Iterable[JudgedSession]) -> BesidePeople:
    """Compare models' ballots and panels' claims with human majorities.

    A pair of candidates of a session is decided if more people prefer one than the other. A
    reviewer's own candidates are left out.
    """
    rights: dict[int, dict[int, float]] = {}
    banded: dict[tuple[int, int], list[float]] = {}
    n_decided = 0
    for session in sessions:
        truth, opinions = _opinions(session.ballots)
        for reviewer, sides in opinions.items():
            mine = rights.setdefault(reviewer, {})
            for at, (pair, right) in enumerate(truth.items(), start=n_decided):
                if pair in sides:
                    mine[at] = right * opinion(sides[pair])
        n_decided += len(truth)
        for confidence, matched in _panel_confidence(session, truth):
            row = banded.setdefault(
                (session.bucket, bisect_right(EDGES, confidence)), [0.0, 0.0, 0.0]
            )
            row[0] += 1
            row[1] += matched
            row[2] += confidence
    correct = np.full((len(rights), n_decided), np.nan)
    for at, score in enumerate(rights.values()):
        correct[at, list(score)] = list(score.values())
    return BesidePeople(tuple(rights), correct, _table(banded))


def _opinions(
    ballots: Sequence[StoredBallot],
) -> tuple[dict[Pair, int], dict[int, dict[Pair, list[int]]]]:
    """Pairs decided by people, and each model's sides on its pairs."""
    people: dict[int, dict[Pair, list[int]]] = {}
    models: dict[int, dict[Pair, list[int]]] = {}
    for ballot in ballots:
        mine = (people if ballot.human else models).setdefault(ballot.reviewer, {})
        for pair, side in _sides(ballot):
            mine.setdefault(pair, []).append(side)
    balances: dict[Pair, int] = {}
    for mine in people.values():
        for pair, sides in mine.items():
            balances[pair] = balances.get(pair, 0) + opinion(sides)
    return {
        pair: (balance > 0) - (balance < 0) for pair, balance in balances.items() if balance
    }, models


def _sides(ballot: StoredBallot) -> Iterator[tuple[Pair, int]]:
    """Return 1 for the smaller code, −1 for the other, else 0."""
    placed = sorted(
        (model, share)
        for model, own, share in zip(ballot.models, ballot.own, ballot.shares, strict=True)
        if share is not None and not own
    )
    for (i, a), (j, b) in combinations(placed, 2):
        if i != j:
            yield (i, j), (a > b) - (a < b)


def _panel_confidence(
    session: JudgedSession, truth: Mapping[Pair, int]
) -> Iterator[tuple[float, bool]]:
    """Panel confidence per decided pair with a preference, and its success."""
    for (i, j), p in zip(combinations(session.models, 2), session.p_beats, strict=True):
        right = truth.get((min(i, j), max(i, j)))
        if right is None or p is None or p == 0.5:
            continue
        # p belongs to i; people's decision is for or against the smaller code.
        for_smaller = (p > 0.5) == (i < j)
        yield max(p, 1.0 - p), for_smaller == (right > 0)


def _table(bands: Mapping[tuple[int, int], Sequence[float]]) -> "CalibrationSums":
    from witan.core.stats.sums import CalibrationSums

    keys = np.array(list(bands), dtype=np.int64).reshape(-1, 2)
    rows = np.array(list(bands.values()), dtype=float).reshape(-1, 3)
    return CalibrationSums(
        bucket=keys[:, 0],
        band=keys[:, 1],
        pairs=rows[:, 0].astype(np.int64),
        matched=rows[:, 1].astype(np.int64),
        confidence=rows[:, 2],
    )
