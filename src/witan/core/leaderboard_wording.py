"""A leaderboard in one plain sentence: what can be told of it, and no more."""

from collections.abc import Sequence

from witan.core.leaderboard_lines import Leaderboard, LeaderboardLine
from witan.core.wording import listed

__all__ = ["conclusion"]

NUMBERS = {"score": "mean score", "rating": "rating", "elo": "Elo rating"}

MOST = 5
"""More names than this are counted instead of listed."""


def conclusion(board: Leaderboard) -> str:
    """Who leads, and from how many that cannot be told: as many as its worst rank leaves room."""
    lines = board.lines
    if not lines:
        return f"No model has a rank: {_few(board.terms.min_sessions)} or nothing to be ordered by."
    first = [line for line in lines if line.rank == 1]
    if len(lines) == 1:
        return f"{first[0].model} is the only model with a rank."
    number = NUMBERS[board.terms.order_by]
    whose = _named([line.model for line in first])
    lead = f"{whose} {'share' if len(first) > 1 else 'has'} the best {number}"
    if board.terms.order_by == "elo":
        return f"{lead}; Elo states no noise, so whether that is chance cannot be told."
    return f"{lead}, {_how_surely(board, f'{board.terms.level * 100:g}%')}."


def _how_surely(board: Leaderboard, level: str) -> str:
    shared = sum(line.rank == 1 for line in board.lines) > 1
    if _none_apart(board.lines):
        return f"but no two models can be told apart at {level}"
    if board.contenders:
        first = "them" if shared else "it"
        return f"but {_named(board.contenders)} cannot be told apart from {first} at {level}"
    if shared:
        return f"and cannot be told apart at {level}"
    return f"above every other model beyond noise ({level})"


def _none_apart(lines: tuple[LeaderboardLine, ...]) -> bool:
    return all(line.rank_low == 1 and line.rank_high == len(lines) for line in lines)


def _few(needed: int) -> str:
    return f"each has fewer than {needed} scored session{'' if needed == 1 else 's'},"


def _named(models: Sequence[str]) -> str:
    names = [*models]
    if len(names) > MOST:
        names = [*names[: MOST - 1], f"{len(names) - MOST + 1} more"]
    return listed(names)
