"""Sums that arrive in pieces are added up on arrival."""

import numpy as np
import pytest

from witan.analytics.sums import BLOCK_ROWS, RunningSums
from witan.core.stats.sums import HumanSums, PanelSums

GROUPS = BLOCK_ROWS // 4


def test_memory_does_not_grow_with_the_number_of_pieces():
    """Waiting rows stay bounded however many pieces share the same keys."""
    groups = np.arange(GROUPS)
    sums = RunningSums(PanelSums)
    for _ in range(20):
        sums.add({"bucket": groups, "sessions": groups + 1, "kendall_w": np.full(GROUPS, 0.25)})
    table = sums.table()

    assert len(table.bucket) <= BLOCK_ROWS + GROUPS
    assert np.bincount(table.bucket, table.sessions).tolist() == (20 * (groups + 1)).tolist()
    assert np.bincount(table.bucket, table.kendall_w).tolist() == [5.0] * GROUPS


def test_rows_with_different_keys_stay_separate():
    """Two reviewers of a group are two rows in either order, also after adding up."""
    n = BLOCK_ROWS
    keys = {"bucket": [0, 0, 0], "reviewer": [3, 7, 3], "other": [7, 3, 3]}
    piece = {**keys, "n": [1, 2, 3], "xy": [0.5, -1.0, 0.25]}
    sums = RunningSums(HumanSums)
    sums.add({name: np.tile(column, n) for name, column in piece.items()})
    table = sums.table()

    rows = zip(table.reviewer.tolist(), table.other.tolist(), table.n.tolist(), strict=True)
    assert sorted(rows) == [(3, 3, 3 * n), (3, 7, n), (7, 3, 2 * n)]
    assert sorted(table.xy.tolist()) == [-1.0 * n, 0.25 * n, 0.5 * n]


@pytest.mark.parametrize("n_codes", [2, 1 << 16, (1 << 16) + 2])
@pytest.mark.parametrize("gap", [1, 1 << 36])
def test_codes_of_any_size_stay_separate(n_codes, gap):
    """Codes one or billions apart, in 16 bits or more, have separate sums."""
    codes = np.tile((np.arange(n_codes) - 1) * gap, 2 + BLOCK_ROWS // n_codes)
    sums = RunningSums(HumanSums)
    sums.add({"bucket": np.zeros_like(codes), "reviewer": codes, "n": np.ones_like(codes)})
    table = sums.table()

    assert table.reviewer.tolist() == ((np.arange(n_codes) - 1) * gap).tolist()
    assert set(table.n.tolist()) == {len(codes) // n_codes}


def test_a_missing_column_is_zero():
    """A query fills only some columns of a table."""
    sums = RunningSums(PanelSums)
    sums.add({"bucket": np.arange(2), "sessions": np.ones(2)})

    assert sums.table().sessions.tolist() == [1, 1]
    assert sums.table().agreement.tolist() == [0.0, 0.0]
