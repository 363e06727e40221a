"""The report of estimates: corrected, uncorrected and people's own means, and differences."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from witan.core.estimation import (
    Cluster,
    CorrectedMean,
    DifferenceEstimate,
    Estimates,
    PanelEstimate,
    SystemEstimate,
)
from witan.core.stats.measures import Measure
from witan.core.stats.prediction_powered import MIN_CLUSTERS
from witan.service.operations.calibration import EstimateResult
from witan.service.text import count_noun, number
from witan.surfaces.report.document import (
    Block,
    Cell,
    Column,
    Heading,
    Report,
    Sentence,
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
"""Quantity to the title and key of its section."""


def estimates_report(estimates: Estimates) -> Report:
    """Write the report: the leading system, then each quantity with its differences."""
    unread = estimates.not_read if isinstance(estimates, EstimateResult) else ()
    people = f"people's votes on {estimates.people_sessions:,}"
    mark = () if estimates.pass_mark is None else (f"passing from {estimates.pass_mark:g}",)
    return Report(
        "How good are the systems?",
        (count_noun(estimates.sessions, "session"), people, *mark),
        _finding(estimates),
        (
            *estimate_blocks(estimates),
            *unread_blocks(unread),
        ),
    )


def estimate_blocks(estimates: Estimates) -> Iterator[Block]:
    """Write each quantity with its differences, and what the estimate assumes."""
    yield from _sections(estimates)
    yield from _panel(estimates.panel, estimates.cluster)
    yield from _assumption(estimates)


def mean_sentence(estimate: SystemEstimate) -> str:
    """Say one mean: corrected, by the jury alone, by people alone."""
    mean = estimate.mean
    return (
        f"the {estimate.quantity} is {_text(mean.corrected)}; the jury alone says "
        f"{_text(mean.jury)}, people alone {_text(mean.people)}"
    )


def _finding(estimates: Estimates) -> str:
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
        return (
            f"The jury alone gives {name} the highest {quantity}, {_text(mean.jury)}; people's "
            f"votes are too few to correct it."
        )
    sentence = (
        f"Corrected by people's votes, {name} has the highest {quantity}, "
        f"{_text(mean.corrected)}; the jury alone says {_text(mean.jury)}, people alone "
        f"{_text(mean.people)}."
    )
    return f"{sentence}{_lead(estimates, best, lines)}"


def _lead(estimates: Estimates, best: SystemEstimate, lines: Sequence[SystemEstimate]) -> str:
    """Say how far the first is above the second."""
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
            yield _differences(title, first, apart)


def _panel(panel: PanelEstimate | None, cluster: Cluster) -> Iterator[Block]:
    """Write what a panel without people's votes says of true pass rates."""
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


def _differences(title: str, first: str | None, estimates: Sequence[DifferenceEstimate]) -> Block:
    what = f"{first} minus"
    return _table(
        f"{title}: differences",
        what,
        [each.second for each in estimates],
        [e.mean for e in estimates],
    )


def _table(title: str, heading: str, names: Sequence[str], means: Sequence[CorrectedMean]) -> Block:
    return table_of(
        title,
        [
            (Column(heading, "left", fit="middle", heads=True), list(names)),
            (
                Column("corrected", interval=90, meaning="the jury's, corrected by people's votes"),
                [_cell(each.corrected) for each in means],
            ),
            (Column("jury alone", interval=70), [_cell(each.jury) for each in means]),
            (Column("people alone", interval=80), [_cell(each.people) for each in means]),
            (
                Column("judged by people", keep=60),
                [f"{each.people.n:,} of {each.jury.n:,}" for each in means],
            ),
        ],
    )


def _cell(measure: Measure) -> Cell:
    return measure_cell(measure, "few sessions", _number_writer(measure))


def _number_writer(measure: Measure) -> Callable[[float | None], str]:
    return partial(number, digits=2 if measure.unit.startswith("grade") else 3)


def _text(measure: Measure) -> str:
    write = _number_writer(measure)
    return " ".join(filter(None, (write(measure.value), bracket(measure.interval, write))))


def _cluster_sentence(estimates: Estimates) -> str:
    """Say what the intervals take to vary together."""
    questions = count_noun(estimates.questions, "question")
    if estimates.cluster == "question":
        return f"Intervals are clustered by question: {questions}."
    if estimates.questions < estimates.sessions:
        return (
            f"Intervals are clustered by session, and hold for more texts of {questions} only: "
            f"fewer than {MIN_CLUSTERS} make no clusters."
        )
    return "Intervals are clustered by session: each has a question of its own, or names none."


def _assumption(estimates: Estimates) -> Iterator[Block]:
    yield Sentence(_cluster_sentence(estimates), quiet=True)
    if estimates.people_sessions:
        yield Sentence(
            "The correction holds if the sessions that people judged are drawn at random from all. "
            "The jury's own interval says nothing of its bias.",
            quiet=True,
        )
    else:
        yield Sentence(
            "Without people's votes nothing corrects the jury; have people judge some sessions "
            "drawn at random.",
            quiet=True,
        )
