"""The settings of a council, declared once for every surface: all None, as the council has them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from annotated_types import Ge, Gt, Le, Lt

from witan.service.parameters import Doc, Parameters, Parser, Scalar, given_values

DELIBERATION, COUNTING = "Deliberation", "Counting"
TIES, LIMITS = "Ties and intervals", "Time and money"


def parse_rho(text: str) -> float | str:
    """Read a shared error: a number, ``learn`` or ``none``."""
    return text if text in ("learn", "none") else float(text)


RHO = Parser(parse_rho, "learn, none or a number", numeric=True)

Switch = bool | None
Weight = Annotated[float, Ge(0)]
Weights = Mapping[str, Weight] | None
Seconds = Annotated[float | None, Gt(0)]


@dataclass(frozen=True, slots=True)
class JurySettings(Parameters):
    """How a jury reviews, counts and closes, and within which limits."""

    mode: Annotated[
        Literal["consensus", "best", "verdict"] | None,
        Doc(
            "End with one common answer, with the best answer, or by approving or rejecting.",
            DELIBERATION,
        ),
    ] = None
    rule: Annotated[
        str | None, Doc("Count ballots by this rule; `rules` lists them.", DELIBERATION)
    ] = None
    rubric: Annotated[
        str | None, Doc("Have answers graded by this rubric.", DELIBERATION, "NAME|FILE.toml")
    ] = None
    rubric_scoring: Annotated[
        Switch, Doc("Have reviewers grade by the rubric, or only rank.", DELIBERATION)
    ] = None
    rubric_weights: Annotated[
        Weights,
        Doc(
            "Weigh a criterion of the rubric.",
            DELIBERATION,
            "CRITERION=NUMBER",
            option="rubric-weight",
        ),
    ] = None
    holistic: Annotated[
        Switch, Doc("Have reviewers also give each answer one overall grade.", DELIBERATION)
    ] = None
    mirrored: Annotated[
        Switch,
        Doc("Ask every reviewer a second time, with the answers in reverse order.", DELIBERATION),
    ] = None
    review_rounds: Annotated[
        int | None,
        Ge(1),
        Le(2),
        Doc("With 2, reviewers see the others' grades and may revise.", DELIBERATION),
    ] = None
    stop_when_decided: Annotated[
        Switch, Doc("Stop waiting once no ballot could change the leader.", DELIBERATION)
    ] = None
    safety: Annotated[Switch, Doc("Pass answers through the safety gate.", DELIBERATION)] = None
    safety_cap: Annotated[
        float | None,
        Ge(0),
        Le(10),
        Doc("Highest grade of an answer that fails the safety gate.", DELIBERATION),
    ] = None
    synthesis: Annotated[
        Switch, Doc("Write a final answer, or end with the standings.", DELIBERATION)
    ] = None
    quorum: Annotated[
        int | None, Ge(1), Doc("Fewest ballots for which an outcome is declared.", DELIBERATION)
    ] = None

    rule_parameters: Annotated[
        Mapping[str, Scalar] | None,
        Doc(
            "Set a parameter of the rule, such as variant=roster.",
            COUNTING,
            "NAME=VALUE",
            option="param",
        ),
    ] = None
    recusal: Annotated[
        Literal["before", "after", "off"] | None,
        Doc(
            "Drop a reviewer's own candidate before or after places are counted, or never.",
            COUNTING,
        ),
    ] = None
    unranked: Annotated[
        Literal["skip", "last"] | None,
        Doc("Give candidates that a ballot leaves out no vote, or the places left.", COUNTING),
    ] = None
    weights: Annotated[
        Weights,
        Doc(
            "Weigh a reviewer's ballots; 1 unless given.",
            COUNTING,
            "REVIEWER=NUMBER",
            option="weight",
        ),
    ] = None
    reliability: Annotated[
        Weights,
        Doc(
            "Reliability of a reviewer, for the rule weighted_borda; learned unless given.",
            COUNTING,
            "REVIEWER=NUMBER",
        ),
    ] = None
    flips: Annotated[
        Switch, Doc("Search for the fewest ballots that would end the lead.", COUNTING)
    ] = None
    ties: Annotated[
        Literal["contrast", "intervals"] | None,
        Doc("Separate answers by the fitted contrast, or by whether intervals overlap.", TIES),
    ] = None
    level: Annotated[
        float | None, Gt(0), Lt(1), Doc("Confidence level of intervals and comparisons.", TIES)
    ] = None
    threshold: Annotated[
        float | None,
        Ge(0),
        Doc("Standard errors on each side, where `ties` is intervals.", TIES),
    ] = None
    tie_break: Annotated[
        Literal["none", "wins", "borda"] | None,
        Doc("Separate equal scores by this instead of by the rule's own way.", TIES),
    ] = None
    rho: Annotated[
        float | str | None,
        RHO,
        Doc(
            "Error that all reviewers share, learned where people judged the same.",
            TIES,
            "learn|none|NUMBER",
        ),
    ] = None
    prior: Annotated[
        Literal["none", "learn"] | None,
        Doc("Borrow strength from the other sessions of the history, or do not.", TIES),
    ] = None

    max_cost_usd: Annotated[
        float | None,
        Ge(0),
        Doc(
            "US dollars to spend; no call is made that could exceed them.",
            LIMITS,
            option="max-cost",
        ),
    ] = None
    max_tokens: Annotated[int | None, Ge(1), Doc("Most tokens in one reply.", LIMITS)] = None
    call_seconds: Annotated[Seconds, Doc("Seconds for one call, retries included.", LIMITS)] = None
    stage_seconds: Annotated[
        Seconds, Doc("Seconds for one round of answers or reviews.", LIMITS)
    ] = None
    session_seconds: Annotated[Seconds, Doc("Seconds for the whole session.", LIMITS)] = None
    attempts: Annotated[
        int | None, Ge(1), Doc("Attempts at each call, the first one included.", LIMITS)
    ] = None
    hedge_seconds: Annotated[
        Seconds, Doc("Seconds of silence after which a call is made a second time.", LIMITS)
    ] = None

    def given(self) -> dict[str, Any]:
        """Return the settings that were given, by name, as the configuration takes them."""
        return given_values(self)


@dataclass(frozen=True, slots=True)
class CouncilSettings(JurySettings):
    """How a council answers, reviews, counts and closes, and within which limits."""

    self_review: Annotated[
        Switch,
        Doc(
            "Show reviewers their own answers, too, though their grades for them never count.",
            DELIBERATION,
        ),
    ] = None
    debate_rounds: Annotated[
        int | None,
        Ge(0),
        Le(5),
        Doc("Rounds in which members see the others' answers and revise.", DELIBERATION),
    ] = None
    enough: Annotated[
        int | None,
        Ge(2),
        Doc("Wait only `grace_seconds` more once this many have answered.", LIMITS),
    ] = None
    grace_seconds: Annotated[
        float | None, Ge(0), Doc("Seconds to wait for stragglers, with `enough`.", LIMITS)
    ] = None
