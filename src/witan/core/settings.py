"""Settings of a count in one value."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal, TypedDict, Unpack

from witan.core.display import changes_line
from witan.core.gate import Gate
from witan.core.interpretation import Counting, Recusal, Unranked
from witan.core.outcome import Prior, TiesRule, check_level
from witan.core.placing import TieBreak
from witan.core.rubric import Rubric
from witan.core.rules import RULES
from witan.core.scale import Scale
from witan.core.stats.priors import Severity
from witan.errors import InvalidParameter, UnknownOption

AUTO = "auto"


class CountOptions(TypedDict, total=False):
    """Keywords shared by counts and councils: settings and built-in rules' parameters."""

    kind: Literal["all", "model", "human"]
    ties: TiesRule
    level: float
    threshold: float
    tie_break: TieBreak | None
    weights: Mapping[str, float]
    reliability: Mapping[str, float] | None
    gates: Mapping[str, Gate]
    flips: bool
    recusal: Recusal
    unranked: Unranked
    variant: str
    alpha: float
    strength: str
    ghost_wins: float
    k: float
    base: float
    initial: float


class SettingOptions(CountOptions, total=False):
    """Keywords of a count; custom rules' parameters go into `parameters`."""

    parameters: Mapping[str, Any]
    counting: Counting
    rubric: Rubric
    scale: Scale | str | None
    rho: float | Literal["learn", "public", "none"] | None
    prior: Prior | Literal["learn", "public", "none"] | None


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of a count.

    Parameters
    ----------
    rule, parameters
        A name in `RULES`, or ``auto``; the rule's own parameters.
    counting
        Recusal, unranked candidates, rubric.
    scale
        Scale of all grades, such as ``"0-1"``. None: each ballot's declared scale; undeclared
        grades are on 1–10 or, if they do not fit it, on the scale recognised over all ballots.
    kind
        Whose ballots count: ``all``, or only those of a ``model`` or of a ``human``.
    ties, level, threshold
        ``contrast``: lines are separated by the fit, two-sided at `level`. ``intervals``: they are
        separated unless the ranges score ± threshold·std_error overlap.
    tie_break
        What separates equal scores; None: the rule's own tie-break.
    weights
        Weight per reviewer; 1 for any that is not named.
    rho
        Error shared by all models that review, 0 ≤ ρ < 1. ``public``: a cautious value from
        published judges. ``learn``: learned from the comparisons that people also judged or, if
        they are too few, as ``public``. None or ``none``: no shared error.
    prior
        Prior for noise and spread. ``public``: from published judges, worth few degrees of freedom.
        ``learn``: learned from the given sessions or, with fewer than fifty, as ``public``. None or
        ``none``: no prior.
    reliability
        For ``weighted_borda``: weight per reviewer. None: learned from the other sessions.
    severity
        Reviewers' severity in other sessions, to correct the grades of a verdict unless `prior` is
        ``public`` or None. None: unknown.
    gates
        Answers that failed the safety gate, per session.
    flips
        Whether to search for the minimum number of ballots that end the lead.
    looks
        Numbers of ballots after which the session was tested, to end it once nothing is too close
        to call. The tests are stricter, so that all together err no more often than a single test.
        Empty: a single test.
    """

    rule: str = AUTO
    parameters: Mapping[str, Any] = field(default_factory=dict)
    counting: Counting = field(default_factory=Counting)
    scale: Scale | str | None = None
    kind: Literal["all", "model", "human"] = "all"
    ties: TiesRule = "contrast"
    level: float = 0.95
    threshold: float = 1.96
    tie_break: TieBreak | None = None
    weights: Mapping[str, float] = field(default_factory=dict)
    rho: float | Literal["learn", "public", "none"] | None = "learn"
    prior: Prior | Literal["learn", "public", "none"] | None = "public"
    reliability: Mapping[str, float] | None = None
    severity: Severity | None = None
    gates: Mapping[str, Gate] = field(default_factory=dict)
    flips: bool = True
    looks: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if self.rule != AUTO:
            parameters = RULES[self.rule].parameters
            for name in self.parameters:
                if name not in parameters:
                    accepted = ", ".join(sorted(parameters)) or "no parameters"
                    raise InvalidParameter(f"a parameter of {self.rule}", name, accepted)
        object.__setattr__(self, "scale", _scale(self.scale))
        for name in ("rho", "prior"):
            if getattr(self, name) == "none":
                object.__setattr__(self, name, None)
        _numbers(self)
        _check_among("kind", self.kind, ("all", "model", "human"))
        _check_among("ties", self.ties, ("contrast", "intervals"))
        _check_among("tie_break", self.tie_break, (None, "none", "wins", "borda"))
        check_level(self.level)
        if not 0 <= self.threshold < float("inf"):
            raise InvalidParameter("threshold", self.threshold, "a finite number ≥ 0")
        if isinstance(self.rho, float | int) and not 0 <= self.rho < 1:
            raise InvalidParameter("rho", self.rho, "a number from 0 up to, not including, 1")
        named = self.prior is None or self.prior in ("learn", "public")
        if not (named or isinstance(self.prior, Prior)):
            raise InvalidParameter("prior", self.prior, "a Prior, 'learn', 'public' or 'none'")

    def __repr__(self) -> str:
        return changes_line(self)

    def parameters_of(self, rule: str) -> Mapping[str, Any]:
        """Return the parameters if they were given for this rule."""
        return self.parameters if self.rule == rule else {}

    @classmethod
    def of(cls, rule: str = AUTO, **options: Unpack[SettingOptions]) -> "Settings":
        """Create settings from keywords: own fields, fields of `Counting`, rule parameters."""
        parameters: dict[str, Any] = {**options}
        counting = {
            f.name: parameters.pop(f.name) for f in fields(Counting) if f.name in parameters
        }
        field_values = {f.name: parameters.pop(f.name) for f in fields(cls) if f.name in parameters}
        if counting:
            field_values["counting"] = Counting(**counting)
        _check_known(cls, rule, parameters)
        return cls(
            rule=rule,
            **{**field_values, "parameters": {**field_values.get("parameters", {}), **parameters}},
        )


def settings_of(settings: Settings | str | None) -> Settings:
    """Return settings, those of a rule by its name, or by None the defaults."""
    if settings is None or isinstance(settings, str):
        return Settings() if settings is None else Settings(rule=settings)
    if not isinstance(settings, Settings):
        raise InvalidParameter("settings", settings, "Settings, or the name of a rule")
    return settings


def _check_known(kind: type[Settings], rule: str, options: Mapping[str, Any]) -> None:
    own = set() if rule == AUTO else set(RULES[rule].parameters)
    settings = {f.name for f in (*fields(kind), *fields(Counting))}
    for name in sorted(options.keys() - own):
        rules_with_parameter = [each.name for each in RULES.values() if name in each.parameters]
        if rule == AUTO and rules_with_parameter:
            expected = f"a rule named with it, such as rule={rules_with_parameter[0]!r}"
            raise InvalidParameter(name, options[name], expected)
        raise UnknownOption(name, sorted(settings | own))


def _scale(scale: object) -> Scale | None:
    return scale if scale is None or isinstance(scale, Scale) else Scale.of_record(scale)


def _numbers(settings: Settings) -> None:
    for name in ("level", "threshold"):
        value = getattr(settings, name)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise InvalidParameter(name, value, "a number")
    named = settings.rho is None or settings.rho in ("learn", "public")
    if not (named or isinstance(settings.rho, int | float)):
        raise InvalidParameter("rho", settings.rho, "a number, 'learn', 'public' or 'none'")
    for name in ("weights", "reliability"):
        for reviewer, weight in (getattr(settings, name) or {}).items():
            if not isinstance(weight, int | float) or not 0 <= weight < float("inf"):
                quantity = "weight" if name == "weights" else name
                raise InvalidParameter(
                    f"the {quantity} of {reviewer}", weight, "a finite number ≥ 0"
                )


def _check_among(name: str, value: object, choices: tuple[object, ...]) -> None:
    if value not in choices:
        raise InvalidParameter(name, value, " or ".join(repr(item) for item in choices))
