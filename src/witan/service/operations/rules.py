"""Lists of voting rules and rubrics."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from witan.core.rubric import RUBRICS, Ceiling, Criterion, find_rubric
from witan.core.rules import RULES
from witan.service.catalogue import operation, public
from witan.service.json_output import reduce_to
from witan.service.parameters import Doc, Parameters, Scalar

AUTO = (
    "auto is not a rule: it chooses one of two rules for each session.",
    "It uses calibrated if at least two ballots grade at least two candidates and not all of "
    "them are flat; otherwise borda. The outcome says which, and why.",
    "It does not switch to schulze or kemeny at ten reviewers, as is sometimes advised: over "
    "six kinds of simulated noise, at 3 to 15 reviewers, these find the true first no more often. "
    "What they gain in Mallows' model they lose in Plackett and Luce's, and nobody knows which of "
    "the two fits a council.",
)


@dataclass(frozen=True, slots=True)
class RulesParameters(Parameters):
    """Rules to list."""

    name: Annotated[
        str | None,
        Doc(
            "One rule; `auto` shows how a rule is chosen.",
            metavar="NAME",
            positional="one",
            brief="",
        ),
    ] = None


@dataclass(frozen=True, slots=True)
class RuleEntry:
    """A rule and its provenance."""

    name: Annotated[str, Doc("Its name, as in `rule`.")]
    needs: Annotated[str, Doc("What it reads: rankings, grades, or a whole history.")]
    summary: Annotated[str, Doc("What its score is.")]
    use_when: Annotated[str, Doc("When to use it.")]
    evidence: Annotated[str, Doc("Evidence for and against it.")]
    source: Annotated[str, Doc("Its publication.")]
    parameters: Annotated[
        Mapping[str, Scalar | None], Doc("Its own parameters, and their defaults.")
    ]
    satisfies: Annotated[tuple[str, ...], Doc("Axioms that it keeps for all ballots.")]
    tie_break: Annotated[str, Doc("What separates equal scores.")]
    lower_is_better: Annotated[bool, Doc("A low score is good.")]
    version: Annotated[int, Doc("Increases when the same ballots would score differently.")]


@public
@dataclass(frozen=True, slots=True)
class RuleList:
    """Voting rules, and how one is chosen by default."""

    rules: Annotated[tuple[RuleEntry, ...], Doc("All of them, or the named one.")]
    auto: Annotated[tuple[str, ...], Doc("Sentences on how `auto` chooses.")] = AUTO


@operation("GET /rules", tag="counting")
def rules(_: object, parameters: RulesParameters) -> RuleList:
    """List the voting rules and when to use them; `name` details one."""
    if parameters.name == "auto":
        return RuleList(())
    rules_listed = RULES.values() if parameters.name is None else [RULES[parameters.name]]
    entries = (
        reduce_to(RuleEntry, rule, satisfies=tuple(sorted(axiom.value for axiom in rule.satisfies)))
        for rule in rules_listed
    )
    return RuleList(tuple(entries))


@dataclass(frozen=True, slots=True)
class RubricsParameters(Parameters):
    """Rubrics to list."""

    name: Annotated[
        str | None, Doc("Only this rubric.", metavar="NAME", positional="one", brief="")
    ] = None


@dataclass(frozen=True, slots=True)
class RubricEntry:
    """A rubric: weighted criteria, and ceilings independent of weights."""

    name: Annotated[str, Doc("Its name, as in `rubric`.")]
    criteria: Annotated[
        tuple[Criterion, ...], Doc("The criteria, graded from 1 to 10; their weights sum to 1.")
    ]
    ceilings: Annotated[
        tuple[Ceiling, ...], Doc("Bounds of the overall grade if a criterion has a low grade.")
    ]


@public
@dataclass(frozen=True, slots=True)
class RubricList:
    """Rubrics."""

    rubrics: Annotated[tuple[RubricEntry, ...], Doc("All of them, or the named one.")]


@operation("GET /rubrics", tag="counting")
def rubrics(_: object, parameters: RubricsParameters) -> RubricList:
    """List the rubrics for reviewers; `name` shows one.

    Each has its criteria with weights and anchors.
    """
    rubrics_listed = RUBRICS.values() if parameters.name is None else [find_rubric(parameters.name)]
    return RubricList(tuple(reduce_to(RubricEntry, each) for each in rubrics_listed))
