"""Sums of the rows of counted sessions: standings, matchups, answers, agreement.

One text per table of `witan.core.stats.sums`, the same on every engine. ``{window}`` stands for the
conditions on the sessions. Sums of whole numbers are cast: left alone they are decimals on one
engine and integers of 128 bits on another. A quotient has a real number in it, since two integers
divide to an integer on some engines and to a fraction on others.

Answers count once: of a session that judges those of another, only the agreement is summed.
"""

# Put together from texts of our own; values are parameters.
# ruff: noqa: S608

from witan.history.counting import SUPERSEDED_SESSIONS

STANDINGS = """
SELECT
    bucket,
    model,
    COUNT(*) AS appearances,
    COUNT(score) AS sessions,
    COALESCE(SUM(score), 0.0) AS total,
    COALESCE(SUM(score * score), 0.0) AS squares,
    COUNT(z) AS z_sessions,
    COALESCE(SUM(z), 0.0) AS z_total,
    CAST(SUM(votes) AS BIGINT) AS votes,
    CAST(SUM(offered) AS BIGINT) AS offered,
    SUM(wins) AS wins
FROM v_standings
WHERE {window} AND rejudged = 0 AND human = :human AND rule = :rule
GROUP BY bucket, model
"""

# What the sums of standings are too high by where several of a session are of what is now one
# model: it has one, their mean.
DUPLICATES = """
SELECT
    bucket,
    model,
    CAST(SUM(1 - stood) AS BIGINT) AS appearances,
    CAST(SUM(CASE WHEN scored > 1 THEN 1 - scored ELSE 0 END) AS BIGINT) AS sessions,
    SUM(CASE WHEN scored > 1 THEN total / scored - total ELSE 0.0 END) AS total,
    SUM(
        CASE WHEN scored > 1 THEN (total / scored) * (total / scored) - squares ELSE 0.0 END
    ) AS squares,
    CAST(SUM(CASE WHEN graded > 1 THEN 1 - graded ELSE 0 END) AS BIGINT) AS z_sessions,
    SUM(CASE WHEN graded > 1 THEN z_total / graded - z_total ELSE 0.0 END) AS z_total
FROM (
    SELECT
        session,
        bucket,
        {now} AS model,
        COUNT(*) AS stood,
        COUNT(score) AS scored,
        SUM(score) AS total,
        SUM(score * score) AS squares,
        COUNT(z) AS graded,
        SUM(z) AS z_total
    FROM v_standings
    WHERE {window} AND rejudged = 0 AND human = :human AND rule = :rule AND model IN ({codes})
    GROUP BY session, bucket, {now}
    HAVING COUNT(*) > 1
) twice
GROUP BY bucket, model
"""

COVERAGE = """
SELECT bucket, COUNT(DISTINCT session) AS n
FROM v_standings
WHERE {window} AND rejudged = 0 AND human = :human AND rule = :rule
GROUP BY bucket
"""

# Sessions of a history that were never counted under a rule: a lake has no such table.
UNCOUNTED = f"""
SELECT s.bucket, COUNT(*) AS n
FROM sessions s
WHERE {{window}} AND s.rejudged = 0 AND s.holder = '' AND s.session NOT IN ({SUPERSEDED_SESSIONS})
    AND EXISTS (SELECT 1 FROM ballots b WHERE b.session = s.session)
    AND NOT EXISTS (SELECT 1 FROM standings t WHERE t.session = s.session AND t.rule = :rule)
    AND NOT EXISTS (SELECT 1 FROM counted c WHERE c.session = s.session AND c.rule = :rule)
GROUP BY s.bucket
"""

# The pairs are read out of their lists first: a group would carry the lists of each pair along.
MATCHUPS = """
WITH pairs AS (
    SELECT bucket, i, j, wins, losses, ties
    FROM v_matchups
    WHERE {window} AND rejudged = 0 AND human = :human
)
SELECT
    bucket,
    i AS first,
    j AS second,
    SUM(wins) AS wins,
    SUM(losses) AS losses,
    SUM(ties) AS ties
FROM pairs
GROUP BY bucket, i, j
"""

# Not a sum: what depends on the order of sessions is read a session at a time.
MATCHES = """
SELECT at_us, session, i AS first, j AS second, wins, losses, ties
FROM v_matchups
WHERE {window} AND rejudged = 0 AND human = :human
"""

ANSWERS = """
SELECT
    bucket,
    model,
    COUNT(*) AS answers,
    CAST(SUM(failed) AS BIGINT) AS failed,
    COUNT(cost_usd) AS costed,
    COALESCE(SUM(cost_usd), 0.0) AS cost_usd,
    COUNT(seconds) AS timed,
    COALESCE(SUM(seconds), 0.0) AS seconds
FROM v_answers
WHERE {window} AND rejudged = 0
GROUP BY bucket, model
"""

PANEL = """
SELECT
    bucket,
    COUNT(*) AS sessions,
    COUNT(kendall_w) AS concordant,
    COALESCE(SUM(kendall_w), 0.0) AS kendall_w,
    COUNT(agreement) AS sure,
    COALESCE(SUM(agreement), 0.0) AS agreement
FROM v_sessions
WHERE {window}
GROUP BY bucket
"""
