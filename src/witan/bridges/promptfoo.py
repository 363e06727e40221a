"""A jury and a council for promptfoo: assertion and provider."""

from typing import Any

import witan
from witan.bridges.replies import accepts, final_answer, session_facts, verdict_reason
from witan.files import mean_grades, share_of_scale, verdict_facts
from witan.reports import judgment_text


def get_assert(output: str, context: dict[str, Any]) -> dict[str, Any]:
    """Have a jury judge an output.

    It passes if the verdict does, or if there is no `pass_mark`.

    The score is the mean overall grade, the named scores those of the criteria, all from 0 to 1.
    Without a verdict, the metadata has promptfoo's mark for an error of the grader, `graderError`,
    so that it is no grade of the output.

    Parameters
    ----------
    context
        Promptfoo's context. The assertion's `config` holds arguments of `witan.judge`; the question
        defaults to the prompt. With `allow_too_close`, a verdict that is too close to call passes.
    """
    config = {"question": context["prompt"], **(context.get("config") or {})}
    allow_too_close = bool(config.pop("allow_too_close", False))
    if not output.strip():
        return {"pass": False, "score": 0.0, "reason": "there is no output to judge"}
    try:
        session = witan.judge(output, **config)
    except witan.errors.WitanError as error:
        return _grader_error(str(error))
    grades = {name: share_of_scale(grade) for name, grade in mean_grades(session).items()}
    if session.verdict is None or "overall" not in grades:
        return _grader_error(judgment_text(session))
    decision = session.verdict.decision
    return {
        "pass": decision is None or accepts(decision, allow_too_close=allow_too_close),
        "score": grades.pop("overall"),
        "reason": verdict_reason(session, session.verdict),
        "namedScores": grades,
        "metadata": verdict_facts(session),
    }


def _grader_error(reason: str) -> dict[str, Any]:
    return {"pass": False, "score": 0.0, "reason": reason, "metadata": {"graderError": True}}


def call_api(prompt: str, options: dict[str, Any], context: dict[str, Any]) -> dict[str, Any]:  # noqa: ARG001 - promptfoo's
    """Answer a prompt by a council's final answer.

    Parameters
    ----------
    options
        Promptfoo's options. The provider's `config` holds arguments of `witan.ask`.
    """
    config = {**(options.get("config") or {})}
    config.pop("basePath", None)  # added by promptfoo
    try:
        session = witan.ask(prompt, **config)
        output = final_answer(session)
    except witan.errors.WitanError as error:
        return {"error": str(error)}
    facts = session_facts(session)
    return {"output": output, "cost": session.cost.total_usd, "metadata": facts}
