"""Settings of counts, juries and councils, each declared once; their places."""

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, Literal

from witan.errors import InvalidParameter
from witan.service.parameters import Constraint, Doc, Parameters, Parser, Scalar, given_values

if TYPE_CHECKING:
    from witan.core.rubric import Rubric
    from witan.core.settings import Settings


Key = tuple[str, ...]
"""The path of a value: ``("limits", "call_seconds")``."""

OPEN_TABLES: tuple[Key, ...] = (
    ("rule_parameters",),
    ("rubric_weights",),
    ("counting", "weights"),
    ("counting", "reliability"),
)
"""Tables with user-defined keys: parameters of a rule, criteria, reviewers."""

NAME_TABLES: tuple[Key, ...] = (("aliases",), ("families",), ("price",))
"""Tables whose keys are models, families or seats: too long for the name of a variable."""

SEATS: tuple[Key, ...] = (("members",), ("jury",), ("chairmen",))
"""Settings that are lists of seats."""

PROFILES = "profiles"

TOKENS: Key = ("serve", "tokens")

PLAIN_TABLES = ("limits", "counting", "history", "serve")
"""Tables of plain values."""

COUNTING, TIES = "Counting", "Ties and intervals"

Switch = bool | None

Weights = Mapping[str, Annotated[float, Constraint(ge=0)]] | None

RuleParameterValues = Annotated[
    Mapping[str, Scalar] | None,
    Doc(
        "Set a parameter of the rule, such as variant=roster.",
        COUNTING,
        "NAME=VALUE",
        option="param",
        label="Parameters of the rule",
    ),
]

AUTO = "auto"

COUNTING_DEFAULTS: Mapping[str, Any] = MappingProxyType(
    {
        "rule": AUTO,
        "recusal": "before",
        "unranked": "skip",
        "rubric": "general",
        "kind": "all",
        "flips": "yes",
        "ties": "contrast",
        "level": 0.95,
        "threshold": 1.96,
        "rho": "learn",
        "prior": "public",
    }
)
"""Defaults of the count."""

IntervalLevel = Annotated[
    float,
    Constraint(gt=0, lt=1),
    Doc("Confidence level of intervals.", COUNTING, label="Confidence level"),
]

DELIBERATION, LIMITS = "Deliberation", "Time and money"

Seconds = Annotated[float | None, Constraint(gt=0)]


def strip_profile(key: Key) -> Key:
    """Return a key without its profile."""
    return key[2:] if key[0] == PROFILES else key


def dotted_key(key: Key) -> str:
    """Return a key as it is written: ``limits.call_seconds``."""
    return ".".join(key)


# Imported on use: loading these takes as long as a count, and help does not need them.


def _read_rubric(text: str) -> "Rubric":
    """Find a rubric by name, or parse one from text."""
    from witan.core.rubric import find_rubric

    if "=" not in text:
        return find_rubric(text.strip())
    from witan.files.rubric_toml import parse_rubric

    return parse_rubric(text)


def _load_rubric(path: str) -> "Rubric":
    from witan.files.rubric_toml import load_rubric

    return load_rubric(path)


def _read_answers(text: str | Mapping[str, Mapping[str, str]]) -> Mapping[str, Mapping[str, str]]:
    if not isinstance(text, str):
        return text
    from witan.files.ballots.records import parse_answers

    return parse_answers(text)


def _load_answers(path: str) -> Mapping[str, Mapping[str, str]]:
    from witan.files.ballots.records import load_answers

    return load_answers(path)


RHO = Parser(
    lambda text: text if text in ("learn", "public", "none") else float(text),
    "learn, public, none or a number",
    numeric=True,
)

RUBRIC = Parser(
    _read_rubric, "the name of a rubric, or one as TOML", load=_load_rubric, suffix=".toml"
)

ANSWERS = Parser(
    _read_answers, "answers as JSON Lines", data=Mapping[str, Mapping[str, str]], load=_load_answers
)


RubricSetting = Annotated[
    object | None, RUBRIC, Doc("Rubric that weights the criteria.", COUNTING, "NAME|FILE.toml")
]


@dataclass(frozen=True)
class CountingSettings(Parameters):
    """Weights and ties of a count.

    None means the default, or the configured value.
    """

    recusal: Annotated[
        Literal["before", "after", "off"] | None,
        Doc(
            "Remove a reviewer's own candidate before ranks are counted, after, or never.", COUNTING
        ),
    ] = None
    unranked: Annotated[
        Literal["skip", "last"] | None,
        Doc(
            "Give unranked candidates no vote, or the remaining places.",
            COUNTING,
            label="Unranked candidates",
        ),
    ] = None
    weights: Annotated[
        Weights,
        Doc(
            "Weight of a reviewer's ballots; default 1.",
            COUNTING,
            "REVIEWER=NUMBER",
            option="weight",
            label="Weights of reviewers",
        ),
    ] = None
    reliability: Annotated[
        Weights,
        Doc(
            "Reliability of a reviewer for weighted_borda; learned by default.",
            COUNTING,
            "REVIEWER=NUMBER",
            label="Reliability of reviewers",
        ),
    ] = None
    flips: Annotated[
        Switch,
        Doc(
            "Find the fewest ballots that could end the lead.",
            COUNTING,
            label="Search for the ballots that would end the lead",
        ),
    ] = None
    ties: Annotated[
        Literal["contrast", "intervals"] | None,
        Doc("Test differences by the fitted contrast, or by overlapping intervals.", TIES),
    ] = None
    level: Annotated[
        float | None,
        Constraint(gt=0, lt=1),
        Doc("Confidence level of intervals and comparisons.", TIES, label="Confidence level"),
    ] = None
    threshold: Annotated[
        float | None,
        Constraint(ge=0),
        Doc(
            "Half-width of intervals in standard errors, if `ties` is intervals.",
            TIES,
            label="Half-width of intervals",
        ),
    ] = None
    tie_break: Annotated[
        Literal["none", "wins", "borda"] | None,
        Doc("Tie-break for equal scores, instead of the rule's own.", TIES),
    ] = None
    rho: Annotated[
        float | str | None,
        RHO,
        Doc(
            "Error shared by all models: learned from people's votes if possible, else public.",
            TIES,
            "learn|public|none|NUMBER",
            label="Shared error of reviewers",
        ),
    ] = None
    prior: Annotated[
        Literal["public", "learn", "none"] | None,
        Doc(
            "Prior for reviewers' noise: public, learned from at least fifty sessions, or none.",
            TIES,
            label="Noise prior",
        ),
    ] = None


@dataclass(frozen=True, slots=True)
class BallotSettings(CountingSettings):
    """Settings for a count of given ballots; None is the default."""

    parameters: RuleParameterValues = None
    rubric: RubricSetting = None
    kind: Annotated[
        Literal["all", "model", "human"] | None,
        Doc("Count only the ballots of models, or of people.", COUNTING, label="Ballots of"),
    ] = None
    answers: Annotated[
        Mapping[str, Mapping[str, str]] | None,
        ANSWERS,
        Doc(
            "Answers for the safety gate (session, candidate, text); one that fails cannot win.",
            COUNTING,
            "FILE.jsonl",
            label="Answers for the safety gate",
        ),
    ] = None

    def count_options(self) -> dict[str, Any]:
        """Return the given settings, by the names of `Settings.of`."""
        ballot_settings = {field.name for field in fields(BallotSettings)}
        values = {
            name: value for name, value in given_values(self).items() if name in ballot_settings
        }
        if "answers" in values:
            from witan.core.gate import Gate
            from witan.core.safety import check

            answers = values.pop("answers")
            values["gates"] = {name: Gate.of(texts, check) for name, texts in answers.items()}
        return values

    def without_effect(self, rules: Collection[str], ties: str = "contrast") -> tuple[str, ...]:
        """List settings without effect on these rules, a sentence each.

        `ties`: the default test of differences.
        """
        names = []
        if self.reliability is not None and "weighted_borda" not in rules:
            names.append("reliability has no effect: only the rule weighted_borda reads it")
        if self.threshold is not None and (self.ties or ties) != "intervals":
            names.append("threshold has no effect: only ties by intervals read it")
        return tuple(names)

    def settings(self, rule: str | None = None) -> "Settings":
        """Make the settings of a count."""
        if rule in (None, AUTO) and self.parameters:
            names_text = ", ".join(self.parameters)
            expected = f"a rule to go with it, in place of {AUTO}"
            raise InvalidParameter("parameters", names_text, expected)
        return self.comparison_settings(rule or AUTO)

    def comparison_settings(self, rule: str = AUTO) -> "Settings":
        """Build the settings for a count under several rules.

        Each rule gets its own parameters.
        """
        from witan.core.settings import Settings

        return Settings.of(rule, **self.count_options())


SCHEMA = Parser(
    lambda text: text if isinstance(text, str) else json.dumps(text, ensure_ascii=False),
    "a JSON Schema",
    data=Mapping[str, Any],
    load=lambda path: Path(path).read_text("utf-8-sig"),
    suffix=".json",
)


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
            "Have every reviewer compare at most this many pairs, each in both orders, instead of "
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
        int | None, Constraint(ge=1), Doc("Minimum number of ballots for an outcome.", DELIBERATION)
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
        str | None, SCHEMA, Doc("JSON Schema for the final answer.", DELIBERATION, "SCHEMA.json")
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
