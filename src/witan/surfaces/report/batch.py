"""Progress, bill and report of a batch and of its arms."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from witan.core.arms import ArmComparison, measure_of
from witan.core.display import (
    UNKNOWN,
    dollars,
    level_percent,
    percent,
    percent_range,
    sufficient_usd,
)
from witan.core.outcome import Interval
from witan.core.stats.measures import Measure
from witan.core.stats.prediction_powered import MIN_CLUSTERS
from witan.core.verdict import TIE
from witan.service.arms import ArmBatchReport, ArmBill
from witan.service.batch import BatchBill, BatchReport, Progress
from witan.service.batch_texts import TextSummary
from witan.service.batch_votes import PeopleEstimate
from witan.service.text import count_noun, full_sentence, list_text, number
from witan.service.trust import cost_range_text, cost_sum_text, duration_text
from witan.surfaces.report.calibration import estimate_blocks, estimates_finding, mean_sentence
from witan.surfaces.report.document import (
    Block,
    Cell,
    Column,
    Heading,
    Note,
    Report,
    Sentence,
    Table,
    bracket,
    measure_cell,
    table_of,
)

MOST_REASONS = 5
"""Most reasons for incomplete rows to list."""


def batch_report(result: BatchReport) -> Report:
    """Write the report of a batch."""
    rows = count_noun(result.rows, "row")
    n_complete = result.statuses.get("complete", 0)
    runs = " in all runs" if result.earlier else ""
    return Report(
        "Batch",
        (
            *(["simulated"] if result.simulated else []),
            cost_range_text(result.spending),
            f"{count_noun(result.calls, 'call')}{runs}",
            duration_text(result.seconds),
        ),
        f"{n_complete:,} of {rows} complete.",
        tuple(_blocks(result)),
    )


def _blocks(result: BatchReport) -> Iterator[Block]:
    if result.earlier:
        yield Sentence(f"{count_noun(result.earlier, 'row')} of an earlier run.", quiet=True)
    if result.unaffordable:
        rows = count_noun(result.unaffordable, "row")
        reason = "is too low for another"
        if isinstance(result, ArmBatchReport):
            reason = "is probably too low for another with all its arms"
        yield Note(f"{rows} not started: the ceiling {reason}", "warning")
    if (passed := result.passed) is not None:
        interval, population = passed.interval, _population(passed.rows, passed.questions)
        n_decided = result.decisions.get("passed", 0) + result.decisions.get("failed", 0)
        some = " that could both pass and fail" if n_decided > passed.rows else ""
        yield Sentence(
            f"{percent(passed.passed / passed.rows)} of the decided rows{some} passed "
            f"({percent_range(interval)} of {population}, at {level_percent(interval.level)} "
            "confidence)."
        )
    yield from _people(result.people)
    yield from _texts(result)
    for name, counts in (("status", result.statuses), ("decision", result.decisions)):
        if counts:
            words: list[str | Cell] = [*counts]
            numbers: list[str | Cell] = [f"{n:,}" for n in counts.values()]
            yield table_of(
                f"Rows by {name}",
                [(Column(name, "left", heads=True), words), (Column("rows"), numbers)],
            )
    yield from _expectations(result.expectations)
    yield from _missing(result.missing)
    if isinstance(result, ArmBatchReport):
        yield from _gaps(result)
        if result.comparison is None and result.measure == "votes" and result.unjudged:
            yield Note(
                "nobody has voted on the arms yet: have people vote on the lines of -o, add a "
                "column votes to the data set, and run the same command again",
                "warning",
            )
        elif result.comparison is None:
            yield Note(
                "no two arms were judged on the same question, so there is nothing to compare",
                "warning",
            )
        else:
            yield Heading(ARMS_TITLE, "arms")
            yield from comparison_blocks(result.comparison)


def _expectations(expectations: Mapping[str, Mapping[str, int]]) -> Iterator[Block]:
    """Write how many rows were decided as expected."""
    if not expectations:
        return
    single = {each: counts for each, counts in expectations.items() if each != TIE}
    if single:
        n_met = sum(counts[expected] for expected, counts in single.items())
        rows = count_noun(sum(sum(counts.values()) for counts in single.values()), "judged row")
        yield Sentence(f"{n_met:,} of {rows} with an expected decision have it.")
    decisions = [*next(iter(expectations.values()))]
    yield table_of(
        "Expected and actual decisions",
        [
            (Column("expected", "left", heads=True), [*expectations]),
            *(
                (Column(decision), [f"{counts[decision]:,}" for counts in expectations.values()])
                for decision in decisions
            ),
        ],
    )


def _texts(result: BatchReport) -> Iterator[Block]:
    """Write the jury's grades of each text, without people's votes to correct them."""
    texts = result.texts
    if result.people is not None and result.people.estimates is not None:
        return
    if len(texts) == 1 and texts[0].grade is not None:
        yield Sentence(f"The jury's mean grade is {_mean_grade(texts[0])}.")
    if len(texts) < 2:
        return
    if texts[0].lead_interval is not None:
        yield Sentence(_lead(texts[0], texts[1].text, texts[0].lead_interval))
    columns: list[tuple[Column, list[str | Cell]]] = [
        (Column("text", "left", heads=True), [each.text for each in texts]),
        (Column("rows"), [f"{each.rows:,}" for each in texts]),
        (Column("leads clearly"), [f"{each.leads:,}" for each in texts]),
    ]
    if any(each.grade is not None for each in texts):
        grades = [number(each.grade) for each in texts]
        intervals = [bracket(each.interval, number) or UNKNOWN for each in texts]
        columns += [(Column("mean grade"), [*grades]), (Column("interval", "left"), [*intervals])]
    yield table_of("Texts, by the jury alone", columns)
    known = [each for each in texts if each.interval is not None]
    few = [each.text for each in known if each.questions < min(each.rows, MIN_CLUSTERS)]
    if any(MIN_CLUSTERS <= each.questions < each.rows for each in known):
        yield Sentence("Intervals are clustered by question.", quiet=True)
    if few:
        of_texts = "" if len(few) == len(known) else f" of {list_text(few)}"
        yield Sentence(
            f"Intervals{of_texts} apply only to more texts of the same questions: fewer than "
            f"{MIN_CLUSTERS} are too few to cluster by.",
            quiet=True,
        )


def _lead(first: TextSummary, second: str, interval: Interval) -> str:
    """Describe how far the best text's grades are above those of the next one."""
    apart = f"{number(first.lead)} {bracket(interval, number)}"
    begin = f"The jury gives {first.text} the highest mean grade"
    if interval.low > 0:
        return f"{begin}, {apart} above {second}, paired by row."
    verdict = "better on the rows of both" if interval.high < 0 else "too close to call"
    return f"{begin}, but {second} is {verdict}: the difference by row is {apart}."


def _population(n_rows: int, n_questions: int) -> str:
    """Name the rows that an interval is for."""
    if n_questions == n_rows:
        return "rows like these"
    if n_questions >= MIN_CLUSTERS:
        return "texts of questions like these"
    return "more texts of " + ("this question" if n_questions == 1 else "the same questions")


def _mean_grade(summary: TextSummary) -> str:
    mean = number(summary.grade)
    if summary.interval is None:
        return mean
    ends = f"{number(summary.interval.low)} to {number(summary.interval.high)}"
    level = level_percent(summary.interval.level)
    population = _population(summary.rows, summary.questions)
    return f"{mean} ({ends} for {population}, at {level} confidence)"


def _missing(missing: Mapping[str, int]) -> Iterator[Block]:
    """List what most of the incomplete rows lack."""
    if not missing:
        return
    shown = [*missing.items()][:MOST_REASONS]
    yield table_of(
        "Incomplete rows",
        [
            (Column("missing", "left", fit="fold", heads=True), [reason for reason, _ in shown]),
            (Column("rows"), [f"{n:,}" for _, n in shown]),
        ],
    )
    if len(missing) > len(shown):
        more = count_noun(len(missing) - len(shown), "other reason")
        yield Sentence(f"{more}: see `missing` in the lines of the rows.", quiet=True)


def _people(people: PeopleEstimate | None) -> Iterator[Block]:
    """Write the jury's means, corrected by people's votes."""
    if people is None:
        return
    if people.left_out:
        votes = count_noun(people.left_out, "vote")
        yield Note(f"{votes} left out: the session does not have that answer", "warning")
    if people.own:
        votes = count_noun(people.own, "vote")
        differ = "differs" if people.own == 1 else "differ"
        own = f"{votes} in the data set {differ} from the same person's vote on the session itself"
        yield Note(f"{own}, which is used", "warning")
    if people.earlier:
        votes = count_noun(people.earlier, "vote")
        are = "is" if people.earlier == 1 else "are"
        yield Note(
            f"{votes} of earlier runs {are} counted but no longer in the data set", "warning"
        )
    if people.damaged:
        rows = count_noun(people.damaged, "row")
        problem = f"{rows} left out of the correction by people's votes: stored ballots are damaged"
        yield Note(f"{problem}; run witan doctor", "warning")
    if people.estimates is None:
        yield Note(f"no correction by people's votes: {people.why}", "warning")
        return
    rows = count_noun(people.estimates.people_sessions, "row")
    if len({line.system for line in people.estimates.systems}) > 1:
        yield Sentence(estimates_finding(people.estimates))
    else:
        yield from (Sentence(mean_sentence(each, rows)) for each in people.estimates.systems)
    yield from estimate_blocks(people.estimates)


def _gaps(result: ArmBatchReport) -> Iterator[Block]:
    """Describe which rows are not compared, and why."""
    if result.unfinished:
        rows = count_noun(result.unfinished, "row")
        yield Note(
            f"{rows} answered by the council but not compared: the ceiling is reached", "warning"
        )
    lacks = {"an answer of the council": result.unanswered, "a judgment": result.unjudged}
    for lack, n_rows in lacks.items():
        if n_rows:
            are = "is" if n_rows == 1 else "are"
            text = f"{count_noun(n_rows, 'row')} without {lack} {are} left out"
            yield Note(text, "warning")


def bill_report(result: BatchBill) -> Report:
    """Write a batch's planned calls and cost."""
    rows, calls = count_noun(result.rows - result.earlier, "row"), count_noun(result.calls, "call")
    ceilings = [] if result.max_cost_usd is None else [cost_sum_text(result.max_cost_usd)]
    ceilings += [] if result.max_calls is None else [count_noun(result.max_calls, "call")]
    blocks: list[Block] = [*_money_left(result), *_calls_left(result)] if result.calls else []
    for reason, n_rows in result.refused.items():
        blocks.append(Note(f"{count_noun(n_rows, 'row')} cannot run: {reason}", "warning"))
    if result.earlier:
        blocks.append(Sentence(f"{count_noun(result.earlier, 'row')} done before."))
    if result.made_calls:
        calls_before = f"{count_noun(result.made_calls, 'call')} made before"
        blocks.append(Sentence(f"{calls_before}: {cost_range_text(result.spending)}."))
    if isinstance(result, ArmBill):
        parts = ", ".join(f"{name} {n:,}" for name, n in result.parts.items() if n)
        blocks.append(Sentence(f"Calls of {parts}." if parts else "Nothing left to do."))
    expected, worst = (cost_sum_text(usd) for usd in (result.expected_usd, result.worst_usd))
    blocks.append(Sentence(f"Expected if nothing fails: {expected}; at worst: {worst}."))
    blocks.append(
        Sentence("Retries and second calls for slow replies are not included.", quiet=True)
    )
    return Report(
        "Batch plan",
        (f"ceiling {list_text(ceilings)}",) if ceilings else (),
        f"{rows} to be done, at most {calls} if nothing fails.",
        tuple(blocks),
    )


def _money_left(bill: BatchBill) -> Iterator[Block]:
    """Say whether the ceiling is high enough; a row starts only if the rest covers its worst."""
    if bill.max_cost_usd is None or bill.worst_usd is None:
        return
    left = max(0.0, bill.max_cost_usd - bill.spent_usd)
    leaves = f"the ceiling leaves {cost_sum_text(left)}"
    worst_of_row = bill.worst_usd / max(1, bill.rows - bill.earlier - sum(bill.refused.values()))
    if bill.fits_no_session:
        dear = f"a row may cost {dollars(bill.cheapest_usd or 0.0, up=True)}"
        yield Note(f"{leaves}, too little for any row: {dear}; {ceiling_text(bill)}", "warning")
    elif bill.worst_usd <= left:
        yield Sentence(f"They fit the {cost_sum_text(left)} left under the ceiling.")
    elif (bill.expected_usd or 0.0) + worst_of_row <= left:
        yield Sentence(f"They probably fit the {cost_sum_text(left)} left under the ceiling.")
    else:
        few = f"{leaves}, probably too little for all of them"
        yield Note(f"{few}; {ceiling_text(bill)}", "warning")


def _calls_left(bill: BatchBill) -> Iterator[Block]:
    if bill.max_calls is None:
        return
    left = count_noun(n_left := max(0, bill.max_calls - bill.made_calls), "call")
    if bill.calls <= n_left:
        yield Sentence(f"They fit the {left} left under the ceiling.")
    else:
        yield Note(f"the ceiling leaves {left} for them; raise --max-calls.", "warning")


BAR_WIDTH = 24
"""Characters of a progress bar."""


def ceiling_text(bill: BatchBill) -> str:
    """Advise which ceiling to raise for the rest of a batch."""
    parts = []
    calls = bill.made_calls + bill.calls
    if bill.max_calls is not None and calls > bill.max_calls:
        parts.append(f"--max-calls to {calls}")
    if bill.max_cost_usd is not None and bill.worst_usd is not None:
        usd = bill.spent_usd + bill.worst_usd
        if usd > bill.max_cost_usd:
            parts.append(f"--max-cost to {sufficient_usd(usd)}")
    given = (("--max-cost", bill.max_cost_usd), ("--max-calls", bill.max_calls))
    parts = parts or [option for option, most in given if most is not None]
    return f"for every row, raise {' and '.join(parts)}"


def progress_text(progress: Progress, width: int | None = None) -> str:
    """Write rows, cost, rate and remaining time, within a width.

    The bar is dropped first, then the running sessions, then words.
    """
    n_filled = BAR_WIDTH * progress.n_done // max(1, progress.rows)
    bar = f"{'█' * n_filled}{'░' * (BAR_WIDTH - n_filled)} "
    stage = f"{progress.stage} · " if progress.stage else ""
    done, rows = f"{progress.n_done:,}", f"{progress.rows:,}"
    counted = f"{done} of {rows} rows"
    under_way = f"{progress.n_running} under way"
    spent = f"{'' if progress.is_exact else 'at most '}{cost_sum_text(progress.spent_usd)}"
    costs, joint_costs, short_costs = f"{spent} so far", f"{spent} so far", spent
    if progress.expected_usd:
        expected = cost_sum_text(progress.expected_usd)
        short_costs = f"{spent} of {expected}"
        costs, joint_costs = f"{costs} · {expected} expected", f"{short_costs} expected"
    pace, short_pace = [], []
    if progress.seconds_left is not None:
        rate = f"{progress.rows_per_minute:,.0f}"
        end = f"{duration_text(progress.seconds_left)} left"
        pace, short_pace = [f"{rate} a minute", end], [f"{rate}/min", end]
    forms = (
        [f"{stage}{bar}{counted}", under_way, costs, *pace],
        [f"{stage}{counted}", under_way, costs, *pace],
        [f"{stage}{counted}", costs, *pace],
        [f"{stage}{counted}", joint_costs, *pace],
        [f"{stage}{done}/{rows}", short_costs, *short_pace],
        [f"{done}/{rows}", short_costs, *short_pace],
    )
    lines = [" · ".join(parts) for parts in forms]
    return next((each for each in lines if width is None or len(each) <= width), lines[-1])


CHOICES = {
    "name": "{names}, by name.",
    "other questions": "{names}, the best on {others}, which measure nothing.",
    "history": "{names}, which leads the leaderboard of all sessions before.",
    "these questions": "{names}, by the reviews of these same questions, which favours it.",
}
"""Words for the choice of the best member."""


MEASURES = {
    "references": "Measured by references: an answer is right if it contains the reference "
    "verbatim.",
    "votes": "Measured by people's votes alone.",
}
"""Words for the measure of arms without a jury."""


ARMS_TITLE = "Was the council worth it?"


def arms_report(comparison: ArmComparison) -> Report:
    """Write the report of a comparison by itself."""
    return Report(ARMS_TITLE, (), "", tuple(comparison_blocks(comparison)))


def comparison_blocks(comparison: ArmComparison) -> Iterator[Block]:
    """Write the conclusions, their numbers, and their basis."""
    for each in comparison.differences:
        if each.category is None or each.conclusion in ("ahead", "behind", "no difference"):
            yield Sentence(full_sentence(each.sentence))
    yield _differences(comparison)
    yield _prices(comparison)
    yield from _basis(comparison)


def _differences(comparison: ArmComparison) -> Table:
    lines = comparison.differences
    means = [measure_of(each.mean) for each in lines]
    columns: list[tuple[Column, Sequence[str | Cell]]] = [
        (
            Column("first minus second", "left", fit="middle", heads=True),
            [f"{each.first} - {each.second}" for each in lines],
        ),
        (Column("questions", "left", keep=70), [each.category or "all" for each in lines]),
        (Column("difference", interval=90), [_difference_cell(each) for each in means]),
        (Column("n", keep=80), [f"{each.questions:,}" for each in lines]),
    ]
    if comparison.n_rows > comparison.questions:
        columns.append((Column("rows", keep=75), [f"{each.n_rows:,}" for each in lines]))
    if comparison.people_questions >= MIN_CLUSTERS:
        columns += [
            (
                Column("jury alone", interval=60),
                [_difference_cell(each.mean.jury) for each in lines],
            ),
            (
                Column("people alone", interval=50),
                [_difference_cell(each.mean.people) for each in lines],
            ),
        ]
    columns.append((Column("conclusion", "left", keep=85), [each.conclusion for each in lines]))
    return table_of(f"Differences in {comparison.unit}", columns)


def _difference_cell(measure: Measure) -> Cell:
    return measure_cell(measure, "few questions", partial(number, digits=2))


def _prices(comparison: ArmComparison) -> Table:
    lines = comparison.arms
    counted = "rows" if comparison.n_rows > comparison.questions else "questions"
    costs = [None if each.cost_usd is None else each.cost_usd / each.priced for each in lines]
    return table_of(
        "Price of a question",
        [
            (Column("arm", "left", heads=True), [each.arm for each in lines]),
            (Column(counted), [f"{each.questions:,}" for each in lines]),
            (Column("calls"), [number(each.calls / each.questions, 1) for each in lines]),
            (Column("cost"), [cost_sum_text(cost) for cost in costs]),
        ],
    )


def _basis(comparison: ArmComparison) -> Iterator[Block]:
    several = len(comparison.best) > 1
    names = list_text(
        [f"{name} ({n:,})" if several else name for name, n in comparison.best.items()]
    )
    if names:
        others = count_noun(comparison.choosing, "other question")
        choice = CHOICES[comparison.choice].format(names=names, others=others)
        yield Sentence(f"Best member: {choice}", quiet=True)
    level = level_percent(comparison.level)
    if comparison.basis == "reviewers":
        yield Sentence(
            f"Each interval is for similar reviewers on this one question, at {level}.",
            quiet=True,
        )
    else:
        together = (
            "" if comparison.category_level is None else f"; for categories, at {level} jointly"
        )
        yield Sentence(
            f"Intervals are for similar questions, paired, at {level} for each pair{together}. "
            f"Differences within ±{comparison.margin:g} count as none.",
            quiet=True,
        )
        if comparison.n_rows > comparison.questions:
            questions = count_noun(comparison.questions, "question")
            yield Sentence(
                f"Intervals are clustered by question: {questions} in {comparison.n_rows:,} rows. "
                f"With fewer than {MIN_CLUSTERS} questions there are no intervals.",
                quiet=True,
            )
    if comparison.measure != "jury":
        yield Sentence(MEASURES[comparison.measure], quiet=True)
        return
    people = count_noun(comparison.people_questions, "question")
    if comparison.people_questions >= MIN_CLUSTERS:
        yield Sentence(
            f"Corrected by people's votes on {people}; valid if these were drawn at random.",
            quiet=True,
        )
    elif comparison.people_questions:
        yield Note(
            f"people's votes on {people} are too few to correct the jury; {MIN_CLUSTERS} are "
            "needed",
            "hint",
        )
    else:
        yield Note(
            "the jury may prefer a style, such as long answers; have people vote on some of the "
            "judgments, drawn at random, and run this again",
            "hint",
        )
