"""The rules by name: requirements, axioms and uses of each.

A rule is a pure function from a `Profile` to `Scores`. Registering it records its name, its
parameters and their defaults, its source and the axioms it satisfies, so that a stored outcome
names the rule that produced it and can be recomputed. Other packages add rules through the entry
point ``witan.rules``; they are looked up only if a name is not built in.
"""

import inspect
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from enum import StrEnum
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from witan.core.display import brief, list_names
from witan.core.outcome import Deferrable
from witan.core.profile import Floats, Profile
from witan.core.stats.additive import AdditiveFit
from witan.errors import InvalidParameter, UnknownName, UnknownOption

if TYPE_CHECKING:
    from importlib.metadata import EntryPoints

ENTRY_POINT = "witan.rules"

Needs = Literal["rankings", "grades", "history"]

Rivals = Literal["ballot", "session", "none"]

ErrorKind = Literal["sample", "population", "fit", "asymptotic"]


class Axiom(StrEnum):
    """Axioms that a rule can satisfy for every profile; tests check each."""

    ANONYMITY = "anonymity"
    NEUTRALITY = "neutrality"
    UNANIMITY = "unanimity"
    CONDORCET = "Condorcet consistency"
    MONOTONICITY = "monotonicity"
    CLONES = "clone independence"


NO_DETAILS: Mapping[str, NDArray[Any]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Scores(Deferrable):
    """Scores of a rule for S sessions.

    Parameters
    ----------
    score : float array, shape (C, S)
        NaN where a candidate has no vote.
    std_error : float array, shape (C, S), optional
        NaN where unknown; never 0 from a single vote.
    fell_back : bool array, shape (S,), optional
        Sessions that the rule could not score by itself and scored as `borda` instead.
    seat_order_decided : bool array, shape (S,), optional
        Sessions in which ties were too many to follow, so that seat order broke them.
    fit : AdditiveFit, optional
        The fit of the grades that the scores were read off, where one fit holds all sessions.
    details : mapping of arrays, sessions on the last axis
        Rule-specific numbers, such as ``points`` of shape (C, S) or ``distance`` of shape (S,).
    """

    score: Floats
    std_error: Floats | None = None
    fell_back: NDArray[np.bool_] | None = None
    seat_order_decided: NDArray[np.bool_] | None = None
    fit: AdditiveFit | None = None
    details: Mapping[str, NDArray[Any]] = field(default_factory=lambda: NO_DETAILS)

    @classmethod
    def defer_errors(cls, score: Floats, error: Callable[[], Floats]) -> "Scores":
        """Make scores with errors that are computed on first read."""
        return cls.defer_rest(score, lambda: cls(score, error()), fit=None)

    @classmethod
    def defer_rest(cls, score: Floats, build: Callable[[], "Scores"], **known: Any) -> "Scores":
        """Make scores with errors and a fit that are computed on first read."""
        return cls.defer(
            build,
            score=score,
            fell_back=None,
            seat_order_decided=None,
            details=NO_DETAILS,
            **known,
        )


@dataclass(frozen=True, slots=True)
class Rule:
    """A social welfare function with its provenance; call it on a profile.

    Parameters
    ----------
    compute
        The pure function: ``compute(profile, **parameters) -> Scores``.
    needs
        ``rankings``, ``grades``, or ``history`` (sessions in the order of time; such a rule
        returns a single column of scores for all of them).
    lower_is_better
        True only for rules with that convention, such as a mean rank.
    tie_break
        Default tie-break of equal scores: ``wins``, ``borda`` or ``none``.
    error
        Kind of standard error, and so of interval: ``sample`` and ``population`` deviations of the
        votes over √votes (Student's t, pooled), of a ``fit`` (t on its residual freedom), or
        ``asymptotic`` (normal).
    bounds
        Range of scores; intervals do not extend beyond it.
    searchable_up_to, recount_cells
        Candidates, and cells of (R, C, recounts), up to which recounts are quick enough to search
        for ballots to flip.
    reads_both
        Whether a rule that needs grades falls back to a ranking where there are none.
    rivals
        Where a candidate must meet a rival to have a score on a leaderboard: on one ``ballot``, in
        the ``session``, or ``none`` if scores compare nobody.
    shortest
        Fewest candidates on a ballot for it to affect scores, beside ballots with so many; or a
        function of the parameters that returns it.
    trace
        Steps of one session: name → function of its profile and the candidates' names.
    restatements
        The score on other scales: name → function of a score and of C.
    summary, use_when, evidence
        One sentence each: what it is, when to use it, and the evidence for and against it.
    """

    name: str
    compute: Callable[..., Scores]
    needs: Needs
    source: str
    summary: str
    use_when: str
    evidence: str
    satisfies: frozenset[Axiom] = frozenset()
    lower_is_better: bool = False
    tie_break: Literal["none", "wins", "borda"] = "none"
    error: ErrorKind = "sample"
    bounds: tuple[float, float] = (-math.inf, math.inf)
    searchable_up_to: int = 100
    recount_cells: int = 50_000_000
    reads_both: bool = False
    rivals: Rivals = "ballot"
    shortest: int | Callable[..., int] = 1
    trace: Mapping[str, Callable[[Profile, Sequence[str]], object]] = field(
        default_factory=lambda: MappingProxyType({})
    )
    restatements: Mapping[str, Callable[[float, int], float]] = field(
        default_factory=lambda: MappingProxyType({})
    )
    parameters: Mapping[str, object] = field(default_factory=lambda: MappingProxyType({}))
    version: int = 1

    def __repr__(self) -> str:
        parameters = list_names(self.parameters) or "no parameters"
        return f"<Rule {brief(self.name)}: needs {self.needs}, takes {parameters}>"

    def __str__(self) -> str:
        return self.name

    @property
    def why_ignored(self) -> str:
        """The reason why the rule ignores a ballot, to follow its reviewer's name."""
        if self.needs != "grades":
            return "ranked too few candidates"
        return "gave no grades" if self.shortest == 1 else "gave no grades to compare"

    def _check(self, name: str, value: object) -> None:
        """Refuse a value of another type than the parameter's default."""
        default = self.parameters[name]
        if isinstance(default, float):
            number = isinstance(value, int | float) and not isinstance(value, bool)
            if not number or not math.isfinite(float(str(value))):
                raise InvalidParameter(f"{name} of {self.name}", value, "a finite number")
        elif isinstance(default, str) and not isinstance(value, str):
            raise InvalidParameter(f"{name} of {self.name}", value, "text")

    def __call__(self, profile: Profile, **parameters: object) -> Scores:
        """Score every session of the profile, a cache-sized block at a time."""
        if unknown := sorted(parameters.keys() - self.parameters.keys()):
            parameter_names = ", ".join(sorted(self.parameters)) or "no parameters"
            raise InvalidParameter(f"a parameter of {self.name}", unknown[0], parameter_names)
        for name, value in parameters.items():
            self._check(name, value)
        if self.needs == "history" or profile.n_sessions <= profile.sessions_per_block:
            return self.compute(profile, **parameters)
        return _gather(
            profile.n_sessions,
            ((where, self.compute(block, **parameters)) for where, block in profile.blocks()),
        )


def _gather(n_sessions: int, parts: Iterator[tuple[slice, Scores]]) -> Scores:
    where, first = next(parts)

    def room(sample: NDArray[Any] | None) -> NDArray[Any] | None:
        if sample is None:
            return None
        return np.empty((*sample.shape[:-1], n_sessions), dtype=sample.dtype)

    whole = Scores(
        score=np.empty((first.score.shape[0], n_sessions), dtype=first.score.dtype),
        std_error=room(first.std_error),
        fell_back=room(first.fell_back),
        seat_order_decided=room(first.seat_order_decided),
        details={
            name: np.empty((*values.shape[:-1], n_sessions), dtype=values.dtype)
            for name, values in first.details.items()
        },
    )
    part = first
    while True:
        whole.score[..., where] = part.score
        for target, source in (
            (whole.std_error, part.std_error),
            (whole.fell_back, part.fell_back),
            (whole.seat_order_decided, part.seat_order_decided),
        ):
            if target is not None and source is not None:
                target[..., where] = source
        for name, values in part.details.items():
            whole.details[name][..., where] = values
        following = next(parts, None)
        if following is None:
            return whole
        where, part = following


@cache
def _entry_points() -> "EntryPoints":
    # Imported here because reading package metadata takes longer than a small tally's counting.
    from importlib.metadata import entry_points

    return entry_points(group=ENTRY_POINT)


class Registry(Mapping[str, Rule]):
    """Rules by name; third parties' are imported when a lookup misses."""

    def __init__(self) -> None:
        self._rules: dict[str, Rule] = {}

    def __repr__(self) -> str:
        names = tuple(self)
        return f"<Registry of {len(names)} rules: {list_names(names)}>"

    def add(self, rule: Rule) -> None:
        """Add a rule under its name.

        Raises
        ------
        InvalidParameter
            If the name is taken.
        """
        if rule.name in self._rules:
            raise InvalidParameter("a rule's name", rule.name, "a name that is not taken")
        self._rules[rule.name] = rule

    def __getitem__(self, name: str) -> Rule:
        if name not in self._rules:
            _entry_points.cache_clear()  # a package may have been installed in the meantime
            for entry in _entry_points().select(name=name):
                loaded = entry.load()
                if not isinstance(loaded, Rule):
                    raise InvalidParameter(f"the entry point {entry.value}", loaded, "a Rule")
                self._rules[name] = loaded
                break
            else:
                raise UnknownName("rule", name, ["auto", *self])
        return self._rules[name]

    def __iter__(self) -> Iterator[str]:
        names = dict.fromkeys(self._rules)
        names.update(dict.fromkeys(entry.name for entry in _entry_points()))
        return iter(names)

    def __len__(self) -> int:
        return sum(1 for _ in self)


RULES = Registry()
"""Every rule by name."""


def rule(name: str, **provenance: Any) -> Callable[[Callable[..., Scores]], Rule]:
    """Register a function as rule `name`; keyword-only arguments are its parameters.

    `provenance` fills the other fields of `Rule`. The decorated name becomes the `Rule`, which is
    called like the function.

    Raises
    ------
    UnknownOption
        If `Rule` has no such field.
    """
    rule_fields = {each.name for each in fields(Rule)} - {"name", "compute", "parameters"}
    for option in sorted(provenance.keys() - rule_fields):
        raise UnknownOption(option, sorted(rule_fields))

    def register(compute: Callable[..., Scores]) -> Rule:
        parameters = {
            argument.name: argument.default
            for argument in inspect.signature(compute).parameters.values()
            if argument.kind is argument.KEYWORD_ONLY
        }
        satisfies = frozenset(provenance.pop("satisfies", ()))
        new_rule = Rule(
            name=name,
            compute=compute,
            parameters=MappingProxyType(parameters),
            satisfies=satisfies,
            **provenance,
        )
        RULES.add(new_rule)
        return new_rule

    return register
