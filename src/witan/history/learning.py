"""Statistics of the newest sessions, learned by a council before counting."""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from witan.core.ballot import Ballot
from witan.core.outcome import Prior, Unit
from witan.core.session_ballots import Noise
from witan.core.stats.calibration import (
    BesidePeople,
    JudgedSession,
    StoredBallot,
    calibrate,
    compare_with_people,
)
from witan.core.stats.concordance import MIN_DECIDED, shared_error
from witan.core.stats.leaderboard import EARLIEST_US
from witan.core.stats.learning import (
    Lessons,
    Tracks,
    known_by_order,
    learn_prior_from_noise,
    learn_reliability_from_people,
    learn_severity,
    reliability_from_shares,
    reliability_from_tracks,
)
from witan.core.stats.priors import Severity
from witan.core.stats.sums import Names, present_name
from witan.history.database import Database, Params, in_list, parse_lists
from witan.history.reading import read_ballot, sessions_sharing_answers
from witan.history.rows import COUNCIL
from witan.history.schema import SUPERSEDED_SESSIONS, code_of

if TYPE_CHECKING:
    from witan.deliberation.plan import Lengths
    from witan.deliberation.ports import Stage

NO_ALIASES: Mapping[str, str] = MappingProxyType({})

MAX_SESSIONS_FOR_PRIOR = 2_000
"""Number of newest sessions for the prior of a unit."""

MAX_JUDGED_SESSIONS = 100
"""Number of newest sessions with people's votes for ρ, calibration and reliability."""

MAX_JUDGED_BALLOTS = 5_000
"""Maximum number of ballots in them; the oldest sessions are left out."""

MAX_MIRRORED_SESSIONS = 500
"""Number of newest sessions for order-consistency."""

MAX_SESSIONS_FOR_OTHERS = 100
"""Number of newest sessions for correlation with the others."""

MAX_SESSIONS_FOR_SEVERITY = 500
"""Number of newest sessions for severity."""

# Every session is later than EARLIEST_US; without this condition SQLite reads and sorts them all.
_NEWEST_SQL = (
    f"SELECT session FROM sessions WHERE at_us >= {EARLIEST_US} AND simulated = 0 AND holder = ''"  # noqa: S608
    " AND session NOT IN {without} AND session NOT IN ({superseded})"
    " AND (:half < 0 OR bucket % 2 = :half)"
    " ORDER BY at_us DESC, session LIMIT :most"
)

_GRADES_SQL = f"""
SELECT b.session, b.reviewer, b.models, b.own, b.grades
FROM ({_NEWEST_SQL}) s JOIN ballots b ON b.session = s.session
WHERE b.human = 0 AND b.paired = 0 AND b.abstained = 0
ORDER BY b.session, b.ballot
"""  # noqa: S608 - texts of our own

_NOISE_SQL = (
    "SELECT source, noise_variance, noise_df, effect_variance FROM sessions"
    " WHERE simulated = 0 AND holder = '' AND noise_unit = :unit AND session NOT IN {without}"
    " AND session NOT IN ({superseded})"
    " AND (:half < 0 OR bucket % 2 = :half)"
    " ORDER BY at_us DESC, session LIMIT :most"
)

MAX_SESSIONS_FROM_VOTES = 2_000
"""Maximum number of sessions with people's votes to start the query from votes."""

_COUNT_VOTED_SQL = """
SELECT COUNT(*) FROM (SELECT 1 FROM matchups WHERE human = 1 LIMIT :most) AS votes
"""

# SQLite reads the table on the left of CROSS JOIN first.
_VOTES_FIRST = "matchups m CROSS JOIN sessions s"

_SESSIONS_FIRST = "sessions s CROSS JOIN matchups m"

_JUDGED_SQL = """
SELECT s.session, s.bucket,
    (SELECT COUNT(*) FROM ballots b WHERE b.session = s.session) AS n_ballots
FROM {tables}
WHERE s.session = m.session AND m.human = 1 AND s.simulated = 0 AND s.holder = ''
    AND s.session NOT IN {without} AND s.session NOT IN ({superseded})
    AND (:half < 0 OR s.bucket % 2 = :half)
ORDER BY s.at_us DESC, s.session LIMIT :most
"""

_BALLOTS_SQL = (
    "SELECT session, reviewer, human, models, own, shares FROM ballots"
    " WHERE abstained = 0 AND session IN {names} ORDER BY session, ballot"
)

_P_BEATS_SQL = (
    "SELECT session, models, p_beats FROM matchups WHERE human = 0 AND session IN {names}"
)

_ORDER_KEPT_SQL = f"""
SELECT b.reviewer, SUM(b.kept) AS kept, SUM(b.compared) AS compared
FROM ({_NEWEST_SQL}) s JOIN ballots b ON b.session = s.session
WHERE b.human = 0 AND b.compared > 0
GROUP BY b.reviewer
"""  # noqa: S608 - texts of our own

UNITS: tuple[Unit, ...] = ("grades", "ranks")


@dataclass(frozen=True, slots=True)
class _Filter:
    """Excluded sessions, the half of the buckets to read, and renamed models.

    `current_codes`: code of an old name → code of the model's current name.
    """

    excluded_sessions: tuple[str, ...]
    half: int
    current_codes: Mapping[int, int]

    def rows(
        self, database: Database, sql: str, most: int, tables: str = "", **values: str
    ) -> list[tuple[Any, ...]]:
        """Read the rows of the newest sessions, excluded ones left out."""
        placeholders, names = in_list(self.excluded_sessions or ("",), "w")
        params: Params = {**values, **names, "half": self.half, "most": most}
        return database.rows(
            sql.format(without=placeholders, superseded=SUPERSEDED_SESSIONS, tables=tables), params
        )


def learn(
    database: Database,
    reviewers: Collection[str],
    exclude: str | None = None,
    half: int | None = None,
    aliases: Mapping[str, str] = NO_ALIASES,
    *,
    judges: Collection[str] = (),
) -> Lessons:
    """Learn from the newest unsimulated sessions."""
    new_codes = {code_of(old): code_of(present_name(old, aliases)) for old in aliases}
    with database.snapshot():
        excluded = [] if exclude is None else sessions_sharing_answers(database, exclude)
        session_filter = _Filter(tuple(excluded), -1 if half is None else half, new_codes)
        noises = {
            unit: session_filter.rows(database, _NOISE_SQL, MAX_SESSIONS_FOR_PRIOR, unit=unit)
            for unit in UNITS
        }
        comparisons_with_people = compare_with_people(_judged_sessions(database, session_filter))
        weights: Mapping[str, float] = {}
        if reviewers:
            present = {name: present_name(name, aliases) for name in reviewers}
            reliability = _reliability(
                database,
                [*dict.fromkeys(present.values())],
                comparisons_with_people,
                session_filter,
            )
            weights = {
                name: reliability[current]
                for name, current in present.items()
                if current in reliability
            }
        severity = _severity(database, judges, session_filter, aliases) if judges else None
    calibration = calibrate(comparisons_with_people.calibration, with_bands=False)
    enough = (
        comparisons_with_people.correct.shape[1] >= MIN_DECIDED
        and len(comparisons_with_people.reviewers) > 1
    )
    priors = [_prior(rows, unit) for unit, rows in noises.items()]
    return Lessons(
        priors=tuple(prior for prior in priors if prior is not None),
        rho=shared_error(comparisons_with_people.correct) if enough else None,
        reliability=weights,
        calibration=calibration if calibration.pairs else None,
        severity=severity,
        n_sessions={unit: len(rows) for unit, rows in noises.items()},
    )


def _prior(rows: Sequence[tuple[Any, ...]], unit: Unit) -> Prior | None:
    prior = learn_prior_from_noise([Noise(unit, *noise) for _, *noise in rows], unit)
    if prior is None:
        return None
    return replace(prior, n_imported=sum(source != COUNCIL for source, *_ in rows))


def _severity(
    database: Database, judges: Collection[str], session_filter: _Filter, aliases: Mapping[str, str]
) -> Severity | None:
    """Return these models' severity relative to all others, if known."""
    sessions: dict[str, dict[tuple[int, int], dict[str, float]]] = {}
    for session, reviewer, *lists in session_filter.rows(
        database, _GRADES_SQL, MAX_SESSIONS_FOR_SEVERITY
    ):
        name = str(session_filter.current_codes.get(reviewer, reviewer))
        times: Counter[int] = Counter()
        for model, is_own, grade in zip(*map(json.loads, lists), strict=True):
            times[model] += 1  # a model may have several seats
            if grade is not None and not is_own:
                text = sessions.setdefault(session, {}).setdefault((model, times[model]), {})
                text[name] = grade
    known = learn_severity([[*texts.values()] for texts in sessions.values()])
    if known is None:
        return None
    present = {judge: str(code_of(present_name(judge, aliases))) for judge in judges}
    return known.by_seat(present)


def _judged_sessions(database: Database, session_filter: _Filter) -> Iterator[JudgedSession]:
    """Read the newest sessions with people's votes."""
    [(n_judged,)] = database.rows(_COUNT_VOTED_SQL, {"most": MAX_SESSIONS_FROM_VOTES})
    if not n_judged:
        return
    tables = _VOTES_FIRST if n_judged < MAX_SESSIONS_FROM_VOTES else _SESSIONS_FIRST
    rows = session_filter.rows(database, _JUDGED_SQL, MAX_JUDGED_SESSIONS, tables)
    total, buckets = 0, dict[str, int]()
    for session, bucket, n_ballots in rows:
        total += n_ballots
        if buckets and total > MAX_JUDGED_BALLOTS:
            break
        buckets[session] = bucket
    ballots = _ballots(database, [*buckets], session_filter.current_codes)
    panels = {
        session: (_present(json.loads(models), session_filter.current_codes), json.loads(p_beats))
        for session, models, p_beats in _rows_of(database, _P_BEATS_SQL, [*buckets])
    }
    for session, bucket in buckets.items():
        models, p_beats = panels.get(session, ((), ()))
        yield JudgedSession(bucket, ballots.get(session, ()), models, p_beats)


def _ballots(
    database: Database, sessions: Sequence[str], current_codes: Mapping[int, int]
) -> dict[str, list[StoredBallot]]:
    rows = _rows_of(database, _BALLOTS_SQL, sessions)
    lists = zip(*(parse_lists([row[at] for row in rows]) for at in (3, 4, 5)), strict=True)
    ballots: dict[str, list[StoredBallot]] = {}
    for (session, reviewer, human, *_), (models, *columns) in zip(rows, lists, strict=True):
        ballot = StoredBallot(
            current_codes.get(reviewer, reviewer),
            bool(human),
            _present(models, current_codes),
            *columns,
        )
        ballots.setdefault(session, []).append(ballot)
    return ballots


def _present(models: list[int], current_codes: Mapping[int, int]) -> list[int]:
    return [current_codes.get(model, model) for model in models] if current_codes else models


def _rows_of(database: Database, sql: str, sessions: Sequence[str]) -> list[tuple[Any, ...]]:
    if not sessions:
        return []
    placeholders, params = in_list(sessions)
    return database.rows(sql.format(names=placeholders), params)


def _reliability(
    database: Database,
    reviewers: Collection[str],
    comparisons: BesidePeople,
    session_filter: _Filter,
) -> Mapping[str, float]:
    """Return the weights of reviewers, using all available data."""
    codes = {code_of(name): name for name in reviewers}
    tracks = Tracks(order_kept=_count_order_kept(database, codes, session_filter))
    if not known_by_order(tracks.order_kept, reviewers):
        tracks = replace(tracks, others=_weights_by_others(database, codes, session_filter))
    people_sums = comparisons.of(codes)
    n_by_reviewer = dict(zip(people_sums.reviewers, people_sums.sums.n.tolist(), strict=True))
    tracks = replace(
        tracks,
        people=learn_reliability_from_people(people_sums.sums, Names(codes)),
        pairs_judged={codes[code]: n for code, n in n_by_reviewer.items()},
    )
    return reliability_from_tracks(tracks, reviewers)


def _count_order_kept(
    database: Database, codes: Mapping[int, str], session_filter: _Filter
) -> dict[str, tuple[int, int]]:
    rows = session_filter.rows(database, _ORDER_KEPT_SQL, MAX_MIRRORED_SESSIONS)
    counts: dict[str, tuple[int, int]] = {}
    for code, n_same, n in rows:
        name = codes.get(session_filter.current_codes.get(code, code))
        if name is not None:
            earlier = counts.get(name, (0, 0))
            counts[name] = (earlier[0] + int(n_same), earlier[1] + int(n))
    return counts


def _weights_by_others(
    database: Database, codes: Mapping[int, str], session_filter: _Filter
) -> Mapping[str, float]:
    newest_sessions = session_filter.rows(database, _NEWEST_SQL, MAX_SESSIONS_FOR_OTHERS)
    sessions = _ballots(
        database, [session for (session,) in newest_sessions], session_filter.current_codes
    ).values()
    return reliability_from_shares(_shares(ballots, codes) for ballots in sessions)


def _shares(
    ballots: Sequence[StoredBallot], codes: Mapping[int, str]
) -> dict[str, NDArray[np.float64]]:
    """Return shares per reviewer, excluding its own candidates."""
    model_ballots = [ballot for ballot in ballots if not ballot.human]
    columns = {
        model: at
        for at, model in enumerate(dict.fromkeys(m for b in model_ballots for m in b.models))
    }
    rows: dict[str, list[NDArray[np.float64]]] = {}
    for ballot in model_ballots:
        row = np.full(len(columns), np.nan)
        for model, is_own, share in zip(ballot.models, ballot.own, ballot.shares, strict=True):
            if share is not None and not is_own:
                row[columns[model]] = share
        rows.setdefault(codes.get(ballot.reviewer, str(ballot.reviewer)), []).append(row)
    return {reviewer: np.array(shares) for reviewer, shares in rows.items()}


MAX_SESSIONS_FOR_LENGTHS = 100
"""Number of newest unsimulated sessions for lengths."""

_EVENTS_SQL = """
SELECT e.session, e.kind, substr(e.body, 1, {head}), CASE e.kind
    WHEN 'session_opened' THEN substr(e.body, {find}(e.body, '"seats":'))
    ELSE substr(e.body, {find}(e.body, '"spent":')) END
FROM (
    SELECT session FROM sessions
    WHERE simulated = 0 AND holder = '' AND source = :source
    ORDER BY at_us DESC, session LIMIT :most
) s JOIN events e ON e.session = s.session
WHERE e.kind IN ('session_opened', 'answer_done', 'ballot_cast', 'synthesis_done')
ORDER BY e.session, e.seq
"""
"""Query of events without their texts, which may be megabytes.

A text cannot contain a key with its quotes and colon, because JSON escapes quotes; texts stand
before the keys `seats` and `spent`, and after the seat.
"""

_HEAD_CHARACTERS = 4_000
"""Leading characters of an event, enough for its seat, a name of at most 400."""

_FIND_FUNCTION = {"sqlite": "instr", "postgresql": "strpos"}

_SEAT_PATTERN = re.compile(r'"(?:seat|chairman)": *("(?:[^"\\]|\\.)*")')

_STAGES: "dict[str, Stage]" = {
    "answer_done": "answer",
    "ballot_cast": "review",
    "synthesis_done": "synthesis",
}


def read_lengths(database: Database) -> "Lengths":
    """Return the mean output tokens of a reply, per model and stage.

    One event may cover several calls: both orders of a sheet, repairs, retries.
    """
    from witan.deliberation.plan import Lengths

    counts: dict[tuple[str, Stage], list[float]] = defaultdict(list)
    models: dict[str, dict[str, str]] = {}
    sql = _EVENTS_SQL.format(find=_FIND_FUNCTION[database.dialect], head=_HEAD_CHARACTERS)
    for session, kind, head, tail in database.rows(
        sql, {"source": COUNCIL, "most": MAX_SESSIONS_FOR_LENGTHS}
    ):
        fields = json.loads("{" + tail) if tail.startswith('"') else json.loads(tail)
        if kind == "session_opened":
            models[session] = _models(fields)
            continue
        match = _SEAT_PATTERN.search(head)
        expense_fields = fields.get("spent", {})
        tokens, calls = (
            expense_fields.get("usage", {}).get("output_tokens"),
            expense_fields.get("calls", 1),
        )
        if match and isinstance(tokens, int) and tokens > 0 and isinstance(calls, int):
            seat = json.loads(match[1])
            for model in ("", models.get(session, {}).get(seat, seat)):
                counts[model, _STAGES[kind]].append(tokens / max(calls, 1))
    means = {key: sum(tokens) / len(tokens) for key, tokens in counts.items()}
    return Lengths(means, len(models)) if means else Lengths()


def _models(opening: dict[str, Any]) -> dict[str, str]:
    seats = [seat for key in ("seats", "chairmen", "jury") for seat in opening.get(key, ())]
    return {seat["name"]: seat.get("source") or seat["name"] for seat in seats}


_RECENT_SQL = f"""
WITH recent AS (
    SELECT session, at_us FROM sessions
    WHERE simulated = 0 AND rejudged = 0 AND holder = ''
    AND session NOT IN ({SUPERSEDED_SESSIONS})
    ORDER BY at_us DESC, session LIMIT :most
)
SELECT b.session, b.body FROM recent r JOIN ballots b ON b.session = r.session
ORDER BY r.at_us, r.session, b.ballot
"""  # noqa: S608 - texts of our own


def recent_ballots(database: Database, most: int) -> list[Ballot]:
    """Read recent ballots as cast, excluding simulated and rejudged sessions."""
    rows = database.rows(_RECENT_SQL, {"most": most})
    return [
        replace(read_ballot(database, session, body), session=session) for session, body in rows
    ]
