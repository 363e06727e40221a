"""What is summed from votes: how reviewers vote, beside the others and by the place on the sheet.

One text per table of `witan.core.stats.sums`, as in `panel_sql`. Where a variance is the difference
of two sums, equal values are told by their least and greatest: rounding would leave a remainder.
"""

# Put together from texts of our own; values are parameters.
# ruff: noqa: S608

from witan.analytics.engines.columns_sql import columns_of
from witan.core.stats.sums import BallotSums

__all__ = ["BALLOTS", "BESIDE", "UNITS", "VOTES"]

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

BALLOTS = f"""
SELECT
    {_OF_BALLOTS}
FROM v_ballots
WHERE {{window}}
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

_TOLD = """
        COUNT(share) AS n_shares, SUM(share) AS shares,
        COUNT(grade) AS n_grades, SUM(grade) AS grades"""


def _beside(one: str, other: str, before: str = "") -> str:
    """Sums of two columns that are there together, and of their squares and products."""
    products = {"x": one, "y": other}
    products |= {"xx": f"{one} * {one}", "yy": f"{other} * {other}", "xy": f"{one} * {other}"}
    return ",\n    ".join(
        f"COALESCE(SUM({text}), 0.0) AS {before}{name}" for name, text in products.items()
    )


# The others are whoever is not the same reviewer: sums over all reviewers less those of one. One
# that votes on a candidate once is its vote; where it may vote again, its votes are added up first.
BESIDE = f"""
WITH votes AS (
    SELECT session, bucket, human, reviewer, model, share, grade, position, shown
    FROM v_votes
    WHERE {{window}} AND own = 0
),
several AS (
    SELECT session
    FROM v_ballots
    WHERE {{window}}
    GROUP BY session, human, reviewer
    HAVING COUNT(*) > 1 OR MAX(twins) > 0
),
mine AS (
    SELECT session, human, reviewer, model,{_TOLD}
    FROM votes
    WHERE session IN (SELECT session FROM several)
    GROUP BY session, human, reviewer, model
),
theirs AS (
    SELECT session, human, model,{_TOLD}
    FROM votes
    GROUP BY session, human, model
),
beside AS (
    SELECT v.bucket, v.reviewer, v.human, v.position, v.shown, v.share, v.grade,
        CASE WHEN v.share IS NOT NULL THEN (t.shares - COALESCE(m.shares, v.share))
            / NULLIF(t.n_shares - COALESCE(m.n_shares, 1), 0) END AS others_share,
        CASE WHEN v.grade IS NOT NULL THEN (t.grades - COALESCE(m.grades, v.grade))
            / NULLIF(t.n_grades - COALESCE(m.n_grades, 1), 0) END AS others_grade
    FROM votes v
    JOIN theirs t ON t.session = v.session AND t.human = v.human AND t.model = v.model
    LEFT JOIN mine m ON m.session = v.session AND m.human = v.human AND m.reviewer = v.reviewer
        AND m.model = v.model
),
compared AS (
    SELECT bucket, reviewer, human, COALESCE(position, 0) AS position, shown, share,
        others_share, CASE WHEN others_share IS NOT NULL THEN share END AS own_share,
        others_grade, CASE WHEN others_grade IS NOT NULL THEN grade END AS own_grade
    FROM beside
)
SELECT
    bucket,
    reviewer,
    human,
    position,
    shown,
    COUNT(own_grade) AS n_grades,
    {_beside("own_grade", "others_grade")},
    COUNT(own_share) AS n_shares,
    {_beside("own_share", "others_share", "share_")},
    COUNT(share) AS votes,
    COALESCE(SUM(share), 0.0) AS total,
    COUNT(own_share) AS excess_votes,
    COALESCE(SUM(own_share - others_share), 0.0) AS excess
FROM compared
GROUP BY bucket, reviewer, human, position, shown
"""


def _of_a_candidate(x: str) -> str:
    return f"""
        COUNT({x}) AS n_{x}, SUM({x}) AS x_{x}, SUM({x} * {x}) AS xx_{x},
        MIN({x}) AS least_{x}, MAX({x}) AS greatest_{x},
        MIN(CASE WHEN {x} IS NOT NULL THEN reviewer END) AS one_{x},
        MAX(CASE WHEN {x} IS NOT NULL THEN reviewer END) AS another_{x}"""


def _over_candidates(x: str) -> str:
    """Sums over candidates that two reviewers or more judged."""
    several = f"one_{x} < another_{x}"
    deviations = f"(n_{x} * xx_{x} - x_{x} * x_{x}) / NULLIF(n_{x} - 1, 0)"
    within = f"{several} AND least_{x} < greatest_{x}"
    return f"""
    COUNT(CASE WHEN {several} THEN 1 END) AS {x}_units,
    CAST(SUM(CASE WHEN {several} THEN n_{x} ELSE 0 END) AS BIGINT) AS {x}_n,
    SUM(CASE WHEN {several} THEN x_{x} ELSE 0.0 END) AS {x}_total,
    SUM(CASE WHEN {several} THEN xx_{x} ELSE 0.0 END) AS {x}_squares,
    SUM(CASE WHEN {within} THEN {deviations} ELSE 0.0 END) AS {x}_within,
    SUM(CASE WHEN {within} THEN {deviations} / n_{x} ELSE 0.0 END) AS {x}_variance"""


# Ballots that compare two are left out of shares and grades, and not of all grades.
UNITS = f"""
WITH votes AS (
    SELECT session, bucket, human, model, reviewer,
        CASE WHEN paired = 0 THEN share END AS share,
        CASE WHEN paired = 0 THEN grade END AS grade,
        grade AS any_grade
    FROM v_votes
    WHERE {{window}} AND own = 0
),
candidates AS (
    SELECT session, bucket, human, model,{_of_a_candidate("share")},{_of_a_candidate("grade")},{
    _of_a_candidate("any_grade")
}
    FROM votes
    GROUP BY session, bucket, human, model
)
SELECT
    bucket,
    human,{_over_candidates("share")},{_over_candidates("grade")},{_over_candidates("any_grade")}
FROM candidates
GROUP BY bucket, human
"""
