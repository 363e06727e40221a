"""What OpenAI's endpoint answers, an example of each operation."""

from typing import Any

from witan.surfaces.http.documents import DETAILS, Responses, told
from witan.surfaces.http.problems import TITLES
from witan.surfaces.openai.errors import error_object

__all__ = ["COMPLETION", "MODEL", "MODELS"]

_MODEL = {
    "id": "witan",
    "object": "model",
    "created": 1795322197,
    "owned_by": "witan",
    "witan": {"mode": "consensus", "members": ["gpt-5", "claude"], "simulated": False},
}

_CHUNK = (
    '{"id": "chatcmpl-1", "object": "chat.completion.chunk", "choices": '
    '[{"index": 0, "delta": {"content": "No: not where"}, "finish_reason": null}]}'
)

_REPLY: Any = told(
    "The final answer, whole; or, where `stream` is set, what happens as it happens.",
    {
        "id": "chatcmpl-20261122-043640-acfc3ee97f",
        "object": "chat.completion",
        "created": 1795322197,
        "model": "witan",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": "No: not where the keys are few [A]."},
                "finish_reason": "stop",
            }
        ],
        "witan": {"session": "20261122-043640-acfc3ee97f", "status": "complete"},
    },
)
_REPLY["content"]["text/event-stream"] = {
    "schema": {
        "type": "object",
        "required": ["data"],
        "properties": {"data": {"type": "string"}},
    },
    "example": {"data": _CHUNK},
}

_ERROR = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["message", "type", "param", "code"],
            "properties": {"message": {"type": "string"}, "type": {"type": "string"}},
        }
    },
}


def _refused(*statuses: int) -> Responses:
    return {
        status: {
            "description": TITLES[status],
            "content": {
                "application/json": {
                    "schema": _ERROR,
                    "example": error_object(status, DETAILS[status]),
                }
            },
        }
        for status in statuses
    }


_ANY_TIME = _refused(400, 401, 403, 413, 429, 503, 508)

COMPLETION = {200: _REPLY, **_ANY_TIME, **_refused(402, 404, 409, 422, 502)}

MODELS = {
    200: told("Those that can be asked.", {"object": "list", "data": [_MODEL]}),
    **_ANY_TIME,
}

MODEL = {200: told("What it is.", _MODEL), **_ANY_TIME, **_refused(404, 422)}
