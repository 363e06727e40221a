"""The report of a leaderboard: standings, head to head, cost against quality, scores over time."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import pairwise

from witan.core.outcome import Interval
from witan.core.rules import RULES
from witan.core.stats.leaderboard import Leaderboard, LeaderboardLine
from witan.core.window import Window
from witan.service.text import UNKNOWN, counted, decimals, number
from witan.surfaces.charts.leaderboards import (
    ORDERS,
    bands_of,
    bars,
    line_of,
    number_of,
    probability_text,
    ranks_text,
)
from witan.surfaces.report.document import (
    Block,
    Chart,
    Column,
    Heading,
    Note,
    Report,
    Sentence,
    Table,
    table_of,
)
from witan.surfaces.report.drawings import (
    Band,
    Bar,
    Bars,
    Grid,
    Mark,
    Point,
    Scatter,
    Square,
    Strip,
    Strips,
)
from witan.surfaces.report.scale import MARGIN, SCORES, AxisScale, shade

Parts = Sequence[tuple[Window, Leaderboard | None]]
"""Leaderboards of equal parts of the time; None: no session fell into it."""

Shown = list[tuple[Column, list[str]]]

WHOSE = {"model": "models' ballots", "human": "people's ballots"}

NUMBERS = {"score": "mean score", "rating": "rating", "elo": "Elo"}

TIED = "neighbours too close to call"

FIRST = 12
"""Models drawn at once in a grid or in strips; with more, neither can be read."""


def leaderboard_report(board: Leaderboard, parts: Parts | None = None) -> Report:
    """Write the report of a leaderboard.

    Parameters
    ----------
    parts
        The same leaderboard in parts of its time; None: scores over time are left out.
    """
    terms = board.terms
    return Report(
        "Leaderboard",
        (terms.rule, WHOSE[terms.kind], f"by {NUMBERS[terms.order_by]}", str(terms.window)),
        board.interpretation,
        (
            Heading("Standings", "board"),
            Chart(_bars(board)),
            _standings(board),
            *(Note(warning, "warning") for warning in board.warnings),
            *_strength(board),
            *_costs(board),
            *(() if parts is None else _trend(board, parts)),
        ),
    )


def _standings(board: Leaderboard) -> Table:
    """Make the table; a line parts models that differ beyond noise."""
    ranked, lines = len(board.lines), (*board.lines, *board.provisional)
    labels = {ranked: _apart(board)} if board.provisional else {}
    strong = [at for at, line in enumerate(lines) if line.rank_low == 1]
    breaks = _breaks(board.lines)
    columns = [*_numbers(board, lines), *_details(board, lines)]
    return table_of("Standings", columns, breaks=breaks, labels=labels, strong=strong)


def _apart(board: Leaderboard) -> str:
    """Explain why models have no rank."""
    least = board.terms.min_sessions
    why = f"without a rank: fewer than {counted(least, 'scored session')}"
    if any(line.sessions >= least for line in board.provisional):
        why += f", or no {NUMBERS[board.terms.order_by]} that compares"
    return why


def _breaks(lines: Sequence[LeaderboardLine]) -> set[int]:
    """Find the lines that differ beyond noise from the one above, or were never compared."""
    return {
        index
        for index, (above, below) in enumerate(pairwise(lines), start=1)
        if above.tied_with_next is False or above.group != below.group
    }


def _numbers(board: Leaderboard, lines: Sequence[LeaderboardLine]) -> Shown:
    """Rank, score and rating, each with what noise leaves of it."""
    digits = decimals([line.score for line in lines])
    low_is_best = RULES[board.terms.rule].lower_is_better
    shown: Shown = []
    if any(line.group not in (None, 1) for line in lines):
        meaning = "models joined by comparisons; ranks, scores and ratings compare within one only"
        shown.append((Column("group", meaning=meaning), [_whole(line.group) for line in lines]))
    if any(line.rank is not None for line in lines):
        shown.append((Column("rank"), [_whole(line.rank) for line in lines]))
    shown += [
        (
            Column("model", "left", fit="middle", heads=True),
            [line.model for line in lines],
        ),
        (
            Column("score (low is best)" if low_is_best else "score"),
            [number(line.score, digits) for line in lines],
        ),
    ]
    interval = f"{board.terms.level * 100:g}% interval"
    several = ", and groups" if len(board.groups) > 1 else ""
    may = (
        "the ranks that noise leaves; a ruled line parts neighbours that differ beyond it" + several
    )
    pairs = counted(int(f"{board.n_comparisons:.0f}"), "comparison")
    rating = f"strength in logits ± its error, from {pairs} of two models"
    return shown + _known(
        (Column(interval, keep=70), [_ends(line.interval, digits) for line in lines]),
        (Column("may rank", keep=75, meaning=may), [ranks_text(line) for line in lines]),
        (Column("rating", keep=50, meaning=rating), [_rating(line) for line in lines]),
        (Column("Elo", keep=80), [number(line.elo, 0) for line in lines]),
    )


def _details(board: Leaderboard, lines: Sequence[LeaderboardLine]) -> Shown:
    """Write the columns of sessions, changes and costs."""
    digits = decimals([line.score for line in lines])
    shown: Shown = [
        (Column("sessions", keep=85), [f"{line.sessions:,}" for line in lines]),
        (Column("votes", keep=30), [f"{line.votes:,}" for line in lines]),
        (Column("wins", keep=35), _wins(lines)),
        (Column("coverage", "left", keep=40), [line.confidence for line in lines]),
    ]
    change = f"of the score, against sessions {board.compared_to}; * beyond noise"
    moved = f"ranks gained, against sessions {board.compared_to}"
    shown += _known(
        (Column("change", keep=65, meaning=change), [_change(line, digits) for line in lines]),
        (Column("moved", keep=62, meaning=moved), [_moved(line) for line in lines]),
        (Column("$/answer", keep=25), [number(line.effort.cost_usd, 4) for line in lines]),
        (Column("s/answer", keep=20), [number(line.effort.seconds, 1) for line in lines]),
    )
    if any(line.effort.failure_rate for line in lines):
        shown.append((Column("failed", keep=22), [_failed(line) for line in lines]))
    return shown


def _known(*columns: tuple[Column, list[str]]) -> Shown:
    """Leave out columns without a single value."""
    return [each for each in columns if any(cell != UNKNOWN for cell in each[1])]


def _whole(value: int | None) -> str:
    return UNKNOWN if value is None else str(value)


def _ends(interval: Interval | None, digits: int) -> str:
    if interval is None:
        return UNKNOWN
    return f"{number(interval.low, digits)} to {number(interval.high, digits)}"


def _rating(line: LeaderboardLine) -> str:
    if line.rating is None:
        return UNKNOWN
    return f"{_signed(line.rating, 2)} ± {number(line.rating_error)}"


def _wins(lines: Sequence[LeaderboardLine]) -> list[str]:
    """Print whole numbers unless some first place was shared."""
    whole = all(float(line.wins).is_integer() for line in lines)
    return [f"{line.wins:,.{0 if whole else 1}f}" for line in lines]


def _change(line: LeaderboardLine, digits: int) -> str:
    if line.change is None:
        return UNKNOWN
    return _signed(line.change.score, digits) + "*" * (line.change.beyond_error is True)


def _moved(line: LeaderboardLine) -> str:
    if line.change is None or line.change.rank is None:
        return UNKNOWN
    return f"{line.change.rank:+d}" if line.change.rank else "0"


def _signed(value: float, digits: int) -> str:
    shown = number(value, digits)
    return shown if shown.startswith("-") or float(shown) == 0 else f"+{shown}"


def _failed(line: LeaderboardLine) -> str:
    rate = line.effort.failure_rate
    return UNKNOWN if rate is None else f"{number(100 * rate, 0)}%"


def _printed(value: float | None, digits: int) -> str:
    """Print a number of a drawing, with the minus sign of print."""
    return number(value, digits).replace("-", "−")


def _turned(board: Leaderboard) -> bool:
    """Tell whether low numbers are best in what orders."""
    return board.terms.order_by == "score" and RULES[board.terms.rule].lower_is_better


def _axis(board: Leaderboard) -> str:
    what = SCORES.get(board.terms.rule, board.terms.rule)
    by_score = board.terms.order_by == "score"
    axis = f"Mean over sessions · {what}" if by_score else ORDERS[board.terms.order_by]
    return f"{axis}; {'lower' if _turned(board) else 'higher'} is better"


def _bars(board: Leaderboard) -> Bars:
    lines = (*board.lines, *board.provisional)
    scale = AxisScale.over((number_of(board, line) for line in lines), turned=_turned(board))
    digits = 0 if board.terms.order_by == "elo" else 2
    low, high = (_printed(end, digits) for end in scale.ends)
    marks = "; ".join(bars(board)).replace(" %", "%")
    return Bars(_axis(board), low, high, marks, tuple(_bands(board, scale)))


def _bands(board: Leaderboard, scale: AxisScale) -> Iterator[Band]:
    for lines in board.groups:
        group = [f"group {lines[0].group}"] * (len(board.groups) > 1)
        for band in bands_of(lines):
            label = [*group, *[TIED] * (len(band) > 1)]
            yield Band(" · ".join(label), tuple(_bar(board, line, scale) for line in band))
            group = []
    if board.provisional:
        apart = tuple(_bar(board, line, scale) for line in board.provisional)
        yield Band("without a rank", apart, ranked=False)


def _bar(board: Leaderboard, line: LeaderboardLine, scale: AxisScale) -> Bar:
    value, interval = number_of(board, line)
    ends = _ends(interval, 3 if board.terms.order_by == "score" else 2)
    return Bar(
        line.model,
        _whole(line.rank),
        line_of(board, line)["printed"],
        "unknown" if interval is None else ends.replace("-", "−"),
        ranks_text(line),
        scale.dot(value, interval),
    )


def _strength(board: Leaderboard) -> Iterator[Block]:
    """Compare everybody with everybody, where two models have ratings with errors."""
    names = tuple(line.model for line in (*board.lines, *board.provisional))
    if len(names) < 2 or not any(p is not None for row in board.p_beats for p in row):
        return
    rows = tuple(
        tuple(
            None if i == j else _square(p, row_name, names[j])
            for j, p in enumerate(board.p_beats[i])
        )
        for i, row_name in enumerate(names)
    )
    first = f", of the first {FIRST}" if len(names) > FIRST else ""
    yield Heading("Head-to-head probability", "beats")
    yield Chart(
        Grid("Head-to-head probability", names, rows, min(len(names), FIRST)),
        "How sure it is, by the ratings, that the model of the row is stronger than that of the "
        f"column{first}. Darker is surer. Columns are numbered as the rows are.",
    )


def _square(p: float | None, name: str, rival: str) -> Square:
    if p is None:
        return Square(UNKNOWN, f"{name} over {rival}: unknown", shade(p))
    return Square(probability_text(p), f"{name} over {rival}: {number(p)}", shade(p))


def _costs(board: Leaderboard) -> Iterator[Block]:
    """Draw the number against the cost, where two models have both."""
    lines = (*board.lines, *board.provisional)
    known = [
        (line, line.effort.cost_usd)
        for line in lines
        if line.effort.cost_usd is not None and number_of(board, line)[0] is not None
    ]
    most = max((cost for _, cost in known), default=0.0)
    if len(known) < 2 or most <= 0:
        return
    scale = AxisScale.over((number_of(board, line) for line, _ in known), turned=_turned(board))
    points = [_point(board, line, cost / most, key, scale) for key, (line, cost) in
              enumerate(known, 1)]  # fmt: skip
    low, high = (_printed(end, 2) for end in scale.ends)
    numbers = table_of(
        "Cost against quality",
        [
            (Column("no."), [point.key for point in points]),
            (Column("model", "left", heads=True), [line.model for line, _ in known]),
            (Column("number"), [line_of(board, line)["printed"] for line, _ in known]),
            (Column("$/answer"), [number(cost, 4) for _, cost in known]),
        ],
    )
    unknown = counted(len(lines) - len(known), "model")
    yield Heading("Cost against quality", "costs")
    yield Chart(
        Scatter(_axis(board), low, high, number(most, 4), tuple(points)),
        f"Left out, without a known cost: {unknown}." if len(lines) > len(known) else "",
        numbers,
        beside=True,
    )


def _point(
    board: Leaderboard, line: LeaderboardLine, share: float, key: int, scale: AxisScale
) -> Point:
    """Place a model whose cost is that share of the highest."""
    value, interval = number_of(board, line)
    assert value is not None  # noqa: S101 - chosen by the caller
    return Point(
        str(key),
        round(MARGIN + (100 - 2 * MARGIN) * share, 2),
        scale.down(value),
        None if interval is None else scale.down(interval.low),
        None if interval is None else scale.down(interval.high),
        f"{key}, {line.model}: {line_of(board, line)['printed']}",
    )


def _trend(board: Leaderboard, parts: Parts) -> Iterator[Block]:
    """Draw mean scores over time, where two parts of it have scores."""
    yield Heading("Over time", "trend")
    if sum(part is not None for _, part in parts) < 2:
        yield Sentence("All sessions are of one time.")
        return
    models = [line.model for line in (*board.lines, *board.provisional)]
    lines = {model: [_scored(part, model) for _, part in parts] for model in models}
    scored = [line for each in lines.values() for line in each if line is not None]
    turned = RULES[board.terms.rule].lower_is_better
    scale = AxisScale.over(((line.score, line.interval) for line in scored), turned=turned)
    low, high = (_printed(end, 2) for end in scale.ends)
    more = f"{counted(len(models) - FIRST, 'more model')}." if len(models) > FIRST else ""
    strips = tuple(_strip(model, lines[model], scale) for model in models[:FIRST])
    first, last = _day(parts[0][0].since), _day(parts[-1][0].until)
    columns = [
        (Column("model", "left", heads=True), models),
        *(
            (
                Column(f"from {_day(window.since)}"),
                [_mean_score(lines[model][at]) for model in models],
            )
            for at, (window, _) in enumerate(parts)
        ),
    ]
    yield Chart(
        Strips(first, last, low, high, more, strips),
        "Mean score of each part of the time, with its interval; in the numbers, ± its standard "
        "error and, in brackets, sessions.",
        table_of("Over time", columns),
    )


def _scored(part: Leaderboard | None, model: str) -> LeaderboardLine | None:
    line = None if part is None else part.by_model.get(model)
    return line if line is not None and line.score is not None else None


def _strip(model: str, lines: Sequence[LeaderboardLine | None], scale: AxisScale) -> Strip:
    marks = []
    for at, line in enumerate(lines):
        if line is None or line.score is None:
            continue
        ends = line.interval
        marks.append(
            Mark(
                round(100 * (at + 0.5) / len(lines), 2),
                scale.down(line.score),
                None if ends is None else scale.down(ends.low),
                None if ends is None else scale.down(ends.high),
            )
        )
    scores = [_printed(line.score, 2) for line in lines if line is not None]
    return Strip(
        model,
        f"{model}: {', '.join(scores) or 'no score'}",
        tuple(marks),
        tuple(pairwise(marks)),
        scores[-1] if scores else UNKNOWN,
    )


def _mean_score(line: LeaderboardLine | None) -> str:
    if line is None:
        return UNKNOWN
    error = "" if line.std_error is None else f" ± {number(line.std_error, 2)}"
    return f"{number(line.score, 2)}{error} ({line.sessions:,})"


def _day(at: datetime | None) -> str:
    return "" if at is None else f"{at:%Y-%m-%d}"
