"""Sums of grades by criterion: of the panel and of each reviewer.

One text per table of `witan.core.stats.sums`, as in `standings_sql`; centred as in `votes_sql`.
"""

# Put together from texts of our own; values are parameters.
# ruff: noqa: S608

from witan.analytics.engine import columns_of
from witan.core.stats.sums import CriterionSums, GradingSums

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

_BETWEEN_REVIEWERS = columns_of(
    CriterionSums,
    bucket="bucket",
    criterion="criterion",
    units="COUNT(*)",
    n="CAST(SUM(n) AS BIGINT)",
    variance="""SUM(CASE WHEN least < greatest
        THEN (xx - x * x / n) / NULLIF(n - 1, 0) ELSE 0.0 END)""",
)
_CRITERION_LENGTHS = columns_of(
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
    + _CRITERION_LENGTHS
    + """
FROM centred
GROUP BY bucket, criterion
"""
)


_NAMES = ("bucket", "reviewer", "human", "criterion")
_KEY = {name: name for name in _NAMES}
_BY = ", ".join(_NAMES)
_BALLOT = f"session, ballot, {_BY}"
_GRADED = "{window} AND grade IS NOT NULL"


def _count(text: str, condition: str) -> str:
    return f"CAST(COALESCE(SUM({text}) FILTER (WHERE {condition}), 0) AS BIGINT)"


def _sum(text: str, condition: str) -> str:
    return f"COALESCE(SUM({text}) FILTER (WHERE {condition}), 0.0)"


_OTHERS, _OWN = "own = 0 AND y IS NOT NULL", "own = 1 AND y IS NOT NULL"

_OF_CANDIDATES = columns_of(
    GradingSums,
    **_KEY,
    grades=_count("n", "own = 0"),
    total=_sum("x", "own = 0"),
    n=_count("n", _OTHERS),
    x=_sum("x", _OTHERS),
    y=_sum("n * y", _OTHERS),
    xx=_sum("xx", _OTHERS),
    yy=_sum("n * y * y", _OTHERS),
    xy=_sum("x * y", _OTHERS),
    n_own=_count("n", _OWN),
    own_excess=_sum("x - n * y", _OWN),
    n_first=_count("n_first", _OTHERS),
    first_excess=_sum("x_first - n_first * y", _OTHERS),
    n_last=_count("n_last", _OTHERS),
    last_excess=_sum("x_last - n_last * y", _OTHERS),
)


def _beside(one: str) -> str:
    """Sums on each ballot of a column beside the grade x."""
    return f"""sheets AS (
    SELECT {_BALLOT},
        COUNT(*) AS n,
        SUM({one}) AS {one}, SUM({one} * {one}) AS {one}{one}, SUM({one} * x) AS {one}x,
        SUM(x) AS x, SUM(x * x) AS xx,
        MIN({one}) AS least_{one}, MAX({one}) AS greatest_{one},
        MIN(x) AS least_x, MAX(x) AS greatest_x
    FROM graded
    GROUP BY {_BALLOT}
)"""


def _over_sheets(columns: str) -> str:
    """Sums over ballots grading two candidates or more."""
    return f"""SELECT
    {columns}
FROM sheets
WHERE n > 1
GROUP BY {_BY}
"""


def _centred(one: str, other: str) -> str:
    """Sum over ballots of the products of two columns less their means."""
    varied = " AND ".join(f"least_{name} < greatest_{name}" for name in {one: 0, other: 0})
    return _sum(f"{one}{other} - {one} * {other} / n", varied)


_OF_BALLOTS = columns_of(
    GradingSums,
    **_KEY,
    gradings="COUNT(*)",
    flat=_count("1", "least = greatest"),
    spread=_sum("SQRT((xx - x * x / n) / n)", "least < greatest AND xx > x * x / n"),
)
_BESIDE_LENGTHS = columns_of(
    GradingSums,
    **_KEY,
    lengths="CAST(SUM(n) AS BIGINT)",
    ll=_centred("l", "l"),
    lx=_centred("l", "x"),
    lxx=_centred("x", "x"),
)
_BESIDE_THE_REST = columns_of(
    GradingSums,
    **_KEY,
    rests="CAST(SUM(n) AS BIGINT)",
    rr=_centred("r", "r"),
    rx=_centred("r", "x"),
    rxx=_centred("x", "x"),
)

_CANDIDATES = f"""
WITH mine AS (
    SELECT session, {_BY}, model, own,
        COUNT(*) AS n, SUM(grade) AS x, SUM(grade * grade) AS xx,
        COUNT(CASE WHEN position = 1 AND shown > 1 THEN 1 END) AS n_first,
        SUM(CASE WHEN position = 1 AND shown > 1 THEN grade ELSE 0.0 END) AS x_first,
        COUNT(CASE WHEN position = shown AND shown > 1 THEN 1 END) AS n_last,
        SUM(CASE WHEN position = shown AND shown > 1 THEN grade ELSE 0.0 END) AS x_last
    FROM v_grades
    WHERE {_GRADED}
    GROUP BY session, {_BY}, model, own
),
theirs AS (
    SELECT session, human, criterion, model, SUM(n) AS n, SUM(x) AS x
    FROM mine
    WHERE own = 0
    GROUP BY session, human, criterion, model
),
beside AS (
    SELECT m.bucket, m.reviewer, m.human, m.criterion, m.own, m.n, m.x, m.xx,
        m.n_first, m.x_first, m.n_last, m.x_last,
        CASE WHEN m.own = 1 THEN t.x / t.n
            ELSE (t.x - m.x) / NULLIF(t.n - m.n, 0) END AS y
    FROM mine m
    JOIN theirs t ON t.session = m.session AND t.human = m.human AND t.criterion = m.criterion
        AND t.model = m.model
)
SELECT
    {_OF_CANDIDATES}
FROM beside
GROUP BY {_BY}
"""

_BALLOTS = f"""
WITH sheets AS (
    SELECT {_BALLOT}, COUNT(*) AS n, SUM(grade) AS x, SUM(grade * grade) AS xx,
        MIN(grade) AS least, MAX(grade) AS greatest
    FROM v_grades
    WHERE {_GRADED} AND own = 0
    GROUP BY {_BALLOT}
)
{_over_sheets(_OF_BALLOTS)}"""

_LENGTHS = f"""
WITH graded AS (
    SELECT {_BALLOT}, log_chars AS l, grade AS x
    FROM v_grades
    WHERE {_GRADED} AND own = 0 AND log_chars IS NOT NULL
),
{_beside("l")}
{_over_sheets(_BESIDE_LENGTHS)}"""

_RESTS = f"""
WITH wholes AS (
    SELECT session, ballot, place, COUNT(*) AS n, SUM(grade) AS x
    FROM v_grades
    WHERE {_GRADED} AND own = 0
    GROUP BY session, ballot, place
    HAVING COUNT(*) > 1
),
graded AS (
    SELECT v.session, v.ballot, v.bucket, v.reviewer, v.human, v.criterion,
        v.grade AS x, (w.x - v.grade) / (w.n - 1) AS r
    FROM v_grades v
    JOIN wholes w ON w.session = v.session AND w.ballot = v.ballot AND w.place = v.place
    WHERE {_GRADED} AND own = 0
),
{_beside("r")}
{_over_sheets(_BESIDE_THE_REST)}"""

GRADINGS = (_CANDIDATES, _BALLOTS, _LENGTHS, _RESTS)
"""Queries of which each fills some columns: one after the other they hold less at once."""
