"""Statistics from the newest sessions, learned by a council before counting."""

import json
import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from witan.core.ballot import Ballot
from witan.core.entries import Noise
from witan.core.outcome import Prior, Unit
from witan.core.stats.agreement import MIN_DECIDED, shared_error
from witan.core.stats.calibration import (
    BesidePeople,
    JudgedSession,
    StoredBallot,
    calibrate,
    compare_with_people,
)
from witan.core.stats.learning import (
    Lessons,
    Tracks,
    known_by_order,
    learn_prior_from_noise,
    learn_reliability_from_people,
    reliability_from_shares,
    reliability_from_tracks,
)
from witan.core.stats.sums import Names, present_name
from witan.core.window import EARLIEST_US
from witan.deliberation.plan import Lengths
from witan.deliberation.ports import Stage
from witan.history.counting import SUPERSEDED_SESSIONS
from witan.history.database import Database, Params, in_list
from witan.history.reading import parse_ballot, sessions_sharing_answers
from witan.history.rows import COUNCIL
from witan.history.schema import code_of

NO_ALIASES: Mapping[str, str] = MappingProxyType({})

NOISY = 2_000
"""Newest sessions of a unit for its prior."""

JUDGED = 100
"""Newest sessions with people's votes for ρ, calibration and reliability."""

BALLOTS_JUDGED = 5_000
"""Most ballots in them; older sessions beyond are left out."""

TURNED = 500
"""Newest sessions for order-consistency."""

MAX_SESSIONS_FOR_AGREEMENT = 100
"""Newest sessions for agreement with the others."""

# Every session is later than EARLIEST_US; without the condition SQLite reads and sorts them all.
_NEWEST = (
    f"SELECT session FROM sessions WHERE at_us >= {EARLIEST_US} AND simulated = 0 AND holder = ''"  # noqa: S608
    " AND session NOT IN {without} AND session NOT IN ({superseded})"
    " AND (:half < 0 OR bucket % 2 = :half)"
    " ORDER BY at_us DESC, session LIMIT :most"
)

_NOISE = (
    "SELECT source, noise_variance, noise_df, effect_variance FROM sessions"
    " WHERE simulated = 0 AND holder = '' AND noise_unit = :unit AND session NOT IN {without}"
    " AND session NOT IN ({superseded})"
    " AND (:half < 0 OR bucket % 2 = :half)"
    " ORDER BY at_us DESC, session LIMIT :most"
)

FEW = 2_000
"""Most sessions with people's votes for which the query starts from the votes."""

_MOST_OF_PEOPLE = """
SELECT COUNT(*) FROM (SELECT 1 FROM matchups WHERE human = 1 LIMIT :most) AS votes
"""

# SQLite reads the table on the left of CROSS JOIN first.
_AMONG_VOTES = "matchups m CROSS JOIN sessions s"

_BY_TIME = "sessions s CROSS JOIN matchups m"

_JUDGED = """
SELECT s.session, s.bucket,
    (SELECT COUNT(*) FROM ballots b WHERE b.session = s.session) AS n_ballots
FROM {tables}
WHERE s.session = m.session AND m.human = 1 AND s.simulated = 0 AND s.holder = ''
    AND s.session NOT IN {without} AND s.session NOT IN ({superseded})
    AND (:half < 0 OR s.bucket % 2 = :half)
ORDER BY s.at_us DESC, s.session LIMIT :most
"""

_BALLOTS = (
    "SELECT session, reviewer, human, models, own, shares FROM ballots"
    " WHERE abstained = 0 AND session IN {names} ORDER BY session, ballot"
)

_P_BEATS = "SELECT session, models, p_beats FROM matchups WHERE human = 0 AND session IN {names}"

_ORDER_KEPT = f"""
SELECT b.reviewer, SUM(b.kept) AS kept, SUM(b.compared) AS compared
FROM ({_NEWEST}) s JOIN ballots b ON b.session = s.session
WHERE b.human = 0 AND b.compared > 0
GROUP BY b.reviewer
"""  # noqa: S608 - texts of our own

UNITS: tuple[Unit, ...] = ("grades", "ranks")


@dataclass(frozen=True, slots=True)
class _Filter:
    """Excluded sessions, the half of the buckets to read, and renamed models.

    Parameters
    ----------
    current_codes
        Code of an old name → code of the name that a model has now.
    """

    excluded_sessions: tuple[str, ...]
    half: int
    current_codes: Mapping[int, int]

    def rows(
        self, database: Database, sql: str, most: int, tables: str = "", **values: str
    ) -> list[tuple[Any, ...]]:
        """Read the newest sessions' rows, without excluded ones."""
        among, names = in_list(self.excluded_sessions or ("",), "w")
        params: Params = {**values, **names, "half": self.half, "most": most}
        return database.rows(
            sql.format(without=among, superseded=SUPERSEDED_SESSIONS, tables=tables), params
        )


def learn(
    database: Database,
    reviewers: Collection[str],
    exclude: str | None = None,
    half: int | None = None,
    aliases: Mapping[str, str] = NO_ALIASES,
) -> Lessons:
    """Learn from the newest sessions, simulated ones excluded."""
    now = {code_of(old): code_of(present_name(old, aliases)) for old in aliases}
    with database.snapshot():
        excluded = [] if exclude is None else sessions_sharing_answers(database, exclude)
        chosen = _Filter(tuple(excluded), -1 if half is None else half, now)
        priors = [_prior(database, unit, chosen) for unit in UNITS]
        beside = compare_with_people(_judged_sessions(database, chosen))
        weights: Mapping[str, float] = {}
        if reviewers:
            present = {name: present_name(name, aliases) for name in reviewers}
            known = _reliability(database, [*dict.fromkeys(present.values())], beside, chosen)
            weights = {
                name: known[current] for name, current in present.items() if current in known
            }
    calibration = calibrate(beside.calibration, with_bands=False)
    enough = beside.correct.shape[1] >= MIN_DECIDED and len(beside.reviewers) > 1
    return Lessons(
        priors=tuple(prior for prior in priors if prior is not None),
        rho=shared_error(beside.correct) if enough else None,
        reliability=weights,
        calibration=calibration if calibration.pairs else None,
    )


def _prior(database: Database, unit: Unit, session_filter: _Filter) -> Prior | None:
    rows = session_filter.rows(database, _NOISE, NOISY, unit=unit)
    prior = learn_prior_from_noise([Noise(unit, *noise) for _, *noise in rows], unit)
    if prior is None:
        return None
    return replace(prior, n_imported=sum(source != COUNCIL for source, *_ in rows))


def _judged_sessions(database: Database, session_filter: _Filter) -> Iterator[JudgedSession]:
    """Read the newest sessions with people's votes."""
    [(n_judged,)] = database.rows(_MOST_OF_PEOPLE, {"most": FEW})
    tables = _AMONG_VOTES if n_judged < FEW else _BY_TIME
    rows = session_filter.rows(database, _JUDGED, JUDGED, tables)
    running, buckets = 0, dict[str, int]()
    for session, bucket, n_ballots in rows:
        running += n_ballots
        if buckets and running > BALLOTS_JUDGED:
            break
        buckets[session] = bucket
    ballots = _ballots(database, [*buckets], session_filter.current_codes)
    panels = {
        session: (_present(json.loads(models), session_filter.current_codes), json.loads(p_beats))
        for session, models, p_beats in _rows_of(database, _P_BEATS, [*buckets])
    }
    for session, bucket in buckets.items():
        models, p_beats = panels.get(session, ((), ()))
        yield JudgedSession(bucket, ballots.get(session, ()), models, p_beats)


def _ballots(
    database: Database, sessions: Sequence[str], current_codes: Mapping[int, int]
) -> dict[str, list[StoredBallot]]:
    """Read the ballots of sessions, by session."""
    rows = _rows_of(database, _BALLOTS, sessions)
    lists = zip(*(_parse_lists([row[at] for row in rows]) for at in (3, 4, 5)), strict=True)
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


def _parse_lists(texts: Sequence[str]) -> list[Any]:
    """Parse JSON texts as one, faster than thousands of small ones."""
    lists: list[Any] = json.loads(f"[{','.join(texts)}]")
    return lists


def _rows_of(database: Database, sql: str, sessions: Sequence[str]) -> list[tuple[Any, ...]]:
    if not sessions:
        return []
    among, params = in_list(sessions)
    return database.rows(sql.format(names=among), params)


def _reliability(
    database: Database, reviewers: Collection[str], beside: BesidePeople, session_filter: _Filter
) -> Mapping[str, float]:
    """Return the weights of reviewers by everything known about them."""
    codes = {code_of(name): name for name in reviewers}
    tracks = Tracks(order_kept=_count_order_kept(database, codes, session_filter))
    if not known_by_order(tracks.order_kept, reviewers):
        tracks = replace(tracks, agreement=_agreement(database, codes, session_filter))
    mine = beside.of(codes)
    judged = dict(zip(mine.reviewers, mine.sums.n.tolist(), strict=True))
    tracks = replace(
        tracks,
        people=learn_reliability_from_people(mine.sums, Names(codes)),
        pairs_judged={codes[code]: n for code, n in judged.items()},
    )
    return reliability_from_tracks(tracks, reviewers)


def _count_order_kept(
    database: Database, codes: Mapping[int, str], session_filter: _Filter
) -> dict[str, tuple[int, int]]:
    rows = session_filter.rows(database, _ORDER_KEPT, TURNED)
    counts: dict[str, tuple[int, int]] = {}
    for code, same, n in rows:
        name = codes.get(session_filter.current_codes.get(code, code))
        if name is not None:
            before = counts.get(name, (0, 0))
            counts[name] = (before[0] + int(same), before[1] + int(n))
    return counts


def _agreement(
    database: Database, codes: Mapping[int, str], session_filter: _Filter
) -> Mapping[str, float]:
    """Return weights by agreement with the others in sessions of these reviewers."""
    newest = session_filter.rows(database, _NEWEST, MAX_SESSIONS_FOR_AGREEMENT)
    sessions = _ballots(
        database, [session for (session,) in newest], session_filter.current_codes
    ).values()
    return reliability_from_shares(_shares(ballots, codes) for ballots in sessions)


def _shares(
    ballots: Sequence[StoredBallot], codes: Mapping[int, str]
) -> dict[str, NDArray[np.float64]]:
    """Return shares per reviewer without its own candidates; others under their codes."""
    cast = [ballot for ballot in ballots if not ballot.human]
    columns = {
        model: at for at, model in enumerate(dict.fromkeys(m for b in cast for m in b.models))
    }
    rows: dict[str, list[NDArray[np.float64]]] = {}
    for ballot in cast:
        row = np.full(len(columns), np.nan)
        for model, own, share in zip(ballot.models, ballot.own, ballot.shares, strict=True):
            if share is not None and not own:
                row[columns[model]] = share
        rows.setdefault(codes.get(ballot.reviewer, str(ballot.reviewer)), []).append(row)
    return {reviewer: np.array(shares) for reviewer, shares in rows.items()}


NEWEST = 100
"""Newest sessions for lengths, simulated ones excluded."""

_EVENTS = """
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
"""Events without their texts, which may be megabytes.

A key with its quotes and colon is in no text, because JSON escapes quotes there; texts are before
the keys `seats` and `spent`, and after the seat.
"""

_HEAD = 4_000
"""Characters of an event with its seat, whose name has 400 at most."""

_FIND = {"sqlite": "instr", "postgresql": "strpos"}

_SEAT = re.compile(r'"(?:seat|chairman)": *("(?:[^"\\]|\\.)*")')

_STAGES: dict[str, Stage] = {
    "answer_done": "answer",
    "ballot_cast": "review",
    "synthesis_done": "synthesis",
}


def read_lengths(database: Database) -> Lengths:
    """Return the mean output tokens of a reply, per model and stage.

    One event may cover several calls: both orders of a sheet, repairs, retries.
    """
    counts: dict[tuple[str, Stage], list[float]] = defaultdict(list)
    models: dict[str, dict[str, str]] = {}
    sql = _EVENTS.format(find=_FIND[database.dialect], head=_HEAD)
    for session, kind, head, tail in database.rows(sql, {"source": COUNCIL, "most": NEWEST}):
        fields = json.loads("{" + tail) if tail.startswith('"') else json.loads(tail)
        if kind == "session_opened":
            models[session] = _models(fields)
            continue
        match = _SEAT.search(head)
        spent = fields.get("spent", {})
        tokens, calls = spent.get("usage", {}).get("output_tokens"), spent.get("calls", 1)
        if match and isinstance(tokens, int) and tokens > 0 and isinstance(calls, int):
            seat = json.loads(match[1])
            for model in ("", models.get(session, {}).get(seat, seat)):
                counts[model, _STAGES[kind]].append(tokens / max(calls, 1))
    means = {key: sum(tokens) / len(tokens) for key, tokens in counts.items()}
    return Lengths(means, len(models)) if means else Lengths()


def _models(opening: dict[str, Any]) -> dict[str, str]:
    """Map the seats of an opened session to models."""
    seats = [seat for key in ("seats", "chairmen", "jury") for seat in opening.get(key, ())]
    return {seat["name"]: seat.get("source") or seat["name"] for seat in seats}


_RECENT = f"""
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
    """Read the ballots of the newest sessions as cast, without simulated and rejudged ones."""
    rows = database.rows(_RECENT, {"most": most})
    return [replace(parse_ballot(body), session=session) for session, body in rows]
