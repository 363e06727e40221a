"""A leaderboard as text: what it is of, a sentence, the table, models apart, notes."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

from witan.core.rules import RULES
from witan.core.stats.leaderboard import Leaderboard, LeaderboardLine
from witan.service.text import UNKNOWN, Page, counted, decimals, number
from witan.surfaces.text.tables import Column, table

__all__ = ["board_columns", "board_notes", "leaderboard_text", "parted"]

Shown = list[tuple[Column, list[str]]]

WHOSE = {"model": "models' ballots", "human": "people's ballots"}

WHAT_ORDERS = {"score": "mean score", "rating": "rating", "elo": "Elo"}


def leaderboard_text(page: Page, board: Leaderboard) -> Iterator[str]:
    """The lines of a leaderboard."""
    terms = board.terms
    order = f"by {WHAT_ORDERS[terms.order_by]}"
    parts = ["leaderboard", terms.rule, WHOSE[terms.kind], order, str(terms.window)]
    yield page.sentence(" · ".join(parts), "bold", hang=2)
    yield page.sentence(board.interpretation)
    if board.lines:
        yield ""
        yield from _table(page, board, board.lines)
    if board.provisional:
        yield ""
        why = f"Without a rank, for want of {counted(terms.min_sessions, 'scored session')}"
        if any(line.sessions >= terms.min_sessions for line in board.provisional):
            why += f" or of a {WHAT_ORDERS[terms.order_by]} that compares"
        yield page.sentence(f"{why}:")
        yield from _table(page, board, board.provisional)
    yield ""
    for note in board_notes(board):
        yield page.sentence(note, hang=2)
    for warning in board.warnings:
        yield page.sentence(f"note: {warning}", "warning", hang=2)


def _table(page: Page, board: Leaderboard, lines: Sequence[LeaderboardLine]) -> Iterator[str]:
    """Lines as a table, a line drawn where a model is told apart from the next."""
    shown = board_columns(board, lines)
    rows = [[cells[index] for _, cells in shown] for index in range(len(lines))]
    bold = [index for index, line in enumerate(lines) if line.rank_low == 1]
    return table(page, [column for column, _ in shown], rows, breaks=parted(lines), bold=bold)


def parted(lines: Sequence[LeaderboardLine]) -> set[int]:
    """Where a model is told apart from the one above it, or was never compared with it."""
    return {
        index
        for index, (above, below) in enumerate(pairwise(lines), start=1)
        if above.tied_with_next is False or above.group != below.group
    }


def board_columns(board: Leaderboard, lines: Sequence[LeaderboardLine]) -> Shown:
    """Every column that has something to say, with its cells."""
    digits = decimals([line.score for line in lines])
    low_is_best = RULES[board.terms.rule].lower_is_better
    shown: Shown = []
    if _in_groups(board):
        shown.append((Column("group"), [_whole(line.group) for line in lines]))
    if any(line.rank is not None for line in lines):
        shown.append((Column("rank"), [_whole(line.rank) for line in lines]))
    shown += [
        (Column("model", "left", elastic=True), [line.model for line in lines]),
        (
            Column("score (low is best)" if low_is_best else "score"),
            [number(line.score, digits) for line in lines],
        ),
    ]
    interval = f"{board.terms.level * 100:g}% interval"
    for column, cells in (
        (Column(interval, keep=70), [_interval(line, digits) for line in lines]),
        (Column("may rank", keep=75), [_ranks(line) for line in lines]),
        (Column("rating", keep=50), [_rating(line) for line in lines]),
        (Column("Elo", keep=80), [number(line.elo, 0) for line in lines]),
    ):
        if any(cell != UNKNOWN for cell in cells):
            shown.append((column, cells))
    return shown + _behind(lines, digits)


def _behind(lines: Sequence[LeaderboardLine], digits: int) -> Shown:
    """What the numbers rest on, how they moved, and what answers took."""
    shown: Shown = [
        (Column("sessions", keep=85), [f"{line.sessions:,}" for line in lines]),
        (Column("votes", keep=30), [f"{line.votes:,}" for line in lines]),
        (Column("wins", keep=35), _wins(lines)),
        (Column("coverage", "left", keep=40), [line.confidence for line in lines]),
    ]
    for column, cells in (
        (Column("change", keep=65), [_change(line, digits) for line in lines]),
        (Column("moved", keep=62), [_moved(line) for line in lines]),
        (Column("$/answer", keep=25), [_cost(line) for line in lines]),
        (Column("s/answer", keep=20), [number(line.effort.seconds, 1) for line in lines]),
    ):
        if any(cell != UNKNOWN for cell in cells):
            shown.append((column, cells))
    if any(line.effort.failure_rate for line in lines):
        shown.append((Column("failed", keep=22), [_failed(line) for line in lines]))
    return shown


def _in_groups(board: Leaderboard) -> bool:
    """Whether some of the models never met the others."""
    return any(line.group not in (None, 1) for line in (*board.lines, *board.provisional))


def _whole(value: int | None) -> str:
    return UNKNOWN if value is None else str(value)


def _interval(line: LeaderboardLine, digits: int) -> str:
    if line.interval is None:
        return UNKNOWN
    return f"{number(line.interval.low, digits)} to {number(line.interval.high, digits)}"


def _ranks(line: LeaderboardLine) -> str:
    """The ranks that noise leaves to a model."""
    if line.rank_low is None:
        return UNKNOWN
    alone = line.rank_low == line.rank_high
    return str(line.rank_low) if alone else f"{line.rank_low} to {line.rank_high}"


def _rating(line: LeaderboardLine) -> str:
    if line.rating is None:
        return UNKNOWN
    return f"{_signed(line.rating, 2)} ± {number(line.rating_error)}"


def _wins(lines: Sequence[LeaderboardLine]) -> list[str]:
    """Whole numbers unless some first place was shared."""
    whole = all(float(line.wins).is_integer() for line in lines)
    return [f"{line.wins:,.{0 if whole else 1}f}" for line in lines]


def _change(line: LeaderboardLine, digits: int) -> str:
    if line.change is None:
        return UNKNOWN
    return _signed(line.change.score, digits) + "*" * (line.change.beyond_error is True)


def _moved(line: LeaderboardLine) -> str:
    """Ranks gained since the window before."""
    if line.change is None or line.change.rank is None:
        return UNKNOWN
    return f"{line.change.rank:+d}" if line.change.rank else "0"


def _signed(value: float, digits: int) -> str:
    shown = number(value, digits)
    return shown if shown.startswith("-") or float(shown) == 0 else f"+{shown}"


def _cost(line: LeaderboardLine) -> str:
    return number(line.effort.cost_usd, 4)


def _failed(line: LeaderboardLine) -> str:
    rate = line.effort.failure_rate
    return UNKNOWN if rate is None else f"{number(100 * rate, 0)}%"


def board_notes(board: Leaderboard) -> Iterator[str]:
    """What the columns mean that do not say it themselves."""
    lines = (*board.lines, *board.provisional)
    if any(line.rank_low is not None for line in lines):
        yield (
            "May rank: the ranks that noise leaves; a ruled line parts neighbours that differ "
            f"beyond it{', and groups' if len(board.groups) > 1 else ''}."
        )
    if _in_groups(board):
        yield (
            "Group: models that chains of comparisons join; ranks, scores and ratings can be "
            "compared within one only."
        )
    if board.n_comparisons:
        several = "" if f"{board.n_comparisons:.0f}" == "1" else "s"
        yield (
            f"Ratings are in logits, from {board.n_comparisons:,.0f} comparison{several} of two "
            "models."
        )
    if board.compared_to is not None:
        yield f"Change of the score: against sessions {board.compared_to}; * beyond noise."
        if any(line.change is not None and line.change.rank is not None for line in lines):
            yield "Moved: ranks gained since then."
