"""Ballots of one session or millions as arrays, sessions last.

Sessions last, so that every pass of a rule runs over contiguous sessions. Ranks are held as
*places*, twice the rank, so that the mean rank of tied candidates is a whole number; they fit one
byte at council sizes, and a rule that walks a block of sessions stays inside the cache.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from witan.errors import InvalidParameter, TooLarge

Floats = NDArray[np.floating[Any]]
Places = NDArray[np.unsignedinteger[Any]]

MAX_CANDIDATES = 1_000
"""More candidates in one session than this are refused: matchups grow with their square."""

ROUNDING_VARIANCE = 1 / 12
"""Variance of rounding to a whole number: no whole grade or rank is known more exactly."""

ORDER_VARIANCE = 1 / 2
"""Least residual variance of ranks. Two candidates in coin-flip order differ by ±1 rank on every
ballot, a variance of 1 or twice this, however clearly the others are ordered."""

FRACTION_VARIANCE = 1 / 48
"""The same for fractional grades: made of whole ones, they are no finer than half a point."""

BLOCK_CELLS = 1 << 18
"""Cells of (R, C, S) that a rule is given at once; in float32 they fill a megabyte."""


@lru_cache(maxsize=64)
def pair_indices(n: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """First and second of every pair of n, in order; read-only."""
    first, second = np.triu_indices(n, k=1)
    first.setflags(write=False)
    second.setflags(write=False)
    return first, second


@lru_cache(maxsize=64)
def pair_mask(n: int) -> NDArray[np.bool_]:
    """The pairs of `pair_indices`, shape (n, n, 1); read-only."""
    mask = np.triu(np.ones((n, n), dtype=np.bool_), k=1)[:, :, np.newaxis]
    mask.setflags(write=False)
    return mask


@dataclass(frozen=True)  # without slots: masks are stored once they are read
class Profile:
    """Counted ballots of S sessions of one shape, as arrays.

    Parameters
    ----------
    places : unsigned integer array, shape (R, C, S)
        Twice the rank: 2 is first; candidates tied for the first two places have 3 each;
        0 means "no vote from this ballot". Recusal has already happened.
    grades : array, shape (R, C, S), optional
        Overall grades, 1 to 10, after rubric, ceiling and recusal. Unsigned integers with 0 for
        "none", or floats with NaN for "none". Grades capped by the safety gate may be below 1;
        they are then floats.
    weights : float array, shape (R, S), optional
        Non-negative ballot weights; None means 1 each.
    lengths : integer array, shape (R, S), optional
        How many candidates each ballot ranked, where that is not the number of places held
        (recusal after counting keeps the reviewer's own candidate in it).
    eligible : integer array, shape (R, S), optional
        How many candidates each ballot could have ranked; None means C.
    reliability : float array, shape (R, S), optional
        Weights learned from other sessions; only the rule ``weighted_borda`` reads them.
    rounding : float array, shape (S,), optional
        Variance of rounding to the steps of a coarser scale that grades were converted from; NaN
        where they were given from 1 to 10.
    ballot_weights : float array, shape (R, S), optional
        The weights as the ballots state them; None: those of `weights`.
    """

    places: Places
    grades: NDArray[Any] | None = None
    weights: Floats | None = None
    lengths: NDArray[np.integer[Any]] | None = None
    eligible: NDArray[np.integer[Any]] | None = None
    reliability: Floats | None = None
    rounding: Floats | None = None
    ballot_weights: Floats | None = None

    def __repr__(self) -> str:
        graded = "" if self.grades is None else ", graded"
        shape = f"{self.n_reviewers} reviewers, {self.n_candidates} candidates"
        return f"<Profile of {shape}, {self.n_sessions} sessions{graded}>"

    def __post_init__(self) -> None:
        if self.places.ndim != 3:
            raise InvalidParameter(
                "places", self.places.shape, "an array of (reviewers, candidates, sessions)"
            )
        if self.places.dtype.kind != "u":
            raise InvalidParameter(
                "places", str(self.places.dtype), "unsigned integers (see Profile.from_ranks)"
            )
        if self.n_candidates > MAX_CANDIDATES:
            raise TooLarge("candidates in one session", self.n_candidates, MAX_CANDIDATES)

    @classmethod
    def from_ranks(
        cls,
        ranks: Floats,
        grades: NDArray[Any] | None = None,
        weights: Floats | None = None,
    ) -> "Profile":
        """Build a profile from float ranks with NaN for "not ranked".

        Parameters
        ----------
        ranks : float array, shape (R, C) or (R, C, S)
            1 is best; tied candidates share their mean rank; NaN means "not ranked".
        grades : array of the same shape, optional
        weights : float array, shape (R,) or (R, S), optional
        """
        if ranks.ndim == 2:
            ranks = ranks[:, :, np.newaxis]
            grades = grades[:, :, np.newaxis] if grades is not None else None
            weights = weights[:, np.newaxis] if weights is not None else None
        return cls(places=ranks_to_places(ranks), grades=grades, weights=weights)

    @property
    def n_reviewers(self) -> int:
        """R, the rows: ballots per session."""
        return int(self.places.shape[0])

    @property
    def n_candidates(self) -> int:
        """C."""
        return int(self.places.shape[1])

    @property
    def n_sessions(self) -> int:
        """S."""
        return int(self.places.shape[2])

    @property
    def ranks(self) -> NDArray[np.float64]:
        """Ranks as floats, (R, C, S): 1 is best, NaN no vote."""
        return np.where(self.places > 0, self.places / 2.0, np.nan)

    @cached_property
    def rank_mask(self) -> NDArray[np.bool_]:
        """Ranked cells, shape (R, C, S)."""
        return self.places > 0

    @cached_property
    def grade_mask(self) -> NDArray[np.bool_]:
        """Graded cells, shape (R, C, S)."""
        if self.grades is None:
            return np.zeros(self.places.shape, dtype=np.bool_)
        whole = self.grades.dtype.kind in "iu"
        graded: NDArray[np.bool_] = self.grades > 0 if whole else ~np.isnan(self.grades)
        return graded

    def take(self, sessions: slice | NDArray[np.integer[Any]] | NDArray[np.bool_]) -> "Profile":
        """The profile of some sessions; a slice gives views, not copies."""
        rounding = None if self.rounding is None else self.rounding[sessions]
        return self._index((..., sessions), rounding)

    def keep_ballots(self, rows: NDArray[Any] | slice) -> "Profile":
        """The same profile with only these ballots (rows of the first axis)."""
        return self._index(rows, self.rounding)

    def keep_candidates(self, seats: NDArray[np.integer[Any]]) -> "Profile":
        """The same profile with only these candidates; places keep their gaps."""
        grades = None if self.grades is None else self.grades[:, seats]
        return replace(self, places=self.places[:, seats], grades=grades)

    def _index(self, index: Any, rounding: Floats | None) -> "Profile":
        # Quoted: the types would be built anew for every recount.
        def cut(array: "NDArray[Any] | None") -> Any:
            return None if array is None else array[index]

        return Profile(
            places=cut(self.places),
            grades=cut(self.grades),
            weights=cut(self.weights),
            lengths=cut(self.lengths),
            eligible=cut(self.eligible),
            reliability=cut(self.reliability),
            rounding=rounding,
            ballot_weights=cut(self.ballot_weights),
        )

    def replace_weights(self, weights: Floats | None) -> "Profile":
        """The same profile under other ballot weights, shape (R, S)."""
        return replace(self, weights=weights, ballot_weights=None)

    def unscale_weights(self) -> "Profile":
        """The same profile in the units of the ballots' weights."""
        return self if self.ballot_weights is None else self.replace_weights(self.ballot_weights)

    def blocks(self) -> Iterator[tuple[slice, "Profile"]]:
        """Cache-sized slices of the session axis, each with its view."""
        per_session = max(1, self.n_reviewers * self.n_candidates)
        step = max(1, BLOCK_CELLS // per_session)
        if 0 < self.n_sessions <= step:
            yield slice(0, self.n_sessions), self
            return
        for start in range(0, self.n_sessions, step):
            where = slice(start, min(start + step, self.n_sessions))
            yield where, self.take(where)


@dataclass(frozen=True, slots=True)
class Matchups:
    """Head-to-head counts of one profile.

    Parameters
    ----------
    wins : array, shape (C, C, S)
        ``over[i, j]`` is the weight of the ballots that rank i strictly above j.
        Integers when every ballot weighs 1, else floats.
    level : array, shape (C, C, S)
        ``level[i, j]`` is the weight of the ballots that rank both and place them equal.
    """

    wins: NDArray[Any]
    level: NDArray[Any]

    @property
    def margins(self) -> NDArray[Any]:
        """Ballots for i over j minus the reverse, shape (C, C, S)."""
        margins: NDArray[Any] = self.wins - self.wins.swapaxes(0, 1)
        if margins.dtype.kind == "f":
            # Weights such as .1 + .2 against .3 leave dust that would make a majority.
            most = np.abs(self.wins).max(axis=(0, 1), initial=0.0)
            margins[np.abs(margins) <= 1e-9 * most] = 0.0
        return margins

    @property
    def comparisons(self) -> NDArray[Any]:
        """Weight of the ballots comparing i with j, shape (C, C, S)."""
        met: NDArray[Any] = self.wins + self.wins.swapaxes(0, 1) + self.level
        return met


def matchups(profile: Profile) -> Matchups:
    """Count every pair of candidates against each other, over all ballots.

    A ballot says something of a pair only if it ranks both. Unweighted counts are whole numbers
    of the smallest type that holds them.
    """
    places, weights = profile.places, profile.weights
    n_reviewers, n_candidates, n_sessions = places.shape
    counted: np.dtype[Any] = np.dtype(np.float64)
    if weights is None:
        counted = np.dtype(np.int8 if n_reviewers < 128 else np.int32)
    # An unranked place, 0, becomes the largest number of its type: below everything.
    last = places - places.dtype.type(1)
    ranked = profile.rank_mask

    # Quoted: the types would be built anew for every count.
    def total(votes: "NDArray[np.bool_]") -> "NDArray[Any]":
        if weights is not None:
            weighed: NDArray[Any] = np.einsum("r...s,rs->...s", votes, weights)
            return weighed
        summed: NDArray[Any] = votes.sum(axis=0, dtype=counted)
        return summed

    if places.size * n_candidates <= BLOCK_CELLS:  # few sessions: every pair in one pass
        mine, theirs = last[:, :, np.newaxis], last[:, np.newaxis]
        both = ranked[:, :, np.newaxis] & ranked[:, np.newaxis]
        level = total((mine == theirs) & both)
        diagonal = np.arange(n_candidates)
        level[diagonal, diagonal] = 0
        return Matchups(total((mine < theirs) & both), level)
    over = np.zeros((n_candidates, n_candidates, n_sessions), dtype=counted)
    level = np.zeros_like(over)
    for i in range(n_candidates):
        for j in range(i + 1, n_candidates):
            both = ranked[:, i] & ranked[:, j]
            over[i, j] = total((last[:, i] < last[:, j]) & both)
            over[j, i] = total((last[:, j] < last[:, i]) & both)
            level[i, j] = level[j, i] = total((last[:, i] == last[:, j]) & both)
    return Matchups(over, level)


def ranks_to_places(ranks: Floats) -> Places:
    """Twice the rank in the smallest sufficient unsigned type; 0 for NaN.

    Raises
    ------
    InvalidParameter
        If a rank is not a positive multiple of one half.
    """
    doubled = np.where(np.isnan(ranks), 0.0, ranks * 2.0)
    whole = np.rint(doubled)
    if np.any(np.abs(doubled - whole) > 1e-9) or np.any(whole < 0):
        raise InvalidParameter("ranks", "a rank that is no multiple of 1/2", "1, 1.5, 2, … or NaN")
    largest = float(whole.max(initial=0.0))
    places: Places = whole.astype(np.uint8 if largest < 256 else np.uint16)
    return places
