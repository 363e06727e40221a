"""Columns of a table of sums as SQL, with zeros for missing columns."""

import pytest

from witan.analytics.views import columns_of
from witan.core.stats.sums import CriterionSums, PanelSums


def test_columns_follow_the_order_of_the_table():
    """Columns may be passed in any order; missing ones are zeros of their type."""
    columns = columns_of(CriterionSums, ll="SUM(ll)", bucket="bucket").split(",\n    ")

    assert columns == [
        "bucket AS bucket",
        "CAST(0 AS BIGINT) AS criterion",
        "CAST(0 AS BIGINT) AS units",
        "CAST(0 AS BIGINT) AS n",
        "0.0 AS variance",
        "CAST(0 AS BIGINT) AS lengths",
        "SUM(ll) AS ll",
        "0.0 AS lx",
        "0.0 AS xx",
    ]


def test_an_unknown_column_is_an_error():
    """A name that the table does not have is refused, not added."""
    with pytest.raises(TypeError, match="PanelSums has no column 'sesions'"):
        columns_of(PanelSums, sesions="COUNT(*)")
