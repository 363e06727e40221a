"""Check stated probabilities, and estimate systems, against people's votes."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

from witan.core.ballot import Ballot, BallotTable
from witan.core.estimation import Estimates
from witan.core.estimation import estimate as estimate_systems
from witan.core.holdout import CalibrationCheck, check_calibration
from witan.core.settings import Settings
from witan.errors import NothingToCount
from witan.service.ballots import BALLOTS, SECTION, BallotFormat, BallotParameters, Ballots, Unread
from witan.service.catalogue import operation, public
from witan.service.json_output import inherit_field_docs, reduce_to
from witan.service.parameters import Constraint, Doc, Parser
from witan.service.settings import COUNTING, COUNTING_DEFAULTS, IntervalLevel, RubricSetting
from witan.service.stored_sessions import SessionStore
from witan.service.worker_pool import check_wanted
from witan.version import __version__

DRAWS = "Draws"

MOST_SIZES = 10
"""Numbers of reviewers in one check."""


def _read_sizes(sizes: str | tuple[int, ...]) -> tuple[int, ...]:
    parts = sizes.split(",") if isinstance(sizes, str) else sizes
    numbers = tuple(int(part) for part in parts)
    if not 0 < len(numbers) <= MOST_SIZES or min(numbers) < 2:
        raise ValueError(sizes)
    return numbers


SIZES = Parser(_read_sizes, "whole numbers from 2 up, with commas between", data=tuple[int, ...])


@dataclass(frozen=True)
class CalibrateParameters(BallotFormat):
    """Ballots, and the reference for their probabilities."""

    defaults: ClassVar[Any] = COUNTING_DEFAULTS

    ballots: Annotated[
        Ballots | None,
        BALLOTS,
        Doc(
            "The text of a ballot file, or ballots as objects; by default the newest "
            "2,000 sessions of the history.",
            SECTION,
            "FILE|ID...",
            positional="words",
        ),
    ] = None
    against: Annotated[
        Literal["reviewers", "people", "truth"],
        Doc(
            "Compare with held-out reviewers, with people's ballots, or with those as the truth.",
            DRAWS,
        ),
    ] = "reviewers"
    reviewers: Annotated[
        tuple[int, ...] | None,
        SIZES,
        Doc(
            "Panel sizes to draw; by default 3, 5 and 9, as far as the ballots allow.",
            DRAWS,
            "NUMBER,NUMBER...",
        ),
    ] = None
    draws: Annotated[
        int, Constraint(ge=1, le=1_000), Doc("Panels to draw from each session.", DRAWS)
    ] = 20
    seed: Annotated[int, Constraint(ge=0), Doc("Seed of the draws.", DRAWS)] = 0
    rubric: RubricSetting = None
    prior: Annotated[
        Literal["public", "learn", "none"] | None,
        Doc(
            "Prior for the noise of reviewers: public, learned from at least fifty "
            "sessions, or none.",
            COUNTING,
            label="Noise prior",
        ),
    ] = None
    level: IntervalLevel = 0.95


@public
@inherit_field_docs
@dataclass(frozen=True, slots=True, repr=False)
class CalibrationResult(CalibrationCheck):
    """Stated probabilities beside observed frequencies.

    Parameters
    ----------
    witan
        Version of Witan that counted.
    not_read
        The lines that could not be read.
    scales
        How the grades were read, unless certainly as 1–10; one sentence each.
    """

    witan: str
    not_read: tuple[Unread, ...]
    scales: tuple[str, ...] = ()


@operation("POST /calibrate", tag="counting", pool="upload")
def calibrate(store: SessionStore, parameters: CalibrateParameters) -> CalibrationResult:
    """Check the calibration of probabilities, on held-out reviewers or people.

    Draws panels from each session, counts each alone, and reports how often the other reviewers
    agree with its probabilities: by tenth, with scores, for each panel size. Against people it also
    learns weights of reviewers. Nothing is stored and no model is called.
    """
    options: dict[str, Any] = {"rubric": parameters.rubric, "prior": parameters.prior}
    known_options = {name: value for name, value in options.items() if value is not None}
    settings = Settings.of(level=parameters.level, **known_options)
    ballots = parameters.ballots
    all_ballots: Iterable[Ballot]
    scales: tuple[str, ...] = ()
    if ballots is None:
        if not (all_ballots := store.history.recent_ballots()):
            raise NothingToCount(
                "the history has no ballot of real models; ask them a question, or import ballots"
            )
    else:
        all_ballots, scales = _read_scaled(ballots, parameters, settings)
    check = check_calibration(
        all_ballots,
        settings,
        against=parameters.against,
        reviewers=parameters.reviewers or (),
        draws=parameters.draws,
        seed=parameters.seed,
        check_wanted=check_wanted,
    )
    not_read = () if ballots is None else tuple(ballots.unread_lines)
    return reduce_to(CalibrationResult, check, witan=__version__, not_read=not_read, scales=scales)


def _read_scaled(
    ballots: Ballots, parameters: BallotFormat, settings: Settings
) -> tuple[Sequence[Ballot], tuple[str, ...]]:
    ballots_read = ballots.read(parameters, settings)
    if not isinstance(ballots_read, BallotTable):
        ballots_read = list(ballots_read)
    parts = [ballots_read] if isinstance(ballots_read, BallotTable) else ballots_read
    scales = dict.fromkeys([part.scale for part in parts])
    return ballots_read, tuple(
        [scale.sentence for scale in scales if scale is not None and not scale.is_plain]
    )


@dataclass(frozen=True)
class EstimateParameters(BallotParameters):
    """Ballots of a jury and of people, and the pass mark."""

    defaults: ClassVar[Any] = COUNTING_DEFAULTS

    pass_mark: Annotated[
        float | None,
        Constraint(ge=1, le=10),
        Doc("Estimate the pass rate at this grade, from 1 to 10.", COUNTING),
    ] = None
    rubric: RubricSetting = None
    level: IntervalLevel = 0.95


@public
@inherit_field_docs
@dataclass(frozen=True, slots=True, repr=False)
class EstimateResult(Estimates):
    """Means of systems, corrected by people's votes.

    Parameters
    ----------
    witan
        Version of Witan that counted.
    not_read
        The lines that could not be read.
    scales
        How the grades were read, unless certainly as 1–10; one sentence each.
    """

    witan: str
    not_read: tuple[Unread, ...]
    scales: tuple[str, ...] = ()


@operation("POST /estimate", tag="counting", pool="upload")
def estimate(_: object, parameters: EstimateParameters) -> EstimateResult:
    """Estimate systems from a jury's ballots, corrected by people's votes.

    Reports mean grades, pass rates and differences of two systems, with intervals, beside the
    numbers by the jury alone and by people alone. Without people's votes, pass rates are estimated
    from the panel alone, with the assumption stated. Nothing is stored and no model is called.
    """
    rubric = {} if parameters.rubric is None else {"rubric": parameters.rubric}
    settings = Settings.of(level=parameters.level, **rubric)  # type: ignore[arg-type]
    ballots = parameters.ballots
    all_ballots, scales = _read_scaled(ballots, parameters, settings)
    estimates = estimate_systems(all_ballots, settings, pass_mark=parameters.pass_mark)
    return reduce_to(
        EstimateResult,
        estimates,
        witan=__version__,
        not_read=tuple(ballots.unread_lines),
        scales=scales,
    )
