"""Write the reports of a calibration check and of estimates."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Literal

from witan.core.display import level_percent, percent
from witan.core.estimation import (
    Cluster,
    CorrectedMean,
    Estimates,
    PanelEstimate,
    SystemEstimate,
)
from witan.core.holdout import CalibrationCheck, CalibrationCurve, PanelCheck, Tenth
from witan.core.stats.measures import Measure
from witan.core.stats.prediction_powered import MIN_CLUSTERS
from witan.errors import NothingToCount
from witan.service.operations.calibration import CalibrationResult, EstimateResult
from witan.service.text import count_noun, number
from witan.surfaces.report.chart import Axis, Dot, Facet, Facets, ends, signed_number
from witan.surfaces.report.document import (
    Block,
    Cell,
    Chart,
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
from witan.surfaces.report.tally import unread_blocks

TITLES = {
    "mean grade": ("Mean grades, from 1 to 10", "mean"),
    "pass rate": ("Pass rates", "passes"),
    "share of rivals beaten": ("Shares of rivals beaten", "beaten"),
}
"""Title and key of a section, by quantity."""

KINDS = {
    "p_best": ("Leaders", "best", "p_best of the candidate that is likeliest to be best."),
    "p_beats": ("Pairs", "beats", "p_beats of the likelier of every two candidates."),
}
"""Title, key and meaning of a section, by field of a check."""


def estimates_report(estimates: Estimates) -> Report:
    """Write the report: the leading system, then each quantity with its differences."""
    people = f"people's votes on {estimates.people_sessions:,}"
    mark = () if estimates.pass_mark is None else (f"passing from {estimates.pass_mark:g}",)
    return Report(
        "How good are the systems?",
        (count_noun(estimates.sessions, "session"), people, *mark),
        estimates_finding(estimates),
        (
            *estimate_blocks(estimates),
            *(_reading_blocks(estimates) if isinstance(estimates, EstimateResult) else ()),
        ),
    )


def estimate_blocks(estimates: Estimates) -> Iterator[Block]:
    """Write each quantity with its differences, and what the estimate assumes."""
    yield from _sections(estimates)
    yield from _panel(estimates.panel, estimates.cluster)
    yield from _assumption(estimates)


def mean_sentence(estimate: SystemEstimate, rows: str) -> str:
    """Describe one mean: corrected by people's votes on rows, by the jury, by people."""
    mean, quantity = estimate.mean, estimate.quantity
    if mean.corrected.value is None:
        return (
            f"People's votes on {rows} are too few to correct the {quantity}; the jury alone says "
            f"{_text(mean.jury)}."
        )
    return (
        f"Corrected by people's votes on {rows}, the {quantity} is {_text(mean.corrected)}; the "
        f"jury alone says {_text(mean.jury)}, people alone {_text(mean.people)}."
    )


def estimates_finding(estimates: Estimates) -> str:
    """Report the best system, and whether the next one differs."""
    quantity = estimates.systems[-1].quantity
    lines = [each for each in estimates.systems if each.quantity == quantity and each.system]
    best = lines[0]
    mean, name = best.mean, best.system
    if estimates.panel is not None:
        sentence = f"The jury alone gives {name} the highest {quantity}, {_text(mean.jury)}."
        for rate in estimates.panel.rates:
            if rate.system == name:
                error = f"{estimates.panel.shared_error:g}"
                sentence += (
                    f" Allowing for a shared error of up to {error}, it is {_text(rate.shared)}."
                )
        return sentence
    if mean.jury.value is None:
        return f"No {quantity} is estimated: {mean.jury.why}."
    if mean.corrected.value is None:
        few = "; people's votes are too few to correct it" * bool(estimates.people_sessions)
        return f"The jury alone gives {name} the highest {quantity}, {_text(mean.jury)}{few}."
    sentence = (
        f"Corrected by people's votes, {name} has the highest {quantity}, "
        f"{_text(mean.corrected)}; the jury alone says {_text(mean.jury)}, people alone "
        f"{_text(mean.people)}."
    )
    return f"{sentence}{_lead(estimates, best, lines)}"


def _lead(estimates: Estimates, best: SystemEstimate, lines: Sequence[SystemEstimate]) -> str:
    """Describe how far the first is above the second."""
    for each in estimates.differences:
        pair = (each.first, each.second, each.quantity)
        if len(lines) > 1 and pair == (best.system, lines[1].system, best.quantity):
            apart = each.mean.corrected
            if apart.interval is None:
                return ""
            if apart.interval.low > 0:
                return f" It is {_text(apart)} above {each.second}."
            return f" {each.second} is too close to call: the difference is {_text(apart)}."
    return ""


def _sections(estimates: Estimates) -> Iterator[Block]:
    for quantity in dict.fromkeys(each.quantity for each in estimates.systems):
        title, key = TITLES[quantity]
        lines = [each for each in estimates.systems if each.quantity == quantity]
        yield Heading(title, key)
        names = [each.system or "all together" for each in lines]
        yield _table(title, "system", names, [each.mean for each in lines])
        first = next(each.system for each in lines if each.system)
        apart = [
            each
            for each in estimates.differences
            if each.quantity == quantity and each.first == first
        ]
        if apart:
            seconds, means = [each.second for each in apart], [each.mean for each in apart]
            yield _table(f"{title}: differences", f"{first} minus", seconds, means)


def _panel(panel: PanelEstimate | None, cluster: Cluster) -> Iterator[Block]:
    """Write true pass rates as estimated from a panel without people's votes."""
    if panel is None:
        return
    title = "Pass rates without people's votes"
    yield Heading(title, "panel")
    if panel.why is not None:
        yield Sentence(f"No estimate: {panel.why}.")
        return
    share = f"{panel.shared_error:g}"
    shared = Column("shared error", interval=90, meaning=f"errors correlate up to {share}")
    yield table_of(
        title,
        [
            (
                Column("system", "left", fit="middle", heads=True),
                [e.system for e in panel.rates],
            ),
            (shared, [_cell(e.shared) for e in panel.rates]),
            (
                Column("Dawid–Skene", interval=80, meaning="if reviewers err independently"),
                [_cell(e.independent) for e in panel.rates],
            ),
            (Column("jury alone", interval=70), [_cell(e.jury) for e in panel.rates]),
            (Column("texts", keep=60), [f"{e.shared.n:,}" for e in panel.rates]),
        ],
    )
    yield table_of(
        "Reviewers, if they err independently",
        [
            (
                Column("reviewer", "left", fit="middle", heads=True),
                [e.reviewer for e in panel.reviewers],
            ),
            (
                Column("sensitivity", interval=80, meaning="share of good texts that it passes"),
                [_cell(e.sensitivity) for e in panel.reviewers],
            ),
            (
                Column("specificity", interval=80, meaning="share of bad texts that it fails"),
                [_cell(e.specificity) for e in panel.reviewers],
            ),
        ],
    )
    yield Sentence(
        "Dawid and Skene's model assumes that reviewers are better than chance on average and that "
        "their errors are independent given the truth. Models share errors, so its interval is too "
        f"narrow; the one of the column 'shared error' allows correlations of up to {share}. On "
        "real panels even that missed pass rates of .9 in more than one of three cases.",
        quiet=True,
    )
    if panel.questions < panel.texts:
        clusters = count_noun(panel.questions, cluster)
        yield Sentence(
            f"Its intervals are clustered by {cluster}: {clusters}, {panel.texts:,} texts.",
            quiet=True,
        )


def _table(title: str, heading: str, names: Sequence[str], means: Sequence[CorrectedMean]) -> Block:
    """Write means, in columns for people only where one has enough of their votes."""
    corrected = Column("corrected", interval=90, meaning="the jury's, corrected by people's votes")
    columns: list[tuple[Column, Sequence[str | Cell]]] = [
        (Column(heading, "left", fit="middle", heads=True), list(names)),
        (Column("jury alone", interval=70), [_cell(each.jury) for each in means]),
    ]
    if any(each.corrected.value is not None for each in means):
        columns.insert(1, (corrected, [_cell(each.corrected) for each in means]))
    if any(each.people.value is not None for each in means):
        alone = Column("people alone", interval=80)
        columns.append((alone, [_cell(each.people) for each in means]))
    if any(each.people.n for each in means):
        counts = [f"{each.people.n:,} of {each.jury.n:,}" for each in means]
        columns.append((Column("judged by people", keep=60), counts))
    else:
        noun = "texts" if heading == "system" else "pairs"
        columns.append((Column(noun, keep=60), [f"{each.jury.n:,}" for each in means]))
    return table_of(title, columns)


def _cell(measure: Measure) -> Cell:
    return measure_cell(measure, "few sessions", _number_writer(measure))


def _number_writer(measure: Measure) -> Callable[[float | None], str]:
    return partial(number, digits=2 if measure.unit.startswith("grade") else 3)


def _text(measure: Measure) -> str:
    write = _number_writer(measure)
    return " ".join(filter(None, (write(measure.value), bracket(measure.interval, write))))


def _cluster_sentence(estimates: Estimates) -> str:
    questions = count_noun(estimates.questions, "question")
    if estimates.cluster == "question":
        return f"Intervals are clustered by question: {questions}."
    if estimates.questions < estimates.sessions:
        return (
            "Intervals are clustered by session, and apply only to more texts of "
            f"{questions}: fewer than {MIN_CLUSTERS} are too few to cluster by."
        )
    return "Intervals are clustered by session: each has its own question, or none is named."


def _assumption(estimates: Estimates) -> Iterator[Block]:
    if estimates.pass_mark is not None:
        yield Sentence("A pass rate is the share of single grades that pass.", quiet=True)
    yield Sentence(_cluster_sentence(estimates), quiet=True)
    uncorrected = [x.mean.corrected for x in estimates.systems if x.mean.corrected.value is None]
    if not estimates.people_sessions:
        yield Sentence(
            "Without people's votes the jury cannot be corrected; have people judge some "
            "sessions drawn at random.",
            quiet=True,
        )
    elif len(uncorrected) == len(estimates.systems):
        yield Sentence(f"The jury cannot be corrected: {uncorrected[0].why}.", quiet=True)
    else:
        yield Sentence(
            "The correction holds if the sessions that people judged are drawn at random from all. "
            "The jury's own interval does not account for its bias.",
            quiet=True,
        )


def calibration_report(check: CalibrationCheck) -> Report:
    """Write the conclusion, then leaders, pairs and scores of a check."""
    others = {"reviewers": "reviewers held out", "truth": "the truth"}.get(check.against, "people")
    reading = _reading_blocks(check) if isinstance(check, CalibrationResult) else ()
    return Report(
        "Are the probabilities calibrated?",
        (count_noun(check.sessions, "session"), f"against {others}", f"seed {check.seed}"),
        _finding(check),
        (*_curves(check), *_scores(check), *_reviewers(check), *reading),
    )


def _reading_blocks(result: CalibrationResult | EstimateResult) -> Iterator[Block]:
    """Write how the grades were read, and which lines were not."""
    yield from (Note(sentence, "warning", option="scale") for sentence in result.scales)
    yield from unread_blocks(result.not_read)


def calibration_chart(check: CalibrationCheck, field: str = "p_best") -> Chart:
    """Chart stated against observed probabilities, a diagram for each number of reviewers."""
    drawn_tenths = [
        (panel, [tenth for tenth in _curve(panel, field).tenths if tenth.share.value is not None])
        for panel in check.panels
    ]
    tenths = [tenth for _, each in drawn_tenths for tenth in each]
    if not tenths:
        raise NothingToCount("too few sessions to draw a chart")
    axis = Axis("Stated", 0.5, 1.0)
    blurred = check.against != "truth"  # elsewhere the others err, too: expected is below stated
    shares = [tenth.share for tenth in tenths]
    lows = [share.interval.low if share.interval else share.value or 0.0 for share in shares]
    least = min(*lows, *(tenth.expectation for tenth in tenths))
    up = Axis(f"Observed {_among(check)}", min(0.5, least), 1.0)
    facets = tuple(
        Facet(
            f"{panel.reviewers} reviewers",
            tuple((tenth.probability, _dot(tenth)) for tenth in each),
            tuple((tenth.probability, tenth.expectation) for tenth in each if blurred),
        )
        for panel, each in drawn_tenths
        if each
    )
    return Chart(
        Facets(axis, up, facets),
        f"{KINDS[field][0]}, stated and observed",
        f"Bars: {level_percent(check.level)} intervals; line: observed as stated; "
        f"{'dashes: expected if the probabilities hold; ' * blurred}diamonds differ beyond chance.",
        _finding(check),
        (count_noun(check.sessions, "session"),),
    )


def _curve(panel: PanelCheck, field: str) -> CalibrationCurve:
    return panel.p_best if field == "p_best" else panel.p_beats


def _among(check: CalibrationCheck) -> str:
    return {"people": "among people", "truth": "in truth"}.get(check.against, "among the others")


def _compared_text(check: CalibrationCheck, panel: PanelCheck) -> str:
    """Describe the number of reviewers that a panel was compared with."""
    if check.against == "truth":
        return ""
    noun = ("other", "others") if check.against == "reviewers" else ("person", "people")
    return f", {panel.others:.3g} {noun[panel.others != 1]}"


def _dot(tenth: Tenth) -> Dot:
    mark: Literal["diamond", "circle"] = "diamond" if tenth.deviates else "circle"
    text = (
        f"stated {percent(tenth.probability)}: expected {percent(tenth.expectation)}, "
        f"observed {percent(tenth.share.value)}, interval {ends(tenth.share.interval, 2)}"
    )
    return Dot(tenth.share.value or 0.0, tenth.share.interval, mark, text)


def _bracket(measure: Measure) -> str:
    return bracket(measure.interval, lambda end: number(100 * end, 0))


def _finding(check: CalibrationCheck) -> str:
    """Report the accuracy of the most probable leaders, and the verdict."""
    panel = check.panels[0]
    tenths_with_share = [tenth for tenth in panel.p_best.tenths if tenth.share.value is not None]
    verdict = _verdict(panel.p_best, "leaders")
    if not tenths_with_share:
        return f"With {panel.reviewers} reviewers, {verdict}."
    surest = tenths_with_share[-1]
    right = " ".join(filter(None, (percent(surest.share.value), _bracket(surest.share))))
    return (
        f"With {panel.reviewers} reviewers, leaders stated at {percent(surest.probability)} led "
        f"{_among(check)} in {right} of draws from {count_noun(surest.share.n, 'session')}; "
        f"{percent(surest.expectation)} was expected. Overall, {verdict}."
    )


def _verdict(curve: CalibrationCurve, subject: str) -> str:
    """Describe whether observed and expected differ more than chance."""
    gap = curve.gap
    if gap.value is None or gap.interval is None:
        return f"{count_noun(gap.n, 'session')} cannot show how often {subject} are right"
    low, high = sorted(100 * abs(end) for end in (gap.interval.low, gap.interval.high))
    size = number(100 * abs(gap.value), 0)
    unit = "point" if size == "1" else "points"
    points = f"{size} {unit} [{number(low, 0)}, {number(high, 0)}]"
    if gap.interval.high < 0:
        return f"{subject} are stated {points} too high"
    if gap.interval.low > 0:
        return f"{subject} are stated {points} too low"
    start, end = (signed_number(100 * end, 0) for end in (gap.interval.low, gap.interval.high))
    gap_text = f"{signed_number(100 * gap.value, 0)} {unit} [{start}, {end}]"
    single = any(tenth.deviates for tenth in curve.tenths)
    more = ", though some tenths differ more" if single else ""
    return f"observed and expected {subject} differ by {gap_text}, within chance{more}"


def _curves(check: CalibrationCheck) -> Iterator[Block]:
    for field, (title, key, meaning) in KINDS.items():
        yield Heading(title, key)
        yield Sentence(f"Stated is {meaning}", quiet=True)
        for panel in check.panels:
            verdict = _verdict(_curve(panel, field), title.lower())
            yield Sentence(f"{panel.reviewers} reviewers: {verdict}.")
        yield _tenths(check, field)


def _tenths(check: CalibrationCheck, field: str) -> Table:
    rows = [(panel, tenth) for panel in check.panels for tenth in _curve(panel, field).tenths]
    labels: dict[int, str] = {}
    for at, (panel, _) in enumerate(rows):
        if not at or rows[at - 1][0] is not panel:
            draws = count_noun(panel.draws, "draw")
            compared, sessions = _compared_text(check, panel), count_noun(panel.sessions, "session")
            labels[at] = f"{panel.reviewers} reviewers{compared}: {draws} from {sessions}"
    title = f"{KINDS[field][0]}, stated and observed"
    drawable = any(tenth.share.value is not None for _, tenth in rows)
    return table_of(
        title,
        [
            (Column("stated"), [percent(tenth.probability) for _, tenth in rows]),
            (
                Column(
                    "expected",
                    meaning="share that these others would observe if the stated probability is "
                    "right",
                ),
                [percent(tenth.expectation) for _, tenth in rows],
            ),
            (
                Column("observed", interval=90),
                [_share_cell(t.share, "few sessions", has_mark=t.deviates) for _, t in rows],
            ),
            (Column("sessions", keep=60), [f"{tenth.share.n:,}" for _, tenth in rows]),
            (
                Column("", "left", keep=95),
                ["differs" if tenth.deviates else "" for _, tenth in rows],
            ),
        ],
        labels=labels,
        chart=(lambda: calibration_chart(check, field)) if drawable else None,
    )


def _share_cell(share: Measure, few: str, *, has_mark: bool = False) -> Cell:
    if share.value is None:
        return Cell(None, basis=share.why or "", short=few)
    return Cell(percent(share.value), interval=_bracket(share), has_mark=has_mark)


def _scores(check: CalibrationCheck) -> Iterator[Block]:
    yield Heading("Scores", "scores")
    yield Sentence("Lower is better; in brackets: the score of equal probabilities.", quiet=True)
    curves: Sequence[tuple[PanelCheck, str, CalibrationCurve]] = [
        (panel, title.lower(), _curve(panel, field))
        for field, (title, _, _) in KINDS.items()
        for panel in check.panels
    ]
    yield table_of(
        "Scores by number of reviewers",
        [
            (Column("of", "left", heads=True), [what for _, what, _ in curves]),
            (Column("reviewers"), [str(panel.reviewers) for panel, _, _ in curves]),
            (
                Column(
                    "log score", meaning="mean −ln of the expected probability of what was observed"
                ),
                [_score(curve.log_score, curve.log_floor) for _, _, curve in curves],
            ),
            (
                Column("Brier score", meaning="mean squared distance from what was observed"),
                [_score(curve.brier, curve.brier_floor) for _, _, curve in curves],
            ),
        ],
        breaks=[len(check.panels)],
    )


def _reviewers(check: CalibrationCheck) -> Iterator[Block]:
    """List reviewers' agreement with people and weights, highest first."""
    if not check.matched:
        return
    names = sorted(check.matched, key=lambda name: -check.weights.get(name, 0.0))
    shares = [check.matched[name] for name in names]
    yield Heading("Reviewers", "reviewers")
    text = "The majority of people counts as right; use the weights on other sessions than these."
    if not check.weights:
        text = "No weights: no reviewer judged 50 pairs that people decided."
    yield Sentence(text, quiet=True)
    yield table_of(
        "Reviewers and people",
        [
            (Column("reviewer", "left", heads=True), names),
            (
                Column("matches", interval=90, meaning="share of the pairs on which it is right"),
                [_share_cell(share, "few pairs") for share in shares],
            ),
            (Column("pairs", keep=60), [f"{share.n:,}" for share in shares]),
            (Column("weight"), [number(check.weights.get(name), 2) for name in names]),
        ],
    )


def _score(value: float, floor: float) -> str:
    return f"{number(value, 3)} ({number(floor, 3)})"
