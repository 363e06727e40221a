"""Estimate systems by a jury, corrected by people's votes."""

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from witan.core.estimation import Estimates
from witan.core.estimation import estimate as estimate_systems
from witan.core.settings import Settings
from witan.service.ballots import BallotParameters, Unread
from witan.service.catalogue import operation, public
from witan.service.json_output import inherit_field_docs, reduce_to
from witan.service.parameters import Constraint, Doc
from witan.service.settings import COUNTING, COUNTING_DEFAULTS, RUBRIC, IntervalLevel
from witan.version import __version__


@dataclass(frozen=True)
class EstimateParameters(BallotParameters):
    """Ballots of a jury and of people, and the pass mark."""

    defaults: ClassVar[Any] = COUNTING_DEFAULTS

    pass_mark: Annotated[
        float | None,
        Constraint(ge=1, le=10),
        Doc("Estimate the pass rate at this grade, from 1 to 10.", COUNTING),
    ] = None
    rubric: Annotated[
        object | None,
        RUBRIC,
        Doc("Rubric that weights the criteria.", COUNTING, "NAME|FILE.toml"),
    ] = None
    level: IntervalLevel = 0.95


@public
@inherit_field_docs
@dataclass(frozen=True, slots=True, repr=False)
class EstimateResult(Estimates):
    """Means of systems, corrected by people's votes.

    Parameters
    ----------
    witan
        The version that counted.
    not_read
        The lines that could not be read.
    """

    witan: str
    not_read: tuple[Unread, ...]


@operation("estimate", post="/estimate", tag="counting", pool="upload")
def estimate(_: object, parameters: EstimateParameters) -> EstimateResult:
    """Estimate systems from a jury's ballots, corrected by people's votes.

    Mean grades, pass rates and differences of two systems, each with its interval, beside the
    jury's uncorrected number and that of people alone. Without people's votes, pass rates are
    estimated from the panel alone, with the assumption stated. Nothing is stored and no model is
    called.
    """
    rubric = {} if parameters.rubric is None else {"rubric": parameters.rubric}
    settings = Settings.of(level=parameters.level, **rubric)  # type: ignore[arg-type]
    ballots = parameters.ballots
    estimates = estimate_systems(
        ballots.read(parameters, settings), settings, pass_mark=parameters.pass_mark
    )
    return reduce_to(
        EstimateResult, estimates, witan=__version__, not_read=tuple(ballots.unread_lines)
    )
