"""The leaderboard: its sessions, models in order, and summary."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import groupby
from operator import attrgetter
from typing import Any, Literal

from witan.core.ballot import Kind
from witan.core.display import FrameSource, NotebookDisplay, level_percent, list_names
from witan.core.outcome import Confidence, Interval, check_level, join_names
from witan.errors import InvalidParameter

EARLIEST_US, LATEST_US = -(2**62), 2**62
"""Open ends, in microseconds since 1970: outside all possible times, and within 64 bits."""

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

OrderBy = Literal["score", "rating", "elo"]

ORDERS: tuple[OrderBy, ...] = ("score", "rating", "elo")

NUMBERS = {"score": "mean score", "rating": "rating", "elo": "Elo rating"}

MOST = 3
"""More names than this are counted instead of listed."""


@dataclass(frozen=True, slots=True)
class Window:
    """Sessions asked from `since` on and before `until`, of one category.

    Parameters
    ----------
    since, until : datetime, optional
        With a time zone. None: open.
    category : str, optional
        None: all sessions, including those without a category.

    Raises
    ------
    InvalidParameter
        If a value is not a time or has no time zone, or `since` is not before `until`.
    """

    since: datetime | None = None
    until: datetime | None = None
    category: str | None = None

    def __post_init__(self) -> None:
        for name in ("since", "until"):
            time: object = getattr(self, name)
            if time is None or (isinstance(time, datetime) and time.utcoffset() is not None):
                continue
            value = time.isoformat() if isinstance(time, datetime) else time
            raise InvalidParameter(name, value, "a time with its zone, such as UTC")
        if self.since is not None and self.until is not None and not self.since < self.until:
            raise InvalidParameter(
                "since", self.since.isoformat(), f"a time before `until`, {self.until.isoformat()}"
            )

    @property
    def since_us(self) -> int:
        """The first microsecond inside, since 1970 in UTC."""
        return EARLIEST_US if self.since is None else _microseconds(self.since)

    @property
    def until_us(self) -> int:
        """The first microsecond past the end, since 1970 in UTC."""
        return LATEST_US if self.until is None else _microseconds(self.until)

    def previous(self) -> "Window | None":
        """The preceding window of equal length; None with an open end.

        It does not begin before the earliest possible time.
        """
        if self.since is None or self.until is None:
            return None
        since = self.since.astimezone(UTC)
        length = self.until - since
        room = since - datetime.min.replace(tzinfo=UTC)
        if not room:
            return None
        return Window(since - min(length, room), since, self.category)

    def __str__(self) -> str:
        """Describe the window for a sentence: ``from … in the category 'coding'``."""
        until = "before" if self.since is None else "until"
        parts = [
            f"{word} {time.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
            for word, time in (("from", self.since), (until, self.until))
            if time is not None
        ]
        if self.category is not None:
            parts.append(f"in the category {self.category!r}")
        return " ".join(parts) if parts else "since the first session"


ALWAYS = Window()
"""Every session."""


def _microseconds(time: datetime) -> int:
    return (time - EPOCH) // timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class Terms:
    """Parameters of a leaderboard.

    Parameters
    ----------
    rule
        Rule of the averaged scores.
    kind
        Whose ballots.
    window
        Which sessions.
    order_by
        ``score``, the mean over sessions; ``rating``, the Bradley–Terry strength; ``elo``.
    min_sessions
        Models with fewer scored sessions are unranked.
    level
        Level of intervals and comparisons.
    ghost_wins
        Prior of the ratings: wins, and as many losses, of every model against one ghost.

    Raises
    ------
    InvalidParameter
        If an option does not accept its value.
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
        if type(self.min_sessions) is not int or self.min_sessions < 1:
            raise InvalidParameter("min_sessions", self.min_sessions, "a whole number from 1 up")
        check_level(self.level)

    @property
    def too_few(self) -> str:
        """Reason for no rank, in words: ``fewer than 10 scored sessions``."""
        return f"fewer than {self.min_sessions:,} scored session{'s' * (self.min_sessions != 1)}"

    def during(self, window: Window) -> "Terms":
        """The same terms for the sessions of another window."""
        return replace(self, window=window)

    def for_scores(self, window: Window) -> "Terms":
        """The terms for mean scores in part of the window, without a minimum of sessions."""
        return replace(self.during(window), order_by="score", min_sessions=1)


@dataclass(frozen=True, slots=True)
class Change:
    """A model compared with the previous window.

    Parameters
    ----------
    score
        Mean score now minus that before.
    rank
        Ranks gained, negative if lost; None: unranked in either window.
    beyond_error
        Whether the score changed by more than noise; None: an error is unknown.
    """

    score: float
    rank: int | None
    beyond_error: bool | None


@dataclass(frozen=True, slots=True)
class Effort:
    """Cost and time of a model's answers.

    Parameters
    ----------
    answers, failure_rate
        Requested answers, and the share that failed; None: none requested.
    cost_usd, costed
        Mean cost of an answer, and the number of answers with a known cost.
    seconds, timed
        Mean time of an answer, and the number of answers with a known time.
    """

    answers: int = 0
    failure_rate: float | None = None
    cost_usd: float | None = None
    costed: int = 0
    seconds: float | None = None
    timed: int = 0


@dataclass(frozen=True, slots=True)
class LeaderboardLine:
    """One model; None means unknown.

    Parameters
    ----------
    model
        Its current name.
    rank
        1 is best in its group; dead heats share it (1, 2, 2, 4).
    rank_low, rank_high
        Best and worst rank within noise, by the number that orders models; unknown with Elo.
    tied_with_next
        Whether it is too close to call against the line below.
    provisional
        Unranked: too few scored sessions, no number to order by, or never compared.
    group
        Number, from 1, of its group of models joined by chains of comparisons.
    score, std_error, interval
        Mean over sessions of its score there; error clustered by session.
    sessions, appearances
        Sessions that scored it, and all sessions with it as a candidate.
    votes, offered, wins
        Ballots that rank or grade it, seats that could have, and first places, k tied for first 1/k
        each.
    coverage, confidence
        votes / offered; high from 0.8, medium from 0.5, otherwise low; one session is low.
    z
        Mean over sessions of its mean standardised grade.
    rating, rating_error, rating_interval
        Bradley–Terry strength in logits; error clustered by groups of sessions.
    elo
        Elo rating after the last session.
    change
        Change from the previous window; None: not in it.
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
class Leaderboard(NotebookDisplay, FrameSource):
    """Models across the sessions of a window.

    Parameters
    ----------
    lines
        Ranked models by group, best first.
    provisional
        Models without a rank.
    contenders
        Models too close to call against the first of their group.
    p_beats
        Confidence that row i is stronger than row j, by the ratings; rows: `lines`, then
        `provisional`.
    n_comparisons
        Weight of the comparisons behind the ratings.
    compared_to
        The previous window, for changes.
    warnings
        A sentence each.
    interpretation
        The leaderboard in one sentence.
    group_interpretations
        A sentence on each group, where there are several.
    n_damaged
        Damaged sessions that could not be counted under the rule.
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
    group_interpretations: tuple[str, ...] = ()
    n_damaged: int = 0

    def __repr__(self) -> str:
        lead = list_names(line.model for line in self.lines)
        few = f", {len(self.provisional)} provisional" if self.provisional else ""
        return f"<Leaderboard by {self.terms.rule}: {lead or 'nobody yet'}{few}>"

    def rows(self) -> Iterator[Mapping[str, Any]]:
        """Yield models as data frame rows, best first, provisional ones last."""
        for line in (*self.lines, *self.provisional):
            yield {"": line}

    @property
    def groups(self) -> tuple[tuple[LeaderboardLine, ...], ...]:
        """Ranked lines by groups of connected models."""
        return tuple(tuple(group) for _, group in groupby(self.lines, key=attrgetter("group")))

    @property
    def by_model(self) -> Mapping[str, LeaderboardLine]:
        """Every line by its model, provisional ones included."""
        return {line.model: line for line in (*self.lines, *self.provisional)}


def describe_board(board: Leaderboard) -> str:
    """Name the leader, and count models too close to call against it.

    If models form groups that never met, only the largest group is described.
    """
    groups = board.groups
    if not groups:
        few = board.terms.too_few
        return f"No model has a rank: each has {few}, or no number to order it by."
    if len(groups) == 1:
        sentence = _describe_leaders(board, groups[0])
    else:
        first = [line.model for line in max(groups, key=len) if line.rank == 1]
        verb = "lead" if len(first) > 1 else "leads"
        sentence = (
            f"{len(groups)} groups of models never met; {_join_models(first)} {verb} the largest"
        )
    if board.terms.order_by == "elo" and len(board.lines) > 1:
        return f"{sentence}; Elo states no noise, so whether that is chance is unknown."
    return f"{sentence}."


def describe_groups(board: Leaderboard) -> tuple[str, ...]:
    """Name the leader of each group of models that never met; nothing for a single group."""
    groups = board.groups if len(board.groups) > 1 else ()
    return tuple(f"Group {lines[0].group}: {_describe_leaders(board, lines)}." for lines in groups)


def _describe_leaders(board: Leaderboard, lines: tuple[LeaderboardLine, ...]) -> str:
    first = [line.model for line in lines if line.rank == 1]
    if len(lines) == 1:
        return f"{first[0]} is the only model with a rank"
    number = NUMBERS[board.terms.order_by]
    lead = f"{_join_models(first)} {'share' if len(first) > 1 else 'has'} the best {number}"
    if board.terms.order_by == "elo":
        return lead
    return f"{lead}, {_describe_certainty(board, lines, level_percent(board.terms.level))}"


def _describe_certainty(board: Leaderboard, lines: tuple[LeaderboardLine, ...], level: str) -> str:
    shared = sum(line.rank == 1 for line in lines) > 1
    if all(line.rank_low == 1 and line.rank_high == len(lines) for line in lines):
        return f"but all models are too close to call at {level}"
    contender_names = {*board.contenders}
    if contenders := [line.model for line in lines if line.model in contender_names]:
        others = contenders[0] if len(contenders) == 1 else f"{len(contenders)} others"
        return f"but too close to call against {others} at {level}"
    if shared:
        return f"and are too close to call at {level}"
    return f"above every other model beyond noise ({level})"


def _join_models(models: Sequence[str]) -> str:
    names = [*models]
    if len(names) > MOST:
        names = [*names[: MOST - 1], f"{len(names) - MOST + 1} more"]
    return join_names(names)
