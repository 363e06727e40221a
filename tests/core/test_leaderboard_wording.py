"""A leaderboard in one sentence, which claims only what exceeds noise."""

from dataclasses import replace
from itertools import chain

import pytest

from witan.core.stats.leaderboard import (
    Effort,
    Leaderboard,
    LeaderboardLine,
    Terms,
    describe_board,
    describe_groups,
)


def board(*ranks: tuple[int, int, int], order_by="score") -> Leaderboard:
    """Models a, b, c … with these ranks and rank intervals; the last ones are provisional."""
    line = LeaderboardLine(
        model="", rank=1, rank_low=1, rank_high=1, tied_with_next=None, provisional=False,
        group=1,
        score=0.5, std_error=0.1, interval=None, sessions=20, appearances=20, votes=80, offered=80,
        wins=0.0, coverage=1.0, confidence="high", z=None, rating=None, rating_error=None,
        rating_interval=None, elo=None, change=None, effort=Effort(),
    )  # fmt: skip
    lines = tuple(
        replace(line, model=name, rank=rank, rank_low=low, rank_high=high)
        for name, (rank, low, high) in zip("abcdefghij", ranks, strict=False)
    )
    worst = max((high for rank, _, high in ranks if rank == 1 and high), default=0)
    contenders = tuple(line.model for line in lines[:worst] if line.rank != 1)
    return Leaderboard(
        terms=Terms(order_by=order_by), lines=lines, provisional=(), contenders=contenders,
        p_beats=(),
        n_comparisons=0.0, compared_to=None, warnings=(),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("lines", "sentence"),
    [
        ([], "No model has a rank: each has fewer than 10 scored sessions, or no number to "
             "order it by."),
        ([(1, 1, 1)], "a is the only model with a rank."),
        ([(1, 1, 1), (2, 2, 3), (3, 2, 3)],
         "a has the best mean score, above every other model beyond noise (95%)."),
        ([(1, 1, 2), (2, 1, 2), (3, 3, 3)],
         "a has the best mean score, but too close to call against b at 95%."),
        ([(1, 1, 2), (1, 1, 2), (3, 3, 3)],
         "a and b share the best mean score, and are too close to call at 95%."),
        ([(1, 1, 3), (2, 1, 3), (3, 1, 3)],
         "a has the best mean score, but all models are too close to call at 95%."),
        ([(1, 1, 7)] + [(k, 1, 8) for k in range(2, 8)] + [(8, 2, 8)],
         "a has the best mean score, but too close to call against 6 others at 95%."),
        ([(1, 1, 4), (2, 1, 3), (3, 2, 4), (4, 2, 4), (5, 5, 5)],
         "a has the best mean score, but too close to call against 3 others at 95%."),
        ([(1, 1, 3), (1, 1, 3), (3, 1, 3), (4, 4, 4)],
         "a and b share the best mean score, but too close to call against c at 95%."),
    ],
)  # fmt: skip
def test_the_sentence_names_leader_and_contenders(lines, sentence):
    """The sentence follows from rank intervals."""
    assert describe_board(board(*lines)) == sentence


def test_the_largest_of_several_groups_is_named():
    """And each group has a sentence of its own."""
    one, two = board((1, 1, 2), (2, 1, 2), (3, 3, 3)), board((1, 1, 1), (2, 2, 2))
    grouped = [
        [replace(line, group=number) for line in held.lines]
        for number, held in enumerate((two, one), start=1)
    ]
    both = replace(one, lines=tuple(chain(*grouped)), contenders=("b",))

    assert describe_board(both) == "2 groups of models never met; a leads the largest."
    assert describe_groups(both) == (
        "Group 1: a has the best mean score, but too close to call against b at 95%.",
        "Group 2: a has the best mean score, but too close to call against b at 95%.",
    )
    assert describe_groups(one) == ()


def test_elo_states_no_uncertainty():
    """Elo has no error to state."""
    sentence = describe_board(board((1, None, None), (2, None, None), order_by="elo"))

    assert all(fact in sentence for fact in ("a has the best", "Elo states no noise"))
