"""Show step by step how ballots lead to an outcome."""

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from witan.core.steps import Step
from witan.errors import MissingParameter, UnknownName
from witan.service.ballots import SECTION, Unread
from witan.service.catalogue import operation, public
from witan.service.json_output import OutcomeJson
from witan.service.operations.tally import RuleParameters
from witan.service.parameters import Doc
from witan.service.settings import COUNTING_DEFAULTS, BallotSettings
from witan.version import __version__


@dataclass(frozen=True)
class ExplainParameters(BallotSettings, RuleParameters):
    """Ballots, the session to explain, and settings for counting."""

    defaults: ClassVar[Any] = COUNTING_DEFAULTS

    session: Annotated[
        str | None,
        Doc("Session to explain; required if there are several.", SECTION),
    ] = None


@public
@dataclass(frozen=True, slots=True)
class OutcomeExplanation:
    """An outcome, and the steps to it.

    Parameters
    ----------
    witan
        The version that counted.
    outcome
        The outcome of the session.
    steps
        From the ballots as cast to the difference between the first two.
    not_read
        The lines that could not be read.
    without_effect
        Settings that the count never read, a sentence each.
    """

    witan: str
    outcome: OutcomeJson
    steps: tuple[Step, ...]
    not_read: tuple[Unread, ...]
    without_effect: tuple[str, ...]


@operation("explain", post="/explain", tag="counting", pool="upload")
def explain(_: object, parameters: ExplainParameters) -> OutcomeExplanation:
    """Show step by step how given ballots lead to a session's outcome.

    The ballots as cast, what recusal, rubric and safety gate changed, the numbers the rule reads,
    its arithmetic for the first two, and what the difference between them is worth.
    """
    # Loads numpy: the command's help does without.
    from witan.core.explanation import explain as explain_ballots

    settings, ballots = parameters.settings(parameters.rule), parameters.ballots
    try:
        explanation = explain_ballots(
            ballots.read(parameters, settings), settings, parameters.session
        )
    except MissingParameter as error:
        raise MissingParameter("session", None, error.expected) from None
    except UnknownName as error:
        if error.kind != "session":
            raise
        raise UnknownName("session of the ballots", error.name, error.known_names) from None
    unread_lines = tuple(ballots.unread_lines)
    unused_options = parameters.without_effect([parameters.rule])
    return OutcomeExplanation(
        __version__, explanation.outcome, explanation.steps, unread_lines, unused_options
    )
