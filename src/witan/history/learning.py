"""What a council learns from a history before it counts, read from its newest sessions alone."""

import json
import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from witan.core.entries import Noise
from witan.core.outcome import Prior, Unit
from witan.core.stats.agreement import MIN_DECIDED, shared_error
from witan.core.stats.calibration import (
    BesidePeople,
    JudgedSession,
    StoredBallot,
    beside_people,
    calibrate,
)
from witan.core.stats.learning import (
    Learned,
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
from witan.history.database import Database, Params
from witan.history.reading import sessions_sharing_answers
from witan.history.rows import COUNCIL
from witan.history.schema import code_of

NO_ALIASES: Mapping[str, str] = MappingProxyType({})

NOISY = 2_000
"""Newest sessions of a unit that its prior is learned from."""

JUDGED = 100
"""Newest sessions with people's votes that ρ, calibration and reliability are learned from."""

BALLOTS_JUDGED = 5_000
"""Ballots in them, beyond which older sessions are left out."""

TURNED = 500
"""Newest sessions that order-consistency is learned from."""

SIDE_FILES = 100
"""Newest sessions that agreement with the others is learned from."""

# Every session is later than the earliest; without saying so SQLite reads and sorts them all.
_NEWEST = (
    f"SELECT session FROM sessions WHERE at_us >= {EARLIEST_US} AND simulated = 0 AND holder = ''"  # noqa: S608
    " AND session NOT IN ({without}) AND session NOT IN ({superseded})"
    " AND (:half < 0 OR bucket % 2 = :half)"
    " ORDER BY at_us DESC, session LIMIT :most"
)

_NOISE = (
    "SELECT source, noise_variance, noise_df, effect_variance FROM sessions"
    " WHERE simulated = 0 AND holder = '' AND noise_unit = :unit AND session NOT IN ({without})"
    " AND session NOT IN ({superseded})"
    " AND (:half < 0 OR bucket % 2 = :half)"
    " ORDER BY at_us DESC, session LIMIT :most"
)

FEW = 2_000
"""Sessions with people's votes, up to which they are looked for among the votes."""

_MOST_OF_PEOPLE = """
SELECT COUNT(*) FROM (SELECT 1 FROM matchups WHERE human = 1 LIMIT :most) AS found
"""

# SQLite begins with what stands on the left of CROSS JOIN.
_AMONG_VOTES = "matchups m CROSS JOIN sessions s"

_BY_TIME = "sessions s CROSS JOIN matchups m"

_JUDGED = """
SELECT s.session, s.bucket,
    (SELECT COUNT(*) FROM ballots b WHERE b.session = s.session) AS n_ballots
FROM {tables}
WHERE s.session = m.session AND m.human = 1 AND s.simulated = 0 AND s.holder = ''
    AND s.session NOT IN ({without}) AND s.session NOT IN ({superseded})
    AND (:half < 0 OR s.bucket % 2 = :half)
ORDER BY s.at_us DESC, s.session LIMIT :most
"""

_BALLOTS = (
    "SELECT session, reviewer, human, models, own, shares FROM ballots"
    " WHERE abstained = 0 AND session IN ({names}) ORDER BY session, ballot"
)

_P_BEATS = "SELECT session, models, p_beats FROM matchups WHERE human = 0 AND session IN ({names})"

_ORDER_KEPT = f"""
SELECT b.reviewer, SUM(b.kept) AS kept, SUM(b.compared) AS compared
FROM ({_NEWEST}) s JOIN ballots b ON b.session = s.session
WHERE b.human = 0 AND b.compared > 0
GROUP BY b.reviewer
"""  # noqa: S608 - texts of our own

UNITS: tuple[Unit, ...] = ("grades", "ranks")


@dataclass(frozen=True, slots=True)
class _Apart:
    """What does not teach: some sessions, and those of the other half where one is wanted.

    Parameters
    ----------
    now
        Code of an old name → code of the name that a model has now.
    """

    without: tuple[str, ...]
    half: int
    now: Mapping[int, int]

    def rows(
        self, database: Database, sql: str, most: int, tables: str = "", **given: str
    ) -> list[tuple[Any, ...]]:
        """The rows of the newest sessions that teach."""
        names = {f"w{k}": session for k, session in enumerate(self.without)}
        listed = ", ".join(f":{name}" for name in names) if names else "''"
        asked: Params = {**given, **names, "half": self.half, "most": most}
        return database.rows(
            sql.format(without=listed, superseded=SUPERSEDED_SESSIONS, tables=tables), asked
        )


def learned(
    database: Database,
    reviewers: Collection[str],
    without: str | None = None,
    half: int | None = None,
    aliases: Mapping[str, str] = NO_ALIASES,
) -> Learned:
    """What the newest sessions teach, simulated ones left out.

    Parameters
    ----------
    reviewers
        Models whose reliability is asked for; none: nobody's.
    without
        A session that must not teach, because it is the one to be decided; nor do the others that
        judge the same answers.
    half
        Only sessions with an even bucket (0), or an odd one (1).
    aliases
        Old name → new name of a model.
    """
    now = {code_of(old): code_of(present_name(old, aliases)) for old in aliases}
    with database.snapshot():
        judged = [] if without is None else sessions_sharing_answers(database, without)
        apart = _Apart(tuple(judged), -1 if half is None else half, now)
        priors = [_prior(database, unit, apart) for unit in UNITS]
        beside = beside_people(_judged(database, apart))
        weights: Mapping[str, float] = {}
        if reviewers:
            called = {name: present_name(name, aliases) for name in reviewers}
            found = _reliability(database, [*dict.fromkeys(called.values())], beside, apart)
            weights = {name: found[held] for name, held in called.items() if held in found}
    enough = beside.correct.shape[1] >= MIN_DECIDED and len(beside.reviewers) > 1
    return Learned(
        priors=tuple(prior for prior in priors if prior is not None),
        rho=shared_error(beside.correct) if enough else None,
        reliability=weights,
        calibration=calibrate(beside.calibration, with_bands=False),
    )


def _prior(database: Database, unit: Unit, apart: _Apart) -> Prior | None:
    rows = apart.rows(database, _NOISE, NOISY, unit=unit)
    prior = learn_prior_from_noise([Noise(unit, *noise) for _, *noise in rows], unit)
    if prior is None:
        return None
    return replace(prior, n_imported=sum(source != COUNCIL for source, *_ in rows))


def _judged(database: Database, apart: _Apart) -> Iterator[JudgedSession]:
    """The newest sessions that people voted on."""
    [(n_judged,)] = database.rows(_MOST_OF_PEOPLE, {"most": FEW})
    tables = _AMONG_VOTES if n_judged < FEW else _BY_TIME
    found = apart.rows(database, _JUDGED, JUDGED, tables)
    running, buckets = 0, dict[str, int]()
    for session, bucket, n_ballots in found:
        running += n_ballots
        if buckets and running > BALLOTS_JUDGED:
            break
        buckets[session] = bucket
    ballots = _ballots(database, [*buckets], apart.now)
    panels = {
        session: (_present(json.loads(models), apart.now), json.loads(p_beats))
        for session, models, p_beats in _of(database, _P_BEATS, [*buckets])
    }
    for session, bucket in buckets.items():
        models, p_beats = panels.get(session, ((), ()))
        yield JudgedSession(bucket, ballots.get(session, ()), models, p_beats)


def _ballots(
    database: Database, sessions: Sequence[str], now: Mapping[int, int]
) -> dict[str, list[StoredBallot]]:
    """Session to its ballots."""
    rows = _of(database, _BALLOTS, sessions)
    lists = zip(*(_parsed([row[at] for row in rows]) for at in (3, 4, 5)), strict=True)
    found: dict[str, list[StoredBallot]] = {}
    for (session, reviewer, human, *_), (models, *held) in zip(rows, lists, strict=True):
        ballot = StoredBallot(
            now.get(reviewer, reviewer), bool(human), _present(models, now), *held
        )
        found.setdefault(session, []).append(ballot)
    return found


def _present(models: list[int], now: Mapping[int, int]) -> list[int]:
    """Codes of models by the names that they have now."""
    return [now.get(model, model) for model in models] if now else models


def _parsed(texts: Sequence[str]) -> list[Any]:
    """JSON texts, read as one: thousands of small ones would take longer."""
    read: list[Any] = json.loads(f"[{','.join(texts)}]")
    return read


def _of(database: Database, sql: str, sessions: Sequence[str]) -> list[tuple[Any, ...]]:
    """The rows of these sessions."""
    if not sessions:
        return []
    given = {f"s{k}": session for k, session in enumerate(sessions)}
    return database.rows(sql.format(names=", ".join(f":{name}" for name in given)), given)


def _reliability(
    database: Database, reviewers: Collection[str], beside: BesidePeople, apart: _Apart
) -> Mapping[str, float]:
    """The weights of a council's reviewers, by all that is known of them."""
    codes = {code_of(name): name for name in reviewers}
    tracks = Tracks(order_kept=_order_kept(database, codes, apart))
    if not known_by_order(tracks.order_kept, reviewers):
        tracks = replace(tracks, agreement=_agreement(database, codes, apart))
    mine = beside.of(codes)
    judged = dict(zip(mine.reviewers, mine.sums.n.tolist(), strict=True))
    tracks = replace(
        tracks,
        people=learn_reliability_from_people(mine.sums, Names(codes)),
        judged={codes[code]: n for code, n in judged.items()},
    )
    return reliability_from_tracks(tracks, reviewers)


def _order_kept(
    database: Database, codes: Mapping[int, str], apart: _Apart
) -> dict[str, tuple[int, int]]:
    rows = apart.rows(database, _ORDER_KEPT, TURNED)
    found: dict[str, tuple[int, int]] = {}
    for code, kept, n in rows:
        name = codes.get(apart.now.get(code, code))
        if name is not None:
            before = found.get(name, (0, 0))
            found[name] = (before[0] + int(kept), before[1] + int(n))
    return found


def _agreement(database: Database, codes: Mapping[int, str], apart: _Apart) -> Mapping[str, float]:
    """Weights by agreement with the others in sessions that these reviewers voted in."""
    newest = apart.rows(database, _NEWEST, SIDE_FILES)
    sessions = _ballots(database, [session for (session,) in newest], apart.now).values()
    return reliability_from_shares(_shares(ballots, codes) for ballots in sessions)


def _shares(
    ballots: Sequence[StoredBallot], codes: Mapping[int, str]
) -> dict[str, NDArray[np.float64]]:
    """Reviewer to its shares, its own candidates left out; those of others under their codes."""
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
    return {reviewer: np.array(held) for reviewer, held in rows.items()}


NEWEST = 100
"""Sessions that lengths are read from, simulated ones left out."""

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

A key with its quotes and colon stands nowhere in a text, where JSON escapes quotes; texts stand
before seats and before what was spent, and after whose they are.
"""

_HEAD = 4_000
"""Characters of an event that hold the seat that it is of: a name has 400 at most."""

_FIND = {"sqlite": "instr", "postgresql": "strpos"}

_SEAT = re.compile(r'"(?:seat|chairman)": *("(?:[^"\\]|\\.)*")')

_STAGES: dict[str, Stage] = {
    "answer_done": "answer",
    "ballot_cast": "review",
    "synthesis_done": "synthesis",
}


def read_lengths(database: Database, source: str) -> Lengths:
    """Return the mean tokens of one reply as the providers counted them.

    An event may stand for several calls: both orders of a sheet, repairs, retries.

    Parameters
    ----------
    source
        What sessions of councils are marked with.
    """
    counts: dict[tuple[str, Stage], list[float]] = defaultdict(list)
    models: dict[str, dict[str, str]] = {}
    sql = _EVENTS.format(find=_FIND[database.dialect], head=_HEAD)
    for session, kind, head, tail in database.rows(sql, {"source": source, "most": NEWEST}):
        held = json.loads("{" + tail) if tail.startswith('"') else json.loads(tail)
        if kind == "session_opened":
            models[session] = _models(held)
            continue
        named = _SEAT.search(head)
        spent = held.get("spent", {})
        tokens, calls = spent.get("usage", {}).get("output_tokens"), spent.get("calls", 1)
        if named and isinstance(tokens, int) and tokens > 0 and isinstance(calls, int):
            seat = json.loads(named[1])
            for model in ("", models.get(session, {}).get(seat, seat)):
                counts[model, _STAGES[kind]].append(tokens / max(calls, 1))
    means = {key: sum(held) / len(held) for key, held in counts.items()}
    return Lengths(means, len(models)) if means else Lengths()


def _models(opened: dict[str, Any]) -> dict[str, str]:
    """Seat to model, as a session began."""
    seats = [seat for key in ("seats", "chairmen", "jury") for seat in opened.get(key, ())]
    return {seat["name"]: seat.get("source") or seat["name"] for seat in seats}
