"""The views over the files of a lake, for DuckDB and for Spark; lists stand there as lists."""

# Put together from texts of our own; values are parameters.
# ruff: noqa: S608

from collections.abc import Mapping

__all__ = ["DUCKDB_VIEWS", "SPARK_VIEWS"]

_S = "session, at_us, bucket, category, simulated, rejudged"
_B = f"{_S}, ballot, human, reviewer"

_PLAIN: Mapping[str, str] = {
    "v_sessions": f"SELECT {_S}, kendall_w, agreement FROM lake_sessions",
    "v_standings": "SELECT * FROM lake_standings",
    "v_matchups": "SELECT * FROM lake_matchups",
    "v_answers": f"SELECT {_S}, model, chars, seconds, cost_usd, failed FROM lake_answers",
}

_OF_A_BALLOT = f"{_B}, abstained, repaired, flat, kept, compared"

_LOG = "CASE WHEN chars > 0 THEN LN(chars) END AS log_chars"

DUCKDB_VIEWS: Mapping[str, str] = {
    **_PLAIN,
    "v_ballots": f"""
        SELECT {_OF_A_BALLOT},
            len(list_filter(models, lambda m, n: list_position(models, m) < n)) AS twins
        FROM lake_ballots""",
    "v_votes": f"""
        SELECT * REPLACE (NULLIF(position, 0) AS position), {_LOG}
        FROM (
            SELECT {_B}, paired, len(models) AS shown, unnest(models) AS model,
                unnest(own) AS own, unnest(shares) AS share, unnest(grades) AS grade,
                unnest(positions) AS position, unnest(chars) AS chars
            FROM lake_ballots)""",
    "v_pairs": f"""
        SELECT {_B}, models[a] AS i, models[b] AS j, own[a] AS i_own, own[b] AS j_own,
            shares[a] AS i_share, shares[b] AS j_share, chars[a] AS i_chars, chars[b] AS j_chars
        FROM (
            SELECT *, unnest(range(a + 1, len(models) + 1)) AS b
            FROM (
                SELECT {_B}, models, own, shares, chars, unnest(range(1, len(models))) AS a
                FROM lake_ballots))""",
    "v_grades": f"""
        SELECT * REPLACE (NULLIF(position, 0) AS position), {_LOG}
        FROM (
            SELECT {_B}, criterion, len(models) AS shown,
                unnest(range(len(models))) AS place, unnest(models) AS model, unnest(own) AS own,
                unnest(grades) AS grade, unnest(positions) AS position, unnest(chars) AS chars
            FROM (
                SELECT {_B}, models, own, positions, chars, unnest(criteria) AS criterion,
                    unnest(criterion_grades) AS grades
                FROM lake_ballots
                WHERE len(criteria) > 0))""",
}

SPARK_VIEWS: Mapping[str, str] = {
    **_PLAIN,
    "v_ballots": f"""
        SELECT {_OF_A_BALLOT}, size(models) - size(array_distinct(models)) AS twins
        FROM lake_ballots""",
    "v_votes": f"""
        SELECT {_B}, paired, size(models) AS shown, c.models AS model, c.own AS own,
            c.shares AS share, c.grades AS grade, NULLIF(c.positions, 0) AS position,
            c.chars AS chars, CASE WHEN c.chars > 0 THEN LN(c.chars) END AS log_chars
        FROM lake_ballots
            LATERAL VIEW explode(
                arrays_zip(models, own, shares, grades, positions, chars)) e AS c""",
    "v_pairs": f"""
        SELECT {_B}, models[a] AS i, models[b] AS j, own[a] AS i_own, own[b] AS j_own,
            shares[a] AS i_share, shares[b] AS j_share, chars[a] AS i_chars, chars[b] AS j_chars
        FROM lake_ballots
            LATERAL VIEW posexplode(models) x AS a, i_model
            LATERAL VIEW posexplode(models) y AS b, j_model
        WHERE b > a""",
    "v_grades": f"""
        SELECT {_B}, g.criteria AS criterion, size(models) AS shown, place,
            c.models AS model, c.own AS own, c.criterion_grades AS grade,
            NULLIF(c.positions, 0) AS position, c.chars AS chars,
            CASE WHEN c.chars > 0 THEN LN(c.chars) END AS log_chars
        FROM lake_ballots
            LATERAL VIEW explode(arrays_zip(criteria, criterion_grades)) k AS g
            LATERAL VIEW posexplode(
                arrays_zip(models, own, g.criterion_grades, positions, chars)) e AS place, c""",
}
