"""Rows of a counted session, the input of leaderboards and audits.

They are written when the session is counted, so that a leaderboard is a sum of rows and reads no
ballot again. Models are named by name; a model that holds several seats has one standing a session.
"""

from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache

from witan.core.ballot import Kind
from witan.core.outcome import Unit
from witan.core.slots import set_by_slots

BUCKETS = 256
"""Groups that sessions fall into by the checksum of their name; errors are clustered by them."""


@dataclass(frozen=True, slots=True)
class Noise:
    """Noise of one session by its additive fit, to learn a prior.

    Parameters
    ----------
    unit
        What it was fitted on.
    variance, df
        Residual variance and its degrees of freedom.
    effect_variance
        Variance between the candidates' effects, the errors of their estimates taken out, as
        `witan.core.entry_builder.noise_of` has it; may be negative. None: fewer than two effects.
    """

    unit: Unit
    variance: float
    df: float
    effect_variance: float | None


@set_by_slots
@dataclass(frozen=True, slots=True)
class SessionEntry:
    """One counted session.

    Parameters
    ----------
    session
        Its name; unique in a history.
    at
        When it was asked, in UTC.
    simulated
        Some seat plays a script: it is kept, and never on a leaderboard.
    kendall_w
        Agreement of the models' ballots.
    agreement
        The probability that another draw of reviewers would place the leader best.
    noise
        None: not enough ballots.
    """

    session: str
    at: datetime
    category: str | None = None
    simulated: bool = False
    kendall_w: float | None = None
    agreement: float | None = None
    noise: Noise | None = None


@set_by_slots
@dataclass(frozen=True, slots=True)
class StandingEntry:
    """One model's standing in one session, by ballot kind and rule.

    Parameters
    ----------
    score
        The rule's number, the mean over the model's candidates; None: it has none.
    z
        Mean standardised grade (`normalized_scores`); None: no ballot grades it.
    votes, offered
        Counted ballots that say something of it, and seats that could have.
    wins
        First places, k tied for first 1/k each.
    """

    kind: Kind
    rule: str
    model: str
    score: float | None
    z: float | None
    votes: int
    offered: int
    wins: float


@set_by_slots
@dataclass(frozen=True, slots=True)
class MatchupEntry:
    """Matchups of the models of one session, by kind of ballot.

    Pairs stand in the order (0, 1), (0, 2), …, (1, 2), … of `models`.

    Parameters
    ----------
    models
        In the order of their names, each once.
    wins, losses, ties
        Per pair, the weight of the counted ballots that place the first above, below, or level
        with the second; all 0 where no ballot ranks both. The weights of a session's ballots are
        scaled to a mean of 1.
    p_beats
        Per pair, the probability that another draw of reviewers would place the first above the
        second; None: unknown.
    """

    kind: Kind
    models: tuple[str, ...]
    wins: tuple[float, ...]
    losses: tuple[float, ...]
    ties: tuple[float, ...]
    p_beats: tuple[float | None, ...]


@set_by_slots
@dataclass(frozen=True, slots=True)
class BallotEntry:
    """One ballot as cast, own candidate included; the input of audits.

    The lists are in one order: that of the seats of the candidates on the ballot. They are empty
    where it abstains, and where it does not count: see `counts`.

    Parameters
    ----------
    reviewer
        The model, or the name of a person.
    models
        Who wrote each candidate.
    own
        The reviewer wrote it.
    shares
        Share of its rivals that the ballot places the candidate above, a tie half: rivals are the
        others on the ballot, for a candidate that is not own without those that are. None: not
        ranked, or without a rival.
    grades
        Overall grades after the ceiling; None: none.
    positions
        Places on the sheet, 1-based, of as many as there are candidates; 0: unknown, or a copy of
        an answer that has its place already.
    chars
        Lengths of the answers in characters; None: unknown.
    paired
        One comparison of two candidates.
    abstained, repaired
        Asked, and without a vote; read at the second attempt.
    kept, compared
        Of the pairs seen in both orders, those judged alike; of all ballots of a reviewer in a
        session one carries them.
    criteria
        Names of the criteria that are graded.
    criterion_grades
        Per criterion, then per candidate; None: none.
    """

    reviewer: str
    kind: Kind
    models: tuple[str, ...] = ()
    own: tuple[bool, ...] = ()
    shares: tuple[float | None, ...] = ()
    grades: tuple[float | None, ...] = ()
    positions: tuple[int, ...] = ()
    chars: tuple[int | None, ...] = ()
    paired: bool = False
    abstained: bool = False
    repaired: bool = False
    kept: int = 0
    compared: int = 0
    weight: float = 1.0
    criteria: tuple[str, ...] = ()
    criterion_grades: tuple[tuple[float | None, ...], ...] = ()

    @property
    def counts(self) -> bool:
        """True unless a later ballot replaces it or its weight is zero."""
        return self.abstained or bool(self.models)

    @property
    def flat(self) -> bool:
        """It ranks two candidates or more and tells none of them apart."""
        return _is_flat(self.shares)


@lru_cache(maxsize=1 << 14)
def _is_flat(shares: tuple[float | None, ...]) -> bool:
    n_ranked = len(shares) - shares.count(None)
    return n_ranked > 1 and len({*shares} - {None}) == 1


@dataclass(frozen=True, slots=True)
class AnswerEntry:
    """Cost and time of one answer; None: unknown.

    Parameters
    ----------
    seat
        The seat.
    model
        The model behind it.
    chars
        Characters of the answer.
    seconds
        How long it took.
    cost_usd
        What it cost.
    output_tokens
        Tokens that it was.
    failed
        There is no answer.
    """

    seat: str
    model: str
    chars: int | None = None
    seconds: float | None = None
    cost_usd: float | None = None
    output_tokens: int | None = None
    failed: bool = False


@dataclass(frozen=True, slots=True)
class Entries:
    """All rows of one session."""

    session: SessionEntry
    standings: tuple[StandingEntry, ...] = ()
    matchups: tuple[MatchupEntry, ...] = ()
    ballots: tuple[BallotEntry, ...] = ()
    answers: tuple[AnswerEntry, ...] = ()
