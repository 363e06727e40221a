"""Outcomes of one session under one rule: standings, intervals, tiers, sentences."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import combinations
from typing import TYPE_CHECKING, Any, Literal, Self

from witan.core.bounds import Amount, Count, Ordinal, PossiblyInfinite, Result, Share
from witan.core.display import FrameSource, NotebookDisplay, brief, list_names, list_some
from witan.core.scale import Scale
from witan.errors import InvalidParameter

LEAST = 1e-9
"""Minimum distance of a level from 0 and 1; it keeps quantiles finite and intervals non-empty."""

MOST_NAMED = 8
"""Maximum number of names listed in a sentence; the rest are counted."""

MIN_VOTES = 2
"""Minimum number of votes to separate a candidate: one vote gives no estimate of chance.
Candidates with fewer rank last if at least two have enough."""

Confidence = Literal["high", "medium", "low"]
TiesRule = Literal["contrast", "intervals"]
Unit = Literal["grades", "ranks"]


def check_level(level: float) -> None:
    """Reject an interval's level outside (0, 1).

    Raises
    ------
    InvalidParameter
        If it is not between 0 and 1, or within 10⁻⁹ of either.
    """
    if not 0 < level < 1:
        raise InvalidParameter("level", level, "a number between 0 and 1")
    if not LEAST <= level <= 1 - LEAST:
        raise InvalidParameter("level", level, "a number from 0.000000001 to 0.999999999")


@dataclass(frozen=True, slots=True)
class Interval:
    """A range around the true value at a stated level.

    Parameters
    ----------
    low, high
        Its ends.
    level
        How often such a range contains the true value, in (0, 1).
    """

    low: PossiblyInfinite
    high: PossiblyInfinite
    level: float


@dataclass(frozen=True, slots=True)
class Prior:
    """Prior knowledge of reviewers' noise and the spread of candidates.

    Parameters
    ----------
    noise_variance, noise_df
        s₀² and d₀ of the moderated variance (d₀·s₀² + d·s²)/(d₀ + d).
    quality_variance
        Variance of candidate effects within a session, in the same unit squared.
    unit
        Whether it was learned from grades or ranks.
    n_sessions, n_imported
        Number of sessions it was learned from, and how many of them were imported.
    source
        Whether it was learned from sessions or from published judges.
    """

    noise_variance: float
    noise_df: PossiblyInfinite
    quality_variance: float | None
    unit: Unit
    n_sessions: int
    n_imported: int = 0
    source: Literal["history", "public"] = "history"


class Deferrable:
    """A frozen dataclass whose unknown fields are built on first read."""

    __slots__ = ("_build",)

    @classmethod
    def defer(cls, build: Callable[[], Self], **known: Any) -> Self:
        """Create an instance from known fields; `build` returns one with all fields."""
        deferred = object.__new__(cls)
        object.__setattr__(deferred, "_build", build)
        for name, value in known.items():
            object.__setattr__(deferred, name, value)
        return deferred

    if not TYPE_CHECKING:  # so that type checkers find misspelt attributes

        def __getattr__(self, name: str) -> Any:
            """Build the missing fields; Python calls this only for an empty slot."""
            if name not in self.__dataclass_fields__:
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            build = object.__getattribute__(self, "_build")
            if build is not None:  # None if another thread was faster
                try:
                    whole = build()
                except AttributeError as error:  # must not look like a missing field
                    raise RuntimeError(f"could not build {name}: {error}") from error
                for each in self.__dataclass_fields__:
                    object.__setattr__(self, each, getattr(whole, each))
                object.__setattr__(self, "_build", None)
            return object.__getattribute__(self, name)


@dataclass(frozen=True, slots=True)
class Standing(Deferrable):
    """One line of an outcome.

    Parameters
    ----------
    candidate
        Its name.
    mean_grade
        Its mean grade; None: nobody graded it.
    details
        Numbers specific to the rule.
    rank
        1 is best; equal lines share a rank (1, 2, 2, 4).
    score
        The rule's score; None: no score.
    std_error, interval
        Standard error and interval of the score; None: unknown.
    votes
        Counted ballots that rank or grade it.
    wins
        First places before a rival; k candidates tied for first get 1/k each.
    coverage
        Of the seats that could have voted for it, the share that did.
    confidence
        The coverage in words.
    tied_with_next
        Whether it is too close to call against the line below.
    p_best
        Probability that another draw of such reviewers would place it best; None: unknown.
    effect
        Candidate effect of the additive fit, from which p_best and ties are computed.
    tier
        Its tier; 1 is the best.
    band
        Its mean grade in words; None: nobody graded it.
    failed
        Its flags from the safety gate.
    """

    candidate: str
    rank: Ordinal
    score: Result | None
    std_error: PossiblyInfinite | None
    interval: Interval | None
    votes: Count
    wins: Amount
    coverage: Share
    confidence: Confidence
    tied_with_next: bool
    p_best: Share | None
    effect: Result | None
    tier: int
    mean_grade: float | None
    band: str | None
    failed: tuple[str, ...] = ()
    details: Mapping[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        score = "no score" if self.score is None else f"score {self.score:.4g}"
        best = "" if self.p_best is None else f", p_best {self.p_best:.2f}"
        votes = f"{self.votes} vote{'' if self.votes == 1 else 's'}"
        return f"<Standing of {brief(self.candidate)}: rank {self.rank}, {score}{best}, {votes}>"


@dataclass(frozen=True, slots=True)
class BallotNote(Deferrable):
    """Comparison of one counted ballot with the outcome.

    Parameters
    ----------
    reviewer
        Who cast it.
    weight
        Its weight; 1 by default.
    ranking
        Its groups as counted, best first.
    tau
        Kendall's τ-b between the ballot and the outcome's ranking; None if either is all ties.
    mismatch
        Whether its ranking and grades contradict each other on some pair.
    """

    reviewer: str
    tau: float | None
    weight: float
    mismatch: bool
    ranking: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Outcome(Deferrable, NotebookDisplay, FrameSource):
    """Standings under one rule, with intervals, ties and warnings.

    Parameters
    ----------
    session
        Its name.
    rule
        The rule that counted it.
    parameters
        The rule's parameters.
    ties
        How lines were separated.
    level
        Level of the intervals.
    prior
        Prior used for noise and spread; None: none.
    recusal
        When a reviewer's own candidate was removed from its ballot.
    unranked
        How candidates missing from a ballot were counted.
    warnings
        Changes made and doubts, one sentence each.
    why
        Why this rule was used, in one sentence.
    interpretation
        Summary of the standings in one sentence.
    standings
        Best first.
    p_beats
        ``p_beats[i][j]``: probability that another draw of such reviewers would place line i above
        line j.
    unresolved
        Pairs of candidates too close to call.
    disputed_by
        Candidates that the fit places above the first line, beyond noise.
    condorcet_winner
        The candidate that beats every rival head to head; None: there is none.
    cycles
        Groups of candidates in a majority cycle.
    kendall_w
        Concordance of the ballots (Kendall's W), 0 to 1; None: fewer than two ballots.
    n_ballots
        Ballots with an effect on the scores; in pair files, opinions on one pair.
    n_abstentions
        Seats without a ballot.
    without_effect
        Reviewers whose ballots the rule ignores, such as rankings under a rule for grades, or one
        candidate beside longer ballots under a rule that compares; a warning names them, too.
    effective_votes
        Equivalent number of independent reviewers; None: nothing is fitted.
    rho
        The shared error assumed for it; None: none.
    rho_is_assumed
        Whether rho is the public default.
    ballots_to_flip
        Minimum number of ballots whose removal or reversal ends the lead; None: no leader, or not
        searched.
    flip_is_exact
        Whether that number is exact; False: fewer ballots may end the lead too.
    tie_broken_by
        The tie-break that separated equal scores; None: none was needed.
    fit
        Whether uncertainty was fitted on grades or ranks; None: no fit.
    df
        Residual degrees of freedom of the fit, the prior's included.
    ballots, abstentions
        A note per counted ballot; reason for each missing ballot by reviewer.
    order_kept
        By reviewer, pairs judged alike in both orders and all pairs judged in both orders.
    margins
        ``margins[i][j]``: weight of the ballots that place line i above line j, minus the reverse.
    fell_back_to
        Rule whose scores are shown because the chosen one had none.
    scales
        Scales of grades that are not certainly on 1–10; these grades were converted to 1–10.
    details
        Rule-specific numbers of the session. ``people`` is the number of people among the
        reviewers; ``unnamed_votes`` the number of comparisons by unnamed people.
    """

    session: str
    rule: str
    parameters: Mapping[str, object]
    why: str
    interpretation: str
    standings: tuple[Standing, ...]
    p_beats: tuple[tuple[Share | None, ...], ...]
    unresolved: tuple[tuple[str, str], ...]
    disputed_by: tuple[str, ...]
    condorcet_winner: str | None
    cycles: tuple[tuple[str, ...], ...]
    kendall_w: float | None
    n_ballots: Count
    n_abstentions: Count
    effective_votes: float | None
    rho: float | None
    ballots_to_flip: int | None
    flip_is_exact: bool | None
    tie_broken_by: str | None
    ties: TiesRule
    level: float
    fit: Unit | None
    df: PossiblyInfinite | None
    prior: Prior | None
    recusal: str
    unranked: str
    ballots: tuple[BallotNote, ...]
    abstentions: Mapping[str, str]
    order_kept: Mapping[str, tuple[int, int]]
    margins: tuple[tuple[PossiblyInfinite, ...], ...]
    fell_back_to: str | None
    details: Mapping[str, Any]
    warnings: tuple[str, ...]
    without_effect: tuple[str, ...] = ()
    rho_is_assumed: bool = False
    scales: tuple[Scale, ...] = ()

    def __repr__(self) -> str:
        of = f" {brief(self.session)}" if self.session else ""
        lead = list_names(self.leaders, " = ")
        leads = f"{lead} {'lead' if len(self.leaders) > 1 else 'leads'}" if lead else "nobody leads"
        counts = f"{len(self.standings)} candidates, {self.n_ballots} ballots"
        return f"<Outcome{of} by {self.rule}: {leads}; {counts}>"

    @property
    def leaders(self) -> tuple[str, ...]:
        """Candidates on the first rank; empty without votes."""
        return tuple(s.candidate for s in self.standings if s.rank == 1 and s.votes > 0)

    @property
    def can_be_won(self) -> bool:
        """True if a candidate with votes passed the safety gate."""
        return any(line.votes > 0 and not line.failed for line in self.standings)

    @property
    def ranking(self) -> tuple[tuple[str, ...], ...]:
        """Candidates with votes as groups of equal rank, best first."""
        placed = [line for line in self.standings if line.votes > 0]
        ranks = dict.fromkeys(line.rank for line in placed)
        return tuple(tuple(s.candidate for s in placed if s.rank == rank) for rank in ranks)

    @property
    def clear_leader(self) -> str | None:
        """The candidate above all others with enough votes, beyond noise; else None."""
        # Check first what a deferred outcome knows without being built.
        rivals = sum(line.votes >= MIN_VOTES for line in self.standings) > 1
        tied = self.tied_for_best if rivals else ()
        if len(tied) != 1 or self.disputed_by or self.tie_broken_by == "seat order":
            return None
        return tied[0]

    @property
    def tied_for_best(self) -> tuple[str, ...]:
        """Leaders, and candidates with enough votes too close to call against them."""
        return _tied_for_best(self.standings, self.unresolved)

    def rows(self) -> Iterator[Mapping[str, Any]]:
        """Yield the standings, best first, as rows of a data frame."""
        for line in self.standings:
            own = replace(line, details={})
            yield {"session": self.session, "rule": self.rule, **line.details, "": own}

    def __getitem__(self, candidate: str) -> Standing:
        for standing in self.standings:
            if standing.candidate == candidate:
                return standing
        raise KeyError(candidate)


class Deferral:
    """A function that builds a deferred outcome once.

    Parameters
    ----------
    outcomes, column
        Its batch, and its column in the batch.
    """

    __slots__ = ("_outcome", "column", "outcomes")

    def __init__(self, outcomes: Any, column: int) -> None:
        self.outcomes, self.column = outcomes, column
        self._outcome: Outcome | None = None

    def __call__(self) -> Outcome:
        """Build the outcome, or return the one built before."""
        if self._outcome is None:
            self._outcome = self.outcomes[self.column]
        outcome: Outcome = self._outcome
        return outcome

    def standing(self, at: int) -> Standing:
        """Return a line of the outcome."""
        return self().standings[at]

    def note(self, at: int) -> BallotNote:
        """Return the note of a ballot."""
        return self().ballots[at]

    @classmethod
    def of(cls, outcome: Outcome) -> "Deferral | None":
        """Return the deferral of an outcome; None once it is built."""
        build = getattr(outcome, "_build", None)
        return build if isinstance(build, cls) else None


@dataclass(frozen=True, slots=True)
class Leads:
    """Leaders under one rule, and how often each leads.

    Parameters
    ----------
    sessions
        Sessions that the rule counted.
    clear, shared
        Sessions with a clear leader, and sessions with a shared lead.
    times
        Number of sessions that each candidate leads, alone or not; most frequent first.
    """

    sessions: int
    clear: int
    shared: int
    times: Mapping[str, int]


def join_names(names: Sequence[str]) -> str:
    """``a``; ``a and b``; ``a, b and c``."""
    if len(names) < 2:
        return "".join(names)
    return f"{', '.join(names[:-1])} and {names[-1]}"


def _tied_for_best(
    standings: Sequence[Standing], unresolved: Collection[tuple[str, str]]
) -> tuple[str, ...]:
    placed = [line for line in standings if line.votes > 0]
    leaders = [line.candidate for line in placed if line.rank == placed[0].rank]
    close = {second for first, second in unresolved if first in leaders}
    if not close:
        return tuple(leaders)
    enough = {line.candidate for line in placed if line.votes >= MIN_VOTES}
    if len(enough) < 2:
        enough = {line.candidate for line in placed}
    close &= enough
    close.update(leaders)
    return tuple([line.candidate for line in placed if line.candidate in close])


def _list_names(names: Sequence[str]) -> str:
    return join_names(list_some(names, MOST_NAMED))


ALL_BARRED = "No candidate with votes passed the safety gate, so none can win."


@lru_cache(maxsize=4096)  # sessions of a file often have equal standings
def describe_standings(  # noqa: PLR0917 - a column each
    lines: tuple[tuple[str, int, int], ...],
    leaders: tuple[str, ...],
    tied: tuple[str, ...],
    can_tell: bool | None,
    unresolved: tuple[tuple[str, str], ...],
    disputed_by: tuple[str, ...] = (),
    by_seat: bool = False,
) -> str:
    """Summarize the standings in one sentence, without overclaiming.

    Parameters
    ----------
    lines
        Candidate, votes and tier, best first; candidates without votes are left out.
    leaders, tied
        Lines of the best rank, and lines too close to call against one of them.
    can_tell
        Whether there are enough ballots to separate any candidates; None: the rule ignores this.
    unresolved
        Pairs too close to call.
    disputed_by
        Candidates that the fit places above the first line beyond noise, against the rule.
    """
    lines = tuple([line for line in lines if line[1] > 0])
    if not lines:
        return "No ballot counts, so nobody is ranked."
    if len(lines) == 1:
        return f"{leaders[0]} is the only candidate with votes."
    verb = "lead" if len(leaders) > 1 else "leads"
    if not can_tell:
        reason = (
            "this rule has no test for chance"
            if can_tell is None
            else "there are too few ballots to separate any candidates"
        )
        start = f"{_list_names(leaders)} {verb}"
        if len(leaders) > 1:
            start = f"{_list_names(leaders)} are in a dead heat"
        return f"{start}; {reason}."
    if disputed_by:
        reverse = (
            f"the fit of the same ballots places {_list_names(disputed_by)} above, beyond noise"
        )
        return f"{_list_names(leaders)} {verb} by this rule; {reverse}."
    return "; ".join(_clauses(lines, leaders, tied, unresolved, by_seat=by_seat)) + "."


def _clauses(
    lines: Sequence[tuple[str, int, int]],
    leaders: Sequence[str],
    tied: Sequence[str],
    unresolved: Collection[tuple[str, str]],
    *,
    by_seat: bool,
) -> Iterator[str]:
    few = [name for name, votes, _ in lines if votes < MIN_VOTES]
    n_enough = len(lines) - len(few)
    if by_seat and len(tied) == 1:
        yield f"{tied[0]} is ahead, but seat order broke ties that were too many to follow"
    else:
        yield _first_clause(leaders, tied, alone=len(tied) == n_enough)
    if n_enough > len(tied) + 1:
        groups: dict[int, list[str]] = {}
        for name, votes, tier in lines:
            if votes >= MIN_VOTES and name not in tied:
                groups.setdefault(tier, []).append(name)
        for names in groups.values():
            if len(names) > 1 and all(pair in unresolved for pair in combinations(names, 2)):
                yield f"{_list_names(names)} are too close to call"
    if few and n_enough:
        yield f"{_list_names(few)} {'have' if len(few) > 1 else 'has'} not enough votes"


def _first_clause(leaders: Sequence[str], tied: Sequence[str], *, alone: bool) -> str:
    if len(tied) == 1:
        return f"{tied[0]} leads clearly"
    several = len(leaders) > 1
    lead = f"{_list_names(leaders)} are in a dead heat" if several else f"{leaders[0]} is ahead"
    if len(leaders) == len(tied):
        return f"{lead} for first place"
    if alone:
        return f"{lead}, but all candidates are too close to call"
    others = [name for name in tied if name not in leaders]
    return f"{lead}, but too close to call against {_list_names(others)}"
