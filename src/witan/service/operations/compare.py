"""Count ballots under every rule."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from witan.core.outcome import Leads
from witan.errors import UnknownName
from witan.service.ballots import SECTION, BallotParameters, Unread
from witan.service.catalogue import operation, public
from witan.service.json_output import OutcomeJson, reduce_to
from witan.service.parameters import Doc, Parser
from witan.service.settings import COUNTING, COUNTING_DEFAULTS, BallotSettings
from witan.version import __version__

if TYPE_CHECKING:
    from witan.core.comparison import Comparison


def _read_names(names: str | tuple[str, ...]) -> tuple[str, ...]:
    """Read a list or comma-separated names; each counts once."""
    parts = names.split(",") if isinstance(names, str) else names
    rule_names = tuple(dict.fromkeys(name.strip() for name in parts if name.strip()))
    if not rule_names:
        raise ValueError(names)
    return rule_names


NAMES = Parser(_read_names, "names of rules, with commas between", data=tuple[str, ...])


@dataclass(frozen=True)
class ComparedRules(BallotParameters):
    """Ballots, and the rules to compare."""

    rules: Annotated[
        tuple[str, ...] | None,
        NAMES,
        Doc(
            "Rules to compare; by default every rule that can count the ballots.",
            COUNTING,
            "NAME,NAME...",
        ),
    ] = None


@dataclass(frozen=True)
class CompareParameters(BallotSettings, ComparedRules):
    """Ballots, and settings for counting them under each rule."""

    defaults: ClassVar[Any] = COUNTING_DEFAULTS

    sessions: Annotated[
        tuple[str, ...],
        Doc(
            "Compare only this session; the others still count for what is learned.",
            SECTION,
            option="session",
        ),
    ] = ()


@dataclass(frozen=True, slots=True)
class ComparedSession:
    """One session under each rule.

    Parameters
    ----------
    session
        Its name.
    outcomes
        Rule to outcome.
    """

    session: str
    outcomes: Mapping[str, OutcomeJson]


@public
@dataclass(frozen=True, slots=True)
class RuleComparison:
    """The same sessions under several rules.

    Parameters
    ----------
    witan
        The version that counted.
    rules
        Rules that counted at least one session.
    skipped
        Rule to why it could count none.
    tau
        Mean over sessions of Kendall's τ-b between the rankings of two rules, in their order;
        null where it is never defined.
    leader_differs
        Sessions, counted by both rules, in which their leaders differ.
    same_leaders
        Sessions in which all rules that count them have the same leaders.
    leads
        Rule to who leads how often.
    stability
        Rule to the share of single ballots whose removal leaves its leaders as they were.
    n_sessions
        How many sessions were compared.
    sessions
        Each of them under each rule.
    not_read
        The lines that could not be read.
    without_effect
        Settings that no rule read, a sentence each.
    """

    witan: str
    rules: tuple[str, ...]
    skipped: Mapping[str, str]
    tau: tuple[tuple[float | None, ...], ...]
    leader_differs: tuple[tuple[int, ...], ...]
    same_leaders: int
    leads: Mapping[str, Leads]
    stability: Mapping[str, float | None]
    n_sessions: int
    sessions: tuple[ComparedSession, ...]
    not_read: tuple[Unread, ...]
    without_effect: tuple[str, ...]

    @property
    def comparison(self) -> "Comparison":
        """The same as `compare_rules` returns it."""
        from witan.core.comparison import Comparison

        return reduce_to(
            Comparison,
            self,
            sessions=tuple(each.session for each in self.sessions),
            outcomes={each.session: each.outcomes for each in self.sessions},
        )


@operation("compare", post="/compare", tag="counting", pool="upload")
def compare(_: object, parameters: CompareParameters) -> RuleComparison:
    """Count given ballots under every rule, side by side.

    Shows who leads under each rule, how alike the rankings are, in how many sessions the leader
    differs, how often it survives the loss of one ballot, and which rules cannot count these.
    """
    # Loads numpy: the command's help does without.
    from witan.core.comparison import compare_rules
    from witan.core.rules import RULES

    rule_names = RULES if parameters.rules is None else parameters.rules
    rules = [RULES[name] for name in rule_names if name in RULES]
    parameter_names = dict.fromkeys(name for rule in rules for name in rule.parameters)
    for name in parameters.parameters or ():
        if name not in parameter_names:
            raise UnknownName("parameter of the rules compared", name, parameter_names)
    settings, ballots = parameters.comparison_settings(), parameters.ballots
    try:
        comparison = compare_rules(
            ballots.read(parameters, settings),
            settings,
            parameters.rules,
            ballots.check_wanted,
            parameters.sessions or None,
        )
    except UnknownName as error:
        if error.kind != "session":
            raise
        raise UnknownName("session of the ballots", error.name, error.known_names) from None
    return reduce_to(
        RuleComparison,
        comparison,
        witan=__version__,
        n_sessions=len(comparison.sessions),
        sessions=tuple(
            ComparedSession(name, comparison.outcomes[name]) for name in comparison.sessions
        ),
        not_read=tuple(ballots.unread_lines),
        without_effect=parameters.without_effect(rule_names),
    )
