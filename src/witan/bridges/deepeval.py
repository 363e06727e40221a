"""A jury as a metric of DeepEval."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from deepeval.metrics import BaseMetric

import witan
from witan.bridges.replies import accepts, judge_output, verdict_reason, wait_for
from witan.files import mean_grades, share_of_scale, verdict_facts
from witan.reports import judgment_text

if TYPE_CHECKING:
    from witan import Session


class JuryMetric(BaseMetric):
    """The jury's mean overall grade, from 0 to 1.

    The metric passes if the verdict does.

    The reason is the verdict's sentence, with what is missing; the breakdown has a score per
    criterion, and `verdict` says how sure it is. A verdict that is too close to call fails.

    Parameters
    ----------
    jury
        As in `witan.judge`; by default the configured reviewers.
    pass_mark
        Lowest grade that passes, from 1 to 10; its share of the scale is the threshold.
    use_expected
        Give the jury the expected output as the right answer.
    allow_too_close
        Accept a verdict that is too close to call.
    options
        As in `witan.judge`: rubric, profile, mirrored, …
    """

    include_reason = True
    verdict: Mapping[str, Any] | None = None

    def __init__(
        self,
        jury: Sequence[Any] | None = None,
        *,
        pass_mark: float | None = None,
        use_expected: bool = True,
        allow_too_close: bool = False,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        # DeepEval reads these attributes when it copies a metric.
        self.jury = jury
        self.pass_mark = pass_mark
        self.use_expected = use_expected
        self.allow_too_close = allow_too_close
        self.options = options
        self.threshold = None if pass_mark is None else share_of_scale(pass_mark)

    @property
    def __name__(self) -> str:
        return "Jury"

    def measure(self, test_case: Any, *_: Any, **__: Any) -> float:
        """Have the jury judge the actual output; raise as `a_measure` does."""
        return wait_for(lambda: self.a_measure(test_case))

    async def a_measure(self, test_case: Any, *_: Any, **__: Any) -> float:
        """Have the jury judge the actual output.

        Raises
        ------
        NothingToCount
            If there is nothing to judge, or no verdict.
        """
        text, reference = test_case.actual_output, test_case.expected_output
        if not (text or "").strip():
            raise witan.errors.NothingToCount("there is no output to judge")
        session = await judge_output(
            text,
            test_case.input,
            self.jury,
            self.options or {},
            pass_mark=self.pass_mark,
            reference=reference if self.use_expected else None,
        )
        return self._read(session)

    def _read(self, session: "Session") -> float:
        grades = {name: share_of_scale(grade) for name, grade in mean_grades(session).items()}
        if session.verdict is None or "overall" not in grades:
            raise witan.errors.NothingToCount(judgment_text(session))
        self.score = grades.pop("overall")
        self.score_breakdown = grades
        self.reason = verdict_reason(session, session.verdict)
        self.verdict = verdict_facts(session)
        self.evaluation_model = ", ".join(session.verdict.reviewers)
        self.evaluation_cost = session.cost.total_usd
        if session.verdict.decision is not None:
            self.success = accepts(session.verdict.decision, allow_too_close=self.allow_too_close)
        return self.score

    def is_successful(self) -> bool | None:
        """Return whether the output passed.

        None without a pass mark.
        """
        return False if self.error is not None else self.success
