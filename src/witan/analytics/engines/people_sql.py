"""What is summed where people voted too: who was right about the pairs that they decided.

One text per table of `witan.core.stats.sums`, as in `panel_sql`. A pair stands with the smaller
code first; a side is 1 for it, −1 for the other, 0 for neither.
"""

# Put together from texts of our own; values are parameters.
# ruff: noqa: S608

__all__ = ["CALIBRATION", "HUMANS"]

_SIDE = """
        CASE WHEN i < j THEN i ELSE j END AS low,
        CASE WHEN i < j THEN j ELSE i END AS high,
        CASE WHEN i_share = j_share THEN 0
            WHEN i < j AND i_share > j_share THEN 1
            WHEN i > j AND i_share < j_share THEN 1
            ELSE -1 END AS side"""

_PEOPLE = (
    """
WITH sides AS (
    SELECT session,"""
    + _SIDE
    + """
    FROM v_pairs
    WHERE {window} AND human = 1 AND i_own = 0 AND j_own = 0 AND i <> j
        AND i_share IS NOT NULL AND j_share IS NOT NULL
),
people AS (
    SELECT session, low, high, CASE WHEN SUM(side) > 0 THEN 1 ELSE -1 END AS truth
    FROM sides
    GROUP BY session, low, high
    HAVING SUM(side) <> 0
)"""
)

HUMANS = (
    _PEOPLE
    + """,
models AS (
    SELECT session, bucket, reviewer,"""
    + _SIDE
    + """
    FROM v_pairs
    WHERE {window} AND human = 0 AND i_own = 0 AND j_own = 0 AND i <> j
        AND i_share IS NOT NULL AND j_share IS NOT NULL
        AND session IN (SELECT session FROM people)
),
opinions AS (
    SELECT m.session, m.bucket, m.reviewer, m.low, m.high, MIN(p.truth) * CASE
        WHEN SUM(m.side) > 0 THEN 1 WHEN SUM(m.side) < 0 THEN -1 ELSE 0 END AS x
    FROM models m
    JOIN people p ON p.session = m.session AND p.low = m.low AND p.high = m.high
    GROUP BY m.session, m.bucket, m.reviewer, m.low, m.high
)
SELECT
    a.bucket,
    a.reviewer,
    b.reviewer AS other,
    COUNT(*) AS n,
    CAST(SUM(a.x) AS BIGINT) AS x,
    CAST(SUM(b.x) AS BIGINT) AS y,
    CAST(SUM(a.x * a.x) AS BIGINT) AS xx,
    CAST(SUM(b.x * b.x) AS BIGINT) AS yy,
    CAST(SUM(a.x * b.x) AS BIGINT) AS xy
FROM opinions a
JOIN opinions b ON b.session = a.session AND b.low = a.low AND b.high = a.high
GROUP BY a.bucket, a.reviewer, b.reviewer
"""
)

# A cast to an integer cuts off on some engines and rounds on others, so bands are counted out.
_BAND = "10" + "".join(
    f"\n        + CASE WHEN confidence >= {k / 20} THEN 1 ELSE 0 END" for k in range(11, 20)
)

CALIBRATION = (
    _PEOPLE
    + """,
sure AS (
    SELECT m.bucket,
        CASE WHEN m.p_beats > 0.5 THEN m.p_beats ELSE 1.0 - m.p_beats END AS confidence,
        CASE WHEN (m.p_beats > 0.5 AND m.i < m.j) OR (m.p_beats < 0.5 AND m.i > m.j)
            THEN p.truth ELSE -p.truth END AS matched
    FROM v_matchups m
    JOIN people p ON p.session = m.session
        AND p.low = CASE WHEN m.i < m.j THEN m.i ELSE m.j END
        AND p.high = CASE WHEN m.i < m.j THEN m.j ELSE m.i END
    WHERE {window} AND m.human = 0 AND m.p_beats <> 0.5
),
banded AS (
    SELECT bucket, confidence, matched,
        """
    + _BAND
    + """ AS band
    FROM sure
)
SELECT
    bucket,
    band,
    COUNT(*) AS pairs,
    CAST(SUM(CASE WHEN matched > 0 THEN 1 ELSE 0 END) AS BIGINT) AS matched,
    SUM(confidence) AS confidence
FROM banded
GROUP BY bucket, band
"""
)
