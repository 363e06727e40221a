"""Count ballots under one rule."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from witan.errors import InvalidParameter, UnknownName, UnsuitableBallots
from witan.service.ballots import SECTION, BallotParameters, Unread
from witan.service.catalogue import operation, public
from witan.service.json_output import OutcomeJson
from witan.service.parameters import Doc
from witan.service.settings import AUTO, COUNTING, COUNTING_DEFAULTS, BallotSettings
from witan.version import __version__

if TYPE_CHECKING:
    from witan.core.tally import OutcomeColumn


@dataclass(frozen=True)
class RuleParameters(BallotParameters):
    """Ballots, and the rule to count them by."""

    rule: Annotated[str, Doc("Count by this rule; `witan rules` lists them.", COUNTING)] = AUTO


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
        ),
    ] = ()


@dataclass(frozen=True, slots=True)
class UncountedSession:
    """A session with ballots unsuitable for the rule.

    Parameters
    ----------
    session
        Its name.
    problem
        Why it cannot be counted, and what can be done.
    """

    session: str | None
    problem: str


@public
@dataclass(frozen=True, slots=True)
class Tally:
    """The outcomes of sessions.

    Parameters
    ----------
    witan
        The version that counted.
    sessions
        Outcomes, in the order of the sessions' first ballots.
    not_counted
        The sessions that could not be counted.
    not_read
        The lines that could not be read.
    without_effect
        Settings that the count never read, a sentence each.
    """

    witan: str
    sessions: tuple[OutcomeJson, ...]
    not_counted: tuple[UncountedSession, ...]
    not_read: tuple[Unread, ...]
    without_effect: tuple[str, ...]


@operation("tally", post="/tally", tag="counting", pool="upload")
def tally(_: object, parameters: TallyParameters) -> Tally:
    """Count given ballots: who leads, and how sure that is.

    Standings with intervals, ties, and how many ballots could end the lead. Nothing is stored and
    no model is called.
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
    parameters: TallyParameters,
    on_unsuitable: Callable[[UnsuitableBallots], None],
) -> Iterator["OutcomeColumn"]:
    """Count session by session, in batches of columns.

    All ballots are read before the first count.
    """
    # Loads numpy: the command's help does without.
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
