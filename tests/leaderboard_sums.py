"""Sums of small histories, added up by obvious loops, for tests of the leaderboard."""

from collections.abc import Iterable, Mapping
from dataclasses import fields, replace

import numpy as np

from witan.core.stats.sums import AnswerSums, MatchupSums, Names, StandingSums

LETTERS = "abcdefghijklmnopqrst"

NAMES = Names({1000 + 7 * place: letter for place, letter in enumerate(LETTERS)})
"""Codes that are neither small nor in a row."""


def code(letter: str) -> int:
    """The code of a model named by a letter."""
    return 1000 + 7 * LETTERS.index(letter)


def standing_sums(
    sessions: Iterable[Mapping[str, float | None]], *, votes: int = 4, offered: int = 4
) -> StandingSums:
    """Sessions as model → score, None for no score; session n falls into bucket n modulo 256.

    The best score of a session is a win, shared among equals.
    """
    rows = []
    for number, scores in enumerate(sessions):
        known = [score for score in scores.values() if score is not None]
        best = [model for model, score in scores.items() if known and score == max(known)]
        for model, score in scores.items():
            has = score is not None
            value = score if has else 0.0
            share = 1 / len(best) if model in best else 0.0
            keys, scored = (number % 256, code(model)), (1, int(has), value, value**2)
            rows.append((*keys, *scored, int(has), value / 2, votes * has, offered, share))
    columns = np.array(rows, dtype=np.float64).reshape(-1, 11).T
    whole = {0, 1, 2, 3, 6, 8, 9}
    return StandingSums(*(c.astype(np.int64) if n in whole else c for n, c in enumerate(columns)))


def matchup_sums(rows: Iterable[tuple[int, str, str, float, float, float]]) -> MatchupSums:
    """Rows of bucket, first, second, wins, losses, ties."""
    held = list(rows)
    codes = [
        np.array([row[0] for row in held], dtype=np.int64),
        np.array([code(row[1]) for row in held], dtype=np.int64),
        np.array([code(row[2]) for row in held], dtype=np.int64),
    ]
    return MatchupSums(
        *codes, *(np.array([row[n] for row in held], dtype=np.float64) for n in (3, 4, 5))
    )


def answer_sums(rows: Iterable[tuple[str, int, int, int, float, int, float]]) -> AnswerSums:
    """Rows of model, answers, failed, costed, cost, timed, seconds."""
    held = list(rows)
    columns = [np.array([row[n] for row in held]) for n in range(1, 7)]
    codes = np.array([code(row[0]) for row in held], dtype=np.int64)
    return AnswerSums(np.zeros(len(held), dtype=np.int64), codes, *columns)


def shuffled(sums, rng: np.random.Generator):
    """The same rows in another order."""
    order = rng.permutation(len(sums.bucket))
    return replace(sums, **{f.name: getattr(sums, f.name)[order] for f in fields(sums)})


def split(sums, keys: set[str]):
    """Every row as two: the first holds what one may, the second the rest."""
    halves = {}
    for field in fields(sums):
        column = getattr(sums, field.name)
        if field.name in keys:
            halves[field.name] = np.concatenate([column, column])
        else:
            part = (column // 2).astype(column.dtype)
            halves[field.name] = np.concatenate([part, column - part])
    return replace(sums, **halves)
