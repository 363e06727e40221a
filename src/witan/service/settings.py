"""Settings of counts, each declared once for every surface."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, Literal

from witan.errors import InvalidParameter
from witan.service.parameters import Constraint, Doc, Parameters, Parser, Scalar, given_values

# Loading these takes as long as a count: the help of a command does without.
if TYPE_CHECKING:
    from witan.core.rubric import Rubric
    from witan.core.settings import Settings

COUNTING, TIES = "Counting", "Ties and intervals"


def _read_rho(text: str) -> float | str:
    return text if text in ("learn", "public", "none") else float(text)


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


def _read_answers(
    text: str | Mapping[str, Mapping[str, str]],
) -> Mapping[str, Mapping[str, str]]:
    if not isinstance(text, str):
        return text
    from witan.files.ballots.records import parse_answers

    return parse_answers(text)


def _load_answers(path: str) -> Mapping[str, Mapping[str, str]]:
    from witan.files.ballots.records import load_answers

    return load_answers(path)


RHO = Parser(_read_rho, "learn, public, none or a number", numeric=True)

RUBRIC = Parser(
    _read_rubric, "the name of a rubric, or one as TOML", load=_load_rubric, suffix=".toml"
)

ANSWERS = Parser(
    _read_answers,
    "answers as JSON Lines",
    data=Mapping[str, Mapping[str, str]],
    load=_load_answers,
)

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
"""Values of settings that are not given."""


IntervalLevel = Annotated[
    float,
    Constraint(gt=0, lt=1),
    Doc("Confidence level of intervals.", COUNTING, label="Confidence level"),
]


@dataclass(frozen=True)
class CountingSettings(Parameters):
    """Weights and ties of a count.

    None stands for the default, or the configured value.
    """

    recusal: Annotated[
        Literal["before", "after", "off"] | None,
        Doc(
            "Remove a reviewer's own candidate before ranks are counted, after, or never.",
            COUNTING,
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
            "Compute how few ballots could end the lead.",
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
        Doc(
            "Tie-break for equal scores, instead of the rule's own.",
            TIES,
            label="Tie break",
        ),
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
            "Prior for reviewers' noise: public, or learned from at least fifty sessions.",
            TIES,
            label="Noise prior",
        ),
    ] = None


@dataclass(frozen=True, slots=True)
class BallotSettings(CountingSettings):
    """Settings for a count of given ballots; None is the default."""

    parameters: RuleParameterValues = None
    rubric: Annotated[
        object | None,
        RUBRIC,
        Doc("Rubric that weights the criteria.", COUNTING, "NAME|FILE.toml"),
    ] = None
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

    def without_effect(self, rules: Collection[str]) -> tuple[str, ...]:
        """List settings without effect on these rules, a sentence each."""
        names = []
        if self.reliability is not None and "weighted_borda" not in rules:
            names.append("reliability has no effect: only the rule weighted_borda reads it")
        if self.threshold is not None and self.ties != "intervals":
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
