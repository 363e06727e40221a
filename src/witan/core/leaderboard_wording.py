"""A leaderboard in one plain sentence: what can be told of it, and no more."""

from collections.abc import Sequence

from witan.core.leaderboard_lines import Leaderboard, LeaderboardLine
from witan.core.wording import listed

__all__ = ["conclusion"]

NUMBERS = {"score": "mean score", "rating": "rating", "elo": "Elo rating"}

MOST = 5
"""More names than this are counted instead of listed."""


TOLD = 3
"""Groups beyond these are counted and not told."""


def conclusion(board: Leaderboard) -> str:
    """Who leads, and from how many that cannot be told: as many as its worst rank leaves room.

    Of models that fall into groups that never met it is said group by group.
    """
    groups = board.groups
    if not groups:
        return f"No model has a rank: {_few(board.terms.min_sessions)} or nothing to be ordered by."
    if len(groups) == 1:
        said = _who_leads(board, groups[0])
    else:
        told = [f"in group {lines[0].group}, {_who_leads(board, lines)}" for lines in groups[:TOLD]]
        if len(groups) > TOLD:
            more = len(groups) - TOLD
            told.append(f"{more} more group{'' if more == 1 else 's'} likewise")
        apart = f"{len(groups)} groups that never met, each ranked by itself"
        said = f"Models with a rank fall into {apart}: {'; '.join(told)}"
    if board.terms.order_by == "elo" and len(board.lines) > 1:
        return f"{said}; Elo states no noise, so whether that is chance cannot be told."
    return f"{said}."


def _who_leads(board: Leaderboard, lines: tuple[LeaderboardLine, ...]) -> str:
    first = [line.model for line in lines if line.rank == 1]
    if len(lines) == 1:
        return f"{first[0]} is the only model with a rank"
    number = NUMBERS[board.terms.order_by]
    lead = f"{_named(first)} {'share' if len(first) > 1 else 'has'} the best {number}"
    if board.terms.order_by == "elo":
        return lead
    return f"{lead}, {_how_surely(board, lines, f'{board.terms.level * 100:g}%')}"


def _how_surely(board: Leaderboard, lines: tuple[LeaderboardLine, ...], level: str) -> str:
    shared = sum(line.rank == 1 for line in lines) > 1
    if all(line.rank_low == 1 and line.rank_high == len(lines) for line in lines):
        return f"but all models are too close to call at {level}"
    known = {*board.contenders}
    if contenders := [line.model for line in lines if line.model in known]:
        return f"but too close to call against {_named(contenders)} at {level}"
    if shared:
        return f"and are too close to call at {level}"
    return f"above every other model beyond noise ({level})"


def _few(needed: int) -> str:
    return f"each has fewer than {needed} scored session{'' if needed == 1 else 's'},"


def _named(models: Sequence[str]) -> str:
    names = [*models]
    if len(names) > MOST:
        names = [*names[: MOST - 1], f"{len(names) - MOST + 1} more"]
    return listed(names)
