"""List the rubrics that answers are graded by."""

from dataclasses import dataclass
from typing import Annotated

from witan.core.rubric import RUBRICS, Ceiling, Criterion, find_rubric
from witan.service.catalogue import operation, public
from witan.service.parameters import Doc, Parameters


@dataclass(frozen=True, slots=True)
class RubricsParameters(Parameters):
    """Rubrics to list."""

    name: Annotated[str | None, Doc("Only this rubric.", metavar="NAME", positional="one")] = None


@dataclass(frozen=True, slots=True)
class RubricEntry:
    """A rubric: weighted criteria, and ceilings that no weight can outvote.

    Parameters
    ----------
    name
        What `rubric` takes.
    criteria
        What is graded from 1 to 10; weights add up to 1.
    ceilings
        Bounds of the overall grade where one criterion is poor.
    """

    name: str
    criteria: tuple[Criterion, ...]
    ceilings: tuple[Ceiling, ...]


@public
@dataclass(frozen=True, slots=True)
class RubricList:
    """Rubrics.

    Parameters
    ----------
    rubrics
        Every rubric, or the one that was named.
    """

    rubrics: tuple[RubricEntry, ...]


@operation("rubrics", get="/rubrics", tag="counting")
def rubrics(_: object, parameters: RubricsParameters) -> RubricList:
    """List the rubrics that reviewers can grade by; with `name` one of them.

    Each has its criteria with weights and anchors.
    """
    chosen = RUBRICS.values() if parameters.name is None else [find_rubric(parameters.name)]
    return RubricList(tuple(RubricEntry(r.name, r.criteria, r.ceilings) for r in chosen))
