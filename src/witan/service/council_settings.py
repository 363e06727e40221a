"""Settings of councils and juries, each declared once for every surface."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from witan.service.parameters import Constraint, Doc, Parameters, Parser, given_values
from witan.service.settings import CountingSettings, RuleParameterValues, Switch, Weights

DELIBERATION, LIMITS = "Deliberation", "Time and money"


def _read_schema(text: str | Mapping[str, Any]) -> str:
    return text if isinstance(text, str) else json.dumps(text, ensure_ascii=False)


def _load_schema(path: str) -> str:
    from pathlib import Path

    return Path(path).read_text("utf-8")


SCHEMA = Parser(
    _read_schema, "a JSON Schema", data=Mapping[str, Any], load=_load_schema, suffix=".json"
)

Seconds = Annotated[float | None, Constraint(gt=0)]


@dataclass(frozen=True)
class ReviewSettings(Parameters):
    """Settings of reviews; None is the configured value."""

    rule: Annotated[
        str | None, Doc("Count ballots by this rule; `rules` lists them.", DELIBERATION)
    ] = None
    rubric: Annotated[
        str | None, Doc("Have answers graded by this rubric.", DELIBERATION, "NAME|FILE.toml")
    ] = None
    rubric_scoring: Annotated[
        Switch,
        Doc(
            "Ask reviewers to grade by the rubric, or only to rank.",
            DELIBERATION,
            label="Grades by the rubric",
        ),
    ] = None
    rubric_weights: Annotated[
        Weights,
        Doc(
            "Weigh a criterion of the rubric.",
            DELIBERATION,
            "CRITERION=NUMBER",
            option="rubric-weight",
            label="Weights of criteria",
        ),
    ] = None
    holistic: Annotated[
        Switch,
        Doc(
            "Have reviewers also give each answer one overall grade.",
            DELIBERATION,
            label="Overall grade",
        ),
    ] = None
    mirrored: Annotated[
        Switch,
        Doc(
            "Ask every reviewer a second time, with the answers in reverse order.",
            DELIBERATION,
            label="Mirrored reviews",
        ),
    ] = None
    pairs: Annotated[
        int | None,
        Constraint(ge=1),
        Doc(
            "Have every reviewer compare pairs, at most so many, each in both orders, instead of "
            "one sheet.",
            DELIBERATION,
            label="Pairs per reviewer",
        ),
    ] = None
    review_rounds: Annotated[
        int | None,
        Constraint(ge=1, le=2),
        Doc("With 2, reviewers see the others' grades and may revise.", DELIBERATION),
    ] = None
    spend: Annotated[
        Literal["all", "until_decided", "adaptive"] | None,
        Doc(
            "Ask every reviewer; stop once no ballot could change the leader; or ask "
            "one more only while it is too close to call.",
            DELIBERATION,
            label="Reviewers to ask",
        ),
    ] = None
    safety: Annotated[
        Switch, Doc("Check answers with the safety gate.", DELIBERATION, label="Safety gate")
    ] = None
    safety_cap: Annotated[
        float | None,
        Constraint(ge=0, le=10),
        Doc(
            "Highest grade of an answer that fails the safety gate.",
            DELIBERATION,
            label="Highest grade of unsafe answers",
        ),
    ] = None
    quorum: Annotated[
        int | None,
        Constraint(ge=1),
        Doc("Minimum number of ballots for an outcome.", DELIBERATION),
    ] = None

    rule_parameters: RuleParameterValues = None


@dataclass(frozen=True)
class AnswerSettings(Parameters):
    """Settings of the final answer; None is the configured value."""

    mode: Annotated[
        Literal["consensus", "best", "verdict"] | None,
        Doc(
            "End with a joint answer, with the best answer, or by approving or rejecting.",
            DELIBERATION,
            label="Kind of final answer",
        ),
    ] = None
    synthesis: Annotated[
        Switch,
        Doc(
            "Write a final answer, or end with the standings.",
            DELIBERATION,
            label="Write a final answer",
        ),
    ] = None
    json_schema: Annotated[
        str | None,
        SCHEMA,
        Doc("JSON Schema for the final answer.", DELIBERATION, "SCHEMA.json"),
    ] = None


@dataclass(frozen=True)
class LimitSettings(Parameters):
    """Limits on time, attempts and money; None is the configured one."""

    max_cost_usd: Annotated[
        float | None,
        Constraint(ge=0),
        Doc(
            "Cost ceiling in US dollars; no call is made that could exceed it.",
            LIMITS,
            option="max-cost",
            label="Cost ceiling in US dollars",
        ),
    ] = None
    max_calls: Annotated[
        int | None,
        Constraint(ge=0),
        Doc("Ceiling of calls, repeated ones included.", LIMITS, label="Ceiling of calls"),
    ] = None
    max_tokens: Annotated[
        int | None,
        Constraint(ge=1),
        Doc("Maximum tokens per reply.", LIMITS, label="Most tokens per reply"),
    ] = None
    call_seconds: Annotated[
        Seconds,
        Doc("Timeout of one call in seconds, including retries.", LIMITS, label="Seconds per call"),
    ] = None
    stage_seconds: Annotated[
        Seconds,
        Doc(
            "Timeout of one round of answers or reviews, in seconds.",
            LIMITS,
            label="Seconds per round",
        ),
    ] = None
    session_seconds: Annotated[
        Seconds,
        Doc("Timeout of the whole session, in seconds.", LIMITS, label="Seconds for the session"),
    ] = None
    attempts: Annotated[
        int | None,
        Constraint(ge=1),
        Doc("Maximum attempts per call.", LIMITS, label="Attempts per call"),
    ] = None
    hedge_seconds: Annotated[
        Seconds,
        Doc(
            "Seconds of silence before a second, parallel call.",
            LIMITS,
            label="Seconds before a second call",
        ),
    ] = None


@dataclass(frozen=True, slots=True)
class JudgingSettings(LimitSettings, CountingSettings, ReviewSettings):
    """Settings of judging: reviews, count and limits."""

    def collect_values(self) -> dict[str, Any]:
        """Return the given settings by their configured names."""
        return given_values(self)


@dataclass(frozen=True, slots=True)
class JurySettings(AnswerSettings, JudgingSettings):
    """Settings of a jury: those of judging, and the final answer."""


@dataclass(frozen=True, slots=True)
class CouncilSettings(JurySettings):
    """Settings of a council: those of a jury, and of the answers."""

    self_review: Annotated[
        Switch,
        Doc(
            "Also show reviewers their own answer; their grade for it never counts.",
            DELIBERATION,
            label="Own answers on the sheet",
        ),
    ] = None
    debate_rounds: Annotated[
        int | None,
        Constraint(ge=0, le=5),
        Doc("Rounds in which members see the others' answers and revise.", DELIBERATION),
    ] = None
    enough: Annotated[
        int | None,
        Constraint(ge=2),
        Doc(
            "Once this many members have answered, wait only `grace_seconds` more.",
            LIMITS,
            label="Enough answers",
        ),
    ] = None
    grace_seconds: Annotated[
        float | None,
        Constraint(ge=0),
        Doc(
            "Seconds to wait for stragglers, with `enough`.", LIMITS, label="Seconds for stragglers"
        ),
    ] = None
