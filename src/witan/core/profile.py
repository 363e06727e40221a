"""Ballots as rows of one session, and as arrays over many sessions.

Sessions are the last axis, so that rules iterate over contiguous sessions. Ranks are stored as
*places*, twice the rank, so that the mean rank of tied candidates is a whole number. At council
sizes a place fits one byte, and a block of sessions fits the processor's cache.
"""

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import lru_cache
from itertools import repeat
from typing import Any, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from witan.core.attributes import cached_property
from witan.core.ballot import Groups, Kind
from witan.core.scale import Scale
from witan.errors import InvalidParameter, TooLarge

Row = TypeVar("Row")

Floats = NDArray[np.floating[Any]]
Places = NDArray[np.unsignedinteger[Any]]

MAX_CANDIDATES = 1_000
"""Maximum number of candidates in a session; matchups grow with the square."""

ROUNDING_VARIANCE = 1 / 12
"""Variance of rounding to a whole number: the minimum uncertainty of a whole grade or rank."""

ORDER_VARIANCE = 1 / 2
"""Minimum residual variance of ranks. Two candidates in random order differ by ±1 rank on every
ballot, a variance of 1, which is twice this, however clearly the others are ordered."""

FRACTION_VARIANCE = 1 / 48
"""The same for fractional grades, which combine whole ones and are no finer than half a point."""

BLOCK_CELLS = 1 << 18
"""Maximum number of cells (R, C, S) in one call of a rule: a megabyte of float32."""


def per_session(values: NDArray[Any]) -> list[Any]:
    """Convert an array to one list per session, None for NaN."""
    last = values.ndim - 1
    return none_for_nan(values.transpose(last, *range(last)))


def none_for_nan(values: NDArray[Any]) -> list[Any]:
    """Convert an array to lists, with None for NaN."""
    if values.dtype.kind == "f":
        unknown = np.isnan(values)
        if unknown.any():
            values = values.astype(object)
            values[unknown] = None
    return values.tolist()  # type: ignore[no-any-return]


@lru_cache(maxsize=64)
def pair_indices(n: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return first and second of every pair of n, in order; read-only."""
    first, second = np.triu_indices(n, k=1)
    first.setflags(write=False)
    second.setflags(write=False)
    return first, second


@lru_cache(maxsize=64)
def pair_mask(n: int) -> NDArray[np.bool_]:
    """Return `pair_indices` as a mask, shape (n, n, 1); read-only."""
    mask = np.triu(np.ones((n, n), dtype=np.bool_), k=1)[:, :, np.newaxis]
    mask.setflags(write=False)
    return mask


def closure(links: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Find pairs with a path of links between them, (C, C, …).

    The path of pair (i, j) leads from i to j; the diagonal marks cycles.

    Source: Warshall, "A theorem on Boolean matrices", Journal of the ACM 9 (1962) 11–12.
    """
    chained = links.copy()
    for middle in range(len(links)):
        chained |= chained[:, middle, np.newaxis] & chained[np.newaxis, middle]
    return chained


@dataclass(frozen=True)  # without slots: masks are cached on first use
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
        Number of candidates that each ballot ranked, if different from its number of places:
        recusal after counting includes the reviewer's own candidate.
    eligible : integer array, shape (R, S), optional
        Number of candidates that each ballot could have ranked; None means C.
    reliability : float array, shape (R, S), optional
        Weights learned from other sessions; only the rule ``weighted_borda`` reads them.
    rounding : float array, shape (S,), optional
        Variance of rounding to the steps of a coarser scale that grades were converted from; NaN
        for grades originally on 1–10.
    ballot_weights : float array, shape (R, S), optional
        The weights that the ballots state; None: the same as `weights`.
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
        """R, the number of ballots per session."""
        return int(self.places.shape[0])

    @property
    def n_candidates(self) -> int:
        """C, the number of candidates."""
        return int(self.places.shape[1])

    @property
    def n_sessions(self) -> int:
        """S, the number of sessions."""
        return int(self.places.shape[2])

    @property
    def ranks(self) -> NDArray[np.float64]:
        """Float ranks, (R, C, S): 1 is best, NaN is no vote."""
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

    @cached_property
    def gradable(self) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Two masks of the sessions that grades can decide, shape (S,).

        The first selects sessions with two or more ballots that grade two or more candidates, not
        all equally; the second those of them in which every ballot that ranks two also grades two.
        """
        graded, grades = self.grade_mask, self.grades
        two = graded.sum(axis=1) >= 2
        if self.weights is not None:
            two &= self.weights > 0
        if grades is None:
            varied = np.zeros(two.shape, dtype=np.bool_)
        else:
            whole = grades.dtype.kind in "iu"
            least, most = (0, np.iinfo(grades.dtype).max) if whole else (-np.inf, np.inf)
            low = np.where(graded, grades, most).min(axis=1, initial=most)
            varied = np.where(graded, grades, least).max(axis=1, initial=least) > low
        enough = (two.sum(axis=0) >= 2) & (two & varied).any(axis=0)
        missing = (self.rank_mask.sum(axis=1) >= 2) & ~two
        return enough, enough & ~missing.any(axis=0)

    def mask_weighed(self, cells: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Drop cells, (R, C, S), of ballots of weight 0."""
        return cells if self.weights is None else cells & (self.weights > 0)[:, np.newaxis]

    def take(self, sessions: slice | NDArray[np.integer[Any]] | NDArray[np.bool_]) -> "Profile":
        """Select sessions; a slice returns views, not copies."""
        rounding = None if self.rounding is None else self.rounding[sessions]
        return self._index((..., sessions), rounding)

    def keep_ballots(self, rows: NDArray[Any] | slice) -> "Profile":
        """Return the profile with only these ballots (rows of the first axis)."""
        return self._index(rows, self.rounding)

    def keep_candidates(self, seats: NDArray[np.integer[Any]]) -> "Profile":
        """Return the profile with only these candidates; gaps in places remain."""
        grades = None if self.grades is None else self.grades[:, seats]
        return replace(self, places=self.places[:, seats], grades=grades)

    def _index(self, index: Any, rounding: Floats | None) -> "Profile":
        # Annotations are quoted so that they are not evaluated for every recount.
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
        """Return the profile with other ballot weights, shape (R, S)."""
        return replace(self, weights=weights, ballot_weights=None)

    def unscale_weights(self) -> "Profile":
        """Return the profile with the weights that the ballots state, unless sums overflow."""
        weights = self.ballot_weights
        if weights is None:
            return self
        most = float(weights.max(initial=0.0)) * self.n_reviewers * self.n_candidates**2
        return self.replace_weights(weights) if most < float("inf") else self

    @property
    def sessions_per_block(self) -> int:
        """Number of sessions that fit the processor's cache."""
        return max(1, BLOCK_CELLS // max(1, self.n_reviewers * self.n_candidates))

    def blocks(self) -> Iterator[tuple[slice, "Profile"]]:
        """Yield cache-sized slices of the session axis, each with its view."""
        step = self.sessions_per_block
        for start in range(0, self.n_sessions, step):
            where = slice(start, min(start + step, self.n_sessions))
            yield where, self.take(where)


def candidates_with_votes(profile: Profile) -> NDArray[np.bool_]:
    """Candidates ranked by any ballot of positive weight, shape (C, S)."""
    has_votes: NDArray[np.bool_]
    has_votes = np.logical_or.reduce(profile.mask_weighed(profile.rank_mask), axis=0)
    return has_votes


@dataclass(frozen=True, slots=True)
class Matchups:
    """Head-to-head counts of one profile.

    Parameters
    ----------
    wins : array, shape (C, C, S)
        ``wins[i, j]`` is the weight of the ballots that rank i strictly above j.
        Integers when every ballot weighs 1, else floats.
    ties : array, shape (C, C, S)
        ``ties[i, j]`` is the weight of the ballots that rank both and place them equal.
    """

    wins: NDArray[Any]
    ties: NDArray[Any]

    @property
    def margins(self) -> NDArray[Any]:
        """Ballots for i over j minus the reverse, shape (C, C, S)."""
        margins: NDArray[Any] = self.wins - self.wins.swapaxes(0, 1)
        if margins.dtype.kind == "f":
            # With weights such as .1 + .2 against .3, a rounding error would make a majority.
            most = np.abs(self.wins).max(axis=(0, 1), initial=0.0)
            margins[np.abs(margins) <= 1e-9 * most] = 0.0
        return margins

    @property
    def comparisons(self) -> NDArray[Any]:
        """Weight of ballots that compare i with j, shape (C, C, S)."""
        met: NDArray[Any] = self.wins + self.wins.swapaxes(0, 1) + self.ties
        return met


def matchups(profile: Profile) -> Matchups:
    """Count every pair of candidates against each other, over all ballots.

    A ballot counts for a pair only if it ranks both. Unweighted counts are whole numbers of the
    smallest sufficient type.
    """
    places, weights = profile.places, profile.weights
    n_reviewers, n_candidates, n_sessions = places.shape
    counted: np.dtype[Any] = np.dtype(np.float64)
    if weights is None:
        counted = np.dtype(np.int8 if n_reviewers < 128 else np.int32)
    # An unranked place, 0, becomes the largest number of its type, below all others.
    last = places - places.dtype.type(1)
    ranked = profile.rank_mask

    # Annotations are quoted so that they are not evaluated for every count.
    def total(votes: "NDArray[np.bool_]") -> "NDArray[Any]":
        if weights is not None:
            weighed: NDArray[Any] = np.einsum("r...s,rs->...s", votes, weights)
            return weighed
        summed: NDArray[Any] = votes.sum(axis=0, dtype=counted)
        return summed

    if places.size * n_candidates <= BLOCK_CELLS:  # few sessions: every pair in one pass
        mine, theirs = last[:, :, np.newaxis], last[:, np.newaxis]
        both = ranked[:, :, np.newaxis] & ranked[:, np.newaxis]
        ties = total((mine == theirs) & both)
        diagonal = np.arange(n_candidates)
        ties[diagonal, diagonal] = 0
        return Matchups(total((mine < theirs) & both), ties)
    wins = np.zeros((n_candidates, n_candidates, n_sessions), dtype=counted)
    ties = np.zeros_like(wins)
    width = max(1, BLOCK_CELLS // max(1, n_reviewers * n_sessions))  # rivals per pass
    for i in range(n_candidates):
        mine, i_ranked = last[:, i, np.newaxis], ranked[:, i, np.newaxis]
        for start in range(i + 1, n_candidates, width):
            rivals = slice(start, start + width)
            theirs, both = last[:, rivals], i_ranked & ranked[:, rivals]
            wins[i, rivals] = total((mine < theirs) & both)
            wins[rivals, i] = total((theirs < mine) & both)
            ties[i, rivals] = ties[rivals, i] = total((mine == theirs) & both)
    return Matchups(wins, ties)


def ranks_to_places(ranks: Floats) -> Places:
    """Convert ranks to places in the smallest sufficient type; 0 for NaN.

    Raises
    ------
    InvalidParameter
        If a rank is not a positive multiple of one half.
    """
    doubled = np.where(np.isnan(ranks), 0.0, ranks * 2.0)
    whole = np.rint(doubled)
    if np.any(np.abs(doubled - whole) > 1e-9) or np.any(whole < 0):
        raise InvalidParameter(
            "ranks", "a rank that is not a multiple of 1/2", "1, 1.5, 2, … or NaN"
        )
    largest = float(whole.max(initial=0.0))
    places: Places = whole.astype(np.uint8 if largest < 256 else np.uint16)
    return places


Note = tuple[str, float | None, float, bool, Groups]
"""Reviewer, τ, weight, mismatch and ranking of one vote."""


@dataclass(frozen=True, slots=True)
class Vote:
    """One counted ballot, as a row of the profile.

    Parameters
    ----------
    places
        Twice the rank per candidate in seat order; 0: no vote.
    grades
        Overall grade per candidate; NaN: none.
    length, eligible
        Number of candidates ranked, and of those that could have been, as in `Profile`.
    mismatch
        Whether its ranking and its grades strictly contradict each other on some pair.
    paired
        Whether it is a comparison of two candidates.
    omitted
        Seats on its sheet without a grade; `grades` has the lowest grade for them.
    """

    reviewer: str
    groups: Groups
    places: tuple[int, ...]
    grades: tuple[float, ...]
    weight: float
    length: int
    eligible: int
    mismatch: bool
    paired: bool
    kind: str
    omitted: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class VoteBlock:
    """The votes of same-shaped sessions with grades only; each weighs 1.

    Parameters
    ----------
    candidates
        Candidates of each session, in seat order.
    reviewers, kinds
        Reviewer and kind of each vote, per session.
    places : int array, shape (S, R, C)
        Twice the rank; 0: no vote.
    grades : float array, shape (S, R, C)
        From 1 to 10; NaN: none.
    eligible : int array, shape (S, R)
        Candidates that could have been ranked.
    """

    candidates: Sequence[tuple[str, ...]]
    reviewers: Sequence[tuple[str, ...]]
    kinds: Sequence[tuple[Kind, ...]]
    places: NDArray[Any]
    grades: Floats
    eligible: NDArray[Any]
    rankings: dict[tuple[str, ...], dict[tuple[int, ...], Groups]] = field(default_factory=dict)
    """Cache of groups by candidates and places, because many ballots rank alike."""

    def groups(self, session: int) -> list[Groups]:
        """Return the rankings of a session's votes, best first."""
        names = self.candidates[session]
        known = self.rankings.setdefault(names, {})
        return [
            known.get(places) or self._rank(names, places, known)
            for places in map(tuple, self.places[session].tolist())
        ]

    def notes(self, session: int, taus: Iterable[float | None]) -> Iterator[Note]:
        """Yield the fields of `BallotNote` of a session's votes."""
        names = self.reviewers[session]
        return zip(names, taus, repeat(1.0), repeat(False), self.groups(session))

    @staticmethod
    def _rank(
        names: tuple[str, ...], places: tuple[int, ...], known: dict[tuple[int, ...], Groups]
    ) -> Groups:
        levels: dict[int, list[str]] = {}
        for name, place in zip(names, places, strict=True):
            if place:
                levels.setdefault(place, []).append(name)
        groups = tuple(tuple(levels[place]) for place in sorted(levels))
        known[places] = groups
        return groups

    def votes(self, session: int) -> Iterator[Vote]:
        """Yield the votes of a session as rows."""
        for reviewer, kind, groups, places, grades, eligible in zip(
            self.reviewers[session],
            self.kinds[session],
            self.groups(session),
            self.places[session].tolist(),
            self.grades[session].tolist(),
            self.eligible[session].tolist(),
            strict=True,
        ):
            yield Vote(
                reviewer=reviewer,
                groups=groups,
                places=tuple(places),
                grades=tuple(grades),
                weight=1.0,
                length=len(places) - places.count(0),
                eligible=eligible,
                mismatch=False,
                paired=False,
                kind=kind,
            )


class LazyRows(Sequence[Row]):
    """Rows of one session of a block, built on first use."""

    __slots__ = ("_rows",)

    def __init__(self) -> None:
        self._rows: tuple[Row, ...] | None = None

    @abstractmethod
    def make_rows(self) -> Iterable[Row]:
        """Build all rows."""

    def _all(self) -> tuple[Row, ...]:
        if self._rows is None:
            self._rows = tuple(self.make_rows())
        return self._rows

    def __iter__(self) -> Iterator[Row]:
        return iter(self._all())

    @overload
    def __getitem__(self, index: int) -> Row: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Row, ...]: ...
    def __getitem__(self, index: int | slice) -> Row | tuple[Row, ...]:
        return self._all()[index]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and self._all() == tuple(other)

    def __hash__(self) -> int:
        return hash(self._all())

    def __repr__(self) -> str:
        return repr(self._all())


class BlockVotes(LazyRows[Vote]):
    """The votes of one session of a block."""

    __slots__ = ("block", "session")

    def __init__(self, block: VoteBlock, session: int) -> None:
        super().__init__()
        self.block, self.session = block, session

    def make_rows(self) -> Iterator[Vote]:
        """Build the votes of the session."""
        return self.block.votes(self.session)

    def __len__(self) -> int:
        return len(self.block.reviewers[self.session])


@dataclass(frozen=True, slots=True)
class Electorate:
    """The votes of one session, and the seats without one.

    Parameters
    ----------
    candidates
        Candidates in seat order: as in the declared roster, or by name without one.
    offered
        Per candidate, the number of seats that could have voted for it, abstentions included.
    abstentions
        Reason by reviewer.
    order_kept
        By reviewer that saw pairs in both orders: pairs judged alike, and pairs seen in both.
    at
        When its first ballot was cast; None: unknown.
    scales
        Scales of grades that are not certainly on 1–10.
    stands_for
        Per candidate, the seat that was judged in its place, because both have the same answer and
        share a place on every sheet. Empty: no copies.
    """

    session: str
    candidates: tuple[str, ...]
    votes: Sequence[Vote]
    offered: tuple[int, ...]
    abstentions: Mapping[str, str]
    order_kept: Mapping[str, tuple[int, int]]
    failed: Mapping[str, tuple[str, ...]]
    warnings: tuple[str, ...]
    at: datetime | None = None
    scales: tuple[Scale, ...] = ()
    stands_for: tuple[int, ...] = ()

    @property
    def reviewers(self) -> tuple[str, ...]:
        """Reviewers with a counted ballot, each once, in ballot order."""
        return tuple(dict.fromkeys(self.voters))

    @property
    def voters(self) -> Sequence[str]:
        """The reviewer of each vote."""
        if isinstance(self.votes, BlockVotes):
            return self.votes.block.reviewers[self.votes.session]
        return [vote.reviewer for vote in self.votes]

    @property
    def kinds(self) -> Sequence[str]:
        """The kind of each vote: model or human."""
        if isinstance(self.votes, BlockVotes):
            return self.votes.block.kinds[self.votes.session]
        return [vote.kind for vote in self.votes]

    @property
    def weights(self) -> Sequence[float]:
        """The weight of each vote."""
        if isinstance(self.votes, BlockVotes):
            return (1.0,) * len(self.votes)
        return [vote.weight for vote in self.votes]

    @property
    def mismatches(self) -> Sequence[bool]:
        """Each vote's flag for a contradiction between its ranking and its grades."""
        if isinstance(self.votes, BlockVotes):
            return (False,) * len(self.votes)
        return [vote.mismatch for vote in self.votes]

    def notes(self, taus: Iterable[float | None]) -> list[Note]:
        """Return the fields of `BallotNote` of each vote, given its τ."""
        if isinstance(self.votes, BlockVotes):
            return list(self.votes.block.notes(self.votes.session, taus))
        return [
            (vote.reviewer, tau, vote.weight, vote.mismatch, vote.groups)
            for vote, tau in zip(self.votes, taus, strict=True)
        ]

    @property
    def is_paired(self) -> bool:
        """True if any vote is a comparison of two candidates."""
        return not isinstance(self.votes, BlockVotes) and any(vote.paired for vote in self.votes)

    def scale_weights(self, weights: Mapping[str, float]) -> "Electorate":
        """Multiply votes' weights by reviewer; a weight of 0 becomes an abstention."""
        if not weights:
            return self
        weighed = [
            replace(vote, weight=vote.weight * weights.get(vote.reviewer, 1.0))
            for vote in self.votes
        ]
        silent = {vote.reviewer: "weighs nothing" for vote in weighed if vote.weight == 0}
        return replace(
            self,
            votes=tuple(vote for vote in weighed if vote.weight > 0),
            abstentions={**self.abstentions, **silent},
        )
