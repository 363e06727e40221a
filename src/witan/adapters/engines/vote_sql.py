"""What is summed from votes: how reviewers vote, beside the others and by the place on the sheet.

One text per table of `witan.core.sums`, as in `panel_sql`. Where a variance is the difference of
two sums, equal values are told by their least and greatest: rounding would leave a remainder.
"""

# Put together from texts of our own; values are parameters.
# ruff: noqa: S608

from witan.adapters.engines.columns_sql import columns_of
from witan.core.sums import BallotSums

__all__ = ["BALLOTS", "POSITIONS", "REVIEWERS", "UNITS", "VOTES"]

_KEY = {"bucket": "bucket", "reviewer": "reviewer", "human": "human"}

_OF_BALLOTS = columns_of(
    BallotSums,
    **_KEY,
    ballots="COUNT(*)",
    abstained="CAST(SUM(abstained) AS BIGINT)",
    repaired="CAST(SUM(repaired) AS BIGINT)",
    flat="CAST(SUM(flat) AS BIGINT)",
    kept="CAST(SUM(kept) AS BIGINT)",
    compared="CAST(SUM(compared) AS BIGINT)",
)
_OF_GRADES = columns_of(
    BallotSums,
    **_KEY,
    gradings="COUNT(*)",
    spread="SUM(CASE WHEN variance > 0.0 THEN SQRT(variance) ELSE 0.0 END)",
)

BALLOTS = f"""
WITH graded AS (
    SELECT bucket, reviewer, human, session, ballot,
        COUNT(grade) AS n, SUM(grade) AS x, SUM(grade * grade) AS xx,
        MIN(grade) AS least, MAX(grade) AS greatest
    FROM v_votes
    WHERE {{window}} AND grade IS NOT NULL
    GROUP BY bucket, reviewer, human, session, ballot
),
varied AS (
    SELECT bucket, reviewer, human,
        CASE WHEN least < greatest THEN (xx - x * x / n) / n ELSE 0.0 END AS variance
    FROM graded
    WHERE n > 1
)
SELECT
    {_OF_BALLOTS}
FROM v_ballots
WHERE {{window}}
GROUP BY bucket, reviewer, human
UNION ALL
SELECT
    {_OF_GRADES}
FROM varied
GROUP BY bucket, reviewer, human
"""

VOTES = """
SELECT
    bucket,
    reviewer,
    human,
    model,
    own,
    COUNT(share) AS votes,
    COALESCE(SUM(share), 0.0) AS total,
    COUNT(grade) AS graded,
    COALESCE(SUM(grade), 0.0) AS grades
FROM v_votes
WHERE {window}
GROUP BY bucket, reviewer, human, model, own
"""

_MINE_AND_THEIRS = """
WITH votes AS (
    SELECT session, bucket, human, reviewer, model, share, grade, position, shown
    FROM v_votes
    WHERE {window} AND own = 0
),
mine AS (
    SELECT session, bucket, human, reviewer, model,
        COUNT(share) AS n_shares,
        COALESCE(SUM(share), 0.0) AS shares,
        COALESCE(SUM(share * share), 0.0) AS share_squares,
        COUNT(grade) AS n_grades,
        COALESCE(SUM(grade), 0.0) AS grades,
        COALESCE(SUM(grade * grade), 0.0) AS grade_squares
    FROM votes
    GROUP BY session, bucket, human, reviewer, model
),
theirs AS (
    SELECT session, human, model,
        SUM(n_shares) AS n_shares, SUM(shares) AS shares,
        SUM(n_grades) AS n_grades, SUM(grades) AS grades
    FROM mine
    GROUP BY session, human, model
),
beside AS (
    SELECT m.session, m.bucket, m.human, m.reviewer, m.model,
        m.n_shares, m.shares, m.share_squares, m.n_grades, m.grades, m.grade_squares,
        CASE WHEN m.n_shares > 0
            THEN (t.shares - m.shares) / NULLIF(t.n_shares - m.n_shares, 0) END AS others_share,
        CASE WHEN m.n_grades > 0
            THEN (t.grades - m.grades) / NULLIF(t.n_grades - m.n_grades, 0) END AS others_grade
    FROM mine m
    JOIN theirs t ON t.session = m.session AND t.human = m.human AND t.model = m.model
)
"""
# Sums of one reviewer, less those of all: a reviewer may vote on a candidate more than once, and
# the others are whoever is not the same reviewer.

REVIEWERS = (
    _MINE_AND_THEIRS
    + """
SELECT
    bucket,
    reviewer,
    human,
    CAST(SUM(CASE WHEN others_grade IS NOT NULL THEN n_grades ELSE 0 END) AS BIGINT) AS n_grades,
    SUM(CASE WHEN others_grade IS NOT NULL THEN grades ELSE 0.0 END) AS x,
    COALESCE(SUM(n_grades * others_grade), 0.0) AS y,
    SUM(CASE WHEN others_grade IS NOT NULL THEN grade_squares ELSE 0.0 END) AS xx,
    COALESCE(SUM(n_grades * others_grade * others_grade), 0.0) AS yy,
    COALESCE(SUM(grades * others_grade), 0.0) AS xy,
    CAST(SUM(CASE WHEN others_share IS NOT NULL THEN n_shares ELSE 0 END) AS BIGINT) AS n_shares,
    SUM(CASE WHEN others_share IS NOT NULL THEN shares ELSE 0.0 END) AS share_x,
    COALESCE(SUM(n_shares * others_share), 0.0) AS share_y,
    SUM(CASE WHEN others_share IS NOT NULL THEN share_squares ELSE 0.0 END) AS share_xx,
    COALESCE(SUM(n_shares * others_share * others_share), 0.0) AS share_yy,
    COALESCE(SUM(shares * others_share), 0.0) AS share_xy
FROM beside
GROUP BY bucket, reviewer, human
"""
)

POSITIONS = (
    _MINE_AND_THEIRS
    + """
SELECT
    v.bucket,
    v.reviewer,
    v.human,
    v.position,
    v.shown,
    COUNT(*) AS votes,
    SUM(v.share) AS total,
    COUNT(b.others_share) AS excess_votes,
    COALESCE(SUM(v.share - b.others_share), 0.0) AS excess
FROM votes v
JOIN beside b ON b.session = v.session AND b.human = v.human AND b.reviewer = v.reviewer
    AND b.model = v.model
WHERE v.share IS NOT NULL AND v.position IS NOT NULL
GROUP BY v.bucket, v.reviewer, v.human, v.position, v.shown
"""
)

_UNIT = """
SELECT
    bucket,
    human,
    CAST({measure} AS BIGINT) AS measure,
    COUNT(*) AS units,
    CAST(SUM(n_{column}) AS BIGINT) AS n,
    SUM(x_{column}) AS total,
    SUM(xx_{column}) AS squares,
    SUM(CASE WHEN least_{column} < greatest_{column}
        THEN (n_{column} * xx_{column} - x_{column} * x_{column}) / NULLIF(n_{column} - 1, 0)
        ELSE 0.0 END) AS within
FROM candidates
WHERE one_{column} < another_{column}
GROUP BY bucket, human
"""

_OF_A_CANDIDATE = """
        COUNT({column}) AS n_{column},
        SUM({column}) AS x_{column},
        SUM({column} * {column}) AS xx_{column},
        MIN({column}) AS least_{column},
        MAX({column}) AS greatest_{column},
        MIN(CASE WHEN {column} IS NOT NULL THEN reviewer END) AS one_{column},
        MAX(CASE WHEN {column} IS NOT NULL THEN reviewer END) AS another_{column}"""

UNITS = (
    """
WITH candidates AS (
    SELECT session, bucket, human, model,"""
    + _OF_A_CANDIDATE.replace("{column}", "share")
    + ","
    + _OF_A_CANDIDATE.replace("{column}", "grade")
    + """
    FROM v_votes
    WHERE {window} AND own = 0 AND paired = 0
    GROUP BY session, bucket, human, model
)
"""
    + _UNIT.replace("{measure}", "0").replace("{column}", "share")
    + "UNION ALL"
    + _UNIT.replace("{measure}", "1").replace("{column}", "grade")
)
