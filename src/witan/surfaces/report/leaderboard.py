"""Write the report of a leaderboard."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import pairwise

from witan.core.display import dollars, level_percent, percent
from witan.core.outcome import Interval
from witan.core.rules import RULES
from witan.core.stats.leaderboard import Leaderboard, LeaderboardLine, Window
from witan.errors import NothingToCount
from witan.service.text import UNKNOWN, count_noun, decimals, interval_text, number
from witan.service.trust import cost_sum_text
from witan.surfaces.report.chart import (
    SCORES,
    Axis,
    Band,
    Dot,
    DotLine,
    DotPlot,
    Grid,
    LogAxis,
    Point,
    Scatter,
    Series,
    Square,
    Strips,
    ends,
    signed_number,
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
    columns_with_values,
    table_of,
)

Parts = Sequence[tuple[Window, Leaderboard | None]]
"""Leaderboards of equal periods; None: a period without sessions."""

Shown = list[tuple[Column, list[str]]]

WHOSE = {"model": "models' ballots", "human": "people's ballots"}

NUMBERS = {"score": "mean score", "rating": "rating", "elo": "Elo"}

ORDERS = {"rating": "Bradley–Terry rating, logits", "elo": "Elo rating"}

FIRST = 12
"""Most models in a grid or in strips; with more, they are unreadable."""


def leaderboard_report(board: Leaderboard, parts: Parts | None = None) -> Report:
    """Write the report of a leaderboard.

    `parts` are leaderboards of parts of its window, for scores over time.
    """
    terms = board.terms
    return Report(
        "Leaderboard",
        (terms.rule, WHOSE[terms.kind], f"by {NUMBERS[terms.order_by]}", str(terms.window)),
        board.interpretation,
        (
            Heading("Standings", "board"),
            *map(Sentence, board.group_interpretations),
            _standings(board),
            *(Note(warning, "warning") for warning in board.warnings),
            *_strength(board),
            *_costs(board),
            *(() if parts is None else _trend(board, parts)),
        ),
    )


def _standings(board: Leaderboard) -> Table:
    """Make the table; a line separates models that differ beyond noise."""
    ranked, lines = len(board.lines), (*board.lines, *board.provisional)
    labels = {ranked: _explain_unranked(board)} if board.provisional else {}
    strong = [at for at, line in enumerate(lines) if line.rank_low == 1]
    neighbours = enumerate(pairwise(board.lines), start=1)
    breaks = {
        at
        for at, (above, below) in neighbours
        if above.tied_with_next is False or above.group != below.group
    }
    columns = [*_numbers(board, lines), *_details(board, lines)]
    return table_of(
        "Standings",
        columns,
        breaks=breaks,
        labels=labels,
        strong=strong,
        chart=lambda: leaderboard_chart(board, with_unranked=not ranked),
        folds={ranked: f"{count_noun(len(board.provisional), 'model')} without a rank"}
        if ranked and board.provisional
        else {},
    )


def _explain_unranked(board: Leaderboard) -> str:
    why = f"without a rank: {board.terms.too_few}"
    if any(line.sessions >= board.terms.min_sessions for line in board.provisional):
        why += f", or no comparable {NUMBERS[board.terms.order_by]}"
    return why


def _numbers(board: Leaderboard, lines: Sequence[LeaderboardLine]) -> Shown:
    """Rank, score and rating, each with its uncertainty."""
    digits = decimals([line.score for line in lines])
    low_is_best = RULES[board.terms.rule].lower_is_better
    shown: Shown = []
    if any(line.group not in (None, 1) for line in lines):
        meaning = (
            "models connected by comparisons; ranks, scores and ratings are comparable "
            "only within a group"
        )
        shown.append(
            (Column("group", meaning=meaning), [_integer_text(line.group) for line in lines])
        )
    shown += columns_with_values((Column("rank"), [_integer_text(line.rank) for line in lines]))
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
    interval = f"{level_percent(board.terms.level)} interval"
    several = ", and groups" if len(board.groups) > 1 else ""
    may = (
        "ranks that the noise allows; a line separates neighbours that differ beyond noise"
        + several
    )
    pairs = count_noun(int(f"{board.n_comparisons:.0f}"), "comparison")
    rating = f"strength in logits ± its error, from {pairs} of two models"
    return shown + columns_with_values(
        (Column(interval, keep=70), [interval_text(line.interval, digits) for line in lines]),
        (Column("may rank", keep=75, meaning=may), [_ranks_text(line) for line in lines]),
        (Column("rating", keep=50, meaning=rating), [_rating(line) for line in lines]),
        (Column("Elo", keep=80), [number(line.elo, 0) for line in lines]),
    )


def _details(board: Leaderboard, lines: Sequence[LeaderboardLine]) -> Shown:
    """Write the columns of sessions, changes and costs."""
    digits = decimals([line.score for line in lines])
    # Without a scored session there is nothing to cover, however many ballots there are.
    coverage = [line.confidence if line.sessions else UNKNOWN for line in lines]
    shown: Shown = [
        (Column("sessions", keep=85), [f"{line.sessions:,}" for line in lines]),
        (Column("votes", keep=30), [f"{line.votes:,}" for line in lines]),
        (Column("wins", keep=35), _wins(lines)),
        (Column("coverage", "left", keep=40), coverage),
    ]
    change = f"of the score, against sessions {board.compared_to}; * beyond noise"
    moved = f"ranks gained, against sessions {board.compared_to}"
    shown += columns_with_values(
        (Column("change", keep=65, meaning=change), [_change(line, digits) for line in lines]),
        (Column("moved", keep=62, meaning=moved), [_rank_change(line) for line in lines]),
        (Column("cost/answer", keep=25), [_cost_text(line.effort.cost_usd) for line in lines]),
        (Column("s/answer", keep=20), [number(line.effort.seconds, 1) for line in lines]),
    )
    if any(line.effort.failure_rate for line in lines):
        rates = [percent(line.effort.failure_rate) for line in lines]
        shown.append((Column("failed", keep=22), rates))
    return shown


def _cost_text(usd: float | None) -> str:
    return UNKNOWN if usd is None else cost_sum_text(usd)


def _integer_text(value: int | None) -> str:
    return UNKNOWN if value is None else str(value)


def _rating(line: LeaderboardLine) -> str:
    if line.rating is None:
        return UNKNOWN
    return f"{_signed_text(line.rating, 2)} ± {number(line.rating_error)}"


def _wins(lines: Sequence[LeaderboardLine]) -> list[str]:
    """Print whole numbers unless some first place was shared."""
    whole = all(float(line.wins).is_integer() for line in lines)
    return [f"{line.wins:,.{0 if whole else 1}f}" for line in lines]


def _change(line: LeaderboardLine, digits: int) -> str:
    if line.change is None:
        return UNKNOWN
    return _signed_text(line.change.score, digits) + "*" * (line.change.beyond_error is True)


def _rank_change(line: LeaderboardLine) -> str:
    if line.change is None or line.change.rank is None:
        return UNKNOWN
    return f"{line.change.rank:+d}" if line.change.rank else "0"


def _signed_text(value: float, digits: int) -> str:
    number_text = number(value, digits)
    return (
        number_text if number_text.startswith("-") or float(number_text) == 0 else f"+{number_text}"
    )


def _ranks_text(line: LeaderboardLine) -> str:
    """Print a model's range of ranks within noise."""
    if line.rank_low is None:
        return UNKNOWN
    alone = line.rank_low == line.rank_high
    return str(line.rank_low) if alone else f"{line.rank_low} to {line.rank_high}"


def _number(board: Leaderboard, line: LeaderboardLine) -> tuple[float | None, Interval | None]:
    """Find the number that orders, and its interval."""
    if board.terms.order_by == "rating":
        return line.rating, line.rating_interval
    if board.terms.order_by == "elo":
        return line.elo, None
    return line.score, line.interval


def _value_text(board: Leaderboard, line: LeaderboardLine) -> str:
    digits = 0 if board.terms.order_by == "elo" else 3 if board.terms.order_by == "score" else 2
    return signed_number(_number(board, line)[0], digits)


def _interval_text(board: Leaderboard, line: LeaderboardLine) -> str:
    return ends(_number(board, line)[1], 3 if board.terms.order_by == "score" else 2)


def _dot(board: Leaderboard, line: LeaderboardLine) -> Dot | None:
    value, interval = _number(board, line)
    if value is None:
        return None
    return Dot(value, interval, "ring" if line.provisional else "circle")


def _axis(board: Leaderboard, lines: Sequence[LeaderboardLine], arrow: str = "") -> Axis:
    by_score = board.terms.order_by == "score"
    turned = by_score and RULES[board.terms.rule].lower_is_better
    what = SCORES.get(board.terms.rule, board.terms.rule)
    title = f"Mean over sessions · {what}" if by_score else ORDERS[board.terms.order_by]
    better = f"{'lower' if turned else 'higher'} is better{arrow}"
    numbers = (_number(board, line) for line in lines)
    return Axis.of_numbers(f"{title} · {better}", numbers, is_reversed=turned)


def _describe_basis(board: Leaderboard) -> tuple[str, ...]:
    """Describe what any chart of a leaderboard depends on."""
    ballot_text = "ballots of models" if board.terms.kind == "model" else "ballots of people"
    return (f"rule {board.terms.rule}", ballot_text, str(board.terms.window))


def _marks(board: Leaderboard, *, boxes: bool = False, rings: bool = True) -> str:
    """Explain bars, boxes and rings, and what cannot be compared."""
    notes = ["Elo has no intervals"]
    if board.terms.order_by != "elo":
        notes = [f"Bars: {level_percent(board.terms.level)} intervals"]
    if boxes:
        notes.append("in one box, neighbours are too close to call")
    if len(board.groups) > 1:
        notes.append("groups of models that never met cannot be compared")
    if board.provisional:
        what = "rings: unranked" if rings else f"not drawn: {len(board.provisional):,} unranked"
        notes.append(f"{what}, with {board.terms.too_few}")
    return f"{'; '.join(notes)}."


def leaderboard_chart(board: Leaderboard, *, with_unranked: bool = True) -> Chart:
    """Chart each model's number with its interval, boxing similar neighbours.

    Unranked models are drawn, or their number is stated.
    """
    lines = (*board.lines, *(board.provisional if with_unranked else ()))
    axis = _axis(board, lines, " →")
    bands = tuple(_bands(board, with_unranked=with_unranked))
    rows = DotPlot((axis,), ("value", "may rank", "sessions"), bands)
    marks = _marks(board, boxes=True, rings=with_unranked)
    return Chart(rows, "Standings", marks, board.interpretation, _describe_basis(board))


def _bands(board: Leaderboard, *, with_unranked: bool) -> Iterator[Band]:
    """Group neighbours too close to call; unranked models come last."""
    for lines in board.groups:
        label = [f"group {lines[0].group}"] * (len(board.groups) > 1)
        band: list[LeaderboardLine] = []
        for line in lines:
            band.append(line)
            if line.tied_with_next is not True or line is lines[-1]:
                label += ["too close to call"] * (len(band) > 1)
                yield Band(tuple(_row(board, each) for each in band), " · ".join(label))
                band, label = [], []
    if board.provisional and with_unranked:
        provisional_rows = tuple(_row(board, line) for line in board.provisional)
        yield Band(provisional_rows, "without a rank", has_box=False)


def _row(board: Leaderboard, line: LeaderboardLine) -> DotLine:
    value_text, may = _value_text(board, line), _ranks_text(line)
    return DotLine(
        line.model,
        f"{line.model}: {value_text}, interval {_interval_text(board, line)}, may rank {may}, "
        f"{count_noun(line.sessions, 'session')}",
        (_dot(board, line),),
        _integer_text(line.rank),
        (value_text, may, f"{line.sessions:,}"),
    )


def strength_chart(board: Leaderboard, most: int | None = None) -> Chart:
    """Chart the probability that a row's model is stronger; `most` limits models."""
    if not any(p is not None for row in board.p_beats for p in row):
        raise NothingToCount(f"no two models are rated with an error {board.terms.window}")
    names = tuple(line.model for line in (*board.lines, *board.provisional))[:most]
    squares = tuple(
        tuple(None if i == j else _square(p, name, names[j]) for j, p in enumerate(row[:most]))
        for i, (name, row) in enumerate(zip(names, board.p_beats, strict=False))
    )
    return Chart(
        Grid(names, names, squares),
        "Head-to-head probability",
        "Probability, from the ratings, that the model of the row is stronger than that of the "
        "column.",
        board.interpretation,
        _describe_basis(board),
        _strength_table(names, board.p_beats),
    )


def _strength_table(names: Sequence[str], p_beats: Sequence[Sequence[float | None]]) -> Table:
    """Write the probabilities of a grid, whose columns are names_with_numbers."""
    columns = [
        (Column(f"over {at + 1}", meaning=name),
         [UNKNOWN if at == row else number(p_beats[row][at]) for row in range(len(names))])
        for at, name in enumerate(names)
    ]  # fmt: skip
    names_with_numbers = [f"{at} {name}" for at, name in enumerate(names, 1)]
    return table_of(
        "Head-to-head probability",
        [(Column("model", "left", heads=True), names_with_numbers), *columns],
    )


def _square(p: float | None, name: str, rival: str) -> Square:
    """Print two digits without the leading zero, never rounding to certainty."""
    words = f"{name} over {rival}: {number(p)}"
    if p is None:
        return Square(UNKNOWN, words, None)
    text = "<.01" if p < 0.005 else ">.99" if p >= 0.995 else f"{p:.2f}"[1:]
    return Square(text, words, 2 * round(p, 2) - 1)  # no colour for what prints as even


def _strength(board: Leaderboard) -> Iterator[Block]:
    """Compare all models with each other, if two have ratings with errors."""
    n_models = len(board.lines) + len(board.provisional)
    if n_models < 2 or not any(p is not None for row in board.p_beats for p in row):
        return
    yield Heading("Head-to-head probability", "beats")
    first = min(FIRST, len(board.lines) if len(board.lines) > 1 else n_models)
    yield strength_chart(board, first)
    if n_models > first:
        everybody, fold = strength_chart(board), f"All {n_models} models"
        numbers = everybody.numbers and replace(
            everybody.numbers, title=f"{everybody.name}, all models"
        )
        yield replace(everybody, name=f"{everybody.name}, all models", numbers=numbers, fold=fold)


def cost_chart(board: Leaderboard, *, with_unranked: bool = True) -> Chart:
    """Chart each model's number against its cost per answer.

    Unranked models are drawn, or their number is stated.
    """
    lines = (*board.lines, *(board.provisional if with_unranked else ()))
    known = _prices(board, lines)
    if not known:
        raise NothingToCount(f"no answer has a known cost {board.terms.window}")
    points = tuple(
        Point(
            line.model,
            f"{line.model}: {_value_text(board, line)}, interval {_interval_text(board, line)}; "
            f"{dollars(cost) if cost else 'free'} an answer",
            cost,
            dot,
        )
        for line, cost, dot in known
    )
    unknown = len(lines) - len(known)
    left_out = f" Left out, without a known cost: {count_noun(unknown, 'model')}." * bool(unknown)
    up = _axis(board, [line for line, _, _ in known], " ↑")
    title = "← cheaper · mean cost of an answer, US$"
    costs = [cost for _, cost, _ in known]
    across: Axis | LogAxis = Axis(title, 0.0, 1.0)
    if max(costs) > 0:
        across = LogAxis.of_amounts(f"{title}, logarithmic", costs, zero="free")
    fronts = _fronts(known, up)
    best = {line.model for front in fronts for line, _, _ in front}
    steps = " The stepped line: no other ranked model is both as cheap and better." * bool(fronts)
    corners = tuple(tuple((cost, dot.value) for _, cost, dot in front) for front in fronts)
    return Chart(
        Scatter(across, up, points, corners),
        "Cost against quality",
        f"{_marks(board, rings=with_unranked)}{steps}{left_out}",
        board.interpretation,
        _describe_basis(board),
        table_of(
            "Cost against quality",
            [
                (Column("model", "left", heads=True), [line.model for line, _, _ in known]),
                (Column("number"), [_value_text(board, line) for line, _, _ in known]),
                (Column("interval", "left"), [_interval_text(board, line) for line, _, _ in known]),
                (Column("cost/answer"), [_cost_text(cost) for cost in costs]),
                (
                    Column("best at its price", "left"),
                    ["yes" if line.model in best else "" for line, _, _ in known],
                ),
            ],
        ),
    )


Priced = tuple[LeaderboardLine, float, Dot]


def _fronts(known: Sequence[Priced], up: Axis) -> list[list[Priced]]:
    """Find each group's ranked models without a cheaper and better one."""
    fronts = []
    for group in dict.fromkeys(line.group for line, _, _ in known):
        members = [each for each in known if each[0].group == group and not each[0].provisional]
        front: list[Priced] = []
        for each in sorted(members, key=lambda each: (each[1], -up.share(each[2].value))):
            if not front or up.share(each[2].value) > up.share(front[-1][2].value):
                front.append(each)
        if len(members) > 1:
            fronts.append(front)
    return fronts


def _prices(board: Leaderboard, lines: Sequence[LeaderboardLine]) -> list[Priced]:
    """List the models with both a number and a cost."""
    dots = ((line, line.effort.cost_usd, _dot(board, line)) for line in lines)
    return [(line, cost, dot) for line, cost, dot in dots if cost is not None and dot is not None]


def _costs(board: Leaderboard) -> Iterator[Block]:
    """Draw the number against the cost, if two models have both."""
    ranked = _prices(board, board.lines)
    known = ranked if len(ranked) > 1 else _prices(board, (*board.lines, *board.provisional))
    if len(known) > 1 and any(cost > 0 for _, cost, _ in known):
        yield Heading("Cost against quality", "costs")
        yield cost_chart(board, with_unranked=known is not ranked)


def _trend(board: Leaderboard, parts: Parts) -> Iterator[Block]:
    """Draw mean scores over time, if two periods have scores."""
    yield Heading("Over time", "trend")
    if sum(part is not None for _, part in parts) < 2:
        yield Sentence("All sessions are from the same period.")
        return
    models = [line.model for line in (*board.lines, *board.provisional)]
    lines = {model: [_scored_line(part, model) for _, part in parts] for model in models}
    lines_with_score = [line for each in lines.values() for line in each if line is not None]
    turned = RULES[board.terms.rule].lower_is_better
    axis = Axis.of_numbers(
        "", ((line.score, line.interval) for line in lines_with_score), is_reversed=turned
    )
    n_drawn = min(FIRST, len(board.lines) or len(models))
    left_out = count_noun(len(models) - n_drawn, "more model")
    more = f" Not drawn: {left_out}." * (len(models) > n_drawn)
    days = [_day(window.since) for window, _ in parts]
    series = tuple(_series(model, days, lines[model]) for model in models[:n_drawn])
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
        Strips(axis, _day(parts[0][0].since), _day(parts[-1][0].until), series),
        "Over time",
        "Mean score in each period, with its interval; a gap is a period without sessions. In "
        f"the numbers: ± standard error and, in brackets, sessions.{more}",
        numbers=table_of("Over time", columns),
    )


def _scored_line(part: Leaderboard | None, model: str) -> LeaderboardLine | None:
    line = None if part is None else part.by_model.get(model)
    return line if line is not None and line.score is not None else None


def _series(model: str, days: Sequence[str], lines: Sequence[LeaderboardLine | None]) -> Series:
    scores = [signed_number(line.score) for line in lines if line is not None]
    dots = tuple(
        None
        if line is None or line.score is None
        else Dot(
            line.score,
            line.interval,
            alt_text=f"{model} from {day}: {signed_number(line.score)}, interval "
            f"{ends(line.interval, 2)}, {count_noun(line.sessions, 'session')}",
        )
        for day, line in zip(days, lines, strict=True)
    )
    return Series(model, dots, scores[-1] if scores else UNKNOWN)


def _mean_score(line: LeaderboardLine | None) -> str:
    if line is None:
        return UNKNOWN
    error = "" if line.std_error is None else f" ± {number(line.std_error, 2)}"
    return f"{number(line.score, 2)}{error} ({line.sessions:,})"


def _day(at: datetime | None) -> str:
    return "" if at is None else f"{at:%Y-%m-%d}"
