"""For Inspect: a jury as a scorer, a council as a solver."""

from collections.abc import Sequence
from typing import Any, Unpack

from inspect_ai.model import ModelOutput
from inspect_ai.scorer import Score, Scorer, Target, mean, scorer, stderr
from inspect_ai.solver import Generate, Solver, TaskState, solver

import witan
from witan.bridges.replies import final_answer, judge_output, session_facts, verdict_reason
from witan.councils import AskOptions
from witan.files import mean_grades, verdict_facts
from witan.reports import judgment_text


@scorer(metrics={"*": [mean(), stderr()]})
def witan_jury(
    jury: Sequence[Any] | None = None,
    *,
    pass_mark: float | None = None,
    use_target: bool = True,
    **options: Unpack[AskOptions],
) -> Scorer:
    """Score a sample's output by a jury's mean grades.

    There is a value for the overall grade and one per criterion.

    The explanation is the verdict's sentence, with what is missing; the metadata say how sure it
    is. A sample without output, or with too few ballots, is unscored, with the reason.

    Parameters
    ----------
    pass_mark
        Lowest grade that passes, from 1 to 10.
    use_target
        Give the jury the target of the sample as the right answer; of several, each is right.
    **options
        As in `witan.judge`: rubric, profile, mirrored, …
    """

    async def score(state: TaskState, target: Target) -> Score:
        text = state.output.completion
        if not text.strip():
            return Score.unscored(explanation="there is no output to judge")
        session = await judge_output(
            text,
            state.input_text,
            jury,
            options,
            pass_mark=pass_mark,
            reference=_describe_target(target) if use_target else None,
        )
        if session.verdict is None or not (grades := mean_grades(session)):
            return Score.unscored(explanation=judgment_text(session))
        return Score(
            value=grades,
            answer=text,
            explanation=verdict_reason(session, session.verdict),
            metadata=verdict_facts(session),
        )

    return score


def _describe_target(targets: Sequence[str]) -> str:
    """Return the right answer, or a list of the right answers."""
    if len(targets) < 2:
        return "".join(targets)
    return "\n".join(["Each of these is right:", *(f"- {each}" for each in targets)])


@solver
def witan_council(
    members: Sequence[Any] | None = None,
    chairman: Any = None,
    **options: Unpack[AskOptions],
) -> Solver:
    """Answer a sample's question by a council's final answer.

    Parameters
    ----------
    members, chairman, **options
        As in `witan.ask`.

    Raises
    ------
    NothingToCount
        If the council gives no final answer.
    """
    settings: dict[str, Any] = {**options}

    async def solve(state: TaskState, generate: Generate) -> TaskState:  # noqa: ARG001 - Inspect's
        *before, last = state.messages
        conversation = [
            witan.models.Message(message.role, message.text)
            for message in before
            if message.role != "tool"
        ]
        if members is None:
            council = witan.Council.from_config(chairman=chairman, **settings)
        else:
            council = witan.Council(members, chairman, **settings)
        async with council:
            session = await council.ask(last.text, conversation=conversation)
        state.output = ModelOutput.from_content("witan", final_answer(session))
        state.messages.append(state.output.message)
        state.metadata["witan"] = session_facts(session)
        return state

    return solve
