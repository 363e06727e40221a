"""How long earlier replies were, per model and stage, read from the newest sessions."""

import json
import re
from collections import defaultdict
from typing import Any

from witan.deliberation.lengths import Lengths
from witan.deliberation.ports import Stage
from witan.history.database import Database

__all__ = ["read_lengths"]

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
