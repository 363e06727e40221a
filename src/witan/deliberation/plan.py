"""The plan of a session: calls, cost and expected lengths of replies."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import fsum
from operator import itemgetter
from types import MappingProxyType
from typing import Literal, TypeAlias

from witan.core.bounds import Amount, Count, Share
from witan.core.display import NotebookDisplay, dollars, sufficient_usd
from witan.core.stats.separation import Separation
from witan.deliberation.money import ROUNDING_USD, count_calls, sum_known
from witan.deliberation.ports import Price, Stage
from witan.errors import OverBudget, Remedy, Way

WrittenAnswers: TypeAlias = Literal["none", "some", "all"]
"""Existing answers to judge."""


@dataclass(frozen=True, slots=True)
class PlanLine:
    """The calls of one seat in one stage.

    Parameters
    ----------
    seat, stage
        Who is called, and for what.
    calls
        Number of calls.
    input_tokens
        Most tokens that all these calls send.
    output_tokens
        Most tokens that all these calls receive.
    worst_usd
        Highest cost.
    if_needed
        Made only when another call fails: the repair of a review, the next chairman.
    least_usd
        Smallest reservation of one of these calls.
    expected_usd
        Expected cost of all these calls.
    probability
        Probability that they are made when nothing fails; below 1 where only a result too close to
        call needs more reviewers.
    """

    seat: str
    stage: Stage
    calls: Count
    input_tokens: Count
    output_tokens: Count
    worst_usd: Amount | None
    if_needed: bool = False
    least_usd: Amount | None = None
    expected_usd: Amount | None = None
    probability: Share = 1.0


@dataclass(frozen=True, slots=True)
class Plan(NotebookDisplay):
    """The calls of a session when nothing fails, and their cost.

    Parameters
    ----------
    lines
        One for each seat and stage.
    repairs
        Further calls if every review needs a repair; included in `worst_usd`.
    worst_usd
        Highest cost of everything, including repairs and every chairman that may be asked, but not
        retries; None if some price is unknown.
    expected_from
        Sessions of the history behind the expected cost; 0 if it rests on published lengths.
    separation
        Distance of answers that these reviews can separate; None without grades.
    """

    lines: tuple[PlanLine, ...]
    repairs: Count
    worst_usd: Amount | None
    separation: Separation | None = None
    expected_from: Count = 0

    def __repr__(self) -> str:
        cost = (
            "cost unknown"
            if self.worst_usd is None
            else f"at most {dollars(self.worst_usd, up=True)}"
        )
        return f"<Plan of {self.calls} calls, {self.repairs} repairs: {cost}>"

    @property
    def calls(self) -> int:
        """Most calls when nothing fails."""
        return sum(line.calls for line in self.lines if not line.if_needed)

    @property
    def least_calls(self) -> int:
        """Fewest calls of a complete session."""
        certain = [x for x in self.lines if not x.if_needed and x.probability == 1]
        return sum(line.calls for line in certain)

    @property
    def worst_calls(self) -> int:
        """Most calls, repairs and every chairman included, without retries."""
        return sum(line.calls for line in self.lines)

    @property
    def input_tokens(self) -> int:
        """Most tokens sent when nothing fails."""
        return sum(line.input_tokens for line in self.lines if not line.if_needed)

    @property
    def output_tokens(self) -> int:
        """Most tokens received when nothing fails."""
        return sum(line.output_tokens for line in self.lines if not line.if_needed)

    @property
    def expected_usd(self) -> float | None:
        """Expected US dollars when nothing fails, if all prices are known."""
        usual_lines = [line for line in self.lines if not line.if_needed]
        if any(line.expected_usd is None for line in usual_lines):
            return None
        return fsum(line.probability * (line.expected_usd or 0.0) for line in usual_lines)

    @property
    def usual_usd(self) -> float | None:
        """Most US dollars when nothing fails, if all prices are known."""
        return sum_known([line.worst_usd for line in self.lines if not line.if_needed])

    def least_usd(self) -> tuple[Stage, float] | None:
        """Return the stage with the largest reservation, and its amount.

        Answers are assumed to be as short as possible, so no complete session needs less: the calls
        of a stage run together, except those that may not be needed. Seats without a price are not
        called under a ceiling.
        """
        stages: dict[Stage, float] = {}
        for line in self.lines:
            is_certain = not line.if_needed and line.probability == 1
            if is_certain and line.least_usd is not None:
                stages[line.stage] = stages.get(line.stage, 0.0) + line.least_usd
        return max(stages.items(), key=itemgetter(1), default=None)

    @property
    def unpriced_seats(self) -> tuple[str, ...]:
        """Seats with unknown prices."""
        return tuple(dict.fromkeys(line.seat for line in self.lines if line.worst_usd is None))


def check_affordable(
    plan: Plan, ceiling: float | None, spent_usd: float = 0.0, remedy: str = ""
) -> None:
    """Refuse a session beyond its cost ceiling.

    `spent_usd`: part of the ceiling already spent or set aside.
    `remedy`: if empty, the ceiling can be raised.

    Raises `OverBudget` if a stage reserves more than the ceiling leaves; it names the sum needed.
    """
    smallest = plan.least_usd()
    if ceiling is None or smallest is None or spent_usd + smallest[1] <= ceiling + ROUNDING_USD:
        return
    stage, usd = smallest
    enough, ways_on = "", remedy or _raise_ceiling(usd)
    if plan.usual_usd is not None:
        most = dollars(plan.usual_usd, up=True)
        enough = f"; {most} covers the longest replies when nothing fails"
        ways_on = remedy or _raise_ceiling(plan.usual_usd)
    comparison, subject = "is below", "the smallest complete session"
    if spent_usd:
        comparison = f"({dollars(spent_usd)} of it spent or set aside) leaves less than"
        subject = "the rest of the session"
    raise OverBudget(
        "the council",
        f"the ceiling of {dollars(ceiling)} {comparison} the {dollars(usd, up=True)} that "
        f"{subject} needs: {_STAGES[stage]}{enough}",
        ways_on,
    )


def _raise_ceiling(usd: float) -> Remedy:
    ceiling = {"max_cost_usd": sufficient_usd(usd)}
    return Remedy(Way("raise the ceiling with ", ceiling), "lower max_tokens")


def check_calls(plan: Plan, max_calls: int | None, n_made: int = 0) -> None:
    """Refuse a session with more calls than its ceiling.

    `n_made`: calls already made of the ceiling: of a resumed session, which may get a new one.

    Raises `OverBudget` if a complete session makes more calls than the ceiling leaves; it names the
    number needed.
    """
    needed = plan.least_calls
    if max_calls is None or n_made + needed <= max_calls:
        return
    ceiling, most = f"the ceiling of {count_calls(max_calls)}", {"max_calls": needed}
    if not n_made:
        problem = f"{ceiling} is too low for a complete session, which needs {needed:,}"
        raise OverBudget(
            "the council", problem, Remedy(Way("raise it with ", most), "seat fewer models")
        )
    problem = f"{ceiling} ({n_made:,} of them made) is too low for {_REST} {needed:,} more"
    raise OverBudget("the council", problem, Remedy(Way("allow as many with ", most)))


def check_further_calls(plan: Plan, max_calls: int) -> None:
    """Refuse the rest of a session beyond a ceiling of further calls."""
    needed = plan.least_calls
    if needed > max_calls:
        problem = f"the ceiling of {max_calls:,} further calls is too low for {_REST} {needed:,}"
        raise OverBudget(
            "the council",
            problem,
            Remedy(Way("raise it with ", {"max_calls": needed}), "leave it out"),
        )


_REST = "the rest of the session, which needs"


def check_priced(plan: Plan, ceiling: float | None, *, is_whole_session: bool = True) -> None:
    """Refuse a session with too few priced seats under its ceiling.

    `is_whole_session`: true if the plan is of a whole session, not of the rest of one.

    Raises `OverBudget` if fewer than two members can answer, no reviewer can review, or no call is
    possible.
    """
    if ceiling is None or not plan.unpriced_seats:
        return
    usual_lines = [line for line in plan.lines if not line.if_needed]
    priced_calls = {line.stage: 0 for line in usual_lines}
    for line in usual_lines:
        priced_calls[line.stage] += line.worst_usd is not None
    if not any(priced_calls.values()):
        subject = "no member can be called"
    elif is_whole_session and priced_calls.get("answer", 2) < 2:
        subject = "fewer than two members can answer"
    elif is_whole_session and priced_calls.get("review", 1) < 1:
        subject = "nobody can review"
    else:
        return
    verb = "is" if len(plan.unpriced_seats) == 1 else "are"
    raise OverBudget(
        "the council",
        f"{subject} under the ceiling of {dollars(ceiling)}, "
        f"as {', '.join(plan.unpriced_seats)} {verb} without a known price",
        Remedy(
            Way("set one with ", {"price": {plan.unpriced_seats[0]: "IN,OUT"}}, command=True),
            "set price = [IN, OUT] of the seat in the configuration (US dollars per million "
            "tokens)",
        ),
    )


_STAGES: Mapping[Stage, str] = {
    "answer": "the answers are requested together, and could cost that much",
    "review": "the reviews are requested together, and could cost that much even of short answers",
    "repair": "the repairs are requested together, and could cost that much",
    "synthesis": "the final answer could cost that much even from short answers",
}


def least_call_usd(
    plan: Plan, prices: Mapping[str, Price | None], answers: WrittenAnswers
) -> float | None:
    """Minimum cost of a first call in US dollars.

    None: nothing is called, or a called seat has no price. If its prompt is not known yet, this is
    the cost of the reply only. `prices`: price by the name of the seat.
    """
    costs = []
    for line in plan.lines:
        price = prices.get(line.seat)
        if line.if_needed or price is None or line.worst_usd is None:
            continue
        if line.stage == "answer" or answers != "none":
            is_known = line.calls == 1 and (answers == "all" or line.stage == "answer")
            reply_usd = price.of(0, line.output_tokens // line.calls)
            costs.append(line.worst_usd if is_known else reply_usd)
    return min(costs, default=None)


TYPICAL_TOKENS: Mapping[Stage, int] = MappingProxyType(
    {"answer": 1_000, "review": 300, "repair": 300, "synthesis": 1_000}
)
"""Tokens of a reply, of a review per judged answer; sources in docs/deliberation.md."""

BYTES_A_TOKEN = 4
"""Bytes per token of English prose and code; other languages have fewer."""

NO_ESTIMATES: Mapping[tuple[str, Stage], float] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Lengths:
    """Tokens of earlier replies.

    `means`: mean tokens of a reply by model, as its seat is written, and stage; the model ``""`` is
    all models together.
    `sessions`: number of sessions they come from.
    """

    means: Mapping[tuple[str, Stage], float] = field(default_factory=lambda: NO_ESTIMATES)
    sessions: int = 0

    def tokens(self, model: str, stage: Stage, n_judged: int) -> float:
        """Return a reply's tokens by this model, all models, or as published.

        `n_judged`: number of answers that a review judges.
        """
        for name in (model, ""):
            if (name, stage) in self.means:
                return self.means[name, stage]
        per_answer = n_judged if stage in ("review", "repair") else 1
        return float(TYPICAL_TOKENS[stage] * max(per_answer, 1))


TYPICAL = Lengths()
