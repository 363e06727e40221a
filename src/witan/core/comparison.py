"""Every rule on the same ballots, side by side."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

import numpy as np

from witan.core.ballot import Ballot
from witan.core.counting import (
    CheckWanted,
    decider,
    failed_candidates,
    group_by_shape,
    keep_counting,
    stack,
)
from witan.core.display import NotebookDisplay
from witan.core.outcome import Leads, Outcome
from witan.core.outcome_builder import Outcomes
from witan.core.placing import lead_kept_without_one
from witan.core.profile import Electorate, Floats, Profile
from witan.core.rules import RULES
from witan.core.settings import AUTO, Settings
from witan.core.stats.concordance import kendall_taus
from witan.core.tally import SharedWork, Task, count_task, prepare, reliability_by_session
from witan.errors import InvalidParameter, NothingToCount, UnknownName, UnsuitableBallots


@dataclass(frozen=True, slots=True)
class Comparison(NotebookDisplay):
    """Outcomes of the same sessions under several rules.

    Parameters
    ----------
    rules
        Rules that counted at least one session.
    skipped
        Rule → why it could not count any session.
    outcomes
        Session → rule → outcome.
    tau : (rules × rules)
        Mean over sessions of τ-b between the rankings of two rules; None if never defined.
    leader_differs : (rules × rules)
        Number of sessions that both rules counted with different leaders.
    same_leaders
        Number of sessions with the same leaders under all rules that counted them.
    leads
        Rule → who leads how often.
    stability
        Rule → share of single ballots that can be removed without changing its leaders.
    """

    rules: tuple[str, ...]
    skipped: Mapping[str, str]
    sessions: tuple[str, ...]
    outcomes: Mapping[str, Mapping[str, Outcome]]
    tau: tuple[tuple[float | None, ...], ...]
    leader_differs: tuple[tuple[int, ...], ...]
    same_leaders: int
    leads: Mapping[str, Leads]
    stability: Mapping[str, float | None]

    def __repr__(self) -> str:
        return f"<Comparison of {len(self.rules)} rules over {len(self.sessions)} sessions>"


def compare_rules(
    ballots: Iterable[Ballot],
    settings: Settings,
    rules: Sequence[str] | None = None,
    check_wanted: CheckWanted = keep_counting,
    only: Collection[str] | None = None,
) -> Comparison:
    """Count every session under every rule that needs no history.

    Parameters
    ----------
    settings
        As for `tally_sessions`; the rule is ignored, and each rule takes the parameters it knows.
    rules
        Names in `RULES`; None: all.
    check_wanted
        Called before each step; it ends the count by raising an error.
    only
        Compare only on these sessions; None: on all. Learning across sessions always uses all.

    Raises
    ------
    NothingToCount
        If there are no ballots.
    UnknownName
        If no ballot belongs to one of the sessions, or a rule is not in `RULES`.
    """
    if not isinstance(settings, Settings):
        raise InvalidParameter("settings", settings, "Settings; the rules to compare are the next")
    all_ballots = list(ballots)
    session_names = dict.fromkeys(ballot.session for ballot in all_ballots)
    sessions = tuple(session_names if only is None else dict.fromkeys(only))
    for name in sessions:
        if name not in session_names:
            raise UnknownName("session of the ballots", name, session_names)
    all_electorates, settings = prepare(all_ballots, settings)
    if not all_electorates:
        raise NothingToCount("there is no ballot to count")
    if AUTO in (rules or ()):
        raise InvalidParameter(
            "a rule to compare", AUTO, "the name of one: auto chooses between two"
        )
    names = list(RULES) if rules is None else [RULES[name].name for name in rules]
    skipped = {
        name: "rates candidates over a history, not one session"
        for name in names
        if RULES[name].needs == "history"
    }
    counting = {name: _settings_for(settings, name) for name in names if name not in skipped}
    counts = _Counts(counting, sessions, check_wanted)
    for profile, electorates in _stacks(all_electorates, settings, counting, frozenset(sessions)):
        counts.add(profile, electorates)
    return counts.compare(skipped)


def _stacks(
    everyone: Sequence[Electorate],
    settings: Settings,
    rules: Collection[str],
    names: AbstractSet[str],
) -> Iterator[tuple[Profile, list[Electorate]]]:
    reliability = reliability_by_session(everyone, settings, rules)
    places = np.array([at for at, one in enumerate(everyone) if one.session in names])
    for members in group_by_shape([everyone[at] for at in places]):
        numbers = places[members].tolist()
        stacked = [everyone[number] for number in numbers]
        weights = None if reliability is None else [reliability[number] for number in numbers]
        yield stack(stacked, reliability=weights), stacked


class SessionOutcomes(Mapping[str, Outcome]):
    """Outcomes of a session by rule, each built when it is read."""

    __slots__ = ("_batches", "_check_wanted")

    def __init__(self, check_wanted: CheckWanted) -> None:
        self._check_wanted = check_wanted
        self._batches: dict[str, tuple[Outcomes, int]] = {}

    def add(self, rule: str, batch: Outcomes, column: int) -> None:
        """Add the session's count under a rule."""
        self._batches[rule] = batch, column

    def __getitem__(self, rule: str) -> Outcome:
        batch, column = self._batches[rule]
        self._check_wanted()
        return batch[column]

    def __iter__(self) -> Iterator[str]:
        return iter(self._batches)

    def __len__(self) -> int:
        return len(self._batches)

    def __reduce__(self) -> tuple[type[dict[str, Outcome]], tuple[dict[str, Outcome]]]:
        # The blocks refer to rules, which cannot be pickled.
        return dict, (dict(self),)


class _Counts:
    """Collector of sessions' counts under every rule.

    Parameters
    ----------
    settings
        Rule → settings.
    sessions
        The sessions to compare, in order.
    """

    def __init__(
        self, settings: Mapping[str, Settings], sessions: Sequence[str], check_wanted: CheckWanted
    ) -> None:
        self._settings, self._sessions, self._check_wanted = settings, sessions, check_wanted
        self._place = {name: at for at, name in enumerate(sessions)}
        self._outcomes = {name: SessionOutcomes(check_wanted) for name in sessions}
        self._problems: dict[str, list[UnsuitableBallots]] = {name: [] for name in settings}
        self._stable: dict[str, list[Floats]] = {name: [] for name in settings}
        n_rules, n_sessions = len(settings), len(sessions)
        self._n_clear, self._n_shared = Counter[str](), Counter[str]()
        self._times = {name: Counter[str]() for name in settings}
        self._is_counted = np.zeros((n_rules, n_sessions), dtype=np.bool_)
        self._taus = np.full((n_rules, n_rules, n_sessions), np.nan)
        self._differ = np.zeros((n_rules, n_rules, n_sessions), dtype=np.bool_)

    def add(self, profile: Profile, electorates: Sequence[Electorate]) -> None:
        """Count sessions of one shape under every rule."""
        shared = SharedWork()
        at = np.array([self._place[electorate.session] for electorate in electorates])
        shape = (len(self._settings), profile.n_candidates, len(electorates))
        ranks, leads = np.full(shape, np.nan), np.zeros(shape, dtype=np.bool_)
        for number, (name, settings) in enumerate(self._settings.items()):
            task = Task(name, "asked for", at, profile)
            report = self._problems[name].append
            for batch, columns in count_task(
                task, electorates, settings, report, self._check_wanted, shared=shared
            ):
                ranks[number][:, columns] = batch.count.placing.ranks
                leads[number][:, columns] = batch.leads
                self._is_counted[number, at[columns]] = True
                self._add_leads(name, batch)
                for place, column in enumerate(columns):
                    self._outcomes[electorates[column].session].add(name, batch, place)
        for number in range(len(ranks)):
            self._check_wanted()
            self._taus[number, :, at] = kendall_taus(ranks, ranks[number]).T
            self._differ[number, :, at] = (leads != leads[number]).any(axis=1).T
        self._recount(profile, electorates)

    def _add_leads(self, name: str, batch: Outcomes) -> None:
        self._n_clear[name] += int(batch.clear_leads.sum())
        self._n_shared[name] += int((batch.leads.sum(axis=0) > 1).sum())
        for column, seat in np.argwhere(batch.leads.T).tolist():
            self._times[name][batch.count.electorates[column].candidates[seat]] += 1

    def _recount(self, profile: Profile, electorates: Sequence[Electorate]) -> None:
        """Count again without each ballot, under every rule fast enough."""
        cells = profile.n_reviewers * profile.places.size
        names = [
            name
            for name in self._settings
            if cells <= RULES[name].recount_cells
            and profile.n_candidates <= RULES[name].searchable_up_to
        ]
        if profile.n_reviewers < 2:
            return
        failed = failed_candidates(electorates)
        rules = [
            decider(RULES[name], self._settings[name], failed, self._check_wanted) for name in names
        ]
        for name, shares in zip(names, lead_kept_without_one(profile, rules), strict=True):
            self._stable[name].append(shares)

    def compare(self, skip_reasons: Mapping[str, str]) -> Comparison:
        """Compare sessions' counts by rule; `skip_reasons` explains the rules left out."""
        names = [*self._settings]
        counted = np.flatnonzero(self._is_counted.any(axis=1)).tolist()
        rules = tuple(names[number] for number in counted)
        unfit = {
            name: problems[0].problem if problems else "nothing to count"
            for name, problems in self._problems.items()
            if name not in rules
        }
        every = {**skip_reasons, **unfit}
        differ = self._differ & self._is_counted[:, np.newaxis] & self._is_counted
        n_differ = differ.sum(axis=2).tolist()
        return Comparison(
            rules=rules,
            skipped={name: every[name] for name in RULES if name in every},
            sessions=tuple(self._sessions),
            outcomes=self._outcomes,
            tau=tuple(tuple(_mean(self._taus[a, b]) for b in counted) for a in counted),
            leader_differs=tuple(tuple(n_differ[a][b] for b in counted) for a in counted),
            same_leaders=int((self._is_counted.any(axis=0) & ~differ.any(axis=(0, 1))).sum()),
            leads={
                name: self._leads(number, name) for number, name in zip(counted, rules, strict=True)
            },
            stability={
                name: float(np.concatenate(shares).mean()) if shares else None
                for name, shares in self._stable.items()
                if name in rules
            },
        )

    def _leads(self, number: int, name: str) -> Leads:
        times = sorted(self._times[name].items(), key=lambda each: (-each[1], each[0]))
        sessions = int(self._is_counted[number].sum())
        return Leads(sessions, self._n_clear[name], self._n_shared[name], dict(times))


def _mean(taus: Floats) -> float | None:
    known = taus[~np.isnan(taus)]
    return float(known.mean()) if len(known) else None


def _settings_for(settings: Settings, name: str) -> Settings:
    rule_parameters = RULES[name].parameters
    parameters = {
        key: value for key, value in settings.parameters.items() if key in rule_parameters
    }
    return replace(settings, rule=name, parameters=parameters, flips=False)
