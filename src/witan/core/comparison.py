"""Every rule on the same ballots, side by side."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations_with_replacement
from typing import TypeVar

import numpy as np

from witan.core.ballot import Ballot
from witan.core.counting import GoOn, decider, failed_candidates, forever, group_by_shape, stack
from witan.core.display import Displayed
from witan.core.interpretation import Electorate
from witan.core.outcome import Outcome
from witan.core.robustness import lead_kept_without_one
from witan.core.rules import RULES
from witan.core.settings import AUTO, Settings
from witan.core.stats.agreement import kendall_tau
from witan.core.stats.learning import learn_weights
from witan.core.tally import prepare, tally_electorates
from witan.errors import InvalidParameter, NothingToCount, UnknownName, UnsuitableBallots

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Comparison(Displayed):
    """Outcomes of the same sessions under several rules.

    Parameters
    ----------
    rules
        Rules that counted at least one session.
    skipped
        Rule → why it could count none.
    outcomes
        Session → rule → outcome.
    tau : (rules × rules)
        Mean over sessions of τ-b between the rankings of two rules; None where never defined.
    leader_differs : (rules × rules)
        Sessions counted by both in which their leaders differ.
    stability
        Rule → share of single ballots whose removal leaves its leaders exactly as they were.
    """

    rules: tuple[str, ...]
    skipped: Mapping[str, str]
    sessions: tuple[str, ...]
    outcomes: Mapping[str, Mapping[str, Outcome]]
    tau: tuple[tuple[float | None, ...], ...]
    leader_differs: tuple[tuple[int, ...], ...]
    stability: Mapping[str, float | None]

    def __repr__(self) -> str:
        return f"<Comparison of {len(self.rules)} rules over {len(self.sessions)} sessions>"


def compare_rules(
    ballots: Iterable[Ballot],
    settings: Settings,
    rules: Sequence[str] | None = None,
    check_wanted: GoOn = forever,
    only: Collection[str] | None = None,
) -> Comparison:
    """Count every session under every rule without need of a history.

    Parameters
    ----------
    settings
        As for `tally_sessions`; its rule is ignored, parameters go to the rule that knows them.
    rules
        Names in `RULES`; None: all.
    check_wanted
        Called before every piece of the work; what it raises ends the counting.
    only
        Compare on these sessions alone; None: on all. What is learned across sessions is learned
        from all of them.

    Raises
    ------
    NothingToCount
        Without a ballot.
    UnknownName
        If no ballot belongs to one of the sessions, or a rule is not in `RULES`.
    """
    cast = list(ballots)
    known = dict.fromkeys(ballot.session for ballot in cast)
    sessions = tuple(known if only is None else dict.fromkeys(only))
    for name in sessions:
        if name not in known:
            raise UnknownName("session", name, known)
    everyone, settings = prepare(cast, settings)
    if not everyone:
        raise NothingToCount("there is no ballot to count")
    if AUTO in (rules or ()):
        raise InvalidParameter("a rule to compare", AUTO, "a name: auto takes one of two")
    names = list(RULES) if rules is None else [RULES[name].name for name in rules]
    wanted = frozenset(sessions)
    outcomes: dict[str, dict[str, Outcome]] = {name: {} for name in sessions}
    skipped: dict[str, str] = {}
    stability: dict[str, float | None] = {}
    counted = []
    for name in names:
        if RULES[name].needs == "history":
            skipped[name] = "rates candidates over a history, not one session"
            continue
        chosen = _under(settings, name)
        problems: list[UnsuitableBallots] = []
        tallies = list(tally_electorates(everyone, chosen, problems.append, wanted, check_wanted))
        if not tallies:
            skipped[name] = problems[0].problem if problems else "nothing to count"
            continue
        counted.append(name)
        stability[name] = _stability(everyone, chosen, wanted, check_wanted)
        for outcome in tallies:
            outcomes[outcome.session][name] = outcome
    return Comparison(
        rules=tuple(counted),
        skipped=skipped,
        sessions=sessions,
        outcomes=outcomes,
        tau=_matrix(counted, partial(_mean_tau, outcomes), check_wanted),
        leader_differs=_matrix(counted, partial(_differs, outcomes), check_wanted),
        stability=stability,
    )


def _matrix(
    rules: Sequence[str], compare: Callable[[str, str], T], check_wanted: GoOn
) -> tuple[tuple[T, ...], ...]:
    """Compare every rule with every rule; agreement is symmetric."""
    matrix: dict[tuple[str, str], T] = {}
    for a, b in combinations_with_replacement(rules, 2):
        check_wanted()
        matrix[a, b] = matrix[b, a] = compare(a, b)
    return tuple(tuple(matrix[a, b] for b in rules) for a in rules)


def _under(settings: Settings, name: str) -> Settings:
    known = RULES[name].parameters
    parameters = {key: value for key, value in settings.parameters.items() if key in known}
    return replace(settings, rule=name, parameters=parameters, flips=False)


def _ranks(outcome: Outcome) -> dict[str, int]:
    return {line.candidate: line.rank for line in outcome.standings}


def _mean_tau(outcomes: Mapping[str, Mapping[str, Outcome]], a: str, b: str) -> float | None:
    taus = []
    for outcome in outcomes.values():
        if a in outcome and b in outcome:
            first, second = _ranks(outcome[a]), _ranks(outcome[b])
            tau = kendall_tau(
                np.array([float(first[c]) for c in first]),
                np.array([float(second[c]) for c in first]),
            )
            if tau is not None:
                taus.append(tau)
    return float(np.mean(taus)) if taus else None


def _differs(outcomes: Mapping[str, Mapping[str, Outcome]], a: str, b: str) -> int:
    return sum(
        set(outcome[a].leaders) != set(outcome[b].leaders)
        for outcome in outcomes.values()
        if a in outcome and b in outcome
    )


def _stability(
    everyone: Sequence[Electorate],
    settings: Settings,
    sessions: AbstractSet[str],
    check_wanted: GoOn,
) -> float | None:
    """Mean share of single removals with unchanged leaders, over sessions."""
    rule = RULES[settings.rule]
    learned = None
    if rule.name == "weighted_borda" and settings.reliability is None:
        learned = learn_weights(everyone)
    wanted = [number for number, one in enumerate(everyone) if one.session in sessions]
    everyone = [everyone[number] for number in wanted]
    learned = None if learned is None else [learned[number] for number in wanted]
    shares = []
    for numbers in group_by_shape(everyone):
        if len(everyone[numbers[0]].votes) < 2:
            continue
        n_votes, n_candidates = (
            len(everyone[numbers[0]].votes),
            len(everyone[numbers[0]].candidates),
        )
        too_many = n_votes**2 * n_candidates * len(numbers) > rule.recount_cells
        if too_many or n_candidates > rule.searchable_up_to:
            continue
        chosen = [everyone[number] for number in numbers]
        weights = None if learned is None else [learned[number] for number in numbers]
        profile = stack(chosen, reliability=weights)
        decide = decider(rule, settings, failed_candidates(chosen), check_wanted)
        shares.append(lead_kept_without_one(profile, decide))
    return float(np.concatenate(shares).mean()) if shares else None
