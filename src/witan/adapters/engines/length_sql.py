"""What is summed of votes beside the lengths of answers, and of grades by criterion.

One text per table of `witan.core.sums`, as in `panel_sql`. Centred within a ballot: Σ(l − l̄)(x − x̄)
is Σlx − ΣlΣx/n, and 0 where either is the same throughout.
"""

# Put together from texts of our own; values are parameters.
# ruff: noqa: S608

from witan.adapters.engines.columns_sql import columns_of
from witan.core.sums import CriterionSums, LengthSums

__all__ = ["CRITERIA", "LENGTHS"]

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

_ON_A_BALLOT = (
    """{column}s AS (
    SELECT bucket, reviewer, human, session, ballot,"""
    + _SUMMED
    + """
    FROM v_votes
    WHERE {window} AND own = 0 AND log_chars IS NOT NULL AND {column} IS NOT NULL
    GROUP BY bucket, reviewer, human, session, ballot
),
centred_{column}s AS (
    SELECT bucket, reviewer, human, n,"""
    + _CENTRED
    + """
    FROM {column}s
    WHERE n > 1
)"""
)

_KEY = {"bucket": "bucket", "reviewer": "reviewer", "human": "human"}

_IN_SHARES = columns_of(
    LengthSums,
    **_KEY,
    ballots="COUNT(*)",
    n="CAST(SUM(n) AS BIGINT)",
    ll="SUM(ll)",
    lx="SUM(lx)",
    xx="SUM(xx)",
)
_IN_GRADES = columns_of(
    LengthSums,
    **_KEY,
    n_grades="CAST(SUM(n) AS BIGINT)",
    grade_ll="SUM(ll)",
    grade_lx="SUM(lx)",
    grade_xx="SUM(xx)",
)
_IN_PAIRS = columns_of(
    LengthSums,
    **_KEY,
    decided="COUNT(*)",
    longer="""CAST(SUM(CASE WHEN i_chars > j_chars AND i_share > j_share THEN 1
        WHEN i_chars < j_chars AND i_share < j_share THEN 1 ELSE 0 END) AS BIGINT)""",
)

LENGTHS = f"""
WITH {_ON_A_BALLOT.replace("{column}", "share")},
{_ON_A_BALLOT.replace("{column}", "grade")}
SELECT
    {_IN_SHARES}
FROM centred_shares
GROUP BY bucket, reviewer, human
UNION ALL
SELECT
    {_IN_GRADES}
FROM centred_grades
GROUP BY bucket, reviewer, human
UNION ALL
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

CRITERIA = (
    """
WITH graded AS (
    SELECT session, bucket, ballot, reviewer, model, CAST(-1 AS BIGINT) AS criterion,
        grade, log_chars
    FROM v_votes
    WHERE {window} AND human = 0 AND own = 0 AND grade IS NOT NULL
    UNION ALL
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
