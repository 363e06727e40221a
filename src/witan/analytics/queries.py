"""SQL sums of standings, votes and grades, equal on every engine.

One query per table of `witan.core.stats.sums`; conditions on sessions replace ``{window}``.
Sums of integers are cast, because without a cast they are decimals on one engine and integers of
128 bits on another. A quotient contains a float, because on some engines two integers divide to an
integer. If a variance is the difference of two sums, equal values are detected by comparing minimum
and maximum, because rounding would leave a remainder. Centred within a ballot: Σ(l − l̄)(x − x̄) is
Σlx − ΣlΣx/n, and 0 if l or x is constant. In pairs decided by people, the smaller code comes first;
a side is 1 for it, −1 for the other, 0 for neither.

Answers count once: of a session that judges another's answers, only the agreement is summed.
"""

# Composed of our own text; values are parameters.
# ruff: noqa: S608

from witan.analytics.views import columns_of
from witan.core.stats.sums import BallotSums, CriterionSums, GradingSums, LengthSums
from witan.history.schema import SUPERSEDED_SESSIONS

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

# Corrections of the sums of standings for models with several names in a session: such a model has
# one standing, the mean.
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

# Sessions of a history that were never counted under a rule; a lake has no such table.
UNCOUNTED = f"""
SELECT s.bucket, COUNT(*) AS n
FROM sessions s
WHERE {{window}} AND s.rejudged = 0 AND s.holder = '' AND s.session NOT IN ({SUPERSEDED_SESSIONS})
    AND EXISTS (SELECT 1 FROM ballots b WHERE b.session = s.session)
    AND NOT EXISTS (SELECT 1 FROM standings t WHERE t.session = s.session AND t.rule = :rule)
    AND NOT EXISTS (SELECT 1 FROM counted c WHERE c.session = s.session AND c.rule = :rule)
GROUP BY s.bucket
"""

# Pairs are extracted from their lists first, because a group would copy the lists for each pair.
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

# Not a sum: Elo depends on the order of sessions, so matches are read session by session.
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
    COALESCE(SUM(share), 0.0) AS total
FROM v_votes
WHERE {window}
GROUP BY bucket, reviewer, human, model, own
"""

_SHARES_AND_GRADES = """
        COUNT(share) AS n_shares, SUM(share) AS shares,
        COUNT(choice) AS n_choices, COALESCE(SUM(choice), 0.0) AS choices,
        COUNT(grade) AS n_grades, SUM(grade) AS grades"""


def _sum_products(one: str, other: str, prefix: str = "") -> str:
    """Sum two columns, their squares and their products."""
    products = {"x": one, "y": other}
    products |= {"xx": f"{one} * {one}", "yy": f"{other} * {other}", "xy": f"{one} * {other}"}
    return ",\n    ".join(
        f"COALESCE(SUM({text}), 0.0) AS {prefix}{name}" for name, text in products.items()
    )


# The others are all reviewers but one: sums over all reviewers minus that reviewer's own. If it
# votes on a candidate once, its own sum is its vote; otherwise its votes are added first. A choice
# is a share on a ballot that distinguishes candidates: a full tie expresses no preference.
PAIRS_WITH_OTHERS = f"""
WITH votes AS (
    SELECT session, bucket, human, reviewer, model, share, grade, position, shown,
        CASE WHEN flat = 0 THEN share END AS choice
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
    SELECT session, human, reviewer, model,{_SHARES_AND_GRADES}
    FROM votes
    WHERE session IN (SELECT session FROM several)
    GROUP BY session, human, reviewer, model
),
theirs AS (
    SELECT session, human, model,{_SHARES_AND_GRADES}
    FROM votes
    GROUP BY session, human, model
),
beside AS (
    SELECT v.bucket, v.reviewer, v.human, v.position, v.shown, v.share, v.grade,
        CASE WHEN v.share IS NOT NULL THEN (t.shares - COALESCE(m.shares, v.share))
            / NULLIF(t.n_shares - COALESCE(m.n_shares, 1), 0) END AS others_share,
        CASE WHEN v.share IS NOT NULL THEN (t.choices - COALESCE(m.choices, v.choice, 0.0))
            / NULLIF(t.n_choices - COALESCE(m.n_choices,
                CASE WHEN v.choice IS NULL THEN 0 ELSE 1 END), 0) END AS others_choice,
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
        share - others_choice AS excess,
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
    {_sum_products("own_grade", "others_grade")},
    COUNT(own_share) AS n_shares,
    {_sum_products("own_share", "others_share", "share_")},
    COUNT(share) AS votes,
    COALESCE(SUM(share), 0.0) AS total,
    COUNT(excess) AS excess_votes,
    COALESCE(SUM(excess), 0.0) AS excess
FROM compared
GROUP BY bucket, reviewer, human, position, shown
"""


def _sums_of_candidate(x: str) -> str:
    return f"""
        COUNT({x}) AS n_{x}, SUM({x}) AS x_{x}, SUM({x} * {x}) AS xx_{x},
        MIN({x}) AS least_{x}, MAX({x}) AS greatest_{x},
        MIN(CASE WHEN {x} IS NOT NULL THEN reviewer END) AS one_{x},
        MAX(CASE WHEN {x} IS NOT NULL THEN reviewer END) AS another_{x}"""


def _over_candidates(x: str) -> str:
    """Return sums over candidates with two or more judges."""
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


# Ballots that compare two candidates are excluded from shares and grades, but not from all grades.
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
    SELECT session, bucket, human, model,{_sums_of_candidate("share")},{
    _sums_of_candidate("grade")
},{_sums_of_candidate("any_grade")}
    FROM votes
    GROUP BY session, bucket, human, model
)
SELECT
    bucket,
    human,{_over_candidates("share")},{_over_candidates("grade")},{_over_candidates("any_grade")}
FROM candidates
GROUP BY bucket, human
"""


def _sums_of_sheet(x: str) -> str:
    """Sum a column and its log lengths on a ballot."""
    length = f"{x}_length"
    return f"""
        COUNT({x}) AS n_{x}, SUM({x}) AS s_{x}, SUM({x} * {x}) AS ss_{x},
        SUM({length}) AS l_{x}, SUM({length} * {length}) AS ll_{x}, SUM({length} * {x}) AS lx_{x},
        MIN({x}) AS least_{x}, MAX({x}) AS greatest_{x},
        MIN({length}) AS short_{x}, MAX({length}) AS long_{x}"""


def _over_sheets(x: str, prefix: str) -> str:
    """Return the sums of these over ballots."""
    varied, longer = f"least_{x} < greatest_{x}", f"short_{x} < long_{x}"
    return f"""
    SUM(CASE WHEN {longer} THEN ll_{x} - l_{x} * l_{x} / n_{x} ELSE 0.0 END) AS {prefix}ll,
    SUM(CASE WHEN {longer} AND {varied}
        THEN lx_{x} - l_{x} * s_{x} / n_{x} ELSE 0.0 END) AS {prefix}lx,
    SUM(CASE WHEN {varied} THEN ss_{x} - s_{x} * s_{x} / n_{x} ELSE 0.0 END) AS {prefix}xx"""


# One query of all ballots fills three tables, because grouping votes by ballot is slow.
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
        MIN(grade) AS least, MAX(grade) AS greatest,{_sums_of_sheet("shared")},{
    _sums_of_sheet("graded")
}
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

_PAIR_SUMS = columns_of(
    LengthSums,
    **_KEY,
    decided="COUNT(*)",
    longer="""CAST(SUM(CASE WHEN i_chars > j_chars AND i_share > j_share THEN 1
        WHEN i_chars < j_chars AND i_share < j_share THEN 1 ELSE 0 END) AS BIGINT)""",
)

PAIRS = f"""
WITH pairs AS (
    SELECT bucket, reviewer, human, i_share, j_share, i_chars, j_chars
    FROM v_pairs
    WHERE {{window}} AND i_own = 0 AND j_own = 0 AND i_share <> j_share AND i_chars <> j_chars
        AND i_chars > 0 AND j_chars > 0
)
SELECT
    {_PAIR_SUMS}
FROM pairs
GROUP BY bucket, reviewer, human
"""


def _opinions(votes: str) -> str:
    """Return SQL of reviewers' opinions on pairs, as `opinion` in Python; 1 prefers `low`."""
    # Votes are joined with each other, which is faster than to read lists again for each pair.
    return f"""
    SELECT session, bucket, reviewer, low, high, CASE WHEN SUM(side * side + side) > COUNT(*) THEN 1
        WHEN SUM(side * side - side) > COUNT(*) THEN -1 ELSE 0 END AS side
    FROM (
        SELECT x.session, x.bucket, x.reviewer, x.model AS low, y.model AS high,
            CASE WHEN x.share = y.share THEN 0 WHEN x.share > y.share THEN 1 ELSE -1 END AS side
        FROM {votes} x
        JOIN {votes} y ON y.session = x.session AND y.ballot = x.ballot AND y.model > x.model
    ) sides
    GROUP BY session, bucket, reviewer, low, high"""


_PEOPLE = f"""
WITH human_votes AS (
    SELECT session, bucket, ballot, reviewer, model, share
    FROM v_votes
    WHERE {{window}} AND human = 1 AND own = 0 AND share IS NOT NULL
),
human_opinions AS ({_opinions("human_votes")}
),
people AS (
    SELECT session, low, high, CASE WHEN SUM(side) > 0 THEN 1 ELSE -1 END AS truth
    FROM human_opinions
    GROUP BY session, low, high
    HAVING SUM(side) <> 0
)"""

HUMANS = (
    _PEOPLE
    + f""",
model_votes AS (
    SELECT session, bucket, ballot, reviewer, model, share
    FROM v_votes
    WHERE {{window}} AND human = 0 AND own = 0 AND share IS NOT NULL
        AND session IN (SELECT session FROM people)
),
model_opinions AS ({_opinions("model_votes")}
),
"""
    + """
opinions AS (
    SELECT m.session, m.bucket, m.reviewer, m.low, m.high, p.truth * m.side AS x
    FROM model_opinions m
    JOIN people p ON p.session = m.session AND p.low = m.low AND p.high = m.high
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
    AND b.reviewer >= a.reviewer
GROUP BY a.bucket, a.reviewer, b.reviewer
"""
)

# A cast to an integer truncates on some engines and rounds on others, so bands are enumerated.
_BAND_SQL = "10" + "".join(
    f"\n        + CASE WHEN confidence >= {k / 20} THEN 1 ELSE 0 END" for k in range(11, 20)
)

CALIBRATION = (
    _PEOPLE
    + """,
panel AS (
    SELECT session, bucket,
        CASE WHEN i < j THEN i ELSE j END AS low,
        CASE WHEN i < j THEN j ELSE i END AS high,
        CASE WHEN p_beats > 0.5 THEN p_beats ELSE 1.0 - p_beats END AS confidence,
        CASE WHEN (p_beats > 0.5 AND i < j) OR (p_beats < 0.5 AND i > j) THEN 1 ELSE -1 END AS side
    FROM v_matchups
    WHERE {window} AND human = 0 AND p_beats <> 0.5
),
sure AS (
    SELECT m.bucket, m.confidence, m.side * p.truth AS matched
    FROM panel m
    JOIN people p ON p.session = m.session AND p.low = m.low AND p.high = m.high
),
banded AS (
    SELECT bucket, confidence, matched,
        """
    + _BAND_SQL
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

_CENTRED_SUMS = """
        CASE WHEN least_l < greatest_l THEN ll - l * l / n ELSE 0.0 END AS ll,
        CASE WHEN least_l < greatest_l AND least_x < greatest_x
            THEN lx - l * x / n ELSE 0.0 END AS lx,
        CASE WHEN least_x < greatest_x THEN xx - x * x / n ELSE 0.0 END AS xx"""

_RAW_SUMS = """
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

# The holistic grade is summed together with votes: with lengths in `SHEETS`, and in `UNITS`.
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
    + _RAW_SUMS.replace("{column}", "grade")
    + """
    FROM graded
    WHERE log_chars IS NOT NULL
    GROUP BY session, bucket, criterion, ballot
),
centred AS (
    SELECT bucket, criterion, n,"""
    + _CENTRED_SUMS
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
_GRADING_KEY = {name: name for name in _NAMES}
_GROUP_COLUMNS = ", ".join(_NAMES)
_BALLOT = f"session, ballot, {_GROUP_COLUMNS}"
_GRADED_CONDITION = "{window} AND grade IS NOT NULL"


def _count(text: str, condition: str) -> str:
    return f"CAST(COALESCE(SUM({text}) FILTER (WHERE {condition}), 0) AS BIGINT)"


def _sum(text: str, condition: str) -> str:
    return f"COALESCE(SUM({text}) FILTER (WHERE {condition}), 0.0)"


_OTHERS, _OWN = "own = 0 AND y IS NOT NULL", "own = 1 AND y IS NOT NULL"

_OF_CANDIDATES = columns_of(
    GradingSums,
    **_GRADING_KEY,
    grades=_count("n", "own = 0"),
    total=_sum("x", "own = 0"),
    n=_count("n", _OTHERS),
    x=_sum("x", _OTHERS),
    y=_sum("n * y", _OTHERS),
    xx=_sum("xx", _OTHERS),
    yy=_sum("n * y * y", _OTHERS),
    xy=_sum("x * y", _OTHERS),
    n_own=_count("n", _OWN),
    own_total=_sum("x", _OWN),
    own_excess=_sum("x - n * y", _OWN),
    n_first=_count("n_first", _OTHERS),
    first_excess=_sum("x_first - n_first * y", _OTHERS),
    n_last=_count("n_last", _OTHERS),
    last_excess=_sum("x_last - n_last * y", _OTHERS),
)


def _sums_with_grade(one: str) -> str:
    """Return sums on each ballot of a column and the grade x."""
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


def _over_gradings(columns: str) -> str:
    """Return sums over ballots grading two candidates or more."""
    return f"""SELECT
    {columns}
FROM sheets
WHERE n > 1
GROUP BY {_GROUP_COLUMNS}
"""


def _centred_sum(one: str, other: str) -> str:
    """Return the sum over ballots of products of two centred columns."""
    varied = " AND ".join(f"least_{name} < greatest_{name}" for name in {one: 0, other: 0})
    return _sum(f"{one}{other} - {one} * {other} / n", varied)


_OF_GRADINGS = columns_of(
    GradingSums,
    **_GRADING_KEY,
    gradings="COUNT(*)",
    flat=_count("1", "least = greatest"),
    spread=_sum("SQRT((xx - x * x / n) / n)", "least < greatest AND xx > x * x / n"),
)
_BESIDE_LENGTHS = columns_of(
    GradingSums,
    **_GRADING_KEY,
    lengths="CAST(SUM(n) AS BIGINT)",
    ll=_centred_sum("l", "l"),
    lx=_centred_sum("l", "x"),
    lxx=_centred_sum("x", "x"),
)
_BESIDE_THE_REST = columns_of(
    GradingSums,
    **_GRADING_KEY,
    rests="CAST(SUM(n) AS BIGINT)",
    rr=_centred_sum("r", "r"),
    rx=_centred_sum("r", "x"),
    rxx=_centred_sum("x", "x"),
)

_CANDIDATES = f"""
WITH mine AS (
    SELECT session, {_GROUP_COLUMNS}, model, own,
        COUNT(*) AS n, SUM(grade) AS x, SUM(grade * grade) AS xx,
        COUNT(CASE WHEN position = 1 AND shown > 1 THEN 1 END) AS n_first,
        SUM(CASE WHEN position = 1 AND shown > 1 THEN grade ELSE 0.0 END) AS x_first,
        COUNT(CASE WHEN position = shown AND shown > 1 THEN 1 END) AS n_last,
        SUM(CASE WHEN position = shown AND shown > 1 THEN grade ELSE 0.0 END) AS x_last
    FROM v_grades
    WHERE {_GRADED_CONDITION}
    GROUP BY session, {_GROUP_COLUMNS}, model, own
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
GROUP BY {_GROUP_COLUMNS}
"""

_BALLOTS = f"""
WITH sheets AS (
    SELECT {_BALLOT}, COUNT(*) AS n, SUM(grade) AS x, SUM(grade * grade) AS xx,
        MIN(grade) AS least, MAX(grade) AS greatest
    FROM v_grades
    WHERE {_GRADED_CONDITION} AND own = 0
    GROUP BY {_BALLOT}
)
{_over_gradings(_OF_GRADINGS)}"""

_LENGTHS = f"""
WITH graded AS (
    SELECT {_BALLOT}, log_chars AS l, grade AS x
    FROM v_grades
    WHERE {_GRADED_CONDITION} AND own = 0 AND log_chars IS NOT NULL
),
{_sums_with_grade("l")}
{_over_gradings(_BESIDE_LENGTHS)}"""

_GRADE_RESTS = f"""
WITH wholes AS (
    SELECT session, ballot, place, COUNT(*) AS n, SUM(grade) AS x
    FROM v_grades
    WHERE {_GRADED_CONDITION} AND own = 0
    GROUP BY session, ballot, place
    HAVING COUNT(*) > 1
),
graded AS (
    SELECT v.session, v.ballot, v.bucket, v.reviewer, v.human, v.criterion,
        v.grade AS x, (w.x - v.grade) / (w.n - 1) AS r
    FROM v_grades v
    JOIN wholes w ON w.session = v.session AND w.ballot = v.ballot AND w.place = v.place
    WHERE {_GRADED_CONDITION} AND own = 0
),
{_sums_with_grade("r")}
{_over_gradings(_BESIDE_THE_REST)}"""

GRADINGS = (_CANDIDATES, _BALLOTS, _LENGTHS, _GRADE_RESTS)
"""Queries that each fill some columns; in sequence they need less memory."""
