"""Count ballots under one rule, step by step, or under every rule."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from witan.core.display import Step
from witan.core.outcome import Leads
from witan.errors import InvalidParameter, MissingParameter, UnknownName, UnsuitableBallots
from witan.service.ballots import SECTION, BallotParameters, Unread
from witan.service.catalogue import operation, public
from witan.service.json_output import OutcomeJson, reduce_to
from witan.service.parameters import Doc, Parser
from witan.service.settings import AUTO, COUNTING, COUNTING_DEFAULTS, BallotSettings
from witan.version import __version__

if TYPE_CHECKING:
    from witan.core.comparison import Comparison
    from witan.core.tally import OutcomeColumn


@dataclass(frozen=True)
class RuleParameters(BallotParameters):
    """Ballots, and the rule to count them by."""

    rule: Annotated[
        str,
        Doc("Count by this rule; `witan rules` lists them.", COUNTING, brief="`rules` lists them"),
    ] = AUTO


@dataclass(frozen=True)
class TallyParameters(BallotSettings, RuleParameters):
    """Ballots, and settings for counting them."""

    defaults: ClassVar[Any] = COUNTING_DEFAULTS

    sessions: Annotated[
        tuple[str, ...],
        Doc(
            "Show only this session; the others still count for what is learned.",
            SECTION,
            option="session",
            brief="",
        ),
    ] = ()


@dataclass(frozen=True, slots=True)
class UncountedSession:
    """A session with ballots unsuitable for the rule."""

    session: Annotated[str | None, Doc("Its name.")]
    problem: Annotated[str, Doc("Why it cannot be counted, and what can be done.")]


@public
@dataclass(frozen=True, slots=True)
class Tally:
    """The outcomes of sessions."""

    witan: Annotated[str, Doc("Version of Witan that counted.")]
    sessions: Annotated[
        tuple[OutcomeJson, ...], Doc("Outcomes, in the order of the sessions' first ballots.")
    ]
    not_counted: Annotated[tuple[UncountedSession, ...], Doc("Sessions that could not be counted.")]
    not_read: Annotated[tuple[Unread, ...], Doc("The lines that could not be read.")]
    without_effect: Annotated[
        tuple[str, ...], Doc("Settings that the count never read, a sentence each.")
    ]


@operation("POST /tally", tag="counting", pool="upload")
def tally(_: object, parameters: TallyParameters) -> Tally:
    """Count given ballots: who leads, and how sure that is.

    Reports standings with intervals, ties, and how many ballots could end the lead. Nothing is
    stored and no model is called.
    """
    problems: list[UnsuitableBallots] = []
    columns = count_sessions(parameters, problems.append)
    outcomes = tuple([batch[column] for batch, column in columns])
    return Tally(
        __version__,
        outcomes,
        tuple(UncountedSession(each.session, str(each)) for each in problems),
        tuple(parameters.ballots.unread_lines),
        parameters.without_effect([parameters.rule]),
    )


def count_sessions(
    parameters: TallyParameters, on_unsuitable: Callable[[UnsuitableBallots], None]
) -> Iterator["OutcomeColumn"]:
    """Count session by session, in batches of columns.

    All ballots are read before the first count.
    """
    # Imports numpy, which the command's help does not need.
    from witan.core.rules import RULES
    from witan.core.tally import tally_columns

    settings = parameters.settings(parameters.rule)
    if (
        parameters.sessions
        and parameters.rule != AUTO
        and RULES[parameters.rule].needs == "history"
    ):
        expected = f"none with the rule {parameters.rule}, which rates over all sessions at once"
        raise InvalidParameter("sessions", ", ".join(parameters.sessions), expected)
    ballots, sessions = parameters.ballots, parameters.sessions or None
    all_ballots = ballots.read(parameters, settings)
    columns = tally_columns(all_ballots, settings, on_unsuitable, sessions, ballots.check_wanted)
    for name in parameters.sessions:
        if name not in ballots.sessions:
            raise UnknownName("session of the ballots", name, ballots.sessions)
    return columns


@dataclass(frozen=True)
class ExplainParameters(BallotSettings, RuleParameters):
    """Ballots, the session to explain, and settings for counting."""

    defaults: ClassVar[Any] = COUNTING_DEFAULTS

    session: Annotated[
        str | None, Doc("Session to explain; required if there are several.", SECTION)
    ] = None


@public
@dataclass(frozen=True, slots=True)
class OutcomeExplanation:
    """An outcome, and the steps to it."""

    witan: Annotated[str, Doc("Version of Witan that counted.")]
    outcome: Annotated[OutcomeJson, Doc("Outcome of the session.")]
    steps: Annotated[
        tuple[Step, ...], Doc("From the ballots as cast to the difference of the first two.")
    ]
    not_read: Annotated[tuple[Unread, ...], Doc("The lines that could not be read.")]
    without_effect: Annotated[
        tuple[str, ...], Doc("Settings that the count never read, a sentence each.")
    ]


@operation("POST /explain", tag="counting", pool="upload")
def explain(_: object, parameters: ExplainParameters) -> OutcomeExplanation:
    """Show step by step how given ballots lead to a session's outcome.

    Shows the ballots as cast, the changes by recusal, rubric and safety gate, the numbers that the
    rule reads, its arithmetic for the first two, and whether their difference is more than noise.
    """
    # Imports numpy, which the command's help does not need.
    from witan.core.explanation import explain as explain_ballots

    settings, ballots = parameters.settings(parameters.rule), parameters.ballots
    try:
        explanation = explain_ballots(
            ballots.read(parameters, settings), settings, parameters.session
        )
    except MissingParameter as error:
        raise MissingParameter("session", None, error.expected) from None
    unread_lines = tuple(ballots.unread_lines)
    unused_options = parameters.without_effect([parameters.rule])
    return OutcomeExplanation(
        __version__, explanation.outcome, explanation.steps, unread_lines, unused_options
    )


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
            brief="",
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
            brief="",
        ),
    ] = ()


@dataclass(frozen=True, slots=True)
class ComparedSession:
    """One session under each rule."""

    session: Annotated[str, Doc("Its name.")]
    outcomes: Annotated[Mapping[str, OutcomeJson], Doc("Outcome by rule.")]


@public
@dataclass(frozen=True, slots=True)
class RuleComparison:
    """The same sessions under several rules."""

    witan: Annotated[str, Doc("Version of Witan that counted.")]
    rules: Annotated[tuple[str, ...], Doc("Rules that counted at least one session.")]
    skipped: Annotated[Mapping[str, str], Doc("Reason for counting none, by rule.")]
    tau: Annotated[
        tuple[tuple[float | None, ...], ...],
        Doc(
            "Mean over sessions of Kendall's τ-b between the rankings of two rules; "
            "null: never defined."
        ),
    ]
    leader_differs: Annotated[
        tuple[tuple[int, ...], ...], Doc("Sessions that both rules count, with different leaders.")
    ]
    same_leaders: Annotated[
        int, Doc("Sessions in which all rules that count them agree on the leaders.")
    ]
    leads: Annotated[Mapping[str, Leads], Doc("Leaders and how often each leads, by rule.")]
    stability: Annotated[
        Mapping[str, float | None],
        Doc(
            "Rule to the share of ballots whose removal, one at a time, leaves its leaders as "
            "they were."
        ),
    ]
    n_sessions: Annotated[int, Doc("Sessions compared.")]
    sessions: Annotated[tuple[ComparedSession, ...], Doc("Each session under each rule.")]
    not_read: Annotated[tuple[Unread, ...], Doc("The lines that could not be read.")]
    without_effect: Annotated[tuple[str, ...], Doc("Settings that no rule read, a sentence each.")]

    @property
    def comparison(self) -> "Comparison":
        """The comparison as `compare_rules` returns it."""
        from witan.core.comparison import Comparison

        return reduce_to(
            Comparison,
            self,
            sessions=tuple(each.session for each in self.sessions),
            outcomes={each.session: each.outcomes for each in self.sessions},
        )


@operation("POST /compare", tag="counting", pool="upload")
def compare(_: object, parameters: CompareParameters) -> RuleComparison:
    """Count given ballots under every rule, side by side.

    Shows who leads under each rule, how alike the rankings are, in how many sessions the leader
    differs, how often it survives the loss of one ballot, and which rules cannot count these.
    """
    # Imports numpy, which the command's help does not need.
    from witan.core.comparison import compare_rules
    from witan.core.rules import RULES

    rule_names = RULES if parameters.rules is None else parameters.rules
    rules = [RULES[name] for name in rule_names if name in RULES]
    parameter_names = dict.fromkeys(name for rule in rules for name in rule.parameters)
    for name in parameters.parameters or ():
        if name not in parameter_names:
            raise UnknownName("parameter of the rules compared", name, parameter_names)
    settings, ballots = parameters.comparison_settings(), parameters.ballots
    comparison = compare_rules(
        ballots.read(parameters, settings),
        settings,
        parameters.rules,
        ballots.check_wanted,
        parameters.sessions or None,
    )
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
