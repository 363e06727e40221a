"""What a leaderboard is asked for, and what it says: plain values, None where nothing is known."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from typing import Literal

from witan.core.ballot import Kind
from witan.core.display import Displayed, quoted
from witan.core.level import check_level
from witan.core.outcome import Confidence, Interval
from witan.core.window import ALWAYS, Window
from witan.errors import InvalidParameter

__all__ = ["Change", "Effort", "Leaderboard", "LeaderboardLine", "OrderBy", "Terms"]

OrderBy = Literal["score", "rating", "elo"]

ORDERS: tuple[OrderBy, ...] = ("score", "rating", "elo")


@dataclass(frozen=True, slots=True)
class Terms:
    """What a leaderboard is asked for.

    Parameters
    ----------
    rule
        Whose per-session scores are averaged.
    kind
        Whose ballots: those of models or of people.
    window
        Which sessions; it says what the sums were made of and selects nothing by itself.
    order_by
        ``score``, the mean over sessions; ``rating``, the Bradley–Terry strength; ``elo``.
    min_sessions
        Models with fewer scored sessions are listed apart.
    level
        Of all intervals and comparisons.
    ghost_wins
        The prior of the ratings: wins, and as many losses, of every model against one ghost.

    Raises
    ------
    InvalidParameter
        If an option is outside what it accepts.
    """

    rule: str = "borda"
    kind: Kind = "model"
    window: Window = ALWAYS
    order_by: OrderBy = "score"
    min_sessions: int = 10
    level: float = 0.95
    ghost_wins: float = 0.5

    def __post_init__(self) -> None:
        if self.order_by not in ORDERS:
            raise InvalidParameter("order_by", self.order_by, "'score', 'rating' or 'elo'")
        if self.kind not in ("model", "human"):
            raise InvalidParameter("kind", self.kind, "'model' or 'human'")
        if isinstance(self.min_sessions, bool) or self.min_sessions < 1:
            raise InvalidParameter("min_sessions", self.min_sessions, "a number from 1 up")
        check_level(self.level)


@dataclass(frozen=True, slots=True)
class Change:
    """A model now against the window before.

    Parameters
    ----------
    score
        Its mean score now less the one before.
    rank
        Ranks gained; negative: lost. None: without a rank in either window.
    beyond_error
        The change of score is larger than noise explains; None: an error is unknown.
    """

    score: float
    rank: int | None
    beyond_error: bool | None


@dataclass(frozen=True, slots=True)
class Effort:
    """What a model's answers took.

    Parameters
    ----------
    answers, failure_rate
        Answers asked for, and the share of them that never came; None: none was asked for.
    cost_usd, costed
        Mean cost of an answer, and over how many whose cost is known. None: of none.
    seconds, timed
        Mean time of an answer, likewise.
    """

    answers: int = 0
    failure_rate: float | None = None
    cost_usd: float | None = None
    costed: int = 0
    seconds: float | None = None
    timed: int = 0


@dataclass(frozen=True, slots=True)
class LeaderboardLine:
    """One model. None is what cannot be said.

    Parameters
    ----------
    model
        Its present name.
    rank
        1 is best, among the lines of its group that are not provisional; dead heats share it
        (1, 2, 2, 4).
    rank_low, rank_high
        The best and the worst rank it may have: 1 + lines above it beyond noise, and lines of its
        group less those below it beyond noise, in the number that orders. Elo states no noise.
    tied_with_next
        The difference to the line below cannot be told from noise; the last of a group has none.
    provisional
        Listed apart and without a rank: fewer scored sessions than asked for, nothing to order
        it by, or nobody it was compared with.
    group
        Number, from 1, of the models that chains of comparisons join it with; only these can be
        compared. None: no ballot compares it, or no ballot any two.
    score, std_error, interval
        Mean over sessions of the session's score; its error clustered by session.
    sessions, appearances
        Sessions that gave it a score, and all in which it stood.
    votes, offered, wins
        Ballots that said something of it, seats that could have, and first places, k tied for
        first 1/k each.
    coverage, confidence
        votes / offered, and high from 0.8 on, medium from 0.5 on, else low; one session is low.
    z
        Mean over sessions of its mean standardised grade.
    rating, rating_error, rating_interval
        Bradley–Terry strength in logits, its error clustered by groups of sessions.
    elo
        After the last session.
    change
        Against the window before; None: not in it.
    """

    model: str
    rank: int | None
    rank_low: int | None
    rank_high: int | None
    tied_with_next: bool | None
    provisional: bool
    group: int | None
    score: float | None
    std_error: float | None
    interval: Interval | None
    sessions: int
    appearances: int
    votes: int
    offered: int
    wins: float
    coverage: float | None
    confidence: Confidence
    z: float | None
    rating: float | None
    rating_error: float | None
    rating_interval: Interval | None
    elo: float | None
    change: Change | None
    effort: Effort


@dataclass(frozen=True, slots=True)
class Leaderboard(Displayed):
    """Models across the sessions of a window.

    Parameters
    ----------
    lines
        Group by group, the one with the most ranks first; best first in each, equal ones in
        alphabetical order.
    provisional
        Models listed apart, likewise.
    contenders
        Models below the first rank of their group that are too close to call against it: somebody
        who has it is not above them beyond noise. Where one has it alone, its worst rank is one
        more than these.
    p_beats
        Confidence that the model of row i is stronger than that of row j, by the ratings; rows
        are `lines`, then `provisional`. None: no chain of comparisons joins them, or no error.
    n_comparisons
        Weight of the comparisons behind the ratings.
    compared_to
        The window that changes refer to.
    warnings
        What the reader must know.
    interpretation
        What can be said of it, and no more, in a sentence.
    """

    terms: Terms
    lines: tuple[LeaderboardLine, ...]
    provisional: tuple[LeaderboardLine, ...]
    contenders: tuple[str, ...]
    p_beats: tuple[tuple[float | None, ...], ...]
    n_comparisons: float
    compared_to: Window | None
    warnings: tuple[str, ...]
    interpretation: str = ""

    def __repr__(self) -> str:
        lead = quoted(line.model for line in self.lines)
        few = f", {len(self.provisional)} provisional" if self.provisional else ""
        return f"<Leaderboard by {self.terms.rule}: {lead or 'nobody yet'}{few}>"

    @property
    def groups(self) -> tuple[tuple[LeaderboardLine, ...], ...]:
        """The lines with a rank, by groups of models that never met."""
        return tuple(tuple(held) for _, held in groupby(self.lines, key=attrgetter("group")))

    @property
    def by_model(self) -> Mapping[str, LeaderboardLine]:
        """Every line by its model, provisional ones included."""
        return {line.model: line for line in (*self.lines, *self.provisional)}
