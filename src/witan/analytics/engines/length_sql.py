"""What is summed of votes beside the lengths of answers, and of grades by criterion.

One text per table of `witan.core.stats.sums`, as in `panel_sql`. Centred within a ballot: Σ(l −
l̄)(x − x̄) is Σlx − ΣlΣx/n, and 0 where either is the same throughout.
"""

# Put together from texts of our own; values are parameters.
# ruff: noqa: S608

from witan.analytics.engines.columns_sql import columns_of
from witan.core.stats.sums import CriterionSums, LengthSums

__all__ = ["CRITERIA", "PAIRS", "SHEETS"]

_CENTRED = """
        CASE WHEN least_l < greatest_l THEN ll - l * l / n ELSE 0.0 END AS ll,
        CASE WHEN least_l < greatest_l AND least_x < greatest_x
            THEN lx - l * x / n ELSE 0.0 END AS lx,
        CASE WHEN least_x < greatest_x THEN xx - x * x / n ELSE 0.0 END AS xx"""

_SUMMED = """
        COUNT(*) AS n,
        SUM(log_chars) AS l,
        SUM(log_chars * log_chars) AS ll,
        MIN(log_chars) AS least_l,
        MAX(log_chars) AS greatest_l,
        SUM({column}) AS x,
        SUM({column} * {column}) AS xx,
        SUM(log_chars * {column}) AS lx,
        MIN({column}) AS least_x,
        MAX({column}) AS greatest_x"""

_KEY = {"bucket": "bucket", "reviewer": "reviewer", "human": "human"}


def _on_a_sheet(x: str) -> str:
    """Sums on a ballot of a column beside the log lengths that it has."""
    length = f"{x}_length"
    return f"""
        COUNT({x}) AS n_{x}, SUM({x}) AS s_{x}, SUM({x} * {x}) AS ss_{x},
        SUM({length}) AS l_{x}, SUM({length} * {length}) AS ll_{x}, SUM({length} * {x}) AS lx_{x},
        MIN({x}) AS least_{x}, MAX({x}) AS greatest_{x},
        MIN({length}) AS short_{x}, MAX({length}) AS long_{x}"""


def _over_sheets(x: str, named: str) -> str:
    """What is summed of these over ballots."""
    varied, longer = f"least_{x} < greatest_{x}", f"short_{x} < long_{x}"
    return f"""
    SUM(CASE WHEN {longer} THEN ll_{x} - l_{x} * l_{x} / n_{x} ELSE 0.0 END) AS {named}ll,
    SUM(CASE WHEN {longer} AND {varied}
        THEN lx_{x} - l_{x} * s_{x} / n_{x} ELSE 0.0 END) AS {named}lx,
    SUM(CASE WHEN {varied} THEN ss_{x} - s_{x} * s_{x} / n_{x} ELSE 0.0 END) AS {named}xx"""


# One reading of all ballots for three tables: grouping votes by ballot is what takes long.
SHEETS = f"""
WITH votes AS (
    SELECT bucket, reviewer, human, session, ballot, grade,
        CASE WHEN own = 0 AND log_chars IS NOT NULL THEN share END AS shared,
        CASE WHEN own = 0 AND share IS NOT NULL THEN log_chars END AS shared_length,
        CASE WHEN own = 0 AND log_chars IS NOT NULL THEN grade END AS graded,
        CASE WHEN own = 0 AND grade IS NOT NULL THEN log_chars END AS graded_length
    FROM v_votes
    WHERE {{window}}
),
sums AS (
    SELECT bucket, reviewer, human, session, ballot,
        COUNT(grade) AS n, SUM(grade) AS x, SUM(grade * grade) AS xx,
        MIN(grade) AS least, MAX(grade) AS greatest,{_on_a_sheet("shared")},{_on_a_sheet("graded")}
    FROM votes
    GROUP BY bucket, reviewer, human, session, ballot
),
sheets AS (
    SELECT bucket, reviewer, human, n,
        CASE WHEN least < greatest THEN (xx - x * x / n) / n ELSE 0.0 END AS variance,
        n_shared, s_shared, ss_shared, l_shared, ll_shared, lx_shared,
        least_shared, greatest_shared, short_shared, long_shared,
        n_graded, s_graded, ss_graded, l_graded, ll_graded, lx_graded,
        least_graded, greatest_graded, short_graded, long_graded
    FROM sums
)
SELECT
    bucket,
    reviewer,
    human,
    COUNT(CASE WHEN n > 1 THEN 1 END) AS gradings,
    SUM(CASE WHEN variance > 0.0 THEN SQRT(variance) ELSE 0.0 END) AS spread,
    COUNT(CASE WHEN n_shared > 1 OR n_graded > 1 THEN 1 END) AS measured,
    COUNT(CASE WHEN n_shared > 1 THEN 1 END) AS ballots,
    CAST(SUM(CASE WHEN n_shared > 1 THEN n_shared ELSE 0 END) AS BIGINT) AS n,{
    _over_sheets("shared", "")
},
    CAST(SUM(CASE WHEN n_graded > 1 THEN n_graded ELSE 0 END) AS BIGINT) AS n_grades,{
    _over_sheets("graded", "grade_")
}
FROM sheets
GROUP BY bucket, reviewer, human
"""

_IN_PAIRS = columns_of(
    LengthSums,
    **_KEY,
    decided="COUNT(*)",
    longer="""CAST(SUM(CASE WHEN i_chars > j_chars AND i_share > j_share THEN 1
        WHEN i_chars < j_chars AND i_share < j_share THEN 1 ELSE 0 END) AS BIGINT)""",
)

PAIRS = f"""
SELECT
    {_IN_PAIRS}
FROM v_pairs
WHERE {{window}} AND i_own = 0 AND j_own = 0 AND i_share <> j_share AND i_chars <> j_chars
    AND i_chars > 0 AND j_chars > 0
GROUP BY bucket, reviewer, human
"""

_BETWEEN_REVIEWERS = columns_of(
    CriterionSums,
    bucket="bucket",
    criterion="criterion",
    units="COUNT(*)",
    n="CAST(SUM(n) AS BIGINT)",
    variance="""SUM(CASE WHEN least < greatest
        THEN (xx - x * x / n) / NULLIF(n - 1, 0) ELSE 0.0 END)""",
)
_BESIDE_LENGTHS = columns_of(
    CriterionSums,
    bucket="bucket",
    criterion="criterion",
    lengths="CAST(SUM(n) AS BIGINT)",
    ll="SUM(ll)",
    lx="SUM(lx)",
    xx="SUM(xx)",
)

# The grade as a whole is summed where votes are: beside lengths in `SHEETS`, and in `UNITS`.
CRITERIA = (
    """
WITH graded AS (
    SELECT session, bucket, ballot, reviewer, model, criterion, grade, log_chars
    FROM v_grades
    WHERE {window} AND human = 0 AND own = 0 AND grade IS NOT NULL
),
candidates AS (
    SELECT session, bucket, criterion, model, COUNT(*) AS n, SUM(grade) AS x,
        SUM(grade * grade) AS xx, MIN(grade) AS least, MAX(grade) AS greatest
    FROM graded
    GROUP BY session, bucket, criterion, model
    HAVING MIN(reviewer) < MAX(reviewer)
),
by_ballot AS (
    SELECT session, bucket, criterion, ballot,"""
    + _SUMMED.replace("{column}", "grade")
    + """
    FROM graded
    WHERE log_chars IS NOT NULL
    GROUP BY session, bucket, criterion, ballot
),
centred AS (
    SELECT bucket, criterion, n,"""
    + _CENTRED
    + """
    FROM by_ballot
    WHERE n > 1
)
SELECT
    """
    + _BETWEEN_REVIEWERS
    + """
FROM candidates
GROUP BY bucket, criterion
UNION ALL
SELECT
    """
    + _BESIDE_LENGTHS
    + """
FROM centred
GROUP BY bucket, criterion
"""
)
