"""The procedure of a council: stages, counting, limits and their checks."""

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any, Literal, get_args

from witan.core.ballot import Ballot
from witan.core.bounds import PossiblyInfinite
from witan.core.display import changes_line
from witan.core.rubric import Rubric
from witan.core.rules import RULES
from witan.core.scale import Scale
from witan.core.sequential import FEWEST_VOTES, plan_looks
from witan.core.settings import AUTO, Settings
from witan.core.tally import tally_sessions
from witan.deliberation.replies import check_schema, check_schema_cost
from witan.errors import InvalidParameter, NothingToCount, UnsuitableBallots

Mode = Literal["consensus", "best", "verdict"]

Spend = Literal["all", "until_decided", "adaptive"]
"""Whom to ask for a ballot: every reviewer; all until the leader is certain; the next one only
while the result is too close to call."""


@dataclass(frozen=True, slots=True)
class ThrottlePolicy:
    """Rate limits of one provider.

    Parameters
    ----------
    concurrency
        Most calls at once, if the provider accepts as many; None for 512.
    per_minute
        Calls started per minute, from a bucket that refills evenly; None for no limit.
    """

    concurrency: int | None = None
    per_minute: PossiblyInfinite | None = None

    def __post_init__(self) -> None:
        if self.concurrency is not None and self.concurrency < 1:
            raise InvalidParameter("concurrency", self.concurrency, "a whole number ≥ 1, or None")
        if self.per_minute is not None and not self.per_minute > 0:
            raise InvalidParameter("per_minute", self.per_minute, "a number above 0")


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of time, attempts and money.

    Deadlines nest: the earliest one around a call ends it.

    Parameters
    ----------
    call_seconds
        Timeout of one call with its retries, without the wait for its provider's limits.
    stage_seconds
        Timeout of each stage: answers of one round, reviews of one round, the final answer.
    session_seconds
        Timeout of the session.
    grace_seconds
        Seconds to wait for stragglers once `enough` members have answered.
    attempts
        Most attempts at one call, including the first.
    hedge_seconds
        Seconds of silence after which a call is made a second time; the first to finish counts;
        None for never.
    max_tokens
        The most tokens of one reply, unless a member's options say otherwise.
    max_cost_usd
        Ceiling in US dollars; a call that could exceed it is skipped; None for no ceiling.
    max_calls
        Ceiling of calls, repeated ones included; None for no ceiling.
    providers
        Throttling per provider; the others get the default.
    """

    call_seconds: float = 120.0
    stage_seconds: float = 240.0
    session_seconds: float = 900.0
    grace_seconds: float = 10.0
    attempts: int = 4
    hedge_seconds: float | None = None
    max_tokens: int = 8_192
    max_cost_usd: float | None = None
    max_calls: int | None = None
    providers: Mapping[str, ThrottlePolicy] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("call_seconds", "stage_seconds", "session_seconds"):
            _positive(name, getattr(self, name))
        if self.hedge_seconds is not None:
            _positive("hedge_seconds", self.hedge_seconds)
        if not 0 <= self.grace_seconds < float("inf"):
            raise InvalidParameter("grace_seconds", self.grace_seconds, "a finite number ≥ 0")
        for name in ("attempts", "max_tokens"):
            if getattr(self, name) < 1:
                raise InvalidParameter(name, getattr(self, name), "a whole number ≥ 1")
        if self.max_cost_usd is not None and not 0 <= self.max_cost_usd < float("inf"):
            raise InvalidParameter("max_cost_usd", self.max_cost_usd, "dollars, 0 or more")
        if self.max_calls is not None and self.max_calls < 0:
            raise InvalidParameter("max_calls", self.max_calls, "a whole number ≥ 0")

    def __repr__(self) -> str:
        return changes_line(self)


def _positive(name: str, value: float) -> None:
    if not 0 < value < float("inf"):
        raise InvalidParameter(name, value, "a finite number of seconds above 0")


@dataclass(frozen=True, slots=True)
class Procedure:
    """The procedure of a council: every choice except its members.

    Parameters
    ----------
    counting
        Settings of the count, including rule and rubric. Values set to ``learn`` are learned from
        the council's history when a session is opened.
    mode
        ``consensus``: a chairman writes one answer. ``best``: the best-ranked answer, without a
        call. ``verdict``: members and chairman approve or reject.
    synthesis
        True if a final answer is written.
    json_schema
        JSON Schema, as text, that the final answer satisfies; None for prose.
    rubric_scoring
        Reviewers grade every criterion of the rubric; without it they rank.
    holistic
        Reviewers also give each answer one grade of their own.
    self_review
        Reviewers see their own answer too; counting still recuses them.
    mirrored
        Every reviewer is asked a second time, in reverse order.
    pairs
        Most pairs of answers that each reviewer compares, each in both orders and without grades;
        None: all answers are on one sheet. A ceiling of money lowers it.
    review_rounds
        2: reviewers then see each other's grades, anonymous, and may revise.
    debate_rounds
        Rounds in which members see each other's answers, anonymous, and may revise their own.
    spend
        ``all``: every reviewer is asked. ``until_decided``: outstanding reviewers are cancelled
        once no ballot of theirs can change the leader. ``adaptive``: the fewest are asked first,
        and the next one while it is too close to call and more ballots may settle it.
    safety, safety_cap
        True if answers pass the safety gate; the cap on a failed answer's grades.
    enough
        Answers after which the grace period begins; None for all.
    quorum
        The fewest ballots for which an outcome is declared.
    limits
        Time, attempts and money.
    """

    counting: Settings = field(default_factory=lambda: Settings(prior="learn"))
    mode: Mode = "consensus"
    synthesis: bool = True
    json_schema: str | None = None
    rubric_scoring: bool = True
    holistic: bool = False
    self_review: bool = False
    mirrored: bool = False
    pairs: int | None = None
    review_rounds: int = 1
    debate_rounds: int = 0
    spend: Spend = "all"
    safety: bool = False
    safety_cap: float = 0.0
    enough: int | None = None
    quorum: int = 2
    limits: Limits = field(default_factory=Limits)

    def __post_init__(self) -> None:
        if self.mode not in ("consensus", "best", "verdict"):
            raise InvalidParameter("mode", self.mode, "consensus, best or verdict")
        if self.mode == "verdict" and not self.synthesis:
            expected = "True in the mode verdict, whose final answer approves or rejects"
            raise InvalidParameter("synthesis", self.synthesis, expected)
        if self.json_schema is not None:
            self._check_schema(self.json_schema)
        self._check_spending()
        self._check_pairs()
        if self.review_rounds not in (1, 2):
            raise InvalidParameter("review_rounds", self.review_rounds, "1 or 2")
        if not 0 <= self.debate_rounds <= 5:
            raise InvalidParameter("debate_rounds", self.debate_rounds, "from 0 to 5")
        if self.enough is not None and self.enough < 2:
            raise InvalidParameter("enough", self.enough, "a whole number ≥ 2")
        if self.quorum < 1:
            raise InvalidParameter("quorum", self.quorum, "a whole number ≥ 1")
        if not 0.0 <= self.safety_cap <= 10.0:
            raise InvalidParameter("safety_cap", self.safety_cap, "a grade from 0 to 10")

    def __repr__(self) -> str:
        return changes_line(self)

    def _check_spending(self) -> None:
        """Refuse adaptive spending without a test, or with a second round."""
        if self.spend not in get_args(Spend):
            raise InvalidParameter("spend", self.spend, "all, until_decided or adaptive")
        if self.spend != "adaptive":
            return
        if self.review_rounds > 1:
            expected = "1 with spend=adaptive: in a second round reviewers see everybody's grades"
            raise InvalidParameter("review_rounds", self.review_rounds, expected)
        if self.counting.ties != "contrast":
            expected = "contrast with spend=adaptive: overlapping intervals are no test"
            raise InvalidParameter("ties", self.counting.ties, expected)

    def _check_pairs(self) -> None:
        """Refuse pairs where whole ballots are needed."""
        if self.pairs is None:
            return
        if self.pairs < 1:
            raise InvalidParameter("pairs", self.pairs, "a whole number ≥ 1, or None")
        if self.review_rounds > 1:
            expected = "1 with pairs: there are no grades for others to see"
            raise InvalidParameter("review_rounds", self.review_rounds, expected)
        if self.holistic:
            raise InvalidParameter("holistic", True, "False with pairs, which are not graded")
        if self.spend != "all":
            expected = "all with pairs: a reviewer's comparisons are requested together"
            raise InvalidParameter("spend", self.spend, expected)

    def _check_schema(self, schema: str) -> None:
        if self.mode != "consensus" or not self.synthesis:
            expected = "no schema where no chairman writes a common answer, as in the mode best"
            raise InvalidParameter("json_schema", schema[:80], expected)
        check_schema(schema)

    @property
    def rubric(self) -> Rubric:
        """The reviewers' rubric."""
        return self.counting.counting.rubric

    @property
    def graded_rubric(self) -> Rubric | None:
        """The rubric by which reviewers grade, if they do."""
        return self.rubric if self.rubric_scoring and self.pairs is None else None

    @property
    def weighed_rubric(self) -> Rubric | None:
        """The rubric by which reviewers compare pairs, if they do."""
        return self.rubric if self.rubric_scoring and self.pairs is not None else None

    @property
    def asks_grades(self) -> bool:
        """True if reviewers are asked to grade."""
        return self.pairs is None and (self.rubric_scoring or self.holistic)

    @property
    def needs_grades(self) -> bool:
        """True if a review without grades has no effect."""
        rule = self.counting.rule
        return self.asks_grades and (rule == AUTO or RULES[rule].needs == "grades")


_accepted_settings: deque[tuple[Settings, bool, bool, bool]] = deque(maxlen=16)
"""Settings checked recently, since a server seats the same council again and again."""


def check_procedure(procedure: Procedure, n_members: int, n_jurors: int = 0) -> None:
    """Refuse a procedure impossible for a council of this size.

    Raises `InvalidParameter` if more ballots or answers are required than there are seats, jurors
    would review their own answers, as in `_rehearse`, or as in `check_schema_cost`.
    """
    jurors = ("jurors", n_jurors) if n_jurors else ("members", n_members)
    for name, (role, n) in (("quorum", jurors), ("enough", ("members", n_members))):
        most = getattr(procedure, name)
        if most is not None and most > n:
            raise InvalidParameter(name, most, f"at most the {n} {role}")
    if n_jurors and procedure.self_review:
        expected = "False with a jury: its jurors answer nothing, so they have no answers to review"
        raise InvalidParameter("self_review", True, expected)
    if procedure.json_schema is not None:
        check_schema_cost(procedure.json_schema)
    _rehearse(procedure)


def check_question_reviews(procedure: Procedure, n_members: int, n_jurors: int) -> None:
    """Refuse a question to two members that would only rank each other.

    Each would see one answer alone, or in pairs compare its own. Judged texts are all seen by every
    reviewer.
    """
    if n_members > 2 or procedure.asks_grades or n_jurors:
        return
    if procedure.pairs is not None:
        expected = "None for a question to two members, as each would compare one answer alone"
        raise InvalidParameter("pairs", procedure.pairs, expected)
    if procedure.self_review:
        return
    expected = "True for a question to two members, as each would rank one answer alone"
    raise InvalidParameter("rubric_scoring", False, expected)


def _rehearse(procedure: Procedure) -> None:
    """Count sample ballots, to refuse uncountable settings.

    Raises `InvalidParameter` if a parameter of the rule is not accepted, the rule needs grades but
    none are requested, or no candidate could ever be ranked.
    """
    settings = procedure.counting
    if settings.rule != AUTO and RULES[settings.rule].needs == "history":
        raise InvalidParameter("rule", settings.rule, "a rule that ranks a single session")
    by_pairs = procedure.pairs is not None
    rehearsed = (settings, procedure.rubric_scoring, procedure.holistic, by_pairs)
    if rehearsed in tuple(_accepted_settings):  # another thread may change it
        return
    seats = ("a", "b", "c")
    grades: dict[str, Any] = {}
    if by_pairs:
        pass
    elif procedure.rubric_scoring:
        grades = dict.fromkeys((c.name for c in procedure.rubric.criteria), 5)
    elif procedure.holistic:
        grades = {"overall": 5}
    sheets = [*combinations(seats, 2)] if by_pairs else [seats]
    ballots = [
        replace(_ballot(seat, sheet, grades), paired=by_pairs) for seat in seats for sheet in sheets
    ]
    try:
        next(tally_sessions(ballots, replace(settings, weights={}, gates={})))
    except UnsuitableBallots as error:
        expected = error.remedy.removeprefix("take ")
        raise InvalidParameter("rule", settings.rule, expected) from error
    except NothingToCount as error:
        raise InvalidParameter("kind", settings.kind, "'all' or 'model'") from error
    _accepted_settings.append(rehearsed)


def _ballot(reviewer: str, seats: Sequence[str], grades: dict[str, Any]) -> Ballot:
    groups = tuple((seat,) for seat in seats)
    graded = {seat: {k: g + n for k, g in grades.items()} for n, seat in enumerate(seats)}
    return Ballot(
        reviewer, groups, graded if grades else {}, candidates=tuple(seats), scale=Scale()
    )


def with_ceiling(
    procedure: Procedure, max_cost_usd: float | None, max_calls: int | None = None
) -> Procedure:
    """Return a procedure under other ceilings of cost and calls, if any."""
    ceilings: dict[str, Any] = {"max_cost_usd": max_cost_usd, "max_calls": max_calls}
    changes = {name: most for name, most in ceilings.items() if most is not None}
    return replace(procedure, limits=replace(procedure.limits, **changes)) if changes else procedure


def with_looks(procedure: Procedure, n_reviewers: int, *, authors: bool) -> Procedure:
    """Plan the looks at a session that spends adaptively.

    Authors do not judge their own answers, so they begin with one ballot more. Reversed sheets come
    after all reviewers, and their ballots are looked at in the same way.
    """
    if procedure.spend != "adaptive":
        return procedure
    n_ballots = n_reviewers * (2 if procedure.mirrored else 1)
    fewest = max(procedure.quorum, FEWEST_VOTES + authors)
    looks = plan_looks(min(fewest, n_reviewers), n_ballots)
    return replace(procedure, counting=replace(procedure.counting, looks=looks))
