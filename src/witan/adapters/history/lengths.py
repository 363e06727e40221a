"""How long earlier replies were, per model and stage, read from the newest sessions."""

import json
from collections import defaultdict
from typing import Any

from witan.adapters.history.database import Database
from witan.deliberation.lengths import Lengths
from witan.deliberation.ports import Stage

__all__ = ["read_lengths"]

NEWEST = 100
"""Sessions that lengths are read from, simulated ones left out."""

_EVENTS = """
SELECT e.session, e.kind, e.body
FROM (
    SELECT session FROM sessions
    WHERE simulated = 0 AND holder = '' AND source = :source
    ORDER BY at_us DESC, session LIMIT :most
) s JOIN events e ON e.session = s.session
WHERE e.kind IN ('session_opened', 'answer_done', 'ballot_cast', 'synthesis_done')
ORDER BY e.session, e.seq
"""

_STAGES: dict[str, Stage] = {
    "answer_done": "answer",
    "ballot_cast": "review",
    "synthesis_done": "synthesis",
}


def read_lengths(database: Database, source: str) -> Lengths:
    """Return the mean tokens of replies as the providers counted them.

    Parameters
    ----------
    source
        What sessions of councils are marked with.
    """
    counts: dict[tuple[str, Stage], list[int]] = defaultdict(list)
    models: dict[str, dict[str, str]] = {}
    for session, kind, body in database.rows(_EVENTS, {"source": source, "most": NEWEST}):
        event = json.loads(body)
        if kind == "session_opened":
            models[session] = _models(event)
            continue
        seat = event.get("chairman") if kind == "synthesis_done" else event.get("seat")
        tokens = event.get("spent", {}).get("usage", {}).get("output_tokens")
        if isinstance(tokens, int) and tokens > 0 and isinstance(seat, str):
            for model in ("", models.get(session, {}).get(seat, seat)):
                counts[model, _STAGES[kind]].append(tokens)
    means = {key: sum(held) / len(held) for key, held in counts.items()}
    return Lengths(means, len(models)) if means else Lengths()


def _models(opened: dict[str, Any]) -> dict[str, str]:
    """Seat to model, as a session began."""
    seats = [seat for key in ("seats", "chairmen", "jury") for seat in opened.get(key, ())]
    return {seat["name"]: seat.get("source") or seat["name"] for seat in seats}
