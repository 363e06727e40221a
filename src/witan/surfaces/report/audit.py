"""Write the report of an audit."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Literal

from witan.analytics.audits import AuditReport, CriterionReport, Grader
from witan.core.ballot import PEOPLE
from witan.core.display import level_percent
from witan.core.stats.audit import CHECKS, CriterionAudit, PanelAudit, concern_of
from witan.core.stats.audit_reviewers import GradingAudit, ReviewerAudit
from witan.core.stats.calibration import Calibration
from witan.core.stats.measures import Measure
from witan.errors import NothingToCount
from witan.service.text import UNKNOWN, count_noun, list_text, number
from witan.surfaces.report.chart import Axis, Band, Dot, DotLine, DotPlot, Facet, Facets
from witan.surfaces.report.document import (
    Block,
    Cell,
    Chart,
    Column,
    Heading,
    Link,
    Note,
    Report,
    Sentence,
    Table,
    table_of,
)

Measured = ReviewerAudit | PanelAudit | CriterionAudit | GradingAudit

_CHECKED = {check.measure: check for check in CHECKS}


@dataclass(frozen=True, slots=True)
class Word:
    """One measure in words.

    Parameters
    ----------
    measure
        Its name, with a dot if it is part of another measure.
    title
        Title of its column.
    meaning
        What the number is, without its value.
    table
        The table of all reviewers that has it as a column, if any.
    keep
        Priority of that column on a narrow terminal.
    strip, line
        The title of its strip in a chart, and the value of its line; empty: not drawn.
    """

    measure: str
    title: str
    meaning: str
    table: Literal["", "prefer", "agree"] = ""
    keep: int = 0
    strip: str = ""
    line: float = 0.0

    @property
    def name(self) -> str:
        """Name of the measure at the start of a sentence."""
        name = self.measure.replace(".", ", ").replace("_", " ")
        return f"{name[0].upper()}{name[1:]}"

    def of(self, line: Measured) -> Measure:
        """Look the measure up in a line."""
        value: Measure = attrgetter(self.measure)(line)
        return value

    def stands_out(self, line: Measured) -> bool:
        """True if a measure differs from the ideal beyond noise."""
        check = _CHECKED.get(self.measure)
        if check is None or not isinstance(line, ReviewerAudit | GradingAudit):
            return False
        return concern_of(check, self.of(line)) is not None


def with_data(words: Sequence[Word], lines: Sequence[Measured]) -> list[Word]:
    """Choose the measures for which some line has data."""
    return [word for word in words if any(word.of(line).n for line in lines)]


REVIEWER_WORDS = (
    Word("self_preference", "own", "share for its own answers, minus what the others give them",
         table="prefer", keep=95, strip="own answers"),
    Word("family_preference", "family", "share for its family's answers, minus what outsiders give",
         table="prefer", keep=60, strip="own family"),
    Word("position_effect", "place", "share gained by standing first on the sheet, not last",
         table="prefer", keep=85, strip="first place"),
    Word("first_shown", "first", "share of comparisons of two that the first shown wins",
         table="prefer", keep=55, strip="first of two", line=0.5),
    Word("length.shares", "length", "correlation of an answer's length with the share given"),
    Word("length.grades", "length, grades", "correlation of an answer's length with its grade"),
    Word("length.longer_wins", "longer", "share of decided pairs that the longer answer wins",
         table="prefer", keep=50),
    Word("length.shares_beyond_people", "length−people",
         "correlation with shares, minus that in people's votes"),
    Word("length.grades_beyond_people", "length, grades−people",
         "correlation with grades, minus that in people's grades"),
    Word("length.longer_wins_beyond_people", "longer−people",
         "share that the longer answer wins, minus that in people's votes",
         table="prefer", keep=45, strip="longer − people"),
    Word("severity", "severity", "grade minus the others' for the same answer",
         table="agree", keep=75, strip="severity"),
    Word("discrimination", "slope", "slope of its grades on the others', relative to all models",
         table="agree", keep=40),
    Word("spread", "spread", "spread of its grades on a ballot, relative to all models"),
    Word("agreement", "with others", "correlation of its shares with the others'",
         table="agree", keep=65, strip="with others"),
    Word("grade_agreement", "with others, grades", "correlation of its grades with the others'"),
    Word("agreement_with_people", "people", "share of pairs decided by people that it decides "
    "alike",
         table="agree", keep=90, strip="with people", line=0.5),
    Word("order_consistency", "consistent", "share of pairs that it judges the same in both orders",
         table="agree", keep=80, strip="consistency", line=0.5),
    Word("abstention_rate", "abstains", "share of its ballots without a vote",
         table="agree", keep=35),
    Word("repair_rate", "repaired", "share of its ballots that needed a second attempt",
         table="agree", keep=20),
    Word("flat_rate", "flat", "share of its ballots with a vote that rank all candidates equal",
         table="agree", keep=30),
)  # fmt: skip
"""Every measure of one reviewer, in display order."""

PANEL_WORDS = (
    Word("alpha.shares", "α, shares", "Krippendorff's α among models, of shares"),
    Word("alpha.grades", "α, grades", "Krippendorff's α among models, of grades"),
    Word("people_alpha.shares", "people's α, shares", "Krippendorff's α among people, of shares"),
    Word("people_alpha.grades", "people's α, grades", "Krippendorff's α among people, of grades"),
    Word("kendall_w", "Kendall's W", "Kendall's W of the models' ballots, mean over sessions"),
    Word("agreement", "agreement", "the leader's probability of being best, mean over sessions"),
    Word("shared_error", "shared error ρ", "correlation between reviewers of being right"),
    Word(
        "effective_votes", "effective votes", "number of independent votes that the panel is worth"
    ),
    Word("length.shares", "length, shares", "correlation of length with shares, all models"),
    Word("length.grades", "length, grades", "correlation of length with grades, all models"),
    Word("length.longer_wins", "longer wins", "share of decided pairs that the longer wins"),
    Word(
        "length.longer_wins_beyond_people",
        "longer − people",
        "the same, minus that in people's votes",
    ),
    Word("stability", "stability", "Kendall's τ between the rankings of two random halves"),
)
"""Every measure of the panel."""

CRITERION_WORDS = (
    Word("variance", "variance", "variance between reviewers of one answer"),
    Word("variance_over_overall", "over overall", "the same, relative to the overall grade"),
    Word("length", "length", "correlation with the length of the answer"),
    Word("length_beyond_overall", "length−overall", "the same, minus that of the overall grade"),
)
"""Every measure of a criterion."""

GRADING_WORDS = (
    Word("mean", "mean", "mean of its grades", keep=90),
    Word("severity", "severity", "grade minus the others' for the same answer",
         keep=85, strip="severity"),
    Word("discrimination", "slope", "slope of its grades on the others', relative to all reviewers",
         keep=80, strip="slope", line=1.0),
    Word("spread", "spread", "spread of its grades on a ballot, relative to all", keep=75),
    Word("flat_rate", "flat", "share of its ballots on which all grades are the same", keep=70),
    Word("agreement", "with others", "correlation of its grades with the others'",
         keep=65, strip="with others"),
    Word("halo", "halo", "correlation with its own grades on all other criteria", keep=60),
    Word("halo_beyond_others", "halo−others", "that correlation, minus that of the others",
         keep=55, strip="halo − others"),
    Word("length", "length", "correlation with the length of the answer", keep=50, strip="length"),
    Word("self_preference", "own", "grade minus the others', for its own answers minus for theirs",
         keep=45, strip="own answers"),
    Word("position_effect", "place", "grade gained by standing first on the sheet, not last",
         keep=40, strip="first place"),
)  # fmt: skip
"""Every measure of one reviewer on one criterion."""


SIGNED = ("difference of shares", "difference of correlations", "grade points")

FEW = "not enough data yet"

TABLES = {"prefer": "What they prefer", "agree": "How they grade and agree"}

Audited = ReviewerAudit | Grader

Measures = Sequence[tuple[Audited, ReviewerAudit | GradingAudit]]
"""Reviewers, and the measures of each."""


def audit_title(reviewer: str | None, criterion: str | None) -> str:
    """Title an audit by its reviewer and criterion."""
    if reviewer == PEOPLE and not criterion:
        return "How people judge"
    who, ending = (reviewer, "s") if reviewer else ("the reviewers", "")
    return f"How {who} grade{ending} {criterion}" if criterion else f"How {who} judge{ending}"


def audit_report(report: AuditReport) -> Report:
    """Write an audit report on all reviewers, one, or one criterion."""
    sessions, on = count_noun(report.sessions, "session"), report.criterion
    about: tuple[str, ...]
    blocks: tuple[Block, ...]
    if on is not None and report.only is not None:
        [grader] = on.graders
        title = audit_title(grader.reviewer, on.criterion)
        about = (_kind(grader), sessions)
        blocks = (_measure_list(title, GRADING_WORDS, grader.grading),)
    elif on is not None:
        title, about = audit_title(None, on.criterion), (sessions,)
        blocks = tuple(_criterion(report, on))
    elif report.panel is None or report.calibration is None:
        line = report.lines[0]
        title = audit_title(line.reviewer, None)
        counts = count_noun(line.ballots, "ballot"), count_noun(line.abstentions, "abstention")
        about = (_kind(line), ", ".join(counts), sessions)
        blocks = tuple(_reviewer(report, line))
    else:
        title, about = audit_title(None, None), (sessions,)
        blocks = tuple(_whole_report(report, report.panel, report.calibration))
    return Report(title, (*about, str(report.window)), "", blocks)


def audit_chart(report: AuditReport) -> Chart:
    """Chart every reviewer's or one's measures, each on its axis.

    A report on a criterion draws only the measures on it.
    """
    known_words: Sequence[Word] = REVIEWER_WORDS
    finding = _list_outliers(report)
    lines: Measures = [(line, line) for line in report.overview]
    if (on := report.criterion) is not None:
        known_words = GRADING_WORDS
        finding = f"How {report.only or 'reviewers'} graded {on.criterion}"
        lines = [(grader, grader.grading) for grader in on.graders]
    words = [
        word
        for word in known_words
        if (word.strip or any(word.stands_out(line) for _, line in lines))
        and any(word.of(line).value is not None for _, line in lines)
    ]
    if not words:
        raise NothingToCount("no measure of these reviewers has enough data to be drawn")
    all_rows = [_draw(each.reviewer, line, words) for each, line in lines]
    rows = tuple(row for row in all_rows if any(row.dots))
    about = (count_noun(report.sessions, "session"), str(report.window))
    return _measure_chart("Reviewers", report, words, rows, finding=finding, about=about)


def _measure_chart(
    title: str,
    report: AuditReport,
    words: Sequence[Word],
    rows: tuple[DotLine, ...],
    **texts: Any,
) -> Chart:
    """Draw each measure on an axis of its own."""
    axes = tuple(
        Axis.of_numbers(
            word.strip or word.title,
            ((dot.value, dot.interval) for row in rows if (dot := row.dots[at]) is not None),
            line=word.line if word.strip else None,
        )
        for at, word in enumerate(words)
    )
    caption = (
        f"Bars: {level_percent(report.level)} intervals; dashes: no effect, or chance; "
        "diamonds stand out. Each measure has its own scale; no mark means not enough data."
    )
    return Chart(DotPlot(axes, (), (Band(rows),)), title, caption, **texts)


def _list_outliers(report: AuditReport) -> str:
    lines = report.overview
    names = [line.reviewer for line in lines if line.reviewer in report.concerns]
    if not names:
        return "Nothing stands out beyond noise"
    if len(names) == len(lines) == 1:
        [concern, *more] = report.concerns[names[0]]
        also = f", and {count_noun(len(more), 'more concern')}" if more else ""
        return f"{names[0]} {concern.sentence}{also}"
    return f"Something stands out in {list_text(names)}"


def _draw(name: str, line: Measured, words: Sequence[Word], link: Link | None = None) -> DotLine:
    """Draw a reviewer, or a criterion, in one row."""
    dots: list[Dot | None] = []
    for word in words:
        measure = word.of(line)
        if measure.value is None:
            dots.append(None)
            continue
        stands_out = word.stands_out(line)
        numbers = f"{_value_text(measure, measure.value)}, interval {_interval(measure) or UNKNOWN}"
        text = (
            f"{name}, {word.strip or word.title}: {numbers.replace('-', '−')}, "
            f"{measure.n:,} {measure.of}{', stands out' * stands_out}"
        )
        mark: Literal["circle", "diamond"] = "diamond" if stands_out else "circle"
        dots.append(Dot(measure.value, measure.interval, mark, text))
    return DotLine(name, "", tuple(dots), link=link or "")


def _kind(line: Audited) -> str:
    if not line.human:
        return "a model"
    return "everybody who voted" if line.reviewer == PEOPLE else "a person"


def _whole_report(
    report: AuditReport, panel: PanelAudit, calibration: Calibration
) -> Iterator[Block]:
    yield Heading("What stands out", "out")
    yield from _concerns(report)
    for key, title in TABLES.items():
        words = [word for word in REVIEWER_WORDS if word.table == key]
        lines = [(line, line) for line in report.overview]
        if known := with_data(words, report.overview):
            yield Heading(title, key)
            yield from _comparison(report, title, known, lines)
    yield Heading("The panel", "panel")
    yield _measure_list("The panel", PANEL_WORDS, panel)
    if any(line.criterion is not None for line in panel.criteria):
        yield Heading("Criteria", "criteria")
        yield _criteria(report, panel)
    yield Heading("Reliability", "reliable")
    yield from _reliability(calibration)


def _concerns(report: AuditReport) -> Iterator[Block]:
    """List deviations beyond noise by reviewer, or state their absence."""
    level = level_percent(report.level)
    if report.concerns:
        for reviewer, concerns in report.concerns.items():
            yield Note("; ".join(each.sentence for each in concerns), "concern", reviewer)
        yield Sentence(f"Based on {level} intervals.", quiet=True)
    elif any(word.of(line).interval for line in report.lines for word in REVIEWER_WORDS):
        yield Sentence(f"Nothing stands out at {level}; this does not rule out bias.")
    else:
        yield Sentence("No measure of a reviewer has enough data for an interval yet.")


def _reviewer(report: AuditReport, line: ReviewerAudit) -> Iterator[Block]:
    """Report all measures of one reviewer, then those by criterion."""
    for concern in report.concerns.get(line.reviewer, ()):
        yield Note(f"It {concern.sentence}.", "concern")
    yield _measure_list(f"Every measure of {line.reviewer}", REVIEWER_WORDS, line, every=True)
    for place, criterion in enumerate(line.criteria, 1):
        yield Heading(f"On {criterion.criterion}", f"criterion-{place}")
        yield _measure_list(
            f"How {line.reviewer} grades {criterion.criterion}", GRADING_WORDS, criterion
        )


def _criterion(report: AuditReport, criterion: CriterionReport) -> Iterator[Block]:
    yield Heading("Reviewers", "reviewers")
    gradings = [grader.grading for grader in criterion.graders]
    lines = list(zip(criterion.graders, gradings, strict=True))
    words = with_data(GRADING_WORDS, gradings)
    yield from _comparison(report, "Reviewers", words, lines, criterion.criterion)
    if criterion.panel is not None:
        yield Heading("The panel", "panel")
        yield _measure_list(f"The panel on {criterion.criterion}", CRITERION_WORDS, criterion.panel)


def _comparison(
    report: AuditReport,
    title: str,
    words: Sequence[Word],
    lines: Measures,
    criterion: str = "",
) -> Iterator[Block]:
    """Compare reviewers: models first, those without enough data last."""

    def place(pair: tuple[Audited, ReviewerAudit | GradingAudit]) -> tuple[bool, bool]:
        return all(word.of(pair[1]).value is None for word in words), pair[0].human

    ordered = sorted(lines, key=place)
    places = [place(pair) for pair in ordered]
    first_with_few = next((at for at, (lacks_data, _) in enumerate(places) if lacks_data), None)
    compared = places[:first_with_few]
    breaks = {at for at in range(1, len(compared)) if compared[at] != compared[at - 1]}
    labels, folds = {}, {}
    if first_with_few is not None:
        few = count_noun(len(ordered) - first_with_few, "reviewer")
        labels = {first_with_few: FEW}
        folds = {first_with_few: f"{few} without enough data"}
    names = [
        Cell(line.reviewer, basis=_kind(line) if line.human else "", link=_link(line, criterion))
        for line, _ in ordered
    ]
    columns: list[tuple[Column, list[Cell]]] = [
        (Column("reviewer", "left", fit="middle", heads=True), names)
    ]
    if not criterion:
        ballots = [Cell(f"{line.ballots:,}") for line, _ in ordered]
        columns.append((Column("ballots", keep=70), ballots))
    for word in words:
        cells = [_cell(word, of) for _, of in ordered]
        columns.append((Column(word.title, keep=word.keep, meaning=word.meaning), cells))
    drawable = [word for word in words if any(word.of(of).value is not None for _, of in ordered)]
    rows = tuple(
        _draw(line.reviewer, of, drawable, _link(line, criterion))
        for line, of in ordered[:first_with_few]
    )
    yield table_of(
        title,
        columns,
        breaks=breaks,
        labels=labels,
        folds=folds,
        form="measured",
        chart=(lambda: _measure_chart(title, report, drawable, rows)) if len(rows) > 1 else None,
    )
    cells = [cell for _, group in columns for cell in group]
    legend = ["A cell such as 7/20 has too little data: 7 of the 20 needed."] * any(
        "/" in cell.short and cell.text is None for cell in cells
    )
    if any(cell.has_mark for cell in cells):
        legend.append(f"! stands out at {level_percent(report.level)}.")
    if legend:
        yield Sentence(" ".join(legend), quiet=True)


def _link(line: Audited, criterion: str) -> Link:
    only = {"reviewer": line.reviewer} | ({"criterion": criterion} if criterion else {})
    return Link("audit", only)


def _cell(word: Word, line: Measured) -> Cell:
    """Print a measure, or its amount of data if too small."""
    measure = word.of(line)
    if measure.value is None:
        if not measure.n:
            return Cell(None)
        few = f"{measure.n:,}/{measure.needed:,}" if measure.n < measure.needed else ""
        why = _basis(measure)
        return Cell(None, basis=why, short=few or why.partition(":")[0])
    return Cell(
        _value_text(measure, measure.value),
        _interval(measure) or "no interval",
        f"{measure.n:,} {measure.of}",
        f"n {measure.n:,}",
        word.stands_out(line),
    )


def _value_text(measure: Measure, value: float) -> str:
    """Print a value in its unit, signed around 0."""
    value_text = number(value, 1 if measure.unit == "votes" else 2)
    if measure.unit not in SIGNED or value < 0 or float(value_text) == 0:
        return value_text
    return f"+{value_text}"


def _interval(measure: Measure) -> str:
    if measure.interval is None:
        return ""
    low, high = (_value_text(measure, end) for end in (measure.interval.low, measure.interval.high))
    return f"{low} to {high}"


def _basis(measure: Measure) -> str:
    if measure.value is None and measure.why is not None:
        return measure.why
    return f"{measure.n:,} {measure.of}"


def _measure_list(
    title: str, words: Sequence[Word], line: Measured, *, every: bool = False
) -> Table:
    """List measures one per row; empty ones only under `every`."""
    if not every:
        words = [word for word in words if word.of(line).n or word.of(line).value is not None]
    words = sorted(words, key=lambda word: word.of(line).value is None)
    first_with_few = sum(word.of(line).value is not None for word in words)
    few = len(words) - first_with_few
    folds = {first_with_few: f"{count_noun(few, 'measure')} without enough data"}
    cells = [_cell(word, line) for word in words]
    return table_of(
        title,
        [
            (
                Column("measure", "left", heads=True),
                [word.name if every else word.title for word in words],
            ),
            (Column("value"), [Cell(cell.text, has_mark=cell.has_mark) for cell in cells]),
            (Column("interval", "left", keep=80), [cell.interval or UNKNOWN for cell in cells]),
            (
                Column("rests on", "left", keep=70),
                [_basis(word.of(line)) for word in words],
            ),
            (Column("is", "left", keep=60), [word.meaning for word in words]),
        ],
        labels={first_with_few: FEW} if few and first_with_few else {},
        folds=folds if few and first_with_few else {},
        form="measures",
    )


def _criteria(report: AuditReport, panel: PanelAudit) -> Table:
    """Place criteria side by side, the overall grade among them."""
    drawn = [
        word
        for word in CRITERION_WORDS
        if any(word.of(line).value is not None for line in panel.criteria)
    ]
    names, rows = [], []
    for line in panel.criteria:
        name = line.criterion or "overall"
        link = Link("audit", {"criterion": name}) if line.criterion else None
        names.append(Cell(name, link=link))
        rows.append(_draw(name, line, drawn, link))
    return table_of(
        "Criteria",
        [
            (Column("criterion", "left", fit="middle", heads=True), names),
            *(
                (
                    Column(word.title, keep=80, interval=40, meaning=word.meaning),
                    [_cell(word, line) for line in panel.criteria],
                )
                for word in CRITERION_WORDS
            ),
        ],
        form="measured",
        chart=(lambda: _measure_chart("Criteria", report, drawn, tuple(rows))) if drawn else None,
    )


def _reliability(calibration: Calibration) -> Iterator[Block]:
    """Report how often panels of this confidence agreed with people."""
    if not calibration.is_known:
        why = calibration.reliability(0.5).why
        yield Sentence(f"It is unknown how often panels are right: {why}.")
        return
    matched = [block.reliability for block in calibration.blocks]
    yield table_of(
        "Reliability",
        [
            (
                Column("panel's confidence", "left", heads=True),
                [f"{number(block.low)} to {number(block.high)}" for block in calibration.blocks],
            ),
            (Column("pairs"), [f"{block.pairs:,}" for block in calibration.blocks]),
            (
                Column("matched people"),
                ["unknown" if m.value is None else _value_text(m, m.value) for m in matched],
            ),
            (Column("interval", "left"), [_interval(m) or UNKNOWN for m in matched]),
        ],
        chart=(lambda: _reliability_chart(calibration))
        if any(m.value is not None for m in matched)
        else None,
    )
    yield Sentence(
        f"Of {count_noun(calibration.pairs, 'pair')} that people decided: how often panels with "
        "this confidence agreed with them.",
        quiet=True,
    )


def _reliability_chart(calibration: Calibration) -> Chart:
    dots = []
    for block in calibration.blocks:
        measure = block.reliability
        if measure.value is None:
            continue
        text = (
            f"confidence {number(block.low)} to {number(block.high)}: matched people in "
            f"{_value_text(measure, measure.value)}, interval {_interval(measure) or UNKNOWN}, "
            f"{count_noun(block.pairs, 'pair')}"
        )
        dot = Dot(measure.value, measure.interval, alt_text=text)
        dots.append(((block.low + block.high) / 2, dot))
    least = min(dot.interval.low if dot.interval else dot.value for _, dot in dots)
    up = Axis("Share of pairs in which the panel agreed with people", min(0.5, least), 1.0)
    across = Axis("Panel's confidence in the pair", 0.5, 1.0)
    return Chart(
        Facets(across, up, (Facet("", tuple(dots), ()),)),
        "Reliability",
        "Bars: intervals. On the diagonal, the panel is as often right as its confidence states; "
        "below it, the panel is overconfident.",
    )
