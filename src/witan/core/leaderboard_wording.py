"""A leaderboard in one plain sentence: what can be told of it, and no more."""

from witan.core.leaderboard_lines import Leaderboard, LeaderboardLine
from witan.core.wording import listed

__all__ = ["conclusion"]

NUMBERS = {"score": "mean score", "rating": "rating", "elo": "Elo rating"}

MOST = 5
"""More names than this are counted instead of listed."""


def conclusion(board: Leaderboard) -> str:
    """Who leads, and from whom that can be told.

    A line whose best possible rank is 1 is not beyond noise below any other.
    """
    lines = board.lines
    if not lines:
        return f"No model has a rank: {_few(board.terms.min_sessions)} or nothing to be ordered by."
    first = [line for line in lines if line.rank == 1]
    if len(lines) == 1:
        return f"{first[0].model} is the only model with a rank."
    number = NUMBERS[board.terms.order_by]
    lead = f"{_named(first)} {'share' if len(first) > 1 else 'has'} the best {number}"
    if board.terms.order_by == "elo":
        return f"{lead}; Elo states no noise, so whether that is chance cannot be told."
    return f"{lead}, {_how_surely(lines, f'{board.terms.level * 100:g}%')}."


def _how_surely(lines: tuple[LeaderboardLine, ...], level: str) -> str:
    first = [line for line in lines if line.rank == 1]
    rivals = [line for line in lines if line.rank_low == 1 and line.rank != 1]
    if _none_apart(lines):
        return f"but no two models can be told apart at {level}"
    if rivals:
        return f"but cannot be told apart from {_named(rivals)} at {level}"
    if len(first) > 1:
        return f"and cannot be told apart at {level}"
    return f"above every other model beyond noise ({level})"


def _none_apart(lines: tuple[LeaderboardLine, ...]) -> bool:
    return all(line.rank_low == 1 and line.rank_high == len(lines) for line in lines)


def _few(needed: int) -> str:
    return f"each has fewer than {needed} scored session{'' if needed == 1 else 's'},"


def _named(lines: list[LeaderboardLine]) -> str:
    names = [line.model for line in lines]
    if len(names) > MOST:
        names = [*names[: MOST - 1], f"{len(names) - MOST + 1} more"]
    return listed(names)
