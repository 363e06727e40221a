"""Columns of a table of sums as SQL: what is given, and noughts elsewhere."""

import pytest

from witan.analytics.views import columns_of
from witan.core.stats.sums import CriterionSums, PanelSums


def test_columns_stand_in_the_order_of_the_table():
    """Each under its name, whatever order they are given in, noughts of its type elsewhere."""
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


def test_a_column_that_is_not_there():
    """A name that the table does not have is an error, and not a column more."""
    with pytest.raises(TypeError, match="PanelSums has no column 'sesions'"):
        columns_of(PanelSums, sesions="COUNT(*)")
