"""What the native API answers, an example of each operation."""

from witan.service.session_records import CouncilSession
from witan.surfaces.http.documents import Responses, refused, streamed_events, told

SESSION = "20261122-043640-acfc3ee97f"

HERE = f"/api/sessions/{SESSION}"

STANDING = {
    "candidate": "ada",
    "rank": 1,
    "score": 1.0,
    "interval": {"low": 0.74, "high": 1.0, "level": 0.95},
    "tier": 1,
}

OUTCOME = {
    "session": SESSION,
    "rule": "borda",
    "interpretation": "ada leads clearly.",
    "standings": [STANDING],
    "leaders": ["ada"],
    "tied_for_best": ["ada"],
    "clear_leader": "ada",
    "n_ballots": 3,
    "n_abstentions": 0,
    "ballots_to_flip": 2,
    "warnings": [],
}

OPENED = {"event": "session_opened", "seq": 1, "at": "2026-11-22T04:36:40.231196+00:00"}

STARTED: Responses = {200: {"model": CouncilSession}, **refused(402, 404, 409)}

EVENTS = {
    200: streamed_events(
        "Every event, and at last how the session ended.",
        {
            "id": "1-9f31ab02",
            "event": "session_opened",
            "data": '{"event": "session_opened", "seq": 1, "question": "Is it so?"}',
        },
    ),
    **refused(404, 409),
}

PROFILES: Responses = {
    200: told(
        "Every council; the first is what is configured apart from profiles.",
        {
            "profiles": [
                {
                    "name": "",
                    "about": "",
                    "seats": [{"name": "gpt-5", "source": "openai:gpt-5"}],
                    "jury": [],
                    "chairmen": [{"name": "gpt-5", "source": "openai:gpt-5"}],
                    "simulated": False,
                    "notes": [],
                    "problem": None,
                }
            ]
        },
    )
}

_WELL = {"status": "ok", "witan": "0.1.0", "under_way": 3}

HEALTH = {
    200: told("It takes questions.", _WELL),
    503: told("It is about to stop.", {**_WELL, "status": "stopping"}),
    **refused(403, 413, 508),
}

METRICS = {
    200: {
        "description": "Every counter.",
        "content": {
            "text/plain": {
                "schema": {"type": "string"},
                "example": "# HELP witan_streams Readers of events.\n"
                "# TYPE witan_streams gauge\nwitan_streams 12.0\n",
            }
        },
    },
    **refused(401, 403, 413, 429, 508),
}
